"""Index that people search: tensors and a checkpoint -> vectors -> a folder for mathamr search.

built = build_search_index(
    IndexedFiles((Path("preprocessed.db"),), Path("collection.db"), Path("model/best")),
    corpus, Path("index"), IndexBuild(), Console(),
)
print(built)        # encoded: 5,194 posts in 16.1 s, 322 docs/s ...
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection as Some
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Post
from graphs.counts import counted
from graphs.errors import RetrievalError, StoreError, faults_as
from graphs.formulas.store import FormulaStore
from graphs.shared_files import only_writer
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.model import encoding_shards
from mathamr.model.encoding import device_of
from mathamr.retrieval import backends
from mathamr.retrieval.exact.index import DType
from mathamr.retrieval.index import Strategy
from mathamr.retrieval.strategies import DEPTH, compare
from mathamr.search import catalog
from mathamr.search.catalog import Catalog, CatalogContent
from mathamr.search.structured import StructuredFormulas
from mathamr.stages.console import Console
from mathamr.stages.data.identity import check_same_posts
from mathamr.structure.scoring import Scoring
from mathamr.training import checkpoint

if TYPE_CHECKING:
    from mathamr.model.encoder import Encoder
    from mathamr.retrieval.server.options import ServerOptions

CHECK_QUERIES = 20
_SHOWN = 5  # unknown ids that are listed


@dataclass(frozen=True, slots=True)
class IndexedFiles:
    """Files that an index is made of.

    Args:
        tensors: preprocessed.db, and further tensors of posts with the same vocabulary; their graphs get the virtual
            nodes that the model was trained on.
        collection: collection.db that they were made from.
        model: folder of a checkpoint.
        formulas_db: visual ids of the formulas; None: no visual ids.
        posts: ids of the posts that may be indexed; None: all posts with tensors.
    """

    tensors: Sequence[Path]
    collection: Path
    model: Path
    formulas_db: Path | None = None
    posts: Some[str] | None = None


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """Settings for making an index.

    Args:
        kinds: kinds of posts, of answer and question.
        backend: exact, approximate or qdrant.
        location: URL of a Qdrant server; None: qdrant works in this process.
        name: name of the index on the server.
        dtype: type of the vectors kept.
        posts_a_shard: posts of a shard, from which an interrupted encoding resumes.
        device: device of the encoder; ``auto``: a GPU where there is one.
        update: whether vectors of the index before are kept.
        removed: ids of posts to leave out.
        server: settings of the collections on a Qdrant server; None: the defaults.

    Raises:
        RetrievalError: shards without a post, or a backend that does not exist.
    """

    kinds: Sequence[str] = ("answer",)
    backend: str = "exact"
    location: str | None = None
    name: str = "mathamr"
    dtype: DType = "float32"
    posts_a_shard: int = encoding_shards.POSTS_A_SHARD
    device: str = "auto"
    update: bool = False
    removed: Some[str] = frozenset()
    server: ServerOptions | None = None

    def __post_init__(self) -> None:
        if self.posts_a_shard < 1:
            raise RetrievalError(f"posts_a_shard={self.posts_a_shard}; at least 1 is needed")
        backends.check(self.backend, Strategy(), location=self.location)


def read_ids(path: Path) -> frozenset[str]:
    """Return the ids in a file, one a line, with or without a byte order mark; raise StoreError if it is unreadable."""
    with faults_as(StoreError, "cannot be read: {}", path):
        ids = frozenset(path.read_text(encoding="utf-8-sig").split())
    return ids


def build_search_index(files: IndexedFiles, corpus: Corpus, out: Path, settings: IndexBuild, console: Console) -> str:
    """Encode posts and write an index to ``out``, which answers as before until the new one is complete.

    Returns lines with the counts and times of the build.

    Args:
        corpus: texts of the posts.
        out: folder of the index; vectors of an interrupted build are used again.

    Raises:
        RetrievalError: no post is left to index.
        StoreError: graphs of other posts than those of ``corpus``, files of different configurations, an update with
            graphs of another parser, or another process that builds this index.
    """
    with only_writer(out, "building this index"):
        return _build(files, corpus, out, settings, console)


def _formula_ids(source: Collection, post_ids: Sequence[str], kinds: Sequence[str]) -> dict[str, list[str]]:
    wanted = set(post_ids)
    return {post_id: names for post_id, names in source.formula_ids(*kinds) if post_id in wanted}


def _build(files: IndexedFiles, corpus: Corpus, out: Path, settings: IndexBuild, console: Console) -> str:
    trained_on = checkpoint.load(files.model).info.config_hash
    stores = [GraphStore(path, config_hash=trained_on) for path in files.tensors]
    model_hash, graphs = checkpoint.weights_hash(files.model), stores[0]
    with Collection(files.collection) as source:
        check_same_posts(source, corpus)
        post_ids = _select(files, stores, source, settings, console)
        formula_ids: dict[str, list[str]] = {}
        if graphs.spec.formulas != "none":
            formula_ids = _formula_ids(source, post_ids, settings.kinds)
        parser = str(source.meta.get("parser", ""))
    visual_ids: dict[str, str] = {}
    if files.formulas_db is not None:
        with FormulaStore.open(files.formulas_db) as formulas:
            visual_ids = formulas.visual_ids(name for names in formula_ids.values() for name in names)
    vectors = _kept(out, settings.update, post_ids, model_hash, graphs.config_hash, parser)
    device = device_of(settings.device)
    encoder = checkpoint.load_encoder(files.model, config_hash=graphs.config_hash, device=device)
    folders = [out / ("encoding" if number == 0 else f"encoding-{number}") for number in range(len(stores))]
    identity = json.dumps([model_hash, parser])
    _encode_missing(vectors, post_ids, encoder, dict(zip(folders, stores, strict=True)), identity, settings, console)
    if not vectors.sets:
        raise RetrievalError("no post is left to index; are the kinds right, and what is removed?")
    content = CatalogContent(
        model=files.model,
        model_hash=model_hash,
        vocabulary=graphs.vocabulary,
        spec=graphs.spec,
        config_hash=graphs.config_hash,
        parser=parser,
        formula_ids=formula_ids,
        visual_ids=visual_ids,
        texts=corpus.posts(),
        structured=_structured(corpus, frozenset(vectors.post_ids), files.formulas_db, console),
        kinds=settings.kinds,
    )
    start = time.perf_counter()
    with console.stage("writing", unit="posts") as advance:
        catalog.build(
            out,
            vectors.post_ids,
            VectorSets.concatenated(vectors.sets),
            content,
            backend=settings.backend,
            location=settings.location,
            name=settings.name,
            dtype=settings.dtype,
            progress=advance,
            server=settings.server,
            report=console.say,
        )
    for folder in folders:
        encoding_shards.remove(folder)
    writing = time.perf_counter() - start
    return "\n".join([*vectors.lines(), *_checked(Catalog.open(out), writing)])


def _select(
    files: IndexedFiles, stores: Sequence[GraphStore], source: Collection, settings: IndexBuild, console: Console
) -> list[str]:
    """Return the posts to index; print the ids to remove that are of none of them."""
    available = {post_id for store in stores for post_id in store.post_ids()}
    if files.posts is not None:
        available.intersection_update(files.posts)
    present = [post_id for post_id in source.post_ids(*settings.kinds) if post_id in available]
    removed = frozenset(settings.removed)
    if unknown := sorted(removed.difference(present)):
        shown = ", ".join(unknown[:_SHOWN]) + (" ..." if len(unknown) > _SHOWN else "")
        console.say(
            f"{len(unknown):,} of {len(settings.removed):,} ids to remove are not in the index: {shown}; check the ids"
        )
    return [post_id for post_id in present if post_id not in removed]


@dataclass(slots=True)
class _Vectors:
    """Vectors of the posts to index, and how they were made."""

    post_ids: list[str]
    sets: list[VectorSets]
    gone: int = 0  # posts of the index before that are left out
    kept: int = 0  # posts whose vectors the index before has
    resumed: int = 0  # posts that an earlier run encoded
    seconds: float = 0.0  # of encoding

    def lines(self) -> list[str]:
        """Return the counts as lines of text."""
        now = len(self.post_ids) - self.kept - self.resumed
        lines = [
            f"encoded:   {counted(now, 'post')} in {self.seconds:.1f} s, {now / max(self.seconds, 1e-9):,.0f} docs/s"
        ]
        before = [f"{self.resumed:,} more by an earlier run that was stopped"] if self.resumed else []
        before += [f"{self.kept:,} kept from the index before"] if self.kept else []
        before += [f"{self.gone:,} of the index before left out"] if self.gone else []
        return [*lines, *([f"           {', '.join(before)}"] if before else [])]


def _encode_missing(
    vectors: _Vectors,
    post_ids: Sequence[str],
    encoder: Encoder,
    stores: Mapping[Path, GraphStore],
    identity: str,
    settings: IndexBuild,
    console: Console,
) -> None:
    """Add the vectors of the posts that have none yet.

    Args:
        stores: graphs, by the folder for their encoded shards; a post in several is encoded from the first.
        identity: model and parser, in which shards of an interrupted run must agree.
    """
    known = frozenset(vectors.post_ids)
    missing = dict.fromkeys(post_id for post_id in post_ids if post_id not in known)
    if not missing:
        return
    start = time.perf_counter()
    with console.stage("encoding", total=len(missing), unit="posts") as advance:
        for folder, store in stores.items():
            stored = frozenset(store.post_ids())
            some = [post_id for post_id in missing if post_id in stored]
            if not some:
                continue
            encoded = encoding_shards.encode_in_shards(
                encoder, store, some, folder, identity=identity, posts_a_shard=settings.posts_a_shard, progress=advance
            )
            vectors.sets.append(encoded.sets)
            vectors.post_ids += some
            vectors.resumed += encoded.resumed
            missing = dict.fromkeys(post_id for post_id in missing if post_id not in stored)
    vectors.seconds = time.perf_counter() - start


def _structured(
    corpus: Corpus, indexed: frozenset[str], formulas_db: Path | None, console: Console
) -> StructuredFormulas | None:
    """Return the formula trees of the indexed posts, for search by structure; None if they have no formulas."""
    with console.stage("reading formulas", unit="posts") as advance:
        return StructuredFormulas.build(
            (post for post in corpus.posts() if isinstance(post, Post) and post.post_id in indexed),
            Scoring.by_default(),
            formulas_db=formulas_db,
            progress=advance,
        )


def _checked(index: Catalog, writing: float) -> list[str]:
    """Return what was built, and how well it finds what exact search finds."""
    size, vectors = len(index), index.vectors.num_vectors
    formulas = len(index.formulas) if index.has_formulas else 0
    kept = f"{index.index.nbytes / size:,.0f} bytes a document in the {index.backend} index"
    if index.location is not None:
        kept = f"{index.index.nbytes / size:,.0f} bytes a document on {index.location}, as its node estimates them,"
    lines = [
        f"index:     {counted(size, 'post')}, {counted(vectors, 'vector')}, {counted(formulas, 'formula')}, "
        f"written in {writing:.1f} s",
        f"size:      {kept} of posts, {index.nbytes / size:,.0f} with formulas, texts and model",
    ]
    exact = [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=200), Strategy("maxsim")]
    names = {"qdrant": ("single_vector", "doc_vn_maxsim"), "approximate": ("maxsim",)}.get(index.backend, ())
    approximate = [Strategy(s.name, exact=False, pool=s.pool) for s in exact if s.name in names]
    queries = index.spread(CHECK_QUERIES)
    recall = index.backend != "exact"  # which would be compared with itself
    lines += [
        f"check:     {row.strategy!s:26} "
        f"{f'recall@{DEPTH} {row.recall:.3f} against exact search, ' if recall else ''}"
        f"{1000 * row.seconds:.1f} ms a query ({counted(len(queries), 'query')})"
        for row in compare(index.index, index.vectors, queries, [*approximate, *exact])
    ]
    index.close()
    return lines


def _kept(out: Path, update: bool, post_ids: Sequence[str], model_hash: str, config_hash: str, parser: str) -> _Vectors:
    """Return the vectors that the index before has; none without ``update``."""
    if not update:
        return _Vectors([], [])
    with closing(Catalog.open(out)) as before:
        problem = ""
        if before.model_hash != model_hash:
            problem = (
                f"built by model {before.model_hash}, not by {model_hash}; build it again without --update, or give "
                "the model that it was built by"
            )
        elif before.config_hash != config_hash:
            problem = (
                f"made of graphs of configuration {before.config_hash}, these are {config_hash}; build without --update"
            )
        elif before.parser != parser:
            problem = (
                f"made of graphs of the parser {before.parser or 'unknown'}, these are of "
                f"{parser or 'an unknown one'}; build without --update"
            )
        if problem:
            raise StoreError(f"the index was {problem}", path=out)
        has = set(before.vectors.post_ids())
        kept = [post_id for post_id in post_ids if post_id in has]
        sets = [before.vectors.vectors_of(kept)] if kept else []
    return _Vectors(kept, sets, gone=len(has) - len(kept), kept=len(kept))
