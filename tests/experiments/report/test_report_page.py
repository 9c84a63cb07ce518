"""The page stands alone: it asks nobody for anything, and what others wrote stays text."""

import base64
import hashlib
import html
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from experiments.report import page, results, writing
from experiments.report.blocks import Code, Examples, Figure, Found, Heading, Legend, Table, Text, markdown
from experiments.report.figures import charts, geometry, heat_map
from mathamr.analysis.plot_styles import plot_style
from mathamr.evaluation.significance import compare
from tests.experiments.written_experiment import (
    example,
    fail,
    finish,
    write_examples,
    write_heat_map,
    write_plan,
)

HOSTILE = (
    '<script>alert(1)</script><img src=x onerror=alert(2)><a href="https://evil.example/">x</a>'
    "</div></article></body><svg onload=alert(3)>\"'><style>@import url(//evil.example)</style>"
    "<iframe src=//evil.example></iframe><!-- $\\href{https://evil.example}{x}$ -->"
    "![x](https://evil.example/x.png) \x00"
)
VOID = {"meta", "br", "img", "link", "input", "hr"}
LOADING = {"src", "srcset", "href", "xlink:href", "action", "formaction", "poster", "data", "background", "ping"}


class Reader(HTMLParser):
    """The page's elements, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: Counter[str] = Counter()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[data.strip()] += 1


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page where every text that comes from a file is hostile."""
    folder = tmp_path_factory.mktemp("outputs") / "rings"
    labels = {"none": f"none {HOSTILE}", "ring": f"ring {HOSTILE}"}
    write_plan(folder, ["none", "ring", "full"], [1, 2], title=HOSTILE, command=HOSTILE, labels=labels)
    for condition, score in (("none", 0.4), ("ring", 0.5)):
        for seed in (1, 2):
            place = finish(folder, condition, seed, score, code=HOSTILE, machine=HOSTILE, finished=HOSTILE)
            write_heat_map(place, [[score, 0.1, 0.2], [0.3, score, 0.1]], formula=HOSTILE, sentence=HOSTILE)
            one = example(HOSTILE, [(HOSTILE, 3), ("18", None)], title=HOSTILE, body=HOSTILE)
            one["results"][0] |= {"title": HOSTILE, "body": HOSTILE}
            write_examples(place, [one])
    fail(folder, "full", 1, HOSTILE)
    writing.write([results.read(folder)], folder)
    return (folder / "report.html").read_text()


def test_hostile_text_stays_text(hostile: str) -> None:
    reader = Reader(hostile)
    tags = Counter(tag for tag, _ in reader.elements)
    assert reader.open == []
    assert tags["script"] == 3  # KaTeX's own
    assert not {"img", "iframe", "object", "embed", "link", "form"} & tags.keys()
    assert tags["body"] == tags["html"] == 1
    attributes = [(name, value or "") for _, found in reader.elements for name, value in found.items()]
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert max(reader.texts.values()) > 1
    assert any(HOSTILE.split("\x00")[0].strip() in text for text in reader.texts)


def test_nothing_is_loaded(hostile: str) -> None:
    """No element refers outside the page, and the policy forbids it to those that would."""
    for tag, attributes in Reader(hostile).elements:
        for name, value in attributes.items():
            if name in LOADING:
                assert (value or "").startswith("#"), (tag, name, value)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", hostile, re.DOTALL)
    plain = "".join(styles)
    assert "@import" not in plain
    assert all(url.strip("'\"").startswith(("data:", "#")) for url in re.findall(r"url\(([^)]*)\)", plain))
    drawings = "".join(re.findall(r"<svg role.*?</svg>", hostile, re.DOTALL))
    assert "http" not in drawings.replace("https://evil.example", "")
    assert "<image" not in drawings  # a picture in a data: URL is a request, too, and refused by the policy


