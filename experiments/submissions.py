"""Submission files of an experiment's job, and the check of any such files.

    written = write_submission(Path("outputs/arqmath3_benchmark"), "best", "MyLab", "plus", out)
    for path, task in written.files.items():
        print(*check(path, task, written.collection, {}, None).lines(), sep="\n")  # problems as FILE:LINE: message

They are the functions of mathamr submit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.configuration.composition import configuration_of
from experiments.configuration.config import read
from experiments.report import results
from experiments.report.results import Row
from graphs.corpus.corpus import Corpus, benchmark
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.counts import counted
from graphs.errors import ConfigError, EvaluationError
from mathamr.evaluation.metrics import evaluate, judged_results
from mathamr.evaluation.result_names import ARQMATH
from mathamr.evaluation.runs import Qrels, Run, Task, read_qrels, read_run, read_visual_ids, write_run
from mathamr.evaluation.submission import FILE_NAME, Known, Problem, read_submission
from mathamr.stages.retrieval.scoring import formulas_of, in_ids_of
from mathamr.stages.sources import open_data

RUNS: dict[Task, str] = {1: "run.tsv", 2: "run-task2.tsv"}
SELECTED_BY = "best_val_mrr"
"""Column of results that selects the best job: its ranking of held-out training pairs."""
SHOWN = 5  # problems of a kind that are printed


@dataclass(frozen=True)
class Collection:
    """Source of ids: a corpus, and the years of its topics."""

    corpus: Corpus
    years: list[int]

    @cached_property
    def _publishes_ids(self) -> bool:
        return self.corpus.formulas() is not None

    def topic_ids(self, task: Task) -> set[str]:
        """Return the topics of a task."""
        return {topic.topic_id for topic in benchmark(self.corpus).topics(task, self.years)}

    def known_posts(self, wanted: set[str], *, formulas: bool) -> dict[str, Known]:
        """Return the ``wanted`` posts that exist, with the ids of their formulas; one pass over the posts."""
        posts: dict[str, Known] = {}
        for post in self.corpus.posts():
            if isinstance(post, Post) and post.post_id in wanted:
                found = extract(post).formulas if formulas else ()
                ids = frozenset(one.formula_id for one in found if self.has_id(one.formula_id, post.post_id))
                posts.setdefault(post.post_id, Known(post.kind, ids))
        return posts

    def has_id(self, formula_id: str, post_id: str | None) -> bool:
        """Return whether a formula of a post has an id of the collection, if it publishes ids, not one of ours."""
        return not self._publishes_ids or not formula_id.startswith(f"{post_id}:")


@dataclass(frozen=True)
class Written:
    """Files of the job CONDITION-seedN with their tasks, and the collection of its experiment.

    ``about`` has experiment, job, regime and scores in one line; in a second one, conditions that were not considered.
    """

    job: str
    about: str
    files: dict[Path, Task]
    collection: Collection


def write_submission(
    folder: Path, job: str, team: str, name: str, out: Path, *, alternate: bool = False, root: Path | None = None
) -> Written:
    """Write the files of one job.

    Args:
        folder: ``outputs/EXP``.
        job: CONDITION-seedN, or best.
        team: first part of the files' names.
        name: name of the run, in the files' names and last column.
        alternate: whether it is an alternate run (A), not the primary one (P).
        root: present folder of the collection; None: the folder of the experiment.

    Raises:
        ConfigError: no such job, or an invalid file name.
        EvaluationError: the job has no run file.
    """
    experiment = results.read(folder)
    row = selected_row(experiment, job)
    runs: dict[Path, Run] = {}
    for task in (task for task, left in RUNS.items() if (experiment.place(row) / left).exists()):
        file_name = f"{team}-task{task}-{name}-auto-both-{'A' if alternate else 'P'}.tsv"
        if not FILE_NAME.fullmatch(file_name):
            raise ConfigError(
                f"{file_name!r} is no valid file name: use letters, digits and _ in team and run (in run also . and +)"
            )
        found = read_run(experiment.place(row) / RUNS[task], task=task)
        runs[out / file_name] = Run(name, found.rankings, task)
    if not runs:
        raise EvaluationError("has no run.tsv; run the job again", path=experiment.place(row))
    data = read(configuration_of(experiment.commands[-1] if experiment.commands else "", root)).data
    collection = Collection(open_data(data), data.years)
    left_out = 0
    for path, run in runs.items():
        rankings = {
            topic: [hit for hit in hits if run.task == 1 or collection.has_id(hit.doc_id, hit.post_id)]
            for topic, hits in run.rankings.items()
        }
        left_out += sum(len(hits) for hits in run.rankings.values()) - sum(len(hits) for hits in rankings.values())
        write_run(replace(run, rankings=rankings), path)
    scores = ", ".join(f"{title} {row[key]:.4f}" for key, title in experiment.measures.items() if key in row)
    about = f"{experiment.name}, {row['condition']}, seed {row['seed']} (regime {row['regime']}: {scores})"
    others = [name for name, rows in experiment.done().items() if all(SELECTED_BY not in one for one in rows)]
    if job == "best" and SELECTED_BY in row and others:
        about += f"\nnot considered, because they rank no held-out training pairs: {', '.join(others)}; --job names one"
    if left_out:
        about += f"\nleft out, because their formulas have no id in the collection: {counted(left_out, 'result')}"
    files = {path: run.task for path, run in runs.items()}
    return Written(f"{row['condition']}-seed{row['seed']}", about, files, collection)


def selected_row(experiment: results.Experiment, job: str) -> Row:
    """Return the row of a finished job, by name or by its ranking of held-out training pairs.

    Raises:
        ConfigError: no such job, it has no result, or no job ranks held-out training pairs.
    """
    done = experiment.finished()
    if not done:
        raise ConfigError(f"no job of {experiment.name} is finished; run it: {' '.join(experiment.commands)}")
    if job == "best":
        ranked = [row for row in done if SELECTED_BY in row]
        if not ranked and len({row.get("key") for row in done}) > 1:  # copies for several seeds share a key
            raise ConfigError(
                f"no finished job of {experiment.name} ranks held-out training pairs ({SELECTED_BY}), so none is the "
                f"best; name one with --job CONDITION-seedN, e.g. --job {done[0]['condition']}-seed{done[0]['seed']}"
            )
        return max(ranked or done, key=lambda row: float(row.get(SELECTED_BY, 0.0)))
    named = {f"{row['condition']}-seed{row['seed']}": row for row in done}
    if job not in named:
        raise ConfigError(f"job={job} is not among the finished ones: {', '.join(named)}")
    return named[job]


@dataclass(frozen=True)
class FileReport:
    """Result of the check of a file.

    Args:
        topics: number of topics with results.
        problems: problems, in the order of lines.
        missing_topics: topics of the collection without a result; None: topics and ids were not looked up.
        scores: official scores by name; empty without judgments of its topics.
        reason: reason for missing scores, where there are judgments, or notes on the judgments.
    """

    path: Path
    task: Task
    results: int
    topics: int
    problems: list[Problem]
    missing_topics: list[str] | None = None
    scores: dict[str, float] = field(default_factory=dict)
    reason: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report; at most :data:`SHOWN` problems of a kind."""
        shown: Counter[str] = Counter()
        for problem in self.problems:
            shown[problem.kind] += 1
            if shown[problem.kind] <= SHOWN:
                yield f"{self.path}:{problem.line}: {problem.message}"
        more = [f"{count - SHOWN:,} more of kind {kind}" for kind, count in shown.items() if count > SHOWN]
        if more:
            yield f"{self.path}: and {', '.join(more)}"
        verdict = counted(len(self.problems), "problem") if self.problems else "valid"
        unchecked = "; topics and ids not looked up (give --corpus)" if self.missing_topics is None else ""
        size = f"{counted(self.results, 'result')} for {counted(self.topics, 'topic')}"
        yield f"{self.path}: Task {self.task}, {size}: {verdict}{unchecked}"
        if self.missing_topics:
            names = ", ".join(self.missing_topics[:10]) + " ..." * (len(self.missing_topics) > 10)
            yield f"  topics without a result, which score 0 ({len(self.missing_topics)}): {names}"
        if not FILE_NAME.fullmatch(self.path.name):
            yield "  the labs name files TEAM-task1-RUN-auto-both-P.tsv (auto or manual; both, math or text; P or A)"
        yield from (f"  {line}" for line in self.reason.splitlines())
        if self.scores:
            *named, (_, judged) = self.scores.items()
            values = ", ".join(f"{name} {score:.4f}" for name, score in named)
            yield f"  all judgments, regime full: {values} ({counted(round(judged), 'topic')})"

    def content(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "path": str(self.path), "valid": not self.problems}


