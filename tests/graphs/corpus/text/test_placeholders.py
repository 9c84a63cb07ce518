"""Posts to sentences with placeholders: no formula lost, no text swallowed, whatever the markup."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.placeholders import extract


def formula(number: int, latex: str = "x") -> str:
    return f'<span class="math-container" id="{number}">${latex}$</span>'


def read(body: str, *, title: str = "", markup: str = "html", prefix: str = "") -> PlaceholderText:
    return extract(Post("7", "question", title, body, markup=markup, formula_prefix=prefix))  # type: ignore[arg-type]


def numbers(text: PlaceholderText) -> list[int]:
    return [int(i) for i in re.findall(r"FORMULA_(\d+)", " ".join(text.sentences))]


def test_title_comes_first_and_formulas_are_numbered_in_order() -> None:
    text = read(f"<p>If {formula(2, 'a')} and {formula(3, 'b')}.</p>", title=f"Is {formula(1)} odd")
    assert text.sentences == ("Is FORMULA_0 odd", "If FORMULA_1 and FORMULA_2.")
    assert [(f.formula_id, f.latex) for f in text.formulas] == [("1", "x"), ("2", "a"), ("3", "b")]


def test_ids_have_the_prefix_and_formulas_without_id_are_named_after_the_post() -> None:
    text = read(f'<p>{formula(1)} <span class="math-container">$y$</span> $z=1$</p>', prefix="2020:")
    assert [f.formula_id for f in text.formulas] == ["2020:1", "7:1", "7:2"]


@pytest.mark.parametrize("given", ["", "a&#9;b", "a b", "a&#10;b", "a&#8232;b", "a\u00a0b"])
def test_an_id_that_no_table_could_hold_is_none(given: str) -> None:
    post = Post("7", "answer", body=f'<span class="math-container" id="{given}">$x$</span>', formula_prefix="t:")
    assert [formula.formula_id for formula in extract(post).formulas] == ["7:0"]


def test_a_formula_that_occurs_twice_has_two_placeholders() -> None:
    text = read(f"<p>{formula(1)} and {formula(1)}</p>")
    assert numbers(text) == [0, 1]
    assert [f.formula_id for f in text.formulas] == ["1", "1"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("the {}-th term", "the FORMULA_0 th term"),
        ("non-{} sets", "non FORMULA_0 sets"),
        ("{}-{} plane", "FORMULA_0 - FORMULA_1 plane"),
        ("({})-adic", "(FORMULA_0) adic"),
        ("{}-1 is odd", "FORMULA_0 - 1 is odd"),
        ("5-{} is odd", "5 - FORMULA_0 is odd"),
        ("({})-2 is odd", "(FORMULA_0) -2 is odd"),
        ("f({})x", "f (FORMULA_0) x"),
        ("{},{}; {}!", "FORMULA_0, FORMULA_1; FORMULA_2!"),
        ("{}'s and {}s", "FORMULA_0 's and FORMULA_1 s"),
        ('"{}" and [{}]', '"FORMULA_0" and [FORMULA_1]'),
        ("a{}b{}{}c", "a FORMULA_0 b FORMULA_1 FORMULA_2 c"),
    ],
)
def test_placeholders_are_words_of_their_own(body: str, expected: str) -> None:
    for number in range(body.count("{}")):
        body = body.replace("{}", formula(number), 1)
    assert " ".join(read(body).sentences) == expected


def test_blocks_end_sentences() -> None:
    body = "<h2>Part</h2><p>One</p><ul><li>Two</li><li>Three</li></ul><blockquote>Four</blockquote>Five<br>Six<hr>Seven"
    assert read(body).sentences == ("Part", "One", "Two", "Three", "Four", "Five", "Six", "Seven")
    assert read("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>").sentences == ("a, b", "c")


def test_a_sentence_runs_on_through_a_displayed_formula() -> None:
    body = f"<p>Let</p> <p>{formula(1)}</p> <p>be fields with</p> <blockquote><p>{formula(2)}.</p></blockquote><p>Then"
    assert read(body).sentences == ("Let FORMULA_0 be fields with FORMULA_1.", "Then")


def test_a_formula_that_ends_with_a_full_stop_ends_the_sentence() -> None:
    assert read(f"<p>So {formula(1, 'x=1.')} Then we stop.</p>").sentences == ("So FORMULA_0.", "Then we stop.")
    assert read(f"<p>So {formula(1, 'x!')} Then we stop.</p>").sentences == ("So FORMULA_0 Then we stop.",)


def test_code_is_dropped_links_and_emphasis_keep_their_text() -> None:
    body = f'<p>See <a href="http://x.y">the <em>page</em></a> at http://x.y/z.</p><pre>code {formula(1)}</pre><img>End'
    text = read(body)
    assert text.sentences == ("See the page at link.", "FORMULA_0", "End")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("10<sup>2</sup> and H<sub>2</sub>O", "10^2 and H_2O"),
        ("3<sup>2n+2</sup>+56n, m<sup>-1</sup>", "3^(2n+2)+56n, m^(-1)"),
        ("a<sup><em>b</em></sup>, x<sub>max</sub>", "a^b, x_max"),
        ("a<sup>a<sup>b</sup></sup> and 2<sup>k", "a^(a^b) and 2^k"),
        ("the n<sup>th</sup> term, as noted<sup>[12]</sup> by X<sup>TM</sup>", "the nth term, as noted[12] by XTM"),
        ("compact <sup>i.e.</sup> finite, odd<sup>a note on it</sup>", "compact i.e. finite, odda note on it"),
        (f"2<sup>{formula(1)}</sup> is even", "2^ FORMULA_0 is even"),
        ("M<sup>ed </sup>mod n, e<sup>2 sin x</sup>, f<sup>(4)</sup>", "M^ed mod n, e^(2 sin x), f^(4)"),
    ],
)
def test_raised_and_lowered_text_keeps_its_mark(body: str, expected: str) -> None:
    assert read(body).sentences == (expected,)


def test_an_environment_keeps_the_spans_in_it_and_is_a_formula() -> None:
    inner = formula(5, "x>0")
    text = read(rf"<p>Let \begin{{cases}}1&amp;\text{{if {inner}}}\end{{cases}} and {formula(6, 'y')} be odd.</p>")
    assert text.sentences == ("Let FORMULA_0 FORMULA_1 and FORMULA_2 be odd.",)
    assert [(one.formula_id, one.latex) for one in text.formulas] == [
        ("7:0", r"\begin{cases}1&\text{if $x>0$}\end{cases}"),
        ("5", "x>0"),
        ("6", "y"),
    ]
    assert read(rf"<p>\[ z \mbox{{ if {inner}}} \]</p>").formulas[0].latex == r"z \mbox{ if $x>0$}"
    prose = read(rf"<p>How is \begin{{align}} typed? I tried {inner}. Then \end{{align}} and \[Let {inner} be.\]</p>")
    assert [one.formula_id for one in prose.formulas] == ["5", "5"]
    assert prose.sentences[1] == "I tried FORMULA_0."


def test_mathml_is_read_by_its_annotation_in_tex() -> None:
    note = '<annotation encoding="application/x-tex">x&lt;1</annotation>'
    text = read(f"<p>Is <math><semantics><mi>x</mi>{note}</semantics></math> so?</p>")
    assert ([one.latex for one in text.formulas], text.sentences) == (["x<1"], ("Is FORMULA_0 so?",))


def test_text_without_spaces_is_kept_and_long_data_is_cut() -> None:
    chinese = "证明连续函数在闭区间上有界" * 12
    assert read(f"{chinese}。{chinese}！").sentences == (f"{chinese}。", f"{chinese}！")
    long = read(f"{chinese}，" * 9 + "a" * 99 + "中" * 500).sentences
    assert [len(part) for part in long] == [len(chinese) + 1] * 9 + [200, 200, 199]
    assert read("a" * 101 + " b").sentences == ("a" * 100 + " b",)


def test_a_word_that_looks_like_a_placeholder_does_not_collide() -> None:
    text = read(f"<p>FORMULA_3 and <b>FORMULA</b>_0 and &#70;ORMULA_1 and {formula(1)}</p>")
    assert numbers(text) == [0]
    assert "FORMULA 3" in text.sentences[0]


@pytest.mark.parametrize(
    ("word", "written"),
    [("formula-1", "formula 1"), ("Formula1", "Formula 1"), ("formula_0", "formula 0"), ("FORMULA-0s", "FORMULA 0s")],
)
def test_a_word_that_a_parser_may_return_as_a_placeholder_is_two_words(word: str, written: str) -> None:
    assert read(f"<p>By {word} we have {formula(1)}.</p>").sentences == (f"By {written} we have FORMULA_0.",)


def test_empty_posts_and_posts_of_formulas_only() -> None:
    assert read("") == read("  <p> </p>") == PlaceholderText((), ())
    assert read(formula(1)).sentences == ("FORMULA_0",)
    assert read('<span class="math-container" id="4"> </span>').formulas[0].latex == ""


def test_latex_loses_its_delimiters_and_double_escapes() -> None:
    for written in (
        "$$a&lt;b$$",
        "$a&amp;lt;b$",
        r"\(a&lt;b\)",
        r"\[a&lt;b\]",
        r"$\begin{equation}a&lt;b\end{equation}$",
    ):
        assert read(f'<span class="math-container">{written}</span>').formulas[0].latex == "a<b"


def test_text_markup_has_paragraphs_lists_and_formulas() -> None:
    text = read("First $x$.\nStill first.\n\n- one $$a\n\nb$$\n- two\n1. three", markup="text")
    assert text.sentences == ("First FORMULA_0.", "Still first.", "one FORMULA_1", "two", "three")
    assert [f.latex for f in text.formulas] == ["x", "a b"]
    assert read("a <b>c</b> &amp;", markup="text").sentences == ("a <b>c</b> &amp;",)


def test_no_character_that_a_database_or_parser_refuses_comes_through() -> None:
    text = read("a \ud800 \x00 \ue000 &#xe000; \u200b b", title="$x\ud800$")
    assert text.sentences == ("FORMULA_0", "a b")
    assert text.formulas[0].latex == "x"


HOSTILE = {
    "deep": "<div>" * 40_000 + formula(1) + "</div>" * 40_000,
    "after the end": f"<p>a</p></div></body></html>{formula(1)}",
    "tags without end": "<" * 50_000 + "<a " * 50_000 + formula(1),
    "open quotes": '<a b="' * 20_000 + formula(1),
    "open comments": "<!--" * 20_000 + formula(1),
    "open pre": "<pre>" * 20_000 + formula(1),
    "doctype": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;' + formula(1),
    "brackets": "(" * 100_000 + formula(1),
    "attributes": "<span" + " class=a" * 50_000 + ">" + formula(1),
    "unbalanced": "$$ $ \\( \\[ \\begin{align} " * 5_000 + formula(1),
    "script": f"<script>var x = 1;</script>{formula(1)}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markup_loses_no_formula(name: str) -> None:
    text = read(HOSTILE[name])
    assert numbers(text) == list(range(len(text.formulas)))
    assert [f.formula_id for f in text.formulas if not f.formula_id.startswith("7:")] == ["1"]
    assert "root:" not in " ".join(text.sentences)


def test_spans_that_are_open_or_nested_are_all_found() -> None:
    assert (
        len(read('<span class="math-container" id="1">$a <span class="math-container" id="2">$b$</span>').formulas) == 2
    )
    assert len(read('<p><span class="math-container" id="1">$a$</p><p>b</p>').formulas) == 1


PIECES = r"""<p> </p> <br> <pre> </pre> --> <li> $ $$ a . B - ( ) FORMULA_1 <b> </b> < > &amp; \( \) \begin{align}
\end{align} 5 </span> 's http://a"""
FRAGMENTS = st.sampled_from([*PIECES.split(), " ", "\n\n", ". "])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(FRAGMENTS, st.just("FORMULA")), max_size=30))
def test_every_span_stands_in_exactly_one_place(fragments: list[str]) -> None:
    body = ""
    count = 0
    for fragment in fragments:
        if fragment == "FORMULA":
            body += formula(100 + count)
            count += 1
        else:
            body += fragment
    text = read(body)
    assert numbers(text) == list(range(len(text.formulas)))
    ids = [f.formula_id for f in text.formulas if not f.formula_id.startswith("7:")]
    assert ids == [str(100 + i) for i in range(count)]
    words = " ".join(text.sentences).split()
    assert all(
        re.search(r"(?<![\w-])FORMULA_\d+(?![\w-])", word)
        for word in words
        if "FORMULA_" in word and word != "FORMULA_"
    )


def test_a_letter_with_a_combining_accent_is_one_character() -> None:
    composed, decomposed = "Sch\u00f6n von M\u00f6bius.", "Scho\u0308n von Mo\u0308bius."
    assert extract(Post("1", "answer", body=decomposed, markup="text")).sentences == (composed,)
