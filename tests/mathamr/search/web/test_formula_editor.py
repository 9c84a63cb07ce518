"""The formula editor of the page (MathLive, in a frame), in headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.mathamr.search.web.browser import BROWSER, Page

pytestmark = BROWSER


def open_editor(page: Page) -> None:
    page.one("#edit-formula").send_keys(Keys.ENTER)
    with in_frame(page):
        page.until(lambda: focused(page) == "formula")


@contextmanager
def in_frame(page: Page) -> Iterator[None]:
    page.driver.switch_to.frame(page.one("#editor-box iframe"))
    yield
    page.driver.switch_to.default_content()


def focused(page: Page) -> str:
    found: str = page.driver.execute_script("return document.activeElement.id")
    return found


def typed(page: Page, *keys: str) -> str:
    """Type into what has the focus; return the text of the text box after it has changed."""
    before = page.one("#query").get_property("value")
    ActionChains(page.driver).send_keys(*keys).perform()
    page.until(lambda: page.one("#query").get_property("value") != before)
    found: str = page.one("#query").get_property("value")
    return found


def test_what_is_drawn_is_written_as_latex(page: Page) -> None:
    page.one("#query").send_keys("Why is ")
    open_editor(page)
    for key in "sqrt2":
        ActionChains(page.driver).send_keys(key).perform()
    page.until(lambda: page.one("#query").get_property("value") == "Why is $\\sqrt2$")
    page.until(lambda: page.all("#preview .katex"))
    assert typed(page, Keys.BACKSPACE) == "Why is $\\sqrt{}$"  # the gap is left out
    assert typed(page, "3") == "Why is $\\sqrt3$"
    ActionChains(page.driver).send_keys(Keys.ESCAPE).perform()
    page.until(lambda: not page.one("#editor-box").is_displayed())
    assert focused(page) == "query"
    assert typed(page, " irrational?") == "Why is $\\sqrt3$ irrational?"
    assert page.complaints() == []


def test_the_editor_follows_the_cursor_and_enter_searches(page: Page) -> None:
    page.one("#query").send_keys("From $a$ to \\[b\\].")
    open_editor(page)
    page.one("#query").send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 6)  # into the first formula
    with in_frame(page):
        page.until(lambda: page.driver.execute_script("return document.getElementById('formula').value") == "a")
    ActionChains(page.driver).send_keys(Keys.TAB, Keys.TAB, Keys.END).perform()  # past the button, into the editor
    ActionChains(page.driver).send_keys("+1").perform()
    page.until(lambda: page.one("#query").get_property("value") == "From $a+1$ to \\[b\\].")
    ActionChains(page.driver).send_keys(Keys.ENTER).perform()
    page.until(lambda: page.all("#results article"))
    assert page.complaints() == []


def test_the_editor_follows_a_text_that_the_page_has_changed(page: Page) -> None:
    """An example, or another entry of the history: the editor writes behind it, not over it."""
    page.one("#query").send_keys("From $a$ to")
    page.one("#query").send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 6)
    open_editor(page)
    example = page.all("#examples button")[1]
    page.driver.execute_script("arguments[0].click()", example)
    before = page.one("#query").get_property("value")
    assert before == "Why is $\\sqrt{2}$ irrational?"
    with in_frame(page):
        page.until(lambda: page.driver.execute_script("return document.getElementById('formula').value") == "")
        page.driver.execute_script("document.getElementById('formula').focus()")
    assert typed(page, "x") == f"{before}$x$"


def test_commands_of_mathlive_alone_are_written_as_usual_latex(page: Page) -> None:
    open_editor(page)
    with in_frame(page):
        page.driver.execute_script(
            "const field = document.getElementById('formula');"
            "field.value = '\\\\mleft(\\\\differentialD x\\\\mright)+\\\\imaginaryI+\\\\exponentialE^2';"
            "field.dispatchEvent(new Event('input'));"
        )
    page.until(lambda: page.one("#query").get_property("value") != "")
    assert page.one("#query").get_property("value") == "$\\left(d x\\right)+i +e ^2$"


def test_a_formula_of_a_link_runs_nothing_in_the_editor(page: Page, home: str) -> None:
    attack = (
        "$\\href{javascript:document.title='owned'}{x}\\htmlData{onclick=alert(1)}{y}"
        "\\text{<img src=x onerror=\"top.document.title='owned'\">}$"
    )
    page = Page(page.driver, f"{home}#q={quote(attack)}")
    page.until(lambda: page.one("#query").get_property("value") == attack)
    page.one("#query").send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 3)
    open_editor(page)
    with in_frame(page):
        page.until(lambda: "href" in page.driver.execute_script("return document.getElementById('formula').value"))
        inner = "return document.getElementById('formula').shadowRoot.querySelectorAll('img, script, [onclick]').length"
        assert page.driver.execute_script(inner) == 0
    assert page.driver.title == f"{attack} - MathAMR+ search"
    assert page.one("#query").get_property("value") == attack  # looking at a formula does not change it


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_the_editor_fits_the_screen_and_axe_finds_nothing_serious(page: Page, width: int, scheme: str) -> None:
    with page.shown_at(width, scheme):
        open_editor(page)
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert page.serious() == []
        low = page.one("#editor-box iframe").rect["height"]
        with in_frame(page):
            page.driver.execute_script("mathVirtualKeyboard.show()")
        page.until(lambda: page.one("#editor-box iframe").rect["height"] > low + 100)
        with in_frame(page):
            assert page.serious() == []
            page.driver.execute_script("mathVirtualKeyboard.hide()")
        page.until(lambda: page.one("#editor-box iframe").rect["height"] == low)
