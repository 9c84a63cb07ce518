"""amrlib behind the parser protocol: a fake module here, the real weights where they are installed."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

from graphs.amr.amrlib import AmrlibParser
from graphs.amr.parser import parse_chunks
from graphs.errors import AMRError, Failure


class FakeModel:
    def parse_sents(self, sentences: list[str], add_metadata: bool) -> list[str | None]:
        if "crash" in sentences:
            raise RuntimeError("CUDA out of memory")
        return [None if sentence == "nothing" else "(s / say-01)" for sentence in sentences]


@pytest.fixture
def parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AmrlibParser:
    module = types.ModuleType("amrlib")
    module.load_stog_model = lambda model_dir, batch_size: FakeModel()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amrlib", module)
    monkeypatch.setattr(metadata, "version", lambda name: "0.8.1")
    (tmp_path / "amrlib_meta.json").write_text('{"model_type": "stog", "version": "0_1_0"}', encoding="utf-8")
    return AmrlibParser(tmp_path, batch_size=16)


def test_sentences_of_a_chunk_come_together_and_bad_chunks_stand_alone(parser: AmrlibParser) -> None:
    answers = parse_chunks(parser, [["one"], ["two", "nothing", "three"], ["nothing"], ["crash"]])
    assert answers[:2] == ["(s / say-01)", "(m / multi-sentence :snt1 (s / say-01) :snt2 (s2 / say-01))"]
    assert [answer.kind for answer in answers if isinstance(answer, Failure)] == ["no_graph", "parser_error"]
    assert (parser.name, parser.version, parser.model) == ("amrlib", "0.8.1", "stog 0_1_0")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(AMRError, match="unpack a"):
        AmrlibParser(tmp_path / "none", batch_size=16)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amrlib", None)
    with pytest.raises(ImportError, match="pip install amrlib"):
        AmrlibParser(tmp_path, batch_size=16)


@pytest.mark.weights
def test_the_real_model_parses_a_placeholder() -> None:
    folder = os.environ.get("AMRLIB_MODEL", "")
    if not folder or importlib.util.find_spec("amrlib") is None:
        pytest.skip("amrlib or the folder named by AMRLIB_MODEL is not there")
    (answer,) = AmrlibParser(folder, batch_size=16).parse([["Prove that FORMULA_0 is finite."]])
    assert isinstance(answer, str)
    assert "prove-01" in answer
