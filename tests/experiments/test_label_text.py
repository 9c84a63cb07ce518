"""A text encoder for the labels, as a configuration names it: keys, refusals, and a run on a made-up collection."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.plan import plan
from experiments.run import run
from graphs.corpus.files import Fingerprints
from mathamr.model import label_vectors
from mathamr.training import checkpoint
from tests.experiments.tiny_settings import SMALL, refusal, trial

pytestmark = pytest.mark.usefixtures("without_plots")


def model_key(*settings: str) -> str:
    return plan(trial(*settings), Fingerprints("fingerprint"))[0].model_key


def test_a_model_is_that_of_its_encoder_and_of_the_weights(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    weights = tmp_path / "one" / "model.safetensors"
    weights.write_bytes(b"1")
    first = model_key(f"model.label_vectors={tmp_path}/one")
    assert first == model_key(f"model.label_vectors={tmp_path}/one") != model_key()
    assert model_key("model.label_vectors=org/one") not in (first, model_key())
    weights.write_bytes(b"23")
    assert model_key(f"model.label_vectors={tmp_path}/one") != first


@pytest.mark.parametrize("setting", ["model.label_vectors", "model.sentence_vectors", "train.teacher"])
def test_without_the_extra_an_encoder_is_refused_before_anything_runs(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    find = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "sentence_transformers" else find(name, *rest)

    monkeypatch.setattr("mathamr.text.encoder.find_spec", without)
    message = "text encoders need sentence-transformers: pip install 'mathamr-plus[text]'"
    assert message in refusal(collection, tmp_path, f"{setting}=minilm")
    assert not (tmp_path / "shared").exists()


@pytest.mark.slow
def test_the_vectors_are_made_once_and_trained_with(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    from mathamr.text.training.tiny import make_tiny

    make_tiny(["Is every finite group a ring?"], tmp_path / "encoder", vocabulary=300)
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "workers=1", "train.device=cpu"]
    config = trial(*SMALL, *places, f"model.label_vectors={tmp_path}/encoder", "experiment.seeds=[1,2]")
    made: list[str] = []
    write = label_vectors.write
    monkeypatch.setattr(label_vectors, "write", lambda *given: made.append(write(*given)) or made[-1])
    assert run(config, "the command").failed == 0
    (vectors,) = (tmp_path / "shared").glob("*/label_vectors-*.safetensors")
    wanted = vectors.stem.removeprefix("label_vectors-")
    assert made == [wanted]
    trained = list((tmp_path / "shared").glob("*/models/*/best"))
    assert len(trained) == 2
    for path in trained:
        assert checkpoint.load(path).info.encoder["label_vectors"] == wanted
        assert (path.parent / "source").read_text().endswith(wanted)
    results = [json.loads(path.read_text()) for path in tmp_path.glob("trial-*/jobs/*/result.json")]
    assert [result["parameters_label_vectors"] for result in results] == [64 * 16] * 2
