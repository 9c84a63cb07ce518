"""An index of any system: what mathamr search ranks is what the run file ranks."""

import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hydra import compose, initialize_config_dir

import scripts.index
import scripts.search
from experiments.configuration.registration import register, validated
from experiments.indexes.kept_jobs import index_job
from experiments.run import run
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.post import Topic
from graphs.errors import ConfigError, StoreError
from graphs.graph.graph_maker import FormulaTrees
from mathamr.evaluation.runs import read_run
from mathamr.retrieval.folder import switch
from mathamr.retrieval.scores import SCORES
from mathamr.search.settings import read
from mathamr.search.system_engine import SystemEngine
from mathamr.search.web.app import create_app
from mathamr.search_index import open_engine, open_index
from mathamr.systems.parts import scores_left
from mathamr.systems.searchable.kept import Part
from mathamr.systems.structure import StructureSearch
from tests.experiments.conftest import FORMULAS, with_years, write_collection, write_splade
from tests.experiments.tiny_settings import ROOT, SMALL

pytestmark = pytest.mark.usefixtures("without_plots")

CONDITIONS = {
    "words": "{track: bm25}",
    "formulas": "{track: bm25, bm25: {by: formulas}}",
    "question": "{track: bm25, thread: {read: question}}",
    "both": "{track: bm25, thread: {read: both}}",
    "structure": "{track: structure}",
    "structure_question": "{track: structure, thread: {read: question}}",
    "text": "{track: text, text: {epochs: 0}}",
    "text_question": "{track: text, text: {epochs: 0}, thread: {read: question}}",
    "text_both": "{track: text, text: {epochs: 0}, thread: {read: both}}",
    "tokens": "{track: text, text: {epochs: 0, late_interaction: true}}",
    "tuned": "{track: text, text: {epochs: 1, linearize: true}}",
    "sparse": "{track: sparse, sparse: {encoder: SPLADE}}",
    "sparse_question": "{track: sparse, sparse: {encoder: SPLADE}, thread: {read: question}}",
    "graph": "{track: graph, graph: {connectivity: sequential}}",
    "graph_question": "{track: graph, graph: {connectivity: sequential}, thread: {read: question}}",
    "graph_both": "{track: graph, graph: {connectivity: sequential}, thread: {read: both}}",
    "all": "{track: fusion, fusion: {of: [words, graph, graph_question], how: standard}}",
    "ranks": "{track: fusion, fusion: {of: [words, formulas, text]}}",
    "weighted": "{track: fusion, fusion: {of: [question, tokens], how: weighted, weights: [0.3, 0.7]}}",
    "sum": "{track: fusion, fusion: {of: [text, question], how: standard}}",
    "learned": "{track: learned, learned: {of: [question, text]}}",
    "facts": "{track: learned, learned: {of: [sum, words], features: [standard, votes, tags, length]}}",
    "sums": "{track: fusion, fusion: {of: [sum, words], how: standard, weights: [1, 0.5]}}",
}
WITHOUT_VECTORS = ("words", "formulas", "question", "both", "structure", "structure_question")
# A typed query has no year, and a graph of its title is not apart from that of its body.
NOT_AS_TYPED = ("learned", "facts", "graph", "graph_question", "graph_both", "all")
OWN_QUESTION = "A.1"  # the topic is a question of the collection, whose answers it does not find by it
SEED = 7
# A query is encoded alone, and topics were encoded together: sums of floats differ in their last digits, more so
# in standardised scores.
close = partial(pytest.approx, rel=1e-4, abs=2e-4)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished experiment with a condition of every kind."""
    place = tmp_path_factory.mktemp("kept")
    data = with_years(write_collection(place / "data"))
    topics = [json.loads(line) for line in (data / "topics.jsonl").read_text().splitlines()]
    for topic, formula in zip(topics, FORMULAS * 2, strict=True):
        topic["body"] += f" Let ${formula}$ hold."
    topics[0] |= {"title": "When is a ring finite?", "body": "Let $x^2+1$ be given. Is the ring number 0 finite?"}  # q0
    (data / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    words = ["+exp=trial", "data=jsonl", f"data.root={data}", f"outputs={place / 'out'}", "text=tiny", "index=exact"]
    splade = str(write_splade(place))
    conditions = {name: changes.replace("SPLADE", splade) for name, changes in CONDITIONS.items()}
    words += [f"+experiment.conditions.{name}={changes}" for name, changes in conditions.items()]
    words += [f"experiment.only=[{','.join(CONDITIONS)}]", f"experiment.seeds=[{SEED}]", "thread.depth=30"]
    words += SMALL
    words += ["train.device=cpu", "workers=1", "wandb=disabled", "experiment.name=kept", "experiment.baseline=words"]
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = validated(compose("config", words))
    ended = run(config, shlex.join(["python", "-m", "experiments.run", *words]))
    assert ended.failed == 0, ended.table
    return place / "out" / "kept"


@contextmanager
def opened(experiment: Path, condition: str) -> Iterator[SystemEngine]:
    """Index a condition, unless it is indexed, and open the index."""
    out = experiment / "indexes" / f"{condition}-seed{SEED}"
    if not out.exists():
        assert str(out) in index_job(experiment, condition)
    engine, header = open_index(out)
    assert (header["condition"], header["seed"], header["posts"]) == (condition, SEED, 40)
    try:
        yield engine
    finally:
        engine.close()


def topics_of(experiment: Path) -> list[Topic]:
    return list(JsonLines(experiment.parents[1] / "data").topics(1, []))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_index_ranks_as_the_run_file_does(experiment: Path, condition: str) -> None:
    job = experiment / "jobs" / f"{condition}-seed{SEED}"
    rankings = read_run(job / "run.tsv", task=1).rankings
    with opened(experiment, condition) as engine:
        part = engine.searchable
        assert isinstance(part, Part)
        for topic in topics_of(experiment):
            found, expected = part.run(topic), rankings[topic.topic_id]
            if condition in WITHOUT_VECTORS:
                assert found == expected
            assert {hit.doc_id: hit.score for hit in found} == close({hit.doc_id: hit.score for hit in expected})
            if (job / SCORES).exists():
                left, own = scores_left(job, 1, 1000)[topic.topic_id], part.scores(topic)
                assert own.floor == close(left.floor)
                names = sorted({*own.scores, *left.scores})  # of equal posts at the end, either may be cut
                assert own.of(names) == close(left.of(names))
            typed = engine.answer(topic.post.title + "\n" + topic.post.body, k=3).results
            if condition not in NOT_AS_TYPED and topic.topic_id != OWN_QUESTION:
                first = {hit.doc_id: hit.score for hit in expected[:3]}
                assert {one.post.post_id: one.score for one in typed} == close(first)
        if condition == "question":
            assert "a0" not in {hit.doc_id for hit in rankings[OWN_QUESTION]}


def test_the_command_and_the_page_show_answers_with_their_questions(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "index"
    assert scripts.index.main(["--from", str(experiment), "question", "--out", str(index)]) == 0
    printed = capsys.readouterr().out
    assert "40 posts of jsonl-" in printed
    assert f"mathamr search index={index} 'QUERY'" in printed
    assert scripts.search.main([f"index={index}", "k=2", "Is the lattice number 13 finite?"]) == 0
    out, error = capsys.readouterr()
    assert out.splitlines()[:2] == ["1. When is a lattice finite?", "   post a13, score " + out.split("score ")[1][:5]]
    assert "   answers question q13: Let $f(x)=0$ be given. Is the lattice number 13 finite?" in out
    assert "ranked by question of kept" in error
    settings, _ = read([f"index={index}", "k=2"])
    engine, _ = open_engine(settings)
    try:
        client = TestClient(create_app(engine, settings), base_url="http://127.0.0.1")
        about = client.get("/api/index").json()
        assert (about["system"], about["strategies"], about["explains"]) == ("question of kept", [], False)
        answer = client.post("/api/search", json={"query": "Is the lattice number 13 finite?"}).json()
        assert answer["best"] is None
        assert answer["results"][0]["post_id"] == "a13"
        assert answer["results"][0]["question"]["post_id"] == "q13"
        refused = client.post("/api/heat-map", json={"query": "Is it?", "post_id": "a13"})
        assert (refused.status_code, "heat maps need the index of a graph model" in refused.text) == (422, True)
        for asked, message in (
            ({"query": "$x$", "task": "formulas"}, "use task=answers"),
            ({"query": " "}, "is empty"),
        ):
            refused = client.post("/api/search", json=asked)
            assert (refused.status_code, message in refused.text) == (422, True)
    finally:
        engine.close()


def test_an_index_that_cannot_be_used_is_refused(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(experiment, "words"):
        pass
    index = shutil.copytree(experiment / "indexes" / f"words-seed{SEED}", tmp_path / "index")
    assert scripts.search.main([f"index={index}", f"model={tmp_path}", "x"]) == 2
    assert "is not of a graph model; leave model= out" in capsys.readouterr().err
    header = json.loads((index / "index.json").read_text())
    (data,) = index.glob("data-*")
    manifest = header["manifest"]

    def write(changed: dict[str, object]) -> None:
        new = {name: value for name, value in header.items() if name not in ("sha256", "data", "files")}
        switch(index, data, {**new, "manifest": changed})

    write({**manifest, "system": "oracle"})
    with pytest.raises(ConfigError, match="track=oracle, which is not installed"):
        open_index(index)
    write({**manifest, "threads": True})
    with pytest.raises(StoreError, match="the questions of the answers are missing"):
        open_index(index)
    write({**manifest, "parts": {"other": manifest}})
    with pytest.raises(StoreError, match="the files of track=bm25 are missing"):
        open_index(index)
    write({**manifest, "record": {}})
    with pytest.raises(StoreError, match="the index lacks 'published'"):
        open_index(index)
    write(manifest)
    shutil.rmtree(data / "system" / "scores")
    (data / "system" / "post_ids.npy").write_bytes(b"no array")
    with pytest.raises(StoreError, match="cannot be read as an index of BM25"):
        open_index(index)
    with opened(experiment, "structure"):
        pass
    index = shutil.copytree(experiment / "indexes" / f"structure-seed{SEED}", tmp_path / "structure")
    (posts,) = index.glob("data-*/system/posts.npz")
    kept = dict(np.load(posts))
    for changed in ({"places": kept["places"] + 40}, {"starts": kept["starts"][1:]}, {"names": kept["names"][:1]}):
        np.savez(posts, **{**kept, **changed})
        with pytest.raises(StoreError, match="its arrays do not belong together; build the index again"):
            StructureSearch.open(posts.parent, FormulaTrees(None), 5)
    with pytest.raises(StoreError, match="the file has changed since it was written"):
        open_index(index)
    with opened(experiment, "text"):
        pass
    index = shutil.copytree(experiment / "indexes" / f"text-seed{SEED}", tmp_path / "text")
    header = json.loads((index / "index.json").read_text())
    (data,) = index.glob("data-*")
    record = header["manifest"]["record"]
    write({**header["manifest"], "record": {**record, "identity": "0123456789abcdef"}})
    with pytest.raises(StoreError, match="and the vectors were made with 0123456789abcdef"):
        open_index(index)
    write({**header["manifest"], "record": {**record, "opening": {"colour": "red"}}})
    with pytest.raises(StoreError, match="the files of track=text are damaged"):
        open_index(index)
    write({**header["manifest"], "record": {**record, "model": "another"}})
    with pytest.raises(StoreError, match="was built by model"):
        open_index(index)
    with pytest.raises(SystemExit):
        scripts.index.main(["--from", str(experiment), "words", "--backend", "qdrant"])
    assert "--backend is an option of graph models; leave it out for words" in capsys.readouterr().err
