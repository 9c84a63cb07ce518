r"""Penman text to graph and back: fast, of any depth, and with the same triples again.

>>> graph = decode('(p / prove-01 :mode imperative :ARG1 (f / FORMULA_0~e.1 :ARG1-of (h / hold-01)))')
>>> graph.triples[3:]
[('f', ':instance', 'FORMULA_0'), ('h', ':ARG1', 'f'), ('h', ':instance', 'hold-01')]
>>> encode(graph)
'(p / prove-01 :mode imperative :ARG1 (f / FORMULA_0 :ARG1-of (h / hold-01)))'

The graphs are those of the package ``penman``. Its own reader and writer are recursive: a formula's chain of some
hundred nodes stops them, and they are slow for millions of posts. Both functions here pass through the text, or the
triples, once. As in ``penman`` and its default model, a role with the end ``-of`` is the inverse of the role without
it, and triples follow the order of the text. Alignments (``~e.3,5``) and layout markers are dropped; the order of the
triples tells where a node is written (see :mod:`graphs.amr.arrangement`).

A label is written bare where Penman can read it bare, otherwise as a string:

>>> atom("prove-01"), atom("V!x"), atom('a "b" (c)'), atom("two\nlines")
('prove-01', 'V!x', '"a \\"b\\" (c)"', '"two\\u000alines"')
>>> label(atom("two\nlines")) == "two\nlines"
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import penman

from graphs.amr.arrangement import INSTANCE, Triple, arrange
from graphs.errors import AMRError

_SYMBOL = r'[^\s"()/:~]+'
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# Possessive ("?+", "*+"): the end of a role or alignment is never read as the constant that is missing after it.
_ALIGNMENT = r"(?:~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*)?+"
_ATOM = rf"((?:{_STRING})|{_SYMBOL}){_ALIGNMENT}"
_NODE = rf"\(\s*({_SYMBOL})\s*/\s*{_ATOM}"
# One step through the text: the end of a node, a role with a node, or a role with a constant or variable.
_ROLE = rf'(:[^\s"()/:~]*+){_ALIGNMENT}\s*'
_STEP = re.compile(rf"\s*(?:(\))|{_ROLE}(?:{_NODE}|{_ATOM}))", re.DOTALL)
_CUT = re.compile(rf"\s*(?:{_ROLE})?")  # all that is left of a text that ends within its graph
_VARIABLE = 3  # its group in a step
_OPEN = re.compile(rf"\s*{_NODE}", re.DOTALL)
_COMMENT = re.compile(r"^[^\S\n]*#.*$\n?", re.MULTILINE)
_BEFORE_KEY = re.compile(r"\s::(?=\S)")

# Stricter than the reader: Unicode's line separators end a line for some readers, and '#' opens a comment.
_SAFE = r'[^\s"()/:~\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]'
_BARE = re.compile(rf"(?!#){_SAFE}+")
_BREAKS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_QUOTED = re.compile(rf'"[^"\\{_BREAKS}]*(?:\\[^{_BREAKS}][^"\\{_BREAKS}]*)*"')
_WRITABLE = re.compile(rf"{_BARE.pattern}|{_QUOTED.pattern}")
_ROLE_NAME = re.compile(rf":{_SAFE}+")
_MUST_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def atom(text: str) -> str:
    """Return ``text`` as a Penman concept or constant: bare if that reads back as the same, else quoted and escaped."""
    if _BARE.fullmatch(text):
        return text
    return quote(text)


def quote(text: str) -> str:
    r"""Return ``text`` as a Penman string; quotes and backslashes escaped, control characters as ``\uXXXX``."""
    return '"' + _MUST_ESCAPE.sub(_escape, text) + '"'


def label(constant: str) -> str:
    """Return the text of a Penman concept or constant: the inverse of :func:`atom` and :func:`quote`."""
    if len(constant) < 2 or constant[0] != '"' or constant[-1] != '"':
        return constant
    if "\\" not in constant:
        return constant[1:-1]
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else m[2], constant[1:-1])


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return "\\" + character if character in '"\\' else f"\\u{ord(character):04x}"


def decode(text: str, *, forest: bool = False) -> penman.Graph:
    """Return the graph of one Penman text, with its ``# ::key value`` lines as ``metadata``.

    With ``forest`` the text may hold several trees, which become one graph in parts; its top is that of the first
    tree.
    Raises :class:`AMRError`: ``syntax``, ``truncated``, ``trailing_text``, ``no_graph``, ``duplicate_variable``.
    """
    metadata: dict[str, str] = {}
    if "#" in text:
        text, metadata = _without_comments(text)
    triples: list[Triple] = []
    append = triples.append
    concepts: dict[str, str] = {}
    loose: list[int] = []  # triples of an inverse role whose target may be a constant
    position, step = 0, _STEP.match
    while (forest or not triples) and (opening := _OPEN.match(text, position)):
        here, concept = opening.groups()
        _declare(concepts, here, concept, text, opening.start(1))
        append((here, INSTANCE, concept))
        stack = [here]
        position = opening.end()
        while stack:
            here = stack[-1]
            match = step(text, position)
            if match is None:
                raise _error(text, position)
            position = match.end()
            close, role, variable, concept, target = match.groups()
            if close:
                stack.pop()
            elif variable:
                if variable in concepts:
                    _declare(concepts, variable, concept, text, match.start(_VARIABLE))
                concepts[variable] = concept
                append((variable, role[:-3], here) if role[-3:] == "-of" else (here, role, variable))
                append((variable, INSTANCE, concept))
                stack.append(variable)
            else:
                if role[-3:] == "-of":
                    loose.append(len(triples))
                append((here, role, target))
    rest = text[position:].strip()
    if not triples:
        raise AMRError(
            f"no graph in {_excerpt(text, 0)}; Penman text begins with '(variable / concept'", kind="no_graph"
        )
    if rest:
        raise AMRError(f"text continues after the graph: {_excerpt(rest, 0)}", kind="trailing_text")
    for index in loose:
        source, role, target = triples[index]
        if target in concepts:
            triples[index] = (target, role[:-3], source)
    return penman.Graph(triples, top=triples[0][0], metadata=metadata)


def _declare(concepts: dict[str, str], variable: str, concept: str, text: str, position: int) -> None:
    if variable in concepts:
        message = f"variable {variable!r} names two nodes, {concepts[variable]!r} and {concept!r}"
        raise AMRError(f"{message}, at {_excerpt(text, position)}", kind="duplicate_variable")
    concepts[variable] = concept


def _without_comments(text: str) -> tuple[str, dict[str, str]]:
    metadata: dict[str, str] = {}
    for line in _COMMENT.findall(text):
        metadata.update(_metadata(line))
    return _COMMENT.sub("", text), metadata


def _metadata(line: str) -> dict[str, str]:
    """Return the keys and values of a line ``# ::key value ::key value``."""
    found = {}
    for part in _BEFORE_KEY.split(" " + line.lstrip("# \t"))[1:]:
        key, *value = part.split(maxsplit=1)
        found[key] = value[0].rstrip() if value else ""
    return found


