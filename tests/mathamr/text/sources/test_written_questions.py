"""Questions written one by one: their file, their statements, and a test that no training pair touches."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.errors import ConfigError, CorpusError
from mathamr.text import benchmarks
from mathamr.text.queries import paper_queries
from mathamr.text.sources.papers import Paper, paper_id, read_paper
from mathamr.text.sources.written_questions import WrittenQuestion, found_in, read_questions, text_hash
from mathamr.text.statements import Statement

BOOKS = Path(__file__).resolve().parents[5] / "shared" / "data" / "latex-books"


def papers() -> list[Paper]:
    return [
        Paper(
            f"p{p}",
            "",
            (),
            tuple(Statement("lemma", "lem", f"Title {p} {i}", f"Lemma {i} of paper {p}.", "", "") for i in range(8)),
            {},
        )
        for p in range(9)
    ]


def words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()


def test_the_package_has_a_hundred_questions() -> None:
    questions = read_questions("latex-books")
    assert len(questions) == len({one.question_id for one in questions}) == len({one.text for one in questions}) == 100
    first = [next(iter(one.statements)) for one in questions]
    assert len(set(first)) == 100
    sources = Counter(name.split("-")[0].split("_")[0] for name in first)
    assert sources == {"hott": 20, "lebl": 20, "openlogic": 20, "planetmath": 20, "stacks": 20}


def test_a_statement_is_found_by_its_text_where_its_number_has_changed() -> None:
    given = papers()
    asked = [
        WrittenQuestion("x/1", "Which?", {"p0/3": text_hash("Lemma 4 of paper 0."), "p1/0": "of another text"}),
        WrittenQuestion("x/2", "Who?", {"p7/7": text_hash("LEMMA 7, of paper 7")}),
        WrittenQuestion("x/3", "What?", {"p1/0": "gone", "none/0": "gone"}),
    ]
    assert found_in(asked, given) == [("x/1", "Which?", ["p0/4"]), ("x/2", "Who?", ["p7/7"])]


def test_questions_are_a_test_whose_statements_are_not_trained_on(tmp_path: Path) -> None:
    given = papers()
    texts = {f"{paper.paper_id}/{i}": one.text for paper in given for i, one in enumerate(paper.statements)}
    lines = [{"license": "MIT"}] + [
        {"id": f"x/{i}", "question": f"Question {i}?", "statements": {name: text_hash(text)}}
        for i, (name, text) in enumerate(texts.items())
        if i % 7 == 0
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    written = read_questions(str(path))
    made = benchmarks.of_statements(given, paper_queries, unseen_papers=2, test_share=0.3, written=written)
    test = made.tests["written"]
    assert list(test.queries.values()) == [one.text for one in written]
    assert [one.grade for one in test.judgments] == [benchmarks.OWN] * len(written)
    tested = {texts[one.doc_id] for one in test.judgments}
    assert tested == {texts[name] for one in written for name in one.statements}
    assert not tested & {pair.document for pair in made.train}
    benchmarks.write(made, tmp_path / "made")
    assert PairCollection(tmp_path / "made").tests() == ("regular", "unseen", "written")
    lost = [*written, WrittenQuestion("x/lost", "Lost?", {"p0/0": "gone"})]
    more = benchmarks.of_statements(given, paper_queries, unseen_papers=2, test_share=0.3, written=lost)
    assert more.left_out["written questions without their statement"] == 1
    with pytest.raises(ConfigError, match="test written has no queries"):
        benchmarks.of_statements(given, paper_queries, unseen_papers=2, test_share=0.3, written=lost[-1:])


def test_a_line_that_is_not_a_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    with pytest.raises(CorpusError, match="cannot be read"):
        read_questions(str(path))
    path.write_bytes(b'{"license": "MIT"}\n\xff\n')
    with pytest.raises(CorpusError, match="cannot be read"):
        read_questions(str(path))
    question = json.dumps({"id": "1", "question": "Is it?\u2028Why?", "statements": {"p/1": "0"}}, ensure_ascii=False)
    path.write_text(question + "\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"questions\.jsonl:1: is a question; the first line names the licence"):
        read_questions(str(path))
    path.write_text('{"license": "MIT"}\n' + question + "\n", encoding="utf-8")
    assert [one.text for one in read_questions(str(path))] == ["Is it?\u2028Why?"]
    for line in ("{", "[]", '{"id": 1, "question": "?"}', '{"id": 1, "question": "?", "statements": ["p/1"]}'):
        path.write_text('{"license": "MIT"}\n' + line + "\n")
        with pytest.raises(CorpusError, match=r"questions\.jsonl:2: is not a question"):
            read_questions(str(path))


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not BOOKS.exists(), reason=f"the LaTeX books are not at {BOOKS}")
def test_every_question_has_its_statement_and_copies_no_words_of_it(tmp_path: Path) -> None:
    questions = read_questions("latex-books")
    wanted = {name.rpartition("/")[0] for one in questions for name in one.statements}
    sources = {}
    for path in BOOKS.rglob("*.tex"):
        link = tmp_path / "-".join(path.relative_to(BOOKS).parts)
        if paper_id(link) in wanted:
            link.symlink_to(path)
            sources[paper_id(link)] = read_paper(link)
    found = found_in(questions, sources.values())
    assert [(name, statements) for name, _, statements in found] == [
        (one.question_id, list(one.statements)) for one in questions
    ]
    for _, question, statements in found:
        asked = words(question)
        for name in statements:
            paper, _, number = name.rpartition("/")
            own = " ".join(words(sources[paper].statements[int(number)].text))
            runs = [" ".join(asked[i : i + 6]) for i in range(len(asked) - 5)]
            assert not [run for run in runs if f" {run} " in f" {own} "], name
