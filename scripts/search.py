r"""Search an index, and show why each post was found.

    mathamr search index=outputs/index 'Prove that $\|A\|_2 \le \sqrt{\|A\|_1\|A\|_\infty}$'
    mathamr search index=outputs/index k=3 strategy=doc_vn_maxsim 'Why is $\sqrt 2$ irrational?'
    mathamr search index=outputs/index task=formulas '$\int_0^\infty e^{-x^2} dx$'
    mathamr search index=outputs/index            # reads one query per line
    mathamr search index=outputs/index k=20 --export found.bib 'Why is $\sqrt 2$ irrational?'

Write formulas between dollar signs, and quote the query with '. Below each post is a line for each formula and sentence
of the query: similarity, part of the query, part of the post. With maxsim, the highest possible score is the number of
these lines. For systems without virtual nodes, the lines list common words and similar formulas.
Standard error lists the words that a graph model knows, and those that it does not; without any known word or formula,
it refuses the query.
"exact words" must occur in that order; -word, -$x$ and -"exact words" must not occur. Filters apply to the best 1,000
results.

  index=FOLDER     index, written by mathamr index
  k=N              number of results, by default 5
  task=NAME        answers (default); formulas compares the first formula of the query with those of the index, up to
                   renaming of variables, and shows symbols without a partner in brackets
  kind=NAME        answer or question: only posts of this kind
  formulas=NAME    with or without: posts with a formula, or without one
  start=N          number of results to skip
  strategy=NAME    maxsim (default), doc_vn_maxsim (with pool=N), single_vector
  exact=false      approximate search; needs an index of the backend approximate (with pool=N) or qdrant (with ef=N)
  model=FOLDER     checkpoint that must have made the index
  device=NAME      device of the model, by default cpu
  --export FILE    also write the results of a single query to FILE, which ends in .json or .bib
  --json           one line of JSON for each query, with the keys of POST /api/search (docs/search-api.md), or query
                   and error if it is refused

Exit codes: 0 answered; 2 an error, with a message. If a line of standard input is refused, the others are answered.
"""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import HELP, command
from graphs.errors import printable

if TYPE_CHECKING:
    from mathamr.retrieval.explanation import VirtualNode
    from mathamr.search.answer import Answer
    from mathamr.search.overlap import Overlap
    from mathamr.search.searchable import SearchEngine
    from mathamr.search.settings import Settings

_LATEX = re.compile(r"\\[a-zA-Z]{2}|\w\^[\w{\\]|\b\w_[\w{\\]|[∀∃∈∑√∞∫≤≥]")
SHOWN = 100  # characters of a virtual node's text, or of a refused query


@command
def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    words, export = file_to_write(words)
    if not words or HELP & set(words):
        print(__doc__)
        return 0 if words else 2

    from graphs.errors import ConfigError
    from mathamr.search.settings import read
    from mathamr.search.web.export import format_of
    from mathamr.search_index import open_engine

    settings, queries = read(words)
    if len(queries) > 1:
        raise ConfigError(f"{len(queries)} queries; put the query in quotes: {queries[0]!r}, {queries[1]!r} ...")
    if export is not None:
        format_of(export)
        if not queries:
            raise ConfigError(f"--export {export} needs one query, as a word of the command")
    engine, message = open_engine(settings)
    print(message, file=sys.stderr)
    try:
        if queries:
            return show(engine, queries[0], settings, as_json, export)
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")  # a query in another encoding finds what it can
        code = 0
        for number, line in enumerate(sys.stdin, 1):
            if line.strip():
                code = max(code, show(engine, line.rstrip("\n"), settings, as_json, line_number=number))
        return code
    finally:
        engine.close()


