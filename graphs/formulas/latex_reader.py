r"""LaTeX -> lists of symbols, each with its part of speech: what TeX makes of a formula before anyone asks what it means.

>>> reader = Reader(r"2\frac{a}{b}x_1")
>>> [item.role for item in reader.formula().items]
['NUMBER', 'ATOM', 'UNKNOWN', 'POSTSUB']

Arguments, scripts and cells are lists of their own (:class:`~graphs.formulas.latex_nodes.MathList`); a braced group is
not, it only bounds fonts. ``Reader.lists`` has every list after the lists within it, so that the grammar can go through
them in order, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from graphs.errors import FormulaError
from graphs.formulas import latex_tokens
from graphs.formulas.latex_nodes import (
    Accent,
    Dual,
    Enclosure,
    Fraction,
    Infix,
    MathList,
    Named,
    Node,
    Prefix,
    Root,
    Row,
    Script,
    ScriptMark,
    Table,
    Text,
    Token,
    Wrapped,
)
from graphs.formulas.latex_symbols import (
    ABSENT,
    ACCENTS,
    INVISIBLE_PLUS,
    LETTERS,
    LIMIT_ACCENTS,
    LIMITS_IN_DISPLAY,
    NEGATIONS,
    SPACE,
    SPACES,
    SYMBOLS,
    WIDE,
    opt_label,
    symbol,
)
from graphs.formulas.latex_tokens import Macro, Macros
from graphs.formulas.mathml import clean_plain

MAX_DEPTH: Final = 60
"""Groups, arguments and scripts nested deeper than this are refused."""
MAX_EXPANSIONS: Final = 2_000
"""Uses of macros in one formula; more are taken for a macro that never ends."""
MAX_TOKENS: Final = 40_000
"""Tokens of a formula after the expansion of its macros."""

_EMPTY: Final = Token("EMPTY", "", "", "")  # {} : what a script then stands at floats
_GROUP_END: Final = frozenset("}")
_BRACKET_END: Final = frozenset("]")
_CELL_END: Final = frozenset(("&", r"\\", r"\cr", r"\end", r"\tabularnewline", r"\newline"))
_NOTHING: Final[frozenset[str]] = frozenset()
_BINDING_ROLES = {
    r"\mathbin": ("BINOP", ("ADDOP", "MULOP")),
    r"\mathrel": ("RELOP", ()),
    r"\mathop": ("BIGOP", ("ARROW", "SUMOP", "INTOP", "DIFFOP")),
    r"\mathopen": ("OPEN", ()),
    r"\mathclose": ("CLOSE", ()),
    r"\mathpunct": ("PUNCT", ("PERIOD",)),
    r"\mathord": ("ID", ("NUMBER",)),
}
_UPRIGHT = frozenset(("rm", "bf", "sf", "tt", "it"))
_ENDS_LINE = frozenset((r"\\", r"\cr", r"\tabularnewline", r"\newline"))

Handler = Callable[["Reader", str, "list[Node]"], "Node | None"]
_HANDLERS: dict[str, Handler] = {}


def _handles(*commands: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for command in commands:
            _HANDLERS[command] = handler
        return handler

    return register


class Reader:
    """One pass over the tokens of a formula. ``macros`` are those known from elsewhere; the formula may define more."""

    def __init__(self, latex: str, macros: Macros | None = None) -> None:
        stack = latex_tokens.tokens(latex)
        if len(stack) > MAX_TOKENS:
            raise FormulaError(f"a formula of {len(stack):,} tokens; at most {MAX_TOKENS:,} are read", kind="too_long")
        stack.reverse()
        self.stack = stack
        self.macros: dict[str, Macro] = dict(macros) if macros else {}
        self.lists: list[MathList] = []
        self.depth = 0
        self.font = ""
        self.display = False
        self.stopped = ""
        self.stop = _NOTHING
        self.expansions = 0
        self.columns = 0

    def formula(self) -> MathList:
        """The list of the whole formula."""
        items = self.items(_NOTHING)
        if self.stack:  # pragma: no cover - items() reads to the end where nothing stops it
            raise FormulaError("symbols are left over after the formula", kind="syntax")
        whole = MathList([item for item in items if item is not _EMPTY], "Anything,")
        self.lists.append(whole)
        return whole

    # ---- reading lists -------------------------------------------------------------------------------------------

    def items(self, stop: frozenset[str]) -> list[Node]:
        """The items up to a token of ``stop``, which is used up and kept in ``stopped``."""
        stack = self.stack
        out: list[Node] = []
        space = 0.0
        broken = False  # by the end of a line, which numbers do not run over
        symbols = SYMBOLS
        self.stopped = ""
        while stack:
            token = stack.pop()
            if token in stop:
                self.stopped = token
                break
            node: Node | None = symbols.get(token)
            if node is None:
                if token.isspace():
                    continue
                width = SPACES.get(token)
                if width is not None:
                    space += width
                    continue
                if token in self.macros:
                    self._expand(token)
                    continue
                if token in _SPACE_COMMANDS:
                    space += self._given_space(token)
                    continue
            elif self.macros and token in self.macros:
                self._expand(token)
                continue
            spaced = space != 0.0
            if spaced:
                if space >= WIDE - 0.1 and out and out[-1].role != "PUNCT":
                    out.append(SPACE)
                space = 0.0
            if node is not None:
                if self.font in _UPRIGHT and token in LETTERS:
                    node = self._word(token)
                elif self.display and token in LIMITS_IN_DISPLAY:
                    node = _with_limits(node, True)
            elif token[0].isdigit() or (token[0] == "." and len(token) > 1 and token != "..."):
                node = self._number(token, out)
            else:
                handler = _HANDLERS.get(token)
                if handler is not None:
                    node = handler(self, token, out)
                    if node is None:
                        if handler is _fraction_of_all:
                            out.append(self._rest_as_denominator(token, out, stop))
                            break
                        continue
                else:
                    node = self._other(token)
                    if node is None:
                        broken = token in _ENDS_LINE
                        continue
            if out:
                before = out[-1]
                if node.role == "NUMBER" and before.role == "NUMBER" and not broken:
                    out[-1] = _joined_numbers(before, node, spaced)
                    continue
                if type(node) is Fraction and before.role == "NUMBER" and _is_of_numbers(node):
                    out[-1] = Infix(INVISIBLE_PLUS, [before, node])
                    continue
                if node is before and node in _DOT_TRIPLES and len(out) > 1 and out[-2] is node:
                    out[-2:] = [_DOT_TRIPLES[node]]
                    continue
                if node is _COLON_EQUALS_PART and before is _COLON:
                    out[-1] = _ASSIGN
                    continue
                if node is _FACTORIAL and before is _FACTORIAL:
                    out[-1] = _DOUBLE_FACTORIAL
                    continue
            out.append(node)
            broken = False
        if space >= WIDE - 0.1 and out and out[-1].role != "PUNCT":
            out.append(SPACE)
        return out

    def _expand(self, token: str) -> None:
        self.expansions += 1
        if self.expansions > MAX_EXPANSIONS:
            raise FormulaError(f"more than {MAX_EXPANSIONS:,} uses of macros; does {token} use itself?", kind="macros")
        latex_tokens.expand(self.macros[token], self.stack)
        if len(self.stack) > MAX_TOKENS:
            raise FormulaError(f"{token} expands to more than {MAX_TOKENS:,} tokens", kind="too_long")

    def math_list(self, items: list[Node], rule: str = "Anything") -> Node:
        """The items as one part: a list for the grammar, or the only item itself."""
        if any(item is _EMPTY for item in items):
            items = [item for item in items if item is not _EMPTY]
        if len(items) == 1:
            return items[0]
        whole = MathList(items, rule)
        self.lists.append(whole)
        return whole

    def within(self, stop: frozenset[str]) -> list[Node]:
        """The items of a group that has just been opened; fonts and styles set in it end with it."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(
                f"groups are nested more than {MAX_DEPTH} deep; no tree is made of that", kind="too_deep"
            )
        font, display = self.font, self.display
        outer, self.stop = self.stop, stop
        items = self.items(stop)
        self.stop = outer
        self.font, self.display = font, display
        self.depth -= 1
        return items

    def argument_items(self) -> list[Node]:
        """The items of the next argument: a braced group, or one token and what it takes."""
        stack = self.stack
        while stack:
            token = stack.pop()
            if token.isspace():
                continue
            if token == "{":
                return [item for item in self.within(_GROUP_END) if item is not _EMPTY]
            if token == "}" or token in _CELL_END:
                stack.append(token)
                return []
            if token in self.macros:
                self._expand(token)
                continue
            if len(token) > 1 and (token[0].isdigit() or token[0] == "."):
                stack.append(token[1:])
                token = token[0]
            found = SYMBOLS.get(token)
            if found is not None and not self.font:
                return [found]
            # One token and what it takes: read it as a list that stops behind it.
            rest, self.stack = stack, [token]
            try:
                if token[0] == "\\":
                    self.stack = rest
                    rest.append(token)
                    return self._one_item()
                items = self.items(_NOTHING)
            finally:
                self.stack = rest
            return items
        return []

    def _one_item(self) -> list[Node]:
        """The first item that the tokens make: of ``x^\\frac12``, the fraction."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(
                f"commands are nested more than {MAX_DEPTH} deep; no tree is made of that", kind="too_deep"
            )
        out: list[Node] = []
        stack = self.stack
        while stack and not out:
            token = stack.pop()
            if token.isspace() or token in SPACES:
                continue
            if token == "{":
                out = [item for item in self.within(_GROUP_END) if item is not _EMPTY]
                break
            if token == "}" or token in _CELL_END:
                stack.append(token)
                break
            if token in self.macros:
                self._expand(token)
                continue
            node: Node | None = SYMBOLS.get(token)
            if node is None:
                handler = _HANDLERS.get(token)
                if handler is _fraction_of_all:
                    continue
                node = handler(self, token, out) if handler is not None else self._other(token)
            if node is not None:
                out.append(node)
        self.depth -= 1
        return out

    def argument(self, rule: str = "Anything") -> Node:
        """The next argument as one part."""
        return self.math_list(self.argument_items(), rule)

    def optional(self, rule: str = "Anything") -> Node | None:
        """An argument in square brackets, if there is one."""
        given = latex_tokens.bracketed(self.stack)
        if given is None:
            return None
        return self.math_list(self.of_tokens(given), rule)

    def of_tokens(self, given: list[str]) -> list[Node]:
        """The items that these tokens make, read apart from what follows."""
        rest, self.stack = self.stack, given[::-1]
        items = self.within(_NOTHING)
        self.stack = rest
        return [item for item in items if item is not _EMPTY]

    def name_argument(self) -> str:
        """An argument that is a name or a length, not mathematics."""
        return "".join(latex_tokens.group(self.stack) or []).strip()

    def next_token(self) -> str:
        """The next token that is no space; it stays where it is."""
        stack = self.stack
        while stack and stack[-1].isspace():
            stack.pop()
        return stack[-1] if stack else ""

    def star(self) -> bool:
        """Whether a star follows; it is used up."""
        if self.next_token() == "*":
            self.stack.pop()
            return True
        return False

    # ---- single symbols ------------------------------------------------------------------------------------------

    def _word(self, letter: str) -> Token:
        """Letters in an upright font that stand side by side are one name."""
        stack = self.stack
        word = letter
        while stack and (stack[-1] in LETTERS or stack[-1].isdigit()) and (stack[-1].isdigit() or stack[-1].isascii()):
            word += stack.pop()
        return LETTERS[word] if len(word) == 1 else symbol("UNKNOWN", word)

    def _number(self, token: str, out: list[Node]) -> Token:
        return symbol("NUMBER", token)

    def _other(self, token: str) -> Node | None:
        """A character or a command that no table has."""
        if token[0] != "\\":
            if token in ("}", "&", "$"):
                return None
            return symbol("UNKNOWN", token)
        if token in _IGNORED or token == "\\":
            return None
        return Token("ATOM", token, "E!", f"T!{clean_plain(token)}")

    def _given_space(self, command: str) -> float:
        """The width of ``\\hspace{1cm}`` and its like, in points."""
        stack = self.stack
        if command in (r"\hspace", r"\mspace"):
            self.star()
            return _points("".join(latex_tokens.group(stack) or []))
        if command in (r"\phantom", r"\hphantom"):
            return 5.0 * len(self.argument_items())
        if command == r"\vphantom":
            self.argument_items()
            return 0.0
        text = ""
        while (token := self.next_token()) and (token in "+-." or token[0] in "0123456789."):
            text += stack.pop()
        unit = ""
        while text and len(unit) < 2 and (token := self.next_token()).isalpha() and token.isascii():
            unit += stack.pop()
        if unit and unit not in _UNITS:
            stack.extend(reversed(unit))
        text += unit
        return _points(text)

    # ---- scripts and fractions -----------------------------------------------------------------------------------

    def script(self, out: list[Node], sup: bool, script: Node) -> None:
        """Add a script to what stands before it: on its base, on another script, or on nothing."""
        floating = True
        seen = 0
        for position in range(len(out) - 1, -1, -1):
            item = out[position]
            if item is _EMPTY:
                floating = True
                break
            if type(item) is ScriptMark and item.level <= self.depth:
                if item.sup == sup:
                    floating = True
                    break
                floating = False
                seen += 1
                if item.floating or seen > 1:
                    break
            else:
                floating = False
                break
        out.append(ScriptMark(script, sup, floating, self.depth))

    def _rest_as_denominator(self, command: str, out: list[Node], stop: frozenset[str]) -> Node:
        numerator = self.math_list([item for item in out if item is not _EMPTY])
        out.clear()
        if command == r"\above":
            self._given_space(command)
        denominator = self.math_list([item for item in self.items(stop) if item is not _EMPTY])
        if command in (r"\over", r"\above"):
            return Fraction(numerator, denominator)
        if command == r"\choose":
            return _binomial(numerator, denominator)
        bare = Fraction(numerator, denominator, name="")
        if command == r"\atop":
            return bare
        left, right = (r"\{", r"\}") if command == r"\brace" else ("[", "]")
        return Row([SYMBOLS[left], bare, SYMBOLS[right]])

    # ---- tables --------------------------------------------------------------------------------------------------

    def rows(self, end: frozenset[str]) -> list[list[list[Node]]]:
        """The items of each cell, row by row, up to a token of ``end``."""
        rows: list[list[list[Node]]] = [[]]
        while True:
            cell = [item for item in self.within(end | _CELL_END) if item is not _EMPTY]
            rows[-1].append(cell)
            stopped = self.stopped
            if stopped == "&":
                continue
            if stopped in _ENDS_LINE:
                if self.next_token() == "*":
                    self.stack.pop()
                if stopped == r"\\" and self.next_token() == "[":
                    latex_tokens.bracketed(self.stack)
                rows.append([])
                continue
            break
        if len(rows) > 1 and (not rows[-1] or rows[-1] == [[]]):
            rows.pop()
        return rows

    def cells(self, rows: list[list[list[Node]]]) -> list[list[Node]]:
        """Each cell as one part; an empty cell is nothing."""
        return [[self.math_list(cell, "Anything,") if cell else ABSENT for cell in row] for row in rows]


def _points(text: str) -> float:
    """A length such as ``1.5em`` in points, at ten points an em."""
    text = text.replace(" ", "")
    number = text[:-2]
    try:
        return float(number) * _UNITS.get(text[-2:], 0.0)
    except ValueError:
        return 0.0


_UNITS = {
    "pt": 1.0,
    "em": 10.0,
    "ex": 4.3,
    "mu": 1 / 1.8,
    "mm": 2.845,
    "cm": 28.45,
    "in": 72.27,
    "px": 0.75,
    "pc": 12.0,
}
_SPACE_COMMANDS = frozenset(
    (r"\hspace", r"\mspace", r"\hskip", r"\kern", r"\mkern", r"\mskip", r"\phantom", r"\hphantom", r"\vphantom")
)
_IGNORED = frozenset(
    r"""\displaylimits \nonumber \notag \strut \mathstrut \par \hfill \hfil \hline \relax \null \noindent \allowbreak
    \nobreak \limits \nolimits \large \Large \LARGE \huge \Huge \small \tiny \normalsize \footnotesize \scriptsize \it
    \protect \unskip \vfill \newline \linebreak \nolinebreak \break \ignorespaces \bgroup \egroup \begingroup \endgroup
    \mathsurround \centering \displaybreak \hss \vss \quad \\ \cr \( \) \[ \] \- \/ \@ \noalign \DOTSB \DOTSI \DOTSX""".split()
)
_COLON = SYMBOLS[":"]
_COLON_EQUALS_PART = SYMBOLS["="]
_ASSIGN = SYMBOLS[":="]
_FACTORIAL = SYMBOLS["!"]
_DOUBLE_FACTORIAL = SYMBOLS["!!"]
_PRIME = SYMBOLS[r"\prime"]
_DOT_TRIPLES = {SYMBOLS["."]: SYMBOLS[r"\ldots"], SYMBOLS[r"\cdot"]: SYMBOLS[r"\cdots"]}


def _joined_numbers(first: Node, second: Node, spaced: bool) -> Token:
    """Two numbers side by side are one; a space between them is seen, but means nothing."""
    assert isinstance(first, Token)
    assert isinstance(second, Token)
    digits = first.value + second.value
    return Token("NUMBER", digits, f"{first.slt}{' ' if spaced else ''}{second.value}", f"N!{digits}")


def _is_of_numbers(fraction: Fraction) -> bool:
    parts = (fraction.numerator, fraction.denominator)
    return fraction.name == "divide" and all(part.role == "NUMBER" for part in parts)


def _binomial(top: Node, bottom: Node) -> Node:
    bare = Fraction(top, bottom, name="binomial")
    return Dual(bare, Row([SYMBOLS["("], bare, SYMBOLS[")"]]))


# ---- handlers: groups, scripts, fonts, text ----------------------------------------------------------------------


@_handles("{")
def _group(reader: Reader, token: str, out: list[Node]) -> None:
    items = reader.within(_GROUP_END)
    if items:
        out.extend(items)
    else:
        out.append(_EMPTY)


@_handles("^", "_")
def _script(reader: Reader, token: str, out: list[Node]) -> None:
    sup = token == "^"
    display, reader.display = reader.display, False
    items = reader.argument_items()
    reader.display = display
    if items:
        reader.script(out, sup, reader.math_list(items, "Superscript" if sup else "Subscript"))


@_handles("'")
def _primes(reader: Reader, token: str, out: list[Node]) -> None:
    stack = reader.stack
    items: list[Node] = [_PRIME]
    while stack and stack[-1] == "'":
        stack.pop()
        items.append(_PRIME)
    if reader.next_token() == "^":
        stack.pop()
        items += reader.argument_items()
    reader.script(out, True, reader.math_list(items, "Superscript"))


_FONT_OF_COMMAND = {
    r"\mathrm": "rm", r"\mathbf": "bf", r"\mathsf": "sf", r"\mathtt": "tt", r"\mathit": "it", r"\mathbb": "bb",
    r"\mathcal": "cal", r"\mathscr": "scr", r"\mathfrak": "frak", r"\mathnormal": "", r"\boldsymbol": "bi",
    r"\bm": "bi", r"\pmb": "bi", r"\Bbb": "bb", r"\mathds": "bb", r"\symbf": "bf", r"\mathbfit": "bi", r"\bold": "bf",
    r"\frak": "frak", r"\mathup": "rm", r"\mathbfcal": "cal", r"\mathbbm": "bb", r"\mathbold": "bi",
}  # fmt: skip
_FONT_OF_SWITCH = {
    r"\rm": "rm", r"\bf": "bf", r"\sf": "sf", r"\tt": "tt", r"\cal": "cal", r"\scr": "scr", r"\mit": "",
    r"\sl": "it", r"\rmfamily": "rm", r"\bfseries": "bf", r"\sffamily": "sf", r"\ttfamily": "tt", r"\boldmath": "bi",
    r"\textstyle": "", r"\upshape": "rm",
}  # fmt: skip


@_handles(*_FONT_OF_COMMAND)
def _font(reader: Reader, token: str, out: list[Node]) -> None:
    font, reader.font = reader.font, _FONT_OF_COMMAND[token]
    if reader.next_token() == "{":
        items = reader.argument_items()
    else:
        given = latex_tokens.group(reader.stack)
        items = reader.of_tokens(given) if given else []
    reader.font = font
    out.extend(items)


@_handles(*_FONT_OF_SWITCH)
def _font_switch(reader: Reader, token: str, out: list[Node]) -> None:
    if token != r"\textstyle":
        reader.font = _FONT_OF_SWITCH[token]
    else:
        reader.display = False


@_handles(r"\displaystyle")
def _display(reader: Reader, token: str, out: list[Node]) -> None:
    reader.display = True


@_handles(r"\scriptstyle", r"\scriptscriptstyle")
def _script_style(reader: Reader, token: str, out: list[Node]) -> None:
    reader.display = False


_TEXT_COMMANDS = (
    r"\text", r"\textrm", r"\textbf", r"\textit", r"\texttt", r"\textsf", r"\textnormal", r"\textup", r"\textsc",
    r"\mbox", r"\hbox", r"\textmd", r"\textsl", r"\emph", r"\fbox", r"\vbox", r"\intertext", r"\shortintertext",
    r"\mathtext", r"\texttip",
)  # fmt: skip
_TEXT_CHARACTERS = {
    "~": "\u00a0", "``": "“", "''": "”", r"\ ": " ", r"\&": "&", r"\%": "%", r"\$": "$", r"\#": "#", r"\_": "_",
    r"\{": "{", r"\}": "}", "`": "‘", "'": "’", r"\quad": " ", r"\qquad": " ", r"\,": " ", r"\;": " ", r"\:": " ",
    r"\ldots": "…", r"\dots": "…", r"\\": " ", r"\newline": " ", r"\space": " ", r"\S": "§", r"\P": "¶", r"\ss": "ß",
    r"\o": "ø", r"\O": "Ø", r"\ae": "æ", r"\AE": "Æ", r"\aa": "å", r"\AA": "Å", r"\textbackslash": "\\", r"\i": "ı",
}  # fmt: skip


@_handles(*_TEXT_COMMANDS)
def _text(reader: Reader, token: str, out: list[Node]) -> Node | None:
    parts: list[str | Node] = []
    words: list[str] = []
    given = list(reversed(latex_tokens.group(reader.stack) or []))
    while given:
        piece = given.pop()
        if piece in ("$", r"\(", r"\)"):
            if piece == "$" and given and given[-1] == "$":
                given.pop()
            inner: list[str] = []
            while given and given[-1] not in ("$", r"\)"):
                inner.append(given.pop())
            while given and given[-1] in ("$", r"\)"):
                given.pop()
                break
            if words:
                parts.append("".join(words))
                words = []
            if inner:
                font, reader.font = reader.font, ""
                parts.append(reader.math_list(reader.of_tokens(inner), "Anything,"))
                reader.font = font
        elif piece in _TEXT_CHARACTERS:
            if given and piece + given[-1] in _TEXT_CHARACTERS:
                piece += given.pop()
            words.append(_TEXT_CHARACTERS[piece])
        elif piece in ("{", "}") or (piece[0] == "\\" and len(piece) > 1):
            continue
        else:
            words.append(piece)
    if words:
        parts.append("".join(words))
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    return Text(parts)


@_handles(r"\operatorname", r"\operatornamewithlimits", r"\mathoperator", r"\operatorname*")
def _operator_name(reader: Reader, token: str, out: list[Node]) -> Node:
    limits = reader.star() or token == r"\operatornamewithlimits"
    limits = limits and reader.display
    words = []
    for piece in latex_tokens.group(reader.stack) or []:
        if piece in (r"\,", r"\ ", r"\;", r"\:", "~"):
            words.append(" ")
        elif piece[0] != "\\" and not piece.isspace() and piece not in "{}$":
            words.append(piece)
    return symbol("OPFUNCTION", "".join(words), limits=limits)


# ---- handlers: constructs ----------------------------------------------------------------------------------------


@_handles(r"\frac", r"\tfrac", r"\dfrac", r"\cfrac", r"\nicefrac", r"\sfrac", r"\flatfrac", r"\lfrac")
def _fraction(reader: Reader, token: str, out: list[Node]) -> Node:
    if token == r"\cfrac":
        latex_tokens.bracketed(reader.stack)
    display, reader.display = reader.display, False
    numerator = reader.argument()
    denominator = reader.argument()
    reader.display = display
    return Fraction(numerator, denominator, "continued-fraction" if token == r"\cfrac" else "divide")


@_handles(r"\binom", r"\dbinom", r"\tbinom")
def _binomial_command(reader: Reader, token: str, out: list[Node]) -> Node:
    return _binomial(reader.argument(), reader.argument())


@_handles(r"\genfrac")
def _general_fraction(reader: Reader, token: str, out: list[Node]) -> Node:
    left, right, thickness, _ = (reader.name_argument() for _ in range(4))
    bare = Fraction(reader.argument(), reader.argument(), "divide" if not thickness.startswith("0") else "")
    if left in SYMBOLS and right in SYMBOLS:
        return Row([SYMBOLS[left], bare, SYMBOLS[right]])
    return bare


@_handles(r"\over", r"\atop", r"\choose", r"\brace", r"\brack", r"\above")
def _fraction_of_all(reader: Reader, token: str, out: list[Node]) -> None:
    """All before the command over all after it; :meth:`Reader.items` reads on."""


@_handles(r"\sqrt", r"\surd{")
def _root(reader: Reader, token: str, out: list[Node]) -> Node:
    index = reader.optional()
    return Root(reader.argument(), index)


@_handles(r"\root")
def _root_of(reader: Reader, token: str, out: list[Node]) -> Node:
    index: list[str] = []
    while reader.stack and reader.stack[-1] != r"\of":
        index.append(reader.stack.pop())
    if reader.stack:
        reader.stack.pop()
    return Root(reader.argument(), reader.math_list(reader.of_tokens(index)))


@_handles(*ACCENTS)
def _accent(reader: Reader, token: str, out: list[Node]) -> Node:
    mark, over = ACCENTS[token]
    return Accent(mark, reader.argument(), over, token in LIMIT_ACCENTS)


@_handles(r"\varinjlim", r"\varprojlim", r"\varliminf", r"\varlimsup")
def _marked_limit(reader: Reader, token: str, out: list[Node]) -> Node:
    mark, over, meaning = _LIMIT_MARKS[token]
    return Dual(symbol("LIMITOP", "lim", meaning), Accent(mark, _LIM, over), role="LIMITOP")


_LIM = symbol("OPFUNCTION", "lim")
_LIMIT_MARKS = {
    r"\varinjlim": (SYMBOLS[r"\to"], False, "injective-limit"),
    r"\varprojlim": (SYMBOLS[r"\gets"], False, "projective-limit"),
    r"\varliminf": (ACCENTS[r"\underline"][0], False, "limit-infimum"),
    r"\varlimsup": (ACCENTS[r"\overline"][0], True, "limit-supremum"),
}


@_handles(r"\overset", r"\stackrel", r"\underset", r"\buildrel")
def _set_over(reader: Reader, token: str, out: list[Node]) -> Node:
    if token == r"\buildrel":
        mark: list[str] = []
        while reader.stack and reader.stack[-1] != r"\over":
            mark.append(reader.stack.pop())
        if reader.stack:
            reader.stack.pop()
        above = reader.math_list(reader.of_tokens(mark), "Anything,")
    else:
        above = reader.argument("Anything,")
    base = reader.argument()
    if token in (r"\overset", r"\underset"):
        return Accent(above, base, token == r"\overset")
    return Script(base, ScriptMark(above, True, False, reader.depth), "mid", "RELOP")


@_handles(
    r"\xrightarrow",
    r"\xleftarrow",
    r"\xmapsto",
    r"\xrightleftharpoons",
    r"\xhookrightarrow",
    r"\xleftrightarrow",
    r"\xRightarrow",
    r"\xlongequal",
)
def _long_arrow(reader: Reader, token: str, out: list[Node]) -> Node:
    below = reader.optional("Anything,")
    above = reader.argument("Anything,")
    arrow = _LONG_ARROWS[token]
    over = Accent(above, arrow, True, role="ARROW")
    return over if below is None else Accent(below, over, False, role="ARROW")


_LONG_ARROWS = {
    r"\xrightarrow": SYMBOLS[r"\to"],
    r"\xleftarrow": SYMBOLS[r"\gets"],
    r"\xmapsto": SYMBOLS[r"\mapsto"],
    r"\xrightleftharpoons": SYMBOLS[r"\rightleftharpoons"],
    r"\xhookrightarrow": SYMBOLS[r"\hookrightarrow"],
    r"\xleftrightarrow": SYMBOLS[r"\leftrightarrow"],
    r"\xRightarrow": SYMBOLS[r"\Rightarrow"],
    r"\xlongequal": SYMBOLS["="],
}


@_handles(*_BINDING_ROLES)
def _binding(reader: Reader, token: str, out: list[Node]) -> Node | None:
    role, kept = _BINDING_ROLES[token]
    items = reader.argument_items()
    limits = token == r"\mathop" and reader.display
    if len(items) == 1 and isinstance(items[0], Token):
        only = items[0]
        if only.role in kept:
            return only
        return Token(role, only.value, only.slt, only.opt, name=only.name, limits=limits)
    if not items:
        return None
    return Wrapped(reader.math_list(items), role, limits)


@_handles(
    r"\mathinner",
    r"\ensuremath",
    r"\mathrlap",
    r"\mathllap",
    r"\mathclap",
    r"\rlap",
    r"\llap",
    r"\smash",
    r"\hphantom ",
    r"\vcenter",
    r"\raisebox ",
    r"\mathchoice",
)
def _transparent(reader: Reader, token: str, out: list[Node]) -> None:
    if token == r"\mathchoice":
        choices = [latex_tokens.group(reader.stack) or [] for _ in range(4)]
        out.extend(reader.of_tokens(choices[1]))
        return
    if token == r"\smash":
        latex_tokens.bracketed(reader.stack)
    out.extend(reader.argument_items())


@_handles(r"\boxed", r"\bbox", r"\framebox", r"\fcolorbox", r"\colorbox")
def _box(reader: Reader, token: str, out: list[Node]) -> Node:
    latex_tokens.bracketed(reader.stack)
    for _ in range({r"\fcolorbox": 2, r"\colorbox": 1}.get(token, 0)):
        reader.name_argument()
    return Enclosure("box", reader.argument())


@_handles(r"\cancel", r"\bcancel", r"\xcancel", r"\enclose")
def _cancel(reader: Reader, token: str, out: list[Node]) -> Node:
    if token == r"\enclose":
        notation = reader.name_argument()
        latex_tokens.bracketed(reader.stack)
        return Enclosure(notation, reader.argument())
    notation = {r"\cancel": "updiagonalstrike", r"\bcancel": "downdiagonalstrike"}.get(
        token, "updiagonalstrike downdiagonalstrike"
    )
    return Enclosure(notation, reader.argument(), _CANCEL)


_CANCEL = Token("ENCLOSE", "", "", opt_label("cancel"))
_NOT = Token("ENCLOSE", "", "", opt_label("not"))


@_handles(r"\not", r"\centernot")
def _not(reader: Reader, token: str, out: list[Node]) -> Node | None:
    items = reader.argument_items()
    if not items:
        return None
    first, *rest = items
    if rest:
        return Enclosure("updiagonalstrike", reader.math_list(items), _NOT)
    if isinstance(first, Token) and len(first.value) == 1:
        text = NEGATIONS.get(first.value, first.value + "\u0338")
        meaning = first.name if first.opt[:2] != "V!" else ""
        negated = symbol(first.role, text, f"not-{meaning}" if meaning else "", limits=first.limits)
        return negated
    return Enclosure("updiagonalstrike", first, _NOT)


@_handles(r"\limits", r"\nolimits", r"\displaylimits")
def _limits(reader: Reader, token: str, out: list[Node]) -> None:
    if out and token != r"\displaylimits":
        last = out[-1]
        if isinstance(last, Token) and last.role in ("OPFUNCTION", "BIGOP"):
            out[-1] = _with_limits(last, token == r"\limits")
        elif isinstance(last, Wrapped):
            out[-1] = Wrapped(last.inner, last.role, token == r"\limits")


def _with_limits(token: Token, limits: bool) -> Token:
    return Token(
        token.role, token.value, token.slt, token.opt, name=token.name + ("*" if limits else ""), limits=limits
    )


@_handles(r"\pmod", r"\pod")
def _parenthesized_mod(reader: Reader, token: str, out: list[Node]) -> Node:
    number = reader.argument()
    shown: list[Node] = [SYMBOLS["("], Row([_MOD, number] if token == r"\pmod" else [number]), SYMBOLS[")"]]
    return Dual(Prefix(_PMOD, [number]), Row(shown), role="MODIFIER")


_MOD = Token("MODIFIEROP", "mod", "mod", "V!mod")
_PMOD = Token("FUNCTION", "pmod", "V!pmod", "V!pmod")


@_handles(r"\mod")
def _mod(reader: Reader, token: str, out: list[Node]) -> Node:
    return SYMBOLS[r"\bmod"]


@_handles(r"\dots")
def _dots(reader: Reader, token: str, out: list[Node]) -> Node:
    """Dots are raised before an operator and low elsewhere."""
    following = SYMBOLS.get(reader.next_token())
    raised = following is not None and following.role in ("ADDOP", "MULOP", "RELOP")
    return SYMBOLS[r"\cdots" if raised else r"\ldots"]


@_handles(r"\substack")
def _substack(reader: Reader, token: str, out: list[Node]) -> Node:
    if reader.next_token() != "{":
        return reader.argument()
    reader.stack.pop()
    rows = reader.rows(_GROUP_END)
    return Table(reader.cells(rows))


@_handles(r"\sideset")
def _sideset(reader: Reader, token: str, out: list[Node]) -> None:
    before = latex_tokens.group(reader.stack) or []
    after = latex_tokens.group(reader.stack) or []
    operator = reader.argument_items()
    out.append(_EMPTY)
    out.extend(reader.of_tokens(["{", "}", *before]))
    out.extend(operator)
    reader.stack.extend(reversed(after))


@_handles(r"\prescript")
def _prescript(reader: Reader, token: str, out: list[Node]) -> None:
    above = latex_tokens.group(reader.stack) or []
    below = latex_tokens.group(reader.stack) or []
    base = latex_tokens.group(reader.stack) or []
    reader.stack.extend(reversed(["{", "}", "^", "{", *above, "}", "_", "{", *below, "}", *base]))


# ---- handlers: delimiters ----------------------------------------------------------------------------------------

_DELIMITERS = frozenset("()[]{}⌊⌋⌈⌉⟨⟩↑⇑↓⇓↕⇕")
_ANGLES = {"<": "⟨", ">": "⟩", r"\lt": "⟨", r"\gt": "⟩"}
_SIDES = {"l": "OPEN", "r": "CLOSE", "m": "MIDDLE"}


@_handles(r"\left")
def _left(reader: Reader, command: str, out: list[Node]) -> None:
    r"""What stands between the delimiters is a group: ``\over`` splits it, and nothing else."""
    opening = _delimiter(reader, command, out)
    if opening is not None:
        out.append(opening)
    out.extend(reader.within(reader.stop | _RIGHT))
    if reader.stopped == r"\right":
        closing = _delimiter(reader, reader.stopped, out)
        if closing is not None:
            out.append(closing)
    elif reader.stopped:
        reader.stack.append(reader.stopped)


_RIGHT = frozenset((r"\right",))


@_handles(
    r"\right", r"\middle",
    *(rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")),
)  # fmt: skip
def _delimiter(reader: Reader, command: str, out: list[Node]) -> Node | None:
    side = {r"\left": "OPEN", r"\right": "CLOSE", r"\middle": "MIDDLE"}.get(command)
    if side is None and command[-1] in "lrm":
        side = _SIDES[command[-1]]
    token = reader.next_token()
    while token in reader.macros:
        reader.stack.pop()
        reader.stack.append(token)
        reader.stack.pop()
        reader._expand(token)
        token = reader.next_token()
    if not token or token == "}":
        return None
    reader.stack.pop()
    if token[0] == "." and len(token) > 1:  # a number behind the invisible delimiter
        reader.stack.append(token[1:])
        token = "."
    if token == ".":
        return None
    if token == "{":  # a braced delimiter, or a forgotten backslash
        inner = reader.within(_GROUP_END)
        out.extend(item for item in inner if item is not _EMPTY)
        return None
    token = _ANGLES.get(token, token)
    found = SYMBOLS.get(token)
    if found is None:
        reader.stack.append(token)
        return None
    if side is None:
        return found
    key = (found.value, side)
    delimiter = _MADE_DELIMITERS.get(key)
    if delimiter is None:
        if found.value in _DELIMITERS:
            role = side
        elif found.role == "VERTBAR":
            role = "MIDDLE" if side == "MIDDLE" else "VERTBAR"
        else:
            role = found.role
        delimiter = Token(
            role,
            found.value,
            found.slt if found.slt[1:2] != "!" else found.slt[2:],
            f"V!{clean_plain(found.value)}",
            name=found.value if found.name.endswith("Vert") else found.name,
        )
        _MADE_DELIMITERS[key] = delimiter
    return delimiter


_MADE_DELIMITERS: dict[tuple[str, str], Token] = {}

# ---- handlers: environments --------------------------------------------------------------------------------------

_FENCES = {
    "pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "Bmatrix": (r"\{", r"\}"), "vmatrix": (r"\vert", r"\vert"),
    "Vmatrix": (r"\|", r"\|"), "psmallmatrix": ("(", ")"), "bsmallmatrix": ("[", "]"),
}  # fmt: skip
_ALIGNED = frozenset(("aligned", "split", "gathered", "alignedat", "multlined"))
_WITH_COLUMNS = frozenset(("array", "tabular", "subarray", "alignat", "alignedat", "xalignat", "darray"))
_CASES = frozenset(("cases", "dcases", "rcases", "numcases"))
_DETERMINANT = Token("LIMITOP", "det", "det", opt_label("determinant"))


@_handles(r"\begin")
def _environment(reader: Reader, token: str, out: list[Node]) -> Node | None:
    name = reader.name_argument()
    bare = name.rstrip("*")
    latex_tokens.bracketed(reader.stack) if bare in _WITH_COLUMNS or bare in _ALIGNED else None
    if bare in _WITH_COLUMNS:
        latex_tokens.group(reader.stack)
    rows = reader.rows(_NOTHING)
    if reader.stopped == r"\end":
        reader.name_argument()
    return _table_of(reader, bare, rows)


@_handles(
    r"\matrix",
    r"\pmatrix",
    r"\cases",
    r"\eqalign",
    r"\eqalignno",
    r"\bordermatrix",
    r"\displaylines",
    r"\aligned",
    r"\bmatrix",
    r"\vmatrix",
    r"\array",
    r"\smallmatrix",
    r"\Vmatrix",
    r"\Bmatrix",
    r"\split",
    r"\gathered",
    r"\align",
    r"\ialign",
    r"\halign",
)
def _plain_table(reader: Reader, token: str, out: list[Node]) -> Node | None:
    if reader.next_token() != "{":
        return None
    reader.stack.pop()
    rows = reader.rows(_GROUP_END)
    name = token[1:]
    return _table_of(reader, "aligned" if name.startswith("eqalign") else name, rows)


def _table_of(reader: Reader, name: str, rows: list[list[list[Node]]]) -> Node | None:
    if name in ("equation", "math", "displaymath"):
        return reader.math_list([item for row in rows for cell in row for item in cell], "Anything,")
    cells = reader.cells(rows)
    if name in _CASES:
        cells = [[*row, ABSENT] if len(row) == 1 else row for row in cells]
        table = Table(cells)
        flat = [
            Text(()) if cell is ABSENT else cell
            for row in cells
            for cell in (*row, *([ABSENT] if len(row) < 2 else []))
        ]
        return Dual(Named("cases", flat), Row([SYMBOLS[r"\{"], table]))
    if name in _ALIGNED and len(rows):
        table = Table(cells)
        merged = reader.math_list([item for row in rows for cell in row for item in cell], "Anything,")
        return Dual(merged, table)
    table = Table(cells)
    fences = _FENCES.get(name)
    if fences is None:
        return table
    left, right = (SYMBOLS[fence] for fence in fences)
    content: Node = table
    if name == "vmatrix":
        content = Prefix(_DETERMINANT, [table])
    elif name == "Vmatrix":
        content = Named("norm", [table])
    return Dual(content, Row([left, table, right]))


# ---- handlers: definitions, and commands that leave nothing -------------------------------------------------------


@_handles(
    r"\newcommand", r"\renewcommand", r"\providecommand", r"\def", r"\DeclareMathOperator", r"\let", r"\gdef", r"\edef"
)
def _define(reader: Reader, token: str, out: list[Node]) -> None:
    definition = latex_tokens.read_definition(r"\def" if token in (r"\gdef", r"\edef") else token, reader.stack)
    if definition is not None:
        name, macro = definition
        if name not in macro.body:
            reader.macros[name] = macro


@_handles(
    r"\color",
    r"\label",
    r"\tag",
    r"\require",
    r"\vspace",
    r"\ref",
    r"\eqref",
    r"\cline",
    r"\class",
    r"\cssId",
    r"\style",
    r"\textcolor",
    r"\href",
    r"\rule",
    r"\raise",
    r"\lower",
    r"\hskip ",
    r"\leftroot",
    r"\uproot",
    r"\url",
    r"\pagecolor",
    r"\tiny ",
    r"\raisebox",
    r"\cite",
    r"\numberwithin",
    r"\mathcolor",
)
def _leaves_nothing(reader: Reader, token: str, out: list[Node]) -> None:
    reader.star()
    if token in (r"\raise", r"\lower"):
        reader._given_space(token)
        return
    if token in (r"\textcolor", r"\color", r"\rule", r"\raisebox"):
        latex_tokens.bracketed(reader.stack)
    latex_tokens.group(reader.stack)
    if token == r"\rule":
        latex_tokens.group(reader.stack)


@_handles(r"\multicolumn")
def _over_columns(reader: Reader, token: str, out: list[Node]) -> None:
    """A cell as wide as several: its contents."""
    latex_tokens.group(reader.stack)
    latex_tokens.group(reader.stack)
    out.extend(reader.argument_items())


@_handles(r"\cancelto")
def _cancel_to(reader: Reader, token: str, out: list[Node]) -> None:
    value = reader.argument()
    out.append(Enclosure("updiagonalstrike", reader.argument(), _CANCEL))
    reader.script(out, True, value)


@_handles("&", "$", r"\(", r"\)", "}")
def _stray(reader: Reader, token: str, out: list[Node]) -> None:
    """An alignment mark outside of a table, a dollar sign, a brace that closes nothing."""


@_handles(r"\end")
def _stray_end(reader: Reader, token: str, out: list[Node]) -> None:
    reader.name_argument()


@_handles(r"\qvar")
def _query_variable(reader: Reader, token: str, out: list[Node]) -> Node:
    return symbol("UNKNOWN", "?")


@_handles("...")
def _three_dots(reader: Reader, token: str, out: list[Node]) -> Node:
    return SYMBOLS[r"\ldots"]


@_handles(r"\unicode", r"\char", r"\unichar")
def _unicode(reader: Reader, token: str, out: list[Node]) -> Node | None:
    given = (
        (latex_tokens.group(reader.stack) or [""])[0:]
        if token == r"\unicode"
        else [reader.stack.pop() if reader.stack else ""]
    )
    text = "".join(given).strip()
    try:
        return symbol("UNKNOWN", chr(int(text[1:], 16) if text[:1] in ("x", '"') else int(text)))
    except (ValueError, OverflowError):
        return None


__all__ = ["MAX_DEPTH", "MAX_EXPANSIONS", "MAX_TOKENS", "Reader", "Script"]
