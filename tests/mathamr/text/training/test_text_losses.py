"""Losses are those of their definitions, over columns of vectors and known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import ConfigError
from mathamr.maxsim import VectorSets, scores_reference
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder
from mathamr.text.training.batches import KnownPairs
from tests.mathamr.text.tiny_pairs import CONF, WORDS, file_of, opened, settings

BATCH = 4


def known_pairs(*answered: tuple[int, int]) -> KnownPairs:
    """Return pairs without a text in common; of a pair ``(i, j)`` the query of ``i`` is answered by document ``j``."""
    rows = [(i, i) for i in range(4 * BATCH)] + list(answered)
    texts = np.array([(query, 1000 + document) for query, document in rows], np.uint64)
    ids = texts + np.uint64(10_000)
    return KnownPairs(np.hstack([texts, ids]), np.array([100_000 + document for _, document in rows], np.uint64))


def value_of(config: TextConfig, encoder: TextEncoder, vectors: list[Tensor], known: KnownPairs) -> Tensor:
    """Return the loss of columns (B, d): queries, documents, and hard negatives, which are of other pairs."""
    from mathamr.text.training.losses import loss_of

    labels = torch.arange(BATCH)[:, None] + BATCH * torch.arange(len(vectors) - 1)  # pair, negatives' pairs
    return loss_of(config, encoder.model, known).compute_loss_from_embeddings(vectors, labels)


def random_vectors(negatives: int) -> list[Tensor]:
    return list(torch.randn(2 + negatives, BATCH, 6, generator=torch.Generator().manual_seed(0)))


def test_cut_vectors_add_up_whole_and_in_parts(tiny_folder: Path) -> None:
    """Values and gradients; the cuts are shares of 64 dimensions."""
    from mathamr.text.training.losses import loss_of

    model = opened(tiny_folder).model
    columns = [[" ".join(WORDS[start + i : start + i + 3]) for i in range(BATCH)] for start in (0, 2, 20)]
    labels = torch.arange(BATCH)[:, None] + BATCH * torch.arange(2)
    found = []
    for changes in ({}, {"mini_batch": 3}):
        loss = loss_of(settings(matryoshka=[1.0, 0.5, 0.125], negatives=1, **changes), model, known_pairs())
        model.zero_grad()
        value = loss([dict(model.preprocess(texts)) for texts in columns], labels)
        value.backward()
        found.append((value.detach(), next(model.parameters()).grad.clone()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    queries, *documents = (model(dict(model.preprocess(texts)))["sentence_embedding"].detach() for texts in columns)
    config = settings(negatives=1)
    cuts = [by_hand(config, queries[:, :cut], [one[:, :cut] for one in documents]) for cut in (64, 32, 8)]
    torch.testing.assert_close(found[0][0], torch.stack(cuts).sum(), rtol=1e-4, atol=1e-5)


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
def test_losses_are_as_defined(tiny_folder: Path, loss: str, negatives: int) -> None:
    config = settings(loss=loss, negatives=negatives, margin=0.5, scale=5.0)
    queries, *documents = random_vectors(negatives)
    found = value_of(config, opened(tiny_folder), [queries, *documents], known_pairs())
    torch.testing.assert_close(found, by_hand(config, queries, documents))


@pytest.mark.parametrize("loss", ["mnrl", "symmetric"])
def test_what_else_answers_a_query_is_no_negative_of_it(tiny_folder: Path, loss: str) -> None:
    config = settings(loss=loss, negatives=1, scale=5.0)
    queries, *documents = random_vectors(1)
    known = torch.zeros(BATCH, 2 * BATCH, dtype=torch.bool)
    known[0, 2] = known[3, 4] = True  # a document of the batch, and a hard negative of another query
    expected = by_hand(config, queries, documents, known)
    found = value_of(config, opened(tiny_folder), [queries, *documents], known_pairs((0, 2), (3, 4)))
    torch.testing.assert_close(found, expected)
    assert float(found) < float(by_hand(config, queries, documents))


@pytest.mark.parametrize("loss", ["mnrl", "symmetric"])
def test_an_own_document_is_no_negative_of_its_query(tiny_folder: Path, loss: str) -> None:
    """A hard negative of another query may be of the same pair."""
    from mathamr.text.training.losses import loss_of

    config = settings(loss=loss, negatives=1, scale=5.0)
    queries, *documents = random_vectors(1)
    labels = torch.tensor([[0, 4], [1, 2], [2, 0], [3, 7]])  # pair, pair of its hard negative
    known = torch.zeros(BATCH, 2 * BATCH, dtype=torch.bool)
    known[2, 5] = known[0, 6] = True
    found = loss_of(config, opened(tiny_folder).model, known_pairs())
    value = found.compute_loss_from_embeddings([queries, *documents], labels)
    torch.testing.assert_close(value, by_hand(config, queries, documents, known))


def test_late_interaction_trains_the_vectors_that_it_searches(tiny_folder: Path) -> None:
    """The scores are MaxSim between the token vectors of the encoder; a known answer is no negative."""
    from mathamr.text.training.losses import loss_of

    config, encoder = settings(loss="maxsim", negatives=1, scale=5.0), opened(tiny_folder)
    columns = [[" ".join(WORDS[start + i : start + 2 * i + 2]) for i in range(BATCH)] for start in (0, 2, 20)]
    labels = torch.arange(BATCH)[:, None] + BATCH * torch.arange(2)
    model, found = encoder.model, []
    known = torch.zeros(BATCH, 2 * BATCH, dtype=torch.bool)
    known[0, 2] = True
    for reference in (False, True):
        model.zero_grad()
        if reference:
            outputs = [model(dict(model.preprocess(texts))) for texts in columns]
            queries, *documents = [unit_vectors(output) for output in outputs]
            scores = scores_reference(queries, VectorSets.concatenated(documents), normalize=True) * config.scale
            value = functional.cross_entropy(scores.masked_fill(known, float("-inf")), torch.arange(BATCH))
            searched = encoder.encode_tokens(columns[0], "query")
            torch.testing.assert_close(queries.vectors.detach(), searched.vectors, atol=1e-5, rtol=1e-4)
        else:
            loss = loss_of(config, model, known_pairs((0, 2)))
            value = loss([dict(model.preprocess(texts)) for texts in columns], labels)
        value.backward()
        gradients = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
        found.append((value.detach(), *gradients))
    assert len(found[0]) > 10
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-3)


def unit_vectors(output: dict[str, Tensor]) -> VectorSets:
    """A set for each text: its tokens, and last the pooled vector."""
    texts = zip(output["token_embeddings"], output["attention_mask"].bool(), output["sentence_embedding"], strict=True)
    return VectorSets.of(
        [functional.normalize(torch.cat([one[inside], last[None]]), dim=1) for one, inside, last in texts]
    )


def test_a_document_that_the_guide_scores_above_the_own_one_is_no_negative(tiny_folder: Path, tmp_path: Path) -> None:
    from mathamr.text.training.losses import GuidedPairs

    guide, pairs = opened(tiny_folder), file_of(tmp_path)
    queries, documents = np.arange(len(pairs)), np.array([*range(len(pairs)), 3, 0])
    asking, answers = (
        guide.encode([getattr(pairs[row], side) for row in range(len(pairs))], side) for side in ("query", "document")
    )
    cosines = asking @ answers.T
    nearer = cosines[np.ix_(queries, documents)] > cosines[queries, queries][:, None]
    nearer &= queries[:, None] != documents  # the own document, up to rounding
    expected = nearer | KnownPairs(pairs.keys, pairs.groups).mask(queries, documents)
    assert nearer.any()
    assert (GuidedPairs(pairs, guide).mask(queries, documents) == expected).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "triplet"}, r"text.negatives=0 draws none"),
        ({"negatives": 20}, r"cannot be drawn from text.negative_pool=10"),
        ({"loss": "hinge"}, "is not one of mnrl, symmetric"),
        ({"warmup": 1.0}, "less than 1"),
        ({"pretraining_overlap": 40}, "must be less than half"),
        ({"matryoshka": []}, "must be dimensions or shares above 0"),
        ({"matryoshka": [1.0, float("nan")]}, "must be dimensions or shares above 0"),
        ({"scale": 0.0}, "must be a positive number"),
        ({"gradient_accumulation": 0}, "gradient_accumulation=0"),
        ({"lora": -1}, "lora=-1"),
        ({"loss": "maxsim", "mini_batch": 4}, "text.mini_batch=4 does not work with text.loss=maxsim"),
        ({"loss": "cosine", "negatives": 1, "guide": "mpnet"}, "selects negatives among the documents of a batch"),
        ({"revision": "v1"}, "text.encoder=tiny is a folder on this machine; use text.revision=null"),
        ({"revision": "v1", "encoder": str(CONF)}, rf"text.revision=v1 selects .* text.encoder={CONF} is a folder"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**changes)


@pytest.mark.parametrize("name", ["minilm", "tiny", "thesis", "cross_retrieval", "knowledge_graph"])
def test_settings_that_come_with_the_project_hold_together(name: str) -> None:
    assert settings(name, encoder="lab/encoder", revision="v1").scale == 20
