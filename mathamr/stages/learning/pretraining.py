"""Encoders after pretraining on a collection's texts, which all models that begin with the same one share.

    encoder, costs = pretrained(TextConfig(...), open_encoder("minilm"), texts, shared / "pretrained", seed=42, ...)

``dapt`` and ``dapt_finetuned`` of +exp=text_finetuning differ in what follows alone. Pretraining is the longer part,
and is done once a seed: ``outputs/shared/COLLECTION/pretrained/KEY``, by one process while others wait, and goes on
where it was interrupted. KEY is a hash of the encoder's weights, of the settings and of the way formulas are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from graphs.shared_files import key, locked, read_json, write_json
from mathamr.stages.console import Console
from mathamr.stages.learning.reporting import training_stage
from mathamr.text import linearize
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder
from mathamr.text.pretraining import depends_on, pretrain, tidy
from mathamr.text.training import batches
from mathamr.text.training.adapting import fingerprint
from mathamr.text.training.encoder_files import write_record


def pretrained(
    config: TextConfig,
    encoder: TextEncoder,
    texts: Callable[[], Iterable[str]],
    places: Path,
    *,
    seed: int,
    console: Console,
    texts_hash: str | None = None,
) -> tuple[Path, Mapping[str, float]]:
    """Return the folder of ``encoder`` after pretraining, and its costs, whichever process has done it.

    Args:
        texts: returns the texts of the collection, each time anew.
        places: folder of all pretrained encoders of the collection.
        texts_hash: hash of the texts, if they are not those of the collection.

    Raises:
        ConfigError, TrainingError, Interrupted: as :func:`mathamr.text.pretraining.pretrain`.
    """
    written = linearize.VERSION if config.linearize else False
    known = {"encoder": fingerprint(encoder), "seed": seed, "linearize": written, "batches": batches.VERSION}
    known |= depends_on(config)
    known |= {} if texts_hash is None else {"texts": texts_hash}
    place = places / key(known)
    place.mkdir(parents=True, exist_ok=True)
    with locked(place / ".lock", wait=True):
        if (costs := read_json(place / "costs.json")) is not None:
            console.say(f"  pretrained encoder {place.name} is there already")
            return place / "best", costs
        with training_stage("pretraining", console) as report:
            done = pretrain(config, encoder, texts(), out=place, seed=seed, log=report, progress=report.progress)
        tidy(place)
        write_record(done.best, {"encoder": config.encoder, "identity": place.name})
        write_json(place / "costs.json", done.costs)
    return done.best, done.costs
