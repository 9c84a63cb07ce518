"""Entry point of every experiment: ``python -m experiments.run +exp=vn_connectivity [KEY=VALUE ...]``.

Plan a job for each condition and seed, run the missing jobs, write ``outputs/EXP/results.csv``, ``report.md`` and
``report.html``, and print the table of means. Any key of ``conf/`` can be set on the command line:

    python -m experiments.run +exp=vn_connectivity data=arqmath data.root=/data/ARQMath
    python -m experiments.run +exp=vn_connectivity 'experiment.seeds=[1,2]' train.epochs=3
    python -m experiments.run +exp=vn_connectivity 'experiment.only=[none,circular]'
    python -m experiments.run +exp=vn_connectivity job=3/12          # one part of an array of jobs
    python -m experiments.run +exp=vn_connectivity job=list          # run nothing, list the state of each job
    python -m experiments.run +exp=vn_connectivity job=prepare       # make the graphs of all jobs, train nothing

The same command may run in several processes at once, on machines that share the folder ``outputs``: no two of them
run the same job or train the same model.

Exit codes: 0 done; 1 a job failed, with the reason in the table, or the program has a fault; 2 an error, with a
message; 75 stopped by a signal, saved; 130 stopped by Ctrl-C. ``--debug`` shows the traceback of an error.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments.command import HELP, PartFailedError, ended_by, run_usage, take_debug
from experiments.configuration.config import read
from experiments.configuration.errors import CONFIGURATION_ERRORS, check_words, refusal
from experiments.configuration.registration import fault_of, job_settings, register, validated
from experiments.models import Models
from experiments.notes import beaten, displaced, misnamed, of_other_code, unmet, unread, without_effect
from experiments.options import CONFIG_DIR, PROGRAM
from experiments.plan import Job, finished, plan, select, state, status, with_needs
from experiments.report import blocks, breakdowns, results, tables, taking_part
from experiments.report.results import Experiment
from experiments.runner import Runner, check_tasks
from experiments.topic_sets import check_judged, read_topic_sets, tasks_of
from experiments.tracking import logbook
from graphs.counts import counted
from graphs.errors import ConfigError
from graphs.shared_files import locked, write_json
from mathamr.default_settings import CONF
from mathamr.evaluation.result_names import TestName, title, titles
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.data.versions import is_news, mathamr_version
from mathamr.stages.sources import open_data
from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted

LIST, PREPARE = "list", "prepare"
_DEBUG = "MATHAMR_DEBUG"  # in the environment: the way from start() through Hydra to main()
_PRINTED = 4  # measures that fit into a terminal
_DOOR = ".door.lock"  # in outputs/EXP: a shared lock of each process that waits to write the report


@dataclass(frozen=True)
class Ended:
    """Table of means as text, and the number of requested jobs that failed."""

    table: str
    failed: int


def run(composed: DictConfig, command: str, console: Console | None = None) -> Ended:
    """Run the missing jobs of an experiment.

    Args:
        composed: configuration with ``experiment``, as Hydra composes it.
        command: command line, for the report.
        console: progress and messages; None: on standard error.

    Raises:
        MathAMRError: the configuration is no valid experiment, and nothing has run; or another process runs a job with
            other settings, and the other jobs have run.
    """
    console, config = console or Console(), read(composed)
    experiment = config.experiment
    if experiment is None:
        raise ConfigError("no experiment is named; add +exp=NAME, where conf/exp/NAME.yaml describes it")
    if experiment.topic_labels is not None:
        breakdowns.read_labels(Path(experiment.topic_labels))  # a wrong file is refused before posts are read
    corpus = open_data(config.data)
    folder = Path(config.outputs) / experiment.name
    data = corpus.fingerprints()
    jobs = plan(composed, data)
    wanted = select(jobs, None, experiment.only)
    words, own = shlex.split(command), {job.condition: experiment.conditions[job.condition] for job in wanted}
    notes = [*without_effect(words, wanted), *unread(words, jobs, composed), *beaten(words, own)]
    for line in [*notes, *misnamed(experiment.labels, experiment.conditions)]:
        console.say(line)
    shared = Path(config.outputs) / "shared" / f"{corpus.name}-{data.graphs[:12]}"
    models = Models(shared, console.say)
    tasks = tasks_of(experiment, corpus)
    if config.job == LIST:
        if config.data.years:  # a year may be missing; other collections may take long to tell
            check_judged(config.data, corpus, tasks)
        return Ended(listing(wanted, folder, models), 0)
    mathamr_version()  # of now: what is edited meanwhile makes none of these results
    mine = with_needs(select(wanted, None if config.job == PREPARE else config.job), wanted)
    missing = [job for job in mine if finished(job, folder) is None]
    console.say(f"{experiment.name}: {len(missing)} of {len(mine)} jobs to run")
    left = {job.name for job in missing}
    note = of_other_code(mine, [job for job in mine if job.name not in left], folder, models)
    if note and is_news(folder / ".told", mathamr_version()):
        console.say(f"  {note} (not said again)")
    if missing:
        logbook.check(config.wandb)
        base = job_settings(composed) if any(job.settings.track == config.track for job in missing) else None
        check_tasks(base, missing, tasks)
        files = PostFiles(corpus, shared, console)
        topic_sets = read_topic_sets(config.data, experiment, corpus, files, tasks, console)
        runner = Runner(corpus, shared, folder, models, topic_sets, console)
        missing = runner.check(base, missing)
        if config.job == PREPARE:
            runner.prepare(missing)
            return Ended(f"the graphs of {counted(len(missing), 'job')} are in {shared}", 0)
        notes = unmet(mine, folder) if config.job is None else []  # other parts of an array run the rest
        for line in [*notes, *displaced(missing, folder, _recorded(command))]:
            console.say(line)
    elif config.job == PREPARE:
        return Ended(f"all jobs of {experiment.name} are finished", 0)
    _write_plan(jobs, folder, tasks, command)
    try:
        if missing:
            runner.run(missing)
    except ConfigError:
        _write_report(jobs, folder, tasks, command)  # of the jobs that have run
        raise
    found, stands, written = _write_report(jobs, folder, tasks, command)
    lines = [blocks.as_text(tables.mean_table(found.rows, _summary(found)))]
    left_out = tables.not_run(found.rows)
    lines += [
        f"{condition}, seed {seed}: {how}"
        for (condition, seed), how in stands.items()
        if how != "done" and condition not in left_out
    ]
    lines += [f"not run: {', '.join(left_out)}"] if left_out else []
    lines += taking_part.of_other_graphs(found)
    written_to = f"{folder}/results.csv, {folder}/report.md, {folder}/report.html"
    lines.append(written_to if written else f"{written_to}: another process is writing them now")
    return Ended("\n".join(lines), sum(stands[job.condition, job.seed].startswith("failed") for job in mine))


def _write_report(
    jobs: Sequence[Job], folder: Path, tasks: Sequence[TestName], command: str
) -> tuple[Experiment, dict[tuple[str, int], str], bool]:
    """Write the table and the reports, unless another process waits to do so, which has seen all results of this one.

    Elements of an array end together. Each waits at the door for the lock of the report, and leaves the door when it
    has the lock: the last one finds nobody there, and writes.

    Returns:
        The results, the state of each job by condition and seed, and whether the files were written.
    """
    with ExitStack() as report:
        with locked(folder / _DOOR, wait=True, shared=True):
            report.enter_context(locked(folder / ".lock", wait=True))
        # Of two that run it with other seeds, each reports its own.
        _write_plan(jobs, folder, tasks, command)
        stands = {(job.condition, job.seed): status(job, folder) for job in jobs}
        found = results.read(folder)  # after it: what another process ends in between is done
        for row in found.rows:
            place = row["condition"], row["seed"]
            if "done" not in (row["status"], stands[place]):
                row["status"] = stands[place]
            stands[place] = row["status"]
        with locked(folder / _DOOR, patience=0) as written:
            pass
        if written:
            from experiments.report import writing  # imports all parts of a report

            writing.write([found], folder)
    return found, stands, written


def listing(jobs: Sequence[Job], folder: Path, models: Models) -> str:
    """Return the state of each job and its model, and the number of jobs left."""
    rows = [[job.name, state(job, folder), models.state(job), job.key, job.model_key] for job in jobs]
    left = [job for job, row in zip(jobs, rows, strict=True) if row[1] not in ("done", "running elsewhere")]
    to_train = {job.model_key for job in left if models.state(job) not in ("trained", "none")}
    head = ["Job", "State", "Model", "Key", "Model key"]
    done = [job for job, row in zip(jobs, rows, strict=True) if row[1] == "done"]
    lines = [
        blocks.as_text([head, *rows]),
        f"{len(left)} of {len(jobs)} jobs to run, {counted(len(to_train), 'model')} to train",
    ]
    return "\n".join([*lines, *filter(None, [of_other_code(jobs, done, folder, models)])])


def _recorded(command: str) -> str:
    """Return a command as ``experiment.json`` names it."""
    return " ".join(word for word in command.split(" ") if not word.startswith("job="))


def _write_plan(jobs: Sequence[Job], folder: Path, tasks: Sequence[TestName], command: str) -> None:
    """Write ``experiment.json``: facts of the experiment for the report."""
    experiment = jobs[0].experiment
    content = {
        "name": experiment.name,
        "title": experiment.title,
        "command": _recorded(command),
        "baseline": experiment.baseline,
        "baselines": experiment.baselines,
        "conditions": list(experiment.conditions),
        "seeds": experiment.seeds,
        "tasks": list(tasks),
        "labels": experiment.labels,
        "keys": {job.name: job.key for job in jobs},
    }
    if experiment.measures:
        content["measures"] = titles(experiment.measures)
    if experiment.topic_labels is not None:
        content["topic_labels"] = breakdowns.read_labels(Path(experiment.topic_labels))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "experiment.json", content)


def _summary(experiment: Experiment) -> dict[str, tuple[str, float]]:
    """Return the columns of the printed table; at most :data:`_PRINTED` measures for each task."""
    columns: dict[str, tuple[str, float]] = {}
    for task in experiment.tasks:
        of = "" if task == 1 else f" ({title(task)})"
        columns |= {one.key: (f"{one.title}{of}", 1.0) for one in tables.measure_columns(experiment, task)[:_PRINTED]}
    return {**columns, "time_per_epoch_s": tables.COSTS["time_per_epoch_s"]}


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Hydra's entry point; ends the process with the exit code unless it is 0."""
    given = HydraConfig.get()
    submitted = given.mode == RunMode.MULTIRUN  # the launcher waits for a result or an error; an exit is neither
    folders = [source.path for source in given.runtime.config_sources if source.provider == "command-line"]
    words = [*(f"{CONFIG_DIR}{folder}" for folder in folders), *given.overrides.task]
    try:
        ended = run(validated(config), shlex.join([*PROGRAM, *words]))
        print(ended.table)
        sys.stdout.flush()
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get(_DEBUG):
            raise
        code = ended_by(error)  # also in the log of a submitted run
        if submitted and isinstance(error, Exception):
            raise PartFailedError.of(error).ending_job() from error
        sys.exit(code)
    if ended.failed and submitted:
        raise PartFailedError(f"failed jobs: {ended.failed}\n{ended.table}").ending_job()
    if ended.failed:
        sys.exit(1)


