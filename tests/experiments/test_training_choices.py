"""Where hard negatives and positives come from, as an experiment names it, on a small made-up collection."""

import json
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.run import run

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.batch_size=8", "train.epochs=1"]
CONDITIONS = {
    "bm25": {"train": {"negatives": 3, "negative_closest": None}},
    "tags": {"train": {"negatives": 2, "negative_source": "tags"}},
    "model": {"train": {"negatives": 2, "negative_source": "model", "negative_closest": None}},
    "formulas": {"train": {"positives": "answers", "formula_weight": 0.1, "formula_view_weight": 0.1}},
}


@pytest.mark.slow
def test_conditions_differ_in_what_is_learned_from(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = [json.loads(line) for line in (collection / "posts.jsonl").read_text().splitlines()[:-1]]
    for post in posts:
        if post["kind"] == "question":
            post["tags"] = [post["title"].split()[3]]
    (collection / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "workers=1", "train.device=cpu"]
        config = compose("config", ["+exp=trial", *SMALL, *places])
    config.experiment.conditions, config.experiment.baseline = CONDITIONS, "bm25"
    assert run(validated(config), "the command").failed == 0
    said = capsys.readouterr().err
    for source in ("bm25", "tags", "model"):
        assert f"hard negatives by {source}: of 40 questions, 0 have none; posts: " in said
    mined = {}
    for place in (tmp_path / config.experiment.name / "jobs").iterdir():
        records = [json.loads(line) for line in (place / "log.jsonl").read_text().splitlines()]
        found: list[dict[str, Any]] = [record for record in records if record["kind"] == "negatives"]
        mined[place.name.removesuffix("-seed42")] = [record["source"] for record in found]
        losses = [name for name in records[-2] if name.endswith("_loss") and name != "val_loss"]
        assert ("formula_view_loss" in losses) == place.name.startswith("formulas"), records[-2]
    assert mined == {"bm25": ["bm25"], "tags": ["tags"], "model": ["model"], "formulas": []}
