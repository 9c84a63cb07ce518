"""Fine-tuning of a text encoder on pairs, with contrastive losses and hard negatives.

    encoder = open_encoder("minilm")
    result = finetune(TextConfig(...), encoder, PairFile(Path("pairs.jsonl")), out=Path("model"), seed=42, log=print)
    result.best, result.before.mrr, result.best_val_mrr     # (Path('model/best'), 0.61, 0.68)
    open_encoder(str(result.best))

``OUT/best`` is a folder of sentence-transformers, of the epoch with the lowest validation loss. The trainer and the
losses are those of sentence-transformers. The same call resumes an interrupted run from the trainer's checkpoint, and
trains nothing if the run has finished (:mod:`mathamr.text.training.runs`). Under ``torchrun`` every rank makes the same
call. A batch is shared by all ranks, and each query is compared with the documents of all of them, so the gradient
equals that of one rank, up to rounding and dropout, which each rank draws independently. With ``text.loss=maxsim`` one
process trains.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from graphs.errors import ConfigError, TrainingError
from graphs.processes import batched
from mathamr import maxsim
from mathamr.evaluation.efficiency import peak_device_memory
from mathamr.maxsim import VectorSets
from mathamr.text.config import TextConfig
from mathamr.text.encoder import Side, TextEncoder, identity
from mathamr.text.pairs import PairFile
from mathamr.text.training.adapting import fingerprint, limit_length, own_randomness, separate, world_of
from mathamr.text.training.batches import KnownPairs, Rows, draw_negatives, no_duplicates
from mathamr.text.training.tasks import Task
from mathamr.training.distributed import arithmetic
from mathamr.training.interruption import listen
from mathamr.training.loop import Log, Progress
from mathamr.training.losses import info_nce
from mathamr.training.pairs import answers_of, known_positives
from mathamr.training.result import MRR_PAIRS, QUERIES_AT_ONCE, EpochRecord, ValidationScore, rank_of
from mathamr.training.seeds import AUGMENTATION, NEGATIVES, stream

TOKEN_PAIRS = 500
"""Largest number of validation pairs whose token vectors are compared: 200 MB of MiniLM's, and seconds of a core."""

# Settings that results do not depend on; a run may resume with other values.
_FREE = ("checkpoint_every", "gradient_checkpointing", "late_interaction", "linearize")


Miner = Callable[[TextEncoder], tuple[Rows, dict[str, Any]]]
"""Function from the current encoder to hard negatives of each pair, int64 (n, negative_pool), -1 after the last, and a
record (:class:`mathamr.negatives.text.Mining`)."""


@dataclass(frozen=True)
class Finetuned:
    """Result of fine-tuning.

    Attributes:
        best: folder of the encoder with the lowest validation loss.
        before: validation scores of the original encoder.
        best_val_loss: validation loss of ``best``. ``best_val_mrr`` is the mean reciprocal rank of the document
            of each query among all held-out documents.
        history: record of each epoch; empty if ``text.epochs`` is 0.
        stopped_early: True if the validation loss stopped falling before the last epoch.
        loss_curve: training loss of every step.
        costs: columns of a table of results: time_per_epoch_s and pairs_per_second (if anything was trained, without
            validation), epochs, train_pairs, best_val_loss, best_val_mrr, parameters, peak_memory_bytes.
    """

    best: Path
    before: ValidationScore
    best_val_loss: float
    best_val_mrr: float
    history: tuple[EpochRecord, ...]
    stopped_early: bool
    loss_curve: tuple[float, ...]
    costs: Mapping[str, float]


