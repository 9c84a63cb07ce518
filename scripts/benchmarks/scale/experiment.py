r"""An experiment from the posts to the scores, at growing sizes: seconds a post and peak memory of each stage.

    python scripts/bench.py full_scale --sizes 10000,100000 --out scale
    python scripts/bench.py full_scale --sizes 10000,100000 --out scale --corpus arqmath --root arqmath-mini

For each size, the benchmark generates an ARQMath (benchmarks/published_tree.py) and runs ``+exp=trial`` over all of it:
texts, formula trees, tensors, an epoch, encoding, index, search and evaluation of 100 topics. Posts of ``--corpus`` are
parsed once; their graphs get new ids and serve as the graphs of the generated posts. Parsing is therefore measured on
real text, and later stages on graphs of real sizes. ``KEY=VALUE`` changes a setting of the run.

Every stage that the console shows (``mathamr.stages.console``) is a row: items, milliseconds an item, resident memory
at the beginning, its peak, and the peak without pages mapped from files, which the system can reclaim; the last one is
sampled. "after X" is the time between stage X and the next one. The same command resumes: finished sizes are read from
``OUT/SIZE/stages.jsonl``, and an interrupted one continues from its files. The last line is one JSON object with the
rows of each size.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from experiments.configuration.composition import parser_options
from experiments.options import PROGRAM, setting
from graphs.corpus.corpus import NAMES, open_corpus
from graphs.corpus.post import Post
from graphs.processes import batched
from graphs.shared_files import write_json
from graphs.stores import collection
from graphs.stores.collection import Collection
from mathamr.evaluation.efficiency import bytes_on_disk, peak_memory, process_memory, reset_peak_memory
from mathamr.stages.console import Console, Stage
from mathamr.stages.data.graphs import POSTS, build_graphs
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.parsers import factory
from scripts.benchmarks.published_tree import Tree

_MIB = 1 << 20
_AT_ONCE = 5000  # graphs written between two commits
RUN = [
    *("+exp=trial", "data=arqmath", "data.regime=full", "data.years=[2022]", "experiment.tasks=[1]"),
    *("train.epochs=1", "index=exact", "workers=1", "wandb=disabled"),
]


@dataclass(frozen=True, slots=True)
class Row:
    """One stage: ``seconds`` of wall time, ``cpu`` seconds, memory in MiB; ``items`` is 0 where nothing is counted."""

    stage: str
    items: int
    unit: str
    seconds: float
    cpu: float
    before: float
    peak: float
    own: float  # peak without pages of files


class MeasuringConsole(Console):
    """Console that writes a :class:`Row` of each stage, and of the time between two, to ``path``."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._last, self._own = path, "", 0.0
        self._begin()
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            self._own = max(self._own, own_memory())
            time.sleep(0.05)

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "items") -> Iterator[Stage]:
        self.end()
        with super().stage(name, total, unit) as stage:
            yield stage
        self._write(name, stage.done, unit)
        self._last = name

    def end(self) -> None:
        """Write the row of what came after the last stage."""
        self._write(f"after {self._last}" if self._last else "start", 0, "")

    def _begin(self) -> None:
        reset_peak_memory()
        self._own = own_memory()
        self._time, self._cpu, self._before = time.monotonic(), time.process_time(), peak_memory()

    def _write(self, stage: str, items: int, unit: str) -> None:
        seconds, cpu = time.monotonic() - self._time, time.process_time() - self._cpu
        row = Row(stage, items, unit, seconds, cpu, self._before / _MIB, peak_memory() / _MIB, self._own)
        with self._path.open("a", encoding="utf-8") as file:
            print(json.dumps(asdict(row)), file=file)
        self._begin()


def own_memory() -> float:
    """Return the resident memory of this process that is not mapped from files, in MiB."""
    return process_memory("RssAnon", "RssShmem") / _MIB


def parse(out: Path, data: str, root: Path | None, number: int) -> None:
    """Make the graphs that every size repeats, of the first posts of a collection."""
    corpus = open_corpus(data, root)
    posts = (post for post in corpus.posts() if isinstance(post, Post))
    parser = factory("embedded", parser_options("embedded"))
    console = MeasuringConsole(out / "stages.jsonl")
    build_graphs(islice(posts, number), out / "parsed.db", parser, console, source=corpus.fingerprints().graphs)
    write_json(out / "parsed.json", {"data": data, "root": str(root), "posts": number})


def generate(folder: Path, posts: int, seed: int) -> None:
    """Write the tree of one size, and the graphs of its posts."""
    console = MeasuringConsole(folder / "stages.jsonl")
    tree = folder / "tree"
    if not (written := folder / "tree.json").exists():
        with console.stage("writing the collection", total=posts, unit="posts") as advance:
            counts = Tree(tree, posts, seed).write(advance)
        write_json(written, counts)
    corpus = open_corpus("arqmath", tree)
    files = PostFiles(corpus, folder / "outputs" / "shared" / f"arqmath-{corpus.fingerprints().graphs[:12]}", console)
    files.read(texts=True)
    repeat(folder.parent / "parsed.db", files, folder / "collection.db", corpus.fingerprints().graphs, console)
    console.end()


