"""Submission files of an experiment's job, and the check of any such files.

    files, collection = write_submission(Path("outputs/arqmath3_benchmark"), "best", RunName("MyLab", "plus"), out)
    wrong = [report(path, task, collection, {}, None) for path, task in files.items()]

mathamr submit is their command. What is wrong with a file is printed as FILE:LINE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.composition import configuration_of
from experiments.config import read
from experiments.report import results
from experiments.report.results import Row
from graphs.corpus.corpus import Corpus, benchmark
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, EvaluationError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.result_names import ARQMATH
from mathamr.evaluation.runs import Qrels, Run, Task, read_qrels, read_run, read_visual_ids, write_run
from mathamr.evaluation.submission import FILE_NAME, Known, Problem, Submission, read_submission
from mathamr.stages.sources import open_data

RUNS: dict[Task, str] = {1: "run.tsv", 2: "run-task2.tsv"}
SHOWN = 5  # problems of a kind that are printed


@dataclass(frozen=True)
class Collection:
    """Source of ids: a corpus, and the years of its topics."""

    corpus: Corpus
    years: list[int]

    def topic_ids(self, task: Task) -> set[str]:
        """Return the topics of a task."""
        return {topic.topic_id for topic in benchmark(self.corpus).topics(task, self.years)}

    def known_posts(self, wanted: set[str], *, formulas: bool) -> dict[str, Known]:
        """Return the ``wanted`` posts that exist, with the ids of their formulas; one pass over the posts."""
        posts: dict[str, Known] = {}
        for post in self.corpus.posts():
            if isinstance(post, Post) and post.post_id in wanted:
                ids = frozenset(formula.formula_id for formula in extract(post).formulas) if formulas else frozenset()
                posts.setdefault(post.post_id, Known(post.kind, ids))
        return posts


@dataclass(frozen=True)
class RunName:
    """Names of a run that is submitted.

    Args:
        team: first part of the files' names.
        run: name of the run, in the files' names and last column.
        alternate: whether it is an alternate run (A), not the primary one (P).
    """

    team: str
    run: str
    alternate: bool = False


def write_submission(
    folder: Path, job: str, name: RunName, out: Path, root: Path | None = None
) -> tuple[dict[Path, Task], Collection]:
    """Write the files of one job; return them with their tasks, and the collection of the experiment.

    Args:
        folder: ``outputs/EXP``.
        job: CONDITION-seedN, or best.
        out: folder of the files.
        root: folder where the collection lies now.

    Raises:
        ConfigError: no such job, or a name that no file can have.
        EvaluationError: the job has left no run.
    """
    experiment = results.read(folder)
    row = selected_row(experiment, job)
    files: dict[Path, Task] = {}
    runs: dict[Path, Run] = {}
    for task in (task for task, left in RUNS.items() if (experiment.place(row) / left).exists()):
        file_name = f"{name.team}-task{task}-{name.run}-auto-both-{'A' if name.alternate else 'P'}.tsv"
        if not FILE_NAME.fullmatch(file_name):
            raise ConfigError(
                f"{file_name!r} is no name of a file: team and run are letters, digits and _ (run: . + too)"
            )
        found = read_run(experiment.place(row) / RUNS[task], task=task)
        runs[out / file_name] = Run(name.run, found.rankings, task)
        files[out / file_name] = task
    if not files:
        raise EvaluationError("has no run.tsv; run the job again", path=experiment.place(row))
    data = read(configuration_of(experiment.commands[-1] if experiment.commands else "", root)).data
    collection = Collection(open_data(data), data.years)
    for path, run in runs.items():
        write_run(run, path)
    scores = ", ".join(f"{title} {row[key]:.4f}" for key, title in ARQMATH.items() if key in row)
    print(f"{experiment.name}, {row['condition']}, seed {row['seed']} (regime {row['regime']}: {scores})")
    return files, collection


def selected_row(experiment: results.Experiment, job: str) -> Row:
    """Return the row of a finished job, by name or by its ranking of held-out training pairs.

    Raises:
        ConfigError: no such job, or it has no result.
    """
    done = [row for rows in experiment.done().values() for row in rows]
    if not done:
        raise ConfigError(f"no job of {experiment.name} is finished; run it: {' '.join(experiment.commands)}")
    if job == "best":
        return max(done, key=lambda row: float(row.get("best_val_mrr", 0.0)))
    named = {f"{row['condition']}-seed{row['seed']}": row for row in done}
    if job not in named:
        raise ConfigError(f"job={job} is not among the finished ones: {', '.join(named)}")
    return named[job]


def report(
    path: Path, task: Task, collection: Collection | None, qrels: Mapping[Path, Qrels], visual_ids: Path | None
) -> bool:
    """Print what is wrong with a file, what is in it, and its scores; returns whether anything is wrong.

    Of the ``qrels`` those count that judge any of its topics, with all of theirs: one without a result scores 0.
    """
    submission = read_submission(path, task=task)
    topics = None if collection is None else collection.topic_ids(task)
    posts = None if collection is None else collection.known_posts(submission.post_ids, formulas=task == 2)
    problems = submission.problems(topics=topics, posts=posts)
    _print_problems(path, problems)
    verdict = f"{len(problems):,} problems" if problems else "valid"
    unchecked = "" if collection else "; topics and ids not looked up (give --corpus)"
    size = f"{len(submission.rows):,} results for {len(submission.topic_ids)} topics"
    print(f"{path}: Task {task}, {size}: {verdict}{unchecked}")
    if topics is not None and (silent := sorted(topics - set(submission.topic_ids))):
        print(
            f"  {len(silent)} topics have no result and score 0: {', '.join(silent[:10])}{' ...' * (len(silent) > 10)}"
        )
    if not FILE_NAME.fullmatch(path.name):
        print("  the labs name files TEAM-task1-RUN-auto-both-P.tsv (auto or manual; both, math or text; P or A)")
    judged = [source for source, grades in qrels.items() if not grades.keys().isdisjoint(submission.topic_ids)]
    if judged and submission.malformed:
        print("  no scores: there are lines that cannot be read")
    elif judged:
        print(f"  {scores(path, submission, read_qrels(*judged), visual_ids)}")
    return bool(problems)


def _print_problems(path: Path, problems: Sequence[Problem]) -> None:
    shown: Counter[str] = Counter()
    for problem in problems:
        shown[problem.kind] += 1
        if shown[problem.kind] <= SHOWN:
            print(f"{path}:{problem.line}: {problem.message}")
    more = [f"{count - SHOWN:,} more of kind {kind}" for kind, count in shown.items() if count > SHOWN]
    if more:
        print(f"{path}: and {', '.join(more)}")


def scores(path: Path, submission: Submission, qrels: Qrels, visual_ids: Path | None) -> str:
    """Return the official scores of a file as a line."""
    mapped = None
    if submission.task == 2:
        if visual_ids is None:
            return "Task 2 is judged by visual id: give --visual-ids for its scores"
        mapped = read_visual_ids(visual_ids, {row.formula_id or "" for row in submission.rows})
    result = evaluate(read_run(path, task=submission.task), qrels, visual_ids=mapped)
    numbers = ", ".join(f"{title} {result.aggregate[key]:.4f}" for key, title in ARQMATH.items())
    return f"{numbers} ({result.topics} topics)"
