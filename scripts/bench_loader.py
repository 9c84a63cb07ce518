"""How fast graphs come from disk into a batch: ours against PyTorch Geometric's on-disk stores, in one run.

    python scripts/bench_loader.py                          # 2,000 generated graphs of the thesis's sizes
    python scripts/bench_loader.py --store both-full.db     # graphs of a preprocessed collection

All paths hold the same graphs and load the same random batches, in turns, on one thread; machines are noisy, so the
ratios are the result. The file cache is warm. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Batch, Data, OnDiskDataset, SQLiteDatabase

from graphs.batching import collate
from graphs.mathamr_plus import DocumentGraph, NodeKind
from graphs.store import GraphStore, build
from graphs.virtual_nodes import VirtualNodeSpec
from graphs.vocabulary import Vocabulary, count

MEDIAN_NODES, MEAN_NODES = 101, 156  # thesis Table 4.2
FORMULAS_PER_NODE = 6.4 / 156  # thesis Table 4.2, questions and answers together
NUM_LABELS, NUM_ROLES = 30_000, 252
SCHEMA = {
    "x": {"dtype": torch.int64, "size": (-1,)},
    "edge_index": {"dtype": torch.int64, "size": (2, -1)},
    "edge_attr": {"dtype": torch.int64, "size": (-1,)},
}


def generate(seed: str, _formula_map: Mapping[str, str]) -> DocumentGraph:
    """A random graph with sizes as in thesis Table 4.2: sentences of 12 concepts, 6 formulas, each with two trees."""
    rng = np.random.default_rng(int(seed))
    spread = np.sqrt(2 * np.log(MEAN_NODES / MEDIAN_NODES))  # of a log-normal with this median and mean
    size = int(np.clip(rng.lognormal(np.log(MEDIAN_NODES), spread), 4, 5000))
    num_formulas = min(int(rng.poisson(FORMULAS_PER_NODE * size)), size // 4)
    num_amr = max(1, int(0.4 * size)) if num_formulas else size
    labels = [f"concept{label}" for label in _zipf(rng, num_amr, NUM_LABELS)]
    roles = [f":role{role}" for role in _zipf(rng, size, NUM_ROLES)]
    kinds = [NodeKind.AMR] * num_amr
    edges = [(int(rng.integers(max(0, node - 6), node)), roles[node], node) for node in range(1, num_amr)]
    sentence = [node // 12 for node in range(num_amr)]
    formula = [-1] * num_amr
    formula_nodes: list[int] = []
    tree_size = max(1, (size - num_amr) // max(1, 2 * num_formulas))
    for i in range(num_formulas):
        host = int(rng.integers(num_amr))
        formula_nodes.append(len(labels))
        edges.append((host, ":math", len(labels)))
        labels.append(f"FORMULA_{i}")
        kinds.append(NodeKind.FORMULA)
        sentence.append(sentence[host])
        formula.append(i)
        for kind, name in ((NodeKind.OPT, "opt"), (NodeKind.SLT, "slt")):
            first = len(labels)
            edges.append((formula_nodes[i], f":{name}", first))
            for node, label in enumerate(_zipf(rng, tree_size, NUM_LABELS), first):
                labels.append(f"V!{label}")
                kinds.append(kind)
                sentence.append(-1)
                formula.append(i)
                if node > first:
                    edges.append((int(rng.integers(max(first, node - 3), node)), f":{name}-{rng.integers(4)}", node))
    return DocumentGraph(
        labels=labels,
        kinds=kinds,
        edges=edges,
        root=0,
        sentence=sentence,
        formula=formula,
        sentence_roots=list(range(0, num_amr, 12)),
        formula_nodes=formula_nodes,
        formula_ids=[str(i) for i in range(num_formulas)],
    )


def _zipf(rng: np.random.Generator, size: int, bound: int) -> list[int]:
    return np.minimum(rng.zipf(1.3, size), bound).tolist()


class _OnDisk(OnDiskDataset):
    """PyTorch Geometric's dataset over SQLite, with a schema, as its documentation recommends for speed."""

    def __init__(self, root: str) -> None:
        super().__init__(root, backend="sqlite", schema=SCHEMA)

    def serialize(self, data: Data) -> dict[str, torch.Tensor]:
        return {name: data[name] for name in SCHEMA}

    def deserialize(self, row: dict[str, torch.Tensor]) -> Data:
        return Data.from_dict(row)


