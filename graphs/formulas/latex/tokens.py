r"""LaTeX text -> tokens, and the macros defined in a post or a formula.

>>> tokens(r"\frac12 x_{10}")
['\\frac', '12', ' ', 'x', '_', '{', '10', '}']
>>> macros = read_macros(r"Let $\newcommand{\norm}[1]{\|#1\|}$ be; \def\R{\mathbb R}")
>>> macros[r"\norm"].body, macros[r"\norm"].parameters
(('\\|', '#', '1', '\\|'), 1)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

_TOKEN = re.compile(r"\\[A-Za-z]+|\\[\s\S]|%[^\n]*\n?|\s+|[0-9]+(?:\.[0-9]+)?|\.\.\.|\.[0-9]+|[\s\S]")
_NUMBERS = frozenset("123456789")  # of parameters
_WITH_ARGUMENTS = frozenset(rf"\{kind}DocumentCommand" for kind in ("New", "Renew", "Provide", "Declare"))
DEFINING = _WITH_ARGUMENTS | {
    r"\newcommand", r"\renewcommand", r"\providecommand", r"\DeclareMathOperator", r"\DeclarePairedDelimiter",
    r"\def", r"\let",
}  # fmt: skip
"""Commands that define a command."""
_DEFINITION = re.compile(rf"\\(?:{'|'.join(command[1:] for command in sorted(DEFINING))})(?![A-Za-z])")


def tokens(latex: str) -> list[str]:
    """Split a formula into commands, numbers, stretches of space and single characters; comments are dropped."""
    found = _TOKEN.findall(latex)
    return [token for token in found if token[0] != "%"] if "%" in latex else found


@dataclass(frozen=True, slots=True)
class Macro:
    """A command that expands to ``body``: ``#1`` in it is the first argument, ``default`` if none is given."""

    body: tuple[str, ...]
    parameters: int = 0
    default: tuple[str, ...] | None = None
    delimiters: tuple[tuple[str, ...], ...] = ()
    """Tokens after each parameter in a ``\\def``; a use must have them too."""
    starred: bool = False
    """A use may have a star, which changes nothing that a tree shows: ``\\abs*{x}``."""


Macros = Mapping[str, Macro]


class BuiltIn(str):
    """A command with its built-in meaning, even if a macro has its name: the target of a ``\\let``."""

    __slots__ = ()


def read_macros(text: str) -> dict[str, Macro]:
    r"""Read all macros that a text defines; a definition that cannot be read is skipped.

    Definitions are ``\newcommand``, ``\renewcommand``, ``\providecommand``, ``\def``, ``\let``,
    ``\DeclareMathOperator``, ``\DeclarePairedDelimiter``, and ``\NewDocumentCommand`` and its variants with mandatory
    arguments and an optional first one.
    """
    found: dict[str, Macro] = {}
    for match in islice(_DEFINITION.finditer(text), MAX_DEFINITIONS):
        stack = tokens(text[match.start() : match.start() + MAX_DEFINITION])
        stack.reverse()
        define(stack.pop(), stack, found)
    return found


MAX_DEFINITIONS = 500
"""Definitions that are read in one text; the rest are skipped."""
MAX_DEFINITION = 2_000
"""Longest definition of a macro, in characters; longer ones are skipped."""
MAX_BRACKETED = 1_500
"""Longest optional argument, in tokens with the closing bracket; a longer bracket is read as mathematics."""


def define(command: str, stack: list[str], macros: dict[str, Macro]) -> None:
    r"""Add to ``macros`` what the tokens after ``command`` define; they are at the end of the reversed ``stack``.

    ``\let`` copies the present meaning of its target. A macro that uses itself (``\renewcommand{\phi}{\phi_0}``) would
    never end; it is skipped, as is a definition that cannot be read.
    """
    definition = read_definition(command, stack)
    if definition is None:
        return
    name, macro = definition
    if command == r"\let":
        [target] = macro.body
        macro = macros.get(target, Macro((BuiltIn(target),)))
    if not any(token == name and type(token) is str for token in macro.body):
        macros[name] = macro


def read_definition(command: str, stack: list[str]) -> tuple[str, Macro] | None:
    """Read the macro that the tokens after ``command`` define; they are at the end of the reversed ``stack``."""
    if command == r"\def":
        return _read_def(stack)
    star = _next(stack) == "*"
    if star:
        stack.pop()
    name = group(stack)
    name = [token for token in name or () if not token.isspace()]
    if len(name) != 1 or name[0][0] != "\\":
        return None
    if command == r"\let":
        if _next(stack) == "=":
            stack.pop()
        target = _next(stack)
        return (name[0], Macro((stack.pop(),))) if target else None
    if command == r"\DeclareMathOperator":
        body = group(stack)
        if body is None:
            return None
        return name[0], Macro((r"\operatorname", *("*" * star), "{", *body, "}"))
    if command == r"\DeclarePairedDelimiter":
        left, right = group(stack), group(stack)
        if left is None or right is None:
            return None
        return name[0], Macro((*left, "#", "2", *right), 2, (), starred=True)  # the first argument is a size
    if command in _WITH_ARGUMENTS:
        return _read_document_command(name[0], stack)
    parameters = bracketed(stack)
    default = bracketed(stack) if parameters else None
    body = group(stack)
    number = "".join(parameters or ["0"]).strip()
    if body is None or number not in "0123456789":
        return None
    return name[0], Macro(tuple(body), int(number or 0), None if default is None else tuple(default))