def finetune(
    config: TextConfig,
    encoder: TextEncoder,
    pairs: PairFile,
    *,
    out: Path,
    seed: int,
    log: Log | None = None,
    validation: PairFile | None = None,
    mining: Callable[[TextConfig, PairFile, Rows], Miner] | None = None,
    resume: Literal["auto", "never"] = "auto",
    progress: Progress | None = None,
) -> Finetuned:
    """Fine-tune ``encoder`` in place, and save it to ``out``/best; both have the weights of the best epoch.

    Args:
        pairs: training pairs; without ``validation``, the share ``config.validation_fraction`` of them is held out.
        seed: seed of order, negatives and dropout. The held-out pairs do not depend on it.
        log: function that receives records of the kinds start, step, epoch and negatives, on rank 0 only.
        validation: separate pairs that select the best epoch.
        mining: source of hard negatives for the training pairs; required if ``config.negatives`` is above 0.
        resume: ``auto`` resumes an interrupted run from ``out``, ``never`` starts anew.
        progress: function called with the number of steps done since its last call.

    Raises:
        ConfigError: settings that contradict each other, or do not fit the encoder or the pairs.
        TrainingError: too few pairs, a gradient that is not finite, a checkpoint of another run, or a full disk.
        Interrupted: SIGTERM, SIGUSR1 or Ctrl-C; the same call resumes.
    """
    if resume not in ("auto", "never"):
        raise ConfigError(f"resume={resume} is not one of auto, never")
    from mathamr.text.training.runs import learn  # slow to import

    encoder.model.float()  # steps of training are too small for a checkpoint in bf16
    came_as = fingerprint(encoder)
    limit_length(encoder, config.max_length)
    if config.separate:
        separate(encoder)
    model = encoder.model
    with world_of(model) as world, listen() as signal, own_randomness(world):
        if config.learns_tokens and world.size > 1:
            raise ConfigError("text.loss=maxsim trains in one process; use train.processes=1, or no torchrun")
        train, held_out = pairs.learned, pairs.learned[:0] if validation is None else validation.learned
        if validation is None:
            validation = pairs
            train, held_out = pairs.hold_out(config.validation_fraction)
        miner = None if mining is None else mining(config, pairs, train)
        values = config.set_away_from_default()
        if config.guide is not None:
            values["guide"] = identity(config.guide)
        depends_on = {
            "text": {key: value for key, value in values.items() if key not in _FREE},
            "training": {"seed": seed, "pairs": pairs.hash, "validation": validation.hash, "encoder": came_as},
        }
        most = TOKEN_PAIRS if config.learns_tokens else MRR_PAIRS
        scored = ValidationPairs(validation, held_out, most)
        task = _Pairs(config, encoder, model, seed, world, pairs, train, scored, miner)
        torch.manual_seed(stream(seed, AUGMENTATION))
        state = learn(
            task,
            depends_on,
            out=out,
            signal=signal,
            resume=resume,
            about={"train_pairs": len(train), "validation_pairs": len(held_out)},
            log=log,
            progress=progress,
            tokens=config.learns_tokens,
        )
        assert state.before is not None
        costs = {
            "epochs": len(state.epochs),
            "train_pairs": len(train),
            "best_val_loss": state.before.loss if state.best_val_loss is None else state.best_val_loss,
            "best_val_mrr": state.before.mrr if state.best_val_mrr is None else state.best_val_mrr,
            "parameters": encoder.parameters,
            "peak_memory_bytes": peak_device_memory(world.device),
        }
        if state.epochs:
            seconds = max(state.train_seconds, 1e-9)
            costs["time_per_epoch_s"] = seconds / len(state.epochs)
            trained = len(state.epochs) * task.batches_per_epoch * config.batch_size
            costs["pairs_per_second"] = trained / seconds
        return Finetuned(
            best=out / "best",
            before=state.before,
            best_val_loss=costs["best_val_loss"],
            best_val_mrr=costs["best_val_mrr"],
            history=tuple(state.epochs),
            stopped_early=len(state.epochs) < config.epochs,
            loss_curve=tuple(state.losses),
            costs=costs,
        )


def tidy(out: Path) -> None:
    """Remove the files of ``out`` that only an unfinished run needs, about four times the size of the model."""
    (out / "best.safetensors").unlink(missing_ok=True)
    for folder in (*out.glob("checkpoint-*"), out / ".writing"):
        shutil.rmtree(folder, ignore_errors=True)


class ValidationPairs:
    """Validation pairs of an encoder: at most the first ``most``, kept in memory."""

    def __init__(self, pairs: PairFile, rows: Rows, most: int = MRR_PAIRS) -> None:
        sampled = [pairs[row] for row in rows[:most]]
        self.queries = list(dict.fromkeys(pair.query for pair in sampled))
        self.documents = list(dict.fromkeys(pair.document for pair in sampled))
        others = (pairs[row] for row in np.setdiff1d(np.arange(len(pairs)), pairs.learned))
        self.pairs = [(pair.query, pair.document) for pair in sampled]
        self.positives = answers_of(self.pairs, ((other.query, other.document) for other in others))

    def score(self, queries: VectorSets, documents: VectorSets, scale: float) -> ValidationScore:
        """Return cross-entropy and reciprocal rank of each pair's document among all, from n and m sets of vectors.

        Other documents that answer the query are left out of the comparison.
        """
        row_of = {text: i for i, text in enumerate(self.queries)}
        column_of = {text: i for i, text in enumerate(self.documents)}
        loss, reciprocal = 0.0, 0.0
        for some in batched(self.pairs, QUERIES_AT_ONCE):
            some_queries = [query for query, _ in some]
            rows = torch.tensor([row_of[query] for query in some_queries], device=queries.ptr.device)
            scores = maxsim.scores(queries.select(rows), documents, normalize=True)
            own = torch.tensor([column_of[document] for _, document in some], device=scores.device)
            known = known_positives(some_queries, self.documents, self.positives).to(scores.device)
            temperature = torch.tensor(1 / scale, device=scores.device)
            loss += len(some) * float(info_nce(scores, temperature, targets=own, known_positives=known))
            reciprocal += float((1 / rank_of(scores, own, known)).sum())
        return ValidationScore(loss / len(self.pairs), reciprocal / len(self.pairs))