def run(
    store_path: str | None = None, *, num_graphs: int = 2000, batch_size: int = 64, rounds: int = 7
) -> dict[str, float]:
    """Time every path.

    Args:
        store_path: a preprocessed collection; generated graphs where there is none.
        num_graphs: how many graphs are held and loaded a round, in batches of ``batch_size``.
        rounds: each path is timed so often, in turns; its fastest round counts.

    Returns:
        ``graphs_per_second`` and ``bytes_per_graph`` (of the file) of ours, ``speedup_vs_pyg_on_disk`` over the fastest
        of PyTorch Geometric's paths, and the graphs per second of each path.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(store_path) if store_path else generated_store(Path(folder) / "preprocessed.db", num_graphs)
            store = GraphStore(path)
            post_ids = store.post_ids()[:num_graphs]
            nodes, edges = store.sizes(post_ids)
            paths = _paths(store, post_ids, Path(folder))
            seconds = _time(paths, _batches(len(post_ids), batch_size), rounds)
            size, stored = path.stat().st_size, len(store)
            store.close()
    finally:
        torch.set_num_threads(threads)
    speed = {name: len(post_ids) / best for name, best in seconds.items()}
    pyg = max(value for name, value in speed.items() if name.startswith("pyg"))
    return {
        "graphs_per_second": speed["ours"],
        "speedup_vs_pyg_on_disk": speed["ours"] / pyg,
        "bytes_per_graph": size / stored,
        "nodes_per_graph": float(nodes.mean()),
        "edges_per_graph": float(edges.mean()),
        **{f"graphs_per_second_{name}": value for name, value in speed.items()},
    }


def generated_store(path: Path, num_graphs: int) -> Path:
    """A preprocessed.db of generated graphs at ``path``."""
    rows = [(f"{4 * seed}", str(seed), "{}") for seed in range(num_graphs)]
    vocabulary = Vocabulary.build(count(rows, generate), size=20_000)
    build(path, rows, generate, VirtualNodeSpec(), vocabulary)
    return path


def _batches(num_graphs: int, batch_size: int) -> list[list[int]]:
    order = np.random.default_rng(0).permutation(num_graphs).tolist()
    return [order[start : start + batch_size] for start in range(0, num_graphs, batch_size)]


def _paths(store: GraphStore, post_ids: Sequence[str], folder: Path) -> dict[str, Callable[[list[int]], object]]:
    """Every way to load the batch of the graphs at some positions."""
    data = [
        Data(x=d.x, edge_index=d.edge_index, edge_attr=d.edge_attr)
        for d in (store.get(post_id) for post_id in post_ids)
    ]
    database = SQLiteDatabase(str(folder / "pyg.db"), "graphs", SCHEMA)
    database.multi_insert(range(len(data)), [{name: d[name] for name in SCHEMA} for d in data])
    pickled = SQLiteDatabase(str(folder / "pyg_pickled.db"), "graphs")
    pickled.multi_insert(range(len(data)), data)
    dataset = _OnDisk(str(folder / "dataset"))
    dataset.extend(data)

    def sqlite(batch: list[int]) -> Batch:
        return Batch.from_data_list([Data.from_dict(row) for row in database.multi_get(batch)])

    return {
        "ours": lambda batch: store.load([post_ids[i] for i in batch]),
        "ours_unpacked": lambda batch: collate(store.get_arrays([post_ids[i] for i in batch])),
        "pyg_sqlite_schema": sqlite,
        "pyg_on_disk_dataset": lambda batch: Batch.from_data_list(dataset.multi_get(batch)),
        "pyg_sqlite_pickled": lambda batch: Batch.from_data_list(pickled.multi_get(batch)),
    }


def _time(paths: dict[str, Callable[[list[int]], object]], batches: list[list[int]], rounds: int) -> dict[str, float]:
    """Seconds of each path's fastest round over all batches."""
    best = dict.fromkeys(paths, float("inf"))
    for name, load in _turns(paths, rounds):
        start = time.perf_counter()
        for batch in batches:
            load(batch)
        best[name] = min(best[name], time.perf_counter() - start)
    return best


def _turns(
    paths: dict[str, Callable[[list[int]], object]], rounds: int
) -> Iterator[tuple[str, Callable[[list[int]], object]]]:
    for _ in range(rounds):
        yield from paths.items()


def main() -> None:
    """Print every path's speed, then the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a preprocessed.db; default: generated graphs")
    parser.add_argument("--num-graphs", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=64, help="graphs in a batch")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    result = run(options.store, num_graphs=options.num_graphs, batch_size=options.batch_size, rounds=options.rounds)
    ours = result["graphs_per_second"]
    print(f"{result['nodes_per_graph']:.0f} nodes, {result['edges_per_graph']:.0f} edges a graph (virtual, inverses)")
    for name, value in result.items():
        if name.startswith("graphs_per_second_"):
            print(f"{name.removeprefix('graphs_per_second_'):>22} {value:>10,.0f} graphs/s {ours / value:>6.1f} x")
    print(json.dumps({name: round(value, 2) for name, value in result.items()}))


if __name__ == "__main__":
    main()
