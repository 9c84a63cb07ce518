"""The connectivity of docs/extending.md: registered, added to graphs on loading, and compared with the others."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.plan import plan
from experiments.run import run
from graphs.errors import ConfigError
from graphs.extensions import CONNECTIVITIES
from graphs.graph import connectivity as registry
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Counts, Vocabulary
from graphs.stores.store import GraphStore
from graphs.stores.tensor_identity import config_hash
from mathamr.stages.settings import GraphConfig
from tests.experiments.test_plan import DATA, config
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
    assert registry.auxiliary_count("star", "formulas") == "(max((formulas) - 1, 0))"


def test_a_star_of_another_package_is_imported_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if '"star"' in block]
    (points,) = re.findall(r"```toml\n(\[project\.entry-points.\"mathamr\.connectivities.*?)```", text, re.DOTALL)
    ((group, named),) = tomllib.loads(points)["project"]["entry-points"].items()
    assert group == CONNECTIVITIES
    install(named, code, tmp_path, monkeypatch)
    assert registry.connectivities()[-1] == "star"
    assert GraphConfig(connectivity="star", **SHARED).key_parts()["auxiliary_edges"]
    del registry._KNOWN["star"]  # imported already: nothing registers it again
    with pytest.raises(ConfigError, match=r'connectivity star is not registered; write @connectivity\("star", '):
        registry.number_of_edges("star", 3)
    monkeypatch.delitem(sys.modules, "mathamr_star")
    (tmp_path / "mathamr_star.py").write_text(f"{code}\nimport elephants")
    for _ in range(2):  # it is registered before the module fails
        with pytest.raises(
            ConfigError, match=r"star of mathamr-star 1\.0 \(mathamr_star:star\) cannot be imported: ModuleNotF"
        ):
            registry.number_of_edges("star", 3)


def test_a_connectivity_of_a_package_with_the_name_of_a_built_in_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install({"circular": "mathamr_star:star"}, "", tmp_path, monkeypatch)
    message = r"two connectivities are called circular: of mathamr-plus and of mathamr-star 1\.0; uninstall one"
    with pytest.raises(ConfigError, match=message):
        plan(config(), DATA)
    plan(config(conditions={"none": {"graph": {"connectivity": "none"}}}), DATA)


def test_a_connectivity_of_a_package_with_the_name_of_one_of_the_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install({"star": "mathamr_star:star"}, "", tmp_path, monkeypatch)
    registry._KNOWN["star"] = registry._KNOWN["none"]  # a function of graphs/graph/connectivity.py
    message = r"two connectivities are called star: of mathamr-plus and of mathamr-star 1\.0; uninstall one"
    with pytest.raises(ConfigError, match=message):
        registry.edge_identity("star")


def install(named: dict[str, str], code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a package with connectivities, and forget at the end of the test those that it registers."""
    (folder / "star.dist-info").mkdir()
    lines = [f"[{CONNECTIVITIES}]", *(f"{name} = {place}" for name, place in named.items())]
    (folder / "star.dist-info" / "entry_points.txt").write_text("\n".join(lines))
    (folder / "star.dist-info" / "METADATA").write_text("Name: mathamr-star\nVersion: 1.0\n")
    (folder / "mathamr_star.py").write_text(code)
    monkeypatch.setattr(registry, "_KNOWN", dict(registry._KNOWN))
    monkeypatch.syspath_prepend(folder)


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


def nothing(members: Any) -> None: ...
def unoffset(members: Any) -> Any:
    return np.zeros(members.sum() - 1, int), np.arange(1, members.sum())


def uneven(members: Any) -> Any:
    return np.arange(members.sum()), np.arange(members.sum() - 1)


def negative(members: Any) -> Any:
    return np.arange(members.sum()), np.arange(members.sum()) - 1


def reals(members: Any) -> Any:
    return np.arange(members.sum()) * 1.0, np.arange(members.sum()) * 1.0


def inward(members: Any) -> Any:
    return tuple(reversed(negative(members)))


