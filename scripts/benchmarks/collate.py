"""Speed of collating graphs in memory into a batch: our two collates against PyTorch Geometric's `Batch`.

    python scripts/bench.py collate                         # 2,000 generated graphs of the thesis's sizes
    python scripts/bench.py collate --store both-full.db    # graphs of a preprocessed collection

All ways collate the same random batches in turns, on one thread; the fastest round of each counts. Each begins with
what it has after reading a file: `packed` with the stored bytes, to which it adds virtual nodes, `arrays` with unpacked
graphs that have virtual nodes, and `pyg` with `Data` objects. `pyg` makes only labels, edges and relations, and does
not sort by relation.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.data import Batch

from graphs.graph.batching import collate
from graphs.graph.packed import collate_packed
from scripts.benchmarks.loader import as_data, fastest, options
from scripts.benchmarks.sample_graphs import open_sample


def main() -> dict[str, float]:
    """Print every way's speed; return graphs per second, and ``speedup_vs_pyg`` of collating packed graphs."""
    given = options(__doc__)
    torch.set_num_threads(1)
    with open_sample(given.store, given.num_graphs) as store:
        post_ids = store.post_ids()[: given.num_graphs]
        blobs, arrays = store.get_blobs(post_ids), store.get_arrays(post_ids)
        data = as_data(store, post_ids)
        vocabulary, spec = store.vocabulary, store.spec
    num_labels, num_relations = vocabulary.num_labels, vocabulary.num_relations
    ways: dict[str, Callable[[list[int]], object]] = {
        "packed": lambda batch: collate_packed(
            [blobs[i] for i in batch], spec, num_labels=num_labels, num_relations=num_relations
        ),
        "arrays": lambda batch: collate([arrays[i] for i in batch]),
        "pyg": lambda batch: Batch.from_data_list([data[i] for i in batch]),
    }
    seconds = fastest(ways, len(post_ids), given.batch_size, given.rounds)
    result = {f"graphs_per_second_{name}": len(post_ids) / best for name, best in seconds.items()}
    result["speedup_vs_pyg"] = seconds["pyg"] / seconds["packed"]
    for name, value in result.items():
        print(f"{name:26} {value:>12,.1f}")
    return result
