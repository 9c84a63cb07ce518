"""Vocabulary: an id for every node label and relation, counted over a collection.

>>> counts = Counts(
...     amr={"solve-01": 9, "equations": 4, "equation": 3, "7": 2}, formula={"V!x": 6, "N!2": 5, "N!1729": 1},
...     relations={":ARG1": 9, ":slt-n": 5}, graphs=3)
>>> vocabulary = Vocabulary.build(counts, size=12)
>>> vocabulary.labels[len(RESERVED_LABELS):]
('solve-01', 'equat', 'V!x', 'N!2')
>>> vocabulary.labels[vocabulary.label_id("1729", NodeKind.AMR)], vocabulary.label_id("unheard-of", NodeKind.AMR)
('[UNKNUM_INT]', 0)
>>> found = vocabulary.relation_id(":slt-n")
>>> vocabulary.relation_name(found), vocabulary.relation_name(found + 1)
(':slt-n', ':slt-n*')

**Labels.** 0 is ``[UNK]``, 1 ``[MASK]``, 2 to 4 the virtual nodes (by kind), 5 to 7 the three kinds of rare numbers;
then the labels by falling count. Numbers seen fewer than 5 times are rare (thesis, 3.3.1); then the most frequent
labels are kept, ``size`` in all with the reserved ones (20,000 in thesis Table 4.2), and the share of nodes that they
cover is reported.

**Relations.** Relation ``2k`` has the inverse ``2k + 1`` (name with ``*``), so ``id ^ 1`` is the inverse of ``id``. 0
to 7 are the virtual ones (``:virtual_formula``, ``:virtual_sentence``, ``:virtual_document``, ``:auxiliary_vn``), 8 and
9 ``:unknown``; then the roles by falling count. All roles seen are kept, but for numbered ones (``:op12``, ``:snt31``,
``:opt-17``) past 9 that are as rare as a rare number, and all past 31: these, like numbers never seen, are mapped to
the nearest lower number that is kept. So the number of relations stays bounded, however long the lists in some posts
are (real operator trees have nodes of 500 operands). Any other role that was never seen is ``:unknown``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from graphs.errors import GraphError, MathAMRError, OtherVersionError
from graphs.graph.labels import UNKNOWN_NUMBERS, normalize, number_type, numbered
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.virtual_nodes import (
    AUXILIARY_RELATION,
    VIRTUAL_LABELS,
    VIRTUAL_RELATIONS,
    FormulaMode,
    select_formulas,
)
from graphs.processes import batched, ordered_map

UNK, MASK, FIRST_VIRTUAL_LABEL = 0, 1, 2
RESERVED_LABELS = ("[UNK]", "[MASK]", *VIRTUAL_LABELS, *UNKNOWN_NUMBERS)
UNKNOWN_RELATION = ":unknown"
RESERVED_RELATIONS = (*VIRTUAL_RELATIONS, AUXILIARY_RELATION, UNKNOWN_RELATION)
_VIRTUAL_ROLES = frozenset(RESERVED_RELATIONS) - {UNKNOWN_RELATION}
NUM_VIRTUAL_RELATIONS = 2 * len(_VIRTUAL_ROLES)
"""Ids below are virtual relations and their inverses."""
CONSTITUENT_RELATIONS = tuple(range(1, 2 * len(VIRTUAL_RELATIONS), 2))
"""Ids, by ``VirtualKind``, of the edges from the constituents to their virtual node."""

Row = tuple[str, str, str]  # post id, Penman text, formula map as JSON
Decode = Callable[[str, Mapping[str, str]], DocumentGraph]


def formula_map_of(text: str) -> dict[str, str]:
    """Return the formula map of a row, from its JSON.

    >>> formula_map_of('{"FORMULA_0": "17"}')
    {'FORMULA_0': '17'}

    Raises:
        GraphError: when the text is no JSON object that gives each placeholder a formula id.
    """
    try:
        formula_map = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphError(f"the formula map is no JSON ({error}): {text[:80]!r}") from error
    if not isinstance(formula_map, dict) or not all(isinstance(value, str) for value in formula_map.values()):
        raise GraphError(f"the formula map is no JSON object of placeholders and formula ids: {text[:80]!r}")
    return formula_map


_FORMAT = 1  # of the ids: goes up when normalisation or the reserved ids change
_ALWAYS_KEPT_INDEX, _HIGHEST_KEPT_INDEX = 9, 31
_ROWS_PER_TASK = 256


@dataclass(slots=True)
class Counts:
    """Counts of labels and roles, as written; AMR labels and formula tree labels are separate.

    ``failures`` counts the graphs that could not be read. Counts of parts of a collection add up with :meth:`merge`.
    """

    amr: Counter[str] = field(default_factory=Counter)
    formula: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    placeholders: int = 0
    graphs: int = 0
    failures: int = 0

    def __post_init__(self) -> None:
        self.amr, self.formula, self.relations = Counter(self.amr), Counter(self.formula), Counter(self.relations)

    def add(self, graph: DocumentGraph) -> None:
        """Count one graph."""
        self.graphs += 1
        for label, kind in zip(graph.labels, graph.kinds, strict=True):
            if kind is NodeKind.AMR:
                self.amr[label] += 1
            elif kind is NodeKind.FORMULA:
                self.placeholders += 1
            else:
                self.formula[label] += 1
        self.relations.update(role for _, role, _ in graph.edges)

    def merge(self, other: Counts) -> None:
        """Add the counts of another part."""
        self.amr.update(other.amr)
        self.formula.update(other.formula)
        self.relations.update(other.relations)
        self.placeholders += other.placeholders
        self.graphs += other.graphs
        self.failures += other.failures

    def to_json(self) -> str:
        """Return a JSON object in ASCII with sorted keys: labels made elsewhere may be invalid in UTF-8."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Counts:
        """Invert :meth:`to_json`."""
        return cls(**json.loads(text))


