"""Settings of the text track: types and meanings. The values and their sources are in ``conf/text``.

Contradictory settings are refused before anything is loaded:

>>> from mathamr.default_settings import values
>>> settings = values("text", "minilm")
>>> TextConfig(**settings).batch_size
32
>>> TextConfig(**settings | {"loss": "triplet"})  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: text.loss=triplet compares a document with hard negatives, but text.negatives=0 draws ...
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from graphs.errors import ConfigError
from mathamr.text.encoder import DTYPES, POOLINGS, Opening, place_of
from mathamr.training.config import LEAST, PRECISIONS, LearningConfig
from mathamr.training.limits import check_bounds, check_negatives

LOSSES = ("mnrl", "symmetric", "maxsim", "triplet", "cosine")
_HARD_NEGATIVES = ("triplet", "cosine")  # losses that use no other negatives
NEGATIVE_SOURCES = ("bm25", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextConfig(LearningConfig, Opening):
    """Text encoder and its training, with the settings of :class:`Opening` and :class:`LearningConfig`.

    No two pairs of a batch share a query or a document. ``epochs`` = 0 leaves the encoder as it is; ``precision`` is
    then that of encoding. Biases and normalisation have no weight decay.

    Attributes:
        encoder: name for :func:`mathamr.text.encoder.open_encoder`; ``tiny`` is made on the collection.
        max_length: largest number of tokens of a text; longer texts are cut. None: the encoder's limit.
        late_interaction: search by MaxSim over the vectors of tokens, instead of one vector for each text. Training
            uses them if ``loss`` is ``maxsim``.
        linearize: write formulas in a collection's posts by :func:`mathamr.text.linearize.linearize`, not as typed; a
            separate file of pairs is left as it is.
        separate: use two encoders, for queries and for documents, equal at the start, instead of one.
        loss: ``mnrl`` (MultipleNegativesRanking: the query's document against all others of the batch),
            ``symmetric`` (the mean of that loss in both directions), ``maxsim`` (as ``mnrl``, by MaxSim over the
            vectors of tokens, for ``late_interaction``; one process only, without ``mini_batch``), ``triplet`` or
            ``cosine`` (mean squared error of the cosine, 1 for the query's document, 0 for hard negatives); the last
            two use only hard negatives.
        scale: factor of cosines in ``mnrl``, ``symmetric``, ``maxsim`` and the validation loss; 1/temperature.
        margin: margin of ``triplet``: difference of cosines between the query's document and each hard negative.
        matryoshka: dimensions of cut vectors over which the loss is summed, the full dimension first; or shares of it,
            1.0 first. None: whole vectors only.
        guide: encoder that is not trained, by a name for :func:`mathamr.text.encoder.open_encoder`. A document of a
            batch that it scores above the query's own document is not used as a negative (GISTEmbed, arXiv:2402.16829).
            For ``mnrl``, ``symmetric`` and ``maxsim``. None: no guide.
        mini_batch: texts encoded at once. A batch is then encoded twice, without and with gradient (the cached form
            of each loss), which bounds memory and does not change the gradient. None: all at once.
        gradient_accumulation: batches for each optimizer step of fine-tuning; queries are compared within a batch.
        gradient_checkpointing: compute activations again in the backward pass, in less memory and more time.
        lora: rank of the additions to linear layers that are trained instead of all weights (LoRA), with the extra
            ``lora``; 0: all weights.
        warmup: share of all steps in which the learning rate rises linearly from 0; it then falls linearly to 0.
        pretraining_epochs: passes of masked language modelling over the collection's texts before fine-tuning; 0: none.
        pretraining_window: number of tokens of a window; longer texts are cut into several windows.
        pretraining_overlap: tokens that a window shares with the one before it.
        pretraining_mask: share of the tokens that are masked.
        pretraining_batch_size: windows in a batch.
        pretraining_texts: largest number of texts to pretrain on; if there are more, a random sample is used, the same
            for every seed. None: all.
        pretraining_learning_rate: learning rate of pretraining; warm-up and weight decay are those of fine-tuning.
    """

    encoder: str
    max_length: int | None
    late_interaction: bool
    linearize: bool
    separate: bool
    loss: str
    scale: float
    margin: float
    matryoshka: list[float] | None
    guide: str | None
    mini_batch: int | None
    gradient_accumulation: int
    gradient_checkpointing: bool
    lora: int
    warmup: float
    pretraining_epochs: int
    pretraining_window: int
    pretraining_overlap: int
    pretraining_mask: float
    pretraining_batch_size: int
    pretraining_learning_rate: float
    pretraining_texts: int | None

    def __post_init__(self) -> None:
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise ConfigError(f"text.pooling={self.pooling} is not one of {', '.join(POOLINGS)}, or null")
        if self.revision is not None and (self.encoder == "tiny" or Path(place_of(self.encoder)).is_dir()):
            raise ConfigError(
                f"text.revision={self.revision} selects a version of an encoder on the Hugging Face hub, but "
                f"text.encoder={self.encoder} is a folder on this machine; use text.revision=null"
            )
        check_bounds("text", self, at_least=_AT_LEAST, positive=_POSITIVE, one_of=_ONE_OF)
        for name in ("validation_fraction", "pretraining_mask"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"text.{name}={getattr(self, name)} must lie between 0 and 1, both excluded")
        hard, tokens = self.loss in _HARD_NEGATIVES, self.learns_tokens
        for wrong, message in (
            (
                not 0 <= self.warmup < 1,
                f"text.warmup={self.warmup} is a share of all steps; it must be at least 0 and less than 1",
            ),
            (
                hard and not self.negatives,
                f"text.loss={self.loss} compares a document with hard negatives, but text.negatives=0 draws none; "
                "use at least 1",
            ),
            (
                self.guide == "tiny",
                "text.guide=tiny is made on the collection and knows nothing; use a trained encoder",
            ),
            (
                hard and self.guide is not None,
                f"text.guide={self.guide} selects negatives among the documents of a batch, which "
                f"text.loss={self.loss} does not use; use another loss, or no guide",
            ),
            *(
                (
                    tokens and getattr(self, name) is not None,
                    f"text.{name}={getattr(self, name)} does not work with text.loss=maxsim, whose texts have several "
                    f"vectors; use text.{name}=null",
                )
                for name in ("mini_batch", "matryoshka")
            ),
        ):
            if wrong:
                raise ConfigError(message)
        check_negatives("text", self)
        cuts = self.matryoshka
        if cuts is not None and not (cuts and all(0 < cut < math.inf for cut in cuts)):
            raise ConfigError(f"text.matryoshka={cuts} must be dimensions or shares above 0, or null")
        if self.dtype != "fp32" and (self.epochs or self.pretraining_epochs):
            raise ConfigError(
                f"text.dtype={self.dtype} rounds away the small steps of training; use text.precision={self.dtype}, or "
                "text.epochs=0"
            )
        if self.truncate_dim is not None and self.late_interaction:
            raise ConfigError("text.truncate_dim cuts the vector of a text; text.late_interaction=true has none")
        if self.pretraining_overlap >= self.pretraining_window // 2:
            raise ConfigError(
                f"text.pretraining_overlap={self.pretraining_overlap} must be less than half of "
                f"text.pretraining_window={self.pretraining_window}"
            )

    @property
    def learns_tokens(self) -> bool:
        """True if the loss compares vectors of tokens."""
        return self.loss == "maxsim"

    @property
    def opening(self) -> Opening:
        """Return the settings for opening the encoder."""
        return Opening(**{one.name: getattr(self, one.name) for one in fields(Opening)})

    def set_away_from_default(self) -> dict[str, Any]:
        """Return the values, without defaults of :class:`Opening` and of later settings: keys do not depend on them."""
        defaults = {**asdict(Opening()), **_LATER}
        return {name: value for name, value in asdict(self).items() if (name, value) not in defaults.items()}


_LATER = {
    "pretraining_texts": None,
    "gradient_accumulation": 1,
    "gradient_checkpointing": False,
    "lora": 0,
    "guide": None,
}
_ONE_OF = {"loss": LOSSES, "negative_source": NEGATIVE_SOURCES, "precision": PRECISIONS, "dtype": DTYPES}
_POSITIVE = ("scale", "margin", "learning_rate", "grad_clip", "pretraining_learning_rate")
_AT_LEAST = {
    **LEAST,
    "max_length": 4,
    "truncate_dim": 1,
    "mini_batch": 1,
    "gradient_accumulation": 1,
    "lora": 0,
    "epochs": 0,
    "pretraining_epochs": 0,
    "pretraining_window": 8,
    "pretraining_overlap": 0,
    "pretraining_batch_size": 1,
    "pretraining_texts": 1,
}
