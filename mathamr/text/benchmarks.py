r"""Benchmarks of a text encoder: documents to search, pairs to learn from, and separate tests.

>>> from mathamr.text.queries import paper_queries
>>> from mathamr.text.statements import Statement
>>> names = ["open set", "closed set", "compact set", "Bolzano", "Heine", "limit"]
>>> def lemma(name, i):
...     return Statement("lemma", "lem", f"{name} {i}", f"It is {i}, {name}.")
>>> papers = [Paper(f"p{i}", "", (), tuple(lemma(name, i) for name in names), {}) for i in range(9)]
>>> made = of_statements(papers, paper_queries, unseen_papers=1, test_share=0.2)
>>> len(made.answers["answers"]), len(made.train), {name: len(test.queries) for name, test in made.tests.items()}
(54, 44, {'regular': 4, 'unseen': 6})
>>> grades = {judgment.grade for judgment in made.tests["unseen"].judgments}
>>> sorted(grades)  # the statement that the query was made for, and the others of its paper
[1, 2]

:func:`write` writes a benchmark to a folder as a collection ``pairs`` (:mod:`graphs.corpus.pair_sets.pair_collection`).
The benchmarks are:

- answers: questions search all answers; the test ``unseen`` has questions of threads without a training pair;
- statements (ModernBERT thesis, section 3): queries search all statements. Tests have queries for statements without a
  training pair: ``regular`` from papers with other training pairs, ``unseen`` from papers without;
- formulas (formula-text paper): sentences search formulas, and formulas search sentences, of papers without a training
  pair; ``short`` and ``long`` have the sentences whose formulas have fewer than 15 tokens, and more;
- concepts (knowledge-graph paper): names of concepts search the chunks of their papers: ``trained`` has concepts in
  training, as in the paper, ``unseen`` concepts whose name, description and edges are in no training pair.

Leaks are left out and counted: training pairs that share a document or a query with a test, and test queries that their
document contains word for word, or that have other documents in training.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from graphs.corpus.post import Judgment
from graphs.errors import ConfigError, CorpusError, Failure
from graphs.whole_file import write_whole
from mathamr.text.knowledge_graph import KnowledgeGraph, benchmark
from mathamr.text.linearize import linearize
from mathamr.text.pairs import TextPair, write_pairs
from mathamr.text.queries import QueryGenerator
from mathamr.text.sources.pair_sources import HIDDEN, Passage, of_concepts, of_formulas
from mathamr.text.sources.pair_sources import of_statements as pairs_of_statements
from mathamr.text.sources.papers import Paper
from mathamr.text.sources.splits import split_papers
from mathamr.text.sources.written_questions import WrittenQuestion, found_in

LONG = 15  # tokens of a formula; formula-text paper, Table 2
OWN, SAME_GROUP = 2, 1  # grades


@dataclass
class QuerySet:
    """Queries of a test by id, and their relevant documents.

    ``swapped``: queries and documents trade roles, compared with the training pairs.
    """

    queries: dict[str, str] = field(default_factory=dict)
    judgments: list[Judgment] = field(default_factory=list)
    swapped: bool = False

    def add(self, query: str, text: str, documents: Iterable[str]) -> None:
        """Add a query, if it is new, and documents that answer it."""
        self.queries.setdefault(query, text)
        self.judgments += [Judgment(query, document, OWN) for document in documents]


@dataclass
class Benchmark:
    """Content of a folder of the collection ``pairs``.

    Attributes:
        answers: searched texts: name of the file -> id -> text.
        train: training pairs; ``related`` are further ones, or None for a collection without that kind.
        left_out: number of pairs and queries left out, by reason.
    """

    answers: dict[str, dict[str, str]]
    train: list[TextPair]
    related: list[TextPair] | None
    tests: dict[str, QuerySet]
    left_out: Counter[str]


def of_answers(pairs: Iterable[TextPair], *, test_share: float = 0.2, seed: int = 0) -> Benchmark:
    """Return answers by questions, or bodies by titles; every document of ``pairs`` is searched.

    Args:
        test_share: share of the groups (threads) held out as a whole; of equal questions one is tested.
    """
    pairs, left_out = list(pairs), Counter[str]()
    groups = sorted({pair.group for pair in pairs})
    order = np.random.default_rng(seed).permutation(len(groups))
    held_out = {groups[i] for i in order[: round(test_share * len(groups))]}
    tested = [pair for pair in pairs if pair.group in held_out]
    train = [pair for pair in pairs if pair.group not in held_out]
    train = _without(train, {folded(pair.document) for pair in tested}, _document, "document", left_out)
    train = _without(train, {folded(pair.query) for pair in tested}, lambda pair: folded(pair.query), "query", left_out)
    test, query_ids = QuerySet(), dict[str, str]()  # text of a query -> its id
    for pair in tested:
        query = query_ids.setdefault(folded(pair.query), pair.query_id)
        test.add(query, pair.query, [pair.document_id])
    answers = {"answers": {pair.document_id: pair.document for pair in pairs}}
    return _checked(Benchmark(answers, train, None, {"unseen": test}, left_out))


def of_statements(
    papers: Sequence[Paper],
    generator: QueryGenerator,
    *,
    test_share: float = 0.1,
    unseen_papers: int = 15,
    unseen_since: str | None = None,
    seed: int = 0,
    written: Sequence[WrittenQuestion] = (),
) -> Benchmark:
    """Return statements by queries; every statement of ``papers`` is searched.

    A statement's query is the first one without a statement in training; statements without one are not tested.

    Args:
        test_share: share of the statements of seen papers that are tested.
        unseen_papers: number of papers whose statements are all tested.
        unseen_since: day (YYYY-MM-DD) from which on the statements of all papers are tested, instead of that number.
        written: questions of the test ``written``; their statements are in no training pair.

    Raises:
        ConfigError: a test without queries; ``papers`` without the statements of all ``written`` questions; no paper
            from ``unseen_since`` on.
    """
    left_out: Counter[str] = Counter()
    new = {paper.paper_id for paper in papers if unseen_since is not None and paper.date >= unseen_since}
    if unseen_since is not None and not new:
        raise ConfigError(
            f"no paper has a date from {unseen_since} on; use an earlier day (--unseen-since), or give dates to papers "
            "(mathamr text statements --metadata)"
        )
    split = split_papers(
        {paper.paper_id: len(paper.statements) for paper in papers},
        test_share=test_share,
        unseen_papers=new or unseen_papers,
        seed=seed,
    )
    parts: dict[str, list[TextPair]] = {"train": [], "regular": [], "unseen": []}
    for part, own in parts.items():
        for one in pairs_of_statements(papers, generator, split_by=split, part=part):
            if isinstance(one, Failure):
                left_out[f"statements without a query ({one.kind})"] += 1
            else:
                own.append(one)
    texts = {f"{paper.paper_id}/{i}": one.text for paper in papers for i, one in enumerate(paper.statements)}
    tested = [pair for part in ("regular", "unseen") for pair in parts[part]]
    written_test = QuerySet()
    for name, query, documents in found_in(written, papers):
        written_test.add(name, query, documents)
    if left := len(written) - len(written_test.queries):
        left_out["written questions without their statement"] = left
    documents_of_tests = {folded(pair.document) for pair in tested} | {
        folded(texts[one.doc_id]) for one in written_test.judgments
    }
    train = _without(parts["train"], documents_of_tests, _document, "document", left_out)
    trained_queries = {folded(pair.query) for pair in train}
    of_paper: dict[str, list[str]] = {}
    for document in texts:
        of_paper.setdefault(document.rpartition("/")[0], []).append(document)
    tests = {part: _query_set(parts[part], trained_queries, of_paper, left_out) for part in ("regular", "unseen")}
    if written:
        tests["written"] = written_test
    return _checked(Benchmark({"answers": texts}, train, None, tests, left_out))


def _query_set(
    pairs: Sequence[TextPair], trained: Container[str], of_paper: Mapping[str, Sequence[str]], left_out: Counter[str]
) -> QuerySet:
    """Return the first query of each statement that neither training asks nor the statement contains."""
    done: set[str] = set()
    by_query: dict[str, list[TextPair]] = {}  # one query may belong to several statements
    for pair in pairs:
        if pair.document_id in done:
            continue
        if folded(pair.query) in trained:
            left_out["queries that training asks, too"] += 1
        elif folded(pair.query) in folded(pair.document):
            left_out["queries that stand in their statement"] += 1
        else:
            done.add(pair.document_id)
            by_query.setdefault(folded(pair.query), []).append(pair)
    test = QuerySet()
    for same in by_query.values():
        grades = {document: SAME_GROUP for pair in same for document in of_paper[pair.group]}
        grades |= {pair.document_id: OWN for pair in same}
        test.queries[same[0].query_id] = same[0].query
        test.judgments += [Judgment(same[0].query_id, document, grade) for document, grade in grades.items()]
    return test


def of_passages(
    passages: Iterable[Passage], *, test_share: float = 0.2, most: int | None = None, seed: int = 0
) -> Benchmark:
    """Return formulas by their sentences and back; the formulas are as typed, between dollars.

    Only formulas and sentences of the test are searched. Equal ones are merged, and all their partners are relevant.
    Training pairs lead from sentences to formulas.

    Args:
        test_share: share of all pairs, in papers held out as a whole; at least one paper.
        most: largest number of pairs in the test.
    """
    pairs = list(islice(of_formulas(passages, linear=False), 0, None, 2))  # each is followed by its reverse
    groups = Counter(pair.group for pair in pairs)
    generator = np.random.default_rng(seed)
    names = sorted(groups)
    held_out: set[str] = set()
    for i in generator.permutation(len(names)):
        if sum(groups[name] for name in held_out) + groups[names[i]] <= test_share * len(pairs):
            held_out.add(names[i])
    tested = [pair for pair in pairs if pair.group in held_out]
    tested = [tested[i] for i in sorted(generator.permutation(len(tested))[:most])]
    sentences: dict[str, str] = {}  # text -> id
    formulas: dict[str, tuple[str, str]] = {}  # tokens -> id, as typed
    together: dict[tuple[str, str], None] = {}
    for pair in tested:
        tokens = linearize(pair.document)
        formula, _ = formulas.setdefault(tokens, (pair.document_id, f"${pair.document}$"))
        together[sentences.setdefault(pair.query, pair.query_id), formula] = None
    left_out: Counter[str] = Counter()
    train = [pair for pair in pairs if pair.group not in held_out]
    train = _without(train, {folded(text) for text in sentences}, lambda pair: folded(pair.query), "query", left_out)
    train = _without(train, {_whole(pair) for pair in tested}, _whole, "sentence", left_out)
    train = _without(train, formulas, lambda pair: linearize(pair.document), "document", left_out)
    train = [replace(pair, document=f"${pair.document}$") for pair in train]
    sizes = {formula: len(tokens.split()) for tokens, (formula, _) in formulas.items()}
    of_sentence, of_formula = {name: text for text, name in sentences.items()}, dict(formulas.values())
    tests = {"text_to_formula": QuerySet(), "formula_to_text": QuerySet(swapped=True)}
    tests |= {"short": QuerySet(), "long": QuerySet()}
    for sentence, formula in together:
        tests["formula_to_text"].add(formula, of_formula[formula], [sentence])
        for name in ("text_to_formula", "short" if sizes[formula] < LONG else "long"):
            tests[name].add(sentence, of_sentence[sentence], [formula])
    return _checked(
        Benchmark({"answers-formulas": of_formula, "answers-texts": of_sentence}, train, None, tests, left_out)
    )


def of_graph(
    graph: KnowledgeGraph, chunks: Mapping[str, Sequence[str]], *, unseen_share: float = 0.4, seed: int = 0
) -> Benchmark:
    """Return chunks by the names of concepts; every chunk of ``chunks`` is searched.

    Args:
        chunks: passages by paper.
        unseen_share: share of the concepts of two or more papers that are left out of training.
    """
    papers_of = benchmark(graph)
    names = sorted(papers_of)
    generator = np.random.default_rng(seed)
    unseen = {names[i] for i in generator.permutation(len(names))[: round(unseen_share * len(names))]}
    unseen_descriptions = {folded(concept.description) for concept in graph.concepts if concept.name in unseen}
    known = KnowledgeGraph(
        tuple(
            replace(concept, description="") if folded(concept.description) in unseen_descriptions else concept
            for concept in graph.concepts
            if concept.name not in unseen
        ),
        tuple(edge for edge in graph.edges if not unseen & {edge.source, edge.target}),
    )
    train = list(of_concepts(KnowledgeGraph(known.concepts, ()), chunks, seed=seed))
    direct = {(pair.query, pair.document) for pair in train}
    related = [pair for pair in of_concepts(known, chunks, seed=seed) if (pair.query, pair.document) not in direct]
    tests = {"trained": QuerySet(), "unseen": QuerySet()}
    for number, concept in enumerate(graph.concepts):
        if concept.name in papers_of:
            test = tests["unseen" if concept.name in unseen else "trained"]
            own = (f"{paper}/{i}" for paper in dict.fromkeys(concept.papers) for i in range(len(chunks.get(paper, ()))))
            test.add(f"concept/{number}", concept.name, own)
    texts = {f"{paper}/{i}": text for paper, passages in chunks.items() for i, text in enumerate(passages)}
    return _checked(Benchmark({"answers": texts}, train, related, tests, Counter()))


def write(benchmark: Benchmark, folder: Path) -> None:
    """Write the files of the collection ``pairs`` into ``folder``; ``about.json`` counts their contents."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in benchmark.answers.items():
        _write_lines(folder / f"{name}.jsonl", ({"post_id": k, "body": v, "markup": "text"} for k, v in texts.items()))
    write_pairs(folder / "train.jsonl", benchmark.train)
    if benchmark.related is not None:
        write_pairs(folder / "related.jsonl", benchmark.related)
    for name, test in benchmark.tests.items():
        tags = {"tags": ["document"]} if test.swapped else {}
        lines = ({"post_id": k, "body": v, "markup": "text"} | tags for k, v in test.queries.items())
        _write_lines(folder / f"topics-{name}.jsonl", lines)
        qrels = "".join(f"{one.topic_id}\t0\t{one.doc_id}\t{one.grade}\n" for one in test.judgments)
        write_whole(folder / f"qrels-{name}.tsv", qrels)
    write_whole(folder / "about.json", json.dumps(about(benchmark), indent=1) + "\n")


