"""Files of a finished job: its model, the tensors that the model was trained on, and the posts that it searched.

job = finished_job(Path("outputs/vn_connectivity"), "circular")
job.model           # outputs/shared/mathdocs-b1d7.../models/3fe0.../best
job.tensors         # (outputs/shared/mathdocs-b1d7.../preprocessed-9c1b....db,), which other connectivities share
searched_posts(job, open_data(job.data), ["answer"], Console())      # the judged answers; None: all
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.configuration.composition import configuration_of
from experiments.configuration.config import ExperimentConfig, read
from experiments.models import model_of
from experiments.plan import settings_of
from experiments.topic_sets import read_topic_sets, tasks_of
from graphs.corpus.corpus import Corpus
from graphs.errors import ConfigError, StoreError
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.shared_files import read_json
from graphs.stores.store import GraphStore
from mathamr.evaluation.result_file import read_result
from mathamr.stages import needed
from mathamr.stages.collection import file_name
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.settings import DataSettings, JobSettings
from mathamr.systems.settings.trained import GraphSettings

PART_INDEXED = (
    "  data.regime={}: only the posts that the job searched are indexed; to index all posts, run the experiment again "
    "with data.regime=full"
)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A finished job of a graph model, and its files.

    Attributes:
        shared: folder of the collection's files that jobs share.
        model: checkpoint.
        tensors: tensors of the posts that it learned from, then of posts that are only searched.
        collection: graphs of the posts.
        formulas_db: visual ids of the formulas; None: the collection has none.
    """

    condition: str
    seed: int
    data: DataSettings
    experiment: ExperimentConfig
    shared: Path
    model: Path
    tensors: tuple[Path, ...]
    collection: Path
    formulas_db: Path | None


def finished_job(
    folder: Path, condition: str, seed: int | None = None, *, root: Path | None = None, tensors: Path | None = None
) -> FinishedJob:
    """Find the files of a condition's job, which :func:`finished_condition` finds.

    Args:
        root: present folder of the collection.
        tensors: tensors to take; None: those that the model was trained on.

    Raises:
        ConfigError: no such condition, no finished job, a system without a graph model, or files that were removed.
    """
    experiment, job_seed, record = finished_condition(folder, condition, seed)
    composed = configuration_of(experiment["command"], root)
    described = read(composed).experiment
    assert described is not None  # it has this condition
    settings = settings_of(composed, condition, job_seed)
    if not record.get("model_key") or not isinstance(settings, GraphSettings):
        raise ConfigError(f"condition {condition} is of track={settings.track}, which has no graph model")
    data = settings.data
    key, places = record["model_key"], sorted((folder.parent / "shared").glob(f"{data.name}-*/models"))
    models = list(filter(None, (model_of(place, key, record["source"]) for place in places)))
    if not models:
        if any((place / key).exists() for place in places):
            raise ConfigError(
                f"the model {key} in {folder.parent / 'shared'} was trained again on other graphs than those of the "
                f"job {condition}-seed{job_seed}; remove the result.json of this job and run the experiment again: "
                f"{experiment['command']}"
            )
        raise ConfigError(
            f"{folder.parent / 'shared'} has no model {key}; run the experiment again: {experiment['command']}"
        )
    shared = models[0].parents[1]
    given_tensors, given_formulas = tensors or data.graphs, Path(data.formulas) if data.formulas else None
    formulas = given_formulas or shared / "formulas.db"
    collection = Path(data.collection) if data.collection else shared / file_name(settings, given_formulas)
    if given_formulas is not None and not collection.exists():
        raise ConfigError(
            f"data.formulas={given_formulas} has changed since the job of condition {condition}: {shared} has no "
            f"{collection.name}, the graphs with its trees; run the experiment again: {experiment['command']}"
        )
    return FinishedJob(
        condition,
        job_seed,
        data,
        described,
        shared,
        models[0] / "best",
        (Path(given_tensors),) if given_tensors else _tensors(shared, settings.graph.spec(), record["source"]),
        collection,
        formulas if formulas.exists() else None,
    )


