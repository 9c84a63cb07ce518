"""MaxSim over ragged sets equals the plain double loop, in values and gradients, however it is cut into chunks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import GraphError
from mathamr import maxsim
from mathamr.maxsim import VectorSets, scores, scores_reference


def sets_of(sizes: list[int], dim: int = 8, seed: int = 0) -> VectorSets:
    generator = torch.Generator().manual_seed(seed)
    vectors = functional.normalize(torch.randn(sum(sizes), dim, generator=generator), dim=1)
    return VectorSets(vectors.requires_grad_(), torch.tensor([0, *sizes]).cumsum(0))


SIZES = {
    "one against one": ([1], [1]),
    "single vectors": ([1, 1, 1], [1, 1]),
    "ragged": ([3, 1, 7, 2], [5, 1, 1, 9, 4, 2]),
    "one long document": ([2, 3], [1, 300, 2]),
    "more than a chunk": ([1 + i % 7 for i in range(30)], [1 + (i * 5) % 23 for i in range(60)]),
}


@pytest.fixture(params=[None, (16, 4)], ids=["default chunks", "tiny chunks"])
def _chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is not None:
        monkeypatch.setattr(maxsim, "CPU_CHUNK", request.param)
        monkeypatch.setattr(maxsim, "SMALL_CHUNK", 0)


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_equals_the_reference_in_values_and_gradients(sizes: tuple[list[int], list[int]], normalize: bool) -> None:
    queries, documents = sets_of(sizes[0]), sets_of(sizes[1], seed=1)
    fast = scores(queries, documents, normalize=normalize)
    plain = scores_reference(queries, documents, normalize=normalize)
    assert fast.dtype == torch.float32
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(plain)
    inputs = [queries.vectors, documents.vectors]
    for ours, theirs in zip(
        torch.autograd.grad(fast, inputs, upstream), torch.autograd.grad(plain, inputs, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("_chunks")
def test_padding_never_beats_a_negative_score() -> None:
    queries = VectorSets.of([torch.tensor([[1.0, 0.0]])])
    documents = VectorSets.of([torch.tensor([[-1.0, 0.0]]), torch.tensor([[-0.6, 0.8]] * 5)])
    torch.testing.assert_close(scores(queries, documents), torch.tensor([[-1.0, -0.6]]))


def test_tied_vectors_share_the_gradient_evenly() -> None:
    twice = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    documents = VectorSets.of([twice])
    scores(VectorSets.of([torch.tensor([[1.0, 0.0]])]), documents).sum().backward()
    assert twice.grad is not None
    assert twice.grad.tolist() == [[0.5, 0.0], [0.5, 0.0], [0.0, 0.0]]


def test_scores_are_float32_under_autocast_and_from_half_precision() -> None:
    queries, documents = sets_of([3, 4]), sets_of([5, 2, 6], seed=1)
    expected = scores(queries, documents)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(scores(queries, documents), expected)
    half = VectorSets(documents.vectors.detach().half(), documents.ptr)
    assert scores(queries, half).dtype == torch.float32
    torch.testing.assert_close(scores(queries, half), expected, rtol=1e-2, atol=1e-2)


def test_backward_keeps_only_the_vectors() -> None:
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    queries, documents = sets_of([16] * 50), sets_of([16] * 50, seed=1)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        scores(queries, documents)
    assert sum(tensor.numel() for tensor in kept) == queries.vectors.numel() + documents.vectors.numel()


def test_values_and_gradients_repeat_bit_for_bit() -> None:
    def run() -> tuple[Tensor, ...]:
        queries, documents = sets_of([3, 9, 1] * 20), sets_of([2, 5, 40] * 20, seed=1)
        result = scores(queries, documents)
        return result, *torch.autograd.grad(result.square().sum(), [queries.vectors, documents.vectors])

    assert all(torch.equal(first, second) for first, second in zip(run(), run(), strict=True))


def test_an_empty_set_is_named() -> None:
    full, empty = sets_of([2, 1]), sets_of([2, 0, 1])
    with pytest.raises(GraphError, match="document 1 of 3 has no vectors"):
        scores(full, empty)
    with pytest.raises(GraphError, match="query 1 of 3 has no vectors"):
        scores(empty, full)


def test_bounds_that_do_not_fit_the_vectors_are_refused() -> None:
    with pytest.raises(GraphError, match="bounds of the document sets do not rise from 0 to the 3 vectors"):
        scores(sets_of([2]), VectorSets(torch.randn(3, 8), torch.tensor([0, 2])))
    with pytest.raises(GraphError, match=r"not \(3,\) and \(2,\)"):
        VectorSets(torch.randn(3), torch.tensor([0, 3]))


def test_dimensions_of_two_models_are_refused() -> None:
    with pytest.raises(GraphError, match="queries have vectors of dimension 8, documents of dimension 4"):
        scores(sets_of([2]), sets_of([2], dim=4))


def test_sets_can_be_taken_apart_and_put_together() -> None:
    sets = sets_of([2, 3, 1])
    parts = list(sets)
    assert [len(part) for part in parts] == sets.sizes.tolist() == [2, 3, 1]
    assert torch.equal(VectorSets.of(parts).vectors, sets.vectors)
    chosen = sets.select(torch.tensor([2, 0, 0]))
    assert chosen.ptr.tolist() == [0, 1, 3, 5]
    assert torch.equal(chosen.vectors, torch.cat([parts[2], parts[0], parts[0]]))
    assert torch.equal(sets.document_vectors(), torch.stack([part[-1] for part in parts]))
    again = VectorSets.concatenated([sets.select(torch.tensor([0, 1])), sets.select(torch.tensor([2]))])
    assert torch.equal(again.vectors, sets.vectors)
    assert torch.equal(again.ptr, sets.ptr)
    assert VectorSets.concatenated([sets]) is sets
    for none in (VectorSets.of, VectorSets.concatenated):
        with pytest.raises(GraphError, match="at least one is needed to know the dimension"):
            none([])


def test_document_vectors_alone_give_single_vector_similarity() -> None:
    queries, documents = sets_of([2, 3]), sets_of([4, 1, 2], seed=1)
    single = scores(queries.documents_only(), documents.documents_only())
    torch.testing.assert_close(single, queries.document_vectors() @ documents.document_vectors().T)
