"""Index folder of any system: a manifest that names it and its parts, their files, and the texts of the posts.

write_index(Path("index"), posts_db, keep, IndexedJob("best_answers", "text_sum", 42, "arqmath-mini-1f0c"))
engine, message = open_engine(read(["index=index"])[0])
engine.answer("Why is $e$ irrational?").results[0].post.title

======================  ==========================================================================
``index.json``          format, experiment, condition, seed, collection; the systems by name, nested
``data-*/posts.db``     texts of the posts (:mod:`graphs.stores.posts`)
``data-*/system``       files of the system; those of its parts are in ``parts/NAME``
======================  ==========================================================================

The index of a graph model is a catalog (:mod:`mathamr.search.catalog`); :func:`open_index` opens either kind.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphs.corpus.corpus import Corpus
from graphs.counts import counted
from graphs.errors import ConfigError, StoreError, printable
from graphs.shared_files import only_writer, read_json, write_json
from graphs.stores.posts import PostTexts
from mathamr.retrieval.folder import HEADER, building, open_current, read_header, switch
from mathamr.search.searchable import SearchEngine
from mathamr.search.settings import Settings
from mathamr.search.structured import StructuredFormulas
from mathamr.search.system_engine import SystemEngine
from mathamr.stages.retrieval.threads import Threads
from mathamr.stages.topic_sets import check_step
from mathamr.systems import registry
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, Part, entry
from mathamr.systems.system import System
from mathamr.systems.thread_search import ThreadSearch

FORMAT = "mathamr-system"
VERSION = 1
POSTS, SYSTEM, PARTS, THREADS = "posts.db", "system", "parts", "threads.json"
_RELATIVE = "scores of posts are relative: 0 is the mean of those that a query finds, and the score of a single one"
_CHANGED = "the code of {} has changed since this index was made; build it again with mathamr index"
_OUTDATED = "this index finds no formulas, because an earlier version made it; build it again with mathamr index"


@dataclass(frozen=True)
class IndexedJob:
    """Identity of an indexed job.

    Attributes:
        experiment: name of the experiment; of documents that of their folder, which is the collection, too.
        condition: row of its table.
        collection: name and fingerprint of the collection.
        key: hash of everything that the rankings depend on.
        posts: number of posts that may be found.
    """

    experiment: str
    condition: str
    seed: int
    collection: str
    key: str
    posts: int


def identity_of(corpus: Corpus) -> str:
    """Return the name of a collection with the beginning of its fingerprint."""
    return f"{corpus.name}-{corpus.fingerprints().graphs[:12]}"


def keep(
    system: System[Any],
    job: FinishedSearch[Any],
    search: ThreadSearch,
    folder: Path,
    parts: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Keep a finished job's system in ``folder``; return its entry of the manifest.

    Args:
        system: system of the job, prepared.
        parts: entries of the conditions that the system depends on, kept in ``folder/parts``.

    Raises:
        ConfigError: a system that cannot be kept, or whose record is not JSON.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = check_step(system.name, "keep", system.keep(job, folder), dict)
    try:
        json.dumps(record)
    except (TypeError, ValueError) as error:  # ValueError: it contains itself
        raise ConfigError(f"track={system.name}: keep() returned a record that is not JSON: {error}") from error
    if search.threads is not None:
        wanted = search.topic_set.indexed
        parents = search.threads.parents
        known = {answer: parents[answer] for answer in parents if wanted is None or answer in wanted}
        topics = {topic: sorted(questions) for topic, questions in system.own_questions.items() if questions}
        write_json(folder / THREADS, {"parents": known, "topics": topics})
    return {
        "system": system.name,
        "code": registry.key_parts(system.name).get("code"),
        "record": record,
        "depth": search.depth,
        "limit": search.limit,
        "cut_at": search.cut_at,
        "threads": search.threads is not None,
        "parts": dict(parts),
    }


def write_index(path: Path, posts_db: Path, keep_in: Callable[[Path], Mapping[str, Any]], job: IndexedJob) -> None:
    """Write an index to ``path``, switch to it, and remove the previous one.

    Args:
        keep_in: function that keeps the system in a folder and returns its manifest entry.

    Raises:
        StoreError: another process is building this index, or the index cannot be written.
    """
    with only_writer(path, "building this index"), building(path) as data:
        shutil.copyfile(posts_db, data / POSTS)
        manifest = keep_in(data / SYSTEM)
        header = {"format": FORMAT, "version": VERSION, "model_hash": job.key, **asdict(job), "manifest": manifest}
        switch(path, data, header, list(_unsigned(data / SYSTEM)))


def _unsigned(folder: Path) -> Iterator[Path]:
    """Yield all files below ``folder``, except those of indexes, which have their own header."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not (path / HEADER).is_file():
                yield from _unsigned(path)
        elif path.suffix != ".lock":
            yield path


def open_index(path: Path, *, model: Path | None = None, device: str = "cpu") -> tuple[SearchEngine, Mapping[str, Any]]:
    """Open an index of any system; return its engine and its header, which is empty for a graph model.

    Args:
        model: checkpoint that must have made the index.

    Raises:
        StoreError: a folder that is missing, damaged or of another format, or that lacks a part.
        ConfigError: a system that is not installed, or a checkpoint for an index that is not of a graph model.
    """
    if not is_of_system(path):
        from mathamr.search.engine import Engine  # imports torch, which most systems do not need

        return Engine.open(path, model=model, device=device), {}
    if model is not None:
        raise ConfigError(f"model={model}: {path} is not of a graph model; leave model= out")
    return open_current(path, lambda: _open(path, device))


