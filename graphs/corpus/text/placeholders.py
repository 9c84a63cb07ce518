r"""Sentences of a post with placeholders, and the formulas of the placeholders.

>>> title = "Is <span class='math-container' id='1'>$x$</span> odd?"
>>> post = Post("7", "question", title, "<p>No: $x=2y$. See Eq. (3).</p>")
>>> text = extract(post)
>>> text.sentences
('Is FORMULA_0 odd?', 'No: FORMULA_1.', 'See Eq. (3).')
>>> text.formulas
(FormulaRef(formula_id='1', latex='x'), FormulaRef(formula_id='7:1', latex='x=2y'))

Every occurrence of a formula has its own number, in the order of the post, the title first. What counts as a formula:

- each ``<span class="math-container">``, with the id that the collection gave it, whatever is in it;
- each ``<math>`` element of HTML that contains its LaTeX;
- text between ``$``, ``$$``, ``\(..\)``, ``\[..\]`` or in an environment such as ``align``, unless the dollars look
  like money or the two do not belong together; its id, and that of a span without one, is ``{post_id}:{i}``. In a post
  without spans, Unicode signs in it become commands (:mod:`graphs.corpus.text.unicode_signs`).

Placeholders are separate words, as a parser's tokenizer needs them: ``FORMULA_0-th`` becomes ``FORMULA_0 th``,
``non-FORMULA_0`` ``non FORMULA_0``, ``FORMULA_0-1`` ``FORMULA_0 - 1``, ``f(FORMULA_0)`` ``f (FORMULA_0)``; closing
punctuation stays at the placeholder and is followed by a space. A word of the post itself that a parser may return as
a placeholder becomes two: ``FORMULA_3`` is written ``FORMULA 3``, ``Formula-3`` and ``Formula3`` ``Formula 3``. A
formula that ends with the full stop of its sentence ends the sentence. A paragraph of formulas only goes with the
paragraph before it, and what follows in small letters with both: "Let / FORMULA_0 / be fields" is one sentence.
"""

from __future__ import annotations

import re
from unicodedata import normalize

from graphs.corpus import post_limits
from graphs.corpus.post import FormulaRef, PlaceholderText, Post
from graphs.corpus.text.markup import FORMULA, Block, read_html, read_text
from graphs.corpus.text.sentences import UNSPACED, split
from graphs.corpus.text.text_formulas import find
from graphs.corpus.text.unicode_signs import as_commands

_URL = re.compile(r"(?:\b(?:https?|ftp)://|\bwww\.)[^\s<>\"'$\\" + FORMULA + r"]+(?<![.,;:!?)\]])")
_OWN_PLACEHOLDER = re.compile(r"(formula)[_-]?(?=\d)", re.IGNORECASE)  # as mathamr_plus reads placeholders
_LONG = rf"[^\s{UNSPACED}]"
_OVERLONG = re.compile(rf"({_LONG}{{100}}){_LONG}+")  # data or a drawing: no word, and no parser's vocabulary
_ESCAPED_DOLLAR = re.compile(r"\\\$")
# What may stand right before a placeholder, and right after it.
_OPENS = re.compile(r"(?:\A|\s)[(\[{\"“‘«']+\Z")
_CLOSES = re.compile(r"[.,;:!?)\]}\"'’”»…%]+")
_HYPHENS = "-‐‑"
_POSSESSIVE = re.compile(r"['’]s\b")
# LaTeX that ends with the sentence's own punctuation: "x = 1.", but not "\right." or "1, 2, \dots ..".
_FINAL_STOP = re.compile(r"(?<!\\right)(?<!\\left)(?<!\\[bB]ig)(?<!\.)(?<!\\)([.?])\s*\Z")
_ONLY_FORMULAS = re.compile(r"(?:FORMULA_\d+[\s,;:.()]*)+\Z")
_ENDS_SENTENCE = (".", "!", "?", "…", '."', '."', "!)", "?)", ".)")
#: Formulas that stand alone in paragraphs one after another and still go with the sentence before them.
MAX_JOINED = 3


def extract(post: Post) -> PlaceholderText:
    """Return the sentences of ``post`` with ``FORMULA_i`` for its formulas, title first, and the formulas by ``i``.

    Any markup is accepted; an empty post has no sentences. Every formula is kept, with one placeholder. A post that
    exceeds the limits (:mod:`graphs.corpus.post_limits`) is read up to them; ``cut`` of the result then says so.
    A letter and its combining accent become one character (NFC).
    """
    read = read_html if post.markup == "html" else read_text
    is_marked = post.markup == "html" and any("math-container" in part for part in (post.title, post.body))
    formulas: list[FormulaRef] = []
    sentences: list[str] = []
    title = normalize("NFC", post_limits.cut(post.title, post_limits.MAX_CHARACTERS))
    body = normalize("NFC", post_limits.cut(post.body, post_limits.MAX_CHARACTERS - len(title)))
    size, cut = len(post.title) + len(post.body), ""
    if size > post_limits.MAX_CHARACTERS:
        cut = f"a post of {size:,} characters; the first {len(title) + len(body):,} are read"
    for part in (title, body):
        if part:
            blocks = read(part)
            for text in _joined([(_with_placeholders(block, post, formulas, is_marked), block) for block in blocks]):
                sentences += split(text)
    return post_limits.shortened(PlaceholderText(tuple(sentences), tuple(formulas), cut))


