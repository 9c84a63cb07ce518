"""Passages of HTML: LaTeX of every kind of formula, lines, statements; nothing is run, loaded or expanded."""

from __future__ import annotations

from contextlib import suppress

import pytest

from graphs.errors import CorpusError
from mathamr.folder.html import read_html

KATEX = (
    '<span class="katex"><span class="katex-mathml"><math><semantics><mrow><mi>k</mi></mrow>'
    '<annotation encoding="application/x-tex">k^2</annotation></semantics></math></span>'
    '<span class="katex-html">k squared</span></span>'
)
PAGE = rf"""<!DOCTYPE html>
<html><head><title>A page</title><script>document.write("no script")</script></head>
<body><nav>no menu</nav>
<h1>Fields</h1>
<p>KaTeX gives {KATEX}, MathJax \(m_1\) and <script type="math/tex; mode=display">m_2</script>,
LaTeXML <math alttext="l_1"><mi>l</mi></math>, Wikipedia
<span class="mwe-math-element"><math><annotation encoding="application/x-tex">{{\displaystyle w}}</annotation></math>
<img src="http://x.org/w.svg" alt="no picture"></span>, a blog <img class="latex" alt="$b$" src="x">.
</p>
<h2>Finite &amp; small</h2>
<pre>no code</pre>
<div class="ltx_theorem"><h6><b class="ltx_tag ltx_tag_theorem">Lemma 1.2</b> (Gauss).</h6><p>All are known.</p></div>
<section class="ltx_lemma">
<h6>Lemma 3 (Gauss).</h6><div><p>The group is <b>cyclic</b>.</p><p>Also <math><mi>q</mi><mn>1</mn></math>.</p></div>
</section>
<p>After the lemma.</p>
</body></html>"""


def test_formulas_lines_and_statements_are_found() -> None:
    found = [(passage.place, passage.title, passage.text) for passage in read_html("a.html", PAGE)]
    assert found == [
        (
            "5",
            "Fields",
            r"KaTeX gives \(k^2\), MathJax \(m_1\) and \(m_2\), LaTeXML \(l_1\), Wikipedia "
            r"\({\displaystyle w}\) , a blog \(b\).",
        ),
        ("12", "Lemma 1.2 (Gauss). Fields: Finite & small", "All are known."),
        ("13", "Lemma 3 (Gauss). Fields: Finite & small", "The group is cyclic. Also q1 ."),
        ("16", "Fields: Finite & small", "After the lemma."),
    ]


def test_cells_of_an_equation_are_one_formula() -> None:
    cells = (
        r'<td><math alttext="\displaystyle a"><mi>a</mi></math></td><td><math alttext="\displaystyle=b"></math></td>'
    )
    page = (
        f'<p>Let</p><table><tr class="ltx_equation ltx_eqn_row">{cells}<td>(1)</td></tr><tr class="ltx_eqn_row"><td>be'
    )
    assert [passage.text for passage in read_html("a.html", page)] == [r"Let \(a =b\) be"]


def test_entities_of_a_document_are_not_expanded(tmp_path: object) -> None:
    secret = f"{tmp_path}/secret"
    with open(secret, "w") as file:  # noqa: PTH123
        file.write("a secret of this machine")
    page = (
        f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{secret}"><!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]>'
        "<html><body><p>These are some words &x; and &b; here.</p></body></html>"
    )
    text = " ".join(passage.text for passage in read_html("a.xhtml", page))
    assert "some words" in text
    assert "secret" not in text
    assert "lollol" not in text


@pytest.mark.parametrize("text", ["<div>" * 100_000, "<p>" * 100_000, "<math>" * 50_000, "&amp" * 50_000, "<" * 50_000])
def test_words_before_hostile_markup_are_read(text: str) -> None:
    with suppress(CorpusError):  # nested too deeply
        first, *_ = read_html("a.html", f"<p>Some words before it.</p>{text}")
        assert first.text.startswith("Some words before it.")


def test_nested_pages_are_read_whole_or_refused() -> None:
    page = "<p>Some words before it.</p>" + "<div>" * 2_000 + "<p>And some words after it.</p>"
    [passage] = read_html("a.html", page)
    assert passage.text == "Some words before it. And some words after it."
    with pytest.raises(CorpusError, match=r"is nested too deeply at line 1 \(.*\); close its elements"):
        read_html("a.html", page.replace("<div>", "<div><div>"))


def test_an_encoding_that_a_page_declares_does_not_matter() -> None:
    page = (
        '<?xml version="1.0" encoding="latin-1"?><html><meta charset="utf-16"><p>Erdős was a mathematician.</p></html>'
    )
    assert [passage.text for passage in read_html("a.xhtml", page)] == ["Erdős was a mathematician."]
