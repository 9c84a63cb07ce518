"""Dense vectors of formulas: their distances, formulas without vectors, and settings."""

import random
from dataclasses import replace

import numpy as np
import pytest

from graphs.errors import ConfigError, RetrievalError
from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import ParsedFormula
from mathamr.structure.latent import LatentConfig, LatentIndex
from tests.mathamr.structure.test_alignment import grown
from tests.mathamr.structure.test_index import FORMULAS

CONFIG = LatentConfig(dimensions=4, rarity=0.5, spectrum=0.0, k1=0.5)


def grown_formulas(count: int) -> list[ParsedFormula]:
    generator = random.Random(7)
    return [
        ParsedFormula(
            grown(generator, "slt", generator.randint(1, 9)), grown(generator, "opt", generator.randint(1, 9))
        )
        for _ in range(count)
    ]


def test_formulas_in_other_letters_are_near() -> None:
    index = LatentIndex.build([parse_latex(latex) for latex in FORMULAS], CONFIG)
    assert {number for number, _ in index.search(parse_latex("p^2+q^2=r^2"), 3)} == {4, 5, 6}
    assert {number for number, _ in index.search(parse_latex(r"\sum_{j=1}^{\infty} j t^j"), 2)} == {2, 3}


def test_with_all_dimensions_the_cosines_are_those_of_the_rows() -> None:
    """The decomposition changes nothing where no dimension is left out."""
    formulas = grown_formulas(30)
    full = LatentIndex.build(formulas, replace(CONFIG, dimensions=30))
    rows = [dict[int, float]() for _ in formulas]
    for number, formula in enumerate(formulas):
        own = full._weighted_rows([formula]).tocoo()
        rows[number] = dict(zip(own.col.tolist(), own.data.tolist(), strict=True))
    wanted = [[sum(value * other.get(key, 0.0) for key, value in row.items()) for other in rows] for row in rows]
    np.testing.assert_allclose(full.vectors @ full.vectors.T, wanted, atol=1e-4)


def test_an_indexed_formula_has_one_vector_however_it_comes() -> None:
    formulas = grown_formulas(50)
    index = LatentIndex.build(formulas, CONFIG)
    np.testing.assert_allclose(index.vectors_of(formulas), index.vectors, atol=1e-5)
    again = LatentIndex.build(formulas, CONFIG)
    np.testing.assert_array_equal(index.vectors, again.vectors)
    for formula in formulas[:5]:
        scores = index.vectors @ index.vectors_of([formula])[0]
        best = np.lexsort((np.arange(50), -scores))[:7]
        assert [number for number, _ in index.search(formula, 7)] == best.tolist()
        assert len(index.search(formula, 100)) == 50


@pytest.mark.parametrize("k", [1, 3, 4, 6])
def test_equal_cosines_go_by_id_also_where_results_end(k: int) -> None:
    names = np.array(["7", "10", "9", "8", "95", "1"])
    index = LatentIndex.build([parse_latex(one) for one in ("x^2", "a+b", "x^2", "x^2", "a+b", "x^2")], CONFIG)
    found = index.search(parse_latex("x^2"), k, names=names)
    assert [str(names[number]) for number, _ in found] == ["9", "8", "7", "1", "95", "10"][:k]


def test_a_formula_without_known_symbols_has_no_direction() -> None:
    index = LatentIndex.build([parse_latex(latex) for latex in FORMULAS], CONFIG)
    assert index.vectors_of([ParsedFormula(None, None)]).tolist() == [[0.0] * 4]
    assert not np.isnan(index.vectors).any()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(RetrievalError, match="no symbol that two of them have"):
        LatentIndex.build([ParsedFormula(None, None)], CONFIG)
    with pytest.raises(RetrievalError, match="k=0"):
        LatentIndex.build([parse_latex("x"), parse_latex("x")], CONFIG).search(parse_latex("x"), 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimensions": 0}, r"latent\.dimensions=0 must be 1"),
        ({"rarity": 2.0}, r"latent\.rarity=2\.0 must be from 0 to 1"),
        ({"spectrum": -2.0}, r"latent\.spectrum=-2\.0 must be from -1 to 1"),
        ({"k1": -1.0}, r"latent\.k1=-1\.0"),
        ({"k1": float("inf")}, r"latent\.k1=inf must be a finite number from 0"),
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, float], message: str) -> None:
    CONFIG.check()
    with pytest.raises(ConfigError, match=message):
        replace(CONFIG, **change).check()  # type: ignore[arg-type]
