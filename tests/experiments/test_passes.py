"""How often an experiment reads the posts of its collection before a model is trained and searched."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.run import run
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.pair_sets.pair_posts import Problems
from graphs.corpus.post import Post
from graphs.errors import Failure
from tests.experiments.test_made_elsewhere import composed

pytestmark = pytest.mark.usefixtures("without_plots")

FEW = ("data.regime=judged", "train.max_pairs=12", "train.batch_size=4")
GRAPH: dict[str, Any] = {"graph": {}}
WORDS: dict[str, Any] = {"words": {"track": "bm25"}}


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each pass over the posts."""
    found: list[None] = []
    real = JsonLines.posts

    def posts(self: JsonLines) -> Iterator[Post | Failure]:
        found.append(None)
        return real(self)

    monkeypatch.setattr(JsonLines, "posts", posts)
    return found


@pytest.mark.parametrize(
    ("settings", "conditions", "most"),
    [
        (("data.regime=full",), GRAPH, 1),
        (("data.regime=mini", "train.positives=answers"), GRAPH, 1),
        (FEW, GRAPH, 2),
        ((*FEW, "data.posts=all"), GRAPH, 1),
        (("data.regime=full",), WORDS, 1),
        (("data.regime=judged",), WORDS, 2),
        (("data.regime=mini", "track=text", "text=tiny"), {"text": {}}, 1),
        (("data.regime=full",), GRAPH | WORDS, 1),
    ],
    ids=["full", "mini", "judged", "judged-all", "words", "words-judged", "text", "together"],
)
def test_passes_over_the_posts(
    settings: tuple[str, ...],
    conditions: dict[str, Any],
    most: int,
    collection: Path,
    tmp_path: Path,
    passes: list[None],
) -> None:
    qrels = (collection / "qrels.tsv").read_text().splitlines()
    few = [line for line in qrels if line.split()[2] in {f"a{i}" for i in range(6)}]
    (collection / "qrels.tsv").write_text("\n".join(few) + "\n")
    assert run(composed(collection, tmp_path / "out", *settings, conditions=conditions), "command").failed == 0
    assert len(passes) <= most


def test_a_later_run_reads_the_files(collection: Path, tmp_path: Path, passes: list[None]) -> None:
    for k in (20, 10):
        outputs, settings = tmp_path / "out", ("data.regime=full", f"retrieval.k={k}")
        assert run(composed(collection, outputs, *settings, conditions=WORDS), "command").failed == 0
        assert len(passes) == 1


def test_a_source_is_read_twice(collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for its pairs, which may be the first ones alone, and once for the posts in them."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    lines = [{"problem": f"Is ${i}$ odd?", "solution": f"See ${i}/2$."} for i in range(20)]
    (theirs / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found: list[None] = []
    real = Problems.posts
    monkeypatch.setattr(Problems, "posts", lambda self: found.append(None) or real(self))
    settings = [f"+data.sources={{math:{{name:problems,root:{theirs}}}}}", "data.sources.math.most_pairs=9"]
    settings += ["train.pairs=[jsonl,math]", "data.regime=full"]
    config = composed(collection, tmp_path / "out", *settings, conditions=GRAPH)
    assert run(config, "command").failed == 0
    assert len(found) == 2
