"""scripts/index.py, search.py and search_run.py on a small collection of JSON lines, from posts to a run file."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from qdrant_client import QdrantClient

from graphs import collection, mathamr_plus, store, vocabulary
from graphs.amr.embedded import EmbeddedParser
from graphs.collection import Collection
from graphs.corpus.jsonl import JsonLines
from graphs.errors import StoreError
from graphs.graph_maker import ParserFactory
from graphs.store import GraphStore
from graphs.virtual_nodes import VirtualNodeSpec
from graphs.vocabulary import Vocabulary
from mathamr.evaluation.runs import read_run
from mathamr.model.encoder import Encoder, EncoderConfig
from mathamr.retrieval.catalog import Catalog, alone
from mathamr.training import checkpoint

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = {
    "11": "Suppose $\\sqrt2 = p/q$ in lowest terms. Then $p^2 = 2q^2$.",
    "12": "The integral $\\int_0^1 x\\,dx$ is $1/2$.",
    "13": "No formula here, \x1b[2J only words.",
    "14": "Both $\\sqrt2$ and $\\sqrt3$ are irrational.",
}
TOPICS = {"A.1": "Why is $\\sqrt2$ irrational?", "A.2": "What is $\\int_0^1 x\\,dx$?", "A.3": ""}
ENCODER: dict[str, Any] = {
    "hidden_dim": 16,
    "projection_dim": 8,
    "num_layers": 2,
    "num_bases": 4,
    "num_blocks": None,
    "edge_vectors": True,
    "vn_init": "zero",
    "vn_learned": "embedding",
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def save_model(path: Path, graphs: GraphStore, seed: int) -> None:
    torch.manual_seed(seed)
    words = graphs.vocabulary
    info = checkpoint.CheckpointInfo(
        encoder=ENCODER,
        train={},
        vocabulary_hash=words.hash,
        config_hash=graphs.config_hash,
        num_labels=words.num_labels,
        num_relations=words.num_relations,
        code_version="test",
        seed=seed,
        step=1,
        epoch=1,
        best_step=1,
        best_val_loss=1.0,
        temperature=0.05,
    )
    encoder = Encoder(EncoderConfig(**ENCODER), words.num_labels, words.num_relations)
    checkpoint.save(path, info, encoder.state_dict())


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search")
    records = [{"post_id": "1", "kind": "question", "title": "Is $\\sqrt2$\n odd?", "body": "Well?", "markup": "text"}]
    records += [
        {"post_id": name, "kind": "answer", "body": body, "markup": "text", "parent_id": "1"}
        for name, body in ANSWERS.items()
    ]
    (path / "posts.jsonl").write_text("\n".join(json.dumps(record) for record in records) + "\n")
    topics = [{"post_id": name, "body": body, "markup": "text"} for name, body in TOPICS.items()]
    (path / "topics.jsonl").write_text("\n".join(json.dumps(topic) for topic in topics) + "\n")
    tasks = [
        {**topic, "post_id": f"B{topic['post_id'][1:]}", "formula_id": f"B{topic['post_id'][1:]}:0"}
        for topic in topics[:2]
    ]
    (path / "topics2.jsonl").write_text("\n".join(json.dumps(topic) for topic in tasks) + "\n")
    (path / "qrels.tsv").write_text("A.1\t0\t14\t2\n")
    collection.build(path / "collection.db", JsonLines(path).posts(), ParserFactory(EmbeddedParser), source="test")
    with Collection(path / "collection.db") as source:
        words = Vocabulary.build(vocabulary.count(source.rows(), mathamr_plus.decode), size=300)
        store.build(path / "graphs.db", source.rows(), mathamr_plus.decode, VirtualNodeSpec(), words)
    for seed in (1, 2):
        save_model(path / f"model{seed}", GraphStore(path / "graphs.db"), seed)
    return path


def index_arguments(work: Path, out: Path, *more: str) -> list[str]:
    named = {
        "graphs": work / "graphs.db",
        "collection": work / "collection.db",
        "model": work / "model1",
        "corpus": "jsonl",
        "root": work,
        "out": out,
    }
    return [*(str(part) for name, value in named.items() for part in (f"--{name}", value)), *more]


@pytest.fixture(scope="module")
def index(work: Path) -> Path:
    assert load("index").main(index_arguments(work, work / "index", "--posts-a-shard", "3")) == 0
    return work / "index"


def test_the_index_is_checked_when_it_is_built(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load("index").main(index_arguments(work, tmp_path, "--backend", "qdrant")) == 0
    out = capsys.readouterr().out
    assert "4 posts" in out
    assert out.count("recall@100 1.000 against exact search") == 5
    catalog = Catalog.open(tmp_path)
    assert (catalog.backend, len(catalog), len(catalog.formulas)) == ("qdrant", 4, 6)
    catalog.close()
    assert not (tmp_path / "encoding").exists()


def test_posts_are_removed_and_added(
    work: Path, tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load("index")
    (tmp_path / "gone").write_text("12\n13\n")
    out = tmp_path / "index"
    assert script.main(index_arguments(work, out, "--remove", str(tmp_path / "gone"))) == 0
    smaller = Catalog.open(out)
    assert sorted(smaller.vectors.post_ids()) == ["11", "14"]
    smaller.close()
    capsys.readouterr()
    assert script.main(index_arguments(work, out, "--update")) == 0
    assert "2 kept from the index before" in capsys.readouterr().out
    grown, whole = Catalog.open(out), Catalog.open(index)
    ids = sorted(ANSWERS)
    assert sorted(grown.vectors.post_ids()) == ids
    torch.testing.assert_close(grown.vectors.vectors_of(ids).vectors, whole.vectors.vectors_of(ids).vectors)
    assert len(grown.formulas) == len(whole.formulas)


def test_a_search_shows_title_text_score_and_why(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = load("search")
    assert script.main([f"index={index}", "k=4", ANSWERS["14"]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1. Is $\\sqrt2$ odd?"
    assert lines[1].startswith("   post 14, score 4.000")
    assert lines[2].strip() == ANSWERS["14"]
    assert lines[3].strip() == "1.000  formula $\\sqrt2$  <-  formula $\\sqrt2$"
    assert lines[4].strip() == "1.000  formula $\\sqrt3$  <-  formula $\\sqrt3$"
    assert lines[5].strip().startswith("1.000  sentence Both $")
    assert lines[6].strip() == "1.000  whole post  <-  whole post"
    assert not any("\x1b" in line for line in lines)


def test_a_search_for_formulas(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = load("search")
    assert script.main([f"index={index}", "task=formulas", "k=2", "$\\int_0^1 x\\,dx$"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1. \\int_0^1 x\\,dx\n   formula 12:0 of post 12, score 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the query is empty"),
        (["x" * 100_000], "the query has 100,000 characters"),
        (["strategy=best", "x"], "strategy 'best' is not known; there are single_vector"),
        (["exact=false", "x"], "the backend qdrant has"),
        (["task=formulas", "no formula"], "needs a formula"),
        (["k=0", "x"], "k=0"),
        (["k=many", "x"], "a whole number is needed"),
        (["depth=3", "x"], "unknown key 'depth'"),
        (["two", "queries"], "put the query in quotes"),
    ],
)
def test_bad_input_is_one_message_and_code_2(
    index: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load("search").main([f"index={index}", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_an_equation_is_a_query_and_no_setting(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load("search").main([f"index={index}", "k=1", "$a=b$"]) == 0
    assert "post" in capsys.readouterr().out


def test_an_index_by_another_model_is_refused(index: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load("search").main([f"index={index}", f"model={work / 'model2'}", "x"]) == 2
    assert "the index was built by model" in capsys.readouterr().err
    arguments = index_arguments(work, index, "--update")
    arguments[arguments.index("--model") + 1] = str(work / "model2")
    assert load("index").main(arguments) == 2
    assert "the index was built by model" in capsys.readouterr().err


def test_run_files_of_both_tasks(index: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = load("search_run")
    common = ["--index", str(index), "--corpus", "jsonl", "--root", str(work)]
    assert script.main([*common, "--task", "1", "--out", str(tmp_path / "one.tsv")]) == 0
    assert "topic A.3 has no graph and scores 0" in capsys.readouterr().err
    run = read_run(tmp_path / "one.tsv", task=1)
    assert {topic: len(hits) for topic, hits in run.rankings.items()} == {"A.1": 4, "A.2": 4}
    for context in ("0", "0.3"):
        assert script.main([*common, "--task", "2", "--context", context, "--out", str(tmp_path / "two.tsv")]) == 0
        run = read_run(tmp_path / "two.tsv", task=2)
        best = {topic: (hits[0].doc_id, hits[0].post_id) for topic, hits in run.rankings.items()}
        assert best == {"B.1": ("14:0", "14"), "B.2": ("12:0", "12")}
    assert script.main([*common, "--model", str(work / "model2"), "--out", str(tmp_path / "no.tsv")]) == 2
    assert script.main([*common, "--task", "2", "--context", "2", "--out", str(tmp_path / "no.tsv")]) == 2
    assert not (tmp_path / "no.tsv").exists()


def test_a_second_builder_is_refused(index: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with alone(index):
        assert load("index").main(index_arguments(work, index)) == 2
    assert "another process is building this index" in capsys.readouterr().err


def test_an_index_on_a_server(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Server(QdrantClient):
        def close(self, *_: object, **__: object) -> None:
            """A server goes on when a client leaves."""

    server = Server(":memory:")
    monkeypatch.setattr("mathamr.retrieval.qdrant_server._connect", lambda *_: server)
    place = ["--backend", "qdrant", "--location", ":memory:", "--name", "mine"]
    script = load("index")
    exact_only = script.compare
    monkeypatch.setattr(script, "compare", lambda a, b, c, ways: exact_only(a, b, c, [w for w in ways if w.exact]))
    assert script.main(index_arguments(work, tmp_path, *place)) == 0
    assert ":memory: keeps the index of posts" in capsys.readouterr().out
    assert sorted(alias.alias_name for alias in server.get_aliases().aliases) == ["mine", "mine-formulas"]
    catalog = Catalog.open(tmp_path)
    own = catalog.vectors.vectors_of(["14"])
    assert catalog.search(own, "maxsim", 1)[0][0][0] == "14"
    assert catalog.search_formulas(own.vectors[0], 1)[0].post_id in ANSWERS
    catalog.close()
    (tmp_path / "gone.txt").write_text("13\n")
    assert script.main(index_arguments(work, tmp_path / "other", *place, "--remove", str(tmp_path / "gone.txt"))) == 0
    with pytest.raises(
        StoreError, match="'mine' at :memory: holds 3 posts, this folder has 4: another build has taken"
    ):
        Catalog.open(tmp_path)
    capsys.readouterr()
    assert script.main(index_arguments(work, tmp_path, "--location", "http://localhost:1")) == 2
    assert "belongs to the backend qdrant" in capsys.readouterr().err
