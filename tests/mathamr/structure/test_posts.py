"""Posts by their formulas: the best match of each formula of the topic counts."""

import numpy as np
import pytest

from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import ParsedFormula
from mathamr.structure.posts import MOST_FORMULAS, FormulasOfPosts, searched_formulas, symbols_of
from tests.mathamr.structure.test_index import FORMULAS, index_of


def test_a_post_has_the_weighted_mean_of_the_best_matches() -> None:
    index = index_of(*FORMULAS)
    occurrences = [(0, 2), (1, 0), (4, 0), (5, 0), (4, 1), (7, 1)]
    posts = FormulasOfPosts.build(occurrences, 4)
    queries = [parse_latex("p^2+q^2=r^2"), parse_latex(r"\sqrt{3}")]
    wanted = np.zeros(4)
    for query in queries:
        best = np.zeros(4)
        for formula, post in occurrences:
            best[post] = max(best[post], index.scores(query)[formula])
        wanted += symbols_of(query) * best / sum(map(symbols_of, queries))
    assert posts.scores(index, queries) == pytest.approx(wanted)
    assert posts.scores(index, [])[3] == 0


def test_small_and_repeated_formulas_are_not_searched_with() -> None:
    topic = [parse_latex(latex) for latex in ("x", "x^2+1", "a+b+c", "x^2+1", "2")]
    assert searched_formulas([*topic, ParsedFormula(None, None)]) == [parse_latex("x^2+1"), parse_latex("a+b+c")]
    many = [parse_latex("+".join(["x"] * length)) for length in range(2, 30)]
    assert searched_formulas(many) == many[: -MOST_FORMULAS - 1 : -1]
