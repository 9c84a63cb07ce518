"""Time the relational convolution against PyG's, forward and backward of one layer, on graphs of the thesis's sizes.

    python scripts/bench.py relational_conv
    python scripts/bench.py relational_conv --device cuda --precision bf16 --graphs 1024

The input is 64 generated graphs of 156 nodes and 660 edges, with 532 relations, d = 64 and 64 bases: N = 9,984,
E = 42,240. Relations are distributed as in posts: those of AMR and of formulas follow Zipf's law, and half of all edges
join a virtual node. All three layers have the same weights and take turns; medians are compared. Our time includes
making a plan for every pass, although the layers of an encoder share one. PyG's `RGCNConv` runs only once, because it
takes half a minute. Times are in milliseconds.

`bandwidth_share` is the time to copy the data that a layer must read and write, as a share of our time without the
plan. This data is the vectors, their gradients and the matrices of the relations, once forward and once backward.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import FastRGCNConv, RGCNConv

from mathamr.evaluation.efficiency import Stopwatch
from mathamr.model.relational_conv import RelationalConv
from mathamr.model.relational_plan import RelationalPlan

HIDDEN_DIM, NUM_BASES, NUM_RELATIONS = 64, 64, 532  # thesis Table 4.5; relations with inverses
NUM_GRAPHS = 64  # 32 pairs, thesis Table 4.5
NODES, VIRTUAL, EDGES = 156, 16, 660  # of a graph; 16.3 virtual nodes, thesis 3.5.1
ROUNDS = 3


def generated_graphs(num_graphs: int) -> tuple[Tensor, Tensor, int]:
    """Return a batch of graphs like those of posts: ``edge_index`` (2, E), ascending ``relation`` (E,), node count.

    A graph is a tree with a few re-entrancies over the ordinary nodes, each below a formula or sentence node, those
    below the document node; every edge with its inverse.
    """
    generator = np.random.default_rng(0)
    half = (NUM_RELATIONS - 6) // 2
    frequency = 1.0 / np.arange(1, half + 1)
    frequency /= frequency.sum()
    ordinary, document = NODES - VIRTUAL, NODES - 1
    extra = EDGES // 2 - (ordinary - 1) - ordinary - VIRTUAL
    sources: list[np.ndarray] = []
    relations: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    for start in range(0, num_graphs * NODES, NODES):
        child = np.arange(1, ordinary)
        parent = generator.integers(np.maximum(child - 6, 0), child)
        below = generator.integers(ordinary, document, ordinary)
        virtual = np.arange(ordinary, document)
        kind = np.where(below - ordinary < 9, 0, 1)  # 9 formulas, 6 sentences
        sources += [start + parent, start + generator.integers(0, ordinary, extra), start + np.arange(ordinary)]
        targets += [start + child, start + generator.integers(0, ordinary, extra), start + below]
        relations += [generator.choice(half, ordinary - 1 + extra, p=frequency), 2 * half + kind]
        sources += [start + virtual, np.array([start])]
        targets.append(np.full(VIRTUAL, start + document))
        relations.append(np.full(VIRTUAL, 2 * half + 2))
    source, target, relation = np.concatenate(sources), np.concatenate(targets), np.concatenate(relations)
    inverse = np.where(relation < 2 * half, relation + half, relation + 3)
    edge_index = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    relation = np.concatenate([relation, inverse])
    order = np.argsort(relation, kind="stable")
    return torch.from_numpy(edge_index[:, order]), torch.from_numpy(relation[order]), num_graphs * NODES


def main() -> dict[str, float]:
    """Print and return median milliseconds of each layer, our speed-ups, the plan's share, the largest difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--graphs", type=int, default=NUM_GRAPHS, help="graphs in the batch")
    options = parser.parse_args()
    device = options.device
    torch.manual_seed(0)
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    edge_index, relation, num_nodes = generated_graphs(options.graphs)
    edge_index, relation = edge_index.to(device), relation.to(device)
    sizes = {"num_bases": NUM_BASES}
    ours = RelationalConv(
        HIDDEN_DIM, HIDDEN_DIM, NUM_RELATIONS, num_bases=NUM_BASES, num_blocks=None, edge_vectors=False
    )
    fast = FastRGCNConv(HIDDEN_DIM, HIDDEN_DIM, NUM_RELATIONS, **sizes)
    slow = RGCNConv(HIDDEN_DIM, HIDDEN_DIM, NUM_RELATIONS, **sizes)
    for theirs in (fast, slow):
        theirs.load_state_dict(ours.state_dict())
    for layer in (ours, fast, slow):
        layer.to(device, dtype)
    x = torch.randn(num_nodes, HIDDEN_DIM).to(device, dtype).requires_grad_()
    upstream = torch.randn(num_nodes, HIDDEN_DIM).to(device, dtype)

    def plan() -> RelationalPlan:
        return RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS)

    passes: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: ours(x, plan()),
        "fast_rgcn": lambda: fast(x, edge_index, relation),
        "rgcn": lambda: slow(x, edge_index, relation),
    }

    def timed(name: str) -> float:
        return milliseconds(device, lambda: passes[name]().backward(upstream))

    timed("ours"), timed("fast_rgcn")  # the first pass of each allocates
    times: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(ROUNDS):
        times["ours"] += [timed("ours") for _ in range(5)]
        times["fast_rgcn"].append(timed("fast_rgcn"))
    times["rgcn"].append(timed("rgcn"))
    times["ours"] += [timed("ours") for _ in range(5)]
    plan_ms = statistics.median(milliseconds(device, plan) for _ in range(9))

    with torch.no_grad():
        expected = passes["fast_rgcn"]()
        difference = (passes["ours"]() - expected).abs().max() / expected.abs().max()
    median = {name: statistics.median(values) for name, values in times.items()}
    matrices = relation.unique().numel() * HIDDEN_DIM**2
    least_bytes = x.element_size() * (4 * num_nodes * HIDDEN_DIM + 3 * matrices)
    least_ms = 1_000 * least_bytes / copied_per_second(device)
    result = {
        "nodes": num_nodes,
        "edges": relation.numel(),
        "message_rows": plan().num_messages,
        "ours_ms": median["ours"],
        "plan_ms": plan_ms,
        "plan_share_of_four_layers": plan_ms / (plan_ms + 4 * (median["ours"] - plan_ms)),
        "fast_rgcn_ms": median["fast_rgcn"],
        "rgcn_ms": median["rgcn"],
        "relative_difference": difference.item(),
        "bandwidth_share": least_ms / (median["ours"] - plan_ms),
        "speedup_vs_rgcn": median["rgcn"] / median["ours"],
        "speedup_vs_fast_rgcn": median["fast_rgcn"] / median["ours"],
    }
    for name, value in result.items():
        print(f"{name:28} {value:,.3g}" if isinstance(value, float) else f"{name:28} {value:,}")
    return result


def milliseconds(device: str, run: Callable[[], object]) -> float:
    """Return the duration of a call."""
    with Stopwatch(device) as watch:
        run()
    return 1_000 * watch.seconds


def copied_per_second(device: str) -> float:
    """Return the bytes that a large copy reads and writes in a second, at best of five."""
    block = torch.zeros(2**28 if device.startswith("cuda") else 2**25, device=device)
    copy = torch.empty_like(block)
    copy.copy_(block)
    fastest = min(milliseconds(device, lambda: copy.copy_(block)) for _ in range(5))
    return 1_000 * 2 * block.numel() * block.element_size() / fastest
