"""Topics that an experiment is measured on: the tasks of ``experiment.tasks``, their topics and their judgments.

tasks = tasks_of(config.experiment, corpus)
topic_sets = read_topic_sets(config.data, config.experiment, corpus, post_files, tasks, console)
topic_sets[0].topics, topic_sets[0].judgments
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from experiments.configuration.config import ExperimentConfig
from graphs.corpus.arqmath import ArqMath
from graphs.corpus.corpus import Corpus, benchmark, check_ids
from graphs.corpus.post import Judgment, Topic
from graphs.corpus.qrels import discriminates
from graphs.corpus.queries.collection import NamedTests
from graphs.errors import ConfigError, suggestion
from mathamr.evaluation.metrics import Regime, check_measures, measure_of, measures_of_grade, relevant_grade
from mathamr.evaluation.result_names import TestName, key, title
from mathamr.evaluation.runs import Task
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.needed import extent_of
from mathamr.stages.settings import DataSettings
from mathamr.stages.topic_sets import TopicSet


def tasks_of(experiment: ExperimentConfig, corpus: Corpus) -> Sequence[TestName]:
    """Return the tasks of ``experiment.tasks``, without Task 2 where the collection has no topics of it.

    Raises:
        ConfigError: an unknown task, Task 2 alone where there are no topics of it, or Task 1 where only Task 2 has any.
    """
    named = experiment.tasks
    if isinstance(corpus, NamedTests):
        if not named or len(set(named)) < len(named) or not set(named) <= set(corpus.tests()):
            tests = ", ".join(corpus.tests())
            raise ConfigError(
                f"experiment.tasks={named}: the tests of this collection are {tests}; write "
                f"'experiment.tasks=[{tests.replace(' ', '')}]' for all"
            )
        return named
    if not named or len(set(named)) < len(named) or not set(named) <= {1, 2}:
        test = any(isinstance(task, str) for task in named)
        hint = "; tests with names are those of data=pairs and of data=beir with several benchmarks" if test else ""
        raise ConfigError(f"experiment.tasks={named} is not one of [1], [1,2], [2]{hint}")
    tasks = [cast(Task, task) for task in sorted(named)]
    # Topics of other years, or in conflict, are an error of their reader.
    known = benchmark(corpus).tasks()
    if 1 in tasks and known == [2]:
        raise ConfigError(f"collection {corpus.name} has topics of Task 2 only; write 'experiment.tasks=[2]'")
    if 2 in tasks and 2 not in known:
        tasks.remove(2)
        if not tasks:
            raise ConfigError(f"experiment.tasks=[2], but collection {corpus.name} has no topics of Task 2")
    return tasks


def read_topic_sets(
    data: DataSettings,
    experiment: ExperimentConfig,
    corpus: Corpus,
    files: PostFiles,
    tasks: Sequence[TestName],
    console: Console,
) -> list[TopicSet]:
    """Return the topics of each task with their judgments; say how they are judged.

    Raises:
        ConfigError: settings that do not fit the collection, or no judged topics.
        CorpusError: two topics have one id and different texts.
    """
    topic_sets = [topic_set_of(data, experiment, corpus, files, task) for task in tasks]
    check_ids(corpus, (topic for topic_set in topic_sets for topic in topic_set.topics))
    for topic_set in topic_sets:
        if topic_set.judged_by:
            console.say(f"  judgments of {title(topic_set.test_name)}: {topic_set.judged_by}")
        if others := _other_editions(corpus, topic_set.task, data.years):
            years = ", ".join(map(str, others))
            console.say(
                f"  data.judgments={data.judgments}: no file has {data.judgments} judgments of "
                f"{title(topic_set.test_name)} of {years}; {' and '.join(sorted(set(others.values())))} ones are read"
            )
        if note := relevant_grade(topic_set.judgments, data.relevant_grade)[1]:
            console.say(f"  {title(topic_set.test_name)}: {note}")
        if not experiment.measures and not discriminates(topic_set.judgments):
            console.say(
                f"  {title(topic_set.test_name)}: the judged documents of each topic have one grade, so nDCG' and MAP' "
                "do not depend on their order; judge documents of other grades too, or set "
                "'+experiment.measures={MRR: RR, nDCG10: nDCG@10}'"
            )
    if len(tasks) < len(experiment.tasks):
        console.say(f"  collection {corpus.name} has no topics of Task 2: only Task 1 is run")
    return topic_sets


def check_judged(data: DataSettings, corpus: Corpus, tasks: Sequence[TestName]) -> None:
    """Raise a ``ConfigError`` for a task without judged topics in a year of ``data.years``; read no posts."""
    if not isinstance(corpus, NamedTests):
        for task in tasks:
            _judged_topics(data, corpus, cast(Task, task))


def _judged_topics(data: DataSettings, corpus: Corpus, task: Task) -> tuple[list[Topic], list[Judgment]]:
    assert task in (1, 2)
    own = benchmark(corpus)
    topics, judgments = own.topics(task, data.years), own.judgments(task, data.years)
    if not topics or not judgments:
        raise ConfigError(f"collection {corpus.name} has no judged topics of Task {task} for data.years={data.years}")
    return topics, judgments


def topic_set_of(
    data: DataSettings, experiment: ExperimentConfig, corpus: Corpus, files: PostFiles, task: TestName
) -> TopicSet:
    """Return the topics of a task that the experiment is measured on, with their judgments."""
    own_measures = {key(title): measure_of(name) for title, name in experiment.measures.items()}
    regime, years = data.regime, data.years
    if isinstance(corpus, NamedTests):
        test = corpus.test(str(task))
        if regime != "full" or years:
            raise ConfigError(f"data.regime={regime} data.years={years}: tests with names search all; use full and []")
        if not test.topics or not test.judgments:
            raise ConfigError(f"test {task} of {data.root} has no judged topics")
        relevant, _ = relevant_grade(test.judgments, data.relevant_grade)
        measures = own_measures or measures_of_grade(relevant)
        check_measures(measures)
        return TopicSet(
            1,
            test.topics,
            test.judgments,
            "full",
            name=str(task),
            measures=measures,
            searched=test.searched,
            swapped=test.swapped,
            learned=test.learned,
            relevant=relevant,
        )
    task = cast(Task, task)
    topics, judgments = _judged_topics(data, corpus, task)
    relevant, _ = relevant_grade(judgments, data.relevant_grade)
    measures = own_measures or measures_of_grade(relevant)
    check_measures(measures)
    if regime not in get_args(Regime):
        raise ConfigError(f"data.regime={regime} is not one of {', '.join(get_args(Regime))}")
    if lost := sorted({judgment.topic_id for judgment in judgments} - {topic.topic_id for topic in topics}):
        raise ConfigError(
            f"{len(lost)} of the judged topics of Task {task} are not among the topics, e.g. {lost[0]}, and would "
            "score 0; add them to the topics, or remove their judgments"
        )
    wanted = experiment.example.topic
    known = [topic.topic_id for topic in topics]
    if task == 1 and wanted is not None and wanted not in known:
        raise ConfigError(
            f"experiment.example.topic={wanted} is no topic of this collection{suggestion(wanted, known)}"
        )
    posts = None
    example = experiment.example.post
    if task == 1 and (regime == "mini" or example is not None):
        files.read(texts=extent_of(data) == "all")
        posts = frozenset(post.post_id for post in files.outlines())
        if example is not None and example not in posts:
            raise ConfigError(f"experiment.example.post={example} is no post of this collection")
    if regime != "mini" or task == 2:  # in Task 2 the documents are visual ids, which the formulas tell
        posts = None
    return TopicSet(
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
    parts = []
    for year in years:
        if (name := files.get((task, year))) is not None:
            parts.append(name if year not in counts else f"{name}: {counts[year].unknown:,} unknown formulas left out")
    return "; ".join(parts)


def _other_editions(corpus: Corpus, task: int, years: Sequence[int]) -> dict[int, str]:
    """Return the editions of judgments by year that are read in place of the one that is asked for."""
    if not isinstance(corpus, ArqMath):
        return {}
    return {
        year: str(name) for (of, year), name in sorted(corpus.other_editions().items()) if of == task and year in years
    }
