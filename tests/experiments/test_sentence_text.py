"""A hybrid, as a configuration names it: keys, refusals, and a run on a made-up collection."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.plan import plan
from experiments.run import run
from graphs.corpus.files import Fingerprints
from mathamr.text import sentence_vectors
from mathamr.text.sentence_vectors import SentenceVectors
from mathamr.training import checkpoint
from tests.experiments.tiny_settings import SMALL, refusal, trial

pytestmark = pytest.mark.usefixtures("without_plots")


def model_key(*settings: str) -> str:
    return plan(trial(*settings), Fingerprints("fingerprint"))[0].model_key


def test_a_model_is_that_of_its_encoder_and_of_the_weights(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    weights = tmp_path / "one" / "model.safetensors"
    weights.write_bytes(b"1")
    setting = f"model.sentence_vectors={tmp_path}/one"
    first = model_key(setting)
    assert first == model_key(setting)
    assert first not in (model_key(), model_key(f"model.label_vectors={tmp_path}/one"))
    weights.write_bytes(b"23")
    assert model_key(setting) != first


@pytest.mark.parametrize("structure", ["global", "none"])
def test_graphs_without_nodes_of_sentences_are_refused_before_anything_runs(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, structure: str
) -> None:
    monkeypatch.setattr("mathamr.stages.text_vectors.open_encoder", lambda name, device: None)
    message = f"graphs of structure '{structure}' have no virtual nodes of sentences for "
    settings = ["model.sentence_vectors=minilm", f"graph.structure={structure}"]
    assert message in refusal(collection, tmp_path, *settings)
    assert not (tmp_path / "shared").exists()


@pytest.mark.slow
def test_the_vectors_are_made_once_of_posts_topics_and_sources(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    from mathamr.text.encoder import identity, open_encoder
    from mathamr.text.training.tiny import make_tiny

    make_tiny(["Is every finite group a ring?"], tmp_path / "encoder", vocabulary=300)
    name = str(tmp_path / "encoder")
    source = tmp_path / "problems"
    source.mkdir()
    lines = [{"problem": f"How many rings solve ${i}$?", "solution": f"Exactly ${i}$. So $x$."} for i in range(16)]
    (source / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "workers=1", "train.device=cpu"]
    learnt = ["train.pairs=[jsonl,math]", f"+data.sources={{math: {{name: problems, root: {source}}}}}"]
    config = trial(*SMALL, *places, *learnt, f"model.sentence_vectors={name}", "experiment.seeds=[1,2]")
    added: list[str] = []
    add = sentence_vectors.add

    def noted(path: Path, posts: Any, *rest: Any, **named: Any) -> None:
        posts = list(posts)
        added.extend(post_id for post_id, _ in posts)
        add(path, posts, *rest, **named)

    monkeypatch.setattr(sentence_vectors, "add", noted)
    assert run(config, "the command").failed == 0
    assert len(added) == len(set(added)) == 80 + 10 + 32

    known = identity(name)
    files = {path.parents[1].name.split("-")[0]: path for path in (tmp_path / "shared").glob("*/sentence_vectors/*.db")}
    assert {path.name for path in files.values()} == {f"{known}.db"}
    vectors = SentenceVectors({"": files["jsonl"], "math": files["problems"]}, encoder=known)
    encoder = open_encoder(name, device="cpu")
    read = vectors.of(["math/train-1", "a10", "query:T.0"], [1, 2, 2]).numpy()
    problem = encoder.encode(["How many rings solve $0$?"], "document")
    np.testing.assert_allclose(read[:1], problem, atol=2e-3)
    ring = encoder.encode(["The ring is finite if $x^2+1$ holds.", "See $n=10$."], "document")
    np.testing.assert_allclose(read[1:3], ring, atol=2e-3)

    # The text of a topic may change while its graph does not; its sentences are encoded again, and so is it.
    topics = collection / "topics.jsonl"
    topics.write_text(topics.read_text().replace("Finite", "Is it a ring? Finite", 1))
    added.clear()
    assert run(config, "the command").failed == 0
    assert added == ["query:T.0"]

    trained = list((tmp_path / "shared").glob("*/models/*/best"))
    assert len(trained) == 2
    assert all(checkpoint.load(path).info.encoder["sentence_vectors"] == known for path in trained)
    results = [json.loads(path.read_text()) for path in tmp_path.glob("trial-*/jobs/*/result.json")]
    assert [result["parameters_sentence_vectors"] for result in results] == [64 * 16] * 2