def start(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if HELP & set(words):
        print(run_usage())
        return 0
    words = [f"+{word}" if word.startswith("exp=") else word for word in words]
    debug = take_debug(words)
    before = sys.argv
    # Hydra would print its errors, and end with 1, which means that a job has failed.
    changed = {"HYDRA_FULL_ERROR": "1"} | ({_DEBUG: "1"} if debug else {})
    os.environ.update(changed)
    try:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and os.environ.get("RANK", "0") != "0":
            return 0  # torchrun in front: rank 0 runs the experiment, and starts the ranks of each training itself
        check_words(words)
        if "launcher=slurm" in words:
            _ask_the_queue()
        register()
        sys.argv = [before[0], *_processes_of_torchrun(words), *words]
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 2
    except CONFIGURATION_ERRORS as error:
        if debug:
            raise
        from experiments.configuration.composition import known_keys  # imports torch

        return ended_by(fault_of(words) or refusal(error, known_keys))
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        return ended_by(error)
    finally:
        sys.argv = before
        for name in changed:
            os.environ.pop(name, None)
    return 0


def _ask_the_queue() -> None:
    """Let submitit also ask ``squeue`` for jobs that ``sacct`` does not know, as on a cluster without accounting."""
    from submitit.slurm.slurm import SlurmInfoWatcher

    watcher: Any = SlurmInfoWatcher
    ask_sacct = watcher.update

    def update(self: Any) -> None:
        ask_sacct(self)
        code, jobs = subprocess.getstatusoutput("squeue --noheader --array --format=%i")
        if code == 0:
            unknown = self._registered - self._info_dict.keys() - set(jobs.split())
            self._info_dict.update({job: {"State": "ENDED"} for job in unknown})

    watcher.update = update


def _processes_of_torchrun(words: Sequence[str]) -> list[str]:
    """Return ``train.processes=N`` where ``torchrun`` has started N processes; its variables are taken away."""
    size, local = (int(os.environ.get(name, "1")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    if size == 1:
        return []
    if local != size:
        raise ConfigError(
            f"{size} ranks on several machines; an experiment trains on one, with train.processes={local}; "
            "slurm/train_multi_gpu.sbatch trains on several"
        )
    for name in [name for name in os.environ if name in _OF_TORCHRUN or name.startswith("TORCHELASTIC")]:
        del os.environ[name]
    return [] if any(word.startswith("train.processes=") for word in words) else [f"train.processes={size}"]


_OF_TORCHRUN = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK"}


if __name__ == "__main__":
    sys.exit(start())
