"""Weights of virtual nodes: each way against a plain reference, and what it is for."""

import numpy as np
import pytest
import torch

from graphs.errors import AnalysisError
from mathamr.analysis.weighting import AS_IT_IS, weighted, weighted_reference
from mathamr.maxsim import VectorSets, scores


def sets(count: int, seed: int) -> VectorSets:
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(2, 6, (count,), generator=generator).tolist()
    return VectorSets.of([torch.nn.functional.normalize(torch.randn(n, 4, generator=generator), dim=1) for n in sizes])


def kinds_of(queries: VectorSets) -> np.ndarray:
    """The last vector of a set is its document's; the first two a formula's."""
    kinds = np.ones(len(queries.vectors), dtype=np.int64)
    ptr = queries.ptr.numpy()
    kinds[ptr[:-1]] = 0
    kinds[ptr[1:] - 1] = 2
    return kinds


def test_as_it_is_is_maxsim() -> None:
    queries, documents = sets(3, 1), sets(7, 2)
    found = weighted(queries, kinds_of(queries), documents)
    assert found[AS_IT_IS] == pytest.approx(scores(queries, documents, normalize=True).numpy(), abs=1e-6)


@pytest.mark.parametrize("way", ["formulas alone", "document alone", "kinds alike", "1 - mean"])
def test_weights_are_those_of_a_reference(way: str) -> None:
    queries, documents = sets(3, 3), sets(6, 4)
    kinds = kinds_of(queries)
    alone = {"formulas alone": 0, "document alone": 2}
    if way in alone:
        weights = (kinds == alone[way]).astype(float)
    elif way == "kinds alike":
        spans = zip(queries.ptr[:-1].tolist(), queries.ptr[1:].tolist(), strict=True)
        weights = np.concatenate([1 / np.bincount(kinds[a:b])[kinds[a:b]] for a, b in spans])
    else:
        each = VectorSets.of(list(queries.vectors[:, None]))
        weights = 1 - scores(each, documents).numpy().mean(1)
    found = weighted(queries, kinds, documents)[way]
    assert found == pytest.approx(weighted_reference(queries, documents, weights), abs=1e-6)


def test_other_ways_are_their_definitions() -> None:
    queries, documents = sets(3, 5), sets(6, 6)
    found = weighted(queries, kinds_of(queries), documents)
    for i, query in enumerate(queries):
        similar = [(query @ document.T).numpy() for document in documents]  # (vectors of both) each
        best = np.stack([one.max(axis=1) for one in similar], axis=1)  # (vectors, documents)
        plain = best.mean(axis=0)
        assert found["cubed"][i] == pytest.approx((best**3).mean(axis=0), abs=1e-6)
        assert found["both ways"][i] == pytest.approx(plain + [one.max(axis=0).mean() for one in similar], abs=1e-6)
        for rate in (0.02, 0.05):
            lengths = np.array([len(document) for document in documents])
            assert found[f"size, {rate}"][i] == pytest.approx(plain - rate * np.log(lengths), abs=1e-6)
        for least in (0.5, 0.7, 0.9):
            weights = np.log(7 / ((best > least).sum(axis=1) + 1))
            assert found[f"idf, {least}"][i] == pytest.approx(weights @ best / weights.sum(), abs=1e-6)
    plain = found[AS_IT_IS]
    assert found["centred"] == pytest.approx(plain - plain.mean(axis=0) / 2, abs=1e-6)


def test_what_every_document_has_counts_for_nothing() -> None:
    common, rare = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    other = torch.tensor([[0.0, 0.0, 1.0]])
    queries = VectorSets.of([torch.cat([common, rare])])
    documents = VectorSets.of([torch.cat([common, rare]), *[torch.cat([common, other])] * 3])
    found = weighted(queries, np.array([0, 1]), documents)
    assert found["idf, 0.7"].tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_a_kind_that_a_query_lacks_scores_nothing() -> None:
    queries = VectorSets.of([torch.eye(2)])
    assert weighted(queries, np.array([0, 2]), sets_of_two())["sentences alone"].tolist() == [[0.0]]


def sets_of_two() -> VectorSets:
    return VectorSets.of([torch.eye(2)])


def test_kinds_and_vectors_belong_together() -> None:
    with pytest.raises(AnalysisError, match="1 kinds for 2 vectors of 1 queries, 1 documents"):
        weighted(sets_of_two(), np.array([0]), sets_of_two())
