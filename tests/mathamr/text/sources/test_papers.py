"""Papers as JSON lines: whatever happens on the way, each is there once; and what is asked about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from graphs.errors import ConfigError, CorpusError, Failure
from mathamr.text.asking.answers import KeptAnswers
from mathamr.text.asking.models import Answer, Conversation, LocalModel, NoAnswer
from mathamr.text.pairs import TextPair
from mathamr.text.queries import model_queries, paper_queries, queries_from_paper, questions_of
from mathamr.text.sources.arxiv import Metadata
from mathamr.text.sources.pair_sources import of_statements
from mathamr.text.sources.papers import Paper, extract, paper_id, read_papers, to_json
from mathamr.text.sources.splits import split_papers
from mathamr.text.statements import Statement
from scripts.text import statement_statistics


def write_papers(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"25{i:02}.0001.tex" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_text(rf"\title{{Paper {i}}}\begin{{lemma}} It is $x={i}$. \end{{lemma}}", encoding="utf-8")
    return paths


def test_a_killed_extraction_goes_on_and_doubles_nothing(tmp_path: Path) -> None:
    paths = write_papers(tmp_path, 7)
    extract(paths, tmp_path / "whole.jsonl")
    whole = (tmp_path / "whole.jsonl").read_bytes()
    out = tmp_path / "papers.jsonl"
    for cut in range(0, len(whole), 61):  # wherever a kill has cut it
        out.write_bytes(whole[:cut])
        assert extract(paths, out).papers == 7
        assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_several_processes_write_the_same(tmp_path: Path) -> None:
    paths = write_papers(tmp_path, 6)
    extract(paths, tmp_path / "one.jsonl")
    extract(paths, tmp_path / "two.jsonl", workers=2)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_papers_that_fail_are_listed_and_tried_again(tmp_path: Path) -> None:
    good, bad = write_papers(tmp_path, 1)[0], tmp_path / "bad.tar.gz"
    bad.write_bytes(b"nothing")
    out = tmp_path / "papers.jsonl"
    summary = extract([bad, good], out, metadata={"2500.0001": Metadata(categories=("math.CO",))})
    assert [(failure.post_id, failure.stage) for failure in summary.failures] == [("bad", "latex")]
    [listed] = (tmp_path / "papers.failures.jsonl").read_text().splitlines()
    assert "bad.tar.gz: cannot be read" in json.loads(listed)["message"]
    assert next(read_papers(out)).categories == ("math.CO",)
    bad.unlink()
    bad.with_suffix("").with_suffix(".tex").write_text("no statement")
    assert extract([tmp_path / "bad.tex", good], out).papers == 2
    assert (tmp_path / "papers.failures.jsonl").read_text() == ""


def test_two_papers_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"several papers have the id 'a'; rename"):
        extract([tmp_path / "x" / "a.tex", tmp_path / "a.tar.gz"], tmp_path / "out.jsonl")


def test_versions_of_a_paper_are_one_paper(tmp_path: Path) -> None:
    for version, number in (("v1", 1), ("v9", 9), ("v10", 10)):
        text = rf"\begin{{lemma}} It is $x={number}$. \end{{lemma}}"
        (tmp_path / f"2501.00001{version}.tex").write_text(text, encoding="utf-8")
    out, metadata = tmp_path / "out.jsonl", {"2501.00001": Metadata("Of $x$", ("math.CO",), "2025-01-01")}
    assert extract(sorted(tmp_path.glob("*.tex")), out, metadata=metadata).papers == 1
    assert extract([tmp_path / "2501.00001v1.tex"], out).papers == 1  # it is there
    [paper] = read_papers(out)
    assert (paper.paper_id, paper.statements[0].text, paper.categories) == ("2501.00001", "It is $x=10$.", ("math.CO",))
    assert (paper.title, paper.date) == ("Of $x$", "2025-01-01")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"paper_id": "a"}',
        '{"paper_id":"a","title":"","categories":[],"dropped":{},"statements":[{"x":1}]}',
        '{"paper_id":"a","title":1,"categories":[],"dropped":{},"statements":[]}',
        '{"paper_id":"a","title":"","categories":[],"dropped":{},"statements":[],"date":2025}',
        '{"paper_id":"a","title":"\\ud800","categories":[],"dropped":{},"statements":[]}',
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_line_that_is_no_paper_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_text(line + "\n", encoding="latin-1")
    with pytest.raises(CorpusError, match=r"papers\.jsonl:1: is not a paper"):
        list(read_papers(path))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2501.00001.tar.gz", "2501.00001"),
        ("math0301001.gz", "math0301001"),
        ("2501.00001v12.tar.gz", "2501.00001"),
        ("2501.00001.tex.gz", "2501.00001"),
        ("arXiv-2501.00001v2.tar.gz", "2501.00001"),
        ("arXiv-2501.00001.tar.gz", "2501.00001"),
        ("arXiv-hep-th9901001v3.tar.gz", "hep-th9901001"),
        ("math.GT_0301001v1.gz", "math.GT_0301001"),
        ("hep-th9901001v3.gz", "hep-th9901001"),
        ("notes-v2.tex", "notes-v2"),
        ("hott", "hott"),
        ("a.b.tex", "a.b"),
        ("my\u00a0own p\udcff.tex", "my_own_p_"),
    ],
)
def test_ids(name: str, expected: str) -> None:
    assert paper_id(Path(name)) == expected


@pytest.mark.parametrize(
    ("answer", "questions"),
    [
        ('{"questions": ["Is $x \\leq y$?"]}', ["Is $x \\leq y$?"]),
        ('{"questions": ["Is $x \\\\leq y$?"]}', ["Is $x \\leq y$?"]),
        ('Sure!\n```json\n{\n "questions": [\n "A \\"b\\"?"\n ]\n}\n```', ['A "b"?']),
        ('{"questions": "One?"}', ["One?"]),
        ('{"questions": [1, "", " a\n b "]}', ["a b"]),
        ('{"question": "no list"}', []),
        ('{"questions": ["unended', []),
        ('{"questions": ' + "[" * 100_000, []),
        ('{"questions": ["half \ud800 a sign", "One?"]}', ["One?"]),
        ('{"questions" ' * 100_000, []),
        (
            'I will answer as {"questions": ["..."]}.\n{"questions": ["Is there a largest prime?"]}',
            ["Is there a largest prime?"],
        ),
        ('{"questions": ["…", " ... "]} No more.', []),
        ('<think>maybe {"questions": ["draft"]} no</think>{"questions": ["Final?"]}', ["Final?"]),
        (f'<think>{"x" * 30_000}</think>{{"questions": ["Final?"]}}', ["Final?"]),
        (r'{"questions": ["What is an \u00e9tale map for $\\alpha$?"]}', [r"What is an étale map for $\alpha$?"]),
        (r'{"questions": ["$\ud835\udd38$ $\underline{x}$ $\upsilon$"]}', [r"$𝔸$ $\underline{x}$ $\upsilon$"]),
        (r'{"questions": ["First line\nsecond\n\nIs $x$?\n"]}', ["First line second Is $x$?"]),
        (
            r'{"questions": ["$\nu_1 \ne \nabla f \neq \norm{x} \ncong \nsub{A} \not\in$"]}',
            [r"$\nu_1 \ne \nabla f \neq \norm{x} \ncong \nsub{A} \not\in$"],
        ),
        (r'{"questions": ["$\\nu$\\nand"]}', [r"$\nu$\nand"]),
        ('{"questions": ' + "[" * 900 + '"..."' + "]" * 900 + "}", []),
    ],
    ids=range(20),
)
def test_questions_are_recovered_from_chatty_answers(answer: str, questions: list[str]) -> None:
    assert questions_of(answer) == questions


def statement(**changes: str) -> Statement:
    return Statement(**{"kind": "lemma", "environment": "lem", "title": "", "text": "It is so.", **changes})  # type: ignore[arg-type]


def test_a_sentence_that_only_points_is_no_query() -> None:
    assert queries_from_paper(statement(before="The following lemma is due to Sylow.")) == []
    assert queries_from_paper(statement(before="Every group of prime order is cyclic.")) == [
        "Every group of prime order is cyclic."
    ]
    assert queries_from_paper(statement(title="3.2", section="Groups")) == ["Groups: lemma"]


class Replies:
    """A model with these answers."""

    name = "replies"

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def answers(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Answer | NoAnswer]]:
        assert len(conversations) == len(self._texts)
        yield from ((i, Answer(text) if text else NoAnswer("empty")) for i, text in enumerate(self._texts))


def test_statements_without_a_query_are_counted(tmp_path: Path) -> None:
    queries, failure = paper_queries([statement(section="Groups"), statement()], ["p/0", "p/1"])
    assert queries == ["Groups: lemma"]
    assert isinstance(failure, Failure)
    assert (failure.post_id, failure.kind) == ("p/1", "no words for a query")
    model = Replies("I cannot.", '{"questions": ["Why?"]}', "")
    asked = [statement(text=f"It is {n}.") for n in range(3)]
    first, second, third = model_queries(model, KeptAnswers(tmp_path / "a.jsonl"), asked, ["p/0", "p/1", "p/2"])
    assert isinstance(first, Failure)
    assert isinstance(third, Failure)
    assert (first.kind, second, third.kind) == ("no question in the answer", ["Why?"], "no answer")
    assert first.message == f"I cannot. (kept in {tmp_path}/a.jsonl; remove its line there to ask again)"


def test_a_paper_without_statements_of_a_part_asks_nothing(tmp_path: Path) -> None:
    """A split leaves papers without statements in a part; an empty list was an IndexError in the model."""
    whole = Paper("p", "", (), (statement(),), {})
    empty = Paper("e", "", (), (), {})
    queries = partial(model_queries, Replies('{"questions": ["Why?"]}'), KeptAnswers(tmp_path / "a.jsonl"))
    [pair] = of_statements([empty, whole, empty], queries)
    assert isinstance(pair, TextPair)
    assert (pair.query, pair.query_id, pair.group) == ("Why?", "p/0/0", "p")
    assert list(of_statements([empty], queries)) == []
    split = split_papers({"p": 1, "e": 0, "u": 3}, unseen_papers=1, test_share=0.5)
    for part in ("train", "regular", "unseen"):
        list(of_statements([empty], queries, split_by=split, part=part))


def test_a_model_that_is_not_there_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = LocalModel(str(tmp_path / "no-model"))
    with pytest.raises(ConfigError, match="give the folder instead of the name"):
        model_queries(model, KeptAnswers(tmp_path / "a.jsonl"), [statement()], ["p/0"])
    assert list(model.answers([])) == []


def test_papers_are_split_as_in_the_thesis() -> None:
    sizes = {f"p{i:03}": 2 + i % 30 for i in range(300)}
    split = split_papers(sizes, unseen_papers=5, seed=3)
    tested = [(paper, number) for paper, numbers in split.regular.items() for number in numbers]
    assert len(set(tested)) == len(tested)
    assert len(tested) + sum(sizes[paper] for paper in split.unseen) == int(0.1 * sum(sizes.values()))
    assert all(sizes[paper] >= 4 and paper not in split.unseen for paper, _ in tested)
    assert all(number < sizes[paper] for paper, number in tested)
    assert all(abs(sizes[paper] - 14) <= 1 for paper in split.unseen)
    assert {split.part(*tested[0]), split.part(split.unseen[0], 0), split.part("p000", 0)} == {
        "regular",
        "unseen",
        "train",
    }
    assert split_papers(sizes, unseen_papers=5, seed=4) != split
    with pytest.raises(ConfigError, match="use fewer"):
        split_papers(sizes, unseen_papers=200)


def test_as_many_papers_are_unseen_as_the_share_of_tests_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"p": 5, "q": 14, "r": 30}
    unseen = [split_papers(sizes, unseen_papers=None, test_share=share).unseen for share in (0.1, 0.3, 0.4, 1.0)]
    assert unseen == [(), ("q",), ("p", "q"), ("p", "q", "r")]
    statement = Statement("lemma", "lem", "", "It is so.")
    (tmp_path / "papers.jsonl").write_text(to_json(Paper("p", "", (), (statement,) * 5, {})) + "\n")
    assert statement_statistics.main(["--papers", str(tmp_path / "papers.jsonl")]) == 0
    assert "| train | 5 | 100.0% |" in capsys.readouterr().out
