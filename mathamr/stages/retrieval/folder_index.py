"""Index of a folder of documents: files -> passages -> graphs -> tensors -> an index for mathamr search.

store = GraphStore(Path("preprocessed.db"))
model = FolderModel(Path("model/best"), store.vocabulary, store.spec)
built = index_folder(Path("notes"), Path("index"), model, IndexBuild(), Console())
print(built)        # 12 files, 340 passages (300 LaTeX, 40 Markdown) ...

The collection, its graphs and the list of failed files are in ``OUT/folder``. The id of a passage has a digest of its
text, so an update parses and encodes new and changed passages only. With another AMR parser it makes all graphs and
vectors anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graphs.corpus.corpus import open_corpus
from graphs.counts import counted
from graphs.errors import CorpusError, StoreError
from graphs.graph.graph_maker import GraphMaker
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.shared_files import only_writer
from graphs.stores import collection
from graphs.stores.collection import Collection
from graphs.whole_file import write_whole
from mathamr.folder.collection import FolderPosts, read_folder, record_files
from mathamr.retrieval.folder import DOCUMENTS, HEADER, read_header
from mathamr.search import catalog
from mathamr.stages.console import Console
from mathamr.stages.data.formulas import check_workers
from mathamr.stages.data.graphs import build_graphs
from mathamr.stages.data.post_files import write_table
from mathamr.stages.data.tensors import build_tensors
from mathamr.stages.parsers import factory
from mathamr.stages.retrieval.indexing import IndexBuild, IndexedFiles, build_search_index
from mathamr.training import checkpoint

SHOWN = 10  # failures that are listed; failures.tsv has all
_INDEXED = "indexed.json"


@dataclass(frozen=True, slots=True)
class FolderModel:
    """Graph model that encodes passages."""

    checkpoint: Path
    vocabulary: Vocabulary
    spec: VirtualNodeSpec


def index_folder(
    folder: Path, out: Path, model: FolderModel, settings: IndexBuild, console: Console, *, workers: int = 1
) -> str:
    """Read the documents of ``folder`` and write their index to ``out``; the same call resumes an interrupted one.

    Returns lines with the counts and times of the build.

    Args:
        settings: with ``update``, files, graphs and vectors that did not change are kept; without an index in ``out``
            everything is made.

    Raises:
        ConfigError: no process.
        CorpusError: not a folder, or one without any passage.
        StoreError: an update of an index that another model made, or another process that builds this index.
    """
    check_workers(workers)
    place = out / DOCUMENTS
    with documents(folder, out, console, update=settings.update, workers=workers) as found:
        parser = GraphMaker(factory()).parser_name
        state = _state(found, model, settings, parser)
        if settings.update and (out / HEADER).exists() and _read(place) == state:
            record_files(found, place)
            return "\n".join([*summary(found, place), "nothing has changed since the last index"])
        forget_model(place)  # a kill between the two writes below would leave the old state
        keeps = settings.update and (out / HEADER).exists() and _is_parsed_by(parser, out, state["model"], console)
        files = _parse_folder(place, found, model, console, settings.update, workers, parser)
        settings = replace(settings, update=keeps)
        built = build_search_index(files, open_corpus("jsonl", place), out, settings, console)
        record_files(found, place)
        write_whole(place / _INDEXED, json.dumps(state) + "\n")
        _remove_all_but(files.collection, place)
        return "\n".join([built, *summary(found, place)])


@contextmanager
def documents(
    folder: Path, out: Path, console: Console, *, update: bool = False, workers: int = 1
) -> Iterator[FolderPosts]:
    """Read the documents of ``folder`` into the collection of the index ``out``, which is locked meanwhile.

    Args:
        update: whether passages of files that did not change are kept.
        workers: number of processes that read.

    Raises:
        CorpusError: not a folder, or one without any passage.
        StoreError: another process builds this index.
    """
    place = out / DOCUMENTS
    new_folders = [path for path in (place, *place.parents) if not path.exists()]
    with only_writer(place, "building this index"):
        try:
            with console.stage("reading files", unit="files") as advance:
                found = read_folder(folder, place, update=update, without=[out], progress=advance, workers=workers)
        except CorpusError:
            _remove_new(new_folders)
            raise
        write_table(found.failures, place / "failures.tsv")
        yield found


def forget_model(place: Path) -> None:
    """Forget which graph model the index of these documents is of, since another system replaces it."""
    (place / _INDEXED).unlink(missing_ok=True)


def _remove_new(new_folders: Sequence[Path]) -> None:
    """Remove the folders that this call has made, innermost first; only the first has a file, its lock."""
    with suppress(OSError):  # another process has written there
        for folder in new_folders:
            (folder / ".lock").unlink(missing_ok=True)
            folder.rmdir()


def _parse_folder(
    place: Path,
    found: FolderPosts,
    model: FolderModel,
    console: Console,
    update: bool,
    workers: int,
    parser: str,
) -> IndexedFiles:
    """Make the graphs and tensors of all passages; an update takes over the graphs that earlier calls made."""
    corpus = open_corpus("jsonl", place)
    source = corpus.fingerprints().graphs
    graphs = place / f"collection-{found.identity}-{hashlib.sha256(parser.encode()).hexdigest()[:8]}.db"
    if update and not graphs.exists():
        for before in sorted(place.glob("collection-*.db")):
            _take_over(before, graphs, set(found.post_ids), source, parser)
    total = len(found.post_ids)
    build_graphs(corpus.posts(), graphs, factory(), console, source=source, workers=workers, total=total)
    for old in place.glob("preprocessed-*.db"):
        old.unlink()  # its vocabulary may be of another model; tensors take seconds
    return files_for(model, graphs, place / f"preprocessed-{found.identity}.db", console, workers=workers)


def files_for(model: FolderModel, graphs: Path, tensors: Path, console: Console, *, workers: int = 1) -> IndexedFiles:
    """Make ``tensors`` of all ``graphs`` with the vocabulary of ``model``; an earlier file of this model is resumed."""
    with Collection(graphs) as collection:
        source, rows = str(collection.meta["source"]), collection.rows()
        build_tensors(
            rows, tensors, model.vocabulary, model.spec, console, source=source, total=len(collection), workers=workers
        )
    return IndexedFiles((tensors,), graphs, model.checkpoint)


def _take_over(before: Path, graphs: Path, wanted: set[str], source: str, parser: str) -> None:
    """Copy the graphs of ``wanted`` posts from an earlier file, unless it cannot be read or is of another parser."""
    try:
        with Collection(before) as old:
            if old.meta.get("parser") == parser:
                some = (graph for graph in old if graph.post_id in wanted)
                collection.add_graphs(graphs, some, source=source, parser=parser)
    except StoreError:
        graphs.unlink(missing_ok=True)


def _remove_all_but(graphs: Path, place: Path) -> None:
    """Remove tensors, earlier graphs and their locks."""
    for pattern in ("collection-*.db*", "preprocessed-*.db*"):
        for path in place.glob(pattern):
            if not path.name.startswith(graphs.name):
                path.unlink()


def _is_parsed_by(parser: str, out: Path, model_hash: str, console: Console) -> bool:
    """Return whether the index in ``out`` is of graphs of ``parser``; say if it is not."""
    header, _ = read_header(out, catalog.FORMAT, catalog.VERSION, model_hash=model_hash)
    before = header.get("parser")
    if before != parser:
        console.say(
            f"the index was parsed by {before or 'an unknown parser'}; all passages are parsed anew by {parser}"
        )
    return bool(before == parser)


def _state(found: FolderPosts, model: FolderModel, settings: IndexBuild, parser: str) -> dict[str, Any]:
    """Return everything that an index depends on, as JSON."""
    return {
        "posts": found.identity,
        "model": checkpoint.weights_hash(model.checkpoint),
        "parser": parser,
        "kinds": sorted(settings.kinds),
        "place": [settings.backend, settings.location, settings.name],
        "server": None if settings.server is None else asdict(settings.server),
        "dtype": settings.dtype,
        "removed": sorted(settings.removed),
    }


def _read(place: Path) -> object:
    """Return the state of the finished index; None without one."""
    try:
        return json.loads((place / _INDEXED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def summary(found: FolderPosts, place: Path) -> list[str]:
    """Return lines on the files of the folder, and the first failures."""
    lines = str(found).splitlines()
    if found.failures:
        lines.append(f"{counted(len(found.failures), 'file')} cannot be read:")
        lines += [f"  {failure.message}" for failure in found.failures[:SHOWN]]
    if len(found.failures) > SHOWN:
        lines.append(f"  all of them: {place / 'failures.tsv'}")
    return lines
