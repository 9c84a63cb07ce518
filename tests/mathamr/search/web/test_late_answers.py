"""Answers of the server that come late: the page follows what its user did meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from starlette.types import Receive, Send

from mathamr.search.engine import Engine
from mathamr.search.settings import Settings
from mathamr.search.system_engine import SystemEngine
from mathamr.search.web.app import create_app
from tests.mathamr.search.web.browser import BROWSER, Page, served
from tests.mathamr.search.web.fixed_system import Fixed

pytestmark = BROWSER
QUERY = "Both $\\sqrt2$ and $\\sqrt3$ are irrational."
CHOOSE_WITHOUT = """
const control = document.getElementById("formulas");
control.value = "without";
control.dispatchEvent(new Event("change", {bubbles: true}));
"""


@pytest.fixture
def slow(engine: Engine, settings: Settings) -> Iterator[tuple[str, set[str]]]:
    """Address of a server, and the requests that it leaves waiting, which a test takes away one by one."""
    other = SystemEngine(Fixed("12", "15", "14"), engine.catalog.texts, system="fixed of test", posts=3)
    app = create_app(engine, replace(settings, k=7), more=[(other, replace(settings, index=Path("fixed")))])
    held: set[str] = set()

    async def waiting(scope: Any, receive: Receive, send: Send) -> None:
        while f"{scope['path']}?{scope['query_string'].decode()}".removesuffix("?") in held:
            await asyncio.sleep(0.01)
        await app(scope, receive, send)

    with served(waiting) as address:
        yield address, held
        held.clear()


def loading(chromium: Any, address: str, held: set[str]) -> tuple[Page, set[str]]:
    """Open the page while the server does not describe its index; return it and the requests that wait."""
    page = Page(chromium, address)
    held.add("/api/index")
    page.driver.refresh()
    return page, held


@contextmanager
def unanswered(page: Page, addresses: str) -> Iterator[None]:
    """Let the browser find no server at these addresses."""
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": [addresses]})
    try:
        yield
    finally:
        page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        page.driver.execute_cdp_cmd("Network.disable", {})


def test_a_search_under_way_follows_a_choice_that_the_server_answers_late(
    chromium: Any, slow: tuple[str, set[str]]
) -> None:
    address, held = slow
    page = Page(chromium, address)
    held |= {"/api/index?index=fixed", "/api/search"}
    page.choose("#other", "fixed: fixed of test")
    page.one("#query").send_keys(QUERY)
    page.one("#go").click()
    held.remove("/api/index?index=fixed")
    page.until(lambda: page.all("#comparison article"))
    held.clear()
    assert [head.text for head in page.all("#comparison .column-name")] == ["index", "fixed"]
    assert page.all("#results article") == []
    assert "beside=fixed" in page.driver.current_url


def test_the_last_of_two_quick_choices_is_searched(chromium: Any, slow: tuple[str, set[str]]) -> None:
    address, held = slow
    page = Page(chromium, address)
    held.add("/api/index?index=fixed")
    page.choose("#system", "fixed: fixed of test")
    page.choose("#system", "index")
    held.clear()
    page.search(QUERY)
    page.until(lambda: page.all("#results article .heat"))
    assert page.one("#system").get_attribute("value") == "index"
    assert "index=fixed" not in page.driver.current_url


def test_an_index_that_the_server_does_not_describe_is_not_chosen(chromium: Any, slow: tuple[str, set[str]]) -> None:
    page = Page(chromium, slow[0])
    with unanswered(page, "*api/index?index=fixed"):
        page.choose("#system", "fixed: fixed of test")
        page.until(lambda: "The server does not answer" in page.one("#error").text)
    assert page.one("#system").get_property("value") == "index"


def test_a_search_asks_again_for_the_index_that_the_server_did_not_describe(
    chromium: Any, slow: tuple[str, set[str]]
) -> None:
    page = Page(chromium, slow[0])
    with unanswered(page, "*api/index"):
        page.driver.refresh()
        page.until(lambda: "The server does not answer" in page.one("#error").text)
        page.search(QUERY)
        page.until(lambda: "The server does not answer" in page.one("#error").text)
        assert page.one("#status").text == ""
    page.one("#go").click()
    page.until(lambda: page.all("#results article"))
    assert page.one("#error").text == ""
    assert page.one("#query").get_property("value") == QUERY


def test_what_is_typed_before_the_index_is_known_is_searched(chromium: Any, slow: tuple[str, set[str]]) -> None:
    page, held = loading(chromium, *slow)
    page.one("#query").send_keys(QUERY, Keys.ENTER)
    held.clear()
    page.until(lambda: page.all("#results article"))
    assert page.one("#query").get_property("value") == QUERY
    assert "&k=7&" in page.driver.current_url


@pytest.mark.parametrize("asked", ["q=Is+$x$+odd%3F&k=3&start=3", "post=12&k=3"])
def test_what_is_searched_before_the_index_is_known_takes_the_place_of_the_address(
    chromium: Any, slow: tuple[str, set[str]], asked: str
) -> None:
    address, held = slow
    page = Page(chromium, f"{address}#{asked}")
    page.until(lambda: page.all("#results article") or page.one("#single").is_displayed())
    before = page.driver.current_url
    held.add("/api/index")
    page.driver.refresh()
    page.one("#query").send_keys(QUERY, Keys.ENTER)
    held.clear()
    page.until(lambda: len(page.all("#results article")) == 3)
    assert page.one("#query").get_property("value") == QUERY
    assert page.one("#range").text == "1 to 3"
    page.driver.back()
    page.until(lambda: page.driver.current_url == before)
    assert page.complaints() == []


def test_a_filter_chosen_before_the_index_is_known_counts(chromium: Any, slow: tuple[str, set[str]]) -> None:
    page, held = loading(chromium, *slow)
    page.one("#query").send_keys(QUERY, Keys.ENTER)
    page.driver.execute_script(CHOOSE_WITHOUT)
    held.clear()
    page.settle()
    assert "1 of 5 candidates match" in page.one("#status").text
    assert page.complaints() == []


def test_what_is_being_typed_when_the_index_becomes_known_stays(chromium: Any, slow: tuple[str, set[str]]) -> None:
    page, held = loading(chromium, *slow)
    page.one("#query").send_keys(QUERY)
    held.clear()
    page.until(lambda: page.one("#examples").is_displayed())
    assert page.one("#query").get_property("value") == QUERY
    assert page.driver.current_url == slow[0]
    assert page.all("#preview .katex")


def test_an_address_is_followed_that_comes_before_the_index_is_known(chromium: Any, slow: tuple[str, set[str]]) -> None:
    page, held = loading(chromium, *slow)
    page.driver.execute_script("location.hash = '#q=Is+$x$+odd%3F&k=3'")
    page.until(lambda: page.driver.current_url.endswith("k=3"))
    assert page.one("#error").text == ""
    held.clear()
    page.until(lambda: len(page.all("#results article")) == 3)


def test_the_first_search_follows_a_choice_made_while_it_is_under_way(
    chromium: Any, slow: tuple[str, set[str]]
) -> None:
    address, held = slow
    page = Page(chromium, address)
    held.add("/api/search")
    page.one("#query").send_keys(QUERY, Keys.ENTER)
    page.driver.execute_script(CHOOSE_WITHOUT)
    held.clear()
    page.settle()
    assert "formulas=without" in page.driver.current_url
    assert "1 of 5 candidates match" in page.one("#status").text


def test_a_search_that_begins_while_back_waits_is_the_one_that_is_shown(
    chromium: Any, slow: tuple[str, set[str]]
) -> None:
    address, held = slow
    page = Page(chromium, f"{address}#q=Is+$x$+odd%3F&index=fixed")
    page.until(lambda: page.all("#results article"))
    page.choose("#system", "index")
    page.until(lambda: page.all("#results article .heat"))
    held.add("/api/index?index=fixed")
    page.driver.back()
    page.until(lambda: "index=fixed" in page.driver.execute_script("return location.hash"))
    page.search(QUERY)
    held.clear()
    later = "fetch('api/index?index=fixed').then(() => setTimeout(arguments[0]))"  # is answered after that of Back
    page.driver.execute_async_script(later)
    page.settle()
    assert page.one("#query").get_property("value") == QUERY
    assert page.one("#system").get_attribute("value") == "index"
    assert page.all("#results article .heat")


def test_an_error_after_back_takes_the_place_of_the_search(chromium: Any, slow: tuple[str, set[str]]) -> None:
    address, held = slow
    page = Page(chromium, f"{address}#q=Is+$x$+odd%3F&index=fixed")
    page.until(lambda: page.all("#results article"))
    page.choose("#system", "index")
    page.until(lambda: page.all("#results article .heat"))
    held.add("/api/search")
    page.one("#query").send_keys(" Why?", Keys.ENTER)
    assert page.one("#status").text == "Searching ..."
    with unanswered(page, "*api/index?index=fixed"):
        page.driver.execute_script("history.go(-2)")
        page.until(lambda: "The server does not answer" in page.one("#error").text)
    assert page.one("#status").text == ""
    assert page.all("#results article") == []  # of the search before Back


def test_next_that_is_pressed_twice_shows_the_next_page(chromium: Any, slow: tuple[str, set[str]]) -> None:
    address, held = slow
    page = Page(chromium, f"{address}#q=Is+$x$+odd%3F&k=3")
    page.until(lambda: page.one("#next").is_displayed())
    held.add("/api/search")
    for _ in range(2):
        page.one("#next").send_keys(Keys.ENTER)
    held.clear()
    page.settle()
    assert page.one("#range").text == "4 to 5"


def test_a_heat_map_says_that_it_is_loaded(chromium: Any, slow: tuple[str, set[str]]) -> None:
    address, held = slow
    page = Page(chromium, address)
    page.search(QUERY)
    held.add("/api/heat-map")
    page.one("article .heat").send_keys(Keys.ENTER)
    assert page.one("article .heat-map").text == "Loading ..."
    held.clear()
    page.until(lambda: page.all("article .heat-map td"))
    assert "Loading" not in page.one("article .heat-map").text
