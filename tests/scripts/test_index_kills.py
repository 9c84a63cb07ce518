"""scripts/index.py killed at random: an old index goes on answering; the same command then loses and doubles nothing.

The indexer runs in another process that is killed (SIGKILL) just before its N-th file operation below the index's
folder: N is drawn by seed from all there are, so that kills fall into every stage, from the first shard to the switch.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from mathamr.search.catalog import Catalog
from tests.scripts.small_collection import ANSWERS, index_arguments
from tests.warm_process import start

KILLS = 5
# Given: a JSON list of [arguments of index.py, folder to watch, operation to die at or 0]. Each runs in a fork, so
# that modules are imported once. Prints, as JSON, for each the signal or code that ended it and its file operations.
DRIVER = """
import json, os, signal, sys
from scripts import index
import graphs.corpus.corpus, mathamr.retrieval.backends, mathamr.retrieval.qdrant, mathamr.stages.retrieval.indexing
from mathamr.model.encoder import Encoder
def run(arguments, folder, last):
    report, done = os.pipe()
    child = os.fork()
    if child:
        os.close(done)
        count = os.read(report, 100).decode()
        os.close(report)
        status = os.waitpid(child, 0)[1]
        return [os.waitstatus_to_exitcode(status), int(count or 0)]
    count = 0
    def hook(event, values):
        nonlocal count
        if event.split(".")[0] in ("open", "os", "shutil", "sqlite3") and any(folder in str(v) for v in values[:2]):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    code = index.main(arguments)
    os.write(done, str(count).encode())
    os._exit(code)
print(json.dumps([run(*one) for one in json.loads({given!r})]))
"""


def drive(runs: list[tuple[list[str], Path, int]], place: Path) -> list[list[int]]:
    given = json.dumps([[arguments, str(folder), last] for arguments, folder, last in runs])
    done = start(DRIVER.replace("{given!r}", repr(given)), place).ended()
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def content(path: Path) -> tuple[object, ...]:
    """All that an index answers with."""
    catalog = Catalog.open(path)
    ids = sorted(catalog.vectors.post_ids())
    sets = catalog.vectors.vectors_of(ids)
    titles = {post_id: (post.title, post.formula_ids) for post_id, post in catalog.texts.get(ids).items()}
    found = catalog.search(sets, "maxsim", 10)
    formulas = [hit.doc_id for hit in catalog.formulas.search(sets.vectors[:1])[0]]
    catalog.close()
    return ids, sets.vectors.tolist(), sets.ptr.tolist(), titles, found, formulas


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["exact", "qdrant"])
def test_kills_at_random_lose_and_double_nothing(work: Path, tmp_path: Path, backend: str) -> None:
    def arguments(out: Path) -> list[str]:
        return index_arguments(work, out, "--posts-a-shard", "1", "--backend", backend)

    ((code, operations),) = drive([(arguments(tmp_path / "whole"), tmp_path / "whole", 0)], tmp_path)
    assert (code, operations > 20) == (0, True)
    expected = content(tmp_path / "whole")
    chosen = random.Random(7).sample(range(1, operations), KILLS)
    folders = [tmp_path / f"killed{last}" for last in chosen]
    gone = tmp_path / "gone"
    gone.write_text("12\n")
    before = [(index_arguments(work, folder, "--remove", str(gone)), folder, 0) for folder in folders[::2]]
    kills = [(arguments(folder), folder, last) for folder, last in zip(folders, chosen, strict=True)]
    codes = [code for code, _ in drive([*before, *kills], tmp_path)]
    assert codes == [0] * len(before) + [-9] * KILLS
    for folder in folders[::2]:  # the index of before, or already the new one, whole
        assert len(content(folder)[0]) in (len(ANSWERS) - 1, len(ANSWERS))  # type: ignore[arg-type]
    # Killed again on the way, at another place, and then left alone.
    again = [(arguments(folder), folder, 1 + last // 2) for folder, last in zip(folders, chosen, strict=True)]
    resumed = [(arguments(folder), folder, 0) for folder in folders]
    ends = drive([*again, *resumed], tmp_path)
    assert [code for code, _ in ends[KILLS:]] == [0] * KILLS
    for folder in folders:
        assert content(folder) == expected
        assert sorted(path.name.split("-")[0] for path in folder.iterdir()) == [".lock", "data", "index.json"]
