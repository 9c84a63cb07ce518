"""A learned sparse encoder behind the runner: scores against dense arithmetic, threads, and what is refused."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, save_npz

from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, StoreError
from mathamr.evaluation.runs import read_run
from mathamr.ranking.text_models import open_sparse_encoder
from mathamr.systems.searchable.kept import KeptSearch
from mathamr.systems.sparse import SparseIndex, SparseSystem
from mathamr.text.encoder import identity
from tests.experiments.conftest import write_splade
from tests.experiments.test_threads import run
from tests.experiments.test_tracks import configured, planned

pytestmark = pytest.mark.usefixtures("without_plots")

INDEX = SparseIndex(np.array(["7", "8"]), csc_array(np.array([[0, 2, 1], [0, 0, 3]], np.float32)))


@pytest.fixture
def splade(tmp_path: Path) -> Path:
    """A SPLADE with random weights."""
    return write_splade(tmp_path)


def sparse(encoder: Path, **settings: Any) -> dict[str, Any]:
    """A condition."""
    return {"track": "sparse", "sparse": {"encoder": str(encoder), **settings}}


def test_scores_are_dot_products_of_words(collection: Path, tmp_path: Path, splade: Path) -> None:
    jobs = run({"words": sparse(splade)}, collection, tmp_path / "out")
    found = read_run(jobs / "words-seed1" / "run.tsv", task=1).rankings
    encode = open_sparse_encoder(str(splade), max_length=256, device="cpu")
    corpus = open_corpus("jsonl", collection)
    posts = [post for post in corpus.posts() if isinstance(post, Post) and post.kind == "answer" and post.body]
    answers = encode([as_text(extract(post)) for post in posts], "document").toarray()
    place = {post.post_id: number for number, post in enumerate(posts)}
    for topic in corpus.topics(1):
        (query,) = encode([as_text(extract(topic.post))], "query").toarray()
        scores = answers @ query
        hits = found[topic.topic_id]
        np.testing.assert_allclose([hit.score for hit in hits], [scores[place[hit.doc_id]] for hit in hits], rtol=1e-5)
        assert len(hits) == np.count_nonzero(scores)
        assert hits[0].score == pytest.approx(scores.max(), rel=1e-5)


def test_questions_are_read_in_the_place_of_their_answers(collection: Path, tmp_path: Path, splade: Path) -> None:
    conditions = {"answer": sparse(splade), "question": {**sparse(splade), "thread": {"read": "question"}}}
    jobs = run(conditions, collection, tmp_path / "out")
    first, second = (read_run(jobs / f"{name}-seed1" / "run.tsv", task=1).rankings for name in conditions)
    assert all(hit.doc_id.startswith("a") for hits in second.values() for hit in hits)
    assert first != second


def test_few_words_are_kept_of_each_text(splade: Path) -> None:
    texts = ["every finite field", "is the ring of integers a field"]
    whole = open_sparse_encoder(str(splade), max_length=64, device="cpu")(texts, "document")
    few = open_sparse_encoder(str(splade), max_length=64, device="cpu", most_words=3)(texts, "document")
    for row, kept in zip(whole.toarray(), few.toarray(), strict=True):
        assert np.count_nonzero(kept) == 3
        np.testing.assert_allclose(np.sort(kept[kept > 0]), np.sort(row)[-3:])


def test_rankings_depend_on_the_weights_and_not_on_the_batch(splade: Path) -> None:
    def key(**settings: Any) -> Any:
        return planned({"words": sparse(splade, **settings)})["words-seed1"].settings.result_key_parts()

    before = key()
    assert key(batch_size=3) == before != key(most_words=5)
    weights = splade / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert key() != before


def test_a_kept_encoder_with_other_weights_is_refused(splade: Path, tmp_path: Path) -> None:
    INDEX.write(tmp_path)
    encoder = str(splade)
    record = {"encoder": encoder, "identity": identity(encoder), "max_length": 64, "most_words": None, "results": 10}

    def reopened(folder: Path) -> object:
        return SparseSystem.open_kept(KeptSearch(folder, record, {}))

    with pytest.raises(StoreError, match="cannot be read as weights of words"):
        reopened(tmp_path / "elsewhere")
    (splade / "vocab.txt").write_text("another")
    with pytest.raises(StoreError, match="and the posts were read by splade-"):
        reopened(tmp_path)
    shutil.rmtree(splade)
    with pytest.raises(StoreError, match="give that encoder back its place"):
        reopened(tmp_path)


def test_weights_that_are_kept_rank_as_before(tmp_path: Path) -> None:
    INDEX.write(tmp_path)
    for words, ranking in (([0, 1, 1], [("8", 3.0), ("7", 3.0)]), ([1, 0, 0], []), ([0, 0, 0], [])):
        query = csr_array(np.array([words], np.float32))
        assert SparseIndex.open(tmp_path).search(query, 10) == INDEX.search(query, 10) == ranking


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    place, weights = tmp_path / "weights.npz", csc_array(np.eye(2, 3, dtype=np.float32))
    INDEX.write(tmp_path)
    save_npz(place, weights, compressed=True)  # a file of a few bytes can become any number
    with pytest.raises(StoreError, match="its parts are compressed"):
        SparseIndex.open(tmp_path)
    weights.indices[1] = 1_000_000  # beyond the posts: the product would write there
    save_npz(place, weights, compressed=False)
    with pytest.raises(StoreError, match="cannot be read as weights of words"):
        SparseIndex.open(tmp_path)
    save_npz(place, csc_array(np.eye(3, dtype=np.float32)), compressed=False)
    with pytest.raises(StoreError, match="not as many ids as posts"):
        SparseIndex.open(tmp_path)
    place.write_bytes(b"PK no archive")
    with pytest.raises(StoreError, match="cannot be read as weights of words"):
        SparseIndex.open(tmp_path)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"track": "sparse"}, "needs sparse.encoder"),
        (sparse(Path("/missing")), "sparse.encoder=/missing cannot be opened"),
        ({"track": "sparse", "retrieval": {"k": 0}}, "retrieval.k=0 must be from 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    condition: dict[str, Any], message: str, collection: Path, tmp_path: Path
) -> None:
    from experiments import run as runner

    places = [f"data.root={collection}", f"outputs={tmp_path / 'out'}"]
    with pytest.raises(ConfigError, match=message):
        runner.run(configured({"words": condition}, *places, seeds=(1,)), "the command")
