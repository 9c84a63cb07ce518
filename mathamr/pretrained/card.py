"""Model card: the README.md of a model's folder, with its data, training, scores and limits.

>>> from types import SimpleNamespace
>>> stated = Statements("1,000 docstrings", {"nDCG'": 0.31}, "trained for a test")
>>> info = SimpleNamespace(seed=42, epoch=7, best_val_loss=2.3)
>>> text = card("demo", stated, info, parser="embedded", parameters=54_321)
>>> text.splitlines()[:2], "| nDCG' | 0.310 |" in text
(['---', 'library_name: mathamr-plus'], True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mathamr.training.checkpoint import CheckpointInfo

UNKNOWN = "Not stated by the author of the model."

_CARD = """---
library_name: mathamr-plus
license: mit
language: en
pipeline_tag: sentence-similarity
tags:
- mathematical-information-retrieval
- abstract-meaning-representation
- graph-neural-network
---

# {name}

An encoder of mathematical text for MathAMR+. A text becomes a graph of its
sentences and formulas. The vectors of the virtual nodes represent the text, and MaxSim compares two texts.

```python
from mathamr import MathAMR

model = MathAMR.from_pretrained("{name}")
sets = model.encode(["Prove that $x^2+1$ is irreducible.", "Why is $\\\\sqrt 2$ irrational?"])
print(model.similarity(sets, sets))
```

## Data

{data}

## Training

{training}

## Scores

{scores}

## Limits

{limits}
"""


@dataclass(frozen=True)
class Statements:
    """Author's statements, kept when an opened model is saved again.

    Args:
        data: collection and pairs that the model was trained on.
        scores: measured values by name, with the collection in the name.
        limits: known limits.
    """

    data: str = UNKNOWN
    scores: Mapping[str, float] = field(default_factory=dict)
    limits: str = "English text with formulas in LaTeX. Scores on other collections are unknown."


def card(name: str, stated: Statements, info: CheckpointInfo, *, parser: str, parameters: int) -> str:
    """Return the text of a card: the author's statements, and values of the training on posts read by ``parser``."""
    loss = "" if info.best_val_loss is None else f" Lowest validation loss: {info.best_val_loss:.4f}."
    trained = "1 epoch" if info.epoch == 1 else f"{info.epoch} epochs"
    training = (
        f"{parameters:,} parameters, {trained}, seed {info.seed}.{loss} AMR parser of the training posts: `{parser}`."
    )
    rows = [f"| {measure} | {value:.3f} |" for measure, value in stated.scores.items()]
    scores = "\n".join(["| measure | value |", "|---|---|", *rows]) if rows else UNKNOWN
    return _CARD.format(name=name, data=stated.data, training=training, scores=scores, limits=stated.limits)
