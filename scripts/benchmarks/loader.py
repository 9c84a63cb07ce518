"""Speed of loading graphs from disk into a batch: ours against PyTorch Geometric's on-disk stores.

    python scripts/bench.py loader                          # 2,000 generated graphs of the thesis's sizes
    python scripts/bench.py loader --store both-full.db     # graphs of a preprocessed collection

All paths hold the same graphs and load the same random batches, in turns, on one thread. Only ratios are comparable
between machines. The file cache is warm.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Batch, Data, OnDiskDataset, SQLiteDatabase

from graphs.graph.batching import collate
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch
from scripts.benchmarks.sample_graphs import open_sample, parser

SCHEMA = {
    "x": {"dtype": torch.int64, "size": (-1,)},
    "edge_index": {"dtype": torch.int64, "size": (2, -1)},
    "edge_attr": {"dtype": torch.int64, "size": (-1,)},
}


class _OnDisk(OnDiskDataset):
    """PyTorch Geometric's dataset over SQLite, with a schema, as its documentation recommends for speed."""

    def __init__(self, root: str) -> None:
        super().__init__(root, backend="sqlite", schema=SCHEMA)

    def serialize(self, data: Data) -> dict[str, torch.Tensor]:
        return {name: data[name] for name in SCHEMA}

    def deserialize(self, row: dict[str, torch.Tensor]) -> Data:
        return Data.from_dict(row)


def main() -> dict[str, float]:
    """Time every path, and print its speed.

    Returns:
        ``graphs_per_second`` and ``bytes_per_graph`` (of the file) of ours, ``speedup_vs_pyg_on_disk`` over the fastest
        of PyTorch Geometric's paths, and the graphs per second of each path.
    """
    given = options(__doc__)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, open_sample(given.store, given.num_graphs) as store:
        post_ids = store.post_ids()[: given.num_graphs]
        nodes, edges = (float(sizes.mean()) for sizes in store.sizes(post_ids))
        seconds = fastest(_paths(store, post_ids, Path(folder)), len(post_ids), given.batch_size, given.rounds)
        bytes_per_graph = store.path.stat().st_size / len(store)
    speed = {name: len(post_ids) / best for name, best in seconds.items()}
    ours, pyg = speed["ours"], max(value for name, value in speed.items() if name.startswith("pyg"))
    print(f"{nodes:.0f} nodes, {edges:.0f} edges a graph (virtual, inverses)")
    for name, value in speed.items():
        print(f"{name:>22} {value:>10,.0f} graphs/s {ours / value:>6.1f} x")
    return {
        "graphs_per_second": ours,
        "speedup_vs_pyg_on_disk": ours / pyg,
        "bytes_per_graph": bytes_per_graph,
        "nodes_per_graph": nodes,
        "edges_per_graph": edges,
        **{f"graphs_per_second_{name}": value for name, value in speed.items()},
    }


def _paths(store: GraphStore, post_ids: Sequence[str], folder: Path) -> dict[str, Callable[[list[int]], object]]:
    """Return every way to load the batch of the graphs at some positions."""
    data = as_data(store, post_ids)
    database = SQLiteDatabase(str(folder / "pyg.db"), "graphs", SCHEMA)
    database.multi_insert(range(len(data)), [{name: d[name] for name in SCHEMA} for d in data])
    pickled = SQLiteDatabase(str(folder / "pyg_pickled.db"), "graphs")
    pickled.multi_insert(range(len(data)), data)
    dataset = _OnDisk(str(folder / "dataset"))
    dataset.extend(data)

    return {
        "ours": lambda batch: store.load([post_ids[i] for i in batch]),
        "ours_unpacked": lambda batch: collate(store.get_arrays([post_ids[i] for i in batch])),
        "pyg_sqlite_schema": lambda batch: Batch.from_data_list(list(map(Data.from_dict, database.multi_get(batch)))),
        "pyg_on_disk_dataset": lambda batch: Batch.from_data_list(dataset.multi_get(batch)),
        "pyg_sqlite_pickled": lambda batch: Batch.from_data_list(pickled.multi_get(batch)),
    }


def as_data(store: GraphStore, post_ids: Sequence[str]) -> list[Data]:
    """Return the graphs in PyTorch Geometric's form: labels, edges and relations."""
    return [Data(x=d.x, edge_index=d.edge_index, edge_attr=d.edge_attr) for d in map(store.get, post_ids)]


def fastest(
    ways: Mapping[str, Callable[[list[int]], object]], num_graphs: int, batch_size: int, rounds: int
) -> dict[str, float]:
    """Return seconds of each way's fastest round over the same random batches of all graphs; the ways take turns."""
    order = np.random.default_rng(0).permutation(num_graphs).tolist()
    batches = [order[start : start + batch_size] for start in range(0, num_graphs, batch_size)]
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            with Stopwatch() as watch:
                for batch in batches:
                    way(batch)
            best[name] = min(best[name], watch.seconds)
    return best


def options(description: str | None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    options = parser(description)
    options.add_argument("--batch-size", type=int, default=64, help="graphs in a batch")
    options.add_argument("--rounds", type=int, default=7, help="timings of each way, in turns; the fastest counts")
    return options.parse_args()
