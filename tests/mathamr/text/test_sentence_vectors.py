"""Vectors of sentences: made once, whole after a kill, read with the graphs of any configuration, refused otherwise."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.errors import ConfigError, StoreError
from graphs.graph import mathamr_plus
from graphs.graph.virtual_nodes import VirtualKind, VirtualNodeSpec
from graphs.graph.vocabulary import Row, Vocabulary, count
from graphs.stores import store
from graphs.stores.store import GraphStore
from mathamr.text import sentence_vectors
from mathamr.text.sentence_vectors import SentenceVectors, add, missing

TEXTS = {
    "1": ["Solve it."],
    "2": ["Let it be a ring.", "Is it so?"],
    "3": ["Thus", "it is.", "Yes!"],
    "math/4": ["Add them."],
}
ROWS: list[Row] = [
    ("1", "(s / solve-01 :ARG1 (F0 / FORMULA_0 :slt (F0s0 / V!x)))", '{"FORMULA_0": "17"}'),
    ("2", "(m / multi-sentence :snt1 (l / let-01) :snt2 (s / so))", "{}"),
    ("3", "(m / multi-sentence :snt1 (b / be-01) :snt2 (y / yes))", "{}"),  # the parser has lost a sentence
    ("math/4", "(a / add-02 :ARG1 (t / they))", "{}"),
]


def letters(texts: list[str]) -> Any:
    """A text encoder of a kind."""
    return [[len(text), text.count("s"), text.count("t")] for text in texts]


def write(path: Path, posts: dict[str, list[str]], encoder: str = "letters") -> Path:
    add(path, posts.items(), letters, encoder=encoder, dimension=3)
    return path


@pytest.fixture
def vectors(tmp_path: Path) -> SentenceVectors:
    own = write(tmp_path / "own.db", {post_id: TEXTS[post_id] for post_id in "123"})
    return SentenceVectors({"": own, "math": write(tmp_path / "math.db", {"4": TEXTS["math/4"]})}, encoder="letters")


def graphs(path: Path, spec: VirtualNodeSpec | None = None, **options: Any) -> GraphStore:
    vocabulary = Vocabulary.build(count(ROWS, mathamr_plus.decode), size=40)
    store.build(path, ROWS, mathamr_plus.decode, spec or VirtualNodeSpec(), vocabulary)
    return GraphStore(path, **options)


def test_a_batch_has_the_vectors_of_its_sentence_nodes_in_their_order(tmp_path: Path, vectors: SentenceVectors) -> None:
    read = graphs(tmp_path / "graphs.db", sentence_vectors=vectors)
    order = ["math/4", "3", "1", "2", "1"]
    batch = read.load(order)
    assert batch.sentence_vectors is not None
    assert (batch.virtual_kind == VirtualKind.SENTENCE).sum() == 7
    lost = np.mean(letters(TEXTS["3"]), axis=0).tolist()
    wanted = [*letters(TEXTS["math/4"]), lost, lost, *letters(TEXTS["1"]), *letters(TEXTS["2"]), *letters(TEXTS["1"])]
    torch.testing.assert_close(batch.sentence_vectors, torch.tensor(wanted, dtype=torch.float32))
    assert batch.to("meta").sentence_vectors.device.type == "meta"  # type: ignore[union-attr]
    assert read.load([]).sentence_vectors.shape == (0, 3)  # type: ignore[union-attr]
    assert GraphStore(read.path).load(order).sentence_vectors is None


def test_threads_and_other_processes_read_the_same(tmp_path: Path, vectors: SentenceVectors) -> None:
    read = graphs(tmp_path / "graphs.db", sentence_vectors=vectors)
    here = read.load(list(TEXTS)).sentence_vectors
    assert here is not None

    def elsewhere() -> torch.Tensor | None:
        try:
            return read.load(list(TEXTS)).sentence_vectors
        finally:
            read.close()

    with ThreadPoolExecutor(2) as threads:
        results = [future.result() for future in [threads.submit(elsewhere) for _ in range(4)]]
    assert [found is not None and here.equal(found) for found in results] == [True] * 4
    unpickled: GraphStore = pickle.loads(pickle.dumps(read))  # noqa: S301 - our own bytes, as spawned workers get them
    read.close()
    for found in (unpickled.load(list(TEXTS)).sentence_vectors, elsewhere()):
        assert found is not None
        assert here.equal(found)


def test_posts_and_files_that_do_not_fit_are_refused(tmp_path: Path, vectors: SentenceVectors) -> None:
    with pytest.raises(
        StoreError, match=r"no vectors of the sentences of post math/5, of letters; .*run the experiment again"
    ):
        vectors.of(["1", "math/5"], [1, 1])
    path = tmp_path / "own.db"
    with pytest.raises(StoreError, match=r"own\.db: the file has vectors of letters, not of words"):
        SentenceVectors({"": path}, encoder="words")
    with pytest.raises(StoreError, match=r"the file has vectors of letters, not of words"):
        write(path, {}, encoder="words")
    with pytest.raises(StoreError, match="no such file; build vectors of sentences first"):
        SentenceVectors({"": tmp_path / "none.db"}, encoder="letters")
    for structure in ("global", "none"):
        with pytest.raises(ConfigError, match=f"structure '{structure}' have no virtual nodes of sentences"):
            graphs(tmp_path / f"{structure}.db", VirtualNodeSpec(structure), sentence_vectors=vectors)


@pytest.mark.parametrize("wrong", [[[1.0, 2.0]], [[1.0, 2.0, float("nan")]], []], ids=["short", "not finite", "none"])
def test_an_encoder_that_gives_something_else_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"letters gave an array of shape .* for 1 sentences"):
        add(tmp_path / "own.db", [("1", ["Why?"])], lambda texts: wrong, encoder="letters", dimension=3)
    assert missing(tmp_path / "own.db", ["1"]) == ["1"]


def test_a_killed_writer_leaves_whole_posts_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_vectors, "_POSTS_AT_ONCE", 2)
    posts = {str(i): [f"Sentence {k} of {i}." for k in range(i % 4)] for i in range(9)}
    path = tmp_path / "own.db"

    def dying(texts: list[str]) -> Any:
        if any("of 5" in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        return letters(texts)

    child = multiprocessing.get_context("fork").Process(
        target=add, args=(path, posts.items(), dying), kwargs={"encoder": "letters", "dimension": 3}
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    left = missing(path, posts)
    assert left == ["4", "5", "6", "7", "8"]

    told: list[int] = []
    add(path, ((post_id, posts[post_id]) for post_id in left), letters, encoder="letters", dimension=3,
        progress=told.append)  # fmt: skip
    assert (told, missing(path, posts)) == ([2, 2, 1], [])
    counts = [len(texts) for texts in posts.values()]
    whole = SentenceVectors({"": write(tmp_path / "whole.db", posts)}, encoder="letters")
    resumed = SentenceVectors({"": path}, encoder="letters")
    assert resumed.of(list(posts), counts).equal(whole.of(list(posts), counts))
