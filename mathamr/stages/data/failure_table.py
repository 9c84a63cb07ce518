r"""Tables of posts that failed, one a line with the stage, the kind and the message: NAME.failures.tsv.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "posts.failures.tsv"
>>> write_table([Failure("7", "read", "bad_post", "posts.jsonl:3: no body")], path)
>>> [line.split("\t") for line in path.read_text().splitlines()]
[['post_id', 'stage', 'kind', 'message'], ['7', 'read', 'bad_post', 'posts.jsonl:3: no body']]
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from graphs.errors import Failure, encodable
from graphs.whole_file import write_whole


def write_table(failures: Iterable[Failure], path: Path) -> None:
    """Write failures as tab-separated values below a header line."""
    write_whole(path, table_of(failures))


def table_of(failures: Iterable[Failure]) -> str:
    """Return failures as tab-separated values below a header line."""
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter="\t", lineterminator="\n")
    table.writerow(["post_id", "stage", "kind", "message"])
    table.writerows((one.post_id, one.stage, one.kind, encodable(one.message)) for one in failures)
    return text.getvalue()
