"""MathML text -> one element tree, and the walk over it that builds both kinds of formula tree.

>>> root = read_mathml('<math><msup><mi>x</mi><mn>2</mn></msup></math>')
>>> [local_name(element) for element in root.iter()]
['math', 'msup', 'mi', 'mn']

MathML is read as XML, with entities unresolved and the network off. Text that is not well-formed is read again as HTML,
as leniently as in the original Tangent-S. Too deep nesting, or text without MathML, is a
:class:`~graphs.errors.FormulaError`.

The walk visits the elements in reverse document order, so that an element finds the finished results of its children on
a stack. It needs no recursion, and costs one dictionary lookup and one call for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Generic, Literal, TypeVar
from unicodedata import normalize

from lxml import etree

from graphs.errors import FormulaError

Letters = Literal["plain", "italic"]
Element = etree._Element
Node = TypeVar("Node")
Rule = Callable[[Element, "list[Node | None]"], "Node | None"]

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_MATH = f"{NAMESPACE}math"
MAX_CHARACTERS = 8_000_000
"""Longest MathML that is read; libxml2 itself stops at 10 MB of text."""
MAX_DEPTH = 256
"""Depth of nesting at which libxml2 stops; the deepest of the 50,000 formulas of ARQMath-mini has 33 levels."""

_XML = etree.XMLParser(
    encoding="utf-8", resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
)
_HTML = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False, remove_comments=True, remove_pis=True)
_TOO_DEEP = 114  # libxml2's XML_ERR_RESOURCE_LIMIT
_ESCAPES = str.maketrans(
    {"\t": "\\t", "\n": "\\n", "\r": "\\r", "?": "&quest;", ",": "&comma;", "[": "&lsqb;", "]": "&rsqb;"}
)
_INVISIBLE = frozenset("\u2061\u2062\u2063\u2064")
_OTHER_VERSION = str.maketrans({"\u2212": "-", "\u2016": "\u2225"})


@lru_cache(maxsize=1 << 14)
def clean(text: str | None) -> str:
    """Return a symbol's text as in Tangent-S: stripped, its own punctuation escaped, invisible operators empty.

    >>> clean(" , "), clean("a[1]"), clean("\\u2062"), clean(None)
    ('&comma;', 'a&lsqb;1&rsqb;', '', '')
    """
    if not text:
        return ""
    text = text.strip().translate(_ESCAPES)
    return "" if text in _INVISIBLE else text


@lru_cache(maxsize=1 << 14)
def clean_plain(text: str | None) -> str:
    """Return :func:`clean` with plain letters (NFKC), and with the minus and the norm bar of the official files.

    LaTeXML 0.8.5, which made the official files, writes a minus as ``-`` and a norm as ``∥``; 0.8.7 writes U+2212 and
    U+2016. Both give the same labels here.

    >>> clean_plain("𝑥"), clean_plain("ℝ"), clean_plain("−"), clean_plain("‖")
    ('x', 'R', '-', '∥')
    """
    text = clean(text)
    if text.isascii():
        return text
    return normalize("NFKC", text.translate(_OTHER_VERSION)).translate(_ESCAPES)


def cleaner(letters: Letters) -> Callable[[str | None], str]:
    """Return the function from an element's text to a label's text, for a choice of letters."""
    if letters == "plain":
        return clean_plain
    if letters == "italic":
        return clean
    raise FormulaError(f"letters={letters!r} is unknown. Choose from: 'plain', 'italic'", kind="letters")


def local_name(element: Element) -> str:
    """Return the element's name in lower case, without namespace or prefix."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2].lower()


def read_mathml(mathml: str, parallel: str | None = None) -> Element:
    """Return the ``math`` element of a MathML text.

    ``parallel`` names the encoding of the wanted markup, ``MathML-Presentation`` or ``MathML-Content``. If the text has
    both, the ``annotation-xml`` of that encoding is returned instead of ``math``.
    Raises FormulaError (kinds ``empty``, ``too_long``, ``too_deep``, ``malformed``, ``no_math``).
    """
    if len(mathml) > MAX_CHARACTERS:
        raise FormulaError(
            f"MathML of {len(mathml):,} characters; at most {MAX_CHARACTERS:,} are read", kind="too_long"
        )
    try:
        data = mathml.encode()
    except UnicodeEncodeError as error:
        raise FormulaError(f"MathML is not Unicode text: {error}", kind="malformed") from None
    root = _read_html(data) if b"<!DOCTYPE" in data else _read_xml(data)
    if root.tag != _MATH and local_name(root) != "math":
        inner = next((element for element in root.iter("*") if local_name(element) == "math"), None)
        if inner is None:
            raise FormulaError(f"no <math> element in {mathml[:60]!r}", kind="no_math")
        root = inner
    if parallel is not None and b"annotation-xml" in data:
        for element in root.iter("*"):
            if local_name(element) == "annotation-xml" and element.get("encoding") == parallel:
                return element
    return root