def searched_posts(job: FinishedJob, corpus: Corpus, kinds: Collection[str], console: Console) -> frozenset[str] | None:
    """Return the posts that a job searched, of these ``kinds`` and of others; None: all posts.

    In the regime ``judged`` these are the judged answers; with questions, also the posts with judged formulas (Task 2),
    and the questions of all these posts. The tensors have more: training posts, and posts of other experiments.

    Raises:
        ConfigError: the collection has no judged topics.
    """
    if job.data.regime != "judged":
        return None
    files, tasks = PostFiles(corpus, job.shared, console), tasks_of(job.experiment, corpus)
    judged: dict[int, set[str]] = {1: set(), 2: set()}
    for topic_set in read_topic_sets(job.data, job.experiment, corpus, files, tasks, console):
        judged[topic_set.task].update(topic_set.indexed or ())
    formulas = judged[2] if "question" in kinds or not judged[1] else ()
    return needed.searched_posts(corpus, judged[1], formulas, job.shared, console)


def finished_condition(
    folder: Path, condition: str, seed: int | None = None
) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Return ``experiment.json``, and the seed and the result of the condition's first finished job.

    Args:
        folder: ``outputs/EXP``.
        condition: row of the experiment's table; "": none is given.
        seed: seed of the job; None: the first one that is finished.

    Raises:
        ConfigError: no such condition, or no finished job.
    """
    experiment = read_json(folder / "experiment.json")
    if experiment is None:
        raise ConfigError(f"{folder} has no experiment.json; name the folder of an experiment, e.g. outputs/NAME")
    if condition not in experiment["conditions"]:
        known = ", ".join(experiment["conditions"])
        problem = f"unknown condition {condition!r} of" if condition else "give a condition of"
        raise ConfigError(f"{problem} {experiment['name']}; choose from: {known}")
    seeds: Sequence[int] = experiment["seeds"] if seed is None else [seed]

    def result(one: int) -> dict[str, Any] | None:
        return read_result(folder / "jobs" / f"{condition}-seed{one}")

    for one in seeds:
        if (record := result(one)) is not None:
            return experiment, one, record
    named = f"seed {seed}" if seed is not None else f"seeds {', '.join(map(str, seeds))}"
    command = experiment["command"].replace("python -m experiments.run", "mathamr run")
    reasons = "".join(
        f"; the job of seed {one} failed: {record['reason']}"
        for one in seeds
        if (record := read_json(folder / "jobs" / f"{condition}-seed{one}" / "failed.json") or {}).get("reason")
    )
    finished = ", ".join(str(one) for one in experiment["seeds"] if result(one) is not None)
    ways_out = f"; finished seeds: {finished}" if finished else ""
    if not finished or seed in experiment["seeds"]:
        ways_out += f"; run it: {command}"
    raise ConfigError(f"condition {condition} has no finished job with {named}{reasons}{ways_out}")


def settings_of_condition(folder: Path, condition: str, seed: int | None = None) -> JobSettings:
    """Return the settings of a condition's first finished job; raises as :func:`finished_condition`."""
    experiment, job_seed, _ = finished_condition(folder, condition, seed)
    return settings_of(configuration_of(experiment["command"]), condition, job_seed)


def _tensors(shared: Path, spec: VirtualNodeSpec, source: str) -> tuple[Path, ...]:
    """Return the files with the configuration and the graphs that ``source`` names, as ``result.json`` has them."""
    config_hash, content = source.split("-")[:2]
    fitting = {
        path: store
        for path in sorted(shared.glob("preprocessed-*.db"))
        if path.with_suffix(".done").exists()
        and (store := _store(path, spec)) is not None
        and store.config_hash.startswith(config_hash)
    }
    exact = [path for path, store in fitting.items() if store.source == content]
    found = exact[:1] or list(fitting)  # exact ones are equal, under names by other versions of the code
    if len(found) != 1:
        which = f"{len(found)} fit: {', '.join(map(str, found))}" if found else "none fits"
        raise ConfigError(f"{shared}: of the tensors preprocessed-*.db {which} (graphs {source}); give --tensors")
    searched = [path for path in sorted(shared.glob("searched-*.db")) if path.with_suffix(".done").exists()]
    whole = fitting[found[0]].config_hash
    further = [path for path in searched if (store := _store(path, spec)) is not None and store.config_hash == whole]
    return (found[0], *further)


def _store(path: Path, spec: VirtualNodeSpec) -> GraphStore | None:
    """Tensors in a file with some virtual nodes; None if it has other formula trees or an earlier format."""
    try:
        return GraphStore(path, spec)
    except StoreError:
        return None
