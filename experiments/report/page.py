"""A report as one self-contained HTML page: no other file, no request, no program but KaTeX.

    page("Virtual node connectivity", [Heading("Results"), Table(...), Figure(...), Examples(...)])   # "<!doctype ..."

All text comes from files that others may have made, and posts can have any author: everything is escaped here, in one
place. The page also has a policy (CSP) by which a browser refuses every request, and every program without a listed
hash. Without JavaScript everything is readable, and formulas are shown as LaTeX.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from html import escape

from experiments.report.blocks import Block, Code, Examples, Figure, Folded, Found, Heading, Legend, Table, Text
from mathamr.search.web import katex

_GRADES = {3: "high", 2: "medium", 1: "low", 0: "not relevant"}

_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1.5rem 1.5rem 5rem; max-width: 78rem; background: #fff; color: #1a1a1a;
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 2.5rem 0 0.6rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 0.4rem; padding-top: 0.6rem; border-top: 1px solid #ccc; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 0.3rem; }
p { margin: 0.5rem 0; max-width: 50rem; }
nav { font-size: 0.9rem; } nav ul { padding-left: 1.2rem; margin: 0.3rem 0; columns: 3 14rem; }
nav li { break-inside: avoid; }
a { color: #0050a0; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 0.85em; }
pre { background: #f4f4f4; padding: 0.6rem 0.8rem; white-space: pre-wrap; }
.wide { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; font-size: 0.86rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding: 0.2rem 0; font-weight: 600; }
th, td { padding: 0.25rem 0.45rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th { border-bottom: 2px solid #333; vertical-align: bottom; white-space: normal; min-width: 4rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td:first-child { white-space: normal; min-width: 9rem; max-width: 24rem; overflow-wrap: anywhere; }
td.words { white-space: normal; text-align: left; }
.quiet { color: #595959; font-weight: normal; font-style: italic; }
.note { font-size: 0.85rem; color: #444; margin-top: -0.4rem; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 44rem; height: auto; }
figcaption { font-size: 0.85rem; color: #444; max-width: 50rem; }
details { margin: 0.5rem 0; } summary { cursor: pointer; padding: 0.15rem 0; }
details > :not(summary) { margin-left: 1.1rem; }
.post { white-space: pre-line; max-width: 50rem; max-height: 24rem; overflow: auto; }
.topic { border-left: 4px solid #0072b2; padding: 0.1rem 0 0.1rem 0.9rem; margin: 0.6rem 0; }
.found { border: 1px solid #ccc; border-radius: 4px; padding: 0.5rem 0.8rem; margin: 0.5rem 0; font-size: 0.92rem; }
.found header { display: flex; flex-wrap: wrap; gap: 0 1.2rem; font-size: 0.85rem; color: #444; }
.grade { font-weight: 600; color: #1a1a1a; }
.grade::before { content: ""; display: inline-block; width: 0.7em; height: 0.7em; margin-right: 0.4em;
  border: 1px solid #333; }
.grade-0::before { background: #fff; } .grade-1::before { background: #bcd9ec; }
.grade-2::before { background: #56b4e9; } .grade-3::before { background: #00436b; }
.grade-none::before { border-style: dashed; }
dl.nodes { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 0.8rem; font-size: 0.88rem; }
dl.nodes dt { font-weight: 600; } dl.nodes dd { margin: 0; max-height: 12rem; overflow: auto; }
@media print { details::details-content { content-visibility: visible; block-size: auto; }
  .post { max-height: none; } h2 { break-after: avoid; } }
"""