def about(benchmark: Benchmark) -> dict[str, Any]:
    """Count documents, pairs, queries, and what was left out."""
    return {
        "answers": {name: len(texts) for name, texts in benchmark.answers.items()},
        "train": len(benchmark.train),
        "related": len(benchmark.related or ()),
        "tests": {name: len(test.queries) for name, test in benchmark.tests.items()},
        "left_out": dict(benchmark.left_out),
    }


def _without(
    pairs: Sequence[TextPair], tested: Iterable[str], of: Callable[[TextPair], str], what: str, left_out: Counter[str]
) -> list[TextPair]:
    """Return the pairs that share nothing with a test."""
    tested = frozenset(tested)
    kept = [pair for pair in pairs if of(pair) not in tested]
    if left := len(pairs) - len(kept):
        left_out[f"training pairs with a {what} of a test"] += left
    return kept


def _document(pair: TextPair) -> str:
    return folded(pair.document)


def _whole(pair: TextPair) -> str:
    """Return the sentence of a pair with its formula in place."""
    return "".join(pair.query.replace(HIDDEN, pair.document).casefold().replace("$", "").split())


def folded(text: str) -> str:
    """Return the form in which texts are compared: without differences in case, white space and final punctuation."""
    return " ".join(text.casefold().split()).rstrip(".:;,")


def _checked(benchmark: Benchmark) -> Benchmark:
    """Drop tests without queries for formula sizes; raise if no training pair or no query is left."""
    for name in ("short", "long"):
        if name in benchmark.tests and not benchmark.tests[name].queries:
            del benchmark.tests[name]
    for name, test in benchmark.tests.items():
        if not test.judgments:
            raise ConfigError(f"test {name} has no queries; use more sources, or a larger share (--test-share)")
    if not benchmark.train:
        raise CorpusError("no training pair is left; use more sources, or a smaller share (--test-share)")
    return benchmark


def _write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    write_whole(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
