"""Keys: hashes of everything that a model, rankings and a result depend on.

    rankings = run_key(settings, data)
    job_key(rankings, config, data)     # equal as long as no setting, file or code of a package changes

The settings of a system list their dependencies (:class:`mathamr.stages.settings.JobSettings`): a model of
``track=graph`` depends on ``graph``, ``model``, ``train`` and the seed, its rankings also on ``index`` and
``retrieval``. ``track=bm25`` has no model; its rankings depend on ``bm25`` and ``retrieval.k``.

New judgments change only :func:`job_key`: rankings are judged again. In the regime ``judged`` they also change the
search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from experiments.configuration.config import Config, GeometryConfig
from graphs import digests, shared_files
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError
from graphs.shared_files import joined
from mathamr.evaluation.metrics import measure_identity
from mathamr.stages.settings import JobSettings
from mathamr.systems import registry

# Settings of the collection that no result depends on: where files are. So is texts, whose content is in the keys of
# models; keys have its default.
_PLACES = ("root", "sources", "posts", "collection", "formulas", "graphs", "judgments", "relevant_grade")


def model_key(settings: JobSettings, data: Fingerprints, needs: Sequence[str] = ()) -> str:
    """Return the hash of everything that a trained model depends on; empty where nothing is trained.

    ``needs`` are those of :func:`run_key`.
    """
    if (parts := _model_parts(settings)) is None:
        return ""
    own = {"collection": data.graphs, **registry.key_parts(settings.track)}
    rankings = {"parts": list(needs)} if needs else {}
    return shared_files.key(joined(own, rankings, _made_elsewhere(settings), parts))


def _model_parts(settings: JobSettings) -> Mapping[str, Any] | None:
    parts = settings.model_key_parts()
    return None if parts is None else _checked(parts, settings, "model_key_parts")


def _checked(parts: object, settings: JobSettings, method: str) -> Mapping[str, Any]:
    """Return what a method of the settings of a system returned; raise unless it is a mapping."""
    if not isinstance(parts, Mapping):
        of = f"the settings of track={settings.track}{registry.owner(settings.track)}"
        raise ConfigError(f"{method}() of {of} returned {parts!r}; return a dict")
    return parts


def _made_elsewhere(settings: JobSettings) -> dict[str, str]:
    """Return the identity of each file that ``data.collection``, ``data.formulas`` and ``data.graphs`` name."""
    from mathamr.stages.collection import file_identity  # imports the parser of formulas

    data = settings.data
    named = {"collection": data.collection, "formulas": data.formulas, "graphs": data.graphs}
    return {f"given_{name}": file_identity(Path(value)) for name, value in named.items() if value is not None}


def run_key(settings: JobSettings, data: Fingerprints, needs: Sequence[str] = ()) -> str:
    """Return the hash of everything that the rankings of a job depend on.

    Args:
        needs: ``run_key`` of each job whose rankings it combines; the collection and the topics act through these.
    """
    parts = _checked(settings.result_key_parts(), settings, "result_key_parts")
    own = joined(registry.key_parts(settings.track), _model_parts(settings) or {}, parts)
    if settings.learns_from_judgments:
        own = joined(own, {"judgments": data.judgments, "grade": settings.data.relevant_grade})
    if needs:
        return shared_files.key(joined(own, {"parts": list(needs)}))
    places = {name: value for name, value in asdict(settings.data).items() if name not in _PLACES} | {"texts": None}
    content = {"collection": data.searches, "data": places, "tasks": list(settings.tasks)} | _made_elsewhere(settings)
    if settings.data.regime == "judged":  # what is judged is what is searched
        content |= {"judgments": data.judgments, "example": asdict(settings.example)}
    return shared_files.key(joined(content, own))


def job_key(rankings: str, config: Config, data: Fingerprints) -> str:
    """Return the hash of everything that the result of a job depends on; ``rankings`` is its :func:`run_key`."""
    grade, experiment = config.data.relevant_grade, config.experiment
    assert experiment is not None
    measured: dict[str, Any] = {"tasks": experiment.tasks, "example": asdict(experiment.example)}
    if experiment.measures:
        measured["measures"] = {title: measure_identity(name) for title, name in experiment.measures.items()}
    if analyses := sorted(experiment.analyses):  # keys stay unchanged without analyses
        sampled = {"posts": config.geometry.posts}  # what the other analyses look at
        measured["analyses"] = [*analyses, _geometry_parts(config.geometry) if "geometry" in analyses else sampled]
    return shared_files.key({"rankings": rankings, "judgments": data.judgments, "grade": grade, "experiment": measured})


def _geometry_parts(geometry: GeometryConfig) -> dict[str, Any]:
    """Return the settings of the analysis of vectors, with the content of its file of general text."""
    if geometry.general is None:
        return asdict(geometry)
    try:
        content = digests.of_file_once(Path(geometry.general))
    except OSError as error:
        raise ConfigError(f"geometry.general={geometry.general} cannot be read: {error.strerror}") from error
    return {**asdict(geometry), "general": [Path(geometry.general).name, content]}  # the report names the file


def condition_key(settings: JobSettings, config: Config, data: Fingerprints, needs: Sequence[str] = ()) -> str:
    """Return the hash of everything but the seed that the results of a condition depend on.

    ``settings`` are those of one of its jobs, ``needs`` the keys of the conditions that it needs.
    """
    seedless: dict[str, Any] = {"seed": 0}
    if (train := getattr(settings, "train", None)) is not None:
        seedless["train"] = replace(train, seed=0)
    rankings = run_key(replace(settings, **seedless), data)
    return shared_files.key({"job": job_key(rankings, config, data), "parts": needs})