def _with_placeholders(block: Block, post: Post, formulas: list[FormulaRef], is_marked: bool) -> str:
    """Return the text of a block with placeholders; append its formulas to ``formulas``."""
    text = _URL.sub("link", block.text) if "://" in block.text or "www." in block.text else block.text
    pieces: list[str] = []  # text, formula, text, formula, ... text
    latex: list[tuple[str | None, str]] = []
    in_text = find(text)
    spans = iter(block.formulas)
    position = 0
    for start, end, source in [*in_text, (len(text), len(text), "")]:
        between = text[position:start].split(FORMULA)
        for piece in between[:-1]:
            pieces.append(piece)
            latex.append(next(spans))
        pieces.append(between[-1])
        if start < len(text):
            inner = [next(spans) for _ in range(text.count(FORMULA, start, end))]
            first, *further = source.split(FORMULA)
            whole = first + "".join(f"${own}${rest}" for (_, own), rest in zip(inner, further, strict=True))
            latex += [(None, whole if is_marked else as_commands(whole)), *inner]
            pieces += [""] * len(inner)
        position = end
    out: list[str] = []
    for number, piece in enumerate(pieces):
        after = latex[number - 1][1] if number else None
        out.append(_literal(piece, after, number < len(latex)))
        if number < len(latex):
            formula_id, source = latex[number]
            index = len(formulas)
            formulas.append(FormulaRef(_formula_id(post, formula_id, index), source))
            out.append(f"FORMULA_{index}")
    return "".join(out).strip()


def _formula_id(post: Post, given: str | None, index: int) -> str:
    """Return the id of a formula in the markup, or one of ours where no table or run file could hold that."""
    if given:
        formula_id = post.formula_prefix + given
        if formula_id.isprintable() and " " not in formula_id:
            return formula_id
    return f"{post.post_id}:{index}"


def _literal(piece: str, after: str | None, before: bool) -> str:
    """``piece`` of text between formulas: ``after`` is the LaTeX that it follows, ``before`` whether one follows it."""
    piece = _OWN_PLACEHOLDER.sub(r"\1 ", piece)
    piece = _OVERLONG.sub(r"\1", _ESCAPED_DOLLAR.sub("$", piece))
    if after is not None:
        piece = _after_formula(piece, after, before)
    if before and piece:
        if piece[-1] in _HYPHENS and piece[-2:-1].isalpha():  # non-FORMULA_0
            piece = piece[:-1]
        elif piece[-1] in _HYPHENS and piece[-2:-1].isdigit():  # 1-FORMULA_0
            piece = f"{piece[:-1]} {piece[-1]} "
        if not piece[-1].isspace() and not _OPENS.search(piece[-4:] if len(piece) > 4 else piece):
            opening = re.search(r"[(\[{\"“‘«]+\Z", piece[-4:])
            if opening is None:
                piece += " "
            else:
                at = len(piece) - len(opening.group())
                piece = piece[:at] + " " + piece[at:] if at and not piece[at - 1].isspace() else piece
    elif before and after is not None:
        piece = " "
    return piece


def _after_formula(piece: str, latex: str, before: bool) -> str:
    following = piece.lstrip()[:1]
    stop = _FINAL_STOP.search(latex) if not following or following.isupper() else None
    if stop is not None and (following or not before or piece.isspace()):
        return stop[1] + " " + piece.lstrip()
    if not piece or piece[0].isspace():
        return piece
    if piece[0] in _HYPHENS:
        if piece[1:2].isalpha():  # FORMULA_0-th
            return " " + piece[1:]
        return " " + piece[0] + " " + piece[1:].lstrip()
    if _POSSESSIVE.match(piece):
        return " " + piece
    closed = _CLOSES.match(piece)
    if closed is None or (piece[0] in ".," and piece[1:2].isdigit()):
        return " " + piece
    rest = piece[closed.end() :]
    if rest[:1] in _HYPHENS and rest[1:2].isalpha():  # (FORMULA_0)-adic
        rest = rest[1:]
    return closed.group() + rest if not rest or rest[0].isspace() else f"{closed.group()} {rest}"


def _joined(texts: list[tuple[str, Block]]) -> list[str]:
    """Return the texts of blocks; blocks that share a sentence are joined."""
    out: list[str] = []
    alone = 0  # formula-only paragraphs at the end of out[-1]
    open_end = False
    for text, block in texts:
        continues = False
        if out and open_end and block.kind in ("paragraph", "line") and not out[-1].endswith(_ENDS_SENTENCE):
            only_formulas = _ONLY_FORMULAS.match(text) is not None
            if only_formulas:
                continues = alone < MAX_JOINED
            else:
                continues = (alone > 0 or block.kind == "line") and (text[0].islower() or text[0] in ",;.:)")
            alone = alone + 1 if only_formulas and continues else 0
        else:
            alone = 0
        if continues:
            out[-1] += ("" if text[0] in ",;.:)" else " ") + text
        else:
            out.append(text)
        open_end = block.kind != "heading"
    return [text for text in out if text]
