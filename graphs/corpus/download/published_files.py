"""ARQMath's files as the lab publishes them: names, rounded sizes, and what is impossible without each.

>>> [file.path for file in published_files(["collection"])]
['Collection/Posts.V1.3.zip', 'Collection/PostLinks.V1.3.xml', 'Collection/README_DATA.md']
>>> published_files(["qrels"])[0].path
'Evaluation/ Scripts & Qrels/ARQMath-1/Task 1 /qrel_official_task1'

The list is ``published_files.json``. It names what this project reads, not everything that is published.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from graphs.corpus.download import PARTS
from graphs.corpus.download.web import WebFile


def published_url() -> str:
    """Return the URL that the published paths are below."""
    return str(_published()["base"])


def published_files(parts: Sequence[str] = PARTS) -> list[WebFile]:
    """Return the published files of ``parts``, in the order of :data:`PARTS`."""
    listed = [
        WebFile(
            one["path"], one["part"], one.get("bytes"), one.get("without", ""), instead=tuple(one.get("instead", ()))
        )
        for one in _published()["files"]
    ]
    return [file for part in PARTS if part in parts for file in listed if file.part == part]


@cache
def _published() -> Any:
    return json.loads(files(__package__).joinpath("published_files.json").read_text(encoding="utf-8"))
