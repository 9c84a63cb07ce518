"""Pairs of texts that an encoder learns from, and collections of such pairs with tests.

    write_pair_file(AnswerPairs(open_corpus("arqmath", root)), Path("pairs.jsonl"), Console())
    write_pair_collection(StatementPairs(Path("papers.jsonl")), Path("statements"), BenchmarkChoice(0.1))

Each kind of pairs is a class below: question and answer, query and statement, text and formula, concept and chunk.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from graphs.corpus.corpus import Corpus
from graphs.corpus.pairs import question_groups, training_pairs
from graphs.errors import CorpusError, Failure, MathAMRError
from graphs.papers.archives import read_files
from graphs.papers.latex_source import assemble
from graphs.papers.plain import plain
from graphs.stores.posts import PostTexts
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import build_texts
from mathamr.text import benchmarks
from mathamr.text.asking import graphs
from mathamr.text.asking.answers import Estimate, KeptAnswers
from mathamr.text.asking.models import LanguageModel
from mathamr.text.benchmarks import Benchmark
from mathamr.text.knowledge_graph import KnowledgeGraph, chunked, read_graph
from mathamr.text.pairs import PairFile, TextPair, write_pairs
from mathamr.text.queries import QueryGenerator, model_queries, paper_queries, questions_for
from mathamr.text.sources import pair_sources
from mathamr.text.sources.arxiv import without_version
from mathamr.text.sources.papers import newest, paper_id, read_papers
from mathamr.text.sources.written_questions import read_questions


@dataclass(frozen=True, slots=True)
class BenchmarkChoice:
    """Choice of the tested part of a collection of pairs.

    Args:
        share: share of what is tested: questions, statements, pairs or concepts.
        unseen_papers: papers of statements that are tested as a whole.
        unseen_since: day from which on papers of statements are tested as a whole, instead of that number; None: none.
        most: answers: pairs in all; formulas: pairs in the tests; None: no limit.
    """

    share: float
    unseen_papers: int = 15
    unseen_since: str | None = None
    most: int | None = None
    seed: int = 0


class PairSource(Protocol):
    """A kind of pairs."""

    def pairs(self, console: Console) -> Iterable[TextPair | Failure]:
        """Yield the pairs, and failures of statements."""
        ...

    def benchmark(self, choice: BenchmarkChoice, console: Console) -> Benchmark:
        """Return pairs with tests of which no pair tells anything."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerPairs:
    """Questions with answers; titles with bodies of the collection ``titles``.

    Args:
        positives: which answers make a pair (:data:`graphs.corpus.pairs.POSITIVES`).
        least_score: votes that an answer needs.
    """

    corpus: Corpus
    positives: str = "accepted"
    least_score: int = 1

    def pairs(self, console: Console) -> Iterator[TextPair]:
        """Yield the pairs; texts lie in a temporary file meanwhile."""
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "posts.db"
            build_texts(self.corpus.posts(), path, console)
            with PostTexts(path) as texts:
                pairs_of_posts = training_pairs(self.corpus, self.positives, self.least_score)
                groups = question_groups(pairs_of_posts, self.positives)
                yield from pair_sources.of_answers(pairs_of_posts, texts, groups=groups)

    def benchmark(self, choice: BenchmarkChoice, console: Console) -> Benchmark:
        """Hold out threads."""
        pairs = islice(self.pairs(console), choice.most)
        return benchmarks.of_answers(pairs, test_share=choice.share, seed=choice.seed)


@dataclass(frozen=True, slots=True)
class StatementPairs:
    """Queries with statements of papers; ``model`` writes the queries; None: the papers' own words do.

    ``answers`` is the file in which the model's answers are kept. ``questions`` is a file of written questions, or
    ``latex-books``, for a further test.
    """

    papers: Path
    model: LanguageModel | None = None
    answers: Path | None = None
    questions: str | None = None

    def pairs(self, console: Console) -> Iterator[TextPair | Failure]:
        """Yield the pairs."""
        yield from pair_sources.of_statements(read_papers(self.papers), self._queries(console))

    def benchmark(self, choice: BenchmarkChoice, console: Console) -> Benchmark:
        """Hold out statements, and whole papers."""
        return benchmarks.of_statements(
            list(read_papers(self.papers)),
            self._queries(console),
            test_share=choice.share,
            unseen_papers=choice.unseen_papers,
            unseen_since=choice.unseen_since,
            seed=choice.seed,
            written=read_questions(self.questions) if self.questions else (),
        )

    def estimate(self) -> Estimate:
        """Return an estimate of what the model is asked for all statements."""
        assert self.model is not None
        questions = [
            one
            for paper in read_papers(self.papers)
            for one in questions_for(
                paper.statements, [f"{paper.paper_id}/{number}" for number in range(len(paper.statements))]
            )
        ]
        return self._kept().estimate(self.model.name, questions)

    def _queries(self, console: Console) -> QueryGenerator:
        if self.model is None:
            return paper_queries
        kept = self._kept()
        console.say(f"  answers of {self.model.name} are kept in {kept.path}; remove a line to ask again")
        return partial(model_queries, self.model, kept)

    def _kept(self) -> KeptAnswers:
        return KeptAnswers(self.answers or self.papers.with_suffix(".answers.jsonl"))


