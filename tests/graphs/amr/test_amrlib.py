"""amrlib behind the parser protocol: a fake module here, the real weights where they are installed."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from graphs.amr.amrlib import AmrlibParser
from graphs.amr.document import DocumentAMR, sentences_of
from graphs.amr.parser import parse_chunks, parse_documents
from graphs.amr.penman_text import encode
from graphs.amr.transition_worker import gpu_problem
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
    chunks = [["one"], ["two", "three"], ["two", "nothing", "three"], ["nothing"], ["crash"]]
    answers = parse_chunks(parser, chunks)
    assert answers[:2] == ["(s / say-01)", "(m / multi-sentence :snt1 (s / say-01) :snt2 (s2 / say-01))"]
    kinds = [answer.kind for answer in answers if isinstance(answer, Failure)]
    assert kinds == ["incomplete", "no_graph", "parser_error"]
    assert (parser.name, parser.version, parser.model) == ("amrlib", "0.8.1-2", "stog 0_1_0")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(AMRError, match="unpack a"):
        AmrlibParser(tmp_path / "none", batch_size=16)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amrlib", None)
    with pytest.raises(AMRError, match="pip install amrlib"):
        AmrlibParser(tmp_path, batch_size=16)
    module = types.ModuleType("amrlib")
    module.load_stog_model = lambda **_: __import__("no_such_package")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amrlib", module)
    with pytest.raises(AMRError, match=r"No module named 'no_such_package'\): pip install amrlib==0\.8\.1 unidecode"):
        AmrlibParser(tmp_path, batch_size=16, device="cpu")


def test_a_sentence_without_a_graph_costs_no_other(parser: AmrlibParser) -> None:
    (document,) = parse_documents(parser, [("7", ["two", "nothing", "three"])])
    assert isinstance(document, DocumentAMR)
    assert encode(document.graph) == "(m / multi-sentence :snt1 (s / say-01) :snt2 (s2 / say-01))"
    assert [(failure.post_id, failure.kind) for failure in document.failures] == [
        ("7", "incomplete"),
        ("7", "no_graph"),
    ]
    assert document.failures[0].message.endswith("1 of 3 sentences; parsed again in 3 parts, 1 of which failed")


class Small(FakeModel):
    """Takes four tokens, and gives graphs of six."""

    max_sent_len, max_graph_len, batch_size = 4, 6, 2

    def __init__(self, end_after: int) -> None:
        self.model = types.SimpleNamespace(generate=self.generate)
        self.end_after = end_after

    class tokenizer:
        eos_token_id = 2

        def __new__(cls, sentence: str) -> dict[str, list[int]]:  # type: ignore[misc]
            return {"input_ids": [*[5] * len(sentence.split()), 2]}

    def generate(self, lengths: list[int]) -> torch.Tensor:
        """Two candidates a sentence; a graph ends only if its sentence has at most ``end_after`` words."""
        rows = [[5] * 5 + [2] if words <= self.end_after else [5] * 6 for words in lengths]
        return torch.tensor([row for row in rows for _ in range(2)])

    def parse_sents(self, sentences: list[str], add_metadata: bool) -> list[str | None]:
        ordered = sorted(sentences, key=len, reverse=True)
        for first in range(0, len(ordered), self.batch_size):
            self.model.generate([len(sentence.split()) for sentence in ordered[first : first + self.batch_size]])
        return ["(s / say-01)"] * len(sentences)


def test_clipped_sentences_and_graphs_are_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("amrlib")
    models = [Small(end_after=9), Small(end_after=1)]
    module.load_stog_model = lambda **_: models.pop(0)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amrlib", module)
    monkeypatch.setattr(metadata, "version", lambda name: "0.8.1")
    texts = ["a b", "a b c d e f", "a b c"]  # the second is longer than the model takes
    (document,) = parse_documents(AmrlibParser(tmp_path, batch_size=2), [("1", texts)])
    assert isinstance(document, DocumentAMR)
    assert [failure.kind for failure in document.failures] == ["clipped"]
    assert "clipped 1 of 3 sentences; parsed again in 4 parts, 0 of which failed" in document.failures[0].message
    assert len(sentences_of(document.graph)[1]) == 4
    (document,) = parse_documents(AmrlibParser(tmp_path, batch_size=2), [("1", ["a b c"])])  # graphs are cut off
    assert isinstance(document, DocumentAMR)
    assert "parsed again in 3 parts" in document.failures[0].message


def tiny_model(folder: Path, *, endless: bool = False) -> None:
    """Write a random BART with a tokenizer of words, as a parse model of amrlib; an ``endless`` one ends no graph."""
    import tokenizers
    import transformers

    words = ["<s>", "<pad>", "</s>", "<unk>", "(", ")", ":ARG0", "prove-01", "say-01", "group", "is", "finite", "a"]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    backend.post_processor = tokenizers.processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names).save_pretrained(folder / "tokenizer")
    sizes = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    }
    own = {"model_name_or_path": "nowhere/bart", "max_in_len": 8, "max_out_len": 12}
    config = transformers.BartConfig(
        vocab_size=len(words),
        d_model=16,
        max_position_embeddings=64,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        task_specific_params={"parse_amr": own},
        **sizes,
    )
    torch.manual_seed(0)
    model = transformers.BartForConditionalGeneration(config)
    if endless:
        model.final_logits_bias[0, 2] = -1e4
    model.save_pretrained(folder)
    meta = {
        "model_type": "stog",
        "version": "tiny",
        "inference_module": ".parse_xfm.inference",
        "inference_class": "Inference",
        "model_fn": "model.safetensors",
        "kwargs": {"num_beams": 2},
    }
    (folder / "amrlib_meta.json").write_text(json.dumps(meta), encoding="utf-8")


def test_a_tiny_random_model_of_amrlib_fails_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "amrlib.models.parse_xfm.inference", reason="amrlib and unidecode are not installed", exc_type=ImportError
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    tiny_model(tmp_path)
    with pytest.raises(AMRError, match="give its folder by tokenizer=FOLDER"):
        AmrlibParser(tmp_path, batch_size=2, device="cpu")
    parser = AmrlibParser(tmp_path, batch_size=2, device="cpu", tokenizer=tmp_path / "tokenizer")
    assert (parser.version, parser.model) == ("0.8.1-2", "stog tiny")
    long = "a group is finite " * 5
    answers = parse_chunks(parser, [["a group"], ["a group", long]])
    assert isinstance(answers[0], Failure)  # random weights give no graph
    assert answers[0].kind in {"no_graph", "clipped"}
    assert isinstance(answers[1], Failure)
    assert answers[1].kind == "clipped"
    (document,) = parse_documents(parser, [("1", [long])])
    assert isinstance(document, Failure)


class Beams(FakeModel):
    """Generates with a model as amrlib's inference does."""

    max_sent_len, max_graph_len = 8, 12

    def __init__(self, folder: Path) -> None:
        import transformers

        self.model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")

    def parse_sents(self, sentences: list[str], add_metadata: bool) -> list[str | None]:
        tokens = self.tokenizer(sentences, return_tensors="pt")["input_ids"]
        limits = {"max_length": self.max_graph_len, "early_stopping": True}
        self.model.generate(input_ids=tokens, num_beams=2, num_return_sequences=2, **limits)
        return ["(s / say-01)"] * len(sentences)


