r"""LaTeX -> lists of symbols, each symbol with its part of speech.

>>> reader = Reader("{x}_{10} + y")
>>> [item.role for item in reader.formula().items]
['UNKNOWN', 'POSTSUB', 'ADDOP', 'UNKNOWN']

Arguments, scripts and cells are separate lists (:class:`~graphs.formulas.latex.nodes.MathList`); a braced group is not,
it only bounds fonts. ``Reader.lists`` has every list after the lists within it, so that the grammar can go through
them in order, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from graphs.errors import FormulaError
from graphs.formulas.latex.compounds import SPLITTING, joined, split
from graphs.formulas.latex.nodes import MathList, Node, ScriptMark, Token
from graphs.formulas.latex.spaces import SPACE_COMMANDS, given_space
from graphs.formulas.latex.symbols import LETTERS, LIMITS_IN_DISPLAY, SPACE, SPACES, SYMBOLS, WIDE, symbol
from graphs.formulas.latex.tokens import BuiltIn, Macro, Macros, bracketed, expansion, group, read_macros, tokens
from graphs.formulas.mathml import clean_plain

MAX_DEPTH: Final = 60
"""Groups, arguments and scripts nested deeper than this are refused."""
MAX_EXPANSIONS: Final = 2_000
"""Uses of macros in one formula; more mean a macro that never ends."""
MAX_TOKENS: Final = 40_000
"""Tokens of a formula; its macros and the empty cells of its tables may add as many."""

EMPTY: Final = Token("EMPTY", "", "", "")  # {} : a script after it has no base
GROUP_END: Final = frozenset("}")
CELL_END: Final = frozenset(("&", r"\\", r"\cr", r"\end", r"\tabularnewline", r"\newline"))
NOTHING: Final[frozenset[str]] = frozenset()
_DIGITS: Final = frozenset("0123456789")
_UPRIGHT = frozenset(("rm", "bf", "sf", "tt", "it"))
# Comments define nothing; \providecommand keeps a command that is known.
_NO_DEFINITION = re.compile(r"\\(?:providecommand|ProvideDocumentCommand)(?![A-Za-z])|(?P<kept>\\[\s\S])|%[^\n]*")
ENDS_LINE = frozenset((r"\\", r"\cr", r"\tabularnewline", r"\newline"))

Handler = Callable[["Reader", str, "list[Node]"], "Node | None"]
HANDLERS: dict[str, Handler] = {}
"""Handler of each command; the modules of commands add theirs, see :mod:`graphs.formulas.latex.commands`."""


def handles(*commands: str) -> Callable[[Handler], Handler]:
    """Register a function for these commands: it returns a node, or adds to the list and returns ``None``."""

    def register(handler: Handler) -> Handler:
        for command in commands:
            HANDLERS[command] = handler
        return handler

    return register


class Reader:
    """Parser of a formula, in one pass over its tokens. ``macros`` are known before it; the formula may define more."""

    def __init__(self, latex: str, macros: Macros | None = None) -> None:
        stack = tokens(latex)
        if len(stack) > MAX_TOKENS:
            raise FormulaError(
                f"the formula has {len(stack):,} tokens, at most {MAX_TOKENS:,} are read", kind="too_long"
            )
        stack.reverse()
        self.stack = stack
        self.macros: dict[str, Macro] = dict(macros) if macros else {}
        if macros:  # those that the formula defines are unknown up to their definition
            for name in read_macros(_NO_DEFINITION.sub(r"\g<kept>", latex)):
                self.macros.pop(name, None)
        self.lists: list[MathList] = []
        self.depth = 0
        self.font = ""
        self.display = False
        self.stopped = ""
        self.stop = NOTHING
        self.expansions = 0
        self.expanded = 0
        self.apart = False  # whether a space or a line end precedes the command that is read
        self.spanned = 0  # columns that cells of several columns take beyond their first

    def formula(self) -> MathList:
        """Read the whole formula as one list."""
        items = self.items(NOTHING)
        whole = MathList([item for item in items if item is not EMPTY], "Anything,")
        self.lists.append(whole)
        return whole

    # ---- reading lists -------------------------------------------------------------------------------------------

    def items(self, stop: frozenset[str]) -> list[Node]:  # noqa: C901
        """Read the items up to a token of ``stop``, which is used up and kept in ``stopped``."""
        stack = self.stack
        out: list[Node] = []
        space = 0.0
        broken = False  # at the end of a line, which ends a number
        symbols = SYMBOLS
        macros = self.macros
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
                if macros and self.is_macro(token):
                    self.expand(token)
                    continue
                if token in SPACE_COMMANDS:
                    space += given_space(self, token)
                    continue
            elif macros and self.is_macro(token):
                self.expand(token)
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
                    node = symbols[token].with_limits(True)
            elif token[-1] in _DIGITS:
                node = symbol("NUMBER", token)
            else:
                handler = HANDLERS.get(token)
                if handler is not None:
                    self.apart = spaced or broken
                    node = handler(self, token, out)
                    if node is None:
                        if token in SPLITTING:
                            out.append(self._rest_as_denominator(token, out, stop))
                            break
                        continue
                else:
                    node = self._other(token)
                    if node is None:
                        broken = token in ENDS_LINE
                        continue
            if not out or broken or not joined(out, node, spaced):
                out.append(node)
            broken = False
        if space >= WIDE - 0.1 and out and out[-1].role != "PUNCT":
            out.append(SPACE)
        return out

    def is_macro(self, token: str) -> bool:
        """Return whether the token is a macro, and not the built-in command of that name."""
        return token in self.macros and type(token) is not BuiltIn

    def expand(self, token: str) -> None:
        """Replace a macro, and its arguments at the end of ``stack``, by its expansion."""
        self.stack.extend(reversed(self.expansion(token)))

    def expansion(self, token: str) -> list[str]:
        """Return the tokens that a macro expands to; its arguments are removed from ``stack``."""
        self.expansions += 1
        if self.expansions > MAX_EXPANSIONS:
            raise FormulaError(f"more than {MAX_EXPANSIONS:,} uses of macros; does {token} use itself?", kind="macros")
        found = expansion(self.macros[token], self.stack)
        self.count(len(found), token)
        return found

    def count(self, added: int, source: str) -> None:
        """Count tokens of macros and empty cells; refuse a formula with too many."""
        self.expanded += added
        if self.expanded > MAX_TOKENS:
            raise FormulaError(
                f"macros and empty cells add more than {MAX_TOKENS:,} tokens, the last are of {source}", kind="too_long"
            )

    def math_list(self, items: list[Node], rule: str = "Anything") -> Node:
        """Make one part of the items: a list for the grammar, or the only item."""
        if any(item is EMPTY for item in items):
            items = [item for item in items if item is not EMPTY]
        if len(items) == 1:
            return items[0]
        whole = MathList(items, rule)
        self.lists.append(whole)
        return whole

    def within(self, stop: frozenset[str]) -> list[Node]:
        """Read the items of an open group; fonts and styles set in it end with it."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(f"groups are nested more than {MAX_DEPTH} deep, too deep for a tree", kind="too_deep")
        font, display = self.font, self.display
        outer, self.stop = self.stop, stop
        items = self.items(stop)
        self.stop = outer
        self.font, self.display = font, display
        self.depth -= 1
        return items

    def argument_items(self) -> list[Node]:
        r"""Read the items of a command's next argument: of ``\frac\dy\dx``, all that ``\dy`` expands to."""
        token = self.next_token()
        if not self.is_macro(token):
            return self.field_items()
        self.stack.pop()
        return self.of_tokens(self.expansion(token))

    def field_items(self) -> list[Node]:
        r"""Read the items of a script, an accent or a root: of ``x^\dy``, only the first item that ``\dy`` expands to.

        They are a braced group, or one token and what it takes; TeX expands macros before it looks for them.
        """
        stack = self.stack
        while stack:
            token = stack.pop()
            if token.isspace():
                continue
            if token == "{":
                return [item for item in self.within(GROUP_END) if item is not EMPTY]
            if token == "}" or token in CELL_END:
                stack.append(token)
                return []
            if self.is_macro(token):
                self.expand(token)
                continue
            if len(token) > 1 and token[0] in "0123456789.":
                stack.append(token[1:])
                token = token[0]
            found = SYMBOLS.get(token)
            if found is not None and not self.font:
                return [found]
            if token[0] == "\\":
                stack.append(token)
                return self._one_item()
            self.stack = [token]  # a list that stops after it
            items = self.items(NOTHING)
            self.stack = stack
            return items
        return []

    def _one_item(self) -> list[Node]:
        """Read the first item that the tokens make: of ``x^\\frac12``, the fraction."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(f"commands are nested more than {MAX_DEPTH} deep, too deep for a tree", kind="too_deep")
        out: list[Node] = []
        stack = self.stack
        while stack and not out:
            token = stack.pop()
            if token.isspace() or token in SPACES:
                continue
            if token == "{":
                out = [item for item in self.within(GROUP_END) if item is not EMPTY]
                break
            if token == "}" or token in CELL_END:
                stack.append(token)
                break
            if self.is_macro(token):
                self.expand(token)
                continue
            if token in SPACE_COMMANDS:
                given_space(self, token)
                break
            node: Node | None = SYMBOLS.get(token)
            if node is None:
                handler = HANDLERS.get(token)
                if token in SPLITTING:
                    continue
                node = handler(self, token, out) if handler is not None else self._other(token)
            if node is not None:
                out.append(node)
        self.depth -= 1
        return [item for item in out if item is not EMPTY]

    def argument(self, rule: str = "Anything") -> Node:
        """Read the next argument as one part."""
        return self.math_list(self.argument_items(), rule)

    def field(self) -> Node:
        """Read the next field as one part."""
        return self.math_list(self.field_items())

    def optional(self, rule: str = "Anything") -> Node | None:
        """Read an argument in square brackets; ``None`` if the next token opens no bracket."""
        given = bracketed(self.stack)
        if given is None:
            return None
        return self.math_list(self.of_tokens(given), rule)

    def of_tokens(self, given: list[str]) -> list[Node]:
        """Read the items that these tokens make, without the tokens that follow."""
        rest, self.stack = self.stack, given[::-1]
        items = self.within(NOTHING)
        self.stack = rest
        return [item for item in items if item is not EMPTY]

    def name_argument(self) -> str:
        """Read an argument that is a name or a length, not mathematics."""
        return "".join(group(self.stack) or []).strip()

    def next_token(self) -> str:
        """Return the next token that is no space, without using it up."""
        stack = self.stack
        while stack and stack[-1].isspace():
            stack.pop()
        return stack[-1] if stack else ""

    def star(self) -> bool:
        """Use up a star, if one follows; return whether it did."""
        if self.next_token() == "*":
            self.stack.pop()
            return True
        return False

    # ---- single symbols ------------------------------------------------------------------------------------------

    def _word(self, letter: str) -> Token:
        """Read adjacent letters in an upright font as one name."""
        stack = self.stack
        word = letter
        while stack and (stack[-1] in LETTERS or stack[-1][0] in _DIGITS or stack[-1].isspace()):
            word += stack.pop().strip()
        return LETTERS[word] if len(word) == 1 else symbol("UNKNOWN", word)

    def _other(self, token: str) -> Node | None:
        """Make a node of a character or a command that no table has."""
        if token[0] != "\\":
            if token in ("}", "&", "$"):
                return None
            return symbol("UNKNOWN", token)
        if token in _IGNORED or token == "\\":
            return None
        return Token("ATOM", token, "E!", f"T!{clean_plain(token)}")

    # ---- scripts and fractions -----------------------------------------------------------------------------------

    def script(self, out: list[Node], sup: bool, script: Node) -> None:
        """Add a script to the item before it: a base, another script, or nothing."""
        floating = True
        seen = 0
        for position in range(len(out) - 1, -1, -1):
            item = out[position]
            if item is EMPTY:
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
        numerator = self.math_list(out[:])
        out.clear()
        if command == r"\above":
            given_space(self, command)
        denominator = self.math_list(self.items(stop))
        return split(command, numerator, denominator)


_IGNORED_COMMANDS = r"""
    \displaylimits \nonumber \notag \strut \mathstrut \par \hfill \hfil \hline \relax \null \noindent
    \allowbreak \nobreak \limits \nolimits \large \Large \LARGE \huge \Huge \small \tiny \normalsize
    \footnotesize \scriptsize \it \protect \unskip \vfill \newline \linebreak \nolinebreak \break \ignorespaces
    \bgroup \egroup \begingroup \endgroup \mathsurround \centering \displaybreak \hss \vss \\ \cr \( \) \[ \] \-
    \/ \@ \noalign \DOTSB \DOTSI \DOTSX \indent \tabularnewline
"""
_IGNORED = frozenset(_IGNORED_COMMANDS.split())
"""Commands that leave nothing and take nothing."""
