"""The tiny encoder, made once."""

from __future__ import annotations

import gc
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from mathamr.text.training.tiny import make_tiny
from tests.mathamr.text.tiny_pairs import WORDS, pairs_of


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("sentence_transformers") is None:
        pytest.skip("the extra text (sentence-transformers) is not installed")
    folder = tmp_path_factory.mktemp("tiny-encoder")
    make_tiny([" ".join(WORDS), *(pair.document for pair in pairs_of(20))], folder, vocabulary=400)
    for module in ("torch._dynamo", "mathamr.text.training.runs", "sentence_transformers.sentence_transformer.trainer"):
        import_module(module)
    gc.freeze()  # each training collects garbage, among all that is imported by then
    return folder
