"""Holdings of any collection as experiments open it: posts, training pairs, topics and judgments, counted.

>>> from graphs.corpus.corpus import open_corpus
>>> stock = CollectionStock(open_corpus("mathdocs"))
>>> for step in stock.steps():
...     step.run(lambda number: None)
>>> found = stock.holdings()
>>> found.counts["topics.task1"] > 0, found.counts["posts.broken"], found.reason
(True, 0, '')

Posts are read one after the other. Kept are the ids of judged documents, and 8 bytes of each other id.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from graphs.corpus.corpus import Benchmark, Corpus, TrainingPairs
from graphs.corpus.forms import SOURCES
from graphs.corpus.pairs import given_pairs
from graphs.corpus.post import Judgment, Topic
from graphs.corpus.qrels import relevant_grade
from graphs.corpus.queries.collection import HeldOut, NamedTests
from graphs.corpus.record_ids import identified
from graphs.corpus.stock.holdings import AcceptedAnswers, Holdings, Missing, Step, absent_ids, missing_ids, number
from graphs.corpus.text.placeholders import extract
from graphs.errors import Failure, MathAMRError


@dataclass
class _Test:
    """A task, or a test with a name.

    Attributes:
        key: end of its counts' keys.
        title: its name in sentences.
        of_formulas: the judged documents are formulas.
        unmet: ids of judged documents that were not met so far.
        works: it can be searched and scored.
    """

    key: str
    title: str
    of_formulas: bool = False
    unmet: set[str] = field(default_factory=set)
    works: bool = False


class CollectionStock:
    """Counts of a collection.

    Args:
        relevant: lowest relevant grade; None: as :func:`graphs.corpus.qrels.relevant_grade` derives it.
    """

    def __init__(self, corpus: Corpus, relevant: int | None = None) -> None:
        self._corpus, self._relevant = corpus, relevant
        self._counts: Counter[str] = Counter()
        self._missing: list[Missing] = []
        self._tests: list[_Test] = []
        self._is_source = corpus.name in SOURCES
        self._accepted = AcceptedAnswers()
        self._questions, self._answered = array("Q"), array("Q")
        self._texts: dict[str, dict[str, tuple[str, str]]] = {}  # title of a test -> texts of its topics
        self._failed: dict[str, str] = {}  # title of a test that cannot be scored -> what is missing

    def steps(self) -> Iterator[Step]:
        if not self._is_source:
            yield Step("topics and judgments", 0, self._topics_and_judgments, "topics")
        yield Step("posts", 0, self._posts, "posts")
        if isinstance(self._corpus, TrainingPairs):
            yield Step("training pairs", 0, self._pairs, "pairs")

    def holdings(self) -> Holdings:
        missing = [*self._missing, *self._absent()]
        reason, failed = self._reason(missing), tuple(self._failed)
        return Holdings(self._corpus.name, dict(self._counts), tuple(missing), {}, reason, failed)

    # -- counting ----------------------------------------------------------------------------------------------------

    def _posts(self, progress: Callable[[int], None]) -> None:
        counts = self._counts
        keys = ("posts.question", "posts.answer", "posts.with_formulas", "posts.broken", "formulas")
        counts.update(dict.fromkeys(keys, 0))
        first = ""
        try:
            for post in identified(self._corpus.posts(), texts=True):  # as experiments use them
                progress(1)
                if isinstance(post, Failure) and post.kind == "duplicate_id":
                    counts["posts.repeated"] += 1
                    continue
                if isinstance(post, Failure):
                    counts["posts.broken"] += 1
                    first = first or post.message
                    continue
                counts[f"posts.{post.kind}"] += 1
                if post.kind == "question":
                    self._accepted.add_question(post.accepted_answer_id)
                    self._questions.append(number(post.post_id))
                else:
                    self._accepted.add_answer(post.post_id)
                    if post.parent_id is not None:
                        self._answered.append(number(post.parent_id))
                formulas = [formula.formula_id for formula in extract(post).formulas]
                counts["formulas"] += len(formulas)
                counts["posts.with_formulas"] += bool(formulas)
                for test in self._tests:
                    if test.of_formulas:
                        test.unmet.difference_update(formulas)
                    elif post.kind == "answer":
                        test.unmet.discard(post.post_id)
        except MathAMRError as error:
            self._missing.append(Missing(f"the end of the posts ({error})", "experiments stop there", stops=True))
        if broken := counts["posts.broken"]:
            what = f"{broken:,} broken {'post' if broken == 1 else 'posts'} (the first: {first})"
            self._missing.append(Missing(what, "left out of every experiment"))
        if self._answered and not self._is_source:
            counts["accepted"] = self._accepted.count
        if repeated := counts["posts.repeated"]:
            self._missing.append(missing_ids(repeated))

    def _pairs(self, progress: Callable[[int], None]) -> None:
        self._counts["pairs"] = 0
        try:
            for _ in given_pairs(self._corpus):
                self._counts["pairs"] += 1
                progress(1)
        except MathAMRError as error:
            self._missing.append(Missing(f"intact training pairs ({error})", "nothing can be trained"))

    def _topics_and_judgments(self, progress: Callable[[int], None]) -> None:
        for test, read in self._readers():
            try:
                held = read()
            except MathAMRError as error:
                self._lost(test, f"topics and judgments of {test.title} ({error})")
                continue
            self._count(test, held.topics, held.judgments)
            progress(len(held.topics))

    def _readers(self) -> Iterator[tuple[_Test, Callable[[], HeldOut]]]:
        """Yield each test with a function that reads its topics and judgments."""
        corpus = self._corpus
        if isinstance(corpus, NamedTests):
            for name in corpus.tests():
                yield _Test(name, f"test {name}"), partial(corpus.test, name)
        elif isinstance(corpus, Benchmark):
            for task in corpus.tasks():
                test = _Test(f"task{task}", f"Task {task}", of_formulas=task == 2)
                yield test, partial(_of_task, corpus, task)

    def _count(self, test: _Test, topics: Sequence[Topic], judgments: Sequence[Judgment]) -> None:
        """Count a test's topics and judgments; note what an experiment refuses."""
        counts, key = self._counts, test.key
        judged = {judgment.topic_id for judgment in judgments}
        counts[f"topics.{key}"] = len(topics)
        counts[f"judgments.{key}"] = len(judgments)
        counts[f"judgments.{key}.topics"] = len(judged)
        if not topics or not judgments:
            self._lost(test, f"{'judgments' if topics else 'topics'} of {test.title}")
            return
        grade, _ = relevant_grade(judgments, self._relevant)
        counts[f"judgments.{key}.relevant"] = sum(judgment.grade >= grade for judgment in judgments)
        counts[f"relevant_grade.{key}"] = grade
        if lost := sorted(judged - {topic.topic_id for topic in topics}):
            self._lost(test, f"texts of {len(lost):,} judged topics of {test.title}, e.g. {lost[0]}")
            return
        if self._has_two_texts(test, topics) or (test.of_formulas and self._lacks_formulas(test, topics)):
            return
        test.unmet, test.works = {judgment.doc_id for judgment in judgments}, True
        counts[f"judgments.{key}.documents"] = len(test.unmet)
        self._tests.append(test)

    def _has_two_texts(self, test: _Test, topics: Sequence[Topic]) -> bool:
        """Return whether topics share an id, but not their text; note it also if one is of a test before."""
        own: dict[str, tuple[str, str]] = {}
        clashes: dict[str, str] = {}  # title of a test before -> the first topic with another text there
        for topic in topics:
            post_id, text = topic.post.post_id, (topic.post.title, topic.post.body)
            if own.setdefault(post_id, text) != text:
                self._lost(test, f"one text for topic {topic.topic_id} of {test.title} instead of two")
                return True
            for title, texts in self._texts.items():
                if texts.get(post_id, text) != text:
                    clashes.setdefault(title, topic.topic_id)
        for title, topic_id in clashes.items():
            what = f"one text for topic {topic_id} of {title} and {test.title} instead of two"
            way_out = f"{title} and {test.title} need separate experiments, or topics with other ids"
            self._missing.append(Missing(what, way_out))
        self._texts[test.title] = own
        return False

    def _lacks_formulas(self, test: _Test, topics: Sequence[Topic]) -> bool:
        """Return whether all topics lack their query formula; note it if some do."""
        without = [
            topic.topic_id
            for topic in topics
            if topic.formula_id not in {formula.formula_id for formula in extract(topic.post).formulas}
        ]
        if not without:
            return False
        what = f"query formulas of {len(without):,} of {len(topics):,} topics of {test.title}, e.g. {without[0]}"
        if len(without) == len(topics):
            self._lost(test, what)
            return True
        self._missing.append(Missing(what, "these topics score 0; formula_id names a formula of the topic"))
        return False

    def _lost(self, test: _Test, what: str) -> None:
        self._failed[test.title] = what
        self._missing.append(Missing(what, f"{test.title} cannot be searched or scored"))

    # -- what is not there -------------------------------------------------------------------------------------------

    def _absent(self) -> Iterator[Missing]:
        """Yield the parts that no file has."""
        counts = self._counts
        if not counts["posts.answer"]:
            yield Missing("answers", f"nothing can be {'learned' if self._is_source else 'searched'}", stops=True)
        elif not counts["formulas"]:
            yield Missing("formulas", "graphs have sentences alone")
        if lost := absent_ids(self._answered, self._questions):
            what = f"questions of {lost:,} {'answer' if lost == 1 else 'answers'}"
            yield Missing(what, "these answers make no training pair")
        if "accepted" in counts and (accepted := self._accepted.missing()):
            yield accepted
        if not counts["pairs"] and not self._is_source:
            yield Missing("training pairs", "nothing can be trained: use track=bm25, or track=text text.epochs=0")
        if not self._is_source:
            yield from self._absent_tests()

    def _absent_tests(self) -> Iterator[Missing]:
        if isinstance(self._corpus, Benchmark) and 1 not in self._corpus.tasks():
            yield Missing("topics of Task 1", "no search for answers can be scored")
        elif isinstance(self._corpus, NamedTests) and not self._corpus.tests():
            yield Missing("tests", "nothing can be scored")
        for test in self._tests:
            judged = self._counts[f"judgments.{test.key}.documents"]
            documents = "formulas" if test.of_formulas else "answers"
            if len(test.unmet) == judged:
                test.works = False
                what = f"all {judged:,} judged {documents} of {test.title}, e.g. {min(test.unmet)}"
                self._failed[test.title] = what
                yield Missing(what, f"{test.title} cannot be scored; are the judgments of this collection?")
            elif test.unmet:
                what = f"{len(test.unmet):,} of {judged:,} judged {documents} of {test.title}, e.g. {min(test.unmet)}"
                yield Missing(what, "they cannot be found; data.regime=mini leaves them out of the scores")

    def _reason(self, missing: Sequence[Missing]) -> str:
        """Return why no experiment can run; "" if one can."""
        for one in missing:
            if one.stops:
                return f"{one.what} are missing: {one.consequence}"
        if self._is_source or any(test.works for test in self._tests):
            return ""
        lost = next(iter(self._failed.values()), "topics and judgments")
        return f"no test can be searched and scored; missing: {lost}"


def _of_task(corpus: Benchmark, task: int) -> HeldOut:
    return HeldOut(corpus.topics(task, []), corpus.judgments(task, []))
