"""A text encoder that a graph model follows, in an experiment: keys, its vectors, and what they are of."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.plan import plan
from experiments.run import run
from graphs.corpus.corpus import open_corpus
from graphs.corpus.files import Fingerprints
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.learning.teacher import teacher
from mathamr.stages.vectors import EncodedPosts
from mathamr.text.encoder import TextEncoder, identity, open_encoder
from mathamr.text.training.tiny import make_tiny
from mathamr.training import checkpoint
from tests.experiments.tiny_settings import SMALL, trial

pytestmark = pytest.mark.usefixtures("without_plots")


def keys(*settings: str) -> tuple[str, str]:
    (job,) = plan(trial(*settings), Fingerprints("fingerprint"))
    return job.model_key, job.key


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The folder of an encoder with random weights."""
    pytest.importorskip("sentence_transformers")
    make_tiny(["Is every finite group a ring?"], tmp_path / "encoder", vocabulary=300)
    return tmp_path / "encoder"


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that encoders have made vectors of."""
    texts: list[str] = []
    encode = TextEncoder.encode

    def noted(encoder: TextEncoder, some: list[str], *rest: Any, **named: Any) -> Any:
        texts.extend(some)
        return encode(encoder, some, *rest, **named)

    monkeypatch.setattr(TextEncoder, "encode", noted)
    return texts


@pytest.mark.parametrize("setting", ["train.teacher={}", "track=text text.encoder={}"])
def test_a_model_is_that_of_the_weights_in_a_folder_wherever_it_lies(tmp_path: Path, setting: str) -> None:
    def of(folder: Path) -> tuple[str, str]:
        return keys(*setting.format(folder).split())

    (tmp_path / "a").mkdir()
    weights = tmp_path / "a" / "one" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"1")
    first = of(weights.parent)
    (tmp_path / "a").rename(tmp_path / "b")
    moved = tmp_path / "b" / "one"
    assert of(moved) == first
    (moved / "model.safetensors").write_bytes(b"23")
    for now, before in zip(of(moved), first, strict=True):
        assert now != before


def problems(root: Path, animal: str) -> Path:
    """Two problems with their solutions."""
    root.mkdir(parents=True)
    lines = [{"problem": f"How many {animal} solve ${i}$?", "solution": f"Exactly ${i}$."} for i in range(2)]
    (root / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


def test_vectors_are_of_the_posts_of_each_collection(collection: Path, tiny: Path, encoded: list[str]) -> None:
    shared, console = tiny.parent / "shared", Console()

    def parsed(name: str, root: Path, folder: str) -> ParsedCollection:
        return ParsedCollection(open_corpus(name, root), shared / folder, console)

    own = parsed("jsonl", collection, "own")
    cats = parsed("problems", problems(tiny.parent / "cats", "cats"), "cats")
    dogs = parsed("problems", problems(tiny.parent / "dogs", "dogs"), "dogs")
    questions, documents = ["q0", "math/train-1"], ["a0", "math/train-1/solution"]
    found = teacher(str(tiny), questions, documents, {"": own, "math": cats}, "cpu", console)
    wanted = ["math/train-1", "a0", "math/train-1/solution", "q0"]
    texts = ["How many cats solve $0$?", "The ring is finite if $x^2+1$ holds. See $n=0$.", "Exactly $0$."]
    vectors = found.vectors_of(wanted)
    assert vectors.sizes.tolist() == [1] * 4
    by_hand = open_encoder(str(tiny), device="cpu").encode(texts, "document")
    np.testing.assert_allclose(vectors.vectors[:3].numpy(), by_hand, atol=1e-5)
    assert found.identity == identity(str(tiny))
    encoded.clear()

    again = teacher(str(tiny), questions, documents, {"math": cats, "": own}, "cpu", console)
    assert not encoded
    assert again.vectors_of(wanted).vectors.equal(vectors.vectors)

    # Another content under the same name and ids: vectors of what it says now, those of the collection are there.
    other = teacher(str(tiny), questions, documents, {"": own, "math": dogs}, "cpu", console)
    assert sorted(encoded) == ["Exactly $0$.", "How many dogs solve $0$?"]
    scores = other.scores(["math/train-1"], ["math/train-1/solution", "a0"])
    assert scores.shape == (1, 2)
    assert not other.vectors_of(wanted).vectors[0].equal(vectors.vectors[0])
    assert other.vectors_of(wanted).vectors[1].equal(vectors.vectors[1])


@pytest.mark.slow
def test_an_experiment_makes_the_vectors_once_also_of_a_source(
    collection: Path, tiny: Path, encoded: list[str]
) -> None:
    out, math = tiny.parent / "out", tiny.parent / "math"
    math.mkdir()
    lines = [{"problem": f"How many cats solve ${i}$?", "solution": f"Exactly ${i}$."} for i in range(9)]
    (math / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    places = ["data=jsonl", f"data.root={collection}", f"outputs={out}", "workers=1", "train.device=cpu"]
    sources = f"+data.sources={{math:{{name:problems,root:{math}}},own:{{name:titles,root:{collection}}}}}"
    followed = [*SMALL, *places, f"train.teacher={tiny}", sources]
    negatives = ["train.negatives=1", "train.negative_source=model"]
    assert run(trial(*followed, *negatives, "train.pairs=[jsonl,math,own]"), "the command").failed == 0
    assert len(encoded) == 80 + 18 + 80  # each question and its answer, each problem, each title and its body
    (best,) = (out / "shared").glob("jsonl-*/models/*/best")
    assert checkpoint.load(best).info.train["teacher"] == str(tiny)
    log = [json.loads(line) for line in (best.parent / "log.jsonl").read_text().splitlines()]
    losses = [record["distill_loss"] for record in log if record["kind"] == "step"]
    assert losses
    assert all(loss > 0 for loss in losses)
    known = identity(str(tiny))
    (place,) = (out / "shared").glob(f"problems-*/teachers/{known}")
    assert list(EncodedPosts(place, known).missing(["train-1", "train-9/solution", "q0"])) == ["q0"]
    encoded.clear()

    # Other weights of the loss, and the sources in another order: another model, and no new vectors.
    assert run(trial(*followed, "train.pairs=[own,math,jsonl]", "train.distill_weight=2"), "the same").failed == 0
    assert len(list((out / "shared").glob("jsonl-*/models/*/best"))) == 2
    assert not encoded