def test_the_policy_names_every_program_by_its_hash(hostile: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', hostile)
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", hostile, re.DOTALL)
    assert len(scripts) == 3
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy[1].split("style-src")[0]


def test_ids_are_unique_and_links_lead_somewhere(hostile: str) -> None:
    elements = Reader(hostile).elements
    ids = Counter(str(found["id"]) for _, found in elements if "id" in found)
    assert [name for name, count in ids.items() if count > 1] == []
    targets = [str(found["href"]) for _, found in elements if "href" in found]
    assert targets
    assert {target.removeprefix("#") for target in targets} <= ids.keys()
    used = set(re.findall(r"url\(#([^)]+)\)", "".join(re.findall(r"<svg role.*?</svg>", hostile, re.DOTALL))))
    assert used
    assert used <= ids.keys()


def test_plots_have_a_role_and_words(hostile: str) -> None:
    plots = [found for tag, found in Reader(hostile).elements if tag == "svg"]
    assert len(plots) == 4
    assert all(found["role"] == "img" and len(found["aria-label"] or "") > 40 for found in plots)


def test_a_page_without_formulas_needs_no_program() -> None:
    text = page.page("Rings", [Heading("Rings"), Table([["Condition", "nDCG'"], ["none", "0.5"]])])
    assert "<script" not in text
    assert "script-src" not in text
    assert "default-src 'none'; style-src" in text
    assert len(text) < 10_000


def test_formulas_are_marked_for_katex() -> None:
    found = Found(1, "17", 0.93, 2, "", "So $x$.")
    blocks = [
        Examples("A.1", "Why $x$?", "Is $x<y$?", [("none", [found])]),
        Legend("Nodes", [("F1", "formula", "x<y"), ("S1", "sentence", "Is $x<y$?")]),
    ]
    text = page.page("Rings", blocks)
    body = text.split("<body>")[1]
    assert '<div class="math"><b>Why $x$?</b></div>' in body
    assert '<div class="math post">Is $x&lt;y$?</div>' in body
    assert '<dd class="latex">x&lt;y</dd>' in body
    assert "Relevance: 2 (medium)" in body
    assert "katex" in text.split("<body>")[0]


@pytest.mark.parametrize(
    "command", ["run x`<img src=//evil>`y", "```", "run\n```\n<img src=//evil>", "`<b>\r\r<b>`", "``<b>"]
)
def test_a_command_is_code_in_markdown(command: str) -> None:
    shown = MarkdownIt("commonmark").render(markdown([Heading("Rings"), Code(command)]))
    assert set(re.findall("<([a-z0-9]+)", shown)) <= {"h1", "p", "pre", "code"}
    assert html.unescape(re.sub("<[^>]*>", "", shown)).split() == ["Rings", *command.split()]


def test_markdown_has_no_html_and_no_images_of_others() -> None:
    text = markdown([Heading(HOSTILE), Text(HOSTILE), Table([["Reason"], [HOSTILE]])])
    assert not re.search(r"<[A-Za-z/!]", text)
    assert "](" not in text


def test_labels_with_dollars_and_underscores_can_be_drawn() -> None:
    """Matplotlib would read dollars as a formula, and leave labels that begin with _ out of legends."""
    logs = [{"epoch": 0, "train_loss": 1.0, "val_loss": 1.0, "val_mrr": 0.5}]
    plot = charts.curves({"$k = 5$ and \\frac{": [logs], "_hidden": [logs], "<b>&": [logs, []]})
    drawn = plot.draw("p")
    assert "$k = 5$ and \\frac{" in drawn
    assert "_hidden" in drawn
    assert "&lt;b&gt;&amp;" in drawn


def test_labels_that_are_equal_when_shortened_differ_in_all_plots(tmp_path: Path) -> None:
    labels = [f"Learned, structure with context{more} and BM25 over pairs" for more in ("", ", dense vectors")]
    lengths = {"tokens": [1.0, 1.1, 1.2], "pooled": [0.8, 0.9, 1.0], "of_tokens": 3}
    densities = {"own": "whole", "ways": {"whole": {"points": [0, 1], "densities": {"random": [1, 2]}}}}
    threshold = {"chosen": 0, "thresholds": [{"tau": tau, "metric": [0.5] * 3, "removed": tau} for tau in (0.1, 0.2)]}
    statements = {"cosines": np.eye(3).tolist(), "topics": ["A.1", "A.1", "A.2"], "plane": np.eye(3, 2).tolist()}
    tested = [{"on": 2020, "error": 0.1, "bins": [[0.2, 0.3, 5], [0.8, 0.7, 5]]}]
    plots = [
        geometry.lengths(dict.fromkeys(labels, lengths)),
        geometry.densities(dict.fromkeys(labels, densities)),
        geometry.thresholds(dict.fromkeys(labels, threshold), 10),
        geometry.statements(dict.fromkeys(labels, statements)),
        geometry.reliability(dict.fromkeys(labels, tested)),
    ]
    folder = write_plan(
        tmp_path / "rings", ["none", "ring"], [1], labels=dict(zip(["none", "ring"], labels, strict=True))
    )
    for condition, score in (("none", 0.4), ("ring", 0.5)):
        finish(folder, condition, 1, score)
    maps = heat_map.blocks(results.read(folder))
    for plot in (*plots, *(one for one in maps if isinstance(one, Figure))):
        drawn = plot.draw("p")
        assert [drawn.count(f">{charts.shortened(labels)[label]}</text>") for label in labels] == [1, 1]


def test_64_conditions_look_different_in_grey() -> None:
    """Colour and hatch are never both the same, nor are colour and marker."""
    looks = [plot_style(number) for number in range(64)]
    assert len({(one.colour, one.hatch) for one in looks}) == len({(one.colour, one.marker) for one in looks}) == 64
    assert len({one.hatch for one in looks[:8]}) == len({one.marker for one in looks[:8]}) == 8


def test_plots_do_not_depend_on_the_users_style(tmp_path: Path) -> None:
    import matplotlib

    logs = [{"epoch": 0, "train_loss": 1.0, "val_loss": 1.0, "val_mrr": 0.5}]
    plot = charts.curves({"none": [logs]})
    before = plot.draw("p")
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "black"}):
        assert plot.draw("p") == before


