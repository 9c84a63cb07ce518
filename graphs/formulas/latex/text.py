r"""Commands for fonts, words and names: ``\mathbf``, ``\text``, ``\operatorname``.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex(r"x\text{ if }\operatorname{rank} A").slt.tangent_string()
'[V!x[T!if[V!rank[V!A]]]]'
"""

from __future__ import annotations

from graphs.formulas.latex.nodes import Node, Text, Token, Wrapped
from graphs.formulas.latex.reader import Reader, handles
from graphs.formulas.latex.symbols import symbol
from graphs.formulas.latex.tokens import group

_FONT_OF_COMMAND = {
    r"\mathrm": "rm", r"\mathbf": "bf", r"\mathsf": "sf", r"\mathtt": "tt", r"\mathit": "it", r"\mathbb": "bb",
    r"\mathcal": "cal", r"\mathscr": "scr", r"\mathfrak": "frak", r"\mathnormal": "", r"\boldsymbol": "bi",
    r"\bm": "bi", r"\pmb": "bi", r"\Bbb": "bb", r"\mathds": "bb", r"\symbf": "bf", r"\mathbfit": "bi", r"\bold": "bf",
    r"\frak": "frak", r"\mathup": "rm", r"\mathbfcal": "cal", r"\mathbbm": "bb", r"\mathbold": "bi",
}  # fmt: skip
_FONT_OF_SWITCH = {
    r"\rm": "rm", r"\bf": "bf", r"\sf": "sf", r"\tt": "tt", r"\cal": "cal", r"\scr": "scr", r"\mit": "",
    r"\sl": "it", r"\rmfamily": "rm", r"\bfseries": "bf", r"\sffamily": "sf", r"\ttfamily": "tt", r"\boldmath": "bi",
    r"\upshape": "rm",
}  # fmt: skip
_DISPLAY_OF_STYLE = {r"\displaystyle": True, r"\textstyle": False, r"\scriptstyle": False, r"\scriptscriptstyle": False}


@handles(*_FONT_OF_COMMAND)
def _font(reader: Reader, token: str, out: list[Node]) -> None:
    font, reader.font = reader.font, _FONT_OF_COMMAND[token]
    if reader.next_token() == "{":
        items = reader.argument_items()
    else:
        given = group(reader.stack)
        items = reader.of_tokens(given) if given else []
    reader.font = font
    out.extend(items)


@handles(*_FONT_OF_SWITCH)
def _font_switch(reader: Reader, token: str, out: list[Node]) -> None:
    reader.font = _FONT_OF_SWITCH[token]


@handles(*_DISPLAY_OF_STYLE)
def _style(reader: Reader, token: str, out: list[Node]) -> None:
    reader.display = _DISPLAY_OF_STYLE[token]


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


@handles(*_TEXT_COMMANDS)
def _text(reader: Reader, token: str, out: list[Node]) -> Node | None:
    parts: list[str | Node] = []
    words: list[str] = []
    given = list(reversed(group(reader.stack) or []))
    while given:
        piece = given.pop()
        if piece in ("$", r"\(", r"\)"):
            if piece == "$" and given and given[-1] == "$":
                given.pop()
            inner: list[str] = []
            while given and given[-1] not in ("$", r"\)"):
                inner.append(given.pop())
            if given:
                given.pop()
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


@handles(r"\operatorname", r"\operatornamewithlimits", r"\mathoperator")
def _operator_name(reader: Reader, token: str, out: list[Node]) -> Node:
    limits = reader.star() or token == r"\operatornamewithlimits"
    limits = limits and reader.display
    font, reader.font = reader.font, "rm"
    name = reader.argument()
    reader.font = font
    if not isinstance(name, Token):
        return Wrapped(name, "OPFUNCTION", limits)
    if name.role in ("UNKNOWN", "NUMBER"):
        return symbol("OPFUNCTION", name.value, limits=limits)
    return Token("OPFUNCTION", name.value, name.slt, name.opt, name=name.name, limits=limits)
