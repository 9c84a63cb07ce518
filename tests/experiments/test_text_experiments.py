"""The experiments with text encoders run to their reports: from LaTeX through the scripts, with a tiny encoder."""

import csv
import json
import random
import re
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from experiments.configuration.registration import register, validated
from experiments.report import results
from experiments.run import run
from graphs.corpus.corpus import check_ids
from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.corpus.post import Topic
from graphs.errors import ConfigError, CorpusError, MathAMRError
from mathamr.evaluation import result_names as columns
from mathamr.evaluation.runs import read_run
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.leak_control import own_pairs
from mathamr.stages.topic_sets import TopicSet
from mathamr.text.pairs import PairFile
from scripts.text import extract_statements, knowledge_graph, text_pairs

pytestmark = [
    pytest.mark.usefixtures("without_rendering"),
    pytest.mark.skipif(
        find_spec("sentence_transformers") is None, reason="the extra text (sentence-transformers) is not installed"
    ),
]
ROOT = Path(__file__).resolve().parents[2]
NAMES = ("text_finetuning", "cross_retrieval", "knowledge_graph", "answer_retrieval")
SUBJECTS = ("ring", "group", "field", "lattice", "module", "category", "sheaf", "graph", "tree", "matroid")
SMALL = [
    "data=pairs",
    "text=tiny",
    "text.max_length=24",
    "text.batch_size=4",
    "text.pretraining_batch_size=8",
    "text.pretraining_window=32",
    "text.pretraining_overlap=4",
    "text.validation_fraction=0.2",
    "index=exact",
    "train.device=cpu",
    "train.batch_size=8",
    "workers=1",
    "experiment.seeds=[1]",
    "wandb=disabled",
]


def paper(number: int, rng: random.Random) -> str:
    """Six statements on two subjects: titles, terms that are defined, formulas of few tokens and of many."""
    first, second = (SUBJECTS[(number + k) % 10] for k in (0, 3))
    lines = [rf"\title{{On every {first}}}", rf"\section{{Some {first} theory}}"]
    lines.append(
        rf"\begin{{definition}} A {first} is called \emph{{{first} regular}} if $x_{{{number}}}+y=z$ holds in it, or "
        rf"if it is {second} regular."
        r"\end{definition}"
    )
    for i in range(5):
        a, b = rng.randrange(10, 99), rng.choice("abcdefgh")
        formula = rf"{b}_{{{a}}}^2 + {a} = \frac{{{b}}}{{{number}}}" if i % 2 else rf"{b}^{{{a}}} \leq {number}"
        lines.append(
            rf"\begin{{lemma}}[The {second} of {first} kind {a}{b}] Every {second} number {a} that is {first} regular "
            rf"has ${formula}$ as its own law.\end{{lemma}}"
        )
    return "\n".join(lines)


