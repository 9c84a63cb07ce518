"""Encode posts with a checkpoint and write an index for mathamr search.

    mathamr index --from outputs/vn_connectivity circular --out index      # from a finished experiment
    mathamr index notes --from outputs/vn_connectivity circular --out index      # your documents, with its model
    mathamr index notes --model models/mine --out index --update           # a saved model; new and changed files
    mathamr index notes --out index                                        # words and formulas, without a model
    mathamr index --from outputs/best_answers text_bm25 --out index        # any system, ranked as in its run file
    mathamr index --tensors preprocessed.db --graphs-db collection.db --model model/best \\
        --corpus arqmath --root /data/ARQMath --formulas formulas.db --out index
    mathamr index --from outputs/vn_connectivity circular --graphs-db graphs.db \\
        --corpus jsonl --root posts --out index                            # any posts, with an existing model
    mathamr index ... --backend qdrant           # the Qdrant engine in process (docs/qdrant.md)
    mathamr index ... --backend qdrant --location http://localhost:6333 --name my_index     # a Qdrant server
    mathamr index ... --update --remove gone.txt # encode new posts, drop the listed ones

``--from`` finds model, tensors, graphs and collection of a finished job. CONDITION is a row of the experiment's table
(``configured`` for ``+exp=trial``), of any system; the index gives the rankings of the job's run file. ``--seed``
selects a seed other than the first; ``--root`` is the present folder of the collection; ``--out`` is by default
``outputs/EXP/indexes/CONDITION-seedN``.

Without ``--tensors``, those of ``--graphs-db`` are made beside it with the vocabulary of the model: of a job, or of a
saved model. So any collection can be indexed, also one without topics.

Answers are indexed; ``--kinds answer question`` adds questions. Posts are encoded in shards below OUT/encoding, so the
same command resumes an interrupted run. Searches use the old index until the new one is complete. At the end, the
results for 20 posts are compared with exact search. ``--formulas`` gives the formulas their visual ids (Task 2).

FOLDER has LaTeX, Markdown, notebooks, HTML and archives of arXiv; their theorems, paragraphs and cells become posts,
each with its file and line (docs/folder.md). With a graph model, ``--update`` reads, parses and encodes only new and
changed files. Without ``--from`` and ``--model``, systems that need no model rank: ``--track``, by default bm25 (words
and LaTeX) and structure (trees of formulas); text compares the vectors of a text encoder (``--set text.encoder=...``).
Several systems are fused by their standard scores.

``--update`` takes kinds, backend, location, name and dtype from the index before, where they are not given.

Without FOLDER, ``--update`` keeps the vectors of indexed posts and removes posts that left preprocessed.db. If the text
of a post has changed, build without it.

Exit codes: 0 built; 2 an error, with a message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of, search_hint

if TYPE_CHECKING:
    from experiments.indexes.finished_jobs import FinishedJob
    from graphs.corpus.corpus import Corpus
    from mathamr.retrieval.server.options import ServerOptions
    from mathamr.stages.retrieval.folder_index import FolderModel
    from mathamr.stages.retrieval.indexing import IndexedFiles

# Options that change the index of a graph model alone.
_OF_GRAPHS = (
    *("tensors", "kinds", "backend", "location", "name", "shards", "replicas", "quantization", "on_disk"),
    *("dtype", "posts_a_shard", "update", "remove", "device"),
)


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = _options()
    _check_condition(arguments or ())
    given = parser.parse_args(arguments)
    _check(given, parser)

    from mathamr.retrieval.folder import refuse_other_files

    if given.out is not None:
        refuse_other_files(given.out)

    from mathamr.stages.console import Console

    if given.track is not None:
        _refuse_options_of_graphs(given, parser, f"--track {' '.join(given.track)}")
        from experiments.indexes.untrained import index_documents

        built = index_documents(given.folder, given.track, given.out, Console(), given.set, workers=given.workers)
        return f"{built}\n{search_hint(given.out)}"
    of_job = given.job is not None and given.folder is None and given.corpus is None
    if of_job and not _is_graph(given):
        _refuse_options_of_graphs(given, parser, given.job[1], (*_OF_GRAPHS, "workers"))
        from experiments.indexes.kept_jobs import index_job

        return index_job(Path(given.job[0]), given.job[1], given.seed, given.out, root=given.root)

    from mathamr.stages.retrieval.indexing import IndexBuild, build_search_index, read_ids

    finished, out = None, given.out
    if of_job:
        finished = _job(given)
        out = out or Path(given.job[0]) / "indexes" / f"{finished.condition}-seed{finished.seed}"
    _settle(given, out)
    removed = frozenset() if given.remove is None else read_ids(given.remove)
    values = {one.name: getattr(given, one.name) for one in fields(IndexBuild) if hasattr(given, one.name)}
    settings = IndexBuild(**values, removed=removed, server=_server_options(given, parser))
    if given.folder is not None:
        from mathamr.stages.retrieval.folder_index import index_folder

        built = index_folder(given.folder, out, _folder_model(given), settings, Console(), workers=given.workers)
    else:
        files, corpus = _of_files(given) if finished is None else _of_job(finished, given.kinds)
        built = build_search_index(files, corpus, out, settings, Console())
    return f"{built}\n{search_hint(out)}"


def _options() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="folder of documents to index")
    job = ("outputs/EXP", "CONDITION")
    parser.add_argument("--from", nargs=2, dest="job", metavar=job, help="a finished job of an experiment")
    parser.add_argument("--seed", type=int, help="seed of the finished job; default: the first one")
    parser.add_argument("--tensors", type=Path, help="preprocessed.db")
    parser.add_argument("--graphs-db", type=Path, help="collection.db of the tensors")
    parser.add_argument(
        "--model", type=Path, help="folder of a checkpoint, e.g. model/best; with FOLDER, of a saved model"
    )
    add_corpus(parser, required=False)
    parser.add_argument("--formulas", type=Path, help="formulas.db: visual ids of the formulas")
    parser.add_argument("--out", type=Path, help="folder of the index")
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=("answer", "question"),
        help="posts to index, by default answers: Task 1 finds answers, Task 2 also formulas of questions",
    )
    parser.add_argument("--backend", help="exact (default), approximate or qdrant")
    parser.add_argument("--location", help="URL of a Qdrant server; without it, qdrant works in this process")
    parser.add_argument("--name", help="name of the index on the server; default: mathamr")
    parser.add_argument("--shards", type=int, help="shards of the collection on the server; default: 1")
    parser.add_argument("--replicas", type=int, help="copies of each shard; default: 1")
    parser.add_argument(
        "--quantization", choices=("none", "scalar", "binary"), help="compression of the vectors in the server's memory"
    )
    parser.add_argument("--on-disk", action="store_true", help="keep the server's original vectors on disk")
    parser.add_argument("--dtype", choices=("float32", "float16"), help="type of the stored vectors; default: float32")
    parser.add_argument("--posts-a-shard", type=int, help="posts in each shard")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--update", action="store_true", help="keep the vectors in OUT")
    parser.add_argument("--workers", type=int, default=1, help="processes that read documents, parse or make tensors")
    tracks = "systems that learn nothing, for FOLDER: bm25, structure, sparse, text; default: bm25 structure"
    parser.add_argument("--track", nargs="+", help=tracks)
    parser.add_argument("--set", nargs="+", metavar="KEY=VALUE", default=[], help="settings of the systems of --track")
    parser.add_argument("--remove", type=Path, help="file with ids of posts to leave out, one per line")
    return parser


def _check(given: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse options that exclude each other, or lack one."""
    if given.seed is not None and given.job is None:
        parser.error("--seed selects a finished job; name it by --from, or leave --seed out")
    if given.folder is not None:
        _check_folder(given, parser)
    elif given.track is not None:
        parser.error("--track ranks the documents of a folder; name the folder")
    elif given.set:
        parser.error("--set changes the systems of --track, which rank the documents of a folder; name the folder")
    elif given.job is None or (given.corpus and not given.model and not given.tensors):
        needed = {
            "--graphs-db": given.graphs_db,
            "--model": given.model or given.job,
            "--corpus": given.corpus,
            "--out": given.out,
        }
        if missing := [name for name, value in needed.items() if value is None]:
            parser.error(f"{', '.join(missing)} missing; or index a finished job: --from outputs/EXP CONDITION")
    elif given.model or given.graphs_db or given.corpus or given.formulas:
        parser.error(
            "--from finds model, graphs, collection and formulas itself; leave them out, or give --corpus and "
            "--graphs-db alone to index other posts"
        )


