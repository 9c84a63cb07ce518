r"""Model card of an exported encoder: the code that gives the vectors of this project with sentence-transformers alone.

    write_card(encoder, Path("model/best"), linearize=True)     # model/best/README.md

The library reads prompts, pooling, normalisation and the limit of tokens from the folder. It cannot read there how
formulas are written and to which length vectors are cut, so the card has both as code:

>>> print(_code(linearize=True, truncate_dim=128))
from sentence_transformers import SentenceTransformer
from mathamr.text.linearize import linearize_text
<BLANKLINE>
encoder = SentenceTransformer(".", truncate_dim=128)  # the folder of this file
queries = ["Is $x^2+1$ irreducible?"]
vectors = encoder.encode_query([linearize_text(text) for text in queries], normalize_embeddings=True)
documents = ["Let $x^2+1=0$."]
others = encoder.encode_document([linearize_text(text) for text in documents], normalize_embeddings=True)
"""

from __future__ import annotations

from pathlib import Path

from mathamr.text.encoder import CARD, FINE_TUNED, TextEncoder

_LATE = (
    "It was trained for late interaction: MaxSim over the vectors of tokens, which "
    "`mathamr.text.encoder.open_encoder(FOLDER).encode_tokens` gives. This code gives one vector for each text:",
    "",
)


def write_card(encoder: TextEncoder, folder: Path, *, linearize: bool, tokens: bool = False) -> None:
    """Write the card of an encoder to the folder that it was saved to.

    Args:
        linearize: formulas of a collection's posts are linearised for this encoder.
        tokens: the encoder was trained for late interaction.
    """
    cut = encoder.dimension if encoder.dimension < encoder.whole_dimension else None
    formulas = (
        "Formulas are between dollars and linearised." if linearize else "Formulas are as in the pairs of training."
    )
    lines = (
        "---",
        "library_name: sentence-transformers",
        "pipeline_tag: sentence-similarity",
        "---",
        "",
        f"{FINE_TUNED}{Path(encoder.name).name}: {encoder.dimension} numbers, of unit length. "
        f"Texts are cut at {encoder.model.max_seq_length} tokens. {formulas} Prompts: {encoder.prompt('query')!r} "
        f"before queries, {encoder.prompt('document')!r} before documents; the code adds them.",
        "",
        *(_LATE if tokens else ()),
        "```python",
        _code(linearize=linearize, truncate_dim=cut),
        "```",
        "",
    )
    (folder / CARD).write_text("\n".join(lines), encoding="utf-8")


def _code(*, linearize: bool, truncate_dim: int | None) -> str:
    read = "[linearize_text(text) for text in {}]" if linearize else "{}"
    lines = (
        "from sentence_transformers import SentenceTransformer",
        *(("from mathamr.text.linearize import linearize_text",) if linearize else ()),
        "",
        f'encoder = SentenceTransformer(".", truncate_dim={truncate_dim})  # the folder of this file',
        'queries = ["Is $x^2+1$ irreducible?"]',
        f"vectors = encoder.encode_query({read.format('queries')}, normalize_embeddings=True)",
        'documents = ["Let $x^2+1=0$."]',
        f"others = encoder.encode_document({read.format('documents')}, normalize_embeddings=True)",
    )
    return "\n".join(lines)
