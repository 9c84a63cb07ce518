"""The map of posts: what the page says of it, and in headless Chromium what readers can do with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.report.blocks import Examples, Found, Heading, Legend, markdown
from experiments.report.figures.post_map import groups_of, map_of
from experiments.report.page import page
from tests.experiments.report.test_report_page import HOSTILE, Reader
from tests.mathamr.search.web.browser import PATIENCE, WITH_CHROMIUM, open_chromium

MANY = 100_000


def built(posts: int, title: str = "Is $x$ odd?", tag: str = "parity") -> Any:
    """A map of two conditions; the second has PCA alone, and the posts of the first in another order."""
    generator = np.random.default_rng(0)
    names = [f"p{number}" for number in range(posts)]
    tags = [[tag] if number % 3 else [["rings"], []][number % 2] for number in range(posts)]
    methods = {"pca": generator.normal(size=(posts, 2)).round(4), "tsne": generator.normal(size=(posts, 2)).round(4)}
    first = {"posts": names, "titles": [title] * posts, "tags": tags, "places": methods}
    second = {"posts": names[::-1], "titles": [title] * posts, "tags": tags[::-1], "places": {"pca": methods["pca"]}}
    return map_of({f"Graph {title}": first, "MiniLM": second}, {"posts": posts, "of_posts": 3 * posts})


def test_the_page_has_the_data_escaped_and_a_table() -> None:
    text = page("Map", [Heading("Map"), built(7, HOSTILE, HOSTILE)])
    reader = Reader(text)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("script") == 2  # the program, and the data
    assert not {"img", "iframe", "svg", "link"} & set(tags)
    assert tags.count("canvas") == 1
    canvas = next(found for tag, found in reader.elements if tag == "canvas")
    assert "7 posts (a sample of 21) as points in a plane, by PCA, t-SNE." in str(canvas["aria-label"])
    assert any(HOSTILE.split("\x00")[0].strip() in text for text in reader.texts)  # the table of tags
    assert "script-src 'sha256-" in text


def test_markdown_describes_the_map() -> None:
    assert markdown([built(7)]) == (
        "Plot in report.html: 7 posts (a sample of 21) as points in a plane, by PCA, t-SNE. Colours are tags: "
        "parity 4, rings 2, no tag 1.\n"
    )


def test_posts_are_in_the_first_of_their_tags_with_a_group() -> None:
    names, groups = groups_of([["b", "a"], ["a"], ["c", "a"], ["c"], []], named=1)
    assert names == ["a", "other tags", "no tag"]
    assert groups == [0, 0, 0, 1, 2]
    assert groups_of([]) == ([], [])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    driver = open_chromium()
    yield driver
    driver.quit()


@pytest.mark.browser
@WITH_CHROMIUM
def test_readers_move_a_map_of_100_000_posts_and_ask_for_titles(chromium: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    file = tmp_path / "report.html"
    file.write_text(page("Map", [Heading("Map"), built(MANY, HOSTILE, HOSTILE)]), encoding="utf-8")
    chromium.get(file.as_uri())

    def one(selector: str) -> Any:
        return chromium.find_element("css selector", selector)

    def until(true: Any) -> None:
        WebDriverWait(chromium, PATIENCE).until(lambda _: true())

    def drawn() -> int:
        return int(one(".map-canvas canvas").get_attribute("data-drawn") or -1)

    until(lambda: drawn() == MANY)
    assert one(".map-status").text == "100,000 of 100,000 posts in view"
    canvas = one(".map-canvas canvas")

    chromium.execute_script("arguments[0].focus()", canvas)  # keys: enlarge, move, back
    before = int(canvas.get_attribute("data-frames"))
    for _ in range(5):
        canvas.send_keys("+")
        canvas.send_keys(Keys.ARROW_LEFT)
    until(lambda: 0 < drawn() < MANY)
    until(lambda: int(canvas.get_attribute("data-frames")) > before)
    canvas.send_keys("0")
    until(lambda: drawn() == MANY)

    boxes = chromium.find_elements("css selector", ".map-legend input")  # the legend hides a tag
    assert len(boxes) == 3
    boxes[0].click()
    until(lambda: 0 < drawn() < MANY)
    one(".map-all").click()
    until(lambda: drawn() == MANY)

    wheel = "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -900, ctrlKey: true, cancelable: true}))"
    chromium.execute_script(wheel, canvas)
    until(lambda: drawn() < MANY)
    one(".map-whole").click()
    until(lambda: drawn() == MANY)
    ActionChains(chromium).move_to_element(canvas).perform()  # hover
    until(lambda: one(".map-note").is_displayed())
    assert one(".map-note").text.startswith("<script>alert(1)</script>")
    ActionChains(chromium).drag_and_drop_by_offset(canvas, 200, 100).perform()
    until(lambda: drawn() < MANY)

    one(".map-list").click()  # the same in words
    rows = chromium.find_elements("css selector", ".map-posts tbody tr")
    assert len(rows) == 100
    assert "<img src=x" in rows[0].text

    choose = "arguments[0].value = 'MiniLM'; arguments[0].dispatchEvent(new Event('change'))"
    one(".map-method").find_elements("css selector", "option")[1].click()
    chromium.execute_script(choose, one(".map-label"))  # has no t-SNE
    assert one(".map-method").get_attribute("value") == "PCA"
    until(lambda: drawn() == MANY)
    assert chromium.get_log("browser") == []


@pytest.mark.browser
@WITH_CHROMIUM
def test_short_texts_with_fractions_have_no_scroll_bar(chromium: Any, tmp_path: Path) -> None:
    fraction = r"\frac{x^2+x+c}{x^2+2x+c}"
    file = tmp_path / "report.html"
    blocks = [
        Examples("A.1", "", f"Is it ${fraction}$?", [("none", [Found(1, "17", 0.9, 2, "", f"So ${fraction}$.")])]),
        Legend("Nodes", [("F1", "formula", fraction)]),
    ]
    file.write_text(page("Rings", blocks), encoding="utf-8")
    chromium.get(file.as_uri())
    overflow = (
        "document.querySelectorAll('details').forEach(one => { one.open = true; });"
        "const found = [...document.querySelectorAll('.post, dl.nodes dd')];"
        "return found.map(one => one.scrollHeight - one.clientHeight);"
    )
    assert chromium.execute_script(overflow) == [0, 0, 0]
