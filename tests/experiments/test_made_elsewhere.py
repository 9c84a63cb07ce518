"""Stages, models and runs that were made elsewhere; parts of a collection that change, and what is done again."""

import json
import re
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.plan import Job, plan
from experiments.run import run
from graphs import database
from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.corpus import open_corpus
from graphs.corpus.files import FormulaFiles, TopicFormulaFiles
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Post
from graphs.errors import ConfigError
from graphs.formulas import store as formula_store
from graphs.stores import collection as collection_db
from graphs.stores.collection import Collection, writer
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.needed import NeededPosts
from mathamr.stages.settings import ParsedSettings
from mathamr.systems.bm25 import BM25System
from mathamr.training.graph import trainer
from tests.experiments.tiny_settings import TINY

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]
ONE = ("train.epochs=1", "experiment.seeds=[1]")
FULL = ("data.regime=full",)


def composed(collection: Path, outputs: Path, *overrides: str, conditions: dict[str, Any]) -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        places = [f"data.root={collection}", f"outputs={outputs}"]
        config = compose("config", ["+exp=vn_connectivity", *TINY, *ONE, *places, *overrides])
    config.experiment.conditions = conditions
    config.experiment.baseline = next(iter(conditions))
    return validated(config)


def jobs(config: Any) -> list[Job]:
    return plan(config, open_corpus(config.data.name, config.data.root).fingerprints())


def result(outputs: Path, condition: str) -> dict[str, Any]:
    path = outputs / "vn_connectivity" / "jobs" / f"{condition}-seed1" / "result.json"
    return json.loads(path.read_text())


def judge(collection: Path, topic: str, answer: str, grade: int) -> None:
    """Change one judgment."""
    path = collection / "qrels.tsv"
    path.write_text(
        re.sub(rf"^{topic}\t0\t{answer}\t\d$", f"{topic}\t0\t{answer}\t{grade}", path.read_text(), flags=re.M)
    )


def test_new_judgments_are_evaluated_and_nothing_is_searched_again(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"words": {"track": "bm25"}}
    outputs = tmp_path / "out"
    config = composed(collection, outputs, *FULL, conditions=words)
    run(config, "command")
    before = result(outputs, "words")
    monkeypatch.setattr(BM25System, "index", lambda *_: pytest.fail("searched again"))
    judge(collection, "T.0", "a15", 2)
    run(config, "command")
    after = result(outputs, "words")
    assert after["ndcg_prime"] != before["ndcg_prime"]
    assert after["judgments_hash"] != before["judgments_hash"]
    assert after["queries_per_second"] == before["queries_per_second"]
    (job,) = jobs(config)
    assert (after["key"], before["key"] == after["key"]) == (job.key, False)


def test_judgments_change_no_key_of_a_graph_or_model(collection: Path, tmp_path: Path) -> None:
    config = composed(collection, tmp_path / "out", *FULL, conditions={"graph": {}})
    (before,) = jobs(config)
    judge(collection, "T.0", "a15", 2)
    (after,) = jobs(config)
    assert (after.model_key, after.run_key) == (before.model_key, before.run_key)
    assert after.key != before.key
    judged = composed(collection, tmp_path / "out", "data.regime=judged", conditions={"graph": {}})
    (one,) = jobs(judged)
    judge(collection, "T.1", "a15", 2)
    (other,) = jobs(judged)
    assert one.model_key == other.model_key
    assert one.run_key != other.run_key  # what is judged is what is searched


