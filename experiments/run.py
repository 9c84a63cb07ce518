"""The entry of every experiment: ``python -m experiments.run +exp=vn_connectivity [KEY=VALUE ...]``.

Plans conditions x seeds, runs the jobs that are not done, writes ``outputs/EXP/results.csv``, ``report.md`` and
``report.html``, and prints the table of means. Any key of ``conf/`` can be set on the command line:

    python -m experiments.run +exp=vn_connectivity data=arqmath data.root=/data/ARQMath
    python -m experiments.run +exp=vn_connectivity 'experiment.seeds=[1,2]' train.epochs=3
    python -m experiments.run +exp=vn_connectivity 'experiment.only=[none,circular]'
    python -m experiments.run +exp=vn_connectivity job=3/12          # one part of an array of jobs
    python -m experiments.run +exp=vn_connectivity job=list          # run nothing, say how each job stands

The same command may run in several processes at once, on machines that share the folder ``outputs``: each takes jobs
that no other works at, and none trains a model that another one trains.

Exit codes: 0 done; 1 a job failed, the table says why; 2 a message says what is wrong; 75 stopped by a signal, saved.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from experiments import logbook
from experiments.config import register, validated
from experiments.models import Models
from experiments.plan import LOCK, Job, finished, plan, select, state, status
from experiments.report import blocks, results, tables
from experiments.report.results import Experiment
from graphs.corpus.arqmath import ArqMath
from graphs.corpus.corpus import Corpus, benchmark
from graphs.corpus.queries.collection import NamedTests
from graphs.errors import ConfigError, CorpusError, MathAMRError, suggestion
from graphs.shared_files import locked, write_json
from mathamr.evaluation.metrics import Regime, measure_of, measures_of_grade, relevant_grade
from mathamr.evaluation.result_names import Asked, key, title, titles
from mathamr.evaluation.runs import Task
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.needed import extent_of
from mathamr.stages.sources import open_data
from mathamr.stages.topic_sets import Question
from mathamr.systems import registry
from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted

if TYPE_CHECKING:
    from mathamr.systems.system import System

LIST = "list"
_PRINTED = 4  # measures that fit into a terminal


@dataclass(frozen=True)
class Ended:
    """The table of means as text, and how many of the jobs that were asked for have failed."""

    table: str
    failed: int


def run(config: DictConfig, command: str) -> Ended:
    """Run what is missing of an experiment.

    Raises:
        MathAMRError: before anything runs, when the configuration makes no experiment.
    """
    console = Console()
    if config.experiment is None:
        raise ConfigError("no experiment is named; add +exp=NAME, where conf/exp/NAME.yaml describes it")
    experiment = config.experiment
    corpus = open_data(config.data)
    folder = Path(config.outputs) / experiment.name
    data = corpus.fingerprints()
    jobs = plan(config, data)
    shared = Path(config.outputs) / "shared" / f"{corpus.name}-{data.graphs[:12]}"
    models = Models(shared, console.say)
    if config.job == LIST:
        return Ended(listing(select(jobs, None, experiment.only), folder, models), 0)
    mine = select(jobs, config.job, experiment.only)
    missing = [job for job in mine if finished(job, folder) is None]
    console.say(f"{experiment.name}: {len(mine)} jobs, {len(mine) - len(missing)} of them done already")
    tasks = tasks_of(config, corpus)
    if missing:
        logbook.check(config.wandb)
        files = PostFiles(corpus, shared, console)
        questions = [pose(config, corpus, files, task) for task in tasks]
        tell_apart(corpus, questions)
        for question in questions:
            if question.judged_by:
                console.say(f"  judgments of {title(question.asked)}: {question.judged_by}")
            if said := relevant_grade(question.judgments, config.data.get("relevant_grade"))[1]:
                console.say(f"  {title(question.asked)}: {said}")
        if len(tasks) < len(experiment.tasks):
            console.say(f"  collection {corpus.name} has no topics of Task 2: only Task 1 is run")
        runner = _Runner(corpus, shared, folder, models, questions, console)
        runner.check(config, missing)
        _write_plan(config, jobs, folder, tasks, command)
        runner.run(missing)
    else:
        _write_plan(config, jobs, folder, tasks, command)
    from experiments.report import writing  # imports torch

    with locked(folder / ".lock", wait=True):  # parts of an array may end together: the last one has seen all jobs
        _write_plan(config, jobs, folder, tasks, command)  # of two that run it with other seeds, each reports its own
        stands = {(job.condition, job.seed): status(job, folder) for job in jobs}
        found = results.read(folder)  # behind it: what another process ends in between is done
        for row in found.rows:
            place = row["condition"], row["seed"]
            if "done" not in (row["status"], stands[place]):
                row["status"] = stands[place]
            stands[place] = row["status"]
        writing.write([found], folder)
    lines = [blocks.as_text(tables.mean_table(found.rows, _summary(found)))]
    lines += [f"{condition}, seed {seed}: {how}" for (condition, seed), how in stands.items() if how != "done"]
    lines += _of_other_graphs(found.rows)
    lines.append(f"{folder}/results.csv, {folder}/report.md, {folder}/report.html")
    return Ended("\n".join(lines), sum(stands[job.condition, job.seed].startswith("failed") for job in mine))


class _Runner:
    """Runs jobs, beside other processes that run the same."""

    def __init__(
        self,
        corpus: Corpus,
        shared: Path,
        folder: Path,
        models: Models,
        questions: Sequence[Question],
        console: Console,
    ) -> None:
        self._corpus, self._shared, self._folder, self._models = corpus, shared, folder, models
        self._questions, self._console = questions, console
        self._systems: dict[str, System] = {}

    def _system(self, config: DictConfig) -> System:
        name = config.track
        if name not in self._systems:
            self._systems[name] = registry.find(name)(self._corpus, self._shared, self._console)
        return self._systems[name]

    def check(self, config: DictConfig, jobs: Sequence[Job]) -> None:
        """Refuse settings that cannot be, once for each condition."""
        from experiments.analyses import geometry  # imports torch

        geometry.check(config)
        if any(job.config.track == config.track for job in jobs):
            self._check(config)
        for job in {job.condition: job for job in jobs}.values():
            try:
                self._check(job.config)
            except MathAMRError as error:
                raise ConfigError(f"condition {job.condition}: {error}") from error

    def _check(self, config: DictConfig) -> None:
        registry.check_abilities(registry.find(config.track), self._questions)
        self._system(config).check(config, self._questions)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run the jobs; those that need what another process has in work come last, and are waited for."""
        from experiments.job import Outcome, run_job  # imports torch

        pending, ended = list(jobs), 0
        while pending:
            elsewhere: list[Job] = []
            waiting: list[Job] = []
            for job in pending:
                self._console.say(f"[{ended + 1}/{len(jobs)}] {job.name}")
                if {need.name for need in job.needs} & {other.name for other in [*elsewhere, *waiting]}:
                    self._console.say("  another process is at what it needs")
                    waiting.append(job)
                    continue
                system = self._system(job.config)
                outcome = run_job(job, self._folder, system, self._models, self._questions, self._console)
                if outcome is Outcome.ENDED:
                    ended += 1
                elif outcome is Outcome.ELSEWHERE:
                    self._console.say("  another process is at it")
                    elsewhere.append(job)
                else:
                    self._console.say("  another process is at what it needs")
                    waiting.append(job)
            stuck = len(waiting) + len(elsewhere) == len(pending)
            # Once more: the other process may have ended, or died. Behind all that others need.
            pending = sorted([*waiting, *elsewhere], key=lambda job: job.depth)
            if stuck and not waiting:
                return
            if stuck:
                self._console.say(f"  waiting for what {waiting[0].name} needs, which another process has in work")
                self._wait(waiting[0])

    def _wait(self, job: Job) -> None:
        """Until nobody works at the model of a job, nor at those that it needs."""
        with self._models.free(job):
            pass
        for need in job.needs:
            with locked(self._folder / "jobs" / need.name / LOCK, wait=True):
                pass


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
    # Topics of other years, or in conflict, are an error of their reader.
    if 2 in tasks and 2 not in benchmark(corpus).tasks():
        tasks.remove(2)
        if not tasks:
            raise ConfigError(f"experiment.tasks=[2], but collection {corpus.name} has no topics of Task 2")
    return tasks


