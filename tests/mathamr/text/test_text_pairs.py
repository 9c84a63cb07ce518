"""Pairs on disk, their batches, and their hard negatives."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from graphs.corpus.post import Pair, Post
from graphs.errors import ConfigError, CorpusError, Failure, TrainingError
from graphs.stores import posts
from mathamr.negatives.text import Mining, Shortlist
from mathamr.text.finetuning import ValidationPairs
from mathamr.text.knowledge_graph import Concept, Edge, KnowledgeGraph
from mathamr.text.pairs import PairFile, TextPair, sampled, write_pairs
from mathamr.text.sources import pair_sources
from mathamr.text.sources.papers import Paper
from mathamr.text.sources.splits import Split
from mathamr.text.statements import Statement
from mathamr.text.training.batches import KnownPairs, draw_negatives, no_duplicates
from tests.mathamr.text.tiny_pairs import file_of, opened, pairs_of, settings


def test_pairs_come_back_as_they_were_written(tmp_path: Path) -> None:
    pairs = [*pairs_of(5), TextPair("Möbius\n\u2028", 'a "b" \\frac', "é", "x", "g")]
    file = write_pairs(tmp_path / "pairs.jsonl", pairs)
    assert [file[i] for i in range(len(file))] == list(file) == pairs
    assert file.hash == PairFile(file.path).hash != write_pairs(tmp_path / "other.jsonl", pairs[:-1]).hash


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no json", ":1: is not a pair .Invalid JSON: expected .* in column 2"),
        ('{"query": "a"}', "is not a pair .field 'document' is missing.; a line is"),
        (
            '{"query": 1, "document": "b", "query_id": "c", "document_id": "d", "group": "e"}',
            "field 'query' must be a valid string",
        ),
        ("[]", "is not a pair .must be an object"),
        ("[" * 100_000, "is not a pair .Invalid JSON: recursion limit exceeded"),
        (
            '{"query": "\\ud800", "document": "b", "query_id": "c", "document_id": "d", "group": "e"}',
            "is not a pair .Invalid JSON: unexpected end of hex escape",
        ),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "pairs.jsonl").write_text(line + "\n")
    with pytest.raises(CorpusError, match=message):
        PairFile(tmp_path / "pairs.jsonl")


def test_a_byte_order_mark_is_no_part_of_the_first_pair(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.jsonl", pairs_of(2)).path
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert list(PairFile(path)) == pairs_of(2)


def test_groups_are_held_out_as_a_whole_and_the_same_wherever_they_stand(tmp_path: Path) -> None:
    pairs = pairs_of(60)
    file = write_pairs(tmp_path / "a.jsonl", pairs)
    train, held_out = file.hold_out(0.2)
    groups = {pairs[i].group for i in held_out}
    assert len(groups) == 6
    assert not groups & {pairs[i].group for i in train}
    turned = write_pairs(tmp_path / "b.jsonl", pairs[::-1])
    assert {turned[i].group for i in turned.hold_out(0.2)[1]} == groups
    with pytest.raises(TrainingError, match=r"c.jsonl: 1 group \(.* one side stays empty"):
        write_pairs(tmp_path / "c.jsonl", pairs[:2]).hold_out(0.2)


def test_no_batch_has_a_text_or_an_id_twice(tmp_path: Path) -> None:
    made = []
    for i in range(200):  # queries with several documents, documents with several queries, texts under several ids
        made.append(TextPair(f"query {i % 50}", f"document {i % 70}", f"q{i % 90}", f"d{i}", "g"))
    file = write_pairs(tmp_path / "pairs.jsonl", made)
    rows = np.arange(20, 200)
    seen = []
    for epoch in range(3):
        batches = no_duplicates(file.keys, rows, batch_size=16, seed=1, epoch=epoch)
        assert batches.shape[1] == 16
        assert len(batches) >= 8
        for batch in batches:
            for column in range(4):
                assert len(np.unique(file.keys[batch, column])) == 16
        assert len(np.unique(batches)) == batches.size  # each pair once
        assert set(batches.flat) <= set(rows.tolist())
        seen.append(batches)
    again = no_duplicates(file.keys, rows, batch_size=16, seed=1, epoch=0)
    np.testing.assert_array_equal(seen[0], again)
    assert not np.array_equal(seen[0][:8], seen[1][:8])
    assert not np.array_equal(no_duplicates(file.keys, rows, batch_size=16, seed=2, epoch=0)[:8], again[:8])
    assert no_duplicates(file.keys, rows, batch_size=91, seed=1, epoch=0).shape == (0, 91)  # there are 50 queries


def test_negatives_are_drawn_from_the_pool_or_else_from_other_groups() -> None:
    pool = np.array([[1, 2, 3], [0, -1, -1], [-1, -1, -1], [-1, -1, -1]])
    groups = np.array([7, 8, 8, 9], np.uint64)
    known = KnownPairs(np.arange(16, dtype=np.uint64).reshape(4, 4), groups)
    drawn = np.array([draw_negatives(pool, row, groups, np.arange(4), 2, 5, known) for row in range(3)])
    assert drawn.shape == (3, 2)
    assert set(drawn[0]) < {1, 2, 3}
    assert drawn[1, 0] == 0
    assert set(drawn[1:, 1]) | {drawn[2, 0]} <= {0, 3}  # not 1 and 2, of the same group
    assert drawn[2].tolist() == draw_negatives(pool, 2, groups, np.arange(4), 2, 5, known)


def test_known_answers_are_those_of_any_pair(tmp_path: Path) -> None:
    made = [
        TextPair(f"query {i % 7}", f"document {i % 11}", f"q{i % 5}", f"d{i % 13}", f"g{i % 13}") for i in range(40)
    ]
    file = write_pairs(tmp_path / "pairs.jsonl", made)
    queries, documents = np.array([3, 0, 17]), np.arange(25)
    texts, ids = {(pair.query, pair.document) for pair in made}, {(pair.query_id, pair.document_id) for pair in made}
    groups = {(name, pair.group) for pair in made for name in (pair.query, pair.query_id)}
    expected = [
        [
            (made[q].query, made[d].document) in texts
            or (made[q].query_id, made[d].document_id) in ids
            or bool({(made[q].query, made[d].group), (made[q].query_id, made[d].group)} & groups)
            for d in documents
        ]
        for q in queries
    ]
    assert KnownPairs(file.keys, file.groups).mask(queries, documents).tolist() == expected
    assert any(not all(row) for row in expected)


def test_an_answer_that_only_a_pair_outside_the_sample_has_is_known(tmp_path: Path) -> None:
    """Both queries of an answer are in the sample, by other pairs: it is no negative of the one that lost it."""
    made = [
        TextPair(f"query {i}", f"document {j}", f"q{i}", f"d{j}", f"g{j}") for i in range(12) for j in (i, i + 1, i + 2)
    ]
    source = write_pairs(tmp_path / "all.jsonl", made)
    pairs = list(sampled([source], 20, {Pair("q0", "d0")}, str.upper))
    learned = [pair for pair in pairs if pair.learned]
    assert len(learned) == 20 < len(pairs)
    assert learned[0].query.startswith("QUERY")
    queries, documents = ({getattr(pair, name) for pair in learned} for name in ("query_id", "document_id"))
    assert {(pair.query_id, pair.document_id) for pair in pairs} == {
        (pair.query_id, pair.document_id)
        for pair in made[1:]
        if pair.query_id in queries and pair.document_id in documents
    }
    file = write_pairs(tmp_path / "pairs.jsonl", pairs)
    assert list(file) == pairs
    assert len(file.learned) == 20
    train, held_out = file.hold_out(0.3)
    assert sorted([*train, *held_out]) == file.learned.tolist()
    positives = ValidationPairs(file, file.learned).positives
    assert {(query, document) for query, own in positives.items() for document in own} == {
        (pair.query, pair.document) for pair in pairs
    }
    mask = KnownPairs(file.keys, file.groups).mask(file.learned, file.learned)
    every = {(pair.query_id, pair.document_id) for pair in made[1:]}
    assert mask.tolist() == [[(one.query_id, other.document_id) in every for other in learned] for one in learned]


def test_no_document_of_a_batch_is_a_negative_of_a_query_of_its_paper(tmp_path: Path) -> None:
    """The test counts every statement of the paper as right: training must not push them away."""
    made = [TextPair(f"query {i}", f"statement {i}", f"q{i}", f"d{i}", f"paper {i // 2}") for i in range(4)]
    file = write_pairs(tmp_path / "pairs.jsonl", made)
    rows = np.arange(4)
    same_paper = [[i // 2 == j // 2 for j in range(4)] for i in range(4)]
    assert KnownPairs(file.keys, file.groups).mask(rows, rows).tolist() == same_paper


def test_no_negative_is_a_known_answer(tmp_path: Path) -> None:
    """Of a concept in three papers: documents of other groups that answer the same query are no negatives of it."""
    made = [TextPair("ring", f"document {i}", "q", f"d{i}", f"g{i}") for i in range(3)]
    file = write_pairs(tmp_path / "pairs.jsonl", [*made, TextPair("field", "other", "p", "d9", "g9")])
    pool, known = np.array([[1, 3], [-1, -1], [-1, -1], [-1, -1]]), KnownPairs(file.keys, file.groups)
    args = (file.groups, np.arange(4), 1)
    assert {draw_negatives(pool, row, *args, seed, known)[0] for seed in range(20) for row in range(3)} == {3}
    with pytest.raises(TrainingError, match="a query has no hard negatives"):
        draw_negatives(pool, 1, file.groups, np.arange(3), 1, 0, known)


def rules(tmp_path: Path) -> PairFile:
    """Documents with two words in common, among many others; "rare" and "odd" are categories of one document each."""
    made = [
        TextPair("prime ideal", "prime ideal first", "q0", "d0", "p0", ("AC",)),
        TextPair("prime field", "prime ideal second", "q1", "d1", "p0", ("AC",)),  # the same paper
        TextPair("prime graph", "prime ideal third", "q2", "d2", "p2", ("CO",)),  # another category
        TextPair("prime group", "prime ideal fourth", "q3", "d3", "p3", ("CO", "AC")),
        TextPair("prime knot", "prime ideal fifth", "q4", "d4", "p4", ("rare",)),
        TextPair("prime link", "prime ideal sixth", "q5", "d5", "p5", ("odd",)),
        TextPair("prime ideal", "another prime ideal answer", "q0", "d6", "p6", ("AC",)),  # also answers q0
        *(TextPair(f"x{i}", f"y{i}", f"q1{i}", f"d1{i}", f"p1{i}", ("AC", "CO")) for i in range(290)),
    ]
    return write_pairs(tmp_path / "pairs.jsonl", made)


def test_negatives_share_a_category_and_are_of_other_papers(tmp_path: Path) -> None:
    pairs = rules(tmp_path)
    found = Shortlist(pairs, np.arange(len(pairs)), count=20)
    assert {document for document, _ in found.ranking("q0")} == {"d0", "d6", "d3"}  # its own, and one
    assert {document for document, _ in found.ranking("q2")} == {"d2", "d3"}
    assert {document for document, _ in found.ranking("q4")} == {"d4", "d5"}  # rare categories are one


def test_a_query_of_several_papers_has_no_negatives_of_any_of_them(tmp_path: Path) -> None:
    made = [TextPair("compact", f"compact sets {paper} {i}", "q", f"{paper}{i}", paper) for paper in "ab" for i in "01"]
    rest = [TextPair(f"other {i}", f"compact words {i}", f"r{i}", f"{paper}x", paper) for i, paper in enumerate("abc")]
    pairs = write_pairs(tmp_path / "pairs.jsonl", [*made, *rest])
    found = Shortlist(pairs, np.arange(len(pairs)), count=20)
    assert {document for document, _ in found.ranking("q")} == {"a0", "a1", "b0", "b1", "cx"}


@pytest.mark.parametrize("source", ["bm25", "model"])
def test_known_answers_and_what_is_as_near_as_they_are_no_negatives(
    tiny_folder: Path, tmp_path: Path, source: str
) -> None:
    pairs = rules(tmp_path)
    config = settings(negatives=1, negative_source=source, negative_closest=None, negative_pool=3)
    pool, mined = Mining(config, pairs, np.arange(6))(opened(tiny_folder))
    assert pool.shape == (len(pairs), 3)
    assert pool[:6].tolist() == [[3, -1, -1], [3, -1, -1], [3, -1, -1], *pool[3:6].tolist()]
    assert sorted(pool[3].tolist()) == [0, 1, 2]
    assert (pool[4:] == -1).all()
    assert mined["without"] == 2  # among six documents no category is rare
    strict = settings(negatives=1, negative_source=source, negative_closest=0.01, negative_pool=3)
    with pytest.raises(ConfigError, match=rf"text.negative_source={source} leaves no hard negatives for 6 queries"):
        Mining(strict, pairs, np.arange(6))(opened(tiny_folder))


def test_the_model_ranks_what_bm25_found(tiny_folder: Path, tmp_path: Path) -> None:
    pairs, encoder = file_of(tmp_path), opened(tiny_folder)
    config = settings(negatives=1, negative_source="model", negative_closest=None, negative_candidates=20)
    train = np.arange(len(pairs))
    pool, _ = Mining(config, pairs, train)(encoder)
    vectors = encoder.encode([pair.document for pair in pairs], "document")
    for row in (0, 17):
        cosines = vectors[pool[row][pool[row] >= 0]] @ encoder.encode([pairs[row].query], "query")[0]
        assert len(cosines) > 3
        assert (np.diff(cosines) <= 1e-6).all()
    by_words, _ = Mining(settings(negatives=1, negative_closest=None), pairs, train)(encoder)
    assert not np.array_equal(by_words, pool)


def test_questions_lead_to_their_answers(tmp_path: Path) -> None:
    made = [
        Post("1", "question", title="Why $x^2$?", body="<p>I ask.</p>"),
        Post("2", "answer", body="<p>Since $y$.</p>", parent_id="1"),
        Post("3", "answer", body="", parent_id="1"),
    ]
    posts.build(tmp_path / "posts.db", made, ())
    with posts.PostTexts(tmp_path / "posts.db") as texts:
        found = list(pair_sources.of_answers([Pair("1", "2"), Pair("1", "3"), Pair("1", "gone")], texts))
        (grouped,) = pair_sources.of_answers([Pair("1", "2")], texts, groups={"1": "7"})
    assert found == [TextPair("Why $x^2$? I ask.", "Since $y$.", "1", "2", "1")]
    assert grouped.group == "7"


class _Asking:
    name = "test"

    def __call__(self, statements: Sequence[Statement], names: Sequence[str]) -> list[list[str] | Failure]:
        return [
            [f"{one.text}?", "and?"] if one.title else Failure(name, "queries", "no question in the answer", "?")
            for one, name in zip(statements, names, strict=True)
        ]


def test_queries_lead_to_statements_of_their_part(tmp_path: Path) -> None:
    statements = [Statement("lemma", "lem", title, f"text {title}") for title in ("A", "B", "")]
    paper = Paper("p", "Title", ("math.AG",), tuple(statements), {})
    split = Split({"p": (1,)}, ())
    train = list(pair_sources.of_statements([paper], _Asking(), split_by=split))
    assert [one.query if isinstance(one, TextPair) else one for one in train] == [
        "text A?", "and?", Failure("p/2", "queries", "no question in the answer", "?"),
    ]  # fmt: skip
    assert isinstance(train[0], TextPair)
    assert (train[0].query_id, train[0].document_id, train[0].group) == ("p/0/0", "p/0", "p")
    assert train[0].categories == ("math.AG",)
    [first, _] = pair_sources.of_statements([paper], _Asking(), split_by=split, part="regular")
    assert isinstance(first, TextPair)
    assert first.document == "text B"


def test_formulas_and_their_sentences_find_each_other() -> None:
    text = r"We know that $\frac12 + x_1 = y$ holds for all $n$. Again $\frac{1}{2}+x_1=y$ is what we want. So $a+b=c$."
    [there, back] = pair_sources.of_formulas([pair_sources.Passage("p", "paper", text, ("AC",))])
    assert there.query == "We know that FORMULA holds for all $n$."
    assert there.document == r"\frac { 1 } { 2 } + x _ { 1 } = y"
    assert (back.query, back.document) == (there.document, there.query)
    assert (back.query_id, back.document_id) == (there.document_id, there.query_id)
    raw, _ = pair_sources.of_formulas([pair_sources.Passage("p", "paper", text)], linear=False)
    assert raw.document == r"\frac12 + x_1 = y"


def test_concepts_lead_to_chunks_of_their_papers_and_of_related_ones() -> None:
    graph = KnowledgeGraph(
        (Concept("Bailey", "A transformation.", ("p1",)), Concept("Partitions", "", ("p2",))),
        (Edge("Bailey", "Partitions", "uses"),),
    )
    found = {
        (one.query, one.document, one.query_id, one.document_id, one.group)
        for one in pair_sources.of_concepts(graph, {"p1": ["a", "b"], "p2": ["c"]})
    }
    assert found == {
        ("Bailey", "a", "Bailey", "p1/0", "p1"), ("Bailey", "b", "Bailey", "p1/1", "p1"),
        ("A transformation.", "a", "Bailey", "p1/0", "p1"), ("A transformation.", "b", "Bailey", "p1/1", "p1"),
        ("Bailey", "c", "Bailey", "p2/0", "p2"), ("Partitions", "c", "Partitions", "p2/0", "p2"),
        ("Partitions", "a", "Partitions", "p1/0", "p1"), ("Partitions", "b", "Partitions", "p1/1", "p1"),
    }  # fmt: skip