def test_curves_without_validation_say_so() -> None:
    plot = charts.curves({"lsa": [[{"epoch": 1, "train_loss": 1.0}]]})
    assert plot.alt.endswith("Validation MRR after the last epoch: none.")


def test_differences_name_the_topics_that_gained_and_lost_most() -> None:
    gains = {"A": 0.3, "B": 0.0, "C": -0.1, "D": -0.3, "E": -0.2, "F": -0.4}
    scores = {"base": {"m": dict.fromkeys(gains, 0.0)}, "ring": {"m": gains}}
    (test,) = compare(scores, {"base": "base", "ring": "base"})
    difference = charts.Difference("ring", "base", test, gains)
    assert difference.words == "1 better, 4 worse, 1 equal"
    drawn = charts.differences([difference], "nDCG'").draw("p")
    assert "most gained: A" in drawn
    assert "most lost: F, D, E" in drawn


def test_epochs_are_counted_from_1() -> None:
    records = [{"epoch": 0, "val_mrr": 0.5}, {"epoch": 1, "val_mrr": 0.7}]
    assert charts._means([records, records[:1]], "val_mrr") == ([1, 2], [0.5, 0.7])


def test_cosines_of_a_topic_are_those_of_different_answers() -> None:
    one = {"cosines": [[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]], "topics": ["A.1", "A.1", "A.2"]}
    assert geometry.statements({"graph": one}).alt.endswith("graph: 0.50 within a topic, 0.20 between.")


def test_a_plot_of_densities_names_the_highest_place() -> None:
    way = {"points": [0.1, 0.5, 0.9], "densities": {"random": [0.2, 1.0, 0.1], "correct": [0.0, 0.1, 2.0]}}
    figure = geometry.densities({"graph": {"own": "maxsim", "ways": {"maxsim": way}}})
    assert figure.alt.endswith("highest: graph: random 0.50, correct 0.90.")


def test_lengths_of_many_encoders_have_room() -> None:
    one = {"tokens": [4.0, 5.0, 6.0], "of_tokens": 3, "pooled": [3.0]}
    drawn = geometry.lengths({f"encoder {number}": one for number in range(24)}).draw("p")  # warns without room
    assert drawn.count(">Density<") == 24


def test_the_spread_of_a_heat_map_is_a_standard_deviation() -> None:
    assert heat_map.HeatMap("A.1", "7", 3, 0.8, (), (), np.array([[0.0, 0.8]])).spread == 0.4