def pose(config: DictConfig, corpus: Corpus, files: PostFiles, task: Asked) -> Question:
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
    asked = benchmark(corpus)
    topics, judgments = asked.topics(task, years), asked.judgments(task, years)
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
        files.read(texts=extent_of(config.data) == "all")
        posts = frozenset(post.post_id for post in files.outlines())
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


def listing(jobs: Sequence[Job], folder: Path, models: Models) -> str:
    """How each job and its model stand, and what is left to do."""
    rows = [[job.name, state(job, folder), models.state(job), job.key, job.model_key] for job in jobs]
    left = [job for job, row in zip(jobs, rows, strict=True) if row[1] not in ("done", "running elsewhere")]
    to_train = {job.model_key for job in left if models.state(job) not in ("trained", "none")}
    head = ["Job", "State", "Model", "Key", "Model key"]
    return f"{blocks.as_text([head, *rows])}\n{len(left)} of {len(jobs)} jobs to run, {len(to_train)} models to train"


def _write_plan(config: DictConfig, jobs: Sequence[Job], folder: Path, tasks: Sequence[Asked], command: str) -> None:
    """``experiment.json``: what the report has to know of the experiment beside its jobs."""
    experiment = config.experiment
    content = {
        "name": experiment.name,
        "title": experiment.title,
        "command": " ".join(word for word in command.split(" ") if not word.startswith("job=")),
        "baseline": experiment.baseline,
        "baselines": _plain(experiment.baselines),
        "conditions": [str(name) for name in experiment.conditions],
        "seeds": list(experiment.seeds),
        "tasks": list(tasks),
        "labels": _plain(experiment.labels),
        "keys": {job.name: job.key for job in jobs},
    }
    if experiment.measures:
        content["measures"] = titles(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "experiment.json", content)


