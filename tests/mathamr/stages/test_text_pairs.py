"""Pairs of a source in a file, and the encoder that is made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from graphs.corpus.arqmath import PostLink
from graphs.corpus.jsonl import JsonLines
from graphs.errors import CorpusError, Failure
from mathamr.stages.console import Console
from mathamr.stages.learning.text_encoder import encoder_for
from mathamr.stages.learning.text_pairs import AnswerPairs, BenchmarkChoice, ConceptPairs, write_pair_file
from mathamr.text.knowledge_graph import Concept, KnowledgeGraph, to_json
from mathamr.text.pairs import write_pairs
from tests.mathamr.text.tiny_pairs import pairs_of, settings


class Unanswered:
    """A source of which no statement gets a query."""

    def pairs(self, console: Console) -> Iterator[Failure]:
        yield Failure("p1", "queries", "no answer", "http://127.0.0.1:1 gave no answer in 5 attempts")


def test_pairs_stay_where_no_statement_gets_a_query(tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.jsonl", pairs_of(2))
    with pytest.raises(CorpusError, match=r"no pair; the first failure is of p1: http.* gave no answer"):
        write_pair_file(cast(Any, Unanswered()), file.path, Console())
    assert list(file) == pairs_of(2)


def test_duplicates_are_one_group(tmp_path: Path) -> None:
    class Linked(JsonLines):
        def links(self) -> list[PostLink]:
            return [PostLink("q1", "q0", 3)]

    posts = [{"post_id": f"q{i}", "kind": "question", "title": "Why?", "body": f"I ask {i}."} for i in range(3)]
    posts += [
        {"post_id": f"a{i}", "kind": "answer", "parent_id": f"q{i}", "body": f"Since {i}.", "score": 2}
        for i in range(3)
    ]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    for positives, groups in (("duplicates", 2), ("answers", 3)):
        pairs = list(AnswerPairs(Linked(tmp_path), positives).pairs(Console()))
        group = {pair.query_id: pair.group for pair in pairs}
        assert group.keys() == {"q0", "q1", "q2"}
        assert len(set(group.values())) == groups
        assert (group["q0"] == group["q1"]) == (positives == "duplicates")


def test_concepts_without_papers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    for concepts, message in (
        ((), "graph.json: has no concept; make it with more papers, or --least-papers 1"),
        (
            (Concept("Ring", "", ("p1",)),),
            r"none of its papers is in .*; give the folders .* p1\.tar\.gz, p1\.tex or",
        ),
    ):
        path.write_text(to_json(KnowledgeGraph(concepts, ())))
        source = ConceptPairs(path, [tmp_path])
        with pytest.raises(CorpusError, match=message):
            list(source.pairs(Console()))
        with pytest.raises(CorpusError, match=message):
            source.benchmark(BenchmarkChoice(0.4), Console())


def test_an_encoder_is_made_anew_and_opened_as_the_settings_say(tmp_path: Path) -> None:
    config = settings(encoder="tiny", query_prompt="query: ")
    few, more = (write_pairs(tmp_path / f"{number}.jsonl", pairs_of(number)) for number in (2, 40))
    first, again = (encoder_for(config, pairs, tmp_path) for pairs in (few, more))
    anew = encoder_for(config, more, tmp_path, anew=True)
    words, words_again, words_anew = (one.model.tokenizer.get_vocab() for one in (first, again, anew))
    assert words == words_again != words_anew
    assert first.prompt("query") == "query: "
