"""Encode the posts of a preprocessed.db with a checkpoint and write an index that scripts/search.py searches.

    python scripts/index.py --graphs preprocessed.db --collection collection.db --model model/best \\
        --corpus arqmath --root /data/ARQMath --formulas formulas.db --out index
    python scripts/index.py ... --backend qdrant           # the Qdrant engine in process (docs/qdrant.md)
    python scripts/index.py ... --backend qdrant --location http://localhost:6333 --name my_index     # a Qdrant server
    python scripts/index.py ... --update --remove gone.txt # encode what is new, drop what is listed

Answers are indexed (``--kinds`` for others). Posts are encoded in shards below OUT/encoding: the same command goes on
where a killed one stopped. The index is switched to when it is complete; until then OUT answers as before. At the end
20 posts are searched with, and what the index finds is held against exact search. ``--formulas`` gives the formulas
their visual ids (Task 2).

``--update`` keeps the vectors of posts that OUT has already; posts that are gone from preprocessed.db go. It is for a
collection that grows: a post whose text has changed needs a build without it.

Exit codes: 0 built; 2 a message says what is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from graphs.corpus.corpus import NAMES, Corpus, open_corpus
from graphs.errors import MathAMRError, RetrievalError, StoreError
from graphs.formulas.store import FormulaStore
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.model import encoding_shards
from mathamr.retrieval.agreement import DEPTH, compare
from mathamr.retrieval.index import Strategy
from mathamr.search import catalog
from mathamr.search.catalog import Catalog, Material
from mathamr.stages.console import Console
from mathamr.training import checkpoint

CHECK_QUERIES = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--graphs", type=Path, required=True, help="preprocessed.db")
    parser.add_argument("--collection", type=Path, required=True, help="collection.db that it was made from")
    parser.add_argument("--model", type=Path, required=True, help="folder of a checkpoint, such as model/best")
    parser.add_argument("--corpus", required=True, choices=sorted(NAMES), help="where the texts of the posts are")
    parser.add_argument("--root", type=Path, help="folder of the corpus")
    parser.add_argument("--formulas", type=Path, help="formulas.db: visual ids of the formulas")
    parser.add_argument("--out", type=Path, required=True, help="folder of the index")
    parser.add_argument(
        "--kinds",
        nargs="+",
        default=["answer"],
        choices=("answer", "question"),
        help="answers are what Task 1 finds; Task 2 finds formulas of questions as well",
    )
    parser.add_argument("--backend", default="exact", help="exact or qdrant")
    parser.add_argument("--location", help="URL of a Qdrant server; without it, qdrant works in this process")
    parser.add_argument("--name", default="mathamr", help="of the index on the server")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16"), help="of the vectors kept")
    parser.add_argument("--posts-a-shard", type=int, default=encoding_shards.POSTS_A_SHARD)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--update", action="store_true", help="keep the vectors that OUT has")
    parser.add_argument("--remove", type=Path, help="ids of posts to leave out, one a line")
    given = parser.parse_args(arguments)
    try:
        if given.posts_a_shard < 1:
            raise RetrievalError(f"--posts-a-shard {given.posts_a_shard}; at least 1 is needed")
        catalog.check_backend(given.backend, given.location)
        with catalog.alone(given.out):
            return _build(given, Console())
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2


def _build(given: argparse.Namespace, console: Console) -> int:
    corpus: Corpus = open_corpus(given.corpus, given.root)
    store = GraphStore(given.graphs)
    model_hash = checkpoint.weights_hash(given.model)
    encoder = checkpoint.load_encoder(given.model, config_hash=store.config_hash, device=given.device)
    there, removed = set(store.post_ids()), _removed(given.remove)
    with Collection(given.collection) as source:
        post_ids = [p for p in source.post_ids(*given.kinds) if p in there and p not in removed]
        wanted = set(post_ids)
        formula_ids: dict[str, list[str]] = {}
        if store.spec.formulas != "none":
            rows = source.rows(*given.kinds)
            formula_ids = {post_id: list(json.loads(names).values()) for post_id, _, names in rows if post_id in wanted}
        parser = str(source.meta.get("parser", ""))
    visual_ids: dict[str, str] = {}
    if given.formulas is not None:
        with FormulaStore.open(given.formulas) as formulas:
            visual_ids = formulas.visual_ids(name for names in formula_ids.values() for name in names)

    start = time.perf_counter()
    kept, old = _kept(given, post_ids, model_hash, store.config_hash)
    has = set(kept)
    fresh = [post_id for post_id in post_ids if post_id not in has]
    sets: list[VectorSets] = [] if old is None else [old]
    folder = given.out / "encoding"
    resumed = 0
    if fresh:
        with console.stage("encoding", total=len(fresh), unit="posts") as advance:
            encoded = encoding_shards.encode_in_shards(
                encoder,
                store,
                fresh,
                folder,
                identity=model_hash,
                posts_a_shard=given.posts_a_shard,
                progress=advance,
            )
        sets.append(encoded.sets)
        resumed = encoded.resumed
    seconds = time.perf_counter() - start
    if not sets:
        raise RetrievalError("no post is left to index; are the kinds right, and what is removed?")
    documents = VectorSets.concatenated(sets)
    material = Material(
        model=given.model,
        model_hash=model_hash,
        vocabulary=store.vocabulary,
        spec=store.spec,
        config_hash=store.config_hash,
        parser=parser,
        formula_ids=formula_ids,
        visual_ids=visual_ids,
        texts=corpus.posts(),
    )
    start = time.perf_counter()
    with console.stage("writing", unit="posts") as advance:
        catalog.build(
            given.out,
            kept + fresh,
            documents,
            material,
            backend=given.backend,
            location=given.location,
            name=given.name,
            dtype=given.dtype,
            progress=advance,
        )
    encoding_shards.remove(folder)
    writing = time.perf_counter() - start
    now = len(fresh) - resumed
    print(f"encoded:   {now:,} posts in {seconds:.1f} s, {now / max(seconds, 1e-9):,.0f} docs/s")
    if resumed or kept:
        print(
            f"           {resumed:,} more by an earlier run that was stopped, {len(kept):,} kept from the index before"
        )
    _report(Catalog.open(given.out), writing)
    return 0


def _report(index: Catalog, writing: float) -> None:
    """What was built, and how well it finds what exact search finds."""
    size, vectors = len(index), index.vectors.num_vectors
    formulas = len(index.formulas) if index.has_formulas else 0
    print(f"index:     {size:,} posts, {vectors:,} vectors, {formulas:,} formulas, written in {writing:.1f} s")
    kept = f"{index.index_nbytes / size:,.0f} bytes a document in the {index.backend} index"
    if index.location is not None:
        kept = f"{index.location} keeps the index"
    print(f"size:      {kept} of posts, {index.nbytes / size:,.0f} with formulas, texts and model")
    exact = [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=200), Strategy("maxsim")]
    approximate = [Strategy(s.name, exact=False, pool=s.pool) for s in exact[:2]] if index.backend == "qdrant" else []
    queries = index.spread(CHECK_QUERIES)
    for row in compare(index.index, index.vectors, queries, [*approximate, *exact]):
        print(
            f"check:     {row.strategy!s:26} recall@{DEPTH} {row.recall:.3f} against exact search, "
            f"{1000 * row.seconds:.1f} ms a query ({len(queries)} queries)"
        )
    index.close()


def _removed(path: Path | None) -> set[str]:
    if path is None:
        return set()
    try:
        return set(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot be read: {error}", path=path) from error


def _kept(
    given: argparse.Namespace, post_ids: Sequence[str], model_hash: str, config_hash: str
) -> tuple[list[str], VectorSets | None]:
    """With ``--update``, the posts whose vectors the index before has, and these."""
    if not given.update:
        return [], None
    before = Catalog.open(given.out, model_hash=model_hash)
    if before.config_hash != config_hash:
        raise StoreError(
            f"the index was made of graphs of configuration {before.config_hash}, these are {config_hash}; build "
            "without --update",
            path=given.out,
        )
    has = set(before.vectors.post_ids())
    kept = [post_id for post_id in post_ids if post_id in has]
    sets = before.vectors.vectors_of(kept) if kept else None
    before.close()
    return kept, sets


if __name__ == "__main__":
    sys.exit(main())