def threads(folder: Path) -> Path:
    """Thirty questions with an answer each, in the collection ``jsonl``."""
    folder.mkdir()
    with (folder / "posts.jsonl").open("w") as file:
        for i in range(30):
            subject, formula = SUBJECTS[i % 10], f"$x^{i} + {i} = 0$"
            question = {"kind": "question", "body": f"When does a {subject} have {formula}?"}
            answer = {
                "kind": "answer",
                "parent_id": f"q{i}",
                "body": f"{formula} holds in every {subject}.",
                "score": 1,
            }
            for post_id, post in ((f"q{i}", question), (f"a{i}", answer)):
                file.write(json.dumps({"post_id": post_id, "markup": "text", **post}) + "\n")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the four collections, made as docs/text.md says."""
    folder, rng = tmp_path_factory.mktemp("text"), random.Random(0)
    sources = folder / "sources"
    sources.mkdir()
    for number in range(20):
        (sources / f"p{number}.tex").write_text(paper(number, rng))
    papers, graph = str(folder / "papers.jsonl"), str(folder / "graph.json")
    some = ["--test-share", "0.3"]
    unseen = [*some, "--unseen-papers", "3"]
    files = [str(path) for path in sorted(sources.iterdir())]
    assert extract_statements.main(["--papers", *files, "--out", papers]) == 0
    assert knowledge_graph.main(["--papers", papers, "--out", graph]) == 0
    for kind, options, name in (
        ("statements", ["--papers", papers, *unseen], "text_finetuning"),
        ("formulas", ["--papers", papers, *some], "cross_retrieval"),
        ("concepts", ["--graph", graph, "--sources", str(sources), *some], "knowledge_graph"),
        ("answers", ["--corpus", "jsonl", "--root", str(threads(folder / "threads")), *some], "answer_retrieval"),
    ):
        assert text_pairs.main([kind, *options, "--benchmark", str(folder / name)]) == 0
    return folder


def configured(name: str, place: Path, *more: str) -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        folders = [f"data.root={place / name}", f"outputs={place / 'out'}"]
        config = compose("config", [f"+exp={name}", *SMALL, *folders, *more])
    for condition in config.experiment.conditions.values():
        if most := condition.get("train", {}).get("max_pairs"):
            condition.train.max_pairs = most // 10
        if "pretraining_epochs" in condition.get("text", {}):
            condition.text.pretraining_epochs = 1
    return validated(config)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_to_its_report(name: str, place: Path) -> None:
    texts = place / "passages.txt"
    texts.write_text("Every finite field is commutative, and so is every ring of this text.\n" * 16)
    config = configured(name, place, f"data.texts={texts}")
    ended = run(config, f"python -m experiments.run +exp={name} data=pairs data.root={place / name}")
    assert ended.failed == 0, ended.table
    folder = place / "out" / name
    about = json.loads((place / name / "about.json").read_text())
    with (folder / "results.csv").open(newline="") as file:
        rows = {row["condition"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(config.experiment.conditions)
    titles = columns.titles(config.experiment.measures)
    for condition, row in rows.items():
        assert row["status"] == "done"
        for test in config.experiment.tasks:
            assert int(row[f"{test}_topics"]) == about["tests"][test] > 0
            assert all(0 <= float(row[f"{test}_{measure}"]) <= 1 for measure in titles)
            assert float(row[f"{test}_queries_per_second"]) > 0
        assert "ndcg_prime" not in row
        trained = config.experiment.conditions[condition].get("text", {}).get("epochs") != 0
        if trained and config.experiment.conditions[condition].get("track") != "bm25":
            assert float(row["time_per_epoch_s"]) > 0
    for path in (place / "out" / "shared").glob("*/pretrained/*/costs.json"):
        costs = json.loads(path.read_text())
        assert round(costs["pretraining_windows_per_second"] * costs["pretraining_seconds"]) == 32  # two of each text
    report, page = (folder / "report.md").read_text(), (folder / "report.html").read_text()
    several = len(config.experiment.tasks) > 1
    for test in config.experiment.tasks:
        assert (
            f"## {columns.title(test)}: results of one seed" in report
            if several
            else "## Results of one seed" in report
        )
    for title in (*titles.values(), *config.experiment.labels.values()):
        assert title in report
    assert bool(config.text.matryoshka) == (name == "knowledge_graph")  # as in the paper
    assert "nDCG'" not in report
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=[\"']https?:", page), "the page is not self-contained"
    first = titles[next(iter(titles))]
    assert (f"{first} ({columns.title(config.experiment.tasks[0])})" if several else first) in ended.table.splitlines()[
        0
    ]


def test_each_direction_searches_its_own_side(place: Path) -> None:
    name = "cross_retrieval"
    config = configured(name, place)
    config.experiment.conditions = {one: config.experiment.conditions[one] for one in ("zero_shot", "bm25", "separate")}
    config.experiment.baseline, config.experiment.baselines, config.experiment.name = "zero_shot", {}, "sides"
    assert run(config, "command").failed == 0
    sides = {
        side: {
            json.loads(line)["post_id"] for line in (place / name / f"answers-{side}.jsonl").read_text().splitlines()
        }
        for side in ("formulas", "texts")
    }
    jobs = place / "out" / "sides" / "jobs"
    for job in jobs.iterdir():
        for test, side in (("text_to_formula", "formulas"), ("formula_to_text", "texts"), ("short", "formulas")):
            rankings = read_run(job / f"run-{test}.tsv", task=1).rankings
            assert {hit.doc_id for hits in rankings.values() for hit in hits} <= sides[side]
    encoded = [row for row in results.read(place / "out" / "sides").rows if row["condition"] == "separate"]
    assert encoded[0]["text_to_formula_vectors"] == len(sides["formulas"])


def test_what_cannot_be_asked_is_said_before_anything_runs(place: Path) -> None:
    for settings, message in (
        (["experiment.tasks=[1]"], r"\[1\]: the tests of this collection are formula_to_text, long, .*; write '"),
        (["experiment.tasks=[1]"], r"write 'experiment.tasks=\[formula_to_text,long,.*\]' for all"),
        (["experiment.tasks=[]"], r"experiment.tasks=\[\]: the tests"),
        ([], "track=graph searches all answers"),
        (["data.regime=judged"], "tests with names search all; use full"),
        (["train.positives=related"], r"train.positives=related: no related.jsonl"),
        (["experiment.measures.MRR=XY@3"], r"'XY@3' is not a measure of ir_measures"),
    ):
        name = "cross_retrieval"
        config = configured(name, place, *settings, "experiment.name=refused")
        if not settings:
            OmegaConf.set_struct(config, False)
            config.experiment.conditions.zero_shot = {"track": "graph"}
        with pytest.raises(MathAMRError, match=message):
            run(config, "command")


def test_a_topic_with_the_id_of_another_text_is_refused(tmp_path: Path) -> None:
    """Its vector would be taken for the topic's."""

    def write(name: str, *lines: dict[str, str]) -> None:
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    write("answers.jsonl", {"post_id": "1", "body": "Groups."}, {"post_id": "2", "body": "Rings."})
    write("train.jsonl", {"query": "a", "document": "b", "query_id": "q", "document_id": "d", "group": "g"})
    for test, body in (("one", "Groups."), ("other", "Is it a ring?")):
        write(f"topics-{test}.jsonl", {"post_id": "1", "body": body})
        (tmp_path / f"qrels-{test}.tsv").write_text("1 0 2 2\n")
    corpus = PairCollection(tmp_path)

    def topics(*tests: str) -> list[Topic]:
        return [topic for test in tests for topic in corpus.test(test).topics]

    check_ids(corpus, topics("one", "other"))  # each test has a name space, and documents have another
    assert [topic.post.post_id for topic in topics("one", "other")] == ["query:one/1", "query:other/1"]
    write("topics-one.jsonl", {"post_id": "1", "body": "Groups."}, {"post_id": "1", "body": "Fields."})
    with pytest.raises(CorpusError, match="two topics of collection pairs have the id '1' and different texts"):
        check_ids(corpus, topics("one"))