def _read_document_command(name: str, stack: list[str]) -> tuple[str, Macro] | None:
    r"""Read the arguments and the body of ``\NewDocumentCommand``; only ``m`` and a first ``O{default}`` are read."""
    arguments = [token for token in reversed(group(stack) or ()) if not token.isspace()]
    default = None
    if arguments and arguments[-1] == "O":
        arguments.pop()
        default = group(arguments)
    body = group(stack)
    if body is None or len(arguments) > 8 or any(argument != "m" for argument in arguments):
        return None
    return name, Macro(tuple(body), len(arguments) + (default is not None), None if default is None else tuple(default))


def _read_def(stack: list[str]) -> tuple[str, Macro] | None:
    name = _next(stack)
    if not name or name[0] != "\\":
        return None
    stack.pop()
    delimiters: list[list[str]] = [[]]
    while stack and stack[-1] != "{":
        token = stack.pop()
        if token == "#" and stack and stack[-1] in _NUMBERS:
            stack.pop()
            delimiters.append([])
        elif not token.isspace():
            delimiters[-1].append(token)
    body = group(stack)
    if body is None or delimiters[0]:
        return None
    return name, Macro(tuple(body), len(delimiters) - 1, None, tuple(map(tuple, delimiters[1:])))


def _next(stack: list[str]) -> str:
    """Return the next token that is no space, without using it up; empty at the end."""
    while stack and stack[-1].isspace():
        stack.pop()
    return stack[-1] if stack else ""


def group(stack: list[str]) -> list[str] | None:
    """Read the tokens of the next argument, a braced group or one token; ``None`` without an argument."""
    token = _next(stack)
    if not token or token == "}":
        return None
    stack.pop()
    if token != "{":
        if len(token) > 1 and token[0] in "0123456789.":
            stack.append(token[1:])
            return [token[0]]
        return [token]
    depth = 1
    found: list[str] = []
    while stack:
        token = stack.pop()
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if not depth:
                return found
        found.append(token)
    return found


def bracketed(stack: list[str]) -> list[str] | None:
    """Read the tokens of an optional argument ``[...]``; ``None`` without one."""
    if _next(stack) != "[":
        return None
    rest: list[str] = []
    depth = 0
    for token in islice(reversed(stack), 1, MAX_BRACKETED + 1):
        if token == "]" and not depth:
            del stack[-len(rest) - 2 :]
            return rest
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth < 0:
                break
        rest.append(token)
    return None


def skip_star(macro: Macro, stack: list[str]) -> None:
    """Remove the star of a use, if the macro may have one."""
    if macro.starred and _next(stack) == "*":
        stack.pop()


def expand(macro: Macro, stack: list[str]) -> None:
    """Replace the arguments of a macro on ``stack`` by its expansion."""
    stack.extend(reversed(expansion(macro, stack)))


def expansion(macro: Macro, stack: list[str]) -> list[str]:
    """Return the tokens that a macro expands to; its arguments are removed from ``stack``."""
    arguments: list[list[str]] = []
    skip_star(macro, stack)
    for number in range(macro.parameters):
        if number == 0 and macro.default is not None:
            given = bracketed(stack)
            arguments.append(list(macro.default) if given is None else given)
        elif macro.delimiters and macro.delimiters[number]:
            arguments.append(_until(stack, macro.delimiters[number]))
        else:
            arguments.append(group(stack) or [])
    body = macro.body
    if not arguments:
        return list(body)
    result: list[str] = []
    position = 0
    while position < len(body):
        token = body[position]
        following = body[position + 1] if position + 1 < len(body) else ""
        if token == "#" and following[:1] in _NUMBERS and int(following[0]) <= len(arguments):
            result += arguments[int(following[0]) - 1]
            if len(following) > 1:
                result.append(following[1:])
            position += 2
        else:
            result.append(token)
            position += 1
    return result


def _until(stack: list[str], delimiter: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    while stack:
        if tuple(reversed(stack[-len(delimiter) :])) == delimiter:
            del stack[-len(delimiter) :]
            break
        found.append(stack.pop())
    return found