def _summary(experiment: Experiment) -> dict[str, tuple[str, float]]:
    """The columns of the table that a run prints; of many measures the first ones."""
    columns: dict[str, tuple[str, float]] = {}
    for task in experiment.tasks:
        of = "" if task == 1 else f" ({title(task)})"
        columns |= {one.key: (f"{one.title}{of}", 1.0) for one in tables.measure_columns(experiment, task)[:_PRINTED]}
    return {**columns, "time_per_epoch_s": tables.COSTS["time_per_epoch_s"]}


def _of_other_graphs(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A warning where finished rows were not made of the same graphs: these have changed in between."""
    sources = [row["source"] for row in rows if row["status"] == "done" and "source" in row]
    graphs = {source.split("-")[1] for source in sources if "-" in source}  # other systems have no graphs
    if len(graphs) < 2:
        return []
    return [
        f"the graphs have changed between jobs (results.csv, column source: {', '.join(sorted(graphs))}); remove the "
        "result.json of those of earlier graphs, and run again"
    ]


def _plain(group: DictConfig) -> Any:
    return OmegaConf.to_container(group, resolve=True)


@hydra.main(config_path="../conf", config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Hydra's entry point."""
    command = shlex.join(["python", "-m", "experiments.run", *HydraConfig.get().overrides.task])
    try:
        ended = run(validated(config), command)
        print(ended.table)
        if ended.failed:
            sys.exit(1)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last finished stage or checkpoint", file=sys.stderr)
        sys.exit(130)
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except MathAMRError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _refuse_launcher(arguments: Sequence[str]) -> str | None:
    """Why Hydra cannot send the jobs to Slurm, where that is asked for; without ``--multirun`` they would run here."""
    if "launcher=slurm" not in arguments:
        return None
    if find_spec("submitit") is None:
        return (
            "launcher=slurm needs hydra-submitit-launcher: pip install -e '.[slurm]'; or use slurm/seeds_array.sbatch"
        )
    if not {"--multirun", "-m"} & set(arguments):
        return "launcher=slurm sends the parts of a plan: add --multirun and job=1/N,2/N,...,N/N"
    return None


if __name__ == "__main__":
    if refusal := _refuse_launcher(sys.argv[1:]):
        print(f"error: {refusal}", file=sys.stderr)
        sys.exit(2)
    try:
        register()
    except MathAMRError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    main()