def _check_condition(words: Sequence[str]) -> None:
    """Raise for ``--from outputs/EXP`` without CONDITION; the message lists the conditions."""
    after = list(words[words.index("--from") + 1 :]) if "--from" in words else []
    if after and not after[0].startswith("-") and (len(after) == 1 or after[1].startswith("-")):
        from experiments.indexes.finished_jobs import finished_condition

        finished_condition(Path(after[0]), "")


def _is_graph(given: argparse.Namespace) -> bool:
    """Return whether the finished job is a graph model whose answers are searched by their own vectors."""
    from experiments.indexes.finished_jobs import settings_of_condition
    from mathamr.systems.settings.trained import GraphSettings

    settings = settings_of_condition(Path(given.job[0]), given.job[1], given.seed)
    return isinstance(settings, GraphSettings) and settings.thread.read == "answer"


def _refuse_options_of_graphs(
    given: argparse.Namespace, parser: argparse.ArgumentParser, of: str, names: Sequence[str] = _OF_GRAPHS
) -> None:
    if wrong := [name for name in names if getattr(given, name) != parser.get_default(name)]:
        parser.error(f"--{wrong[0].replace('_', '-')} is an option of graph models; leave it out for {of}")


def _job(given: argparse.Namespace) -> FinishedJob:
    from experiments.indexes.finished_jobs import finished_job

    return finished_job(Path(given.job[0]), given.job[1], given.seed, root=given.root, tensors=given.tensors)


