"""Index of a folder of documents by systems that learn nothing: BM25, structure of formulas, a text encoder as it is.

print(index_documents(Path("notes"), ["bm25", "structure"], Path("index"), Console()))
# index:     340 posts of notes, ranked by bm25+structure

Several systems are fused by the sum of their standard scores. There are no topics and no judgments, so no experiment:
each system runs the steps of a job on the documents, up to its index. Another call reads and indexes everything again;
vectors of unchanged passages, whose ids have a digest of their text, are taken from the index before.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.configuration.composition import compose_settings
from experiments.configuration.registration import job_settings
from experiments.options import setting
from graphs import shared_files
from graphs.corpus.corpus import Corpus, open_corpus
from graphs.counts import counted
from graphs.errors import ConfigError, printable
from graphs.stores.posts import PostTexts
from mathamr.folder.collection import record_files
from mathamr.retrieval.folder import DOCUMENTS
from mathamr.search_index import PARTS, IndexedJob, identity_of, keep, part_of, write_index
from mathamr.stages.console import Console
from mathamr.stages.data.formulas import check_workers
from mathamr.stages.retrieval.folder_index import documents, forget_model, summary
from mathamr.stages.settings import JobSettings
from mathamr.stages.topic_sets import Encoded, Indexed, TopicSet, Trained
from mathamr.systems import registry
from mathamr.systems.searchable.kept import FinishedSearch
from mathamr.systems.searchable.vectors import copy_vectors
from mathamr.systems.system import System
from mathamr.systems.thread_search import searches_of

_WORKING = "working"
_MADE_HERE = ("track", "data", "data.root", "data.regime", "fusion.of")
_NO_TOPICS = TopicSet(1, [], [], "full")


def index_documents(
    folder: Path, tracks: Sequence[str], out: Path, console: Console, changes: Sequence[str] = (), *, workers: int = 1
) -> str:
    """Read the documents of ``folder`` and write their index to ``out``; return lines on what was read and built.

    Args:
        tracks: systems; several are fused.
        changes: settings as ``KEY=VALUE``, e.g. ``text.encoder=FOLDER``.
        workers: number of processes that read the documents.

    Raises:
        ConfigError: a system that does not exist, learns, or cannot be kept; a setting that is unknown or made here;
            or structure alone for documents without formulas.
        CorpusError: not a folder, or one without any passage.
        StoreError: another process that builds this index.
    """
    if len(set(tracks)) < len(tracks):
        raise ConfigError(f"--track {' '.join(tracks)} names a system twice; name each once")
    check_workers(workers)
    for track in tracks:
        _check(track)
    for change in changes:
        if change.lstrip("+~").partition("=")[0] in _MADE_HERE:
            raise ConfigError(f"--set {change}: mathamr index sets this key itself; leave it out")
    place = out / DOCUMENTS
    every = [_settings([f"track={track}"], place, changes) for track in tracks]
    for settings in every:
        _check_untrained(settings)
    with documents(folder, out, console, workers=workers) as found:
        corpus, working = open_corpus("jsonl", place), place / _WORKING
        maker = _Maker(corpus, working / identity_of(corpus), console, out)
        own = printable(folder.resolve().name)
        posts_db = maker.prepared(every[0]).posts_db
        with PostTexts(posts_db) as texts:
            post_ids = list(texts.post_ids("answer"))
            if not any(texts.get([post_id])[post_id].text.formulas for post_id in post_ids):
                every = _without_formulas(every, console)
        tracks = [settings.track for settings in every]
        count, name = len(post_ids), "+".join(tracks)
        identity = IndexedJob(own, name, 0, own, found.identity, count)

        def keep_all(target: Path) -> dict[str, Any]:
            if len(every) == 1:
                return maker.keep(every[0], target)
            parts = {one.track: maker.keep(one, target / PARTS / one.track) for one in every}
            fused = _settings(["track=fusion", f"fusion.of=[{','.join(tracks)}]"], place, changes)
            return maker.keep(fused, target, parts)

        forget_model(place)
        write_index(out, posts_db, keep_all, identity)
        record_files(found, place)
        shutil.rmtree(working)
        lines = [f"index:     {counted(count, 'post')} of {own}, ranked by {name}"]
        return "\n".join([*lines, *summary(found, place)])


def _settings(words: Sequence[str], place: Path, changes: Sequence[str]) -> JobSettings:
    defaults = ["+exp=trial", "text.epochs=0", "fusion.how=standard", "bm25.stem=accents"]
    data = ["data=jsonl", "data.regime=full", setting("data.root", place)]
    return job_settings(compose_settings([*defaults, *changes, *words, *data]))


def _without_formulas(every: Sequence[JobSettings], console: Console) -> list[JobSettings]:
    """Return the systems that can rank documents without any formula."""
    able = [settings for settings in every if settings.track != "structure"]
    if not able:
        raise ConfigError("the documents have no formulas, which track=structure compares; use --track bm25")
    if len(able) < len(every):
        console.say("the documents have no formulas; they are indexed without track=structure")
    return able


def _check(track: str) -> None:
    """Raise if a system cannot be kept, or combines other systems."""
    if registry.settings_of(track).needs is not JobSettings.needs:
        raise ConfigError(f"track={track} combines other systems; name these, e.g. --track bm25 structure")
    registry.find(track).check_kept()


def _check_untrained(settings: JobSettings) -> None:
    """Raise if a system learns from pairs with its settings."""
    if registry.find(settings.track).pairs is not System.pairs and getattr(settings, "is_trained", True):
        raise ConfigError(
            f"track={settings.track} learns from pairs, which documents do not have; use a trained model: --from "
            "outputs/EXP CONDITION, or --model FOLDER of a graph model"
        )


@dataclass(frozen=True)
class _Maker:
    """Runs the steps of a system on the documents; ``out`` is the folder of the index before, if there is one."""

    corpus: Corpus
    shared: Path
    console: Console
    out: Path

    def prepared(self, settings: JobSettings) -> System[Any]:
        """Return a system that has made its shared files."""
        system: System[Any] = registry.find(settings.track)(self.corpus, self.shared, self.console)
        system.check(settings, [_NO_TOPICS])
        system.prepare(settings, [_NO_TOPICS])
        return system

    def keep(self, settings: JobSettings, target: Path, parts: dict[str, Any] | None = None) -> dict[str, Any]:
        """Keep a system in a new folder; return its entry of the manifest."""
        system = self.prepared(settings)
        (search,) = searches_of(system, settings, [_NO_TOPICS])
        trained, encoded = Trained(Path()), Encoded(None)
        if settings.model_key_parts() is not None:
            folder = self.shared / "models" / settings.track
            folder.mkdir(parents=True, exist_ok=True)
            if (before := part_of(self.out, settings.track, _key(settings))) is not None:
                copy_vectors(before, folder)
            trained = system.train(settings, folder, lambda record: None)
            encoded = system.encode(settings, trained, [_NO_TOPICS])
        working = self.shared / "index"
        indexed = Indexed(None) if parts else system.index(settings, encoded, _NO_TOPICS, working)
        with closing(indexed):
            finished = FinishedSearch(settings, trained, encoded, indexed, _NO_TOPICS, working)
            kept = keep(system, finished, search, target, parts or {})
        shutil.rmtree(working, ignore_errors=True)
        return {**kept, "settings": _key(settings)}


def _key(settings: JobSettings) -> str:
    """Return the hash of what vectors depend on apart from the documents; it has code of other packages only."""
    code = [registry.key_parts(settings.track)["code"]] if registry.is_installed(settings.track) else []
    return shared_files.key([settings.model_key_parts(), settings.result_key_parts(), *code])
