"""Judgments in TREC's form: one line for each topic and document.

>>> import tempfile; path = Path(tempfile.mkdtemp()) / "qrels.tsv"
>>> _ = path.write_text("A.1\\t0\\t255\\t3\\nA.1\\t0\\t154\\t0\\n")
>>> read_qrels(path)
[Judgment(topic_id='A.1', doc_id='255', grade=3), Judgment(topic_id='A.1', doc_id='154', grade=0)]
"""

from __future__ import annotations

import re
from pathlib import Path

from graphs.corpus.post import Judgment
from graphs.errors import CorpusError


def read_qrels(path: Path) -> list[Judgment]:
    """``topic 0 doc grade`` lines (tabs or spaces, LF or CRLF, grades like ``2`` or ``2.0``, 0 to 3).

    Raises CorpusError, with the line, for anything else, and for a document that is judged twice with two grades.
    """
    judgments: dict[tuple[str, str], Judgment] = {}
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, 1):
                columns = text.split()
                if not columns:
                    continue
                if len(columns) != 4:
                    message = f"{len(columns)} columns, a qrels line has 4: topic, 0, document, grade"
                    raise CorpusError(message, path=path, line=line)
                topic, _, doc, written = columns
                grade = _grade(written)
                if grade is None:
                    raise CorpusError(f"grade {written!r} is not one of 0, 1, 2, 3", path=path, line=line)
                before = judgments.setdefault((topic, doc), Judgment(topic, doc, grade))
                if before.grade != grade:
                    message = f"{doc} has grade {grade} here and {before.grade} before, for topic {topic}"
                    raise CorpusError(message, path=path, line=line)
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read as UTF-8 text: {error}", path=path) from error
    return list(judgments.values())


def _grade(written: str) -> int | None:
    return int(written[0]) if re.fullmatch(r"[0-3](?:\.0*)?", written) else None