def check(
    path: Path, task: Task, collection: Collection | None, qrels: Mapping[Path, Qrels], visual_ids: Path | None
) -> FileReport:
    """Check a file, and score it by all ``qrels`` files that judge one of its topics.

    A judged topic without a result scores 0.
    """
    submission = read_submission(path, task=task)
    topics = None if collection is None else collection.topic_ids(task)
    posts = None if collection is None else collection.known_posts(submission.post_ids, formulas=task == 2)
    found = FileReport(
        path,
        task,
        len(submission.rows),
        len(submission.topic_ids),
        submission.problems(topics=topics, posts=posts),
        None if topics is None else sorted(topics - set(submission.topic_ids)),
    )
    judged = [source for source, grades in qrels.items() if not grades.keys().isdisjoint(submission.topic_ids)]
    if not judged:
        return found
    if submission.malformed:
        return replace(found, reason="no scores: there are lines that cannot be read")
    if task == 2 and visual_ids is None:
        return replace(found, reason="Task 2 is judged by visual id: give --visual-ids for its scores")
    run, grades = read_run(path, task=task), read_qrels(*judged)
    mapped = None
    if task == 2 and visual_ids is not None:
        mapped = read_visual_ids(visual_ids, formulas_of(run, grades))
    grades, note = in_ids_of(run, grades, mapped)
    if not judged_results(run, grades, mapped):
        return replace(found, reason=f"no scores: {note}")
    result = evaluate(run, grades, visual_ids=mapped)
    named = {title: result.aggregate[key] for key, title in ARQMATH.items()}
    return replace(found, scores=named | {"topics": result.topics}, reason=note)
