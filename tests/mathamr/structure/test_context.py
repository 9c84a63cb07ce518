"""Places of a ranking that go to formulas of similar posts."""

import numpy as np

from graphs.formulas.latex import parse_latex
from mathamr.structure.context import Context, with_similar_posts
from mathamr.structure.index import StructureIndex
from tests.mathamr.structure.test_alignment import RULES

FORMULAS = [parse_latex(latex) for latex in ("x^2", "y^2", r"\sqrt{2}", r"\int f")]
NAMES = np.array(["8", "10", "7", "9"])
POSTS = [["roots", "are", "irrational"], ["sums", "of", "squares"]]
OCCURRENCES = [(0, 1), (1, 1), (2, 0), (3, 0)]


def test_the_last_places_go_to_formulas_of_similar_posts() -> None:
    index = StructureIndex.build(FORMULAS, RULES)
    query = parse_latex("x^2")
    ranking = index.search(query, 3)
    assert [number for number, _ in ranking][:2] == [0, 1]
    similar = Context.build(POSTS, OCCURRENCES, 4).scores(["irrational"])
    found = with_similar_posts(ranking, similar, index, query, 1, 2, NAMES)
    assert [number for number, _ in found] == [0, 2]  # of the two in the similar post, the one that shares a symbol
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)


def test_places_without_a_similar_post_go_to_the_ranking() -> None:
    index = StructureIndex.build(FORMULAS, RULES)
    query = parse_latex("x^2")
    context = Context.build(POSTS, OCCURRENCES, 4)
    ranking = index.search(query, 3)
    assert with_similar_posts(ranking, context.scores(["unheard"]), index, query, 1, 3, NAMES) == ranking
    assert with_similar_posts(ranking, context.scores(["unheard"]), index, query, 2, 2, NAMES) == ranking[:2]
    found = with_similar_posts(ranking, context.scores(["irrational"]), index, query, 3, 3, NAMES)
    assert {number for number, _ in found} == {0, 2, 3}  # both in the similar post, after the first of the ranking
    assert found[0] == ranking[0]
    assert with_similar_posts([], context.scores(["irrational"]), index, query, 3, 3, NAMES)[0][0] == 2


def test_equal_formulas_of_similar_posts_go_by_id_also_where_results_end() -> None:
    index = StructureIndex.build([parse_latex(letter) for letter in "abcd"], RULES)
    similar, query = np.array([0.5, 0.5, 0.0, 0.5]), parse_latex(r"\sqrt{2}")
    for k, expected in ((1, [3]), (2, [3, 0]), (3, [3, 0, 1])):  # 9, 8, 10
        assert [number for number, _ in with_similar_posts([], similar, index, query, k, k, NAMES)] == expected


def test_a_formula_has_the_score_of_its_best_post() -> None:
    context = Context.build(POSTS, [*OCCURRENCES, (0, 0)], 4)
    assert context.scores(["irrational"])[0] == 1.0
    assert context.scores(["squares"])[0] == 1.0
