"""Training, encoding, MaxSim and search on a GPU, simulated where there is none: no tensor is on the wrong device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from simulated_gpu import simulated_gpu
from tiny_collection import ENCODER, encoder_config, settings, teacher_of

from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore
from mathamr import maxsim
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.model.encoding_shards import encode_in_shards
from mathamr.negatives.mining import model_rankings
from mathamr.retrieval.exact.index import DType, ExactIndex
from mathamr.retrieval.formulas import FormulaIndex, formula_points
from mathamr.retrieval.index import Ranking, Strategy
from mathamr.training.graph.trainer import train

VISUAL_IDS = {f"{kind}{i}": [f"v{i % 16}"] for i in range(48) for kind in "qa"}
ENCODERS: dict[str, dict[str, Any]] = {
    "thesis": {},
    "blocks": {"num_bases": None, "num_blocks": 4},
    "mean": {"vn_init": "mean", "vn_learned": "typed_projection"},
    "attention": {"vn_aggregation": "attention"},
}


@pytest.fixture
def gpu() -> Iterator[torch.device]:
    with simulated_gpu() as device:
        yield device


def test_two_devices_do_not_mix(gpu: torch.device) -> None:
    there, here = torch.ones(2, 3, device=gpu), torch.ones(2, 3)
    assert (there + torch.tensor(2.0)).tolist() == [[3.0] * 3] * 2
    assert there[torch.tensor([1])].is_cuda
    with pytest.raises(RuntimeError, match="same device"):
        there + here
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (there @ there.T).dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["thesis", "attention"])
def test_training_on_a_gpu_is_that_on_the_cpu(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, gpu: torch.device, name: str
) -> None:
    there, here = (losses(store, pairs, tmp_path / device, name, device=device) for device in ("cuda", "cpu"))
    assert there == pytest.approx(here, rel=1e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_bfloat16_on_a_gpu_is_that_on_the_cpu(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, gpu: torch.device, name: str
) -> None:
    there, here = (
        losses(store, pairs, tmp_path / device, name, device=device, precision="bf16") for device in ("cuda", "cpu")
    )
    assert there[0] == pytest.approx(here[0], rel=0.02)  # later ones part, as roundings do
    assert there[-1] < there[0]


def test_losses_of_formulas_and_of_a_teacher_in_chunks_on_a_gpu(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, gpu: torch.device
) -> None:
    given: dict[str, Any] = {
        "formula_weight": 0.3,
        "formula_view_weight": 0.2,
        "teacher": "any",
        "precision": "bf16",
        "node_budget": 120,
        "device": "cuda",
    }
    config = settings(epochs=1, batch_size=4, **given)
    found = train(config, store, pairs[:16], ENCODER, out=tmp_path, visual_ids=VISUAL_IDS, teacher=teacher_of())
    assert all(loss > 0 for loss in found.loss_curve)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_and_rankings_of_a_gpu_are_those_of_the_cpu(
    store: GraphStore, tmp_path: Path, gpu: torch.device, dtype: DType
) -> None:
    torch.manual_seed(0)
    encoder = Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations)
    post_ids = store.post_ids()
    here = encode(encoder, store, post_ids, max_nodes=200)
    there = encode(encoder.to(gpu), store, post_ids, max_nodes=200)
    assert there.vectors.is_cuda
    torch.testing.assert_close(there.to("cpu").vectors, here.vectors, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(maxsim.scores(there, there).cpu(), maxsim.scores(here, here), rtol=1e-4, atol=1e-5)

    wanted = ExactIndex.build(post_ids, here, path=tmp_path / "index", dtype=dtype, block=16)
    found = ExactIndex.open(tmp_path / "index", device=gpu)
    for strategy in (Strategy("maxsim"), Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=20)):
        for sets in (there, here):  # of a GPU's encoder, and of the CPU's
            assert_same_scores(found.search(sets, strategy, 10), wanted.search(here, strategy, 10))
    some = post_ids[::3]
    assert_same_scores(
        found.only(some).search(there, Strategy("maxsim"), 5), wanted.only(some).search(here, Strategy("maxsim"), 5)
    )
    assert found.vectors_of(some).vectors.is_cuda


def test_formulas_of_a_gpu_are_found(store: GraphStore, gpu: torch.device) -> None:
    torch.manual_seed(0)
    encoder = Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations).to(gpu)
    post_ids = store.post_ids()[:20]
    sets = encode(encoder, store, post_ids)
    points = formula_points(post_ids, sets, [[f"f-{post_id}"] for post_id in post_ids], {})
    index = FormulaIndex.build(points)
    hits = index.search(points.vectors, k=3)
    assert [found[0].score for found in hits] == pytest.approx([1.0] * 20, abs=1e-5)


def test_negatives_and_shards_of_a_gpu_are_those_of_the_cpu(
    store: GraphStore, tmp_path: Path, gpu: torch.device
) -> None:
    torch.manual_seed(0)
    encoder = Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations)
    questions, answers = ([f"{kind}{i}" for i in range(12)] for kind in "qa")
    here = encode_in_shards(encoder, store, answers, tmp_path / "here", identity="m", posts_a_shard=5)
    ranked = model_rankings(encoder, store, questions, answers, k=4)
    encoder.to(gpu)
    there = encode_in_shards(encoder, store, answers, tmp_path / "there", identity="m", posts_a_shard=5)
    torch.testing.assert_close(there.sets.vectors, here.sets.vectors, rtol=1e-4, atol=1e-5)
    found = model_rankings(encoder, store, questions, answers, k=4)
    assert_same_scores([found[question] for question in questions], [ranked[question] for question in questions])


def losses(store: GraphStore, pairs: list[Pair], out: Path, name: str, **given: Any) -> tuple[float, ...]:
    """Train for an epoch of four steps; return the loss of each."""
    config = settings(epochs=1, batch_size=4, negatives=1, beta=0.5, symmetric=True, **given)
    negatives = {f"q{i}": [f"a{(i + 1) % 48}"] for i in range(48)}
    encoder = encoder_config(**ENCODERS[name])
    return train(config, store, pairs[:20], encoder, out=out, negatives=negatives).loss_curve


def assert_same_scores(found: list[Ranking], wanted: list[Ranking]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert [score for _, score in one] == pytest.approx([score for _, score in other], rel=1e-4, abs=1e-5)
