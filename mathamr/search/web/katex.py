"""KaTeX, which typesets formulas in a browser, from files that come with this package.

A page of one file, such as a report, takes it in whole, style, fonts and program; formulas between dollar signs
are then typeset in every element of the class ``math``, and an element of the class ``latex`` is one formula. Nothing
is loaded from elsewhere:

>>> page = f"<!doctype html><title>Report</title>{inline()}<p class='math'>Let $x^2 = 2$.</p>"
>>> page.count("<script>"), page.count("<style>"), "url(fonts/" in page, "http://" in style()
(3, 1, False, False)

``katex/`` is the npm package ``katex`` 0.19.1, cut down to what browsers of today use: of three forms of each font the
style names woff2 alone. The program is under the MIT licence (``katex/LICENSE``), the fonts under the SIL Open Font
License 1.1, as each says within.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("katex")
PROGRAMS = (FOLDER / "katex.min.js", Path(__file__).with_name("page") / "typeset.js")
_FONT = re.compile(r"url\((fonts/[\w-]+\.woff2)\)")


@cache
def inline() -> str:
    """HTML for the head of a page of one file, some 700 kB: KaTeX, and a call of ``typeset`` once it is loaded.

    What the page adds later is typeset by ``typeset(element)``, a function of ``page/typeset.js``.
    """
    start = 'document.addEventListener("DOMContentLoaded", () => typeset(document));'
    scripts = (*(program.read_text(encoding="utf-8") for program in PROGRAMS), start)
    return "\n".join((f"<style>{style()}</style>", *(f"<script>{script}</script>" for script in scripts))) + "\n"


@cache
def style() -> str:
    """KaTeX's style sheet with its fonts in it, as ``data:`` URLs."""

    def font(match: re.Match[str]) -> str:
        content = base64.b64encode((FOLDER / match[1]).read_bytes()).decode("ascii")
        return f"url(data:font/woff2;base64,{content})"

    return _FONT.sub(font, (FOLDER / "katex.min.css").read_text(encoding="utf-8"))
