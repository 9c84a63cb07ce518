"""Posts that are searched: found once for each version of the code."""

import json
from pathlib import Path

import pytest

from graphs.corpus.jsonl import JsonLines
from mathamr.stages import needed
from mathamr.stages.console import Console
from mathamr.stages.needed import searched_posts


def test_searched_posts_are_found_anew_by_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which formulas of a post are judged depends on how its text is read."""
    posts = [
        {"post_id": "q", "kind": "question", "markup": "text", "body": "Is $x$ odd?"},
        {"post_id": "a", "kind": "answer", "markup": "text", "parent_id": "q", "body": "Yes."},
    ]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    corpus, shared = JsonLines(tmp_path), tmp_path / "shared"

    def found() -> frozenset[str]:
        return searched_posts(corpus, ["a"], (), shared, Console())

    assert found() == {"a", "q"}
    monkeypatch.setattr(needed, "with_questions", lambda *_: frozenset({"a"}))
    assert found() == {"a", "q"}
    monkeypatch.setattr(needed, "graphs_version", lambda: "of tomorrow")
    assert found() == {"a"}