def count(
    rows: Iterable[Row],
    decode: Decode,
    formulas: FormulaMode = "both",
    *,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Counts:
    """Count the graphs of ``rows``, streaming; ``formulas`` is the mode of the graphs that will be trained on.

    Args:
        decode: importable function, Penman text and formula map to graph.
        workers: processes that decode and count.
        progress: called with the number of graphs done since the last call.
    """
    total = Counts()
    for part in ordered_map(partial, (_counts_of, decode, formulas), batched(rows, _ROWS_PER_TASK), workers=workers):
        total.merge(part)
        if progress is not None:
            progress(part.graphs + part.failures)
    return total


def _counts_of(decode: Decode, formulas: FormulaMode, rows: list[Row]) -> Counts:
    counts = Counts()
    for _, text, formula_map in rows:
        try:
            graph = decode(text, formula_map_of(formula_map))
        except MathAMRError:
            counts.failures += 1
            continue
        counts.add(select_formulas(graph, formulas))
    return counts


def _keeps(index: int, count: int, number_threshold: int) -> bool:
    """Return whether a numbered role has its own relation."""
    return index <= _ALWAYS_KEPT_INDEX or (index <= _HIGHEST_KEPT_INDEX and count >= number_threshold)


def own_roles(graph: DocumentGraph) -> DocumentGraph:
    """Replace roles that only virtual nodes have by ``:unknown``; graphs made elsewhere may contain them."""
    if not any(role in _VIRTUAL_ROLES for _, role, _ in graph.edges):
        return graph
    edges = [(s, UNKNOWN_RELATION if role in _VIRTUAL_ROLES else role, t) for s, role, t in graph.edges]
    return replace(graph, edges=edges)


def _check_begin(kind: str, names: tuple[str, ...], reserved: tuple[str, ...]) -> None:
    if names[: len(reserved)] != reserved:
        found = ", ".join(map(str, names[: len(reserved)]))
        raise OtherVersionError(
            f"vocabulary of another version: its {kind} begin with {found}, and those of this version with "
            f"{', '.join(reserved)}; preprocess the collection into a new file"
        )


class Vocabulary:
    """Ids of labels and relations.

    Attributes:
        labels: label of every id.
        relations: forward relation ``k`` has id ``2k``, its inverse ``2k + 1``.
        statistics: what was counted and kept; ``coverage`` is the share of nodes whose label is not ``[UNK]``.
    """

    def __init__(
        self, labels: Iterable[str], relations: Iterable[str], statistics: Mapping[str, float] | None = None
    ) -> None:
        self.labels = tuple(labels)
        self.relations = tuple(relations)
        self.statistics = dict(statistics or {})
        _check_begin("labels", self.labels, RESERVED_LABELS)
        _check_begin("relations", self.relations, RESERVED_RELATIONS)
        self._label_ids = {label: i for i, label in enumerate(self.labels)}
        self._relation_ids = {role: 2 * i for i, role in enumerate(self.relations)}
        if len(self._label_ids) != len(self.labels) or len(self._relation_ids) != len(self.relations):
            raise GraphError("a label or relation is twice in the vocabulary")
        self._kept_numbers: dict[str, list[int]] = {}
        for role in self.relations:
            if parsed := numbered(role):
                self._kept_numbers.setdefault(parsed[0], []).append(parsed[1])
        identity = json.dumps(self._content(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        self.hash = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()

    @classmethod
    def build(cls, counts: Counts, *, size: int, number_threshold: int = 5) -> Vocabulary:
        """Keep the most frequent labels, at most ``size`` ids with the reserved ones, and the relations.

        ``number_threshold``: numbers seen less often share a label (thesis, 3.3.1: 5); numbered roles past 9 that are
        seen less often have the id of a lower one.
        """
        if size < len(RESERVED_LABELS):
            raise GraphError(f"size {size} leaves no room: {len(RESERVED_LABELS)} ids are reserved")
        normalized: Counter[str] = Counter()
        for raw, kind in ((counts.amr, NodeKind.AMR), (counts.formula, NodeKind.OPT)):
            for label, number in raw.items():
                normalized[normalize(label, kind)] += number
        normalized[normalize("", NodeKind.FORMULA)] += counts.placeholders
        total = normalized.total()
        distinct = len(normalized)
        rare_numbers = {label for label, n in normalized.items() if n < number_threshold and number_type(label)}
        covered = sum(normalized.pop(label) for label in rare_numbers)
        for label in RESERVED_LABELS:
            normalized.pop(label, None)
        ranked = sorted(((n, label) for label, n in normalized.items() if n > 0), key=lambda item: (-item[0], item[1]))
        kept = ranked[: size - len(RESERVED_LABELS)]
        covered += sum(n for n, _ in kept) + sum(n for n, label in ranked[len(kept) :] if number_type(label))
        roles = [
            role
            for role, n in sorted(counts.relations.items(), key=lambda item: (-item[1], item[0]))
            if role not in RESERVED_RELATIONS
            and ((parsed := numbered(role)) is None or _keeps(parsed[1], n, number_threshold))
        ]
        statistics = {
            "graphs": counts.graphs,
            "nodes": total,
            "raw_labels": len(counts.amr) + len(counts.formula) + (counts.placeholders > 0),
            "normalized_labels": distinct,
            "rare_numbers": len(rare_numbers),
            "coverage": covered / total if total else 1.0,
            "raw_relations": len(counts.relations),
        }
        return cls((*RESERVED_LABELS, *(label for _, label in kept)), (*RESERVED_RELATIONS, *roles), statistics)

    @property
    def num_labels(self) -> int:
        """Number of label ids."""
        return len(self.labels)

    @property
    def num_relations(self) -> int:
        """Number of relation ids, inverses included: twice the relations."""
        return 2 * len(self.relations)

    def label_id(self, label: str, kind: NodeKind) -> int:
        """Id of a label of a graph; 0 where the vocabulary lacks it."""
        normal = normalize(label, kind)
        number = self._label_ids.get(normal)
        if number is None:
            rare = number_type(normal)
            return UNK if rare is None else self._label_ids[rare]
        return number if number >= len(RESERVED_LABELS) else UNK

    def relation_id(self, role: str) -> int:
        """Id of a role, always even; the inverse is the next one.

        Virtual relations have the names in ``virtual_nodes``; roles of a graph that was made elsewhere may have them,
        too, and go through :func:`own_roles` first.
        """
        number = self._relation_ids.get(role)
        if number is None:
            number = self._relation_ids[self._substitute(role)]
            self._relation_ids[role] = number
        return number

    def _substitute(self, role: str) -> str:
        if parsed := numbered(role):
            family, index = parsed
            below = [number for number in self._kept_numbers.get(family, ()) if number <= index]
            if below:
                return next(r for r in self.relations if numbered(r) == (family, max(below)))
        return UNKNOWN_RELATION

    def relation_name(self, relation: int) -> str:
        """Return the relation with this id; inverses end in ``*``."""
        return self.relations[relation // 2] + "*" * (relation % 2)

    def _content(self) -> dict[str, Any]:
        return {"format": _FORMAT, "labels": self.labels, "relations": self.relations}

    def to_json(self) -> str:
        """Return a JSON object in ASCII: format, labels, relations, statistics."""
        return json.dumps(self._content() | {"statistics": self.statistics})

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Invert :meth:`to_json`.

        Raises:
            OtherVersionError: when it is of another format, or has other reserved labels or relations.
            GraphError: when it is not such JSON.
        """
        try:
            content = json.loads(text)
            found, labels, relations = content["format"], content["labels"], content["relations"]
        except (ValueError, KeyError, TypeError) as error:
            raise GraphError(f"not a vocabulary ({error!r}): {text[:80]!r}") from error
        if found != _FORMAT:
            raise OtherVersionError(
                f"vocabulary of format {found}, this version reads {_FORMAT}; preprocess the collection into a new file"
            )
        return cls(labels, relations, content.get("statistics"))
