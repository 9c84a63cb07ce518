"""Losses over formulas: values and gradients as written down, and views that see one tree and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from tiny_collection import ENCODER, settings
from torch.nn import functional

from graphs.corpus.post import Pair
from graphs.errors import ConfigError, GraphError, TrainingError
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.training.graph import formula_pairs
from mathamr.training.graph.formula_pairs import FormulaViews, alike_loss, alike_loss_reference, formulas_of, view_loss
from mathamr.training.graph.trainer import train

VISUAL_IDS = {f"{kind}{i}": [f"v{i % 16}"] for i in range(48) for kind in "qa"}


def unit_vectors(count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    return functional.normalize(torch.randn(count, 8, generator=generator, dtype=torch.float64), dim=1).requires_grad_()


@pytest.mark.parametrize("keys", [[0, 1, 0, 2, 1, 1], [0, 0, 1], [3, 3]])
def test_the_loss_of_formulas_that_look_alike(keys: list[int]) -> None:
    vectors, other = unit_vectors(len(keys)), unit_vectors(len(keys))
    temperature = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    loss = alike_loss(vectors, temperature, torch.tensor(keys))
    wanted = alike_loss_reference(other, temperature.detach(), torch.tensor(keys))
    loss.backward()
    wanted.backward()
    assert float(loss.detach()) == pytest.approx(float(wanted.detach()), rel=1e-5, abs=1e-6)
    torch.testing.assert_close(vectors.grad, other.grad, rtol=1e-4, atol=1e-6)
    assert temperature.grad is not None
    assert torch.isfinite(temperature.grad)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_where_none_look_alike_nothing_is_learned(count: int) -> None:
    vectors = unit_vectors(count)
    loss = alike_loss(vectors, torch.tensor(0.1), torch.arange(count))
    loss.backward()
    assert float(loss.detach()) == 0
    assert torch.equal(vectors.grad, torch.zeros_like(vectors))  # type: ignore[arg-type]


def test_views_find_each_other_but_are_not_told_apart_from_equal_formulas() -> None:
    keys = torch.tensor([0, 1, 0])
    operators, layouts = unit_vectors(3), unit_vectors(3)
    scores = (operators @ layouts.T / 0.5).exp().detach()
    wanted = 0.0
    for i in range(3):
        others = [k for k in range(3) if keys[k] != keys[i] or k == i]
        wanted -= float((scores[i, i] / scores[i, others].sum()).log() + (scores[i, i] / scores[others, i].sum()).log())
    found = view_loss(operators, layouts, torch.tensor(0.5), keys)
    assert float(found.detach()) == pytest.approx(wanted / 6, rel=1e-5)
    empty = view_loss(operators[:0], layouts[:0], torch.tensor(0.5), keys[:0])
    empty.backward()
    assert float(empty.detach()) == 0


def test_a_view_is_a_function_of_one_tree(store: GraphStore) -> None:
    """Formulas of one tree have one vector in every post; the trees of the tiny collection are known."""
    encoder = Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations).eval()
    posts = ["q1", "a1", "a17", "q2"]  # v1, v1, v1, v2
    graphs = store.load(posts)
    operators, layouts = FormulaViews(store.vocabulary)(graphs)
    names = [store.vocabulary.relation_name(int(relation)) for relation in operators.relation]
    assert set(names) == {":opt", ":opt*", ":opt-0", ":opt-0*", ":virtual_formula", ":virtual_formula*"}
    assert {store.vocabulary.relation_name(int(r)) for r in layouts.relation} == {
        ":slt", ":slt*", ":virtual_formula", ":virtual_formula*",
    }  # fmt: skip
    assert bool((operators.relation.diff() >= 0).all())
    found = formulas_of(posts, VISUAL_IDS, np.random.default_rng(0))
    with torch.no_grad():
        by_view = [found.vectors(encoder(view)) for view in (operators, layouts)]
        whole = found.vectors(encoder(graphs))
    for vectors in by_view:
        torch.testing.assert_close(vectors[:3], vectors[:1].expand(3, -1))
        assert not torch.allclose(vectors[0], vectors[3], atol=1e-3)
    assert not torch.allclose(by_view[0][0], by_view[1][0], atol=1e-3)
    assert not torch.allclose(whole[0], whole[2], atol=1e-3)


def test_of_many_formulas_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_pairs, "MOST_FORMULAS", 5)
    posts = [f"q{i}" for i in range(12)]
    found = formulas_of(posts, VISUAL_IDS, np.random.default_rng(1))
    assert len(found.graph) == 5
    assert torch.equal(found.graph, formulas_of(posts, VISUAL_IDS, np.random.default_rng(1)).graph)
    assert len(formulas_of(["unknown"], VISUAL_IDS, np.random.default_rng(1)).graph) == 0


def test_visual_ids_of_another_collection_are_refused(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    wrong = {post_id: ["v"] * 50 for post_id in VISUAL_IDS}
    with pytest.raises(GraphError, match="fewer vectors than visual ids"):
        train(settings(formula_weight=1.0), store, pairs, ENCODER, out=tmp_path, visual_ids=wrong)


def test_formulas_that_cannot_be_compared(
    new_store: Callable[..., GraphStore], store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="by their visual ids, which are missing"):
        train(settings(formula_weight=1.0), store, pairs, ENCODER, out=tmp_path)
    for mode, message in (("none", "cannot be compared by formula"), ("opt", "use graph.formulas=both")):
        some = new_store(tmp_path / f"{mode}.db", VirtualNodeSpec(formulas=mode))  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=message):
            train(settings(formula_view_weight=1.0), some, pairs, ENCODER, out=tmp_path, visual_ids=VISUAL_IDS)


def test_a_run_is_not_resumed_with_other_visual_ids(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    other = {**VISUAL_IDS, pairs[0].question_id: ["another"]}
    config = settings(formula_weight=1.0, epochs=1)
    train(config, store, pairs, ENCODER, out=tmp_path / "compared", visual_ids=VISUAL_IDS)
    with pytest.raises(TrainingError, match="visual ids"):
        train(config, store, pairs, ENCODER, out=tmp_path / "compared", visual_ids=other)
    train(config, store, pairs, ENCODER, out=tmp_path / "compared", visual_ids={**VISUAL_IDS, "elsewhere": ["v1"]})
    train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path / "pairs", visual_ids=VISUAL_IDS)
    train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path / "pairs", visual_ids=other)


class Killed(BaseException):
    """Nothing catches it, so nothing is saved: what is on disk is what a kill leaves."""


def test_the_best_recipe_goes_on_bit_for_bit(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    recipe = dict(OmegaConf.load(Path(__file__).parents[4] / "conf" / "train" / "best.yaml"))
    del recipe["defaults"]
    changes = {
        **recipe,
        "formula_view_weight": 0.2,
        "epochs": 2,
        "checkpoint_every": 3,
        "node_mask": 0.1,
        "edge_dropout": 0.1,
    }

    def kill(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 5:
            raise Killed

    arguments = settings(**changes), store, pairs, ENCODER
    with pytest.raises(Killed):
        train(*arguments, out=tmp_path / "killed", visual_ids=VISUAL_IDS, log=kill)
    resumed = train(*arguments, out=tmp_path / "killed", visual_ids=VISUAL_IDS)
    whole = train(*arguments, out=tmp_path / "whole", visual_ids=VISUAL_IDS)
    assert resumed.loss_curve == whole.loss_curve
    for name in ("best/model.safetensors", "last/model.safetensors", "last/state.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
