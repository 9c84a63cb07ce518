"""The second stage behind the runner: a text cross-encoder and attention over vectors, and what is refused."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import run as runner
from graphs.errors import ConfigError
from mathamr.evaluation.runs import read_run
from mathamr.ranking.text_models import open_cross_encoder
from mathamr.retrieval.fusion import interpolate
from mathamr.systems import rerank
from mathamr.systems.rerank import reranked
from tests.experiments.test_threads import run
from tests.experiments.test_tracks import configured, planned

pytestmark = pytest.mark.usefixtures("without_plots")

WORDS: dict[str, Any] = {"track": "bm25"}
TEXT: dict[str, Any] = {"track": "text", "text": {"epochs": 0}}
QUESTION: dict[str, Any] = {**TEXT, "thread": {"read": "question"}}
AGAIN: dict[str, Any] = {"track": "rerank", "rerank": {"of": "text", "questions": "question"}}


@pytest.fixture
def cross_encoder(tmp_path: Path) -> Path:
    """A cross-encoder with random weights."""
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    folder = tmp_path / "cross-encoder"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "is", "every", "finite", "the", "ring", "group", "field"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig.from_dict({**sizes, "num_labels": 1})
    BertForSequenceClassification(config).save_pretrained(folder)
    assert CrossEncoder(str(folder), device="cpu").num_labels == 1
    return folder


def test_a_cross_encoder_orders_the_first_results_anew(collection: Path, tmp_path: Path, cross_encoder: Path) -> None:
    own = {"of": "words", "depth": 5, "scorer": "cross_encoder", "encoder": str(cross_encoder)}
    jobs = run({"words": WORDS, "again": {"track": "rerank", "rerank": own}}, collection, tmp_path / "out")
    before, after = (read_run(jobs / f"{name}-seed1" / "run.tsv", task=1).rankings for name in ("words", "again"))
    for topic, hits in before.items():
        names, new = [hit.doc_id for hit in hits], [hit.doc_id for hit in after[topic]]
        assert set(names[:5]) == set(new[:5])
        assert names[5:] == new[5:]
    assert any([hit.doc_id for hit in hits] != [hit.doc_id for hit in after[topic]] for topic, hits in before.items())


def test_a_cross_encoder_computes_in_float32_whatever_its_checkpoint_has(cross_encoder: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification

    half = shutil.copytree(cross_encoder, tmp_path / "half")
    AutoModelForSequenceClassification.from_pretrained(cross_encoder, dtype=torch.bfloat16).save_pretrained(half)
    exact = AutoModelForSequenceClassification.from_pretrained(half, dtype=torch.float32)
    exact.save_pretrained(cross_encoder)
    texts = [f"a ring {'of integers ' * number}" for number in range(8)]
    exact_scores, half_scores = (
        open_cross_encoder(str(one), max_length=64, device="cpu")("Is it?", texts) for one in (cross_encoder, half)
    )
    np.testing.assert_array_equal(half_scores, exact_scores)


def test_attention_is_trained_on_pairs_and_scores_the_vectors(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = run({"text": TEXT, "question": QUESTION, "again": AGAIN}, collection, tmp_path / "out", "rerank.epochs=1")
    before, after = (read_run(jobs / f"{name}-seed1" / "run.tsv", task=1).rankings for name in ("text", "again"))
    assert {topic: {hit.doc_id for hit in hits} for topic, hits in before.items()} == {
        topic: {hit.doc_id for hit in hits} for topic, hits in after.items()
    }
    result = json.loads((jobs / "again-seed1" / "result.json").read_text())
    assert result["pairs_left_out"] == 0
    assert (jobs / "again-seed1" / "leaks.tsv").is_file()
    monkeypatch.setattr(rerank, "mine", lambda *sets, **options: [])
    conditions = {"text": TEXT, "question": QUESTION, "again": AGAIN}
    with pytest.raises(AssertionError, match=r"score above train\.negative_closest=0\.9 times the right one; raise it"):
        run(conditions, collection, tmp_path / "out", "train.negative_closest=0.9")


def test_attention_does_not_depend_on_vectors_that_other_experiments_made(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[object] = []
    mine = rerank.mine

    def recorded(questions: Any, answers: Any, places: Any, **options: Any) -> Any:
        learned.append(places)
        return mine(questions, answers, places, **options)

    monkeypatch.setattr(rerank, "mine", recorded)
    judgments = collection / "qrels.tsv"
    lines = judgments.read_text().splitlines(keepends=True)
    judgments.write_text("".join(line for line in lines if int(line.split("\t")[2][1:]) < 20))
    conditions = {"text": TEXT, "question": QUESTION, "again": AGAIN}
    own = ["data.regime=judged", "rerank.epochs=1"]
    alone = run(conditions, collection, tmp_path / "alone", *own)
    run({"text": TEXT, "question": QUESTION}, collection, tmp_path / "out", "data.regime=full", "experiment.name=other")
    after = run(conditions, collection, tmp_path / "out", *own)
    assert len(learned) == 2
    assert learned[0] == learned[1]
    one, other = (read_run(jobs / "again-seed1" / "run.tsv", task=1).rankings for jobs in (alone, after))
    for topic, hits in one.items():  # vectors of a text differ in the last bit with the texts beside it
        assert [hit.doc_id for hit in hits] == [hit.doc_id for hit in other[topic]]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in other[topic]], abs=1e-3)


def test_attention_reads_no_vectors_of_topics_that_have_changed_since(collection: Path, tmp_path: Path) -> None:
    conditions = {"text": TEXT, "question": QUESTION, "again": AGAIN}
    topics = collection / "topics.jsonl"
    before = topics.read_text()
    jobs = run(conditions, collection, tmp_path / "out", "rerank.epochs=1")
    topics.write_text(before.replace("Is every", "Which"))
    run(conditions, collection, tmp_path / "out", "rerank.epochs=1")
    topics.write_text(before)
    with pytest.raises(AssertionError, match=r"the vectors are of other topics or another model than in .*text-seed1"):
        run(conditions, collection, tmp_path / "out", "rerank.epochs=2")
    shutil.rmtree(jobs / "text-seed1")
    run(conditions, collection, tmp_path / "out", "rerank.epochs=2")


def test_attention_reads_vectors_beside_a_topic_without_a_text(collection: Path, tmp_path: Path) -> None:
    with (collection / "topics.jsonl").open("a") as topics:
        topics.write('{"post_id": "T.none", "body": "<p></p>"}\n')
    with (collection / "qrels.tsv").open("a") as qrels:
        qrels.write("T.none\t0\ta1\t3\n")
    jobs = run({"text": TEXT, "question": QUESTION, "again": AGAIN}, collection, tmp_path / "out", "rerank.epochs=1")
    assert "T.none" not in read_run(jobs / "again-seed1" / "run.tsv", task=1).rankings


def test_keys_of_attention_depend_on_the_seed_and_the_pairs() -> None:
    conditions = {"text": TEXT, "question": QUESTION, "again": AGAIN}
    jobs = planned(conditions)
    assert [need.name for need in jobs["again-seed1"].needs] == ["text-seed1", "question-seed1"]
    assert jobs["again-seed1"].run_key != jobs["again-seed2"].run_key
    assert jobs["text-seed1"].run_key == jobs["text-seed2"].run_key
    other = planned(conditions, "train.positives=answers")
    assert other["again-seed1"].run_key != jobs["again-seed1"].run_key


def test_a_result_that_is_no_post_is_named(collection: Path, tmp_path: Path, cross_encoder: Path) -> None:
    (tmp_path / "run.tsv").write_text("T.0\ta1\t1\t2.0\tother\nT.0\tgone\t2\t1.0\tother\n")
    conditions = {
        "other": {"track": "run", "run": {"path": str(tmp_path / "run.tsv")}},
        "again": {
            "track": "rerank",
            "rerank": {"of": "other", "scorer": "cross_encoder", "encoder": str(cross_encoder)},
        },
    }
    places = [f"data.root={collection}", f"outputs={tmp_path / 'out'}"]
    ended = runner.run(configured(conditions, *places, seeds=(1,)), "the command")
    assert ended.failed == 1
    assert "topic T.0: 1 results of rerank.of=other are no posts of the collection, e.g. gone" in ended.table


GRAPH: dict[str, Any] = {"track": "graph", "train": {"positives": "duplicates"}}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (WORDS, {**WORDS, "thread": {"read": "question"}}, "rerank.of=text makes no vectors"),
        (TEXT, {**QUESTION, "text": {"epochs": 1}}, "have different models"),
        (QUESTION, {**QUESTION, "thread": {"read": "question", "depth": 7}}, "use thread.read=answer there"),
        (
            {**TEXT, "text": {"epochs": 0, "late_interaction": True}},
            {**QUESTION, "text": {"epochs": 0, "late_interaction": True}},
            "make a vector of each token",
        ),
        (
            {**GRAPH, "graph": {"thread": "question"}},
            {**GRAPH, "graph": {"thread": "question"}, "thread": {"read": "question"}},
            "rerank.of=text has graph.thread=question: vectors of answers contain their question",
        ),
    ],
)
def test_attention_needs_one_model_with_vectors_of_answers_alone(
    first: dict[str, Any], second: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        planned({"text": first, "question": second, "again": AGAIN})


def test_a_first_stage_that_found_nothing_has_nothing_to_score_again(
    collection: Path, tmp_path: Path, cross_encoder: Path
) -> None:
    path = collection / "topics.jsonl"
    topics = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(topic | {"title": "", "body": "Xyzzy?"}) + "\n" for topic in topics))
    own = {"of": "words", "scorer": "cross_encoder", "encoder": str(cross_encoder)}
    jobs = run({"words": WORDS, "again": {"track": "rerank", "rerank": own}}, collection, tmp_path / "out")
    assert (jobs / "again-seed1" / "run.tsv").read_text() == ""


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({}, "track=rerank needs rerank.of"),
        ({"of": "wrods", "scorer": "cross_encoder"}, "did you mean words"),
        ({"of": "words"}, "rerank.scorer=attention needs rerank.questions"),
        ({"of": "words", "scorer": "llm"}, "rerank.scorer=llm is not one of attention, cross_encoder"),
        ({"of": "words", "scorer": "cross_encoder", "depth": 0}, "rerank.depth=0 must be from 1 to 1,000"),
        (
            {"of": "words", "scorer": "cross_encoder", "learning_rate": float("nan")},
            "rerank.learning_rate=nan must be a positive number",
        ),
        ({"of": "words", "scorer": "cross_encoder"}, "needs rerank.encoder"),
        (
            {"of": "words", "scorer": "cross_encoder", "encoder": "./nowhere"},
            "nowhere cannot be opened",
        ),
    ],
)
def test_what_cannot_be_scored_is_said(collection: Path, tmp_path: Path, own: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run({"words": WORDS, "again": {"track": "rerank", "rerank": own}}, collection, tmp_path / "out")


def test_a_fusion_keeps_the_new_order_of_the_first_results() -> None:
    names = [f"p{number}" for number in range(100)]
    scores = np.linspace(0.4, 0.6, 10)  # of the first ten, the last is now the best
    again = {"A.1": reranked(names, scores)}
    before = {"A.1": [(name, 1.0 - place / 100) for place, name in enumerate(names)]}
    (fused,) = interpolate([before, again], [0.2, 0.8]).values()
    assert [name for name, _ in fused[:10]] == names[9::-1]
    assert [name for name, _ in again["A.1"][10:]] == names[10:]


@pytest.mark.parametrize("scores", [[0.4, 0.6], [1.05], [2.05, 2.05], [-4.1, -4.1], [1023.0], []])
def test_results_that_are_not_scored_again_stay_in_order_in_float32(scores: list[float]) -> None:
    names = [f"p{number}" for number in range(1000)]
    found = reranked(names, np.array(scores))
    assert [name for name, _ in found[len(scores) :]] == names[len(scores) :]
    kept = [np.float32(score) for _, score in found]
    assert all(below < above for above, below in pairwise(kept[max(len(scores) - 1, 0) :]))