def _settle(given: argparse.Namespace, out: Path) -> None:
    """Give a value to each setting of the index that was not given: that of the index before in an update."""
    from mathamr.retrieval.folder import HEADER
    from mathamr.search.catalog import settings_of
    from mathamr.stages.retrieval.indexing import IndexBuild

    before = settings_of(out) if given.update and (out / HEADER).exists() else {}
    if given.backend not in (None, before.get("backend")):
        before = {name: value for name, value in before.items() if name not in ("location", "name")}
    for one in fields(IndexBuild):
        if getattr(given, one.name, "") is None:
            setattr(given, one.name, before.get(one.name, one.default))


def _server_options(given: argparse.Namespace, parser: argparse.ArgumentParser) -> ServerOptions | None:
    """Return the settings of the server's collections that are given, or None."""
    wanted = {"shards": given.shards, "replicas": given.replicas, "quantization": given.quantization}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if given.on_disk:
        wanted["on_disk"] = True
    if not wanted:
        return None
    if not (given.location or "").startswith(("http://", "https://")):  # embedded would drop them
        parser.error(f"--{min(wanted).replace('_', '-')} needs a Qdrant server; give its URL by --location")
    from mathamr.retrieval.server.options import ServerOptions

    return ServerOptions(**wanted)


def _check_folder(given: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse options that do not belong to a folder of documents, or a folder without a model or a system."""
    if "=" in str(given.folder) and not given.folder.exists():
        parser.error(f"{given.folder} is a setting, which mathamr index does not take; see mathamr index --help")
    if sum(one is not None for one in (given.job, given.model, given.track)) > 1:
        parser.error("--from, --model and --track exclude each other: each says how the documents are ranked")
    if given.job is None and given.model is None:
        given.track = given.track or ["bm25", "structure"]
    elif given.set:
        parser.error("--set changes the systems of --track; leave it out for a graph model")
    if given.out is None:
        parser.error("--out missing: the folder of the index")
    root = given.root if given.job is None else None
    if given.tensors or given.graphs_db or given.corpus or given.formulas or given.id or root:
        parser.error("FOLDER is the collection; leave out --tensors, --graphs-db, --corpus, --root, --id, --formulas")


def _folder_model(given: argparse.Namespace) -> FolderModel:
    """Return the model of a finished job, or of a saved folder."""
    from graphs.stores.store import GraphStore
    from mathamr.pretrained import folder
    from mathamr.stages.retrieval.folder_index import FolderModel
    from mathamr.training import checkpoint

    if given.model is not None:
        files = folder.read(given.model)
        return FolderModel(given.model, files.vocabulary, files.spec)
    job = _job(given)
    store = GraphStore(job.tensors[0], config_hash=checkpoint.load(job.model).info.config_hash)
    return FolderModel(job.model, store.vocabulary, store.spec)


def _of_files(given: argparse.Namespace) -> tuple[IndexedFiles, Corpus]:
    from graphs.stores.collection import Collection
    from mathamr.stages.console import Console
    from mathamr.stages.data.identity import check_whole
    from mathamr.stages.retrieval.folder_index import files_for
    from mathamr.stages.retrieval.indexing import IndexedFiles
    from mathamr.training import checkpoint

    console = Console()
    with Collection(given.graphs_db) as whole:
        check_whole(whole, console)
        source = str(whole.meta["source"])
    if given.tensors is not None:
        return IndexedFiles((given.tensors,), given.graphs_db, given.model, given.formulas), corpus_of(given)
    model, graphs = _folder_model(given), given.graphs_db
    tensors = graphs.with_name(f"{graphs.stem}-{checkpoint.weights_hash(model.checkpoint)[:12]}-{source[:12]}.db")
    files = files_for(model, graphs, tensors, console, workers=given.workers)
    return replace(files, formulas_db=given.formulas), corpus_of(given)


def _of_job(job: FinishedJob, kinds: Sequence[str]) -> tuple[IndexedFiles, Corpus]:
    from experiments.indexes.finished_jobs import PART_INDEXED, searched_posts
    from mathamr.stages.console import Console
    from mathamr.stages.retrieval.indexing import IndexedFiles
    from mathamr.stages.sources import open_data

    corpus, console = open_data(job.data), Console()
    posts = searched_posts(job, corpus, kinds, console)
    if posts is not None:
        console.say(PART_INDEXED.format(job.data.regime))
    return IndexedFiles(job.tensors, job.collection, job.model, job.formulas_db, posts), corpus


if __name__ == "__main__":
    sys.exit(main())
