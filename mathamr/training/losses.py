"""Training objective: in-batch InfoNCE over MaxSim scores, and over document vectors.

Two questions and their answers, perfectly separated: a low temperature gives a loss near zero, a high one a loss near
log 2, that of a coin flip.

>>> import torch
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
>>> round(float(info_nce(scores, torch.tensor(0.05))), 4), round(float(info_nce(scores, torch.tensor(10.0))), 4)
(0.0, 0.6444)

A second answer to the first question, in the place of the second's, is no negative once it is masked:

>>> known = torch.tensor([[True, True], [False, True]])
>>> round(float(info_nce(scores, torch.tensor(10.0), known_positives=known)), 4)
0.3222
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.errors import TrainingError
from mathamr import maxsim
from mathamr.maxsim import VectorSets


class Temperature(nn.Module):
    """Learnable temperature ``tau = exp(t)`` of thesis Eq. 3.6; calling it gives ``tau``, a scalar tensor.

    >>> round(Temperature(0.05)().item(), 4)
    0.05
    """

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(initial)))

    def forward(self) -> Tensor:
        return self.log.exp()


def info_nce(
    scores: Tensor,
    temperature: Tensor,
    *,
    targets: Tensor | None = None,
    known_positives: Tensor | None = None,
    symmetric: bool = False,
) -> Tensor:
    """Return InfoNCE of each query's own document against all other documents, thesis Eq. 3.6 -> scalar float32.

    Args:
        scores: similarity of B queries with C >= B documents (B, C); columns beyond the queries' own documents are
            further (hard) negatives.
        temperature: temperature tau, a scalar.
        targets: column of each query's own document (B,); by default column i belongs to query i.
        known_positives: bool (B, C), True for another right answer to the query or a copy of its document; such
            documents are left out of the sum over negatives.
        symmetric: average with the loss of finding each document's query among the B queries. Hard negatives have no
            query and take part only in the first direction.
    """
    num_queries = len(scores)
    if targets is None:
        targets = torch.arange(num_queries, device=scores.device)
    with torch.autocast(scores.device.type, enabled=False):
        logits = scores.float() / temperature.float()
        if known_positives is not None:
            own = torch.zeros_like(known_positives).scatter_(1, targets.unsqueeze(1), True)
            logits = logits.masked_fill(known_positives & ~own, float("-inf"))
        loss = functional.cross_entropy(logits, targets)
        if symmetric:
            by_document = logits[:, targets].T  # (B, B), document i's own query at i
            loss = (loss + functional.cross_entropy(by_document, torch.arange(num_queries, device=scores.device))) / 2
    return loss


@dataclass(frozen=True, slots=True)
class RetrievalLoss:
    """``total`` to be minimised, and detached ``parts`` for the log: ``maxsim_loss`` and ``document_loss``.

    A part of weight zero is missing. ``scores`` (B, C) are those of the MaxSim part, or of the document part if beta
    is 0; a further loss may propagate gradients through them.
    """

    total: Tensor
    parts: dict[str, Tensor]
    scores: Tensor


def retrieval_loss(
    queries: VectorSets,
    documents: VectorSets,
    temperature: Tensor,
    beta: float,
    *,
    normalize: bool = True,
    known_positives: Tensor | None = None,
    symmetric: bool = False,
) -> RetrievalLoss:
    """Return ``beta L_MaxSim + (1 - beta) L_doc``, thesis Eq. 4.2, both InfoNCE with one temperature.

    ``beta`` = 1 is only MaxSim (Eq. 3.8), ``beta`` = 0 only document vectors (Eq. 4.1): single-vector training. A
    part of weight zero is not computed. ``normalize`` divides MaxSim scores by the number of query vectors (Eq. 3.7).
    The remaining arguments are those of :func:`info_nce`.

    A loss that is not finite raises :class:`TrainingError`, which names the part.
    """
    nce = partial(info_nce, known_positives=known_positives, symmetric=symmetric)
    parts: dict[str, tuple[Tensor, Tensor]] = {}
    if beta > 0.0:
        all_scores = maxsim.scores(queries, documents, normalize=normalize)
        parts["maxsim"] = nce(all_scores, temperature), all_scores
    if beta < 1.0:
        with torch.autocast(queries.vectors.device.type, enabled=False):
            # R_ij of thesis Eq. 4.1, (num_queries, num_documents) float32
            document_scores = queries.document_vectors().float() @ documents.document_vectors().float().T
        parts["document"] = nce(document_scores, temperature), document_scores
    weights = {"maxsim": beta, "document": 1.0 - beta}
    total = torch.stack([weights[name] * loss for name, (loss, _) in parts.items()]).sum()
    if not torch.isfinite(total):
        raise TrainingError(_not_finite(parts, temperature))
    detached = {f"{name}_loss": loss.detach() for name, (loss, _) in parts.items()}
    return RetrievalLoss(total, detached, scores=next(iter(parts.values()))[1])


def _not_finite(parts: dict[str, tuple[Tensor, Tensor]], temperature: Tensor) -> str:
    found = ", ".join(
        f"{name} part {loss.item():.4g} ({int((~torch.isfinite(scores)).sum())} of {scores.numel()} scores not finite)"
        for name, (loss, scores) in parts.items()
    )
    return (
        f"the loss is not finite: {found}, temperature {temperature.item():.4g}; "
        "start anew with a lower train.learning_rate or train.grad_clip"
    )
