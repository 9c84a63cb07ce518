"""Questions of an experiment: the topics of its tasks or tests with their judgments, checked before anything runs.

questions = [pose(config, corpus, task) for task in tasks_of(config, corpus)]
tell_apart(corpus, questions)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from omegaconf import DictConfig

from graphs.corpus.arqmath import ArqMath
from graphs.corpus.corpus import Corpus
from graphs.corpus.queries.collection import NamedTests
from graphs.errors import ConfigError, CorpusError, suggestion
from mathamr.evaluation.metrics import Regime, measure_of, measures_of_grade, relevant_grade
from mathamr.evaluation.result_names import Asked, key
from mathamr.evaluation.runs import Task
from mathamr.stages.topic_sets import Question


def tasks_of(config: DictConfig, corpus: Corpus) -> Sequence[Asked]:
    """The tasks of ``experiment.tasks``, without Task 2 where the collection has no topics of it.

    Raises:
        ConfigError: a task that is none, or Task 2 alone where there are no topics of it.
    """
    asked = list(config.experiment.tasks)
    if isinstance(corpus, NamedTests):
        if not asked or len(set(asked)) < len(asked) or not set(asked) <= set(corpus.tests()):
            raise ConfigError(f"experiment.tasks={asked}: the tests of this collection are {', '.join(corpus.tests())}")
        return asked
    if not asked or len(set(asked)) < len(asked) or not set(asked) <= {1, 2}:
        named = any(isinstance(task, str) for task in asked)
        hint = "; tests with names are those of data=pairs and of data=beir with several benchmarks" if named else ""
        raise ConfigError(f"experiment.tasks={asked} is not one of [1], [1,2], [2]{hint}")
    tasks = [cast(Task, task) for task in sorted(asked)]
    if 2 in tasks and 2 not in corpus.tasks():  # topics of other years, or in conflict, are an error of their reader
        tasks.remove(2)
        if not tasks:
            raise ConfigError(f"experiment.tasks=[2], but collection {corpus.name} has no topics of Task 2")
    return tasks


def pose(config: DictConfig, corpus: Corpus, task: Asked) -> Question:
    """The topics of a task that the experiment is measured on, with their judgments."""
    years = list(config.data.years)
    named = config.experiment.get("measures") or {}
    own_measures = {key(str(title)): measure_of(str(name)) for title, name in named.items()}
    regime = config.data.regime
    given = config.data.get("relevant_grade")
    if isinstance(corpus, NamedTests):
        test = corpus.test(str(task))
        if regime != "full" or years:
            raise ConfigError(f"data.regime={regime} data.years={years}: tests with names search all; use full and []")
        if not test.topics or not test.judgments:
            raise ConfigError(f"test {task} of {config.data.root} has no judged topics")
        relevant, _ = relevant_grade(test.judgments, given)
        measures = own_measures or measures_of_grade(relevant)
        return Question(
            1, test.topics, test.judgments, "full", None, str(task), measures, test.searched, test.turned, relevant
        )
    assert task in (1, 2)
    task = cast(Task, task)
    topics = corpus.topics(task, years)
    judgments = corpus.judgments(task, years)
    if not topics or not judgments:
        raise ConfigError(f"collection {corpus.name} has no judged topics of Task {task} for data.years={years}")
    if regime not in get_args(Regime):
        raise ConfigError(f"data.regime={regime} is not one of {', '.join(get_args(Regime))}")
    if lost := sorted({judgment.topic_id for judgment in judgments} - {topic.topic_id for topic in topics}):
        raise ConfigError(
            f"{len(lost)} judged topics of Task {task} are not among the topics, e.g. {lost[0]}; each would score 0"
        )
    wanted = config.experiment.example.topic
    known = [topic.topic_id for topic in topics]
    if task == 1 and wanted is not None and wanted not in known:
        raise ConfigError(
            f"experiment.example.topic={wanted} is no topic of this collection{suggestion(wanted, known)}"
        )
    posts = None
    example = config.experiment.example.post
    if task == 1 and (regime == "mini" or example is not None):
        posts = frozenset(post.post_id for post in corpus.posts())
        if example is not None and example not in posts:
            raise ConfigError(f"experiment.example.post={example} is no post of this collection")
    if regime != "mini" or task == 2:  # in Task 2 the documents are visual ids, which the formulas tell
        posts = None
    relevant, _ = relevant_grade(judgments, given)
    measures = own_measures or measures_of_grade(relevant)
    return Question(
        task,
        topics,
        judgments,
        cast(Regime, regime),
        posts,
        measures=measures,
        relevant=relevant,
        judged_by=judged_by(corpus, task, years),
    )


def judged_by(corpus: Corpus, task: int, years: Sequence[int]) -> str:
    """Return the files that judgments are read from, with their editions; "" where a collection has one set."""
    if not isinstance(corpus, ArqMath):
        return ""
    files = corpus.judgment_files()
    counts = corpus.rekeyings() if task == 2 else {}
    found = []
    for year in years:
        if (name := files.get((task, year))) is not None:
            found.append(name if year not in counts else f"{name}: {counts[year].unknown:,} unknown formulas left out")
    return "; ".join(found)


def tell_apart(corpus: Corpus, questions: Sequence[Question]) -> None:
    """Check that one id of a topic is one text: graphs and vectors are kept by ids.

    Raises:
        CorpusError: two topics have one id and different texts.
    """
    asked: dict[str, tuple[str, str]] = {}
    for topic in (topic for question in questions for topic in question.topics):
        text = (topic.post.title, topic.post.body)
        if asked.setdefault(topic.post.post_id, text) != text:
            raise CorpusError(
                f"two topics of collection {corpus.name} have the id {topic.topic_id!r} and different texts, one of "
                f"them {(text[0] or text[1])[:60]!r}; give each topic an id of its own"
            )