def test_a_graph_that_ends_only_at_the_limit_of_the_model_is_clipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BART by default ends every row at the limit with its end token."""
    tiny_model(tmp_path, endless=True)
    inference = Beams(tmp_path)
    module = types.ModuleType("amrlib")
    module.load_stog_model = lambda **_: inference  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amrlib", module)
    monkeypatch.setattr(metadata, "version", lambda name: "0.8.1")
    (answer,) = parse_chunks(AmrlibParser(tmp_path, batch_size=2, device="cpu"), [["a group"]])
    assert isinstance(answer, Failure)
    assert answer.kind == "clipped"


class OldTorch:
    """torch 1.13 for CUDA 11.6 on a GPU of another generation."""

    __version__ = "1.13.1+cu116"

    class cuda:
        capability = (9, 0)
        built: ClassVar = ["sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86"]

        @staticmethod
        def is_available() -> bool:
            return True

        @classmethod
        def get_device_capability(cls, _: int) -> tuple[int, int]:
            return cls.capability

        @classmethod
        def get_arch_list(cls) -> list[str]:
            return cls.built

        @staticmethod
        def get_device_name(_: int) -> str:
            return "NVIDIA H100"


def test_a_torch_older_than_the_gpu_is_named_before_the_first_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = gpu_problem(OldTorch)
    assert problem.startswith("torch 1.13.1+cu116 has no code for NVIDIA H100 (sm_90; it has sm_37, ")
    monkeypatch.setattr(OldTorch.cuda, "capability", (8, 9))
    assert gpu_problem(OldTorch) == ""  # machine code of sm_86 runs there
    monkeypatch.setattr(OldTorch.cuda, "capability", (12, 0))
    monkeypatch.setattr(OldTorch.cuda, "built", ["sm_90a", "compute_90"])
    assert gpu_problem(OldTorch) == ""  # by the portable form
    monkeypatch.setattr(OldTorch.cuda, "built", ["sm_100"])
    monkeypatch.setitem(sys.modules, "amrlib", types.ModuleType("amrlib"))
    monkeypatch.setattr("graphs.amr.amrlib.gpu_problem", lambda _: gpu_problem(OldTorch))
    with pytest.raises(AMRError, match="or parse on the CPU with device=cpu"):
        AmrlibParser(tmp_path, batch_size=2)


@pytest.mark.weights
def test_the_real_model_parses_a_placeholder() -> None:
    folder = os.environ.get("AMRLIB_MODEL", "")
    if not folder or importlib.util.find_spec("amrlib") is None:
        pytest.skip("amrlib or the folder named by AMRLIB_MODEL is not there")
    (answer,) = AmrlibParser(folder, batch_size=16).parse([["Prove that FORMULA_0 is finite."]])
    assert isinstance(answer, str)
    assert "prove-01" in answer