def _open(path: Path, device: str) -> tuple[SystemEngine, Mapping[str, Any]]:
    header, data = read_header(path, FORMAT, VERSION)
    posts = entry(header, "posts")
    if not isinstance(posts, int) or posts < 0:
        raise StoreError(f"damaged: it has {posts!r} posts; build the index again", path=path / HEADER)
    name = f"{entry(header, 'condition')} of {entry(header, 'experiment')}"
    manifest = entry(header, "manifest")
    part = _open_part(manifest, data / SYSTEM, device)
    try:
        texts = PostTexts(data / POSTS)
    except BaseException:
        part.close()
        raise
    found = list(_structured(part))
    structured = next((one for one in found if one is not None), None)
    outdated = _OUTDATED if found and structured is None else ""
    relative = _RELATIVE if manifest["record"].get("how") == "standard" else ""
    changed = _CHANGED.format(", ".join(names)) if (names := sorted(set(_changed(manifest)))) else ""
    note = "; ".join(filter(None, (relative, outdated, changed)))
    engine = SystemEngine(part, texts, system=name, posts=posts, structured=structured, note=note, outdated=outdated)
    return engine, header


def _structured(part: Part) -> Iterator[StructuredFormulas | None]:
    """Yield the formulas of each system among the parts that compares formulas by structure; None: of an old index."""
    if hasattr(part.searchable, "structured"):
        yield part.searchable.structured
    for own in part.parts.values():
        yield from _structured(own)


def _changed(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield each system of another package, once opened, whose code has changed since the index was made."""
    code = registry.key_parts(manifest["system"]).get("code")
    if manifest.get("code", code) != code:
        yield manifest["system"]
    for own in manifest["parts"].values():
        yield from _changed(own)


def _open_part(manifest: Mapping[str, Any], folder: Path, device: str) -> Part:
    """Open the parts of a system in a manifest, then the system itself."""
    system = entry(manifest, "system")
    if system not in registry.names():
        raise ConfigError(
            f"this index is of track={system}, which is not installed; install the package that provides it"
        )
    if not folder.is_dir():
        raise StoreError(f"the files of track={system} are missing; build the index again", path=folder)
    threads = _threads(folder) if entry(manifest, "threads") else None
    parts: dict[str, Part] = {}
    try:
        for name, own in entry(manifest, "parts").items():
            if name in ("", ".", "..") or Path(name).name != name:
                raise StoreError(f"a part cannot have the name {name!r}; build the index again", path=folder)
            parts[name] = _open_part(own, folder / PARTS / name, device)
        kept = KeptSearch(folder, entry(manifest, "record"), parts, device)
        try:
            searchable = registry.find(system).open_kept(kept)
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:  # of a record written by hand
            message = f"the files of track={system} are damaged: {error!r}; build the index again"
            raise StoreError(message, path=folder) from error
    except BaseException:
        for part in parts.values():
            part.close()
        raise
    limit = entry(manifest, "limit")
    return Part(searchable, entry(manifest, "depth"), limit, threads, parts, manifest.get("cut_at", limit))


def _threads(folder: Path) -> Threads:
    content = read_json(folder / THREADS)
    if content is None:
        raise StoreError("the questions of the answers are missing; build the index again", path=folder / THREADS)
    topics = {topic: frozenset(questions) for topic, questions in entry(content, "topics").items()}
    return Threads(entry(content, "parents"), topics)


def part_of(path: Path, system: str, settings: str) -> Path | None:
    """Return the files of a system in the index ``path``, if it was made with these settings; None without an index."""
    if not is_of_system(path):
        return None
    try:
        header, data = read_header(path, FORMAT, VERSION)
        manifest = header["manifest"]
        own, folder = manifest, data / SYSTEM
        if manifest["system"] != system:
            own, folder = manifest["parts"][system], folder / PARTS / system
        return folder if (own["system"], own.get("settings")) == (system, settings) else None
    except (StoreError, KeyError, TypeError, AttributeError):  # damaged: made anew
        return None


def is_of_system(path: Path) -> bool:
    """Return whether the folder has an index of this module's format rather than a graph model's catalog."""
    try:
        header = json.loads((path / HEADER).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def open_engine(settings: Settings) -> tuple[SearchEngine, str]:
    """Open the index of any system; return its engine and a line about it, with any note.

    Raises:
        ConfigError: ``model=`` is set, but the index is not of a graph model.
        MathAMRError: an index that cannot be opened.
    """
    start = time.perf_counter()
    engine, header = open_index(settings.index, model=settings.model, device=settings.device)
    of = ""
    if header:
        of = f" of {header['collection']}, ranked by {header['condition']}"
        of += f" of {header['experiment']}" if header["experiment"] != header["collection"] else ""
        if unused := [name for name in ("strategy", "exact", "pool", "ef") if name in settings.named]:
            of += f" ({', '.join(f'{name}=' for name in unused)} has no effect: only graph models have strategies)"
        of = printable(of)  # an index may come from anywhere
    loaded = f"{counted(len(engine), 'post')}{of}, loaded in {time.perf_counter() - start:.1f} s"
    note = engine.note if settings.task == "answers" else engine.note.removeprefix(_RELATIVE).removeprefix("; ")
    return engine, f"{loaded}\nnote: {note}" if note else loaded