def real_sources(members: Any) -> Any:
    return np.arange(members.sum()) * 1.0, np.arange(members.sum())


def real_targets(members: Any) -> Any:
    return np.arange(members.sum()), np.arange(members.sum()) * 1.0


def columns(members: Any) -> Any:
    return np.arange(members.sum())[:, None], np.arange(members.sum())[:, None]


def loops(members: Any) -> Any:
    return np.arange(members.sum()), np.arange(members.sum())


@pytest.mark.parametrize(
    ("pairs", "count", "message"),
    [
        (nothing, "0", r"\[3, 0, 1, 2, 5, 64\] it raises TypeError: "),
        (unoffset, "max({n} - 1, 0)", "the edge 0 -> 3 joins two graphs; add the first position of each graph"),
        (uneven, "{n}", r"the arrays have the shapes \(75,\) and \(74,\)"),
        (negative, "{n}", "the edge 0 -> -1 ends at no member; positions run from 0 to 74"),
        (inward, "{n}", "the edge -1 -> 0 ends at no member; positions run from 0 to 74"),
        (columns, "{n}", r"the arrays have the shapes \(75, 1\) and \(75, 1\)"),
        (reals, "{n}", "positions are of the types float64 and float64; return arrays of integers"),
        (real_sources, "{n}", "positions are of the types float64 and int64; return arrays of integers"),
        (real_targets, "{n}", "positions are of the types int64 and float64; return arrays of integers"),
        (loops, "min({n}, 9)", "count gives 9 edges for 64 members, and the function makes 64"),
        (loops, "{n} + 1", "count gives 4 edges for 3 members, and the function makes 3"),
        (loops, "{n} choose 2", r"count='\{n\} choose 2' is no SQL expression of \{n\}: OperationalError"),
        (loops, "{m}", r"count='\{m\}' is no SQL expression of \{n\}: KeyError"),
    ],
)
def test_wrong_edges_are_refused_with_the_function(pairs: Any, count: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^connectivity own \({__name__}\.{pairs.__name__}\): .*{message}"):
        registry.connectivity("own", count=count)(pairs)
    assert "own" not in registry.connectivities()


def test_a_built_in_connectivity_is_not_replaced_and_may_be_reloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KNOWN", dict(registry._KNOWN))
    circular = registry._KNOWN["circular"]
    registry.connectivity("circular", count=circular.count)(circular.pairs)
    monkeypatch.setattr(loops, "__qualname__", "circular")
    with pytest.raises(
        ConfigError, match=r"two connectivities are called circular: graphs\.graph\.connectivity\.circular"
    ):
        registry.connectivity("circular", count="{n}")(loops)


SHARED: dict[str, Any] = {
    "parser": "rules",
    "structure": "full",
    "formulas": "both",
    "vocabulary_size": 8,
    "number_threshold": 1,
}


def test_the_key_of_a_model_depends_on_the_edges_of_an_own_connectivity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KNOWN", dict(registry._KNOWN))
    vocabulary = Vocabulary.build(Counts(), size=8)
    keys, hashes = [], []
    for ends in (loops, lambda members: loops(members), lambda members: (loops(members)[0][::-1],) * 2):
        registry._KNOWN["own"] = registry.Connectivity(ends, "{n}")
        keys.append(GraphConfig(connectivity="own", **SHARED).key_parts())
        hashes.append(config_hash(VirtualNodeSpec(connectivity="own"), vocabulary))
    assert keys[0] == keys[1] != keys[2]
    assert hashes[0] == hashes[1] != hashes[2]
    for name in ("none", "sequential", "circular", "fully_connected"):
        assert GraphConfig(connectivity=name, **SHARED).key_parts() == {**SHARED, "connectivity": name}


def test_the_group_graph_refuses_an_unknown_connectivity() -> None:
    with pytest.raises(ConfigError, match=r"connectivity is 'circlar'; give one of .*; did you mean circular"):
        GraphConfig(connectivity="circlar", **SHARED)
