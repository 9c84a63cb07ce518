"""The page in headless Chromium, as somebody uses it: types, looks, opens a heat map; and as somebody attacks it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from mathamr.search.engine import Engine
from mathamr.search.web import katex
from tests.mathamr.search.web.browser import BROWSER, PATIENCE, POLL, Page

pytestmark = BROWSER


def test_a_query_is_typed_and_formulas_are_typeset(page: Page) -> None:
    page.one("#query").send_keys("Why is $\\sqrt{2}$ irrational, and $\\oops{$ not?")
    page.until(lambda: page.all("#preview .katex"))
    assert "$\\oops{$ not?" in page.one("#preview").text  # what KaTeX cannot read stays
    page.search("Both $\\sqrt2$ and $\\sqrt3$ are irrational.")
    assert len(page.all("#results article")) == 5
    assert page.one("article .score").text == "4.000 of 4"
    assert len(page.all("article:first-of-type h2 .katex")) >= 1
    assert len(page.one("article .snippet").find_elements(By.CSS_SELECTOR, ".katex")) == 2
    assert page.one("#status").text.startswith("5 answers in ")
    page.one(".why summary").click()
    page.until(lambda: page.all("article:first-of-type .matches .katex"))
    assert len(page.one("article .matches").find_elements(By.CSS_SELECTOR, "li")) == 5  # the heads, and four nodes
    assert page.driver.execute_script("return document.fonts.check('16px KaTeX_Main')")
    assert page.complaints() == []


@pytest.mark.parametrize(
    "text",
    [
        "A book costs $5 and a pen costs $6.",
        "It costs \\$5 and $x$",
        "From $ 5 to $ 6, or $5-$10, let $x<5$ and \\(y=\\$1\\).",
        "Solve \\begin{align}x&=1\\end{align} now",
        "Let $x=\n\n1$ be",
        "Let $S=\\{x : \\text{$x$ is prime}\\}$ and $$x+y$$, \\[z\\]",
        "A \\\\$x$ and $ x $ and $ 5 $",
    ],
)
def test_the_preview_typesets_the_formulas_that_are_searched(page: Page, text: str) -> None:
    query = "const query = document.getElementById('query'); query.value = arguments[0];"
    page.driver.execute_script(query + "query.dispatchEvent(new Event('input'));", text)
    wanted = extract(Post("query", "topic", body=text, markup="text")).formulas
    page.until(lambda: page.one("#preview").is_displayed())
    assert len(page.all("#preview .katex")) == len(wanted)


@pytest.mark.parametrize("sign", ["\\(", "$x{", "$$x{", "\\begin{align}"])
def test_many_signs_that_open_no_formula_are_read_in_linear_time(page: Page, sign: str) -> None:
    """A reading that is quadratic takes longer than a script may."""
    script = "return findFormulas(arguments[0].repeat(1e6 / arguments[0].length) + arguments[1])"
    found = page.driver.execute_script(script, sign, "\n\nso $x$")
    assert [one["end"] - one["start"] for one in found] == [3]


def test_a_search_without_results_or_dollar_signs_says_how_to_go_on(page: Page) -> None:
    page.search('"no such words" irrational')
    assert page.all("#results article") == []
    assert ": nothing like the question; try other words, or fewer filters; 0 of " in page.one("#status").text
    page.search("Is p^2 irrational?")
    assert "; 0 formulas read; write formulas between dollar signs, such as $x^2$" in page.one("#status").text


def test_a_found_formula_shows_which_part_matched(page: Page) -> None:
    page.one("#tasks label:nth-of-type(2)").click()
    page.search("Is $t^2 = 3u^2$?")
    first = "#results > li:first-child .match"
    assert page.one("article .why summary").text == "Match: 6 of 6 symbols, t is p, u is q, 3 is changed to 2"
    drawings = page.all(f"{first} math")
    assert [drawing.text.split() for drawing in drawings] == [
        ["t", "2", "=", "3", "u", "2"],
        ["p", "2", "=", "2", "q", "2"],
    ]
    assert [symbol.text for symbol in page.all(f"{first} mi.renamed")] == ["t", "u", "p", "q"]
    assert [symbol.text for symbol in page.all(f"{first} mn.changed")] == ["3", "2"]
    colours = {
        page.one(f"{first} {part}").value_of_css_property("color") for part in (".equal", ".renamed", ".changed")
    }
    assert len(colours) == 3
    attack = "$x<script>document.title = 1</script>$"
    page.search(attack)
    assert page.driver.title == f"{attack} - MathAMR+ search"
    assert page.driver.execute_script("return document.querySelectorAll('#results script, #results img').length") == 0
    assert page.complaints() == []


def test_a_heat_map_opens_and_is_read_with_the_keyboard(page: Page) -> None:
    page.search("Both $\\sqrt2$ and $\\sqrt3$ are irrational.")
    button = page.one("article .heat")
    button.send_keys(Keys.ENTER)
    page.until(lambda: page.all(".heat-map tbody td"))
    assert button.get_attribute("aria-expanded") == "true"
    assert [len(row.find_elements(By.CSS_SELECTOR, "td")) for row in page.all(".heat-map tbody tr")] == [4] * 4
    assert [cell.text for cell in page.all(".heat-map td.best")] == ["1.00"] * 4
    assert [cell.text for cell in page.all(".heat-map thead tr:last-child th")] == ["F1", "F2", "S1", "D"]
    page.one(".heat-map td[tabindex='0']").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert "question F2" in page.one(".pair").text
    assert "post F2" in page.one(".pair").text
    button.send_keys(Keys.ENTER)
    assert not page.one(".heat-map").is_displayed()
    page.one("article .whole").click()
    page.until(lambda: page.all(".post-text .katex"))
    assert page.complaints() == []


def test_task_and_strategy_are_switched(page: Page) -> None:
    page.search("What is $\\int_0^1 x\\,dx$?")
    assert page.one("article .score").text.endswith("of 3")
    page.choose("#strategy", "document vectors")
    assert "of" not in page.one("article .score").text
    assert "strategy=single_vector" in page.driver.current_url
    page.one("input[value=formulas]").send_keys(Keys.SPACE)
    page.until(lambda: page.all("h2.formula .katex"))
    assert page.one(".origin").text.startswith("formula 12:0 of post 12: Is")
    assert page.all("article .found .katex")
    assert not page.one("#strategy").is_enabled()
    page.driver.back()
    page.until(lambda: not page.all("h2.formula"))
    assert "task=answers" in page.driver.current_url
    page.driver.refresh()
    page.until(lambda: page.all("#results article"))
    assert page.one("#query").get_property("value") == "What is $\\int_0^1 x\\,dx$?"


def test_results_are_filtered_ordered_and_paged(page: Page) -> None:
    def ranks() -> list[str]:
        shown = "return [...document.querySelectorAll('#results article')].map(article => article.dataset.rank)"
        found: list[str] = page.driver.execute_script(shown)
        return found

    def ids() -> list[str]:
        return [link.text for link in page.all("#results .origin a")]

    page.search("Both $\\sqrt2$ and $\\sqrt3$ are irrational. -words")
    assert "4 of 5 candidates match" in page.one("#status").text
    page.choose("#formulas", "without")
    assert "0 of 5 candidates match" in page.one("#status").text
    page.choose("#formulas", "with or without")
    page.choose("#order", "by post id, last first")
    assert ids() == ["post 15", "post 14", "post 12", "post 11"]
    assert sorted(ranks()) == ["1", "2", "3", "4"] != ranks()
    page.choose("#order", "by score")
    assert not page.one("#pages").is_displayed()
    page.driver.execute_script("document.getElementById('k').append(new Option('3 results', '3'))")
    page.choose("#k", "3 results")
    assert page.one("#range").text == "1 to 3 of 4"
    page.one("#next").send_keys(Keys.ENTER)
    page.until(lambda: ranks() == ["4"])
    assert "start=3" in page.driver.current_url
    assert not page.one("#next").is_enabled()
    page.one("#previous").send_keys(Keys.ENTER)
    page.until(lambda: ranks() == ["1", "2", "3"])
    assert page.complaints() == []


def test_a_link_that_somebody_typed_is_followed_once(page: Page, home: str) -> None:
    page.driver.execute_script("location.hash = '#q=Is+$x$+odd%3F&k=3'")
    page.until(lambda: len(page.all("#results article")) == 3)
    assert "task=answers&k=3&strategy=maxsim" in page.driver.current_url
    page.driver.back()
    page.until(lambda: page.one("#examples").is_displayed())
    assert page.driver.current_url == home


def test_a_search_that_was_left_shows_no_results(page: Page, engine: Engine) -> None:
    asked, may_answer = threading.Event(), threading.Event()
    answer = engine.answer

    def wait(*arguments: Any, **more: Any) -> Any:
        asked.set()
        assert may_answer.wait(PATIENCE)
        return answer(*arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "answer", wait)
        page.one("#query").send_keys("Is $x$ odd?", Keys.ENTER)
        assert asked.wait(PATIENCE)
        page.driver.back()
        page.until(lambda: "q=" not in page.driver.current_url)
        page.until(lambda: page.one("#examples").is_displayed())
        may_answer.set()
    later = "fetch('api/posts/14').then(() => arguments[0]())"  # is answered after the search
    page.driver.execute_async_script(later)
    assert page.one("#examples").is_displayed()
    assert page.all("#results article") == []


def test_results_are_saved_and_a_post_has_an_address(page: Page, tmp_path: Path) -> None:
    allow = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    assert not page.one("#tools").is_displayed()
    page.search("Both $\\sqrt2$ and $\\sqrt3$ are irrational.")
    for name in ("json", "bib"):
        page.one(f"#tools button[value={name}]").send_keys(Keys.ENTER)
        page.until((tmp_path / f"results.{name}").exists)
    assert len(json.loads((tmp_path / "results.json").read_text())["results"]) == 5
    assert (tmp_path / "results.bib").read_text().startswith("@misc{post:14,\n  title = {{Is $\\sqrt2$ odd?}},")
    page.one("article .origin a").send_keys(Keys.ENTER)
    page.until(lambda: page.all("#single .katex"))
    assert page.driver.current_url.endswith("#post=14")
    assert page.driver.title == "Is \\sqrt2 odd? - MathAMR+ search"
    page.until(lambda: page.driver.switch_to.active_element.tag_name == "h2")
    assert page.all("#results article") == []
    page.driver.refresh()
    page.until(lambda: page.all("#single .katex"))
    assert "post 14" in page.one("#single").text
    page.driver.back()
    page.until(lambda: len(page.all("#results article")) == 5)
    assert not page.one("#single").is_displayed()
    assert page.driver.switch_to.active_element.text == "post 14"
    assert page.complaints() == []


def test_a_script_in_a_post_is_text(page: Page) -> None:
    attack = "Look <script>document.title = 'owned'</script> at $x<script>$ <img src=x onerror='alert(1)'>"
    page.search(attack)
    page.until(lambda: len(page.all("#results article")) == 5)
    for button in page.all("article .heat, article .whole, article summary"):
        button.click()
    page.until(lambda: len(page.all(".heat-map table")) == 5)
    page.until(lambda: len(page.all(".post-text p")) >= 5)
    shown = page.one("main").text
    assert '<script>document.title = "owned"</script>' in shown
    assert "<img src=x onerror=" in shown
    assert page.driver.title == f"{attack} - MathAMR+ search"
    assert page.all("main script, main img, main iframe, main [onerror], main a:not([href^='#post='])") == []
    # A formula asks for a link to a script: KaTeX refuses it, and the browser would.
    assert not page.driver.execute_script("return document.body.innerHTML.includes('href=\"javascript')")
    assert page.complaints() == []


def test_an_inserted_script_would_not_run(page: Page) -> None:
    blocked = page.driver.execute_script(
        "try { document.body.innerHTML = '<img src=x onerror=\"document.title=1\">'; return ''; }"
        "catch (error) { return error.name; }"
    )
    assert blocked == "TypeError"  # by the policy for trusted types
    page.driver.execute_script(
        "const image = document.createElement('img'); image.src = 'https://elsewhere.example/x.png';"
        "document.body.append(image);"
    )
    page.until(lambda: any("Content Security Policy" in line for line in page.complaints()))
    assert page.driver.title == "MathAMR+ search"


def test_errors_are_told_in_the_page(page: Page) -> None:
    page.search(" ")
    assert page.one("#error").text == "The query is empty; type words, or a formula between dollar signs."
    page.one("input[value=formulas]").send_keys(Keys.SPACE)
    page.search("no formula")
    assert page.one("#error").text.startswith("A search for formulas needs a formula in the query, between two")
    page.driver.execute_script("document.getElementById('query').value = 'x'.repeat(100000)")
    page.one("#go").click()
    page.until(lambda: "100,000 characters, but at most 10,000 are read" in page.one("#error").text)
    assert page.all("#results article") == []


def test_it_is_readable_in_the_dark_and_on_a_telephone(page: Page) -> None:
    chromium = page.driver
    size = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        page.search("Both $\\sqrt2$ and $\\sqrt3$ are irrational.")
        page.one("article .heat").click()
        page.until(lambda: page.all(".heat-map table"))
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= 360
        assert chromium.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_axe_finds_nothing_serious(page: Page, width: int, scheme: str) -> None:
    """Check the page, answers with all that opens, formulas and an error with axe-core."""
    chromium = page.driver
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}

    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        assert page.serious() == []
        page.search("Both $\\sqrt2$ and $\\sqrt3$ are irrational.")
        for button in page.all("article .heat, article .whole, article summary"):
            button.click()
        page.until(lambda: len(page.all(".heat-map table")) == 5)
        page.until(lambda: len(page.all(".post-text p")) >= 5)
        assert page.serious() == []
        page.one("#tasks label:nth-of-type(2)").click()
        page.search("Is $t^2 = 3u^2$?")
        for button in page.all("article summary"):
            button.click()
        assert page.serious() == []
        page.search(" ")
        assert page.serious() == []
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_katex_within_a_page_that_stands_alone(chromium: Any, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    body = (
        "<p class='math'>Let $x^2 = 2$ and $$y = \\begin{align}a&amp;=b\\end{align}$$; it costs 5$.</p>"
        "<p class='latex'>\\sqrt{\\|A\\|_1} \\tag{1} \\label{norm}</p><p class='latex'>\\sqrt{</p>"
        "<p class='latex'>\\begin{array}{\\\\}a\\end{array}</p><p class='math'>$\\begin{array}{\\\\}a\\end{array}$</p>"
        "<p class='latex'>\\lam+\\mat{x}\\begin{array}[t]{c}a\\end{array}\\</p>"
        "<p class='latex'>\\begin{aligned}\\widebar{x}&amp;\\in\\mathbbmss{R}\\\\\\intertext{and}"
        "y&amp;=\\nicefrac1n\\end{aligned}</p>"
        "<p class='math'>לכל $a=b+c$ מתקיים</p>"
    )
    report.write_text(f"<!doctype html><meta charset='utf-8'><title>r</title>{katex.inline()}{body}", encoding="utf-8")
    chromium.get("about:blank")
    chromium.get_log("browser")
    chromium.get(report.as_uri())
    WebDriverWait(chromium, PATIENCE, POLL).until(lambda _: chromium.find_elements(By.CSS_SELECTOR, ".katex"))
    paragraphs = chromium.find_elements(By.TAG_NAME, "p")
    assert [len(p.find_elements(By.CSS_SELECTOR, ".katex")) for p in paragraphs] == [2, 1, 0, 0, 0, 1, 1, 1]
    first, _, third, beyond, _, unknown, of_packages, hebrew = paragraphs
    assert first.text.endswith("it costs 5$.")
    assert third.text == "\\sqrt{"
    assert beyond.text == "\\begin{array}{\\\\}a\\end{array}"  # KaTeX fails at it, and not by its own kind of error
    assert "\\lam" in unknown.text
    assert "and" in of_packages.text
    assert "\\" not in of_packages.text
    letters = [letter.rect["x"] for letter in hebrew.find_elements(By.CSS_SELECTOR, ".mathnormal")]
    assert letters == sorted(letters)  # a formula is read from left to right
    loaded = "return performance.getEntriesByType('resource').map(entry => entry.name.slice(0, 5))"
    assert set(chromium.execute_script(loaded)) <= {"data:"}
    assert chromium.get_log("browser") == []
