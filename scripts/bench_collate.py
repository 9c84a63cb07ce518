"""How fast graphs in memory become one batch: our two collates against PyTorch Geometric's `Batch`, in one run.

    python scripts/bench.py collate                         # 2,000 generated graphs of the thesis's sizes
    python scripts/bench.py collate --store both-full.db    # graphs of a preprocessed collection

One thread, the same random batches in turns, the fastest round of each. `packed` begins with the stored bytes, `arrays`
with unpacked graphs, `pyg` with `Data` objects: what each has once a file was read. `pyg` makes labels, edges and
relations only, without sorting by relation. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from bench_loader import generated_store  # type: ignore[import-not-found]  # a neighbour: scripts are no package
from torch_geometric.data import Batch, Data

from graphs.batching import collate, collate_packed
from graphs.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch


def run(
    store_path: str | None = None, *, num_graphs: int = 2000, batch_size: int = 64, rounds: int = 7
) -> dict[str, float]:
    """Graphs per second of each way, and ``speedup_vs_pyg`` of collating packed graphs."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(store_path) if store_path else generated_store(Path(folder) / "preprocessed.db", num_graphs)
        store = GraphStore(path)
        post_ids = store.post_ids()[:num_graphs]
        blobs, arrays = store.get_blobs(post_ids), store.get_arrays(post_ids)
        data = [Data(x=d.x, edge_index=d.edge_index, edge_attr=d.edge_attr) for d in map(store.get, post_ids)]
        vocabulary = store.vocabulary
        store.close()
    num_labels, num_relations = vocabulary.num_labels, vocabulary.num_relations
    ways: dict[str, Callable[[list[int]], object]] = {
        "packed": lambda batch: collate_packed(
            [blobs[i] for i in batch], num_labels=num_labels, num_relations=num_relations
        ),
        "arrays": lambda batch: collate([arrays[i] for i in batch]),
        "pyg": lambda batch: Batch.from_data_list([data[i] for i in batch]),
    }
    order = np.random.default_rng(0).permutation(len(post_ids)).tolist()
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            with Stopwatch() as watch:
                for batch in batches:
                    way(batch)
            seconds[name] = min(seconds[name], watch.seconds)
    return {
        **{f"graphs_per_second_{name}": len(order) / best for name, best in seconds.items()},
        "speedup_vs_pyg": seconds["pyg"] / seconds["packed"],
    }


def main() -> None:
    """Print every way's speed, then the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a preprocessed.db; default: generated graphs")
    parser.add_argument("--num-graphs", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=64, help="graphs in a batch")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    result = run(options.store, num_graphs=options.num_graphs, batch_size=options.batch_size, rounds=options.rounds)
    for name, value in result.items():
        print(f"{name:26} {value:>12,.1f}")
    print(json.dumps({name: round(value, 2) for name, value in result.items()}))


if __name__ == "__main__":
    main()
