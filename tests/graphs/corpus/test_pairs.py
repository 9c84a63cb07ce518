"""Training pairs: accepted answers, answers with votes, answers of duplicates."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from graphs.corpus.arqmath import ArqMath
from graphs.corpus.corpus import open_corpus
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.pairs import POSITIVES, select_pairs, training_pairs
from graphs.corpus.post import IdPairs, Pair, Post
from graphs.errors import ConfigError

ROW = '<row Id="{}" PostTypeId="{}" {} Body="" />'
QUESTIONS = {"1": "2", "5": "6", "7": None}  # with accepted answers
ANSWERS = {"2": ("1", 0), "3": ("1", 5), "4": ("1", -2), "6": ("5", 1), "8": ("7", 3)}


@pytest.fixture
def arqmath(tmp_path: Path) -> ArqMath:
    rows = [
        ROW.format(question, 1, "" if accepted is None else f'AcceptedAnswerId="{accepted}"')
        for question, accepted in QUESTIONS.items()
    ]
    rows += [ROW.format(a, 2, f'ParentId="{question}" Score="{score}"') for a, (question, score) in ANSWERS.items()]
    (tmp_path / "Posts.V1.3.xml").write_text(f"<posts>{''.join(rows)}</posts>")
    # 5 and 7 are duplicates of 1; 3 is only mentioned; 99 is not in the collection.
    links = [(5, 1, 3), (7, 1, 3), (5, 7, 1), (99, 1, 3)]
    rows = [
        f'<row Id="{i}" PostId="{a}" RelatedPostId="{b}" LinkTypeId="{kind}" />' for i, (a, b, kind) in enumerate(links)
    ]
    (tmp_path / "PostLinks.V1.3.xml").write_text(f"<postlinks>{''.join(rows)}</postlinks>")
    return ArqMath(tmp_path)


def pairs_of(corpus: ArqMath, positives: str, least_score: int = 1) -> list[str]:
    found = training_pairs(corpus, positives, least_score)
    assert len(found) == len(set(found))
    return [f"{pair.question_id}-{pair.answer_id}" for pair in found]


def test_what_counts_as_an_answer(arqmath: ArqMath) -> None:
    accepted = ["1-2", "5-6"]
    assert pairs_of(arqmath, "accepted") == accepted
    assert pairs_of(arqmath, "answers") == [*accepted, "1-3", "7-8"]
    assert pairs_of(arqmath, "answers", least_score=4) == [*accepted, "1-3"]
    assert pairs_of(arqmath, "duplicates") == [*accepted, "1-6", "5-2", "7-2"]
    assert pairs_of(arqmath, "all") == [*accepted, "1-3", "7-8", "1-6", "1-8", "5-2", "5-3", "7-2", "7-3"]


@pytest.mark.parametrize("positives", ["answers", "duplicates", "all"])
def test_pairs_are_held_in_little_memory(positives: str) -> None:
    posts = [Post(f"{1000 + i}", "question") for i in range(1000)]
    posts += [Post(f"{5000 + i}", "answer", parent_id=f"{1000 + i // 2}", score=1) for i in range(2000)]
    accepted = [Pair(f"{1000 + i}", f"{5000 + 2 * i}") for i in range(1000)]
    tracemalloc.start()
    found = select_pairs(posts, accepted, [("1000", "1001")], positives, 1)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50 * len(found)  # bytes


def test_no_pair_is_there_twice_and_none_is_held_in_a_set(tmp_path: Path) -> None:
    lines = [json.dumps({"post_id": f"q{i}", "kind": "question"}) for i in range(2000)]
    lines += [json.dumps({"post_id": f"a{i}", "kind": "answer", "parent_id": f"q{i}"}) for i in range(2000)]
    (tmp_path / "posts.jsonl").write_text("\n".join(lines))
    corpus = JsonLines(tmp_path)
    training_pairs(corpus, "accepted", 1)  # imports what it needs
    peaks = []
    for read in (lambda: IdPairs(corpus.pairs()), lambda: training_pairs(corpus, "accepted", 1)):
        tracemalloc.start()
        once = read()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20 * len(once)  # bytes
    (tmp_path / "posts.jsonl").write_text("\n".join(lines + lines))
    assert len(list(corpus.pairs())) == 2 * len(once)
    assert training_pairs(corpus, "accepted", 1) == once


def test_a_collection_without_links_has_no_duplicates(tmp_path: Path) -> None:
    posts = [{"post_id": "q", "kind": "question"}, {"post_id": "a", "kind": "answer", "parent_id": "q", "score": 2}]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    corpus = open_corpus("jsonl", tmp_path)
    assert training_pairs(corpus, "answers", 1) == [Pair("q", "a")]
    for positives in POSITIVES[2:]:
        without = "related pairs" if positives == "related" else "links"
        with pytest.raises(ConfigError, match=f"train.positives={positives}: collection 'jsonl' has no {without}"):
            training_pairs(corpus, positives, 1)


def test_topics_are_in_no_pair(arqmath: ArqMath) -> None:
    known = {post.post_id for post in arqmath.posts() if isinstance(post, Post)}
    assert {post for pair in training_pairs(arqmath, "all", 0) for post in (pair.question_id, pair.answer_id)} <= known
