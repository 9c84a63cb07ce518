"""Structure search as a system, on a collection with formulas in questions and answers."""

import csv
import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.run import run
from graphs.corpus.corpus import benchmark, open_corpus
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from graphs.graph.graph_maker import FormulaTrees
from mathamr.default_settings import values
from mathamr.evaluation.runs import read_run
from mathamr.retrieval.lexical import query_formula
from mathamr.search.structured import StructuredFormulas
from mathamr.structure.scoring import StructureConfig
from mathamr.systems.structure import _Around
from tests.experiments.test_every_experiment import FORMULAS, ROOT, SMALL, write_collection

pytestmark = pytest.mark.usefixtures("quick_composition")


def configured(place: Path, *overrides: str):
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        places = [f"data.root={place / 'data'}", f"outputs={place / 'out'}"]
        track = ["+exp=trial", "track=structure", "experiment.name=found", "experiment.tasks=[2]"]
        return validated(compose("config", [*track, *SMALL, *places, *overrides]))


def check_first_ids(path: Path, k: int) -> None:
    """Check that of twelve or more formulas equal to the topic's those of the highest ids are found."""
    rankings = read_run(path, task=2).rankings
    for n in range(len(FORMULAS)):
        equal = sorted((f"{post}{i}:0" for post in "qa" for i in range(n, 32, len(FORMULAS))), reverse=True)
        assert len(equal) > k
        assert [hit.doc_id for hit in rankings[f"F.{n}"]] == equal[:k]


@pytest.mark.parametrize("context", [0, 4])
def test_formulas_that_are_equal_to_the_topics_come_first(context: int, tmp_path: Path) -> None:
    write_collection(tmp_path / "data")
    ended = run(configured(tmp_path, f"structure.context={context}", "retrieval.k=11"), "command")
    assert ended.failed == 0, ended.table
    with (tmp_path / "out" / "found" / "results.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert int(row["task2_topics"]) == len(FORMULAS)
    assert float(row["task2_p_prime_10"]) == 1.0
    assert float(row["task2_queries_per_second"]) > 0
    (path,) = (tmp_path / "out" / "found" / "jobs").glob("*/run-task2.tsv")
    assert all(len(hits) == 11 for hits in read_run(path, task=2).rankings.values())
    if not context:
        check_first_ids(path, 11)


def test_an_index_for_people_has_the_scores_of_the_run(tmp_path: Path) -> None:
    write_collection(tmp_path / "data")
    ended = run(configured(tmp_path), "command")
    assert ended.failed == 0, ended.table
    (path,) = (tmp_path / "out" / "found" / "jobs").glob("*/run-task2.tsv")
    corpus = open_corpus("jsonl", tmp_path / "data")
    built = StructuredFormulas.build(corpus.posts(), StructureConfig(**values("structure")))
    assert built is not None
    built.write(tmp_path / "index")
    formulas = StructuredFormulas.open(tmp_path / "index")
    rankings = read_run(path, task=2).rankings
    for topic in benchmark(corpus).topics(2, []):
        query = query_formula(topic, FormulaTrees().of)
        assert query is not None
        found = [hit for _, hit in formulas.search(query, 1000)]
        assert [(hit.doc_id, hit.post_id) for hit in found] == [(h.doc_id, h.post_id) for h in rankings[topic.topic_id]]
        scores = [hit.score for hit in rankings[topic.topic_id]]  # a run file lowers equal scores a little
        assert [hit.score for hit in found] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("structure.context=-1", r"structure.context=-1 must be from 0"),
        ("structure.size=2", r"structure.size=2.0 must be from 0 to 1"),
        ("retrieval.k=0", r"retrieval.k=0 must be"),
    ],
)
def test_settings_out_of_range_are_refused(setting: str, message: str, tmp_path: Path) -> None:
    write_collection(tmp_path / "data")
    with pytest.raises(ConfigError, match=message):
        run(configured(tmp_path, setting), "command")


def test_ids_of_formulas_and_visual_ids_never_meet() -> None:
    """The visual id of one formula is the id of another one, which has no visual id."""
    around = _Around(words=True)
    posts = [
        Post("p", "answer", body="rings $x$", markup="text", formula_prefix=""),
        Post("q", "answer", body="groups $y$", markup="text", formula_prefix=""),
    ]
    for post in posts:
        around.add(post.post_id, extract(post))
    context = around.context([("p:0", "p"), ("q:0", "q")], {"p:0": "q:0"})
    assert context.scores(["rings"]).tolist() == [1.0, 0.0]
    assert context.scores(["groups"]).tolist() == [0.0, 1.0]


def test_dense_vectors_find_formulas_that_are_equal_to_the_topics(tmp_path: Path) -> None:
    write_collection(tmp_path / "data")
    ended = run(configured(tmp_path, "track=latent", "latent.dimensions=8", "retrieval.k=11"), "command")
    assert ended.failed == 0, ended.table
    with (tmp_path / "out" / "found" / "results.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["task2_p_prime_10"]) == 1.0
    (path,) = (tmp_path / "out" / "found" / "jobs").glob("*/run-task2.tsv")
    check_first_ids(path, 11)
    with pytest.raises(ConfigError, match=r"latent\.dimensions=0 must be 1 or more"):
        run(configured(tmp_path, "track=latent", "latent.dimensions=0"), "command")


@pytest.mark.parametrize(("k", "read"), [(3, "answer"), (30, "answer"), (30, "question")])
def test_answers_are_found_by_the_formulas_of_the_topic(k: int, read: str, tmp_path: Path) -> None:
    root = write_collection(tmp_path / "data")
    lines = (root / "topics.jsonl").read_text().splitlines()  # all without a formula
    body = f"Is every ring finite where ${FORMULAS[1]}$ holds, and $x$?"
    (root / "topics.jsonl").write_text("\n".join([json.dumps({"post_id": "T.0", "body": body}), *lines[1:]]) + "\n")
    settings = ("experiment.tasks=[1]", f"retrieval.k={k}", f"thread.read={read}")
    ended = run(configured(tmp_path, *settings), "command")
    assert ended.failed == 0, ended.table
    (path,) = (tmp_path / "out" / "found" / "jobs").glob("*/run.tsv")
    rankings = read_run(path, task=1).rankings
    assert rankings.keys() == {"T.0"}
    # answers with the formula, or with it in their question
    equal = sorted((f"a{number}" for number in (1, 6, 11, 16, 21, 26, 31)), reverse=True)
    assert [hit.doc_id for hit in rankings["T.0"][:7]] == equal[:k]