def _error(text: str, position: int) -> AMRError:
    if _CUT.fullmatch(text, position):
        return AMRError(
            f"the text ends within the graph, after {_excerpt(text, max(0, position - 40))}", kind="truncated"
        )
    return AMRError(f"cannot read {_excerpt(text, position)} at character {position}", kind="syntax")


def _excerpt(text: str, position: int) -> str:
    part = text[position : position + 40]
    return repr(part + ("..." if position + 40 < len(text) else ""))


def encode(graph: penman.Graph) -> str:
    """Return the graph as one line of Penman text, without metadata; :func:`decode` gives the same triples again.

    The triples are written in their order if it is the order of a text, and are arranged
    (:mod:`graphs.amr.arrangement`) if not. Labels that Penman cannot read bare are quoted.
    Raises :class:`AMRError`: ``no_graph``, ``no_concept``, ``disconnected``, ``role``.
    """
    top, triples = graph.top, graph.triples
    if not triples:
        raise AMRError("a graph without a node cannot be written", kind="no_graph")
    text = _write(top, triples)
    if text is None:
        text = _write(top, arrange(graph))
    if text is None:
        raise AMRError(
            f"triples of the graph {_excerpt(repr(triples), 0)} have no place in a text", kind="disconnected"
        )
    return text


def _write(top: str, triples: list[Triple]) -> str | None:
    """Return the text of triples in the order of a text; ``None`` for another order."""
    if not triples or triples[0][0] != top or triples[0][1] != INSTANCE:
        return None
    concepts = {source: target for source, role, target in triples if role == INSTANCE and target is not None}
    if top not in concepts:
        return None
    out = [f"({top} / {_written(concepts[top])}"]
    stack, depth = [top], {top: 0}  # open nodes, and the place of each
    last: dict[str, int] = {}  # last triple of each variable, if needed
    size, index = len(triples), 1
    while index < size:
        source, role, target = triples[index]
        if role == INSTANCE or target is None:
            return None  # not after the edge that leads to it
        at = depth.get(source, -1)
        edge = target in concepts
        inverse = False
        if edge and source in concepts and depth.get(target, -1) > at:
            # Written at the target if that, or a node between, has further triples, else at the source.
            last = last or {variable: i for i, t in enumerate(triples) for variable in (t[0], t[2])}
            if at < 0 or any(last[variable] > index for variable in stack[at + 1 :]):
                at, inverse = depth[target], True
        if at < 0:
            return None
        while len(stack) > at + 1:
            del depth[stack.pop()]
            out.append(")")
        if inverse:
            role, target = (role[:-3] if role[-3:] == "-of" else role + "-of"), source
        if not _ROLE_NAME.fullmatch(role):
            message = (
                f"{role!r} cannot be a role: a role is ':' and a name without space, quote, '(', ')', '/', ':', '~'"
            )
            raise AMRError(message, kind="role")
        index += 1
        if edge and index < size and triples[index][0] == target and triples[index][1] == INSTANCE:
            if target in depth:
                return None
            out.append(f" {role} ({target} / {_written(concepts[target])}")
            depth[target] = len(stack)
            stack.append(target)
            index += 1
        else:
            out.append(f" {role} {target if edge else _written(target)}")
    out.append(")" * len(stack))
    return "".join(out)


