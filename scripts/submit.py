"""Write the submission files of an experiment's job, or check files: count, ranks, scores, ids, run names.

    python scripts/submit.py outputs/arqmath3_benchmark --team MyLab --run plus --out submission
    python scripts/submit.py outputs/arqmath3_benchmark --team MyLab --run second --out submission --alternate \\
        --job mathamr_plus-seed43
    python scripts/submit.py --check submission/*.tsv --data arqmath --root /data/ARQMath --years 2022
    python scripts/submit.py --check my_run.tsv --qrels qrel_task1_2021.tsv

From an experiment come ``MyLab-task1-plus-auto-both-P.tsv`` and, where it has Task 2, ``MyLab-task2-plus-...``. Without
``--job`` it is the finished job that ranks held-out *training* pairs best (``best_val_mrr``), a choice that has seen
no topic. The collection is the one that the experiment was run on; ``--root`` says where it lies now.

``--check`` takes any file; with ``--data`` topics and ids are looked up in the collection, without it they are not.
With ``--qrels`` the scores are printed, by the official protocol; Task 2 also needs ``--visual-ids``, a formula TSV or
a folder of them. What scripts/evaluate.py scores need not be valid: it reads more forms.

Exit codes: 0 valid; 1 something is wrong with a file, listed as FILE:LINE; 2 a message says what is wrong.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig

from experiments.config import register, validated
from experiments.report import results
from experiments.report.results import Row
from graphs.corpus.corpus import NAMES, Corpus, open_corpus
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, EvaluationError, MathAMRError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Qrels, Run, Task, read_qrels, read_run, read_visual_ids, write_run
from mathamr.evaluation.submission import FILE_NAME, Known, Problem, Submission, read_submission, task_of
from mathamr.stages.sources import open_data

ROOT = Path(__file__).resolve().parents[1]
RUNS: dict[Task, str] = {1: "run.tsv", 2: "run-task2.tsv"}
SHOWN = 5  # problems of a kind that are printed
SCORES = {"ndcg_prime": "nDCG'", "map_prime": "MAP'", "p_prime_10": "P'@10", "bpref": "Bpref"}


@dataclass(frozen=True)
class Collection:
    """What ids are looked up in: a corpus, and the years of its topics."""

    corpus: Corpus
    years: list[int]

    def topic_ids(self, task: Task) -> set[str]:
        """The topics of a task."""
        return {topic.topic_id for topic in self.corpus.topics(task, self.years)}

    def known(self, wanted: set[str], *, formulas: bool) -> dict[str, Known]:
        """Of the ``wanted`` posts those that are there, with the ids of their formulas; one pass over the posts."""
        found: dict[str, Known] = {}
        for post in self.corpus.posts():
            if isinstance(post, Post) and post.post_id in wanted:
                ids = frozenset(formula.formula_id for formula in extract(post).formulas) if formulas else frozenset()
                found.setdefault(post.post_id, Known(post.kind, ids))
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("experiment", type=Path, nargs="?", help="folder outputs/EXP")
    parser.add_argument("--job", default="best", help="CONDITION-seedN; best: by the held-out training pairs")
    parser.add_argument("--team", help="first part of the files' names")
    parser.add_argument("--run", help="name of the run: in the files' names and last column")
    parser.add_argument("--alternate", action="store_true", help="an alternate run (A), not the primary one (P)")
    parser.add_argument("--out", type=Path, help="folder that the files are written to")
    parser.add_argument("--check", type=Path, nargs="+", metavar="FILE", help="check these files")
    parser.add_argument("--task", type=int, choices=(1, 2), help="of the checked files; without it, by their columns")
    parser.add_argument("--data", choices=sorted(NAMES), help="collection that ids are looked up in")
    parser.add_argument("--root", type=Path, help="folder of the collection")
    parser.add_argument("--years", type=int, nargs="*", default=[], help="of the topics, e.g. 2022")
    parser.add_argument("--qrels", type=Path, nargs="+", default=[], help="print the scores by these")
    parser.add_argument("--visual-ids", type=Path, help="scores of Task 2: formula TSV, or a folder of them")
    given = parser.parse_args(arguments)
    if (given.experiment is None) == (given.check is None):
        parser.error("name the folder of an experiment, or files with --check")
    if given.experiment is not None and not (given.team and given.run and given.out):
        parser.error("an experiment's files need --team, --run and --out")
    if given.experiment is not None and (given.data or given.years or given.task):
        parser.error("--data, --years and --task belong to --check; an experiment knows its own")
    try:
        if given.check is not None:
            collection = Collection(open_corpus(given.data, given.root), given.years) if given.data else None
            files = {path: given.task or task_of(path) for path in given.check}
        else:
            files, collection = write_submission(given)
        qrels = {path: read_qrels(path) for path in given.qrels}
        wrong = [report(path, task, collection, qrels, given.visual_ids) for path, task in files.items()]
        return int(any(wrong))
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2


def write_submission(given: argparse.Namespace) -> tuple[dict[Path, Task], Collection]:
    """Write the files of one job; returns them with their tasks, and the collection of the experiment."""
    experiment = results.read(given.experiment)
    row = chosen(experiment, given.job)
    files: dict[Path, Task] = {}
    runs: dict[Path, Run] = {}
    for task in (task for task, name in RUNS.items() if (experiment.place(row) / name).exists()):
        name = f"{given.team}-task{task}-{given.run}-auto-both-{'A' if given.alternate else 'P'}.tsv"
        if not FILE_NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is no name of a file: team and run are letters, digits and _ (run: . + too)")
        found = read_run(experiment.place(row) / RUNS[task], task=task)
        runs[given.out / name] = Run(given.run, found.rankings, task)
        files[given.out / name] = task
    if not files:
        raise EvaluationError("has no run.tsv; run the job again", path=experiment.place(row))
    config = configuration(experiment.commands[-1] if experiment.commands else "", given.root)
    collection = Collection(open_data(config.data), list(config.data.years))
    for path, run in runs.items():
        write_run(run, path)
    scores = ", ".join(f"{title} {row[key]:.4f}" for key, title in SCORES.items() if key in row)
    print(f"{experiment.name}, {row['condition']}, seed {row['seed']} (regime {row['regime']}: {scores})")
    return files, collection


def chosen(experiment: results.Experiment, job: str) -> Row:
    """The row of a finished job, by name or by how well it ranks held-out training pairs.

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


