"""A knowledge graph by a language model on a local server: kept, resumed, repaired, and safe from hostile answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mathamr.text.asking.graphs import RELATIONS, Extracted, merged, passages_of, question_for, read_answer
from mathamr.text.knowledge_graph import Edge, read_graph
from mathamr.text.sources.papers import Paper, to_json
from scripts.text import knowledge_graph
from tests.mathamr.text.asking.test_asking import Reply, server

ANSWER = {
    "concepts": [
        {"name": "Sylow subgroups", "description": "Subgroups of largest\n prime power order."},
        {"name": "p-group"},
    ],
    "edges": [
        {"source": "Sylow subgroup", "relation": "Is instance of", "target": "p-group"},
        {"source": "p-group", "relation": "likes", "target": "Sylow subgroups"},
        {"source": "p-group", "relation": "uses", "target": "of no answer"},
    ],
}


def reply(text: str) -> Reply:
    return 200, {}, json.dumps({"choices": [{"message": {"content": text}}]})


def sources(folder: Path, count: int) -> Path:
    folder.mkdir()
    for i in range(count):
        (folder / f"p{i}.tex").write_text(rf"\title{{Paper {i}}} It is about groups of order ${i}$.", encoding="utf-8")
    return folder


def test_a_server_makes_a_graph_and_answers_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = sources(tmp_path / "sources", 4), tmp_path / "graph.json"
    (folder / "empty.tar.gz").write_bytes(b"no archive")
    whole = json.dumps(ANSWER)
    command = ["--sources", str(folder), "--out", str(out), "--model", "m"]
    assert knowledge_graph.main([*command, "--estimate", "--prices", "1", "1"]) == 0
    assert capsys.readouterr().out.startswith("4 questions to ask: about")
    replies = [reply(f"Of course:\n```json\n{whole}\n```"), reply(whole[:150]), (500, {}, "oh"), reply("I cannot.")]
    with server(*replies, reply('{"concepts": ["P-groups"]}')) as (url, requests):
        assert knowledge_graph.main([*command, "--server", url]) == 0
        assert len(requests) == 5  # one answer came at the second attempt
        assert {request["content"]["max_tokens"] for request in requests} == {1_500}
        said = capsys.readouterr().err
        assert "concepts: no concept in the answer" in said
        assert "latex: CorpusError" in said
        made = out.read_bytes()
        assert knowledge_graph.main([*command, "--server", url]) == 0
        assert len(requests) == 5
    assert "2 concepts of 3 papers, 2 edges" in capsys.readouterr().out
    assert out.read_bytes() == made
    graph = read_graph(out)
    assert {concept.name.casefold() for concept in graph.concepts} <= {"sylow subgroups", "p-group", "p-groups"}
    assert sorted(edge.relation for edge in graph.edges) == ["is_instance_of", "related_to"]
    assert len((tmp_path / "graph.answers.jsonl").read_text().splitlines()) == 4


def test_a_graph_without_concepts_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = sources(tmp_path / "sources", 2), tmp_path / "graph.json"
    (tmp_path / "papers.jsonl").write_text(to_json(Paper("p", "", (), (), {})) + "\n")
    asking = ["--sources", str(folder), "--model", "m", "--server"]
    reading = ["--papers", str(tmp_path / "papers.jsonl")]
    with server(reply("I cannot."), reply("I cannot.")) as (url, _):
        for words, message in (
            ([*asking, url], "no concept; the first failure is of p0: I cannot."),
            ([*asking, url, "--least-papers", "3"], "no concept; the first failure is of p0"),
            (reading, "no concept occurs in 2 papers or more; use more papers, or --least-papers 1"),
            (
                [*reading, "--least-papers", "1"],
                "no concept occurs in 1 paper or more; use more papers, or papers with",
            ),
        ):
            assert knowledge_graph.main([*words, "--out", str(out)]) == 2
            assert message in capsys.readouterr().err
    assert not out.exists()


def test_options_that_contradict_each_other_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "graph.json")]
    for words, message in (
        (["--papers", "papers.jsonl", "--model", "m"], "a model reads --sources"),
        (["--sources", str(tmp_path)], "give --model with --sources"),
        (["--sources", str(tmp_path), "--server", "http://localhost"], "--server has no effect without --model"),
    ):
        assert knowledge_graph.main([*words, *out]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        '{"concepts": ' + "[" * 100_000,
        '{"concepts": ' + '{"a":' * 10_000,
        '{"concepts" ' * 50_000,
        '{"concepts": {"name": "x"}, "edges": "all"}',
        '{"concepts": [7, null, [], {}, {"name": 7}, {"name": ["ring"]}, {"name": "half \ud800"}]}',
        json.dumps({"concepts": [{"name": "x" * 81}], "edges": [{"source": "x" * 81, "target": "y"}]}),
    ],
    ids=range(8),
)
def test_a_hostile_answer_names_nothing(answer: str) -> None:
    assert read_answer(answer) == Extracted({}, ())


def test_an_answer_is_bounded_and_names_no_papers() -> None:
    many = {
        "concepts": [{"name": f"concept {i}", "description": "d" * 501, "papers": ["other"]} for i in range(1_000)],
        "edges": [{"source": f"concept {i}", "target": f"concept {i + 1}", "relation": []} for i in range(1_000)],
    }
    found = read_answer(json.dumps(many))
    assert len(found.concepts) <= 50
    assert set(found.concepts.values()) == {""}
    graph = merged({"own": found, "2": Extracted({"Concept 3": "Third."}, (Edge("concept 3", "concept 3", "uses"),))})
    assert {paper for concept in graph.concepts for paper in concept.papers} == {"own", "2"}
    assert {edge.relation for edge in graph.edges} <= {RELATIONS[0]}
    assert next(one for one in graph.concepts if one.name == "concept 3").description == "Third."
    both = merged({"own": found, "2": Extracted({"Concept 3": ""}, ())}, least_papers=2)
    assert [one.name for one in both.concepts] == ["concept 3"]


def test_the_first_and_the_last_passages_are_read() -> None:
    chunks = [f"passage {i}" for i in range(9)]
    assert passages_of(chunks) == ["passage 0", "passage 1", "passage 7", "passage 8"]
    assert passages_of(chunks[:3]) == chunks[:3]
    asked = question_for("p", ["It is {braced}."]).conversation[-1]["content"]
    assert asked.endswith("It is {braced}.")
    assert '{"concepts": [{"name": "..."' in asked
