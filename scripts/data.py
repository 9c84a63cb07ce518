"""Download a collection, check its contents, and export it in the form of BEIR.

    mathamr data get arqmath --to /data/ARQMath                         # everything, about 2.9 GB
    mathamr data get arqmath --to /data/ARQMath --only topics qrels     # a part of it
    mathamr data check --root /data/ARQMath
    mathamr data check --root /data/ARQMath --json
    mathamr data check --corpus beir --root FOLDER --split dev
    mathamr data export --corpus arqmath --root /data/ARQMath --years 2020 2021 --to arqmath-beir

``get`` downloads the files that the lab publishes, under their published names. It prints the size and the expected
time of the download, resumes after an interruption, and checks sizes and archives. Nothing needs to be unpacked. Exit
codes: 0 all files are present; 1 some are missing; 2 invalid arguments.

``check`` reads the whole collection and prints its contents, the missing parts and their effects. It recognises the
form by the files; ``--corpus`` names it. With ``--json``, ``failed`` has the names of the tests that cannot be scored;
of ARQMath, ``missing`` names years instead. Exit codes: 0 an experiment can run; 1 it cannot; 2 invalid arguments.

``export`` writes ``corpus.jsonl`` (answers, with formulas as LaTeX), ``queries.jsonl``, ``qrels/test.tsv`` (``--split``
for another name) and, from training pairs, ``qrels/train.tsv``. ``data=beir`` and other programs read this form. Exit
codes: 0 written; 1 a file cannot be read or written; 2 invalid arguments.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of
from graphs.corpus.download import PARTS
from graphs.counts import counted

if TYPE_CHECKING:
    from graphs.corpus.download.web import Downloads, Offer, WebFile
    from graphs.corpus.stock.collection import CollectionStock
    from graphs.corpus.stock.published import PublishedStock
    from mathamr.stages.console import Console

_PROBE = 4_000_000  # bytes of the largest file from which the speed is measured


@command
def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)

    from graphs.errors import ConfigError, MathAMRError
    from mathamr.stages.console import Console

    try:
        return given.run(given, Console())
    except (MathAMRError, OSError) as error:
        if isinstance(error, ConfigError | BrokenPipeError):
            raise
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    get_ = commands.add_parser("get", help="download a collection as it is published")
    get_.add_argument("collection", choices=["arqmath"])
    get_.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder, made if needed")
    get_.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=f"parts to download: {', '.join(PARTS)}"
    )
    get_.add_argument("--from", dest="base", metavar="URL", help="another server with the same paths")
    get_.add_argument("--list", action="store_true", help="list the files to download, and stop")
    get_.set_defaults(run=get)
    check_ = commands.add_parser("check", help="count the contents, and list what is missing")
    add_corpus(check_, required=False)
    check_.add_argument("--split", help="judgments to check, for a collection in the form of BEIR")
    check_.add_argument("--relevant-grade", type=int, metavar="N", help="lowest relevant grade")
    check_.add_argument("--json", action="store_true", help="one JSON object")
    check_.set_defaults(run=check)
    export_ = commands.add_parser("export", help="write a collection in the form of BEIR")
    add_corpus(export_)
    export_.add_argument("--to", type=Path, required=True, metavar="DIR", help="output folder")
    export_.add_argument("--task", default="1", help="1, or the name of a test of the collection")
    export_.add_argument("--years", type=int, nargs="+", default=[], help="years of the topics")
    export_.add_argument("--split", default="test", help="name of the judgments")
    export_.set_defaults(run=export)
    return parser


def get(given: argparse.Namespace, console: Console) -> int:
    """Download the published files; returns the exit code."""
    from graphs.corpus.download.published_files import published_files, published_url
    from graphs.corpus.download.web import Downloads

    downloads = Downloads(given.base or published_url(), given.to)
    files = published_files(given.only)
    with console.stage("asking the server", total=len(files), unit="files") as advance:
        offers = downloads.survey(files, advance)
    coming = [offer for offer in offers if not offer.present and not offer.problem]
    free = downloads.require_space(coming)
    left = sum(offer.left for offer in coming)
    present = sum(offer.present for offer in offers)
    console.say(
        f"{counted(len(coming), 'file')} to download, {megabytes(left)}; {present} already present; "
        f"{megabytes(free)} free"
    )
    if given.list:
        for offer in coming:
            print(f"{offer.left:>13,}  {offer.path}")
    elif coming:
        _say_time(downloads, coming, left, console)
    problems = {offer.file: offer.problem for offer in offers if offer.problem}
    if not given.list:
        problems |= _download(downloads, coming, left, console)
    needed = 0
    for file in files:
        if file in problems:
            needed += bool(file.without)
            print(f"missing: {file.path}: {problems[file]}\n  {file.without or 'Nothing needs it.'}")
    if given.list:
        return 1 if needed or coming else 0
    print(f"{given.to}: {len(files) - len(problems)} of {len(files)} files")
    if not needed:
        print(f"next: mathamr data check --root {shlex.quote(str(given.to))}")
    return 1 if needed else 0


def _say_time(downloads: Downloads, coming: Sequence[Offer], left: int, console: Console) -> None:
    """Measure the speed on the first bytes of the largest file; they count for the download."""
    import time

    from graphs.errors import CorpusError
    from mathamr.stages.console import duration

    largest = max(coming, key=lambda offer: offer.left)
    if largest.left <= _PROBE:
        return
    arrived, begin = 0, time.monotonic()

    def count(size: int) -> None:
        nonlocal arrived
        arrived += max(size, 0)

    try:
        downloads.fetch(largest, count, first=_PROBE)
    except CorpusError:
        return  # reported by the download itself
    speed = arrived / max(time.monotonic() - begin, 1e-9)
    console.say(f"about {duration((left - arrived) / speed)} at {megabytes(round(speed))}/s")


def _download(downloads: Downloads, coming: Sequence[Offer], left: int, console: Console) -> dict[WebFile, str]:
    """Download every file; returns the problems of those that failed."""
    from graphs.errors import CorpusError

    problems: dict[WebFile, str] = {}
    with console.stage("downloading", total=max(left // 1_000_000, 1), unit="MB") as advance:
        progress = _in_megabytes(advance)
        for offer in sorted(coming, key=lambda offer: offer.left):  # small files first: most of the tree is there soon
            try:
                downloads.fetch(offer, progress)
            except CorpusError as error:
                problems[offer.file] = error.message
                console.say(f"  {offer.path}: {error.message}")
    return problems


def _in_megabytes(advance: Callable[[int], None]) -> Callable[[int], None]:
    """Return a progress function for bytes that calls ``advance`` for each whole megabyte."""
    done = reported = 0

    def progress(size: int) -> None:
        nonlocal done, reported
        done += size
        if done // 1_000_000 != reported:
            advance(done // 1_000_000 - reported)
            reported = done // 1_000_000

    return progress


_FORMS = (
    "ARQMath has Posts*.xml, data=jsonl posts.jsonl, data=beir corpus.jsonl (docs/your-collection.md); --corpus NAME "
    "names another form"
)


def check(given: argparse.Namespace, console: Console) -> int:
    """Count the contents; returns the exit code."""
    import json

    from graphs.corpus.forms import hint
    from graphs.corpus.stock.table import table

    stock = _stock(given, console)
    for step in stock.steps():
        in_bytes = step.unit == "bytes"
        total, unit = (max(step.size // 1_000_000, 1), "MB") if in_bytes else (None, step.unit)
        with console.stage(f"checking {step.name}", total=total, unit=unit) as advance:
            step.run(_in_megabytes(advance) if in_bytes else advance)
    holdings = stock.holdings()
    if given.json:
        missing = [{"what": one.what, "consequence": one.consequence, "get": one.part} for one in holdings.missing]
        facts = {"collection": holdings.name, "missing": missing, "unread": holdings.unread}
        verdict = {"can_run": not holdings.reason, "reason": holdings.reason, "failed": holdings.failed}
        print(json.dumps({**holdings.counts, **facts, **verdict}, indent=2, ensure_ascii=False))
    elif given.corpus is not None or any(holdings.counts.values()):
        print(table(holdings, str(given.root or given.id or given.corpus)))
    if holdings.reason and given.root is not None:
        if other := hint(given.root, holdings.name):
            console.say(f"  {other}")
        elif not any(holdings.counts.values()):
            console.say(f"{given.root}: no collection is recognised here; {_FORMS}")
    return 1 if holdings.reason else 0


def _stock(given: argparse.Namespace, console: Console) -> CollectionStock | PublishedStock:
    """Return the counter of the collection; without ``--corpus``, the files in the folder decide its form."""
    from graphs.corpus.corpus import open_corpus
    from graphs.corpus.forms import forms_of, hint
    from graphs.corpus.stock.collection import CollectionStock
    from graphs.corpus.stock.published import PublishedStock
    from graphs.errors import ConfigError, CorpusError

    name = given.corpus
    if name is None:
        if given.root is None:
            raise ConfigError("--root is missing: name the folder of a collection, or --corpus mathdocs or ir_datasets")
        forms = forms_of(given.root)
        if not forms and (other := hint(given.root, "arqmath")):
            raise CorpusError(f"is no collection; {other}", path=given.root)
        name = forms[0] if forms else "arqmath"
    if name == "arqmath":
        if given.root is None:
            raise ConfigError("--root is missing: name the folder of the collection")
        return PublishedStock(given.root)
    corpus = open_corpus(name, given.root, split=given.split, dataset_id=given.id, relevant=given.relevant_grade)
    return CollectionStock(corpus, given.relevant_grade)


def export(given: argparse.Namespace, console: Console) -> int:
    """Write the collection in the form of BEIR; returns the exit code."""
    from graphs.corpus.export import export_beir

    task = int(given.task) if given.task.isdecimal() else given.task
    with console.stage("exporting", unit="posts") as advance:
        written = export_beir(
            corpus_of(given), given.to, task=task, years=given.years, split=given.split, progress=advance
        )
    for count, what, why in (
        (written.failures, "post", "that cannot be read, or with the id of an earlier post"),
        (written.topics_left_out, "topic", "without a relevant document"),
        (written.judgments_left_out, "judgment", "of missing documents, or of such topics"),
    ):
        if count:
            console.say(f"left out: {counted(count, what)} {why}")
    print(
        f"{given.to}: {counted(written.documents, 'document')}, {counted(written.queries, 'query')}, "
        f"{counted(written.judgments, 'judgment')}, {counted(written.train_pairs, 'training pair')}"
    )
    return 0


def megabytes(size: int) -> str:
    """Return a size as text.

    >>> megabytes(406_000_000), megabytes(2_823_000_000), megabytes(1200)
    ('406.0 MB', '2.82 GB', '0.0 MB')
    """
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