def page(title: str, blocks: Sequence[Block]) -> str:
    """Return the whole page, with a table of contents, and KaTeX if there are formulas."""
    parts = list(_anchored(blocks))
    first = sum(isinstance(block, Heading) and block.level == 1 for block in blocks) == 1
    parts.insert(1 if first else 0, _contents(blocks) if first else f"<h1>{escape(title)}</h1>\n{_contents(blocks)}")
    body = "\n".join(parts)
    formulas = katex.inline() if 'class="math' in body or 'class="latex' in body else ""
    hashes = [_hash(script) for script in re.findall(r"<script>(.*?)</script>", formulas, re.DOTALL)]
    scripts = f"script-src {' '.join(hashes)}; " if hashes else ""
    policy = (
        f"default-src 'none'; {scripts}style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n{formulas}</head>\n<body>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _hash(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _contents(blocks: Sequence[Block]) -> str:
    """Return links to the parts of an experiment, or to several experiments."""
    headings = [(number, block) for number, block in enumerate(blocks) if isinstance(block, Heading)]
    level = 1 if sum(block.level == 1 for _, block in headings) > 1 else 2
    links = [
        f'<li><a href="#part-{number}">{escape(block.text)}</a></li>'
        for number, block in headings
        if block.level == level
    ]
    return f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>\n' if len(links) > 1 else ""


def _anchored(blocks: Sequence[Block]) -> Iterator[str]:
    for number, block in enumerate(blocks):
        if isinstance(block, Heading):
            yield f'<h{block.level} id="part-{number}">{escape(block.text)}</h{block.level}>'
        else:
            yield _html(block, f"part-{number}")


def _html(block: Block, name: str) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
        case Text():
            return f"<p>{escape(block.text)}</p>"
        case Code():
            return f"<pre>{escape(block.text)}</pre>"
        case Table():
            return _table(block)
        case Figure():
            return f"<figure>{block.draw(name)}<figcaption>{escape(block.caption)}</figcaption></figure>"
        case Legend():
            return _legend(block)
        case Examples():
            return _examples(block)
        case Folded():
            inner = "\n".join(_html(one, f"{name}-{number}") for number, one in enumerate(block.blocks))
            return f"<details><summary>{escape(block.summary)}</summary>\n{inner}\n</details>"


def _table(table: Table) -> str:
    def cell(tag: str, place: int, text: str) -> str:
        quiet = place in table.quiet
        words = tag == "td" and place and len(text) > 30
        kind = ' class="quiet"' if quiet else ' class="words"' if words else ""
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{kind}>{escape(text)}</{tag}>"

    head, *lines = table.rows
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    top = "".join(cell("th", place, text) for place, text in enumerate(head))
    body = "\n".join(
        f"<tr>{''.join(cell('td', place, text) for place, text in enumerate(line))}</tr>" for line in lines
    )
    note = f'\n<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="wide"><table>{caption}\n<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>{note}'
    )


def _legend(legend: Legend) -> str:
    entries = "".join(
        f'<dt>{escape(name)}</dt><dd class="{"latex" if kind == "formula" else "math"}">{escape(text)}</dd>'
        for name, kind, text in legend.entries
    )
    return f'<details><summary>{escape(legend.summary)}</summary>\n<dl class="nodes">{entries}</dl>\n</details>'


def _examples(examples: Examples) -> str:
    title = f'<div class="math"><b>{escape(examples.title)}</b></div>' if examples.title else ""
    parts = [f'<div class="topic">{title}<div class="math post">{escape(examples.body)}</div></div>']
    for number, (label, found) in enumerate(examples.results):
        grades = ", ".join("–" if one.grade is None else str(one.grade) for one in found)
        cards = "\n".join(_found(one) for one in found)
        state = " open" if number == 0 else ""
        summary = f"<summary><b>{escape(label)}</b>, relevance {escape(grades)}</summary>"
        parts.append(f"<details{state}>{summary}\n{cards}\n</details>")
    return "\n".join(parts)


def _found(one: Found) -> str:
    words = f"{one.grade} ({_GRADES[one.grade]})" if one.grade in _GRADES else str(one.grade)
    words = "not judged" if one.grade is None else words
    shade = "none" if one.grade is None else min(one.grade, max(_GRADES))
    title = f'<div class="math"><b>{escape(one.title)}</b></div>' if one.title else ""
    return (
        f'<article class="found"><header><span>Rank {one.rank}</span><span>Post {escape(one.post)}</span>'
        f"<span>Score {one.score:.3f}</span>"
        f'<span class="grade grade-{shade}">Relevance: {escape(words)}</span></header>'
        f'{title}<div class="math post">{escape(one.body)}</div></article>'
    )
