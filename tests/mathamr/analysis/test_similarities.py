"""Every similarity once, in blocks: the same as all at once, and clear words for what has no similarity."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs.errors import AnalysisError
from mathamr.analysis import similarities
from mathamr.analysis.similarities import cosine, maxsim, of_kind, survey, unit_vectors
from mathamr.maxsim import VectorSets


def sample(queries: int = 30, documents: int = 80, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(queries, d)), generator.normal(size=(documents, d)) * 7


def naive(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    return np.array([[q @ d / np.linalg.norm(q) / np.linalg.norm(d) for d in documents] for q in queries])


def test_a_survey_in_blocks_equals_the_naive_one(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, documents = sample()
    correct = [[i, (3 * i) % 80] for i in range(30)]
    whole = naive(queries, documents)
    monkeypatch.setattr(similarities, "BLOCK", 7 * 80)
    found = survey(cosine(queries, documents), correct, k=9)
    randoms = set()
    for i, line in enumerate(whole):
        order = np.argsort(-line)
        np.testing.assert_array_equal(found.results[i], order[:9])
        np.testing.assert_allclose(found.top[i], line[order[:9]], atol=1e-6)
        best = max(line[correct[i]])
        assert found.correct[i] == pytest.approx(best, abs=1e-6)
        assert found.rank[i] == 1 + int((line > best + 1e-9).sum())
        assert list(found.hits[i]) == [document in correct[i] for document in order[:9]]
        drawn = np.flatnonzero(np.abs(line - found.random[i]) < 1e-6)
        assert len(drawn) == 1
        randoms.add(int(drawn[0]))
    assert len(randoms) > 20  # of 30 topics
    assert survey(cosine(queries[:1], documents), [[4, 4]], k=3).num_correct.tolist() == [1]


def test_nothing_changes_when_the_space_is_rotated_or_vectors_are_scaled() -> None:
    queries, documents = sample()
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    correct = [[i] for i in range(30)]
    plain, moved = (
        survey(cosine(q, d), correct, k=4)
        for q, d in ((queries, documents), (queries @ rotation * 3, documents @ rotation))
    )
    np.testing.assert_array_equal(plain.results, moved.results)
    np.testing.assert_allclose(plain.top, moved.top, atol=1e-6)
    np.testing.assert_array_equal(plain.rank, moved.rank)


def test_the_order_of_queries_is_theirs() -> None:
    queries, documents = sample()
    order = np.random.default_rng(2).permutation(30)
    plain = survey(cosine(queries, documents), [[i] for i in range(30)], k=3)
    turned = survey(cosine(queries[order], documents), [[i] for i in order], k=3)
    np.testing.assert_array_equal(plain.rank[order], turned.rank)
    np.testing.assert_array_equal(plain.results[order], turned.results)


def test_maxsim_of_single_vectors_is_cosine_and_of_sets_the_mean_of_the_best() -> None:
    queries, documents = sample()
    single = maxsim(*(VectorSets.of([torch.from_numpy(row[None]) for row in rows]) for rows in (queries, documents)))
    np.testing.assert_allclose(single.rows(0, 30), naive(queries, documents), atol=1e-6)
    sets = maxsim(
        *(VectorSets.of(list(torch.from_numpy(rows).split(5))) for rows in (queries, documents))
    )  # sets of five vectors
    whole = naive(queries, documents)
    np.testing.assert_allclose(sets.rows(1, 2)[0, 3], whole[5:10, 15:20].max(axis=1).mean(), atol=1e-6)


def test_a_wrong_document_of_equal_similarity_stands_before_the_right_one() -> None:
    same = np.ones((4, 3))
    found = survey(cosine(np.ones((1, 3)), same), [[2]], k=4)
    assert found.rank[0] == 4


class _Given:
    """One query with given similarities."""

    num_queries = 1

    def __init__(self, row: list[np.float32]) -> None:
        self.num_documents, self._row = len(row), np.array([row], np.float32)

    def rows(self, start: int, stop: int) -> np.ndarray:
        return self._row[start:stop]


def test_a_right_document_one_float_above_a_wrong_one_ranks_first_and_is_a_hit() -> None:
    less = np.nextafter(np.float32(0.9), np.float32(0))
    for k in (1, 3):
        found = survey(_Given([less, np.float32(0.9), np.float32(0.1)]), [[1]], k)
        assert found.rank[0] == 1
        assert list(found.results[0]) == [1, 0, 2][:k]
        assert list(found.hits[0]) == [True, False, False][:k]
    found = survey(_Given([np.float32(0.9)] * 3), [[1]], 2)
    assert found.rank[0] == 3
    assert not found.hits.any()


def test_k_beyond_the_collection_takes_all_of_it() -> None:
    queries, documents = sample(2, 3)
    assert survey(cosine(queries, documents), [[0], [1]], k=10).top.shape == (2, 3)


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        (np.array([[1.0, 0.0], [0.0, 0.0]]), "row 1 of the vectors is zero"),
        (np.array([[1.0, np.nan]]), "row 0 of the vectors has a NaN"),
        (np.ones(3), r"of shape \(n, d\)"),
        (np.ones((0, 3)), r"not \(0, 3\)"),
    ],
)
def test_vectors_without_a_direction_are_refused(vectors: np.ndarray, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        unit_vectors(vectors)


@pytest.mark.parametrize(
    ("correct", "k", "words"),
    [
        ([[0], []], 1, "query 1 has no right document"),
        ([[0], [9]], 1, r"\[9\] is not among the 3 documents"),
        ([[0]], 1, "1 lists of right documents for 2 queries"),
        ([[0], [1]], 0, "k=0 must be at least 1"),
    ],
)
def test_a_survey_says_what_is_wrong_with_its_question(correct: list[list[int]], k: int, words: str) -> None:
    queries, documents = sample(2, 3)
    with pytest.raises(AnalysisError, match=words):
        survey(cosine(queries, documents), correct, k)


def test_dimensions_of_two_models_are_refused() -> None:
    with pytest.raises(AnalysisError, match="2 dimensions and documents 3"):
        cosine(np.ones((1, 2)), np.ones((1, 3)))


def test_a_model_to_which_all_documents_are_alike_finds_nothing() -> None:
    found = survey(cosine(np.ones((1, 3)), np.ones((4, 3))), [[0, 2]], k=2)
    assert not found.hits.any()
    assert set(found.results[0]) == {1, 3}
    np.testing.assert_allclose(found.top, 1.0, atol=1e-6)


def test_large_and_half_precision_vectors_have_their_directions() -> None:
    rows = np.array([[3.0, 4.0], [-1.0, 2.0]])
    for other in ((rows * 1e30).astype(np.float32), rows.astype(np.float16), rows.astype(int)):
        np.testing.assert_allclose(unit_vectors(other), unit_vectors(rows), atol=1e-6)


def test_vectors_of_one_kind_are_compared_alone() -> None:
    queries, documents = (VectorSets.of(list(torch.from_numpy(rows).split(5))) for rows in sample())
    kinds = np.tile([0, 0, 1, 1, 2], 6)
    kinds[:5] = [1, 1, 1, 1, 2]  # the first query has no formula
    some, which = of_kind(queries, kinds, 0)
    assert list(which) == [1, 2, 3, 4, 5]
    assert some.sizes.tolist() == [2] * 5
    others, everywhere = of_kind(documents, np.tile([0, 0, 1, 1, 2], 16), 0)
    assert len(everywhere) == 16
    whole = naive(*sample())
    line = maxsim(some, others).rows(0, 1)[0]
    np.testing.assert_allclose(line[3], whole[5:7, 15:17].max(axis=1).mean(), atol=1e-6)
    with pytest.raises(AnalysisError, match="no vector is of kind 7"):
        of_kind(queries, kinds, 7)
    with pytest.raises(AnalysisError, match="4 kinds for 30 vectors"):
        of_kind(queries, kinds[:4], 0)
