"""Styles of plotted conditions, distinct in grey and to the colour-blind.

Each has a colour of Okabe and Ito's palette (2008), and a hatch for bars, or a marker and a dash for lines.
"""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#F0E442")
HATCHES = ("", "///", "\\\\\\", "xxx", "...", "ooo", "---", "|||")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Look:
    """Style of a condition in a plot."""

    colour: str
    hatch: str
    marker: str
    dash: str


def look(number: int) -> Look:
    """Return the style of the condition with this number; 64 styles differ in more than colour.

    >>> look(0).hatch, look(1).hatch, look(9).colour == look(1).colour, look(9).hatch == look(1).hatch
    ('', '///', True, False)
    """
    place = (number + number // len(COLOURS)) % len(HATCHES)
    return Look(COLOURS[number % len(COLOURS)], HATCHES[place], MARKERS[place], DASHES[number % len(DASHES)])
