"""Docstrings as Markdown: references such as ``:class:`Post` `` become links, doctests become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([\w.]+)`")
_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Markdown(griffe.Extension):
    """Rewrite every docstring, once it is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            text = _DOCTEST.sub(_block, obj.docstring.value)
            obj.docstring.value = _ROLE.sub(lambda found: _link(found[1], obj), text)


def _block(found: re.Match[str]) -> str:
    """Return a doctest, which ends at an empty line, between fences."""
    indent = found["indent"]
    return f"{indent}```pycon\n{found[0]}\n{indent}```"


def _link(name: str, place: griffe.Object) -> str:
    """Return a link to a name, which may be one of the module or class that the docstring is in."""
    target = name
    owner: griffe.Object | None = place
    while owner is not None and name.split(".")[0] not in ("graphs", "mathamr", "experiments"):
        if (member := owner.members.get(name.split(".")[0])) is not None:
            start = member.target_path if isinstance(member, griffe.Alias) else member.path
            target = ".".join([start, *name.split(".")[1:]])
            break
        owner = owner.parent
    return f'<autoref optional identifier="{target}"><code>{name}</code></autoref>'
