r"""A paper's own commands, replaced by what they are short for.

>>> expander = Expander()
>>> print(expander(r"\def\bt{\begin{theorem}}\newcommand{\norm}[1]{\|#1\|}\let\phi\varphi \bt $\norm{x}=\phi$"))
 \begin{theorem} $\|x\|=\varphi$

Definitions are read in order, as TeX does, and removed; those of style files come first. After the preamble, a
definition ends with its group or environment, or with its formula if brackets open it. Commands that structure a paper
(``\section``, ``\label``, ``\emph``) keep their meaning. Commands that TeX has to run (they define others, or decide)
stay as they are typed, and so do commands with arguments that other signs than braces end. A use that grows without
end stays, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise

from graphs.formulas.latex import Macro
from graphs.formulas.latex.tokens import DEFINING, BuiltIn, bracketed, expand, group, read_definition, skip_star, tokens

MAX_EXPANSIONS = 1_000  # of commands within one use
MAX_TOKENS = 10_000  # of one use, before its own commands are replaced
MAX_TOKENS_OF_A_PAPER = 5_000_000  # that definitions read and uses write, of each at least _LEAST
_LEAST = 10
_WINDOW = 4_000  # tokens in which the arguments of a use, or the body of a definition, end
_PROVIDING = (r"\providecommand", r"\ProvideDocumentCommand")  # those that keep a known command
_PROGRAM = DEFINING | {
    r"\csname", r"\expandafter", r"\else", r"\fi", r"\edef", r"\gdef", r"\xdef", r"\futurelet", r"\catcode", r"\loop"
}  # fmt: skip
_STRUCTURE = re.compile(
    r"\\(?:[a-z]*section|chapter|part|paragraph|title|author|date|maketitle|begin|end|item|caption|emph|text[a-z]*"
    r"|[a-zA-Z]*label|[a-zA-Z]*ref|[a-zA-Z]*cite[a-zA-Z]*|index[a-zA-Z]*|footnote[a-z]*|url|href|hyperref|input|include"
    r"|document[a-z]*|usepackage|[a-z]*newtheorem|declaretheorem|the[a-z]*|[hv]s(?:pace|kip)|includegraphics|bibitem|new[a-z]+"
    r"|left|right|big|Big|bigg|Bigg|frac|sqrt|sum|prod|int|mathbb|mathcal|mathrm|mathbf|operatorname|ensuremath|par)"
)
# Commands that take one token or group as an argument, unlike ^, _ and \sqrt, which take a formula.
_WITH_TWO = frozenset((r"\frac", r"\dfrac", r"\tfrac", r"\binom", r"\overset", r"\underset", r"\stackrel"))
_WITH_ARGUMENT = _WITH_TWO | frozenset(
    r"""\mathbf \mathrm \mathcal \mathbb \mathfrak \mathscr \mathsf \mathtt \mathit \boldsymbol \bm \operatorname \hat
    \bar \tilde \vec \dot \ddot \overline \underline \widehat \widetilde \text \textrm \textbf \textit \textsf \mbox
    \emph""".split()  # noqa: SIM905
)
_FIRST = 50  # tokens in which a first argument ends
_WORD = re.compile(r"\\[A-Za-z]+")
_OPENS = frozenset(("{", r"\begin", r"\begingroup", r"\bgroup", r"\[", r"\("))  # a group
_CLOSES = frozenset(("}", r"\end", r"\endgroup", r"\egroup", r"\]", r"\)"))
_EMPTY = frozenset((r"\xspace", r"\protect", r"\relax", r"\ignorespaces"))
_BODY = r"\begin{document}"
_END = "\x00"  # below a window: an argument that takes it does not end there


@dataclass(slots=True)
class _Use:
    """Use of a command that is being replaced: ``floor`` is the length of the stack of what follows it.

    ``groups`` counts the open groups before it.
    """

    token: str
    window: list[str]
    kept: int
    written: int
    floor: int
    groups: int
    expansions: int = 0


class Expander:
    r"""Texts that share definitions: each is read with those of the texts before it.

    >>> expander = Expander(r"\newcommand{\R}{\mathbb{R}}")
    >>> expander(r"\def\x{y}$\R$"), expander(r"$\x\in\R$")
    ('$\\mathbb{R}$', '$y\\in\\mathbb{R}$')

    Args:
        declarations: LaTeX of style files, or of a preamble.
    """

    def __init__(self, declarations: str = "") -> None:
        self._macros: dict[str, Macro] = {}
        self._left = MAX_TOKENS_OF_A_PAPER
        self._hidden: list[list[tuple[str, Macro | None]]] = []  # for each open group, what its definitions replace
        self._defines = any(command in declarations for command in DEFINING)
        if self._defines:
            self._read(declarations)

    def __call__(self, text: str) -> str:
        """Return ``text``, without comments, with known commands replaced, and learn those that it defines."""
        self._defines = self._defines or any(command in text for command in DEFINING)
        if not self._defines:
            return text
        first, begin, second = text.partition(_BODY)
        preamble, body = (first + begin, second) if begin else ("", text)
        return _joined(self._read(preamble) + self._read(body, in_groups=True))

    def copy(self) -> Expander:
        """Return an expander that knows the same commands, with the whole budget of a paper."""
        other = Expander()
        other._macros, other._defines = dict(self._macros), self._defines
        return other

    def _read(self, text: str, *, in_groups: bool = False) -> list[str]:
        """Return the tokens of ``text`` with known commands replaced.

        Args:
            in_groups: definitions end with their group or environment, unlike those of a preamble.
        """
        stack, out = tokens(text), list[str]()
        stack.reverse()
        use: _Use | None = None
        while stack:
            if use is not None and len(stack) <= use.floor:
                use = None
            token = stack.pop()
            if token in self._macros and not isinstance(token, BuiltIn):
                if use is None:
                    use = _Use(token, stack[-_WINDOW:], len(stack), len(out), len(stack), len(self._hidden))
                if self._grows(use, stack):
                    self._undo(use, stack, out)
                    continue
                floor = self._expand(token, stack, out)
                if floor is None:
                    out.append(token)
                else:
                    use.floor = min(use.floor, floor)
            elif token in DEFINING and self._define(token, stack, in_group=out[-1:] != [r"\global"]):
                if use is not None:
                    use.floor = min(use.floor, len(stack))
            elif use is None or token not in _EMPTY:
                out.append(token)
                if in_groups and token in _OPENS:
                    self._hidden.append([])
                elif in_groups and token in _CLOSES and self._hidden:
                    for name, macro in reversed(self._hidden.pop()):
                        self._set(name, macro, in_group=False)
        return out

    def _set(self, name: str, macro: Macro | None, *, in_group: bool) -> None:
        """Give a command its meaning, if ``in_group`` up to the end of the group; None: it is not known."""
        if in_group and self._hidden:
            self._hidden[-1].append((name, self._macros.get(name)))
        self._macros.pop(name, None)
        if macro is not None:
            self._macros[name] = macro

    def _grows(self, use: _Use, stack: list[str]) -> bool:
        use.expansions += 1
        if self._left < 0:
            self._macros.clear()
        return self._left < 0 or use.expansions > MAX_EXPANSIONS or len(stack) > use.floor + MAX_TOKENS

    def _undo(self, use: _Use, stack: list[str], out: list[str]) -> None:
        """Restore the use of a command as it was typed, and forget the command."""
        below = use.kept - len(use.window)
        if use.floor >= below:
            del stack[below:]
            stack.extend(use.window)
        else:  # its commands took more than the window as arguments
            del stack[use.floor :]
        del out[use.written :]
        del self._hidden[use.groups :]
        out.append(use.token)
        self._macros.pop(use.token, None)
        use.floor = len(stack)

    def _expand(self, token: str, stack: list[str], out: list[str]) -> int | None:
        """Replace the command before ``stack``, with its arguments; ``out`` is the text before it.

        Returns:
            Length of the stack below them; None where they do not end, or where the result is too long.
        """
        macro = self._macros[token]
        if not macro.parameters:
            self._left -= max(_LEAST, len(macro.body))
            floor = len(stack)
            grouped = len(macro.body) > 1 and _is_argument(out)
            stack.extend(reversed(("{", *macro.body, "}") if grouped else macro.body))
            return floor
        local = [_END, *stack[-_WINDOW:]]
        below = len(stack) + 1 - len(local)
        rest = local.copy()
        written = len(macro.body)
        skip_star(macro, rest)
        for number in range(macro.parameters):
            own = group(rest) if number or macro.default is None else bracketed(rest)
            size = len(own if own is not None else macro.default or ())
            written += size * sum(pair[0] == "#" and pair[1][0] == str(number + 1) for pair in pairwise(macro.body))
        self._left -= max(_LEAST, min(written, MAX_TOKENS))
        if not rest or rest[0] != _END or written > MAX_TOKENS:
            return None
        expand(macro, local)
        del stack[below:]
        stack.extend(local[1:])
        return below + len(rest) - 1

    def _define(self, command: str, stack: list[str], *, in_group: bool) -> bool:
        """Read a definition from the stack; return False for one that cannot be read, or is not ours to replace."""
        if self._left < 0:
            return False
        local = [_END, *stack[-_WINDOW:]]
        below, before = len(stack) + 1 - len(local), len(local)
        found = read_definition(command, local)
        self._left -= max(_LEAST, before - len(local))
        if found is None or not local or local[0] != _END:
            return False
        name, macro = found
        if not _WORD.fullmatch(name) or _STRUCTURE.fullmatch(name) or any(macro.delimiters) or _is_program(macro):
            self._set(name, None, in_group=in_group)
            return False
        del stack[below:]
        stack.extend(local[1:])
        if command in _PROVIDING and name in self._macros:
            return True
        if command == r"\let":
            [target] = macro.body
            macro = self._macros.get(target, replace(macro, body=(BuiltIn(target),)))
        self._set(name, macro, in_group=in_group)
        return True


def _is_argument(out: list[str]) -> bool:
    r"""Return whether the next token is an argument without braces.

    >>> [_is_argument(tokens(latex)) for latex in (r"\mathbf ", r"\frac{a}", r"\frac a", r"\frac{a}b", r"\hat x")]
    [True, True, True, False, False]
    """
    before = (token for token in reversed(out[-_FIRST:]) if not token.isspace())
    last = next(before, "")
    if last == "}":
        depth = 1
        while depth and (token := next(before, "")):
            depth += (token == "}") - (token == "{")
    elif last in _WITH_ARGUMENT or last == "{" or (last.isdigit() and len(last) > 1):
        return last in _WITH_ARGUMENT
    return next(before, "") in _WITH_TWO


def _is_program(macro: Macro) -> bool:
    """Test for a command that TeX has to run: it defines others, or decides."""
    body = macro.body
    return any(
        token == "@" or token in _PROGRAM or (token.startswith(r"\if") and token != r"\iff") for token in body
    ) or any(pair == ("#", "#") for pair in pairwise(body))


def _joined(found: list[str]) -> str:
    """Join tokens, with a space between a command and a letter that an argument has brought beside it."""
    pieces: list[str] = []
    word = False
    for token in found:
        if word and token[0].isalpha():
            pieces.append(" ")
        pieces.append(token)
        word = token[0] == "\\" and token[-1].isalpha()
    return "".join(pieces)
