"""Graphs of posts, drawn at random."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from graphs.graph.mathamr_plus import DocumentGraph, NodeKind


@st.composite
def documents(draw: st.DrawFn) -> DocumentGraph:
    """A connected graph of concepts and formula nodes in any arrangement, with trees below the formulas."""
    kinds = draw(st.lists(st.sampled_from([NodeKind.AMR, NodeKind.AMR, NodeKind.FORMULA]), min_size=1, max_size=12))
    size = len(kinds)
    edges = [(draw(st.integers(0, node - 1)), ":ARG0", node) for node in range(1, size)]
    edges = [(t, role, s) if draw(st.booleans()) else (s, role, t) for s, role, t in edges]
    sentence = [draw(st.integers(0, 2)) for _ in range(size)]
    present = sorted(set(sentence))
    sentence = [present.index(number) for number in sentence]
    formula_nodes = [node for node, kind in enumerate(kinds) if kind is NodeKind.FORMULA]
    formula = [formula_nodes.index(node) if kind is NodeKind.FORMULA else -1 for node, kind in enumerate(kinds)]
    labels = [f"FORMULA_{formula[node]}" if kind is NodeKind.FORMULA else f"c{node}" for node, kind in enumerate(kinds)]
    for i, host in enumerate(formula_nodes):
        for kind in draw(st.lists(st.sampled_from([NodeKind.OPT, NodeKind.SLT]), unique=True)):
            edges.append((host, f":{kind.name.lower()}", len(labels)))
            labels.append("V!x")
            kinds.append(kind)
            sentence.append(-1)
            formula.append(i)
    return DocumentGraph(
        labels=labels, kinds=kinds, edges=edges, root=0, sentence=sentence, formula=formula,
        sentence_roots=[sentence.index(number) for number in range(len(present))],
        formula_nodes=formula_nodes, formula_ids=[str(i) for i in range(len(formula_nodes))],
    )  # fmt: skip


@st.composite
def loose_documents(draw: st.DrawFn) -> DocumentGraph:
    """Graphs with nodes and formulas in no sentence, sentences without a node, and any node as a sentence's root."""
    graph = draw(documents())
    above = [node for node, kind in enumerate(graph.kinds) if kind in (NodeKind.AMR, NodeKind.FORMULA)]
    roots = draw(st.lists(st.sampled_from(above), max_size=4))
    sentence = [-1] * len(graph.labels)
    for node in above:
        sentence[node] = draw(st.integers(-1, len(roots) - 1))
    order = draw(st.permutations(range(len(graph.formula_nodes))))
    return replace(
        graph,
        root=draw(st.sampled_from(above)),
        sentence=sentence,
        sentence_roots=roots,
        formula=[order[number] if number >= 0 else -1 for number in graph.formula],
        formula_nodes=[node for _, node in sorted(zip(order, graph.formula_nodes, strict=True))],
    )
