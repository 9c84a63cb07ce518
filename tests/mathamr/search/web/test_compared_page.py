"""Two systems side by side on the page, in headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mathamr.search.engine import Engine
from mathamr.search.settings import Settings
from mathamr.search.system_engine import SystemEngine
from mathamr.search.web.app import create_app
from tests.mathamr.search.web.browser import BROWSER, Page, served
from tests.mathamr.search.web.fixed_system import Fixed

pytestmark = BROWSER
QUERY = "Both $\\sqrt2$ and $\\sqrt3$ are irrational."


@pytest.fixture(scope="module")
def home(engine: Engine, settings: Settings) -> Iterator[str]:
    other = SystemEngine(Fixed("12", "15", "14"), engine.catalog.texts, system="fixed of test", posts=3)
    with served(create_app(engine, settings, more=[(other, replace(settings, index=Path("fixed")))])) as address:
        yield address


def moves(page: Page, column: int) -> dict[str, str]:
    """Return the difference in rank that each post of a column shows."""
    articles = page.all(f"#comparison section:nth-of-type({column}) article")
    found = [
        [article.find_element("css selector", part).text for part in (".origin a", ".move")] for article in articles
    ]
    return {post.removeprefix("post "): move for post, move in found}


def test_two_systems_are_compared_side_by_side(page: Page) -> None:
    page.choose("#other", "fixed: fixed of test")
    page.search(QUERY)
    page.until(lambda: page.all("#comparison article"))
    left, right = moves(page, 1), moves(page, 2)
    assert list(right) == ["12", "15", "14"]
    places = {post: rank for rank, post in enumerate(left, 1)}
    assert places["14"] == 1
    assert left["14"] == "▲ 2 rank 3 in fixed"
    assert right["14"] == "▼ 2 rank 1 in index"
    assert left["13"] == "not among the first 100 of fixed"
    assert page.one("#status").text.startswith("3 of the first 5 results are in both lists (index ")
    address = page.driver.current_url
    assert "beside=fixed" in address
    again = Page(page.driver, address)
    again.until(lambda: again.all("#comparison article"))
    assert moves(again, 1) == left
    again.choose("#other", "no other index")
    assert len(again.all("#results article")) == 5
    assert again.all("#comparison article") == []
    again.choose("#system", "fixed: fixed of test")
    again.until(lambda: len(again.all("#results article")) == 3)
    assert not again.one("#strategy").is_displayed()
    assert again.one("#about").text == "3 posts, ranked by fixed of test"
    why = again.one("#results li:last-child .why")
    assert why.text.startswith("In common: ")
    why.find_element("css selector", "summary").click()
    again.until(lambda: again.all("#results article .why[open] .katex"))
    for width in (360, 1200):
        with again.shown_at(width, "light"):
            assert "words: both, irrational" in again.one("#results li:last-child .why").text
    again.one("#results .origin a").click()
    again.until(lambda: again.one("#single").is_displayed())
    assert "index=fixed" in again.driver.current_url
    assert again.complaints() == []


def test_posts_that_attack_stay_text_in_both_lists(page: Page) -> None:
    page.choose("#other", "fixed: fixed of test")
    attack = "Look at $y^2$ <img src=x onerror=\"document.title='owned'\">"
    page.search(attack)
    page.until(lambda: page.all("#comparison article"))
    for button in page.all("#comparison .whole, #comparison .heat"):
        button.click()
    page.until(lambda: len(page.all("#comparison .post-text p")) >= 2)
    assert page.driver.title == f"{attack} - MathAMR+ search"
    assert page.driver.execute_script("return document.querySelectorAll('main script, main img').length") == 0
    assert page.complaints() == []


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_a_comparison_fits_the_screen_and_axe_finds_nothing_serious(page: Page, width: int, scheme: str) -> None:
    with page.shown_at(width, scheme):
        page.choose("#other", "fixed: fixed of test")
        page.search(QUERY)
        page.until(lambda: page.all("#comparison article"))
        page.one("#comparison summary").click()
        page.one("#comparison .heat").click()
        page.until(lambda: page.all("#comparison .heat-map table"))
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width
        first, second = (column.rect for column in page.all("#comparison section"))
        assert (first["y"] == second["y"]) == (width > 768)  # beside each other, or one above the other
        assert page.serious() == []


@pytest.fixture(scope="module")
def ranked_first(engine: Engine, settings: Settings) -> Iterator[str]:
    """Address of a server whose first index has no strategies, and that shows seven results."""
    other = SystemEngine(Fixed("12", "15", "14"), engine.catalog.texts, system="fixed of test", posts=3)
    own = replace(settings, k=7, index=Path("fixed"))
    with served(create_app(other, own, more=[(engine, replace(own, index=settings.index))])) as address:
        yield address


def test_a_chosen_index_is_searched_by_the_strategy_of_the_server(chromium: Any, ranked_first: str) -> None:
    page = Page(chromium, ranked_first)
    page.search(QUERY)
    page.choose("#system", "index")
    page.until(lambda: page.all("#results article .heat"))
    assert page.one("article .score").text == "4.000 of 4"
    assert "strategy=maxsim" in page.driver.current_url
    page = Page(chromium, ranked_first)
    page.search(QUERY)
    page.choose("#other", "index")
    page.until(lambda: page.all("#comparison article"))
    assert page.one("#comparison section:nth-of-type(2) .score").text == "4.000 of 4"


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        ("q=group&index=gone", "index=gone"),
        ("post=14&index=gone", "index=gone"),
        ("q=group&beside=gone&k=0", "beside=gone k=0"),
        ("q=group&index=index&strategy=maxsim&exact=false", "strategy=maxsim exact=false"),
        ("q=group&task=formulas", "task=formulas"),
    ],
)
def test_an_address_that_cannot_be_followed_is_not_searched(
    chromium: Any, ranked_first: str, asked: str, lacking: str
) -> None:
    page = Page(chromium, f"{ranked_first}#{asked}")
    page.until(lambda: page.one("#error").text)
    assert page.one("#error").text == (
        f"This address asks for {lacking}, which this server does not offer; choose from the menus, then search."
    )
    assert page.driver.current_url == f"{ranked_first}#{asked}"
    assert page.all("#results article") == []
    assert page.complaints() == []
