"""AMR by amrlib's sentence parsers, in this process. Their weights are a separate download: see docs/amr.md.

    parser = AmrlibParser("models/model_parse_xfm_bart_large-v0_1_0", device="cuda:0", batch_size=16)

Sentences keep their case and get one graph each. amrlib clips a sentence that is too long for its model with a line in
its log, and a graph that is too long with none. Here the chunk is a failure, ``clipped``, which is divided and parsed
again (:mod:`graphs.amr.completeness`). A chunk with a sentence without a graph is ``incomplete``.
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
from graphs.amr.transition_worker import gpu_problem
from graphs.errors import AMRError, Failure

# Of this module, for the record of a collection. 2: graphs that the model's limit cuts are failures, and are divided.
REVISION = 2


class AmrlibParser:
    """AMR parser of ``amrlib.load_stog_model``.

    Args:
        model_dir: folder with the unpacked weights.
        batch_size: number of sentences parsed at once.
        device: device of the model; None: a GPU if there is one.
        tokenizer: folder of the model's tokenizer; None: the one that the model names, from the local cache or the hub.

    Raises:
        AMRError: no amrlib, no model, a tokenizer that is not there, or a torch without code for the GPU.
    """

    name = "amrlib"

    def __init__(
        self,
        model_dir: str | PathLike[str],
        *,
        batch_size: int,
        device: str | None = None,
        tokenizer: str | PathLike[str] | None = None,
    ) -> None:
        folder = Path(model_dir)
        if not folder.is_dir():
            raise AMRError(f"{folder} is not a folder; unpack a model of amrlib there (docs/amr.md)", kind="no_model")
        try:
            import amrlib
        except ImportError as error:
            raise AMRError(
                "graph.parser=amrlib needs amrlib: pip install amrlib==0.8.1 unidecode", kind="no_package"
            ) from error
        if device is None or device.startswith("cuda"):
            import torch

            if problem := gpu_problem(torch):
                raise AMRError(problem.replace("CUDA_VISIBLE_DEVICES= (empty)", "device=cpu"), kind="no_model")
        options: dict[str, Any] = {"batch_size": batch_size} | ({"device": device} if device else {})
        if tokenizer is not None:
            options["tok_name_or_path"] = str(tokenizer)
        try:
            self._parser = amrlib.load_stog_model(model_dir=str(folder), **options)
        except ImportError as error:  # amrlib imports unidecode, which its installation leaves out
            raise AMRError(
                f"amrlib lacks a package ({error}): pip install amrlib==0.8.1 unidecode", kind="no_package"
            ) from error
        except (OSError, ValueError) as error:
            raise AMRError(
                f"amrlib cannot load {folder}: {' '.join(str(error).split())[:300]}; if it is the tokenizer that is "
                "missing, give its folder by tokenizer=FOLDER (docs/amr.md)",
                kind="no_model",
            ) from error
        self._lengths = _Lengths(self._parser)
        self.version = f"{metadata.version('amrlib')}-{REVISION}"
        self.model = _model_name(folder)

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Return one Penman text or :class:`Failure` for each chunk; raise :class:`AMRError` if the batch fails."""
        sentences = [sentence for chunk in chunks for sentence in chunk]
        self._lengths.begin(sentences)
        try:
            graphs = self._parser.parse_sents(sentences, add_metadata=False)
        except (RuntimeError, ValueError, IndexError, KeyError) as error:  # torch's errors are RuntimeErrors
            raise AMRError(f"amrlib: {type(error).__name__}: {error}", kind="parser_error") from error
        if len(graphs) != len(sentences):
            raise AMRError(f"amrlib gave {len(graphs)} graphs for {len(sentences)} sentences", kind="wrong_number")
        clipped = self._lengths.clipped()
        answers = iter(zip(graphs, clipped, strict=True))
        return [_answer([next(answers) for _ in chunk]) for chunk in chunks]


class _Lengths:
    """Sentences and graphs that reach the limits of a model: amrlib itself only logs the first, and nothing else."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._sentences: Sequence[str] = ()
        self._cut: list[bool] = []  # of each graph, in the order in which they are generated
        model = getattr(parser, "model", None)
        self._watches = all(hasattr(parser, name) for name in ("tokenizer", "max_sent_len", "max_graph_len"))
        if self._watches and model is not None:
            if (defaults := getattr(model, "generation_config", None)) is not None:
                defaults.forced_eos_token_id = None  # BART's would end a graph at the limit as if it were complete
            self._generate = model.generate
            model.generate = self._generated

    def begin(self, sentences: Sequence[str]) -> None:
        """Start a batch: clear the state, and store the sentences."""
        self._sentences, self._cut = sentences, []

    def _generated(self, *arguments: Any, **options: Any) -> Any:
        generated = self._generate(*arguments, **options)
        end = self._parser.tokenizer.eos_token_id
        full = generated.shape[1] >= self._parser.max_graph_len
        self._cut += [bool(full and end not in row[1:].tolist()) for row in generated]
        return generated

    def clipped(self) -> list[bool]:
        """Return whether the sentence or the first candidate graph of each sentence was cut off."""
        sentences = self._sentences
        if not self._watches:
            return [False] * len(sentences)
        most, tokenize = self._parser.max_sent_len, self._parser.tokenizer
        clipped = [len(tokenize(sentence)["input_ids"]) > most for sentence in sentences]
        candidates = len(self._cut) // len(sentences) if sentences else 0
        if candidates:
            # amrlib generates the longest sentence first.
            order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]), reverse=True)
            for place, i in enumerate(order):
                clipped[i] |= self._cut[place * candidates]
        return clipped


def _answer(graphs: Sequence[tuple[str | None, bool]]) -> str | Failure:
    """Return the graph of a chunk, from the graph of each sentence and whether it was clipped."""
    clipped = sum(cut for _, cut in graphs)
    if clipped:
        return Failure("", "amr", "clipped", f"amrlib clipped {clipped} of {len(graphs)} sentences")
    return gathered([graph for graph, _ in graphs])


def gathered(graphs: Sequence[str | None]) -> str | Failure:
    """Join the graphs of a chunk's sentences into one text; a failure if one is missing or cannot be read.

    >>> gathered(["(p / prove-01)", "(h / hold-01)"])
    '(m / multi-sentence :snt1 (p / prove-01) :snt2 (h / hold-01))'
    >>> gathered([None]).kind, gathered(["(p / prove-01)", None]).message
    ('no_graph', 'amrlib gave no readable graph for 1 of 2 sentences')
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
    lost = len(graphs) - len(found)
    if lost and len(graphs) > 1:
        return Failure("", "amr", "incomplete", f"amrlib gave no readable graph for {lost} of {len(graphs)} sentences")
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