def repeat(parsed: Path, files: PostFiles, out: Path, source: str, console: Console) -> None:
    """Give each post the next graph of its kind in ``parsed``; posts that ``out`` has keep theirs."""
    with Collection(parsed) as parsed_collection:
        parser = str(parsed_collection.meta["parser"])
        graphs = {
            kind: cycle(list(parsed_collection.graphs(kind)) or list(parsed_collection.graphs())) for kind in POSTS
        }
    known = set[str]()
    if out.exists():
        with Collection(out) as begun:
            known = set(begun.post_ids())
    outlines = (post for post in files.outlines() if isinstance(post, Post) and post.post_id not in known)
    with console.stage("graphs repeated", unit="posts") as advance:
        for some in batched(outlines, _AT_ONCE):
            each = [replace(next(graphs[post.kind]), post_id=post.post_id, kind=post.kind) for post in some]
            collection.add_graphs(out, each, source=source, parser=parser)
            advance(len(each))
    collection.build(out, (), factory("embedded", parser_options("embedded")), source=source)  # marks it as finished


def run(folder: Path, changes: Sequence[str]) -> None:
    """Run the experiment on the tree of one size."""
    from experiments import run as runs
    from experiments.configuration.registration import compose_words, validated

    words = [*RUN, setting("data.root", folder / "tree"), setting("data.collection", folder / "collection.db")]
    words += [setting("outputs", folder / "outputs"), "experiment.name=full_scale", *changes]
    console = MeasuringConsole(folder / "stages.jsonl")
    ended = runs.run(validated(compose_words(words)), shlex.join([*PROGRAM, *words]), console)
    console.end()
    if ended.failed:
        raise SystemExit(ended.table)
    [job] = (folder / "outputs" / "full_scale" / "jobs").glob("*/result.json")
    sizes = {path.name: bytes_on_disk(path) for path in (folder / "tree", folder / "outputs" / "shared")}
    write_json(folder / "done.json", {"result": json.loads(job.read_text(encoding="utf-8")), "bytes": sizes})


def rows(folder: Path) -> list[Row]:
    """Return the stages of a size; one that was stopped and resumed counts from all its parts."""
    found: dict[str, Row] = {}
    for line in (folder / "stages.jsonl").read_text(encoding="utf-8").splitlines():
        row = Row(**json.loads(line))
        if (known := found.get(row.stage)) is not None:
            row = replace(
                row,
                items=row.items + known.items,
                seconds=row.seconds + known.seconds,
                cpu=row.cpu + known.cpu,
                before=min(row.before, known.before),
                peak=max(row.peak, known.peak),
                own=max(row.own, known.own),
            )
        found[row.stage] = row
    return list(found.values())


def table(measured: dict[int, list[Row]], least: float) -> str:
    """Return the stages that take at least some seconds at any size, as a table in Markdown."""
    lines = [
        "| stage | posts | items | s | CPU s | CPU ms an item | MiB before | peak | not of files |",
        "|---" * 9 + "|",
    ]
    stages = {row.stage: None for some in measured.values() for row in some if row.seconds >= least}
    for stage in stages:
        for posts, some in measured.items():
            for row in some:
                if row.stage == stage:
                    each = f"{row.cpu * 1000 / row.items:.2f}" if row.items else ""
                    lines.append(
                        f"| {stage} | {posts:,} | {row.items:,} {row.unit} | {row.seconds:,.1f} | {row.cpu:,.1f} | "
                        f"{each} | {row.before:,.0f} | {row.peak:,.0f} | {row.own:,.0f} |"
                    )
    return "\n".join(lines)


def main() -> dict[int, list[dict[str, Any]]]:
    """Run every size in a new process, print the table; return the rows of each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="numbers of posts, growing")
    parser.add_argument("--out", type=Path, required=True, help="output folder (resumed if it exists)")
    parser.add_argument("--corpus", choices=sorted(NAMES), default="mathdocs", help="form of the collection to parse")
    parser.add_argument("--root", type=Path, help="folder of that collection, if it has one")
    parser.add_argument("--parsed", type=int, default=5000, metavar="N", help="number of posts to parse")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings of the run")
    given = parser.parse_intermixed_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if not (given.out / "parsed.json").exists():
        _apart(parse, given.out, given.corpus, given.root, given.parsed)
    measured: dict[int, list[Row]] = {}
    for posts in sorted(int(size) for size in given.sizes.split(",")):
        folder = (given.out / str(posts)).resolve()
        folder.mkdir(exist_ok=True)
        if not (folder / "done.json").exists():
            _apart(generate, folder, posts, given.seed)
            _apart(run, folder, given.settings)
        measured[posts] = [*rows(given.out), *rows(folder)]
        print(table(measured, least=1.0), flush=True)
    return {posts: [asdict(row) for row in some] for posts, some in measured.items()}


def _apart(work: object, *arguments: object) -> None:
    """Call a function in a new process, whose memory begins small."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)  # type: ignore[arg-type]
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{getattr(work, '__name__', work)} ended with exit code {process.exitcode}; see above")