def _read_xml(data: bytes) -> Element:
    try:
        return etree.fromstring(data, _XML)
    except etree.XMLSyntaxError as error:
        if error.code == _TOO_DEEP:  # type: ignore[attr-defined]  # missing in the stubs
            raise _too_deep() from None
    return _read_html(data)


def _read_html(data: bytes) -> Element:
    if not data.strip():
        raise FormulaError("the MathML is empty", kind="empty")
    try:
        root = etree.fromstring(data, _HTML)
    except etree.XMLSyntaxError as error:
        raise FormulaError(f"neither XML nor HTML: {error}", kind="malformed") from None
    if root is None:
        raise FormulaError(f"no <math> element in {data[:60]!r}", kind="no_math")
    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth >= MAX_DEPTH:  # libxml2 silently drops deeper elements
            raise _too_deep()
    return root


def _too_deep() -> FormulaError:
    return FormulaError(f"elements are nested {MAX_DEPTH} deep or deeper, too deep for a tree", kind="too_deep")


class Rules(Generic[Node]):
    """Rules by local name; rules of ``leaves`` do not read their children."""

    def __init__(self, leaves: Mapping[str, Rule[Node]], inner: Mapping[str, Rule[Node]]) -> None:
        self.leaves = frozenset(leaves) | {"annotation", "annotation-xml"}
        by_name: dict[str, Rule[Node]] = {**leaves, **inner, "annotation": _nothing, "annotation-xml": _nothing}
        self.by_tag = by_name | {NAMESPACE + name: rule for name, rule in by_name.items()}

    def for_element(self, element: Element) -> Rule[Node]:
        """Return the rule for an element whose name is written in capitals, or in another namespace."""
        name = local_name(element)
        rule = self.by_tag.get(name)
        if rule is None:
            raise FormulaError(f"no rule for the element <{name}>", kind="unknown_tag")
        return rule

    def ignored(self, element: Element, root: Element) -> bool:
        """Return whether ``element`` below ``root`` is ignored.

        It is ignored within a leaf, or as a later child of ``semantics`` or ``mstyle``, of which only the first child
        counts."""
        while element is not root:
            parent = element.getparent()
            if parent is None:
                return False
            name = local_name(parent)
            if parent is not root and name in self.leaves:
                return True
            if name in ("semantics", "mstyle") and parent.index(element) > 0:
                return True
            element = parent
        return False


def _nothing(element: Element, children: list[Node | None]) -> None:
    return None


def walk(root: Element, rules: Rules[Node]) -> Node | None:
    """Return the tree of the one child of ``root``, an element ``math``; ``None`` if nothing is visible.

    Raises FormulaError (kinds ``unknown_tag`` for an element without a rule, ``many_roots``, and those of the rules).
    """
    stack: list[Node | None] = []
    by_tag = rules.by_tag
    elements = list(root.iter("*"))
    elements.reverse()
    elements.pop()  # the root
    for element in elements:
        number = len(element)
        if number:
            children = stack[: -number - 1 : -1]
            del stack[-number:]
        else:
            children = []
        try:
            rule = by_tag.get(element.tag) or rules.for_element(element)
            stack.append(rule(element, children))
        except FormulaError:
            if not rules.ignored(element, root):
                raise
            stack.append(None)
    stack.reverse()
    return only_child(root, stack)


def first_child(element: Element, children: list[Node | None]) -> Node | None:
    """Apply the rule for elements of which the first child alone counts."""
    return children[0] if children else None


def only_child(element: Element, children: list[Node | None]) -> Node | None:
    """Apply the rule for ``math``: apart from annotations it has one child, or none and no tree."""
    if len(children) > 1:
        annotated = zip(element, children, strict=True)
        children = [child for part, child in annotated if not local_name(part).startswith("annotation")]
        if len(children) > 1:
            raise FormulaError(f"<math> has {len(children)} children, one is needed", kind="many_roots")
    return children[0] if children else None
