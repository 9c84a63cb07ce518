"""The small real ARQMath beside the repository: every post, formula, topic and judgment is found."""

import csv
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from graphs.corpus.arqmath import ArqMath
from graphs.corpus.packed import same_content
from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.placeholders import extract

ROOT = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "arqmath-mini"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(
        not ROOT.is_dir(), reason="the development data (data/arqmath-mini) is not beside the repository"
    ),
]


@pytest.fixture(scope="module")
def texts() -> dict[str, tuple[Post, PlaceholderText]]:
    found = {}
    for post in ArqMath(ROOT).posts():
        assert isinstance(post, Post)
        found[post.post_id] = (post, extract(post))
    return found


def test_every_post_is_read(texts: dict[str, tuple[Post, PlaceholderText]]) -> None:
    assert Counter(post.kind for post, _ in texts.values()) == {"question": 2331, "answer": 2863}


def test_every_formula_of_the_collection_is_in_its_post(texts: dict[str, tuple[Post, PlaceholderText]]) -> None:
    with (ROOT / "latex_representation_v3" / "1.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    held = {(post_id, formula.formula_id) for post_id, (_, text) in texts.items() for formula in text.formulas}
    assert len(rows) == 50_668
    assert [row["id"] for row in rows if (row["post_id"], row["id"]) not in held] == []


def test_every_formula_stands_in_one_place_and_is_a_word(texts: dict[str, tuple[Post, PlaceholderText]]) -> None:
    for post, text in texts.values():
        joined = " ".join(text.sentences)
        assert [int(i) for i in re.findall(r"FORMULA_(\d+)", joined)] == list(range(len(text.formulas))), post.post_id
        assert not re.search(r"[\w-]FORMULA_\d|FORMULA_\d+[a-zA-Z-]", joined), post.post_id
        assert len(text.formulas) >= (post.title + post.body).count('<span class="math-container"')


def test_topics_pairs_and_judgments_are_complete_and_apart(texts: dict[str, tuple[Post, PlaceholderText]]) -> None:
    corpus = ArqMath(ROOT)
    assert [len(corpus.topics(1, [year])) for year in (2020, 2021, 2022)] == [98, 100, 100]
    assert [len(corpus.topics(2, [year])) for year in (2020, 2021, 2022)] == [85, 100, 100]
    for topic in corpus.topics(2, [2020, 2021, 2022]):
        assert topic.formula_id in {formula.formula_id for formula in extract(topic.post).formulas}
    assert [len(corpus.judgments(1, [year])) for year in (2020, 2021)] == [39_124, 31_788]
    assert [len(corpus.judgments(2, [year])) for year in (2020, 2021)] == [6_074, 8_115]
    pairs = list(corpus.pairs())
    assert len(pairs) == 2863
    assert all(pair.question_id in texts and pair.answer_id in texts for pair in pairs)
    threads = set()
    for files in corpus.formulas().topics:
        assert files.latex is not None
        with files.latex.path.open(encoding="utf-8", newline="") as file:
            threads |= {row["thread_id"] for row in csv.DictReader(file, delimiter="\t")}
    assert threads.isdisjoint(texts), "a topic's own thread is in the collection"


def judged(corpus: ArqMath, task: int, year: int) -> dict[tuple[str, str], int]:
    return {(judgment.topic_id, judgment.doc_id): judgment.grade for judgment in corpus.judgments(task, [year])}


@pytest.mark.parametrize("packing", [[], ["--flat"], ["--gz"]])
def test_the_published_tree_is_the_same_collection(
    texts: dict[str, tuple[Post, PlaceholderText]], tmp_path: Path, packing: list[str]
) -> None:
    script = ROOT.parent.parent / "tools" / "official_tree.py"
    if not script.is_file():
        pytest.skip(f"no {script} to lay out the published tree")
    subprocess.run([sys.executable, str(script), str(ROOT), str(tmp_path), *packing], check=True, capture_output=True)
    part, whole = ArqMath(ROOT), ArqMath(tmp_path)
    assert list(whole.posts()) == [post for post, _ in texts.values()]
    assert list(whole.links()) == list(part.links())
    years = (2020, 2021, 2022)
    for task in (1, 2):
        assert whole.topics(task, years) == part.topics(task, years)
    for task, year in ((1, 2020), (1, 2021), (2, 2021)):
        assert whole.judgments(task, [year]) == part.judgments(task, [year])
    # By formula id: of 12,115 judgments 186 are of formulas in the part, which have 120 different (topic, visual id).
    rekeyed, published = judged(whole, 2, 2020), judged(part, 2, 2020)
    counts = whole.rekeyings()[2020]
    assert (counts.judgments, counts.unknown) == (12_115, 11_929)
    # One has a higher grade by an occurrence outside the part; one the visual-id version does not list.
    differing = {place: (grade, published.get(place)) for place, grade in rekeyed.items()}
    differing = {place: grades for place, grades in differing.items() if grades[0] != grades[1]}
    assert len(rekeyed) == 120
    assert differing == {("B.12", "4748402"): (0, 1), ("B.68", "53241"): (0, None)}
    ours, theirs = whole.formulas(), part.formulas()
    for mine, other in zip((*ours.latex, *ours.slt, *ours.opt), (*theirs.latex, *theirs.slt, *theirs.opt), strict=True):
        assert same_content(mine, other)
    for of_year, as_published in zip(ours.topics, theirs.topics, strict=True):
        assert of_year.prefix == as_published.prefix
        for representation in ("latex", "slt", "opt"):
            assert same_content(getattr(of_year, representation), getattr(as_published, representation))
    assert whole.fingerprints().topics == part.fingerprints().topics
    if packing == ["--flat"]:
        assert whole.fingerprints().graphs == part.fingerprints().graphs
    assert not [note for note in whole._layout.notes.values() if "conflict" in note]