def file_to_write(words: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return the other words, and the file of ``--export FILE``.

    >>> file_to_write(["index=index", "--export", "found.bib", "$x$"])
    (['index=index', '$x$'], PosixPath('found.bib'))
    """
    from graphs.errors import ConfigError

    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--export=") else [word])]
    if "--export" not in words:
        return words, None
    place = words.index("--export")
    if place + 1 == len(words):
        raise ConfigError("--export needs a file, FILE.json or FILE.bib")
    return [*words[:place], *words[place + 2 :]], Path(words[place + 1])


def show(
    engine: SearchEngine,
    text: str,
    settings: Settings,
    as_json: bool = False,
    export: Path | None = None,
    *,
    line_number: int | None = None,
) -> int:
    """Print what the index finds for one query, and write it to ``export``; return the exit code.

    Messages name ``line_number``, that of the query in standard input.
    """
    from graphs.errors import MathAMRError
    from mathamr.search.selection import typed

    start = time.perf_counter()
    try:
        words, selection = typed(text, settings.selection)
        answer = engine.answer(words, task=settings.task, strategy=settings.strategy, k=settings.k, selection=selection)
    except MathAMRError as error:
        if as_json:
            print(json.dumps({"query": text, "error": str(error)}))
        place = "" if line_number is None else f"line {line_number}, {_shortened(text)!r}: "
        print(f"{place}{error}", file=sys.stderr)
        return 2
    if export is not None:
        from graphs.whole_file import write_whole
        from mathamr.search.web.export import exported, format_of

        write_whole(export, exported(text, answer, format_of(export)))
    if as_json:
        from mathamr.search.web import answers

        print(json.dumps({"query": text, **answers.answer(answer)}))
        return 0
    if answer.results:
        lines = _formulas(answer) if settings.task == "formulas" else _posts(answer)
        print("\n".join(printable(line) for line in lines))
    else:
        print("no results", file=sys.stderr)
    print(printable(f"query: {answer.query.words}"), file=sys.stderr)
    if not answer.query.text.formulas and _LATEX.search(text):
        print("note: no formula is read; write formulas between dollar signs, such as $x^2$", file=sys.stderr)
    if r"\qvar" in text:
        print(r"note: there are no wildcards; \qvar{x} is read as the letters ? and x", file=sys.stderr)
    if answer.page.candidates is not None:
        print(f"filters: {answer.page.matching:,} of {answer.page.candidates:,} candidates match", file=sys.stderr)
    parts = ", ".join(f"{part} {seconds:.3f}" for part, seconds in answer.seconds.items())
    print(f"answered in {time.perf_counter() - start:.3f} s: {parts}", file=sys.stderr)
    return 0


def _posts(answer: Answer) -> list[str]:
    lines = []
    for rank, result in enumerate(answer.results, answer.page.start + 1):
        post = result.post
        lines += [f"{rank}. {post.title or '(no title)'}", f"   post {post.post_id}, score {result.score:.3f}"]
        if post.question is not None:
            lines += [f"   answers question {post.question_id}: {post.question_snippet()}".removesuffix(": ")]
        lines += [f"   {snippet}"] if (snippet := post.snippet()) else []
        for match in result.explanation.matches if result.explanation else ():
            lines.append(f"     {match.score:6.3f}  {_node(match.query)}  <-  {_node(match.document)}")
        if result.overlap is not None:
            lines += _overlap(result.overlap)
        lines.append("")
    return lines


def _formulas(answer: Answer) -> list[str]:
    from mathamr.structure.drawing import as_text

    lines = []
    for rank, result in enumerate(answer.results, answer.page.start + 1):
        post, formula = result.post, result.formula
        if formula is not None:
            lines.append(f"{rank}. {formula.latex}")
            lines.append(
                f"   formula {formula.formula_id} of post {post.post_id}, score {result.score:.3f}: {post.title}"
            )
        if result.match is not None:
            lines.append(f"   {result.match}")
            lines += [f"     query    {as_text(result.match.query)}", f"     formula  {as_text(result.match.formula)}"]
    return lines


def _overlap(overlap: Overlap) -> list[str]:
    lines = [f"     words    {', '.join(overlap.words)}"] if overlap.words else []
    for one in overlap.formulas:
        lines.append(f"     formula  ${_shortened(one.query)}$  <-  ${_shortened(one.document)}$: {one.match}")
    return lines


def _node(node: VirtualNode) -> str:
    """Return a virtual node in one line: its kind, and its text or number.

    >>> from mathamr.retrieval.explanation import VirtualNode
    >>> _node(VirtualNode("formula", 0, "x^2"))
    'formula $x^2$'
    """
    if node.kind == "document":
        return "whole post"
    text = _shortened(" ".join(node.text.split()))
    shown = f"${text}$" if node.kind == "formula" and text else text
    return f"{node.kind} {shown or node.number + 1}"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + " ..."


if __name__ == "__main__":
    sys.exit(main())
