"""Losses of vectors are those that the library computes of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graphs.errors import ConfigError
from mathamr.text.config import TextConfig
from tests.mathamr.text.tiny_pairs import WORDS, opened, settings


def test_matryoshka_and_the_ranking_loss_are_the_librarys(tiny_folder: Path) -> None:
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss

    from mathamr.text.training.losses import loss_of

    model = opened(tiny_folder).model
    columns = [[" ".join(WORDS[start + i : start + i + 3]) for i in range(5)] for start in (0, 2, 20)]
    features = [model.preprocess(texts) for texts in columns]
    vectors = [model(dict(column))["sentence_embedding"] for column in features]
    for cuts in ([64], [64, 32, 8]):
        library = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model, scale=20.0), cuts)
        expected = library([dict(column) for column in features], torch.zeros(5))
        found = loss_of(settings(matryoshka=cuts), 64)(vectors[0], vectors[1:])
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def by_hand(config: TextConfig, queries: Tensor, documents: list[Tensor], known: Tensor | None = None) -> Tensor:
    """The losses from their definitions."""
    cosines = [torch.cosine_similarity(queries, column) for column in documents]
    if config.loss == "triplet":
        return torch.stack([torch.relu(one - cosines[0] + config.margin).mean() for one in cosines[1:]]).mean()
    if config.loss == "cosine":
        return torch.stack([((one - float(k == 0)) ** 2).mean() for k, one in enumerate(cosines)]).mean()
    unit = torch.nn.functional.normalize(queries), torch.nn.functional.normalize(torch.cat(documents))
    scores = config.scale * unit[0] @ unit[1].T  # (B, C)
    own = torch.arange(len(queries))
    if known is not None:
        scores[known] = float("-inf")
    loss = torch.nn.functional.cross_entropy(scores, own)
    if config.loss == "symmetric":
        loss = (loss + torch.nn.functional.cross_entropy(scores[:, : len(queries)].T, own)) / 2
    return loss


@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("loss", ["mnrl", "symmetric", "triplet", "cosine"])
def test_losses_are_as_defined(loss: str, negatives: int) -> None:
    pytest.importorskip("sentence_transformers")
    from mathamr.text.training.losses import loss_of

    config = settings(loss=loss, negatives=negatives, margin=0.5, scale=5.0)
    generator = torch.Generator().manual_seed(0)
    queries, *documents = torch.randn(2 + negatives, 4, 6, generator=generator)
    torch.testing.assert_close(loss_of(config, 6)(queries, documents), by_hand(config, queries, documents))


@pytest.mark.parametrize("loss", ["mnrl", "symmetric"])
def test_what_else_answers_a_query_is_no_negative_of_it(loss: str) -> None:
    from mathamr.text.training.losses import loss_of

    config = settings(loss=loss, negatives=1, scale=5.0)
    queries, *documents = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    known = torch.zeros(4, 8, dtype=torch.bool)
    known[0, 2] = known[3, 4] = True  # a document of the batch, and a hard negative of another query
    expected = by_hand(config, queries, documents, known)
    found = loss_of(config, 6)(queries, documents, known | torch.eye(4, 8).bool())  # their own stay what they are
    torch.testing.assert_close(found, expected)
    assert float(found) < float(by_hand(config, queries, documents))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "triplet"}, r"text.negatives=0 draws none"),
        ({"negatives": 20}, r"cannot be drawn from text.negative_pool=10"),
        ({"loss": "hinge"}, "is not one of mnrl, symmetric"),
        ({"warmup": 1.0}, "less than 1"),
        ({"pretraining_overlap": 40}, "must be less than half"),
        ({"matryoshka": []}, "must be dimensions or shares above 0"),
        ({"scale": 0.0}, "must be a positive number"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**changes)


@pytest.mark.parametrize("name", ["minilm", "tiny", "thesis", "cross_retrieval", "knowledge_graph"])
def test_settings_that_come_with_the_project_hold_together(name: str) -> None:
    assert settings(name).scale == 20