def _written(constant: str) -> str:
    if _WRITABLE.fullmatch(constant):
        return constant
    return quote(label(constant))


@dataclass(slots=True)
class Block:
    """A graph of a Penman file: its place, its ``# ::key value`` lines, and its text; "" for an id without a graph."""

    line: int
    metadata: dict[str, str] = field(default_factory=dict)
    text: str = ""


def blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Yield the graphs of a Penman file; a comment block without a graph and an id (a release's header) is skipped.

    Comments with an id belong to the next graph, also over an empty line, unless another id comes before it.
    """
    current: Block | None = None
    parts: list[str] = []
    for number, line in enumerate(lines, 1):
        line = line.removeprefix("\ufeff")  # a byte order mark
        stripped = line.strip()
        comment = stripped.startswith("#")
        if (not stripped or comment) and parts:
            assert current is not None
            current.text = "".join(parts)
            yield current
            current, parts = None, []
        if not stripped:
            current = current if current is not None and "id" in current.metadata else None
            continue
        metadata = _metadata(stripped) if comment else {}
        if current is not None and "id" in current.metadata and "id" in metadata:
            yield current
            current = None
        if current is None:
            current = Block(number)
        if comment:
            current.metadata.update(metadata)
        else:
            parts.append(line)
    if current is not None and (parts or "id" in current.metadata):
        current.text = "".join(parts)
        yield current
