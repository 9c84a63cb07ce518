"""The entry of every experiment: ``python -m experiments.run +exp=vn_connectivity [KEY=VALUE ...]``.

Plans conditions x seeds, runs the jobs that are not done, writes ``outputs/EXP/results.csv`` and ``report.md``, and
prints the table of means. Any key of ``conf/`` can be set on the command line:

    python -m experiments.run +exp=vn_connectivity data=arqmath data.root=/data/ARQMath
    python -m experiments.run +exp=vn_connectivity 'experiment.seeds=[1,2]' train.epochs=3
    python -m experiments.run +exp=vn_connectivity job=3/12          # one part of an array of jobs

Exit codes: 0 done; 1 a job failed, the table says why; 2 a message says what is wrong; 75 stopped by a signal, saved.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast, get_args

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from experiments import logbook, report
from experiments.config import register, validated
from experiments.job import run_job
from experiments.outputs import locked
from experiments.plan import finished, plan, select
from experiments.progress import Console
from experiments.tracks import open_track
from experiments.tracks.track import Question
from graphs.corpus.corpus import Corpus, open_corpus
from graphs.errors import ConfigError, MathAMRError
from mathamr.evaluation.metrics import Regime
from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted

TASK = 1


@dataclass(frozen=True)
class Outcome:
    """The table of means as text, and how many of the jobs that were asked for have failed."""

    table: str
    failed: int


def run(config: DictConfig, command: str) -> Outcome:
    """Run what is missing of an experiment.

    Raises:
        MathAMRError: before anything runs, when the configuration makes no experiment.
    """
    console = Console()
    if config.experiment is None:
        raise ConfigError("no experiment is named; add +exp=NAME, where conf/exp/NAME.yaml describes it")
    corpus = open_corpus(config.data.name, config.data.root)
    folder = Path(config.outputs) / config.experiment.name
    fingerprint = corpus.fingerprint()
    jobs = plan(config, fingerprint)
    mine = select(jobs, config.job)
    missing = [job for job in mine if finished(job, folder) is None]
    console.say(f"{config.experiment.name}: {len(mine)} jobs, {len(mine) - len(missing)} of them done already")
    if missing:
        shared = Path(config.outputs) / "shared" / f"{corpus.name}-{fingerprint[:12]}"
        track = open_track(config.track, corpus, shared, console)
        logbook.check(config.wandb)
        for settings in (config, *(job.config for job in missing)):
            track.check(settings)
        question = pose(config, corpus)
        for number, job in enumerate(missing, 1):
            console.say(f"[{number}/{len(missing)}] {job.name}")
            run_job(job, folder, track, question, console)
    folder.mkdir(parents=True, exist_ok=True)
    experiment = config.experiment
    with locked(folder / ".lock", wait=True):  # parts of an array may end together: the last one has seen all jobs
        rows = report.rows_of(jobs, folder)
        report.write_csv(rows, folder / "results.csv")
        report.write_report(rows, folder, title=experiment.title, command=command, baseline=experiment.baseline)
    asked = {(job.condition, job.seed) for job in mine}
    lines = [report.as_text(report.mean_table(rows, report.summary_columns()))]
    lines += [f"{row['condition']}, seed {row['seed']}: {row['status']}" for row in rows if row["status"] != "done"]
    lines.append(f"{folder}/results.csv, {folder}/report.md")
    failed = sum(row["status"].startswith("failed") for row in rows if (row["condition"], row["seed"]) in asked)
    return Outcome("\n".join(lines), failed)


def pose(config: DictConfig, corpus: Corpus) -> Question:
    """The topics that the experiment is measured on, with their judgments."""
    years = list(config.data.years)
    topics = corpus.topics(TASK, years)
    judgments = corpus.judgments(TASK, years)
    if not topics or not judgments:
        raise ConfigError(f"collection {corpus.name} has no judged topics for data.years={years}")
    regime = config.data.regime
    if regime not in get_args(Regime):
        raise ConfigError(f"data.regime={regime} is not one of {', '.join(get_args(Regime))}")
    posts = frozenset(post.post_id for post in corpus.posts()) if regime == "mini" else None
    return Question(TASK, topics, judgments, cast(Regime, regime), posts)


@hydra.main(config_path="../conf", config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Hydra's entry point."""
    command = shlex.join(["python", "-m", "experiments.run", *HydraConfig.get().overrides.task])
    try:
        outcome = run(validated(config), command)
        print(outcome.table)
        if outcome.failed:
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
    register()
    main()
