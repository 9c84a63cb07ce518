"""Settings of an experiment that trains in seconds."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from experiments.configuration.registration import register, validated
from experiments.run import run
from graphs.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

TINY = [
    "data=jsonl",
    "model.hidden_dim=16",
    "model.projection_dim=8",
    "model.num_layers=2",
    "model.num_bases=4",
    "train.batch_size=8",
    "train.device=cpu",
    "workers=1",
]
SMALL = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.batch_size=8", "train.epochs=1"]


def trial(*settings: str, exp: str = "trial") -> DictConfig:
    """The configuration of an experiment, of a collection that need not be there."""
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return validated(compose("config", [f"+exp={exp}", "data=arqmath", "data.root=/data", *settings]))


def refusal(collection: Path, out: Path, *settings: str) -> str:
    """What a trial on ``collection`` is refused with."""
    places = ["data=jsonl", f"data.root={collection}", f"outputs={out}", "train.batch_size=8"]
    with pytest.raises(ConfigError) as refused:
        run(trial(*places, *settings), "the command")
    return str(refused.value)


def built(outputs: Path) -> set[str]:
    """Return the names of what jobs share, without the posts of the collection, which the pairs are read from."""
    posts = ("post_headers.", "posts.", ".posts.")
    return {path.name for path in outputs.glob("shared/*/*") if not path.name.startswith(posts)}
