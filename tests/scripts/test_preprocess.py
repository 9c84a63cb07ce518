"""From a collection to a trained model: scripts/preprocess.py, then the training of docs/training.md in ten lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphs.stores.store import GraphStore
from mathamr.training import checkpoint
from tests.scripts.in_process import run_script
from tests.warm_process import start

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of 40 questions with an answer each, as collection.db and beside it as JSON lines."""
    folder = tmp_path_factory.mktemp("collection")
    subjects = ["ring", "group", "field", "series"]
    posts = []
    for i in range(40):
        subject = subjects[i % 4]
        posts += [
            {"post_id": f"q{i}", "kind": "question", "markup": "text", "body": f"Is the {subject} $x_{i}$ finite?"},
            {
                "post_id": f"a{i}",
                "kind": "answer",
                "markup": "text",
                "parent_id": f"q{i}",
                "body": f"Each {subject} is.",
            },
        ]
    (folder / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    data = ["--corpus", "jsonl", "--root", ".", "--out", "collection.db"]
    done = run_script("build_collection.py", *data, folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "conf").symlink_to(ROOT / "conf")
    return folder


@pytest.mark.slow
def test_a_collection_becomes_graphs_pairs_and_hard_negatives(folder: Path) -> None:
    data = ["--corpus", "jsonl", "--root", ".", "--graphs-db", "collection.db", "--out", "work"]
    wanted = [
        "train.negatives=2",
        "train.negative_pool=3",
        "train.negative_closest=null",
        "graph.connectivity=circular",
    ]
    done = run_script("preprocess.py", *data, *wanted, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "work/pairs.tsv: 40 pairs of 40 questions" in done.stdout
    assert "hard negatives by bm25: of 40 questions, 0 have none; posts: 120 kept" in done.stdout
    with_graphs = GraphStore(folder / "work" / "preprocessed.db")
    assert (len(with_graphs), with_graphs.spec.connectivity) == (80, "circular")
    negatives = [line.split("\t") for line in (folder / "work" / "negatives.tsv").read_text().splitlines()]
    assert len(negatives) == 120
    assert all(question[1:] != answer[1:] for question, answer in negatives)
    refused = run_script("preprocess.py", *data, "train.positives=duplicates", folder=folder)
    assert refused.returncode == 2
    assert "collection 'jsonl' has no links between duplicates" in refused.stderr


def test_threads_are_refused_before_any_graph_is_read(tmp_path: Path) -> None:
    (tmp_path / "posts.jsonl").write_text('{"post_id": "1", "kind": "question", "body": "Is it odd?"}\n')
    data = ["--corpus", "jsonl", "--root", ".", "--graphs-db", "collection.db", "--out", "work"]
    refused = run_script("preprocess.py", *data, "graph.thread=question", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "graph.thread=question joins the graphs of posts" in refused.stderr
    assert "run an experiment" in refused.stderr
    assert not (tmp_path / "work").exists()


@pytest.mark.slow
def test_the_guide_trains_in_ten_lines(folder: Path) -> None:
    data = ["--corpus", "jsonl", "--root", ".", "--graphs-db", "collection.db", "--out", "."]
    assert run_script("preprocess.py", *data, folder=folder).returncode == 0
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "train(config" in block]
    assert len([line for line in block.splitlines() if line]) <= 10
    done = start(f"import os; os.chdir({str(folder)!r})\n{block}", folder).ended()
    assert done.returncode == 0, done.stderr
    assert re.search(r"^model/best [01]\.\d+$", done.stdout, re.MULTILINE)
    assert "'kind': 'epoch'" in done.stdout
    assert checkpoint.load(folder / "model" / "best").info.epoch == 1