@dataclass(eq=False)
class _Pairs(Task):
    """Training pairs with their negatives."""

    pairs: PairFile
    train: Rows
    held_out: ValidationPairs
    miner: Miner | None
    pool: Rows | None = None  # negatives of each pair, mined before the epoch `mined`
    mined: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.known = KnownPairs(self.pairs.keys, self.pairs.groups)

    def count_batches(self) -> int:
        """Return the smallest number of batches of an epoch: epochs may differ by a few."""
        config, pairs = self.config, self.pairs
        batches = min((len(self._order(epoch)) for epoch in range(config.epochs)), default=0)
        if config.epochs and not batches:
            raise TrainingError(
                f"{len(self.train)} pairs do not fill a batch of text.batch_size={config.batch_size} without the same "
                "query or document twice; use a smaller batch, or more pairs",
                path=pairs.path,
            )
        if config.epochs and len(np.unique(pairs.groups[self.train])) < 2:
            raise TrainingError(
                "all pairs are of one group, which has no negatives; use pairs of several groups", path=pairs.path
            )
        if config.negatives and config.epochs and self.miner is None:
            raise ConfigError(
                f"text.negatives={config.negatives} hard negatives for each query, but no miner is given; give "
                "mining=mathamr.negatives.text.Mining, or use text.negatives=0"
            )
        return batches

    def _order(self, epoch: int) -> Rows:
        size = self.batch_size
        return no_duplicates(self.pairs.keys, self.train, batch_size=size, seed=self.seed, epoch=epoch)

    def batches(self, epoch: int) -> Rows:
        """Return the pairs of each batch, of which no two share a text or an id."""
        return self._order(epoch)[: self.batches_per_epoch]

    def __getitem__(self, row: int) -> dict[str, Any]:
        """Return a pair as columns of texts; ``label`` has its number and those of its hard negatives."""
        pair, label = self.pairs[row], [row]
        texts = {"query": pair.query, "document": pair.document}
        if self.pool is not None:
            seed = stream(self.seed, NEGATIVES, self.epoch)
            count, groups = self.config.negatives, self.pairs.groups
            drawn = draw_negatives(self.pool, row, groups, self.train, count, seed, self.known)
            texts |= {f"negative_{k}": self.pairs[other].document for k, other in enumerate(drawn)}
            label += drawn
        return {**texts, "label": label}

    def begin_epoch(self, epoch: int, log: Log) -> None:
        """Mine the negatives of an epoch if due."""
        self.epoch = epoch
        if not self.config.negatives or self.mined == epoch:  # resuming within an epoch whose negatives are restored
            return
        again = self.config.negative_source == "model" and epoch % self.config.negative_refresh == 0
        if self.mined is not None and not again:
            return
        pool = torch.zeros(len(self.pairs), self.config.negative_pool, dtype=torch.int64)
        if self.world.is_main and self.miner is not None:  # one rank mines for all: near ties could differ on another
            self.encoder.model.eval()
            mined, record = self.miner(self.encoder)
            pool = torch.from_numpy(mined)
            log(record)
        pool = pool.to(self.world.device)
        self.world.broadcast([pool])
        self.pool, self.mined = pool.cpu().numpy(), epoch

    def validate(self) -> ValidationScore:
        """Score the held-out pairs; ranks share the encoding."""
        config, held_out = self.config, self.held_out
        self.encoder.model.eval()
        with arithmetic(config.precision, self.world.device):
            queries = self._encoded(held_out.queries, "query")
            documents = self._encoded(held_out.documents, "document")
        return held_out.score(queries, documents, config.scale)

    def _encoded(self, texts: Sequence[str], side: Side) -> VectorSets:
        own = [texts[i] for i in np.array_split(np.arange(len(texts)), self.world.size)[self.world.rank]]
        if self.config.learns_tokens:
            sets = self.encoder.encode_tokens(own, side)
        else:
            vectors = torch.from_numpy(self.encoder.encode(own, side))
            sets = VectorSets(vectors, torch.arange(len(vectors) + 1))
        return self.world.gather(sets.to(self.world.device))[0]

    def tensors(self) -> dict[str, Tensor]:
        if self.pool is None:
            return {}
        return {"negatives": torch.from_numpy(self.pool), "mined": torch.tensor(self.mined)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        if "negatives" in tensors:
            self.pool, self.mined = tensors["negatives"].numpy(), int(tensors["mined"])

    def trainer(self, arguments: Callable[[type], Any]) -> Any:
        from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
        from sentence_transformers.sentence_transformer.modules import Router

        from mathamr.text.training.losses import GuidedPairs, loss_of, open_guide
        from mathamr.text.training.runs import Recorded

        class Finetuning(Recorded, SentenceTransformerTrainer):
            """Trainer without the library's model card: :mod:`mathamr.text.training.adapting` writes it."""

            def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
                """Add nothing."""

        model = self.encoder.model
        sides: dict[str, Side] = {"query": "query", "document": "document"}
        sides |= {f"negative_{k}": "document" for k in range(self.config.negatives)}
        given = arguments(SentenceTransformerTrainingArguments)
        given.prompts = {column: self.encoder.prompt(side) for column, side in sides.items()}
        given.router_mapping = sides if isinstance(model[0], Router) else {}
        known = self.known
        if self.config.guide is not None:
            guide = open_guide(self.config.guide, self.config.max_length, self.world.device)
            known = GuidedPairs(self.pairs, guide)
        loss = loss_of(self.config, model, known, gather=self.world.size > 1)
        return Finetuning(model=model, args=given, loss=loss)
