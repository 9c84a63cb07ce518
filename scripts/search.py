r"""Search an index as a person would, and see why each post was found.

    python scripts/search.py index=outputs/index 'Prove that $\|A\|_2 \le \sqrt{\|A\|_1\|A\|_\infty}$'
    python scripts/search.py index=outputs/index k=3 strategy=doc_vn_maxsim 'Why is $\sqrt 2$ irrational?'
    python scripts/search.py index=outputs/index task=formulas '$\int_0^\infty e^{-x^2} dx$'
    python scripts/search.py index=outputs/index            # reads one query a line

Formulas stand between dollar signs. Below each post stands, for every formula and sentence of the query, what matched
it in the post and how well. scripts/index.py writes indexes.

``strategy``: maxsim (default), doc_vn_maxsim, single_vector; ``exact=false`` asks for HNSW, which the backend qdrant
has. ``task=formulas`` finds formulas like the first one of the query. ``model=FOLDER`` insists on a checkpoint.

Exit codes: 0 answered; 2 a message says what is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.errors import ConfigError, MathAMRError
from mathamr.retrieval.catalog import Catalog
from mathamr.retrieval.explanation import Match, VirtualNode
from mathamr.retrieval.index import Strategy
from mathamr.retrieval.query import EncodedQuery, QueryEncoder
from mathamr.training import checkpoint

KEYS = ("index", "k", "strategy", "exact", "pool", "ef", "task", "model", "device")
TASKS = ("answers", "formulas")
MAX_RESULTS = 1000
SHOWN = 100  # characters of a virtual node's text


@dataclass(frozen=True, slots=True)
class Settings:
    index: Path
    strategy: Strategy
    k: int = 5
    task: str = "answers"
    model: Path | None = None
    device: str = "cpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if words else 2
    try:
        settings, query = read(words)
        start = time.perf_counter()
        wanted = None if settings.model is None else checkpoint.weights_hash(settings.model)
        catalog = Catalog.open(settings.index, model_hash=wanted)
        encoder = checkpoint.load_encoder(catalog.model, config_hash=catalog.config_hash, device=settings.device)
        reader = QueryEncoder(encoder, catalog.vocabulary, catalog.spec)
        warm_up(catalog, reader)
        loading = time.perf_counter() - start
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(catalog):,} posts, loaded in {loading:.1f} s", file=sys.stderr)
    if catalog.parser and not catalog.parser.startswith("embedded"):
        print(
            f"note: the posts were parsed by {catalog.parser}, the query is parsed by the embedded parser",
            file=sys.stderr,
        )
    try:
        if query is not None:
            return answer(catalog, reader, query, settings)
        for line in sys.stdin:
            if line.strip():
                answer(catalog, reader, line.rstrip("\n"), settings)
        return 0
    finally:
        catalog.close()


def warm_up(catalog: Catalog, reader: QueryEncoder) -> None:
    """Search once, so that what is loaded when it is first used is loaded before the first query."""
    query = reader.encode(r"Let $x \le \frac{1}{2}$ be a number. Is $\int_0^1 f(x)\,dx$ finite?")
    (ranking,) = catalog.search(query.vectors, "maxsim", 1)
    catalog.explain(query, [post_id for post_id, _ in ranking])


def read(words: Sequence[str]) -> tuple[Settings, str | None]:
    """The settings ``KEY=VALUE`` and the query among the arguments, in any order.

    Raises :class:`ConfigError` for a key or value that there is not, and for two queries.
    """
    given: dict[str, str] = {}
    queries = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in KEYS:
            given[key] = value
        elif equals and key.isidentifier() and len(key) > 2 and not value.startswith((" ", "=")) and " " not in word:
            raise ConfigError(f"unknown key {key!r}; there are {', '.join(KEYS)}")
        else:
            queries.append(word)
    if len(queries) > 1:
        raise ConfigError(f"{len(queries)} queries; put the query in quotes: {queries[0]!r}, {queries[1]!r} ...")
    if not given.get("index"):
        raise ConfigError("index=FOLDER is missing; scripts/index.py writes one")
    task = given.get("task", "answers")
    if task not in TASKS:
        raise ConfigError(f"task={task}; there are {', '.join(TASKS)}")
    exact = given.get("exact", "true").lower()
    if exact not in ("true", "false"):
        raise ConfigError(f"exact={exact}; give true or false")
    k = _whole(given, "k", 5)
    if not 1 <= k <= MAX_RESULTS:
        raise ConfigError(f"k={k}; from 1 to {MAX_RESULTS:,} results can be shown")
    strategy = Strategy(
        given.get("strategy", "maxsim"), exact == "true", _whole(given, "pool", 1000), _whole(given, "ef", 128)
    )
    model = Path(given["model"]) if given.get("model") else None
    settings = Settings(Path(given["index"]), strategy, k, task, model, given.get("device", "cpu"))
    return settings, queries[0] if queries else None


def _whole(given: dict[str, Any], key: str, default: int) -> int:
    try:
        return int(given.get(key, default))
    except ValueError as error:
        raise ConfigError(f"{key}={given[key]}; a whole number is needed") from error


def answer(catalog: Catalog, reader: QueryEncoder, text: str, settings: Settings) -> int:
    """Print what the index finds for one query; returns the exit code."""
    start = time.perf_counter()
    try:
        query = reader.encode(text)
        encoded = time.perf_counter()
        show = _formulas if settings.task == "formulas" else _posts
        lines, searched = show(catalog, query, settings)
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(printable(line) for line in lines))
    end = time.perf_counter()
    print(
        f"answered in {end - start:.3f} s: query {encoded - start:.3f}, search {searched - encoded:.3f}, "
        f"explanation {end - searched:.3f}",
        file=sys.stderr,
    )
    return 0


def printable(line: str) -> str:
    """``line`` without characters that would steer a terminal: a post may hold any.

    >>> printable("a\\x1b[2Jb")
    'a [2Jb'
    """
    return "".join(character if character.isprintable() else " " for character in line)


def _posts(catalog: Catalog, query: EncodedQuery, settings: Settings) -> tuple[list[str], float]:
    (ranking,) = catalog.search(query.vectors, settings.strategy, settings.k)
    searched = time.perf_counter()
    post_ids = [post_id for post_id, _ in ranking]
    texts, why = catalog.texts.get(post_ids), catalog.explain(query, post_ids)
    lines = []
    for rank, (post_id, score) in enumerate(ranking, 1):
        lines += [f"{rank}. {texts[post_id].title or '(no title)'}", f"   post {post_id}, score {score:.3f}"]
        lines += [f"   {texts[post_id].snippet()}"]
        lines += [f"     {_match(match)}" for match in why[post_id].matches]
        lines.append("")
    return lines, searched


def _formulas(catalog: Catalog, query: EncodedQuery, settings: Settings) -> tuple[list[str], float]:
    if not query.formula_ids:
        raise ConfigError("task=formulas needs a formula in the query, between dollar signs")
    (vectors,) = query.vectors
    hits = catalog.search_formulas(vectors[0], settings.k)
    searched = time.perf_counter()
    texts = catalog.texts.get([hit.post_id or "" for hit in hits])
    lines = []
    for rank, hit in enumerate(hits, 1):
        post = texts[hit.post_id or ""]
        latex = next((f.latex for f in post.text.formulas if f.formula_id == hit.doc_id), "")
        lines.append(f"{rank}. {latex}")
        lines.append(f"   formula {hit.doc_id} of post {hit.post_id}, score {hit.score:.3f}: {post.title}")
    return lines, searched


def _match(match: Match) -> str:
    return f"{match.score:6.3f}  {_node(match.query)}  <-  {_node(match.document)}"


def _node(node: VirtualNode) -> str:
    """A virtual node in one line: the kind, and its text or number.

    >>> _node(VirtualNode("formula", 0, "x^2"))
    'formula $x^2$'
    """
    if node.kind == "document":
        return "whole post"
    text = " ".join(node.text.split())
    text = text if len(text) <= SHOWN else text[:SHOWN] + " ..."
    shown = f"${text}$" if node.kind == "formula" and text else text
    return f"{node.kind} {shown or node.number + 1}"


if __name__ == "__main__":
    sys.exit(main())
