"""Graphs for benchmarks: those of a preprocessed.db, or generated ones of the thesis's sizes.

options = parser(__doc__).parse_args()                      # --store, --num-graphs
with open_sample(options.store, options.num_graphs) as store:
    store.post_ids()
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary, count
from graphs.stores.store import GraphStore, build

MEDIAN_NODES, MEAN_NODES = 101, 156  # thesis Table 4.2
FORMULAS_PER_NODE = 6.4 / 156  # thesis Table 4.2, questions and answers together
NUM_LABELS, NUM_ROLES = 30_000, 252


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the command line that chooses the graphs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a preprocessed.db; default: generated graphs")
    parser.add_argument("--num-graphs", type=int, default=2000, help="generated graphs")
    return parser


@contextmanager
def open_sample(store_path: str | None, num_graphs: int) -> Iterator[GraphStore]:
    """Yield the store at ``store_path``, or a temporary one of ``num_graphs`` generated graphs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(store_path or f"{folder}/preprocessed.db")
        if not store_path:
            rows = [(f"{4 * seed}", str(seed), "{}") for seed in range(num_graphs)]
            vocabulary = Vocabulary.build(count(rows, generate), size=20_000)
            build(path, rows, generate, VirtualNodeSpec(), vocabulary)
        with closing(GraphStore(path)) as store:
            yield store


def generate(seed: str, _formula_map: Mapping[str, str]) -> DocumentGraph:
    """Return a random graph of thesis Table 4.2: sentences of 12 concepts, 6 formulas with two trees each."""
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
