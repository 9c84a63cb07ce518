"""AMR by amrlib's sentence parsers, in this process. Their weights are a separate download: see docs/amr.md.

    parser = AmrlibParser("models/model_parse_xfm_bart_large-v0_1_0", device="cuda:0", batch_size=16)

Sentences keep their case and get one graph each. A sentence without a graph is a failure of its chunk only if the chunk
has no other graph.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any

from graphs.amr.document import merge
from graphs.amr.penman_text import decode, encode
from graphs.errors import AMRError, Failure


class AmrlibParser:
    """AMR parser of ``amrlib.load_stog_model``.

    ``model_dir`` is the folder with the unpacked weights, ``batch_size`` counts sentences; the default ``device`` is a
    GPU if there is one."""

    name = "amrlib"

    def __init__(self, model_dir: str | PathLike[str], *, batch_size: int, device: str | None = None) -> None:
        folder = Path(model_dir)
        if not folder.is_dir():
            raise AMRError(f"{folder} is not a folder; unpack a model of amrlib there (docs/amr.md)", kind="no_model")
        try:
            import amrlib
        except ImportError as error:
            raise ImportError("AmrlibParser needs amrlib: pip install amrlib==0.8.1") from error
        options: dict[str, Any] = {"batch_size": batch_size} | ({"device": device} if device else {})
        self._parser = amrlib.load_stog_model(model_dir=str(folder), **options)
        self.version = metadata.version("amrlib")
        self.model = _model_name(folder)

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Return one Penman text or :class:`Failure` for each chunk; raise :class:`AMRError` if the batch fails."""
        sentences = [sentence for chunk in chunks for sentence in chunk]
        try:
            graphs = self._parser.parse_sents(sentences, add_metadata=False)
        except (RuntimeError, ValueError, IndexError, KeyError) as error:  # torch's errors are RuntimeErrors
            raise AMRError(f"amrlib: {type(error).__name__}: {error}", kind="parser_error") from error
        if len(graphs) != len(sentences):
            raise AMRError(f"amrlib gave {len(graphs)} graphs for {len(sentences)} sentences", kind="wrong_number")
        answers = iter(graphs)
        return [gathered([next(answers) for _ in chunk]) for chunk in chunks]


def gathered(graphs: Sequence[str | None]) -> str | Failure:
    """Join the readable graphs of a chunk's sentences into one text.

    >>> gathered(["(p / prove-01)", None, "(h / hold-01)"])
    '(m / multi-sentence :snt1 (p / prove-01) :snt2 (h / hold-01))'
    >>> gathered([None]).kind
    'no_graph'
    """
    found = []
    problem = AMRError("amrlib gave no graph for any sentence", kind="no_graph")
    for text in graphs:
        if text is None:
            continue
        try:
            found.append(decode(text, forest=True))
        except AMRError as error:
            problem = error
    if not found:
        return Failure("", "amr", problem.kind, problem.message)
    return encode(merge(found).graph)


def _model_name(folder: Path) -> str:
    """Return the model's name from ``amrlib_meta.json``, else the folder's."""
    try:
        meta = json.loads((folder / "amrlib_meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return folder.name
    return " ".join(str(meta[key]) for key in ("model_type", "version") if key in meta) or folder.name
