"""Collections with tests: what is tested is in no training pair, and what is relevant is what the papers say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.errors import ConfigError
from mathamr.text import benchmarks
from mathamr.text.benchmarks import OWN, SAME_GROUP, QuerySet
from mathamr.text.concepts import graph_of
from mathamr.text.knowledge_graph import Concept, Edge, KnowledgeGraph, read_graph, to_json
from mathamr.text.linearize import linearize
from mathamr.text.pairs import TextPair
from mathamr.text.queries import paper_queries
from mathamr.text.sources.pair_sources import Passage, of_formulas
from mathamr.text.sources.papers import Paper
from mathamr.text.statements import Statement, find_statements


def same(text: str) -> str:
    return text.casefold().rstrip(".")


def grades(test: QuerySet) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {query: {} for query in test.queries}
    for one in test.judgments:
        found[one.topic_id][one.doc_id] = one.grade
    return found


def lemma(title: str, text: str, section: str = "") -> Statement:
    return Statement("lemma", "lem", title, text, section)


def papers() -> list[Paper]:
    """Twelve papers of eight statements; of one and the same heading in each paper, and a text that several have."""
    made = []
    for p in range(12):
        statements = [lemma(f"Title {p} {i}", f"Statement {i} of paper {p}.", f"Heading {p}") for i in range(7)]
        made.append(Paper(f"p{p}", "", (), (*statements, lemma(f"Again {p}", "Everywhere the same.")), {}))
    return made


def test_no_thread_that_is_asked_for_is_trained_on(tmp_path: Path) -> None:
    pairs = [
        TextPair(f"Question {t}?", f"Answer {t} {a}.", f"q{t}", f"a{t}-{a}", group=f"q{t}")
        for t in range(20)
        for a in range(1 + t % 3)
    ]
    twice = [TextPair("question 0?", "Anew.", "again", "new", "again"), TextPair("Who?", "Answer 1 0", "w", "b", "w")]
    for seed in range(4):
        made = benchmarks.of_answers([*pairs, *twice], test_share=0.5, seed=seed)
        test = made.tests["unseen"]
        assert len(made.answers["answers"]) == len(pairs) + 2
        assert not {same(pair.query) for pair in made.train} & set(map(same, test.queries.values()))
        asked = {name for judged in grades(test).values() for name in judged}
        texts = made.answers["answers"]
        assert not {same(pair.document) for pair in made.train} & {same(texts[a]) for a in asked}
        assert len(made.train) + len(asked) + made.left_out.total() == len(pairs) + 2
        assert len({same(text) for text in test.queries.values()}) == len(test.queries)
    benchmarks.write(made, tmp_path / "made")
    assert PairCollection(tmp_path / "made").tests() == ("unseen",)


def test_no_statement_that_is_asked_for_is_trained_on() -> None:
    made = benchmarks.of_statements(papers(), paper_queries, unseen_papers=2, test_share=0.3)
    texts, trained = made.answers["answers"], {pair.document for pair in made.train}
    assert len(texts) == 96
    asked = {pair.query for pair in made.train}
    for name in ("regular", "unseen"):
        test = made.tests[name]
        assert not asked & set(test.queries.values())
        for query, judged in grades(test).items():
            own = [document for document, grade in judged.items() if grade == OWN]
            assert own
            assert not trained & {texts[document] for document in own}
            paper = query.split("/")[0]
            assert set(judged) == {document for document in texts if document.startswith(f"{paper}/")}
            assert set(judged.values()) == {OWN, SAME_GROUP}
    unseen = {query.split("/")[0] for query in made.tests["unseen"].queries}
    assert len(unseen) == 2
    assert not unseen & {pair.group for pair in made.train}
    assert {query.split("/")[0] for query in made.tests["regular"].queries} <= {pair.group for pair in made.train}
    assert "Everywhere the same." not in trained
    assert made.left_out["training pairs with a document of a test"] > 0


def test_a_query_tells_more_than_its_statement_says() -> None:
    """One that stands in the statement is not asked; one that leads to several statements is asked once."""
    given = [
        Paper(f"p{p}", "", (), tuple(lemma(f"Case {p}.{i}", f"This is case {p}.{i}, whatever.") for i in range(5)), {})
        for p in range(8)
    ]
    shared = Paper("shared", "", (), tuple(lemma("Same name", f"One of them, {i}.") for i in range(5)), {})
    with pytest.raises(ConfigError, match="test regular has no queries"):
        benchmarks.of_statements(given, paper_queries, unseen_papers=1, test_share=0.4)
    given = [
        Paper(one.paper_id, "", (), tuple(lemma(f"Title {s.text}", s.text) for s in one.statements), {})
        for one in given
    ]
    for seed in range(9):
        made = benchmarks.of_statements([*given, shared], paper_queries, unseen_papers=2, test_share=0.4, seed=seed)
        if "Same name" in (queries := list(made.tests["unseen"].queries.values())):
            break
    assert queries.count("Same name") == 1
    [name] = [query for query, text in made.tests["unseen"].queries.items() if text == "Same name"]
    assert set(grades(made.tests["unseen"])[name].values()) == {OWN}


def test_formulas_of_held_out_papers_are_searched_alone(tmp_path: Path) -> None:
    passages = []
    for p in range(10):
        text = (
            rf"Recall in paper {p} that $x_{p}+y_{p}=z$ holds again. We know that $e^{{i\pi}} = -1$ by Euler's formula."
        )
        passages.append(
            Passage(
                f"p{p}/0", f"p{p}", text + rf" It is plain in case {p} that $\frac{{a_{p}}}{{b}}=c+d+e+f$ everywhere."
            )
        )
    made = benchmarks.of_passages(passages, test_share=0.3)
    formulas, texts = made.answers["answers-formulas"], made.answers["answers-texts"]
    assert len(formulas) == 7  # three papers of three each, Euler's is one
    assert len(texts) == 7
    assert len(made.train) == 7 * 2  # Euler's formula and its sentence are in the test
    assert made.left_out == {"training pairs with a query of a test": 7}
    assert not {linearize(text.strip("$")) for text in formulas.values()} & {
        linearize(pair.document.strip("$")) for pair in made.train
    }
    there, back = made.tests["text_to_formula"], made.tests["formula_to_text"]
    assert (there.swapped, back.swapped) == (False, True)
    assert set(there.queries) == set(texts)
    assert set(back.queries) == set(formulas)
    assert [len(one) for one in grades(there).values()] == [1] * 7
    assert len(made.tests["short"].queries) == 4
    assert len(made.tests["long"].queries) == 3
    benchmarks.write(made, tmp_path / "made")
    corpus = PairCollection(tmp_path / "made")
    assert corpus.tests() == ("formula_to_text", "long", "short", "text_to_formula")
    assert corpus.test("short").searched == set(formulas)
    assert corpus.test("formula_to_text").swapped
    assert json.loads((tmp_path / "made" / "about.json").read_text())["train"] == 14
    few = benchmarks.of_passages(passages, test_share=0.3, most=2)
    assert len(few.tests["text_to_formula"].queries) <= 2


def test_concepts_that_are_tested_unseen_are_in_no_pair() -> None:
    concepts = tuple(Concept(f"concept {i}", f"Described {i}.", (f"p{i % 5}", f"p{i % 3}x")) for i in range(10))
    edges = tuple(Edge(f"concept {i}", f"concept {i + 1}", "mentions") for i in range(9))
    chunks = {f"p{i}": [f"chunk {i} {k}" for k in range(3)] for i in range(5)} | {
        f"p{i}x": [f"x {i}"] for i in range(3)
    }
    made = benchmarks.of_graph(KnowledgeGraph(concepts, edges), chunks, unseen_share=0.4)
    unseen = set(made.tests["unseen"].queries.values())
    trained = set(made.tests["trained"].queries.values())
    assert len(unseen) == 4
    assert unseen | trained == {concept.name for concept in concepts}
    numbers = {name.split()[1] for name in unseen}
    assert made.related
    asked = {pair.query for pair in (*made.train, *made.related)}
    assert not asked & (unseen | {f"Described {number}." for number in numbers})
    assert trained <= asked
    assert not {(pair.query, pair.document) for pair in made.train} & {(p.query, p.document) for p in made.related}
    judged = grades(made.tests["unseen"])
    assert all(set(one.values()) == {OWN} for one in judged.values())
    assert all(len(one) == 4 for one in judged.values())  # three chunks of the one paper, one of the other


def test_what_two_concepts_share_tells_nothing_of_the_one_that_is_tested() -> None:
    concepts = tuple(Concept(f"concept {i}", f"Sentence {i // 2}.", ("p", "q")) for i in range(10))
    made = benchmarks.of_graph(KnowledgeGraph(concepts, ()), {"p": ["one"], "q": ["two"]}, unseen_share=0.4)
    asked = {pair.query for pair in made.train}
    numbers = {int(name.split()[1]) for name in made.tests["unseen"].queries.values()}
    assert not asked & {f"Sentence {i // 2}." for i in numbers}
    assert {f"concept {i}" for i in range(10) if i not in numbers} <= asked


def test_a_sentence_of_the_test_is_no_training_pair_with_another_hole() -> None:
    sentence = "We know of all that $a+b=c$ and also that $d+e=f$ if the first of them holds."
    passages = [Passage(f"p{i}/0", f"p{i}", f"Paper {i} says that $x_{i}+y=z$ is true. {sentence}") for i in range(8)]
    holes = {pair.query for pair in of_formulas([Passage("a", "a", sentence)])} & {
        sentence.replace(formula, "FORMULA") for formula in ("$a+b=c$", "$d+e=f$")
    }
    assert len(holes) == 2
    for seed in range(30):
        made = benchmarks.of_passages(passages, test_share=0.3, most=2, seed=seed)
        if len(holes & set(made.tests["text_to_formula"].queries.values())) == 1:
            break
    else:
        raise AssertionError("no seed tests one of the two alone")
    assert not holes & {pair.query for pair in made.train}


def test_concepts_without_edges_have_no_related_pairs(tmp_path: Path) -> None:
    """There is a file of none, so that an experiment with related pairs runs with the others."""
    concepts = tuple(Concept(f"concept {i}", "", (f"p{i % 3}", f"p{i % 3}x")) for i in range(9))
    chunks = {f"p{i}{end}": [f"chunk {i}{end} {k}" for k in range(2)] for i in range(3) for end in ("", "x")}
    made = benchmarks.of_graph(KnowledgeGraph(concepts, ()), chunks, unseen_share=0.4)
    benchmarks.write(made, tmp_path / "made")
    corpus = PairCollection(tmp_path / "made")
    assert list(corpus.related()) == []
    assert corpus.pair_files("related") == [tmp_path / "made" / name for name in ("train.jsonl", "related.jsonl")]


def test_a_graph_of_what_papers_define(tmp_path: Path) -> None:
    text = r"""
    \begin{definition} A space is called {\it compact} if every open cover has a finite subcover. \end{definition}
    \begin{theorem}[Heine--Borel theorem] Closed bounded sets in $\mathbb R^n$ are compact. \end{theorem}
    \begin{lemma}[{\cite[Thm 3]{x}}] \emph{Not} every space is so. \end{lemma}
    \begin{definition} An \emph{$n$-cell}, or \textbf{Theorem}, is no name. \end{definition}"""
    other = r"\begin{definition} \emph{Compact} means what it does. \end{definition}"
    made = [Paper(name, "", (), find_statements(one).statements, {}) for name, one in (("p", text), ("q", other))]
    graph = graph_of(made)
    assert [(one.name, one.papers) for one in graph.concepts] == [("compact", ("p", "q"))]
    whole = graph_of(made, least_papers=1)
    assert [one.name for one in whole.concepts] == ["compact", "Heine–Borel theorem"]
    assert whole.edges == (Edge("Heine–Borel theorem", "compact", "mentions"),)
    (tmp_path / "graph.json").write_text(to_json(whole))
    assert read_graph(tmp_path / "graph.json") == whole