def configuration(command: str, root: Path | None) -> DictConfig:
    """The configuration that ``python -m experiments.run ...`` was run with; ``root`` replaces data.root."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation that does not end
        words = []
    if words[:3] != ["python", "-m", "experiments.run"]:
        raise ConfigError(f"experiment.json names the command {command!r}, which is none of experiments.run")
    moved = [] if root is None else [f"data.root={root}"]
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        try:
            return validated(compose("config", [*words[3:], *moved]))
        except HydraException as error:
            raise ConfigError(f"experiment.json names the command {command!r}: {error}") from error


def report(
    path: Path, task: Task, collection: Collection | None, qrels: Mapping[Path, Qrels], visual_ids: Path | None
) -> bool:
    """Print what is wrong with a file, what is in it, and its scores; returns whether anything is wrong.

    Of the ``qrels`` those count that judge any of its topics, with all of theirs: one without a result scores 0.
    """
    submission = read_submission(path, task=task)
    topics = None if collection is None else collection.topic_ids(task)
    posts = None if collection is None else collection.known(submission.post_ids, formulas=task == 2)
    problems = submission.problems(topics=topics, posts=posts)
    _print_problems(path, problems)
    verdict = f"{len(problems):,} problems" if problems else "valid"
    unchecked = "" if collection else "; topics and ids not looked up (give --data)"
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
    """The official scores of a file as a line."""
    mapped = None
    if submission.task == 2:
        if visual_ids is None:
            return "Task 2 is judged by visual id: give --visual-ids for its scores"
        mapped = read_visual_ids(visual_ids, {row.formula_id or "" for row in submission.rows})
    result = evaluate(read_run(path, task=submission.task), qrels, visual_ids=mapped)
    numbers = ", ".join(f"{title} {result.aggregate[key]:.4f}" for key, title in SCORES.items())
    return f"{numbers} ({result.topics} topics)"


if __name__ == "__main__":
    sys.exit(main())