def test_pairs_of_topics_are_left_out_listed_and_reported(place: Path, tmp_path: Path) -> None:
    """The queries of a test are put into the pairs to learn from, once as they are and once in other words."""
    folder = tmp_path / "answer_retrieval"
    shutil.copytree(place / "answer_retrieval", folder)
    [test] = PairCollection(folder).tests()
    words = " and the ".join(SUBJECTS)
    lines = [json.loads(line) for line in (folder / f"topics-{test}.jsonl").read_text().splitlines()]
    lines[1]["body"] = f"Is there a {words} with these laws?"
    (folder / f"topics-{test}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = json.loads((folder / "train.jsonl").read_text().splitlines()[0])
    with (folder / "train.jsonl").open("a") as file:
        for name, query in (("leak1", lines[0]["body"].upper()), ("leak2", f"{lines[1]['body']} Thanks!")):
            pair = {**document, "query": query, "query_id": name, "group": name}
            file.write(json.dumps(pair) + "\n")
    config = configured("answer_retrieval", tmp_path)
    names = [name for name, one in config.experiment.conditions.items() if one.get("track") != "bm25"]
    tuned = next(name for name in names if config.experiment.conditions[name].get("text", {}).get("epochs") != 0)
    config.experiment.conditions = {tuned: config.experiment.conditions[tuned]}
    config.experiment.baseline, config.experiment.baselines, config.experiment.name = tuned, {}, "leaks"
    assert run(config, "command").failed == 0
    (job,) = (tmp_path / "out" / "leaks" / "jobs").iterdir()
    result = json.loads((job / "result.json").read_text())
    assert (result["pairs_left_out"], result["questions_left_out"]) == (2, 2)
    learned, _ = PairFile(place / "answer_retrieval" / "train.jsonl").hold_out(config.text.validation_fraction)
    assert result["train_pairs"] == len(learned)  # as if the two were not there
    rows = list(csv.DictReader((job / "leaks.tsv").read_text().splitlines(), delimiter="\t"))
    assert [(row["question"], row["reason"]) for row in rows] == [("leak1", "equal"), ("leak2", "near")]
    report = (tmp_path / "out" / "leaks" / "report.md").read_text()
    assert "Leak control: left out, because their questions are topics: 2 training pairs (2 questions)" in report


def test_a_test_of_trained_queries_leaves_no_pair_out(place: Path, tmp_path: Path) -> None:
    corpus, console = PairCollection(place / "knowledge_graph"), Console()
    test = corpus.test("trained")
    asked = TopicSet(1, test.topics, test.judgments, "full", name="trained", learned=test.learned)
    files = PostFiles(corpus, tmp_path, console)
    assert own_pairs(corpus, files, "accepted", 0, [asked], console).left_out == []
    with pytest.raises(ConfigError, match="has no training pairs"):  # else each of them is left out
        own_pairs(corpus, files, "accepted", 0, [replace(asked, learned=False)], console)
