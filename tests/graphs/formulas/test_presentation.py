"""graphs.formulas.presentation: Presentation MathML to symbol layout trees, by rule and on the official formulas."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import FormulaError
from graphs.formulas.presentation import parse_slt
from graphs.formulas.tree import FormulaTree

TANGENT = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "tangent"
needs_shared = pytest.mark.skipif(not TANGENT.is_dir(), reason="the development data is not beside the repository")


def slt(inner: str, **options: Any) -> str:
    return parse_slt(f"<math>{inner}</math>", **options).tangent_string()


def mrow(inner: str) -> str:
    return f"<mrow>{inner}</mrow>"


PAREN = "<mo>(</mo>{}<mo>)</mo>"
TABLE = "<mtable><mtr><mtd><mn>{}</mn></mtd></mtr><mtr><mtd><mn>{}</mn></mtd></mtr></mtable>"


@pytest.mark.parametrize(
    ("mathml", "string"),
    [
        # leaves
        ("<mi>q</mi>", "[V!q]"),
        ("<mn>42</mn>", "[N!42]"),
        ("<mtext>such that</mtext>", "[T!such that]"),
        ("<mo>≤</mo>", "[≤]"),
        ("<mo>,</mo>", "[&comma;]"),
        ("<mi>[?]</mi>", "[V!&lsqb;&quest;&rsqb;]"),
        ("<mi/>", "[W!]"),
        ("<mspace/>", "[W!]"),
        ("<mphantom><mi>x</mi></mphantom>", "[W!]"),
        ('<merror class="undefined"><mtext>\\foo</mtext></merror>', "[E!]"),
        ("<merror>lost</merror>", "[E!lost]"),
        ('<qvar name="a"/>', "[?a]"),
        ("<mtext>not <mi>x</mi></mtext>", "[T!not]"),
        # rows: blank parts go, baselines are joined at their ends
        (mrow("<mi>a</mi><mo>\u2062</mo><mrow><mi>b</mi><mi>c</mi></mrow><mi>d</mi>"), "[V!a[V!b[V!c[V!d]]]]"),
        (mrow("<mi>a</mi><mspace/><mrow/><mpadded><mi>b</mi></mpadded>"), "[V!a[V!b]]"),
        # fences
        (mrow(PAREN.format("<mi>x</mi>")), "[M!()1x1,w[V!x]]"),
        (mrow("<mo>[</mo><mn>0</mn><mo>,</mo><mn>1</mn><mo>)</mo>"), "[M!&lsqb;)1x2,w[N!0[&comma;],e[N!1]]]"),
        (mrow(PAREN.format(mrow("<mi>a</mi><mo>,</mo><mi>b</mi>"))), "[M!()1x2,w[V!a[&comma;],e[V!b]]]"),
        (mrow(PAREN.format("<mi>a</mi><mo>,</mo><mi>b</mi><mi>c</mi>")), "[M!()1x2,w[V!a[&comma;],e[V!b[V!c]]]]"),
        (mrow(PAREN.format("<mo>,</mo>")), "[M!()1x2,w[W![&comma;]]]"),
        (mrow(PAREN.format("<mo>,</mo><mi>b</mi>")), "[M!()1x2,w[W![&comma;],e[V!b]]]"),
        (mrow(PAREN.format("<mi>a</mi><mo>,</mo>")), "[M!()1x2,w[V!a[&comma;]]]"),
        (
            mrow(PAREN.format("<mrow><mi>a</mi><mo>,</mo><mi>b</mi></mrow><mo>;</mo><mi>c</mi>")),
            "[M!()1x1,w[V!a[&comma;[V!b[;[V!c]]]]]]",
        ),
        (mrow("<mo>(</mo><mo>)</mo>"), "[([)]]"),
        (mrow("<mo>⟨</mo><mi>x</mi><mo>⟩</mo>"), "[⟨[V!x[⟩]]]"),
        (mrow("<mo>{</mo>" + TABLE.format(1, 2)), "[{[M!2x1,w[N!1,e[N!2]]]]"),
        (mrow(PAREN.format(TABLE.format(1, 2))), "[M!()2x1,w[N!1,e[N!2]]]"),
        (mrow("<mo>|</mo><mi>x</mi><mo>|</mo>"), "[M!||1x1,w[V!x]]"),
        ('<mfenced open="[" separators=";"><mi>a</mi><mi>b</mi></mfenced>', "[M!&lsqb;)1x1,w[V!a[;[V!b]]]]"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "[M!()1x2,w[V!a[&comma;],e[V!b]]]"),
        (
            '<mfenced separators=";,"><mi>a</mi><mi>b</mi><mi>c</mi></mfenced>',
            "[M!()1x2,w[V!a[;[V!b[&comma;]]],e[V!c]]]",
        ),
        ('<mfenced separators=" "><mi>a</mi><mi>b</mi></mfenced>', "[M!()1x1,w[V!a[V!b]]]"),
        ("<mfenced/>", "[M!()]"),
        # fractions and roots
        ("<mfrac><mi>p</mi><mi>q</mi></mfrac>", "[O!divide,o[V!p],u[V!q]]"),
        ("<mfrac><mi>p</mi><mi>q</mi><mi>r</mi></mfrac>", "[V!p[V!q[V!r]]]"),
        ("<msqrt><mi>x</mi><mi>y</mi></msqrt>", "[O!root,w[V!x[V!y]]]"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", "[O!root,c[N!3],w[V!x]]"),
        # scripts: beside a typed symbol, over and under an operator, around a box where they would clash
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "[V!x,a[N!2],b[V!i]]"),
        ("<msubsup><mo>∑</mo><mi>i</mi><mn>2</mn></msubsup>", "[∑,o[N!2],u[V!i]]"),
        ("<munder><mi>x</mi><mo>_</mo></munder>", "[V!x,u[_]]"),
        ("<mover><mi>x</mi><mo>^</mo></mover>", "[V!x,o[^]]"),
        ("<munderover><mo>∏</mo><mi>i</mi><mn>2</mn></munderover>", "[∏,o[N!2],u[V!i]]"),
        ("<msup><mrow/><mn>2</mn></msup>", "[W!,a[N!2]]"),
        ("<msub><msub><mi>x</mi><mi>i</mi></msub><mi>j</mi></msub>", "[M!1x1,b[V!j],w[V!x,b[V!i]]]"),
        ("<msup><msub><mi>x</mi><mi>i</mi></msub><mi>j</mi></msup>", "[V!x,a[V!j],b[V!i]]"),
        ("<mover><mrow><mi>x</mi><mi>y</mi></mrow><mo>¯</mo></mover>", "[M!1x1,o[¯],w[V!x[V!y]]]"),
        (
            "<mmultiscripts><mi>R</mi><mi>a</mi><none/><mprescripts/><mi>b</mi><mi>c</mi></mmultiscripts>",
            "[V!R,b[V!a],c[V!c],d[V!b]]",
        ),
        (
            "<mmultiscripts><mi>T</mi><mi>a</mi><none/><none/><mi>b</mi></mmultiscripts>",
            "[V!T,a[W![V!b]],b[V!a]]",
        ),
        ("<mmultiscripts><mi>F</mi><mn>1</mn></mmultiscripts>", "[V!F,b[N!1]]"),
        ("<mmultiscripts><mi>F</mi><none/><mn>2</mn><mn>1</mn></mmultiscripts>", "[V!F,a[N!2],b[W![N!1]]]"),
        ("<mmultiscripts><mi>F</mi><mprescripts/><mn>1</mn></mmultiscripts>", "[V!F,d[N!1]]"),
        # tables
        (
            "<mtable><mtr><mtd><mi>a</mi></mtd><mtd/></mtr><mtr><mtd><mi>c</mi></mtd></mtr></mtable>",
            "[M!2x2,w[V!a,e[W!,e[V!c]]]]",
        ),
        (mrow(TABLE.format(1, 2) + TABLE.format(3, 4)), "[M!2x2,w[N!1,e[N!3,e[N!2,e[N!4]]]]]"),
        (mrow(TABLE.format(1, 2) + "<mtable><mtr><mtd/></mtr></mtable>"), "[M!2x1[M!1x1,w[W!]],w[N!1,e[N!2]]]"),
        ('<menclose notation="box"><mi>x</mi></menclose>', "[box,w[V!x]]"),
        # the first child is what counts
        ("<semantics><mi>x</mi><annotation><foo/></annotation></semantics>", "[V!x]"),
        ("<mstyle><mi>x</mi><mi>y</mi></mstyle>", "[V!x]"),
    ],
)
def test_rules(mathml: str, string: str) -> None:
    assert slt(mathml, letters="italic") == string


def test_what_hangs_on_a_fence_is_lost_with_it_as_in_the_indexes() -> None:
    assert slt(mrow("<mo>(</mo><mi>x</mi><msup><mo>)</mo><mn>2</mn></msup>")) == "[M!()1x1,w[V!x]]"


def test_presentation_is_taken_from_parallel_markup() -> None:
    both = (
        "<semantics><apply><plus/><ci>x</ci></apply>"
        '<annotation-xml encoding="MathML-Presentation"><mrow><mo>+</mo><mi>x</mi></mrow></annotation-xml>'
        '<annotation encoding="application/x-tex">+x</annotation></semantics>'
    )
    assert slt(both) == "[+[V!x]]"
    content_after = '<mi>x</mi><annotation-xml encoding="MathML-Content"><ci>x</ci></annotation-xml>'
    assert slt(content_after) == "[V!x]"


def test_plain_letters_unify_alphabets_and_versions_of_latexml() -> None:
    assert slt("<mi>ℝ</mi>") == slt("<mi>𝑅</mi>") == slt("<mi>R</mi>") == "[V!R]"
    assert slt("<mo>−</mo>") == slt("<mo>-</mo>") == "[-]"
    norm = [slt(mrow(f"<mo>{bar}</mo><mi>x</mi><mo>{bar}</mo>")) for bar in "‖∥"]
    assert norm == ["[M!∥∥1x1,w[V!x]]"] * 2
    assert slt("<mi>ℝ</mi>", letters="italic") == "[V!ℝ]"
    assert slt("<mi>［</mi>") == "[V!&lsqb;]"  # what NFKC brings to light is escaped too
    with pytest.raises(FormulaError, match="letters='bold'"):
        parse_slt("<math><mi>x</mi></math>", letters="bold")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mathml", "kind"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("<math></math>", "empty"),
        ("<math><mrow/></math>", "empty"),
        ("x + y", "no_math"),
        ("<mi>x</mi>", "no_math"),
        ("<math><mi>x</mi><mi>y</mi></math>", "many_roots"),
        ("<math><maction/></math>", "unknown_tag"),
        ("<math><mrow><mi>x</mi><apply/></mrow></math>", "unknown_tag"),
        ("<math>" + "<mrow>" * 10_000 + "<mi>x</mi>" + "</mrow>" * 10_000 + "</math>", "too_deep"),
        ("<math>" + "<mrow>" * 10_000 + "<mi>x</mi>", "too_deep"),
        ("<math>" + " " * 8_000_000 + "<mi>x</mi></math>", "too_long"),
        ("<math><mi>\ud800</mi></math>", "malformed"),
    ],
)
def test_what_has_no_tree_says_why(mathml: str, kind: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse_slt(mathml)
    assert caught.value.kind == kind


def test_a_row_of_a_hundred_thousand_symbols_has_a_tree() -> None:
    tree = parse_slt(f"<math><mrow>{'<mi>x</mi>' * 100_000}</mrow></math>")
    assert len(tree) == 100_000


def test_broken_markup_is_read_as_leniently_as_html() -> None:
    assert slt("<mrow><mi>a</mi><mo><</mo><mi>b</mi>") == "[V!a[<[V!b]]]"
    assert slt("<mi>&alpha;</mi>") == "[V!α]"
    assert parse_slt("<m:math><m:mi>x</m:mi></m:math>").tangent_string() == "[V!x]"
    assert parse_slt("<MATH><MI>x</MI></MATH>").tangent_string() == "[V!x]"
    assert parse_slt("<p>Let <math><mi>x</mi></math> be</p>").tangent_string() == "[V!x]"
    assert parse_slt('<?xml version="1.0" encoding="UTF-8"?> <math><mi>π</mi></math> ').tangent_string() == "[V!π]"


def test_entities_are_neither_expanded_nor_fetched(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    laughs = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(20))
    attacks = [
        f'<!DOCTYPE math [<!ENTITY l0 "lol">{laughs}]><math><mi>&l20;</mi></math>',
        f'<!DOCTYPE math [<!ENTITY s SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]><math><mi>&s;</mi></math>',
    ]
    for attack in attacks:
        string = parse_slt(attack).tangent_string()
        assert len(string) < 20
        assert "secret" not in string


TAGS = [
    "mi",
    "mn",
    "mo",
    "mrow",
    "msub",
    "msup",
    "msubsup",
    "mfrac",
    "msqrt",
    "mroot",
    "mtable",
    "mtr",
    "mtd",
    "munder",
]
TAGS += [
    "mover",
    "munderover",
    "mmultiscripts",
    "mprescripts",
    "none",
    "mfenced",
    "menclose",
    "mstyle",
    "merror",
    "foo",
]
TEXTS = st.sampled_from(["x", "(", ")", "|", ",", "[", "]", "{", "}", "∑", "!!", "?", "\u2062", "𝑥", " ", "&amp;", ""])
MATHML = st.recursive(
    st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["mi", "mn", "mo", "mtext"]), TEXTS),
    lambda children: st.builds(
        lambda tag, inner: f"<{tag}>{''.join(inner)}</{tag}>", st.sampled_from(TAGS), st.lists(children, max_size=5)
    ),
    max_leaves=30,
)


def assert_well_formed(tree: FormulaTree) -> None:
    assert len(tree.labels) == len(tree.parents) == len(tree.edge_labels) > 0
    assert tree.parents[0] == -1
    assert all(0 <= parent < node for node, parent in enumerate(tree.parents) if node)
    siblings = list(zip(tree.parents, tree.edge_labels, strict=True))
    assert len(set(siblings)) == len(siblings)  # one child an edge
    string = tree.tangent_string()
    assert string.count("[") == string.count("]") == len(tree)


@settings(max_examples=300, deadline=None)
@given(st.lists(MATHML, max_size=3))
def test_any_markup_gives_a_tree_or_a_formula_error(parts: list[str]) -> None:
    for mathml in (f"<math>{''.join(parts)}</math>", f"<math><mrow>{''.join(parts)}</mrow></math>"):
        for letters in ("plain", "italic"):
            try:
                tree = parse_slt(mathml, letters=letters)  # type: ignore[arg-type]
            except FormulaError:
                continue
            assert_well_formed(tree)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="<>/=mathirow \"'&;![]-?", max_size=200))
def test_any_text_gives_a_tree_or_a_formula_error(text: str) -> None:
    for mathml in (text, f"<math>{text}</math>"):
        try:
            assert_well_formed(parse_slt(mathml))
        except FormulaError:
            continue


@needs_shared
@pytest.mark.shared
def test_the_original_agrees_on_every_official_topic_formula() -> None:
    """String, labels, their order, and edges, of the 1,850 formulas that have an SLT."""
    compared = 0
    with (TANGENT / "oracle_2020_2021.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            formula = json.loads(line)
            if formula["slt_string"] is None:
                continue
            tree = parse_slt(formula["pmml"], letters="italic")
            assert tree.tangent_string() == formula["slt_string"], formula["formula_id"]
            assert list(tree.labels) == formula["slt_nodes"]
            assert sorted(tree.edges()) == sorted(map(tuple, formula["slt_edges"]))
            normal = unicodedata.normalize("NFKC", formula["slt_string"]).replace("\u2212", "-")
            assert parse_slt(formula["pmml"]).tangent_string() == normal
            compared += 1
    assert compared == 1850


@needs_shared
@pytest.mark.shared
def test_the_worked_examples_agree() -> None:
    examples = json.loads((TANGENT / "worked_examples.json").read_text(encoding="utf-8"))
    for example in examples:
        assert parse_slt(example["pmml"], letters="italic").tangent_string() == example["slt"], example["latex"]
