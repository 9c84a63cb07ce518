"""Mathematical posts beside text without mathematics, in a job's file and in the report."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.analyses import domain
from experiments.report import results
from experiments.report.blocks import markdown
from experiments.report.geometry import domains
from graphs.corpus.post import FormulaRef, PlaceholderText
from graphs.errors import ConfigError
from graphs.stores.posts import PostText
from tests.experiments.analyses.test_geometry import POSTS, space
from tests.experiments.written_experiment import finish, write_plan


def post(name: str, *, formulas: bool = True) -> PostText:
    refs = (FormulaRef("1", "x^2"),) if formulas else ()
    return PostText(name, "", PlaceholderText(("We take FORMULA_0 and find what it is.",), refs), [], "", None)


def measured(general: Path | None) -> dict[str, Any]:
    def encode(texts: list[str]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        rows = np.random.default_rng(len(texts[0])).normal(size=(len(texts), 8))
        return rows + 9 * ("apples" in texts[0]), np.linspace(2.0, 3.0, 5 * len(texts))

    one = space(single=True)
    vectors = one.documents.document_vectors().numpy()
    texts = {name: post(name, formulas=name != "p3") for name in POSTS}
    found = domain.of_space(replace(one, encode=encode), vectors, texts, None if general is None else str(general))
    assert found is not None
    loaded: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    return loaded


def corpus_of(tmp_path: Path) -> Path:
    path = tmp_path / "general.txt"
    path.write_text("".join(f"The tree has {n} apples today.\n" for n in range(250)) + "Too short.\n")
    return path


def test_posts_are_compared_with_a_file_and_with_their_prose(tmp_path: Path) -> None:
    found = measured(corpus_of(tmp_path))
    assert found["posts"] == 23  # p3 has no formula
    assert list(found["corpora"]) == ["general.txt", "prose"]
    general, prose = found["corpora"].values()
    assert (general["texts"], prose["texts"]) == (200, 23)
    assert len(general["distances"]) == 23
    assert general["mmd"][1] == 0.001
    assert general["lengths"] == {"posts": 5.0, "corpus": 2.5, "d": 1.0, "wasserstein": 2.5}
    assert list(measured(None)["corpora"]) == ["prose"]


def test_prose_has_no_formula() -> None:
    assert domain.prose_of(post("p0")) == "We take and find what it is."
    assert domain.prose_of(post("p0", formulas=False)) == ""


def test_models_without_an_encoder_are_left_out() -> None:
    assert domain.of_space(space(), np.zeros((24, 8)), {}, None) is None


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), ("One two.\n", "no line of 5 words")])
def test_a_corpus_without_texts_is_refused(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "c.txt").write_text(content)
    with pytest.raises(ConfigError, match=words):
        domain.read_corpus(tmp_path / "c.txt")


def test_the_report_compares_with_the_baseline(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "spaces", ["base", "tuned"], [1])
    for condition in ("base", "tuned"):
        finish(folder, condition, 1, 0.5)
    content = measured(corpus_of(tmp_path))
    tuned = copy.deepcopy(content)
    tuned["corpora"]["general.txt"]["distances"] = [3.0] * 23  # beyond all others
    text = markdown(domains.blocks(results.read(folder), {"base": content, "tuned": tuned}))
    assert "23 posts with formulas, and as texts 200 of general.txt and 23 of prose; " in text
    assert "| tuned | general.txt | 3.000 | " in text
    assert "| base | 1.000 | < 0.001 | " in text
    assert "| base | general.txt | 1." in text
    assert "| base | 0.000 | 1.000 | 0.000 |" in text  # prose has the same distances
    assert "| tuned | prose | 5.000 | 2.500 | 1.000 | 2.500 |" in text
