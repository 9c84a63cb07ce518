"""Styles of plotted conditions, distinct in grey and to the colour-blind.

Each has a colour of Okabe and Ito's palette (2008), and a hatch for bars, or a marker and a dash for lines.
"""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#F0E442")
HATCHES = ("", "///", "\\\\\\", "xxx", "..", "+++", "---", "|||")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class PlotStyle:
    """Style of a condition in a plot."""

    colour: str
    hatch: str
    marker: str
    dash: str


def plot_style(number: int) -> PlotStyle:
    """Return the style of the condition with this number; 64 styles differ in more than colour.

    >>> first, second, tenth = plot_style(0), plot_style(1), plot_style(9)
    >>> first.hatch, second.hatch, tenth.colour == second.colour, tenth.hatch == second.hatch
    ('', '///', True, False)
    """
    place = (number + number // len(COLOURS)) % len(HATCHES)
    return PlotStyle(COLOURS[number % len(COLOURS)], HATCHES[place], MARKERS[place], DASHES[number % len(DASHES)])
