"""graphs.formulas.drawing: text that shows the shape, SVG that is well-formed and does not overlap."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.formulas.content import parse_opt
from graphs.formulas.drawing import indented, svg
from graphs.formulas.presentation import parse_slt
from graphs.formulas.tree import FormulaTree

FRACTION = "<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><msqrt><mi>b</mi></msqrt></mfrac>"
SLT = parse_slt(f"<math><mrow><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo>{FRACTION}<mi>c</mi></mrow></math>")
OPT = parse_opt("<math><apply><minus/><apply><plus/><ci>a</ci><ci>b</ci></apply><cn>1</cn></apply></math>")
NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_indented_text_reads_baselines_downwards() -> None:
    lines = ["V!x", "  a  N!2", "n  =", "n  O!divide", "  o  V!a", "  n  +", "  n  N!1"]
    lines += ["  u  O!root", "    w  V!b", "n  V!c"]
    assert indented(SLT).splitlines() == lines
    assert indented(OPT).splitlines() == ["O!minus", "  0  U!plus", "    0  V!a", "    0  V!b", "  1  N!1"]


def places(drawing: str) -> list[tuple[str, float, float]]:
    """Label and place of every node of a drawing."""
    root = ElementTree.fromstring(drawing)  # noqa: S314 - our own document
    texts = [text for text in root.iter(f"{NAMESPACE}text") if text.get("font-size") == "14"]
    return [(text.text or "", float(text.get("x", "")), float(text.get("y", ""))) for text in texts]


def test_a_baseline_runs_to_the_right_and_scripts_stand_where_they_belong() -> None:
    place = {label: (x, y) for label, x, y in places(svg(SLT))}
    assert place["V!x"][1] == place["="][1] == place["O!divide"][1] == place["V!c"][1]
    assert place["V!x"][0] < place["="][0] < place["O!divide"][0] < place["V!c"][0]
    assert place["N!2"][1] < place["V!x"][1]
    assert place["V!a"][1] < place["O!divide"][1] < place["O!root"][1] < place["V!b"][1]


def test_an_operator_stands_above_the_middle_of_its_operands() -> None:
    place = {label: (x, y) for label, x, y in places(svg(OPT))}
    assert place["O!minus"][1] < place["U!plus"][1] == place["N!1"][1] < place["V!a"][1]
    assert place["U!plus"][0] == pytest.approx((place["V!a"][0] + place["V!b"][0]) / 2)


@pytest.mark.parametrize("trees", [(SLT,), (OPT,), (SLT, OPT)])
def test_no_two_nodes_cover_each_other(trees: tuple[FormulaTree, ...]) -> None:
    root = ElementTree.fromstring(svg(*trees))  # noqa: S314 - our own document
    boxes = [
        tuple(float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
        for rect in root.iter(f"{NAMESPACE}rect")
        if rect.get("rx")
    ]
    assert len(boxes) == sum(map(len, trees))
    for i, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:i]:
            apart = x >= other_x + other_width or other_x >= x + width
            assert apart or y >= other_y + other_height or other_y >= y + height
    right, bottom = float(root.get("width", "")), float(root.get("height", ""))
    assert all(x >= 0 and x + width <= right and y >= 0 and y + height <= bottom for x, y, width, height in boxes)


def test_no_edge_of_a_layout_crosses_a_node() -> None:
    inner = f"<mrow><mo>(</mo>{FRACTION}<mo>)</mo></mrow>"
    tree = parse_slt(f"<math><mrow><msup><mi>x</mi>{inner}</msup><munder><mo>∑</mo>{FRACTION}</munder></mrow></math>")
    root = ElementTree.fromstring(svg(tree))  # noqa: S314 - our own document
    boxes = [
        (float(rect.get("x", "")), float(rect.get("y", "")), float(rect.get("width", "")))
        for rect in root.iter(f"{NAMESPACE}rect")
        if rect.get("rx")
    ]
    lines = [line.get("points", "").split() for line in root.iter(f"{NAMESPACE}polyline")]
    assert len(lines) == len(tree) - 1
    for line in lines:
        corners = [tuple(map(float, point.split(","))) for point in line]
        for (left, top), (right, bottom) in pairwise(corners):
            for part in range(1, 50):
                x, y = left + (right - left) * part / 50, top + (bottom - top) * part / 50
                assert not any(bx < x < bx + width and by < y < by + 26 for bx, by, width in boxes)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20))
def test_any_label_is_escaped(label: str) -> None:
    drawing = svg(FormulaTree("slt", (f"V!{label}", "<&>"), (-1, 0), ("", "n")), title=label)
    assert "<&>" in [text for text, _, _ in places(drawing)]


def test_a_long_formula_is_drawn() -> None:
    tree = parse_slt(f"<math><mrow>{'<mi>x</mi>' * 3_000}</mrow></math>")
    assert svg(tree).count("<rect") == 3_001
