"""Rows of a collection from a batch of posts: sentences, AMR, formula trees, MathAMR+ graphs, or failures.

>>> class Parrot:
...     name, version, model = "parrot", "1", "none"
...     def parse(self, chunks):
...         return ["(s / say-01 :ARG1 (f / FORMULA_0))" for chunk in chunks]
>>> maker = GraphMaker(Parrot)
>>> made = maker([Post("7", "answer", body="Say $x$.", markup="text"), Post("8", "answer")])
>>> print(made.graphs[0].penman)
(s / say-01 :ARG1 (F0 / FORMULA_0 :opt (F0o0 / V!x) :slt (F0s0 / V!x)))
>>> made.failures
[Failure(post_id='8', stage='read', kind='empty', message='the post has neither words nor formulas')]

A :class:`GraphMaker` lives in each worker process of :func:`graphs.stores.collection.build`.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import penman

from graphs.amr.document import DocumentAMR
from graphs.amr.parser import AMRParser, parse_documents
from graphs.corpus.post import FormulaRef, PlaceholderText, Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import AMRError, Failure, FormulaError, GraphError, StoreError
from graphs.formulas.latex import parse_latex, read_macros
from graphs.formulas.store import FormulaStore
from graphs.formulas.tree import ParsedFormula
from graphs.graph import mathamr_plus


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """Row of the collection: ``kind`` is question, answer or topic; ``reattached`` counts the parts of its AMR
    that the parser left unconnected."""

    post_id: str
    kind: str
    penman: str
    formula_map: dict[str, str]
    attachments: dict[str, str]
    reattached: int = 0

    def decode(self) -> mathamr_plus.DocumentGraph:
        """Return the graph as arrays."""
        return mathamr_plus.decode(self.penman, self.formula_map)


ParserFactory = Callable[[], AMRParser]
"""Makes the parser in each worker process, so it must be importable: a class, or a ``partial`` with its options."""

MAX_TREE_NODES = 20_000
"""Nodes of one formula tree; the largest of the 50,668 formulas in ARQMath-mini has 1,043."""
MAX_POST_NODES = 200_000
"""Nodes of all formula trees of a post; in ARQMath-mini a post has at most 8,300."""
_REFUSED = 2_000  # nodes that a refused formula counts as, for reading it up to the bound takes as long
_NO_TREES = ParsedFormula(None, None)


class FormulaTrees:
    """Trees of formulas: read from formulas.db if it has them, otherwise made from the LaTeX in process."""

    def __init__(self, formulas_db: str | os.PathLike[str] | None = None) -> None:
        self._store = None if formulas_db is None else FormulaStore.open(formulas_db)
        self._parsed: dict[str, ParsedFormula] = {}  # short formulas such as ``n`` occur thousands of times

    def of(self, formulas: Sequence[FormulaRef], beyond: list[str] | None = None) -> list[ParsedFormula]:
        """Return both trees of each formula of a post; trees missing in the store are made from the LaTeX.

        Macros that one formula of the post defines apply to all of them, as in rendered posts. A formula
        past a bound (of characters, tokens, depth, macros, operands; :data:`MAX_TREE_NODES`, :data:`MAX_POST_NODES`)
        lacks a tree or both; ``beyond`` gets a message for each.
        """
        failures = [] if beyond is None else beyond
        room = MAX_POST_NODES
        stored = {} if self._store is None else self._store.get_many([f.formula_id for f in formulas])
        macros = read_macros("\n".join(formula.latex for formula in formulas))
        trees = []
        for number, formula in enumerate(formulas):
            name = f"FORMULA_{number} ({formula.formula_id})"
            if room <= 0:
                failures.append(f"{name}: the trees before it have {MAX_POST_NODES:,} nodes, the most for a post")
                trees.append(_NO_TREES)
                continue
            known = stored.get(formula.formula_id)
            if known is None or known.slt is None or known.opt is None:
                parsed = parse_latex(formula.latex, macros) if macros else self._from_latex(formula.latex)
                if known is not None:
                    parsed = ParsedFormula(known.slt or parsed.slt, known.opt or parsed.opt, parsed.errors)
                known = parsed
            sizes = [len(tree) for tree in (known.opt, known.slt) if tree is not None]
            if max(sizes, default=0) > MAX_TREE_NODES:
                failures.append(f"{name}: a tree of {max(sizes):,} nodes; at most {MAX_TREE_NODES:,} are kept")
                known = _NO_TREES
            elif len(sizes) < 2 and known.errors and formula.latex.strip():
                failures.append(f"{name}: {known.errors[0][1]}")
                room -= _REFUSED
            room -= sum(sizes)
            trees.append(known)
        return trees

    def _from_latex(self, latex: str) -> ParsedFormula:
        if (known := self._parsed.get(latex)) is not None:
            return known
        parsed = parse_latex(latex)
        if len(latex) <= 64 and len(self._parsed) < 50_000:
            self._parsed[latex] = parsed
        return parsed


@dataclass(slots=True)
class MadeGraphs:
    """Graphs and failures of one batch of posts."""

    parser: str
    posts: int
    graphs: list[StoredGraph] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class GraphMaker:
    """Maker of the rows of a collection from posts. ``formulas_db`` has trees of formulas by id; it may lack some.

    ``parser_name`` is the name, version and model of the AMR parser, as a collection records them.
    """

    def __init__(self, parser: ParserFactory, formulas_db: str | os.PathLike[str] | None = None) -> None:
        self._parser = parser()
        self._trees = FormulaTrees(formulas_db)
        self.parser_name = " ".join((self._parser.name, self._parser.version, self._parser.model))

    def __call__(self, posts: list[Post | Failure]) -> MadeGraphs:
        batch = MadeGraphs(self.parser_name, len(posts))
        texts: list[tuple[Post, PlaceholderText]] = []
        for post in posts:
            if isinstance(post, Failure):
                batch.failures.append(post)
                continue
            text = extract(post)
            if text.cut:
                batch.failures.append(Failure(post.post_id, "read", "too_long", text.cut))
            if text.sentences or text.formulas:
                texts.append((post, text))
            else:
                batch.failures.append(Failure(post.post_id, "read", "empty", "the post has neither words nor formulas"))
        documents = parse_documents(self._parser, [(post.post_id, text.sentences) for post, text in texts])
        for (post, text), amr in zip(texts, documents, strict=True):
            if isinstance(amr, Failure):
                batch.failures.append(amr)
                if not text.formulas:
                    continue
                graph = penman.Graph([("a", ":instance", "amr-empty")], top="a")  # its formulas hang from this root
            else:
                batch.failures.extend(amr.failures)
                graph = amr.graph
            try:
                formulas = text.formulas
                if isinstance(amr, DocumentAMR) and amr.formula_map is not None:
                    formulas = _numbered_by(amr.formula_map, text.formulas, post.formula_prefix)
                beyond: list[str] = []
                full = mathamr_plus.build(graph, formulas, self._trees.of(formulas, beyond))
            except (GraphError, AMRError, FormulaError) as error:
                kind = getattr(error, "kind", "round_trip")
                batch.failures.append(Failure(post.post_id, "graph", kind, str(error)))
                continue
            except (StoreError, OSError):
                raise  # no fault of this post: formulas.db is damaged, or the disk
            except Exception as error:  # noqa: BLE001 - our own mistake on one post of millions is a record, too
                message = "".join(traceback.format_exception(error))
                batch.failures.append(Failure(post.post_id, "graph", f"bug: {type(error).__name__}", message))
                continue
            batch.failures.extend(
                Failure(post.post_id, "formula", "too_large", text) for text in _first_records(beyond)
            )
            parts = 0 if isinstance(amr, Failure) else amr.reattached
            row = StoredGraph(post.post_id, post.kind, full.penman, full.formula_map, full.attachments, parts)
            batch.graphs.append(row)
        return batch


def _first_records(messages: list[str]) -> list[str]:
    """Return the messages of a post; those past the first :data:`_RECORDS` become one."""
    if len(messages) <= _RECORDS:
        return messages
    return [*messages[:_RECORDS], f"and {len(messages) - _RECORDS:,} more formulas past the bounds"]


_RECORDS = 10


def _numbered_by(formula_map: dict[str, str], formulas: Sequence[FormulaRef], prefix: str) -> tuple[FormulaRef, ...]:
    """Return the formulas of a post as numbered by a graph made elsewhere; formulas unknown to it come last.

    Raises :class:`FormulaError` where the post has no formula with an id of the map.
    """
    known = {formula.formula_id: formula for formula in formulas}
    numbered = {}
    for name, formula_id in formula_map.items():
        formula = known.get(f"{prefix}{formula_id}") or known.get(formula_id)
        if formula is None:
            ids = ", ".join(list(known)[:5])
            message = f"formula_map of the graph has {name} = {formula_id!r}, the post has the formulas {ids}"
            raise FormulaError(message, kind="formula_map")
        numbered[name] = formula
    mentioned = {formula.formula_id for formula in numbered.values()}
    return (*numbered.values(), *(formula for formula in formulas if formula.formula_id not in mentioned))


def single(posts: list[Post | Failure]) -> list[list[Post | Failure]]:
    """Split a batch into single posts, to retry a batch whose process died."""
    return [[post] for post in posts]


def worker_died(posts: list[Post | Failure]) -> MadeGraphs:
    """Return the result for posts whose process died."""
    failures = [p if isinstance(p, Failure) else Failure(p.post_id, "amr", "worker_died", _DIED) for p in posts]
    return MadeGraphs("", len(posts), failures=failures)


_DIED = (
    "the process that parsed this post died, out of memory perhaps, and so did another that parsed it alone;"
    " --retry-failures tries it again"
)
