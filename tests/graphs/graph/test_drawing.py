"""graphs.graph.drawing: order of what is drawn."""

from graphs.graph.drawing import indented
from graphs.graph.mathamr_plus import decode

TEXT = """(F0 / FORMULA_0
    :opt (F0o0 / U!plus
        :opt-0 (F0o1 / O!minus :opt-0 (F0o2 / V!a) :opt-1 (F0o3 / V!b))
        :opt-0 (F0o4 / V!c)))"""


def test_operands_are_drawn_in_their_order() -> None:
    labels = [line.split()[-1] for line in indented(decode(TEXT, {"FORMULA_0": "7"})).splitlines()[2:]]
    assert labels == ["U!plus", "O!minus", "V!a", "V!b", "V!c"]