def test_a_run_of_another_system_stands_in_the_same_table(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "out"
    run(composed(collection, outputs, *FULL, conditions={"words": {"track": "bm25"}}), "command")
    theirs = tmp_path / "theirs.tsv"
    shutil.copy(outputs / "vn_connectivity" / "jobs" / "words-seed1" / "run.tsv", theirs)
    with theirs.open("a") as file:
        file.write("A.1\t0815\t1\t1.0\ttheirs\n")  # no topic of this collection
        file.write("T.0\telsewhere\t1\t-9.0\ttheirs\n")  # no post of it
    both = {"words": {"track": "bm25"}, "theirs": {"track": "run", "run": {"path": str(theirs)}}}
    ended = run(composed(collection, outputs, *FULL, conditions=both), "command")
    assert ended.failed == 0
    assert "documents of the run are not in the collection, e.g. elsewhere; judged" in capsys.readouterr().err
    assert result(outputs, "theirs")["ndcg_prime"] == pytest.approx(result(outputs, "words")["ndcg_prime"])
    assert "theirs" in (outputs / "vn_connectivity" / "report.md").read_text()
    lost = {"lost": {"track": "run", "run": {"path": str(tmp_path / "nowhere.tsv")}}}
    with pytest.raises(ConfigError, match=r"run\.path=.*nowhere\.tsv is no file"):
        run(composed(collection, outputs, *FULL, conditions=lost), "command")
    theirs.write_text("A.1\t0815\t1\t1.0\ttheirs\n")
    with pytest.raises(ConfigError, match="has no result for any topic of Task 1"):
        run(composed(collection, outputs, *FULL, conditions={"none": both["theirs"]}), "command")


def test_needed_posts_alone_are_parsed_and_judgments_add_to_them(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the pairs a part is learned from; unjudged answers that are in no pair of the run are not parsed."""
    few = ("data.regime=judged", "train.max_pairs=12", "train.batch_size=4")
    qrels = (collection / "qrels.tsv").read_text().splitlines()
    judged = {f"a{i}" for i in range(6)}
    (collection / "qrels.tsv").write_text("\n".join(line for line in qrels if line.split()[2] in judged) + "\n")
    config = composed(collection, tmp_path / "out", *few, conditions={"graph": {}})
    assert run(config, "command").failed == 0
    (shared,) = (tmp_path / "out" / "shared").iterdir()
    (path,) = shared.glob("collection-*.db")
    with Collection(path) as graphs:
        parsed = set(graphs.post_ids())
    assert judged <= parsed
    assert {answer.replace("a", "q") for answer in judged} <= parsed  # their questions
    assert len(parsed) <= 24 + 2 * len(judged) < 80
    tensors = {file: file.stat().st_mtime_ns for file in shared.glob("preprocessed-*.db")}
    capsys.readouterr()
    (collection / "qrels.tsv").write_text("\n".join(qrels) + "\n")
    assert run(config, "command").failed == 0
    said = capsys.readouterr().err
    assert "is there already" in said  # the model
    assert {file: file.stat().st_mtime_ns for file in shared.glob("preprocessed-*.db")} == tensors
    with Collection(path) as graphs:
        assert parsed < set(graphs.post_ids())
    everything = composed(collection, tmp_path / "all", *few, "data.posts=all", conditions={"graph": {}})
    assert jobs(everything)[0].model_key != jobs(config)[0].model_key
    with pytest.raises(ConfigError, match=r"data\.posts=some is not one of needed, all"):
        jobs(composed(collection, tmp_path / "all", "data.posts=some", conditions={"graph": {}}))


@pytest.mark.parametrize("regime", ["full", "mini"])
def test_needed_posts_are_all_posts_where_all_are_searched(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], regime: str
) -> None:
    settings = (f"data.regime={regime}", "train.max_pairs=12", "train.batch_size=4")
    without = composed(collection, tmp_path / "out", *settings, conditions={"graph": {}})
    needed = composed(collection, tmp_path / "out", *settings, "data.posts=needed", conditions={"graph": {}})
    ours, same = jobs(without)[0], jobs(needed)[0]
    assert (ours.key, ours.model_key, ours.run_key) == (same.key, same.model_key, same.run_key)
    assert run(needed, "command").failed == 0
    assert f"the regime {regime} searches every answer, so all posts are needed" in capsys.readouterr().err
    (path,) = tmp_path.glob("out/shared/*/collection-*.db")
    with Collection(path) as graphs:
        assert len(graphs.post_ids()) == 80


def test_graphs_tensors_and_a_checkpoint_of_another_place_are_used(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = tmp_path / "out"
    run(composed(collection, outputs, *FULL, conditions={"graph": {}}), "command")
    (shared,) = (outputs / "shared").iterdir()
    (collection_db,), (tensors,) = shared.glob("collection-*.db"), shared.glob("preprocessed-*.db")
    (model,) = shared.glob("models/*/best")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in (collection_db, tensors):
        shutil.copy(file, elsewhere / file.name.split("-")[0])
    given = (f"data.collection={elsewhere}/collection", f"data.graphs={elsewhere}/preprocessed")
    capsys.readouterr()
    monkeypatch.setattr(trainer, "train", lambda *_, **__: pytest.fail("trained again"))
    theirs = {"theirs": {"model": {"checkpoint": str(model)}}}
    ended = run(composed(collection, tmp_path / "again", *FULL, *given, conditions=theirs), "command")
    assert ended.failed == 0
    said = capsys.readouterr().err
    assert "posts to graphs" not in said
    assert "graphs to tensors: 80" not in said
    ours, others = result(outputs, "graph"), result(tmp_path / "again", "theirs")
    assert others["ndcg_prime"] == ours["ndcg_prime"]
    assert (elsewhere / "collection").read_bytes() == collection_db.read_bytes()

    with (collection / "posts.jsonl").open("a") as file:
        file.write('{"post_id": "new", "kind": "question", "title": "Why?"}\n')
    ended = run(composed(collection, tmp_path / "again", *FULL, *given, conditions=theirs), "command")
    assert ended.failed == 1
    assert "was made from the collection" in ended.table
    nowhere = {"theirs": {"model": {"checkpoint": str(tmp_path)}}}
    with pytest.raises(ConfigError, match=r"model\.checkpoint=.* holds no checkpoint"):
        run(composed(collection, outputs, *FULL, conditions=nowhere), "command")


def test_a_topic_whose_text_changed_is_encoded_anew(collection: Path, tmp_path: Path) -> None:
    def ranked(outputs: Path) -> str:
        assert run(composed(collection, outputs, *FULL, conditions={"graph": {}}), "command").failed == 0
        return (outputs / "vn_connectivity" / "jobs" / "graph-seed1" / "run.tsv").read_text()

    before = ranked(tmp_path / "out")
    topics = (collection / "topics.jsonl").read_text()
    assert "Finite ring" in topics
    edited = topics.replace("Finite ring", "Sum of $x^2+1$").replace("Is every ring finite?", "What is $f(x)=0$?")
    (collection / "topics.jsonl").write_text(edited)
    after = ranked(tmp_path / "out")
    assert after != before
    fresh = [line.split("\t") for line in ranked(tmp_path / "fresh").splitlines()]
    kept = [line.split("\t") for line in after.splitlines()]
    assert [line[:3] for line in kept] == [line[:3] for line in fresh]
    # Encoded in another batch, a sum may differ in its last digit.
    assert [float(line[3]) for line in kept] == pytest.approx([float(line[3]) for line in fresh], rel=1e-6)


def test_a_collection_made_in_part_is_refused(collection: Path, tmp_path: Path) -> None:
    outputs = tmp_path / "out"
    run(composed(collection, outputs, *FULL, conditions={"graph": {}}), "command")
    (made,) = outputs.glob("shared/*/collection-*.db")
    part = tmp_path / "part.db"
    shutil.copy(made, part)
    ours, other = jobs(composed(collection, outputs, *FULL, conditions={"graph": {}})), [f"data.collection={part}"]
    assert jobs(composed(collection, outputs, *FULL, *other, conditions={"graph": {}}))[0].key != ours[0].key
    with writer(part) as connection:
        database.write_meta(connection, finished=False)
        connection.commit()
    ended = run(composed(collection, tmp_path / "again", *FULL, *other, conditions={"graph": {}}), "command")
    assert "is not finished" in ended.table
    with writer(part) as connection:
        database.write_meta(connection, finished=True, shard="2/8")
        connection.commit()
    ended = run(composed(collection, tmp_path / "again", *FULL, *other, conditions={"graph": {}}), "command")
    assert "is shard 2/8" in ended.table


def test_judged_topics_that_there_are_no_texts_of_are_refused(collection: Path, tmp_path: Path) -> None:
    with (collection / "qrels.tsv").open("a") as file:
        file.write("T.77\t0\ta1\t3\n")
    with pytest.raises(ConfigError, match=r"1 of the judged topics of Task 1 .*, e\.g\. T\.77, .*; add them"):
        run(composed(collection, tmp_path / "out", *FULL, conditions={"words": {"track": "bm25"}}), "command")


def parsed_topics(
    given: str, collection: Path, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, str], str]:
    """Return the graphs of the topics that a job uses, and what it said of them."""
    corpus = JsonLines(collection)
    (job,) = jobs(composed(collection, outputs, *FULL, f"data.collection={given}", conditions={"graph": {}}))
    assert isinstance(job.settings, ParsedSettings)
    parsed = ParsedCollection(corpus, outputs, Console(), NeededPosts(frozenset({"q0"}), frozenset()))
    capsys.readouterr()
    parsed.make(job.settings, [topic.post for topic in corpus.topics(1)[:2]])
    with Collection(parsed.topics_path(job.settings)) as graphs:
        return {post_id: penman for post_id, penman, _ in graphs.rows()}, capsys.readouterr().err


def test_topics_that_changed_are_not_taken_from_a_collection(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def topics() -> tuple[dict[str, str], str]:
        return parsed_topics(str(given), collection, tmp_path / f"out{next(number)}", capsys)

    number, given, corpus = count(), tmp_path / "given.db", JsonLines(collection)
    posts = [post for post in corpus.posts() if isinstance(post, Post) and post.post_id == "q0"]
    posts += [topic.post for topic in corpus.topics(1)[:2]]
    prints = corpus.fingerprints()
    collection_db.build(given, posts, EmbeddedParser, source=prints.graphs, topics=prints.topics, whole=False)
    with Collection(given) as graphs:
        before = {post_id: penman for post_id, penman, _ in graphs.rows("topic")}
        parser = graphs.meta["parser"]
    same, said = topics()
    assert (same, "again" in said) == (before, False)

    text = (collection / "topics.jsonl").read_text()
    (collection / "topics.jsonl").write_text(text.replace("Finite", "Small"))
    changed, said = topics()
    assert "given.db was made from other topics than those of data.root: 2 are parsed again" in said
    assert all("small" in penman for penman in changed.values())

    change_meta(given, topics_hash=None)
    assert topics()[0] == changed
    change_meta(given, parser="embedded 0 none")
    unknown, said = topics()
    assert "does not record the texts of its topics: 2 topics are used as they are" in said
    assert unknown == before
    change_meta(given, topics_hash="of others")
    with pytest.raises(ConfigError, match="was parsed by 'embedded 0 none', and the topics would be by"):
        topics()
    assert parser != "embedded 0 none"


def test_topics_of_another_version_are_not_used_in_silence(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those of a version that left no .done file; what this version adds does not make the file its own."""
    corpus, outputs = JsonLines(collection), tmp_path / "out"
    (job,) = jobs(composed(collection, outputs, *FULL, conditions={"graph": {}}))
    assert isinstance(job.settings, ParsedSettings)
    topics = [topic.post for topic in corpus.topics(1)[:3]]

    def said(number: int) -> str:
        parsed = ParsedCollection(corpus, outputs, Console(), NeededPosts(frozenset({"q0"}), frozenset()))
        parsed.make(job.settings, topics[:number])
        return " ".join(capsys.readouterr().err.split())

    assert "another version" not in said(1) + said(2)
    (path,) = outputs.glob("topic-graphs-*.db")
    done, told = path.with_suffix(".done"), path.with_suffix(".done.told")
    done.unlink()
    assert f"{path} was made by another version of graphs/" in said(3)
    told.unlink()
    assert f"{path} was made by another version of graphs/" in said(3)
    assert "another version" not in said(3)
    path.unlink()
    assert "another version" not in said(3) + said(3)


def change_meta(path: Path, **values: str | None) -> None:
    with writer(path) as connection:
        for name, value in values.items():
            connection.execute("DELETE FROM meta WHERE key = ?", (name,))
            if value is not None:
                database.write_meta(connection, **{name: value})
        connection.commit()


def test_trees_of_changed_topics_are_refused(collection: Path, tmp_path: Path) -> None:
    """Of the years in use; mathamr build formulas reads the changed file, and nothing else."""

    class Published(JsonLines):
        def formulas(self) -> FormulaFiles:
            topics = [TopicFormulaFiles(f"{year}:", None, PackedFile(tables[year]), None) for year in (2020, 2021)]
            return FormulaFiles((), (PackedFile(tables[0]),), (), tuple(topics))

    tables = {year: tmp_path / f"{year}.tsv" for year in (0, 2020, 2021)}
    for year, table in tables.items():
        table.write_text(f"id\t{'topic_id' if year else 'post_id'}\tformula\r\n1\tT.1\t<math><mi>x</mi></math>\r\n")
    corpus, trees = Published(collection), tmp_path / "trees.db"
    formula_store.build(trees, corpus.formulas())
    config = composed(collection, tmp_path / "out", f"data.formulas={trees}", conditions={"graph": {}})
    (job,) = jobs(config)
    settings = replace(job.settings, data=replace(job.settings.data, years=[2020]))
    parsed = ParsedCollection(corpus, tmp_path / "out", Console())
    for year in (2021, 2020):
        assert parsed.formulas(settings) == trees
        tables[year].write_text(tables[year].read_text().replace("x", "y"))
    with pytest.raises(ConfigError, match=r"data\.formulas=.* not made from 1 of 2 .* slt 2020:\S*2020\.tsv of"):
        parsed.formulas(settings)
    formula_store.build(trees, corpus.formulas())
    assert parsed.formulas(settings) == trees