@dataclass(frozen=True, slots=True)
class FormulaPairs:
    """Texts with formulas, in both directions; ``raw``: LaTeX as it was typed."""

    papers: Path
    raw: bool = False

    def pairs(self, console: Console) -> Iterator[TextPair | Failure]:
        """Yield the pairs."""
        yield from pair_sources.of_formulas(self._passages(), linear=not self.raw)

    def benchmark(self, choice: BenchmarkChoice, console: Console) -> Benchmark:
        """Hold out papers."""
        return benchmarks.of_passages(self._passages(), test_share=choice.share, most=choice.most, seed=choice.seed)

    def _passages(self) -> Iterator[pair_sources.Passage]:
        for paper in read_papers(self.papers):
            for number, statement in enumerate(paper.statements):
                name = f"{paper.paper_id}/{number}"
                yield pair_sources.Passage(name, paper.paper_id, statement.text, paper.categories)


@dataclass(frozen=True, slots=True)
class ConceptPairs:
    """Concepts of a knowledge graph with chunks of the papers in ``folders``."""

    graph: Path
    folders: Sequence[Path]

    def pairs(self, console: Console) -> Iterator[TextPair | Failure]:
        """Yield the pairs."""
        graph = read_graph(self.graph)
        yield from pair_sources.of_concepts(graph, self._chunks(graph))

    def benchmark(self, choice: BenchmarkChoice, console: Console) -> Benchmark:
        """Hold out concepts."""
        graph = read_graph(self.graph)
        return benchmarks.of_graph(graph, self._chunks(graph), unseen_share=choice.share, seed=choice.seed)

    def _chunks(self, graph: KnowledgeGraph) -> dict[str, list[str]]:
        """Return the passages of the papers that the graph names, of those that lie in a folder."""
        wanted = {paper for concept in graph.concepts for paper in concept.papers}
        if not wanted:
            raise CorpusError("has no concept; make it with more papers, or --least-papers 1", path=self.graph)
        names = {without_version(name): name for name in sorted(wanted)}  # as the graph calls them
        papers = papers_in(self.folders, names)
        if not papers:
            places, example = ", ".join(map(str, self.folders)), min(wanted)
            raise CorpusError(
                f"none of its papers is in {places}; give the folders that hold them, such as "
                f"{example}.tar.gz, {example}.tex or the folder {example}",
                path=self.graph,
            )
        return {names[key]: chunked(plain(assemble(read_files(path)).body)) for key, path in papers.items()}


def papers_in(folders: Sequence[Path], wanted: Container[str] | None = None) -> dict[str, Path]:
    """Return the papers in some folders by id, all or those ``wanted``; of several versions the newest."""
    places = [path for folder in folders for path in sorted(folder.iterdir())]
    return newest(path for path in places if wanted is None or paper_id(path) in wanted)


def graph_by_model(
    folders: Sequence[Path], model: LanguageModel, answers: KeptAnswers, least_papers: int, console: Console
) -> KnowledgeGraph:
    """Ask a language model for the concepts of the papers in ``folders``; say which papers gave none.

    Args:
        answers: file of answers, which is resumed.
        least_papers: fewest papers of a concept.

    Raises:
        CorpusError: all papers failed.
    """
    chunks, failures = _passages(folders)
    with console.stage("asking", unit="papers") as advance:
        graph, without = graphs.ask(chunks, model, answers, least_papers=least_papers, progress=advance)
    lost = [*failures, *without]
    console.failures("papers that failed", Counter((one.stage, one.kind) for one in lost))
    if len(without) == len(chunks) and lost:
        raise CorpusError(f"no concept; the first failure is of {lost[0].post_id}: {lost[0].message}")
    return graph


def estimate_of_graph(folders: Sequence[Path], model: LanguageModel, answers: KeptAnswers) -> Estimate:
    """Return an estimate of what :func:`graph_by_model` would ask; it counts the longest answers."""
    questions = [graphs.question_for(paper, own) for paper, own in _passages(folders)[0].items()]
    return answers.estimate(model.name, questions, graphs.MAX_TOKENS)


def _passages(folders: Sequence[Path]) -> tuple[dict[str, list[str]], list[Failure]]:
    """Return the passages of each paper that a model reads, and the papers that cannot be read."""
    chunks, failures = {}, []
    for name, path in papers_in(folders).items():
        try:
            chunks[name] = graphs.passages_of(chunked(plain(assemble(read_files(path)).body)))
        except MathAMRError as error:
            failures.append(Failure(name, "latex", type(error).__name__, str(error)))
    return chunks, failures


def write_pair_file(source: PairSource, out: Path, console: Console, most: int | None = None) -> PairFile:
    """Write pairs as JSON lines, and say which statements failed.

    Args:
        most: number of pairs at most.

    Raises:
        CorpusError: all statements failed; a file that is there stays.
    """
    lost: Counter[tuple[str, str]] = Counter()
    with console.stage("pairs", unit="pairs") as advance:

        def kept() -> Iterator[TextPair]:
            first: Failure | None = None
            for one in source.pairs(console):
                if isinstance(one, Failure):
                    lost[one.stage, one.kind] += 1
                    first = first or one
                else:
                    advance(1)
                    yield one
            if not advance.done and first is not None:
                raise CorpusError(f"no pair; the first failure is of {first.post_id}: {first.message}", path=out)

        pairs = write_pairs(out, islice(kept(), most))
    console.failures("statements without a query", lost)
    return pairs


def write_pair_collection(source: PairSource, out: Path, choice: BenchmarkChoice, console: Console) -> dict[str, Any]:
    """Write a folder for ``data=pairs data.root=OUT``; return counts of what it has."""
    pairs_and_tests = source.benchmark(choice, console)
    benchmarks.write(pairs_and_tests, out)
    return dict(benchmarks.about(pairs_and_tests))
