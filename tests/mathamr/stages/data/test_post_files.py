"""A collection is read once where all texts are wanted, twice where some are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from graphs.corpus.arqmath import ArqMath
from graphs.corpus.arqmath import collection as arqmath
from graphs.corpus.corpus import open_corpus
from graphs.corpus.leaks import pairs_apart
from graphs.corpus.mathdocs.collection import MathDocs
from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.corpus.post import Pair, Post
from graphs.errors import CorpusError, Failure
from graphs.stores.collection import Collection
from graphs.stores.posts import PostTexts
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from tests.graphs.corpus.small_forms import write_form
from tests.graphs.parrot import build


def some_posts() -> list[Post | Failure]:
    """Return questions and answers with formulas, in HTML."""
    posts: list[Post | Failure] = []
    for n in range(300):
        formula = f'<span class="math-container" id="{n}">$x_{{{n}}}^2 < \\frac{{1}}{{y}}$</span>'
        posts.append(
            Post(f"q{n}", "question", f"When is {formula} odd?", f"<p>I ask {n}.</p>", tags=("odd", f"t{n % 7}"))
        )
        posts.append(Post(f"a{n}", "answer", body=f"<p>If {formula} é 𝔽.</p>", parent_id=f"q{n}", score=n - 5))
    return posts


class Counted(MathDocs):
    """A collection of these posts; counts the passes over them."""

    def __init__(self) -> None:
        self.passes = 0

    def posts(self) -> Iterator[Post | Failure]:
        self.passes += 1
        return iter(some_posts())


def ids(posts: Iterator[Post | Failure]) -> list[str]:
    return [post.post_id for post in posts]


def test_one_pass_for_everything(tmp_path: Path) -> None:
    corpus = Counted()
    files = PostFiles(corpus, tmp_path, Console())
    files.read(texts=True)
    everything = some_posts()
    assert list(files.posts()) == everything
    assert ids(files.outlines()) == ids(iter(everything))
    wanted = frozenset(ids(iter(everything))[5:300:7])
    assert list(files.posts(wanted)) == [post for post in everything if post.post_id in wanted]
    assert list(PostFiles(corpus, tmp_path, Console()).every_post()) == everything  # as another process does
    assert corpus.passes == 1


def test_a_second_pass_for_the_texts_of_some_posts(tmp_path: Path) -> None:
    corpus = Counted()
    files = PostFiles(corpus, tmp_path, Console())
    first, second, third = list(files.outlines())[:3]
    assert corpus.passes == 1
    some = frozenset({first.post_id, third.post_id, "elsewhere"})
    assert ids(files.posts(some)) == [first.post_id, third.post_id]
    assert files.texts(some).exists()
    assert corpus.passes == 2
    assert set(files.text_ids()) == {first.post_id, third.post_id}
    assert not files.has_all_texts
    assert ids(files.posts(frozenset({second.post_id}))) == [second.post_id]  # more are wanted later
    assert corpus.passes == 3
    assert len(list(files.posts())) == len(some_posts())
    assert corpus.passes == 4
    assert files.has_all_texts
    assert list(PostFiles(corpus, tmp_path / "new", Console()).posts(frozenset({"elsewhere"}))) == []


def test_a_collection_that_breaks_off_leaves_no_files(tmp_path: Path) -> None:
    class Broken(Counted):
        broken = True

        def posts(self) -> Iterator[Post | Failure]:
            yield from super().posts()
            if self.broken:
                raise CorpusError("the file breaks off")

    corpus = Broken()
    files = PostFiles(corpus, tmp_path, Console())
    for texts in (True, False):
        with pytest.raises(CorpusError, match="breaks off"):
            files.read(texts=texts)
    assert not list(files.text_ids())
    corpus.broken = False
    assert list(files.posts()) == some_posts()
    assert corpus.passes == 3


def arqmath_folder(root: Path) -> Path:
    """Three posts; the second has a formula whose id got lost, and one that no TSV lists."""
    span = '<span class="math-container"{}>${}$</span>'
    named = span.format(' id="10"', "x")
    lost = f"So {span.format('', 'y')} and {span.format('', 'u')}."
    posts = [
        {"Id": "1", "PostTypeId": "1", "Title": f"Is {named} odd?", "Tags": "<a>"},
        {"Id": "2", "PostTypeId": "2", "ParentId": "1", "Body": lost, "Score": "4"},
        {"Id": "3", "PostTypeId": "2", "ParentId": "1", "Body": "No."},
    ]
    lines = ("<row " + " ".join(f"{key}={quoteattr(value)}" for key, value in post.items()) + "/>" for post in posts)
    (root / "Posts.xml").write_text("<posts>\n" + "\n".join(lines) + "\n</posts>")
    (root / "latex_representation_v3").mkdir()
    header = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
    (root / "latex_representation_v3" / "1.tsv").write_text(
        f"{header}10\t1\t1\ttitle\t\t5\t5\t\tx\n11\t2\t1\tanswer\t\t6\t6\t\ty\n"
    )
    return root


def test_ids_that_got_lost_cost_no_pass_over_the_posts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = ArqMath(arqmath_folder(tmp_path))
    expected = list(corpus.posts())
    assert 'id="11"' in expected[1].body  # type: ignore[union-attr]
    passes = []
    real = arqmath.surviving_rows
    monkeypatch.setattr(arqmath, "surviving_rows", lambda file: passes.append(file) or real(file))
    files = PostFiles(ArqMath(tmp_path), tmp_path / "all", Console())
    assert list(files.posts()) == expected
    assert len(passes) == 1
    pairs = list(corpus.pairs())
    passes.clear()
    assert list(corpus.pairs_of(files.outlines)) == pairs
    assert not passes
    some = PostFiles(ArqMath(tmp_path), tmp_path / "some", Console())
    assert list(some.posts(frozenset({"2"}))) == expected[1:2]
    assert len(passes) == 2
    with PostTexts(some.texts(frozenset({"2"}))) as texts:
        assert [formula.formula_id for formula in texts.get(["2"])["2"].text.formulas] == ["11", "2:1"]


def test_broken_posts_are_counted_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, folder = write_form("jsonl", tmp_path), tmp_path / "kept"
    with (root / "posts.jsonl").open("a") as file:
        file.write('{"post_id": "a9", "kind": "answr"}\n{"body\n')
    files = PostFiles(open_corpus("jsonl", root), folder, Console())
    files.read(texts=True)
    listed = folder / "posts.failures.tsv"
    assert f"left out: 2 posts that cannot be read, the first: {root}/posts.jsonl:4: kind 'answr'" in (
        said := capsys.readouterr().err
    )
    assert str(listed) in said
    rows = [line.split("\t") for line in listed.read_text().splitlines()]
    assert [row[1:3] for row in rows] == [["stage", "kind"], ["read", "bad_post"], ["read", "bad_json"]]
    assert re.fullmatch(r"a9 unread [0-9a-f]{16}", rows[1][0])
    assert re.fullmatch(r"unread [0-9a-f]{16}", rows[2][0])
    assert len(list(files.posts())) == 5
    assert capsys.readouterr().err == ""  # once
    PostFiles(open_corpus("jsonl", root), folder, Console()).read(texts=True)  # a later run, from what is kept
    assert "2 posts that cannot be read" in capsys.readouterr().err


def test_a_failing_post_has_one_id_in_all_lists(tmp_path: Path) -> None:
    """A graph that is wanted later is made, although a later post of its id failed before."""
    root, folder = write_form("jsonl", tmp_path), tmp_path / "kept"
    with (root / "posts.jsonl").open("a") as file:
        file.write('{"post_id": "a1", "kind": "answer", "body": "No."}\n{"post_id": "a9", "kind": "answr"}\n{"body\n')
    files = PostFiles(open_corpus("jsonl", root), folder, Console())
    for wanted in ("q1", "a1"):
        build(folder / "collection.db", files.posts(frozenset({wanted})))
    with Collection(folder / "collection.db") as graphs:
        assert graphs.post_ids() == ["a1", "q1"]
        failures = {(failure.post_id, failure.message) for failure in graphs.failures()}
    rows = [line.split("\t") for line in (folder / "posts.failures.tsv").read_text().splitlines()[1:]]
    assert {(row[0], row[3]) for row in rows} == failures
    assert [row[0].partition(" ")[0] for row in rows] == ["a1", "a9", "unread"]
    assert "a1 #2" in {row[0] for row in rows}


def test_a_broken_record_takes_no_id_from_a_post(tmp_path: Path) -> None:
    """Nor do the posts depend on which files are kept."""
    root, folder = write_form("jsonl", tmp_path), tmp_path / "kept"
    lines = [
        '{"post_id": "a9", "kind": "answr"}',
        '{"post_id": "a9", "kind": "answer", "body": "Whole."}',
        '{"post_id": "a9", "kind": "answer", "body": "Again."}',
    ]
    with (root / "posts.jsonl").open("a") as file:
        file.write("\n".join(lines) + "\n")
    files = PostFiles(open_corpus("jsonl", root), folder, Console())
    before = list(files.every_post())
    assert [post.body for post in before if isinstance(post, Post)][3:] == ["Whole."]
    files.read(texts=True)
    assert list(files.every_post()) == before
    build(folder / "collection.db", files.posts())
    with Collection(folder / "collection.db") as graphs:
        assert graphs.post_ids() == ["a1", "a2", "a9", "q1"]


@pytest.mark.parametrize("question_id", ["a group", "a\xa0group", "Cauchy\xadfolge", "odd\nor even", "q\u200b2", ""])
def test_a_topic_is_left_out_of_training_whatever_the_id_of_its_question(question_id: str, tmp_path: Path) -> None:
    root = write_form("pairs", tmp_path)
    pair = {"query": "Is $a+b$ odd?", "document": "Its.", "query_id": question_id, "document_id": "t2"}
    (root / "train.jsonl").write_text(json.dumps(pair) + "\n")
    (root / "topics-regular.jsonl").write_text('{"post_id": "q1", "body": "is $a+b$ odd"}\n')
    corpus = PairCollection(root)
    with PostFiles(corpus, tmp_path / "kept", Console()).headers() as headers:
        apart = pairs_apart(corpus.pairs(), headers.with_marks(), corpus.test("regular").topics)
    assert (list(apart.kept), list(apart.left_out)) == ([], [Pair(question_id, "t2")])
