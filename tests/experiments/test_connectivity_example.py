"""The connectivity of docs/extending.md: registered, added to graphs on loading, and compared with the others."""

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.run import run
from graphs.graph import connectivity as registry
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.store import GraphStore
from tests.experiments.test_run import composed

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def star(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if '"star"' in block]
    monkeypatch.setattr(registry, "_KNOWN", dict(registry._KNOWN))
    exec(block, {})


@pytest.mark.usefixtures("star")
def test_a_star_joins_the_first_member_to_all_others() -> None:
    sources, targets = registry.auxiliary_pairs("star", np.array([3, 0, 1, 2]))
    assert (sources.tolist(), targets.tolist()) == ([0, 0, 4], [1, 2, 5])
    assert registry.auxiliary_count("star", "formulas") == "max(formulas - 1, 0)"


@pytest.mark.usefixtures("star")
def test_an_experiment_compares_it_without_new_graphs(collection: Path, tmp_path: Path) -> None:
    conditions = {"none": {"graph": {"connectivity": "none"}}, "star": {"graph": {"connectivity": "star"}}}
    ended = run(composed(collection, tmp_path, "experiment.seeds=[1]", conditions=conditions), "command")
    assert ended.failed == 0, ended.table
    (tensors,) = tmp_path.glob("shared/*/preprocessed-*.db")  # one file for both
    plain, joined = GraphStore(tensors), GraphStore(tensors, VirtualNodeSpec(connectivity="star"))
    ids = plain.post_ids()
    without, with_edges = plain.sizes(ids)[1], joined.sizes(ids)[1]
    assert (with_edges >= without).all()
    assert with_edges.sum() > without.sum()
    assert with_edges.tolist() == [arrays.edge_index.shape[1] for arrays in joined.get_arrays(ids)]
