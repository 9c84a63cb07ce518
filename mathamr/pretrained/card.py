"""Model card: the README.md of a model's folder, with its data, training, scores and limits.

>>> facts = CardFacts("demo", "1,000 docstrings", {"nDCG'": 0.31}, "trained for a test", "embedded", 42, 7, 2.3, 54_321)
>>> text = card(facts)
>>> text.splitlines()[:2], "| nDCG' | 0.310 |" in text
(['---', 'library_name: mathamr-plus'], True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
class CardFacts:
    """Facts that a card states.

    Args:
        name: name of the model.
        data: collection and pairs that it was trained on.
        scores: measured values by name, with the collection in the name.
        limits: known limits.
        parser: name of the AMR parser of the training posts.
        seed: seed of the training.
        epochs: epochs trained.
        validation_loss: lowest loss on held-out pairs; None: not validated.
        parameters: number of weights.
    """

    name: str
    data: str = UNKNOWN
    scores: Mapping[str, float] = field(default_factory=dict)
    limits: str = ""
    parser: str = "embedded"
    seed: int = 0
    epochs: int = 0
    validation_loss: float | None = None
    parameters: int = 0


def card(facts: CardFacts) -> str:
    """Return the text of a card."""
    loss = "" if facts.validation_loss is None else f" Lowest validation loss: {facts.validation_loss:.4f}."
    epochs = "1 epoch" if facts.epochs == 1 else f"{facts.epochs} epochs"
    training = (
        f"{facts.parameters:,} parameters, {epochs}, seed {facts.seed}.{loss} AMR parser of the training "
        f"posts: `{facts.parser}`."
    )
    rows = [f"| {name} | {value:.3f} |" for name, value in facts.scores.items()]
    scores = "\n".join(["| measure | value |", "|---|---|", *rows]) if rows else UNKNOWN
    limits = facts.limits or "English text with formulas in LaTeX. Scores on other collections are unknown."
    return _CARD.format(name=facts.name, data=facts.data, training=training, scores=scores, limits=limits)
