"""A report as one self-contained HTML page: no other file, no request, no program but KaTeX and that of maps.

    page("Virtual node connectivity", [Heading("Results"), Table(...), Figure(...), Examples(...)])   # "<!doctype ..."

All text comes from files that others may have made, and posts can have any author: Jinja2 escapes everything in
``page.html``. The page also has a policy (CSP) by which a browser refuses every request, and every program without a
listed hash. Without JavaScript everything is readable, and formulas are shown as LaTeX.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.report.blocks import Block, Heading
from mathamr.search.web import katex

if TYPE_CHECKING:
    from jinja2 import Template

_MAP = Path(__file__).parent / "figures" / "post_map.js"
_GRADES = {3: "high", 2: "medium", 1: "low", 0: "not relevant"}


def page(title: str, blocks: Sequence[Block]) -> str:
    """Return the whole page, with a table of contents, and KaTeX if there are formulas."""
    headings = [(number, block) for number, block in enumerate(blocks) if isinstance(block, Heading)]
    titles = sum(block.level == 1 for _, block in headings)
    level = 1 if titles > 1 else 2  # several experiments, or the parts of one
    return _template().render(
        title=title,
        blocks=blocks,
        has_title=titles == 1,
        links=[(number, block.text) for number, block in headings if block.level == level],
        kind_of=lambda block: type(block).__name__,
        in_words=_in_words,
        programs=_programs,
    )


@cache
def _template() -> Template:
    """Return the compiled template of a page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def _programs(body: str) -> tuple[str, str]:
    """Return the programs that ``body`` needs, and the policy that lets a browser run nothing else."""
    programs = katex.inline() if 'class="math' in body or 'class="latex' in body else ""
    if '<figure class="map"' in body:
        programs += f"<script>{_MAP.read_text(encoding='utf-8')}</script>\n"
    scripts = re.findall(r"<script>(.*?)</script>", programs, re.DOTALL)
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    hashes = [f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests]
    allowed = f"script-src {' '.join(hashes)}; " if hashes else ""
    return programs, (
        f"default-src 'none'; {allowed}style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'"
    )


def _in_words(grade: int | None) -> str:
    """Return a grade with its meaning.

    >>> _in_words(2), _in_words(4), _in_words(None)
    ('2 (medium)', '4', 'not judged')
    """
    if grade is None:
        return "not judged"
    return f"{grade} ({_GRADES[grade]})" if grade in _GRADES else str(grade)
