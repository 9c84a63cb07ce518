"""A model as a library: what is saved is what is opened, and what it finds is what an index finds."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from graphs import digests
from graphs.errors import ConfigError, MathAMRError, RetrievalError, StoreError, TrainingError
from graphs.stores.collection import add_graphs
from graphs.stores.store import GraphStore
from mathamr import MathAMR, Post, PostIndex
from mathamr.default_settings import values
from mathamr.model.config import EncoderConfig
from mathamr.pretrained import folder as model_folder
from mathamr.retrieval.index import Strategy
from mathamr.training.config import TrainConfig

PAIRS = [
    (f"Why is ${letter}^2 + {number}$ {word}?", f"Suppose ${letter} = {number}$. Then ${letter}^2$ is {word}.")
    for number, (letter, word) in enumerate(
        (letter, word) for letter in "xyzabcnm" for word in ("prime", "even", "positive", "irrational")
    )
]
TEXTS = ["Prove that $x^2+1$ is irreducible.", "Is every group of order $p^2$ abelian?", "No formulas here."]

ENCODER = EncoderConfig(**{**values("model", "thesis"), "hidden_dim": 16, "num_layers": 1, "projection_dim": 8})


@pytest.fixture(scope="module")
def training_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("training")


@pytest.fixture(scope="module")
def model(training_folder: Path) -> MathAMR:
    training = TrainConfig(
        **{**values("train", "laptop"), "epochs": 1, "batch_size": 4, "validation_fraction": 0.25, "device": "cpu"}
    )
    return MathAMR.train(PAIRS, out=training_folder, encoder=ENCODER, training=training)


def test_a_saved_model_has_the_same_weights_and_vectors(model: MathAMR, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "demo", data="32 pairs of a test", scores={"nDCG'": 0.5})
    opened = MathAMR.from_pretrained(tmp_path / "demo")
    first, second = model.encode(TEXTS), opened.encode(TEXTS)
    assert torch.equal(first.vectors, second.vectors)
    assert torch.equal(first.ptr, second.ptr)
    own, other = model.encoder.state_dict(), opened.encoder.state_dict()
    assert own.keys() == other.keys()
    assert all(torch.equal(own[name], other[name]) for name in own)
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == sorted(model_folder.FILES)
    card = (tmp_path / "demo" / "README.md").read_text()
    assert "32 pairs of a test" in card
    assert "| nDCG' | 0.500 |" in card
    opened.save_pretrained(tmp_path / "again", limits="Tests.")
    kept = (tmp_path / "again" / "README.md").read_text()
    assert kept.replace("again", "demo").split("## Limits")[0] == card.split("## Limits")[0]
    assert kept.endswith("## Limits\n\nTests.\n")
    names = ("model.safetensors", "checkpoint.json", "vocabulary.json")
    assert [(tmp_path / "again" / name).read_bytes() for name in names] == [
        (tmp_path / "demo" / name).read_bytes() for name in names
    ]


def test_similarity_is_maxsim(model: MathAMR) -> None:
    sets = model.encode(TEXTS)
    similarities = model.similarity(sets, sets)
    assert similarities.shape == (3, 3)
    for row, first in enumerate(sets):
        for column, second in enumerate(sets):
            assert similarities[row, column].item() == pytest.approx((first @ second.T).amax(1).sum().item(), abs=1e-5)
    assert sets.vectors.shape[1] == model.dimension
    normalized = model.similarity(sets, sets, normalize=True)
    assert torch.allclose(normalized.diagonal(), torch.ones(3), atol=1e-5)
    assert model.explain(TEXTS[0], TEXTS[1]).score == pytest.approx(similarities[0, 1].item(), abs=1e-5)


def test_progress_is_shown_where_it_is_asked_for(model: MathAMR, capsys: pytest.CaptureFixture[str]) -> None:
    assert model.to("cpu") is model
    assert model.device.type == "cpu"
    model.encode(TEXTS * 30)
    assert capsys.readouterr().err == ""  # not a terminal
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True)
        patch.setenv("TTY_COMPATIBLE", "1")
        quiet = model.encode(TEXTS * 30, show_progress_bar=False)
        assert capsys.readouterr().err == ""
        shown = model.encode(TEXTS * 30)
        assert "encoding" in capsys.readouterr().err
    assert torch.equal(quiet.vectors, shown.vectors)


def test_one_text_is_one_set(model: MathAMR) -> None:
    sets = model.encode(TEXTS[0])
    assert len(sets) == 1
    assert torch.equal(sets[0], sets.vectors)
    with pytest.raises(RetrievalError, match="no texts to encode"):
        model.encode([])
    post = Post("7", "answer", body=TEXTS[0], markup="text")
    assert torch.equal(model.encode(post).vectors, sets.vectors)


def test_a_text_that_cannot_be_read_is_named(model: MathAMR) -> None:
    with pytest.raises(RetrievalError, match=r"text 1 \(1\) cannot be read"):
        model.encode(["Is $x$ even?", ""])
    for text in (None, ["a"]):
        with pytest.raises(RetrievalError, match=r"text 1 is .*; give a string or a Post"):
            model.encode(["a", text])  # type: ignore[list-item]
    for texts in (5, None, b"ab", {"a": 1}, {"a"}):
        with pytest.raises(RetrievalError, match=r"the texts are .*; give a string, a Post, or a list of them"):
            model.encode(texts)  # type: ignore[arg-type]


def test_an_index_finds_what_is_most_similar(model: MathAMR, tmp_path: Path) -> None:
    query = "Prove that $x^2+1$ is irreducible, please."
    expected = model.similarity(query, TEXTS)[0].argsort(descending=True).tolist()
    with model.index(TEXTS) as index:
        found = index.search(query, k=3)
        assert [result.post.post_id for result in found] == [str(place) for place in expected]
        assert found[0].explanation is None
        (best,) = index.search(query, k=1, explain=True)
        assert best.explanation is not None
        assert best.explanation.score == pytest.approx(best.score, abs=1e-5)
        assert index.search("$x^2+1$", k=1, task="formulas")[0].formula is not None
        assert (len(index), repr(index)) == (3, "PostIndex(3 posts)")
        with pytest.raises(RetrievalError, match="is not a text; search one text at a time"):
            index.search([query])  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"k=1\.5 is no number of results; give a whole number"):
            index.search(query, k=1.5)  # type: ignore[arg-type]
        by_name, by_value = (index.search(query, strategy=one) for one in ("single_vector", Strategy("single_vector")))
        assert [one.score for one in by_name] == [one.score for one in by_value]
        with pytest.raises(RetrievalError, match="unknown strategy 'best'; choose from"):
            index.search(query, strategy="best")
    with pytest.raises(RetrievalError, match="the index is closed"):
        index.search(query)
    with pytest.raises(ConfigError, match=r"'mine' is a folder; use PostIndex\.open"):
        PostIndex("mine")  # type: ignore[arg-type]
    posts = [Post("a", "answer", body="Let $x=1$.", markup="text"), Post("b", "answer", body="Even.", markup="text")]
    with model.index(posts, tmp_path / "index") as kept:
        assert {result.post.post_id for result in kept.search("Is $x$ even?")} == {"a", "b"}
    assert (tmp_path / "index" / "index.json").is_file()
    with pytest.raises(StoreError, match=r"holds other files, e\.g\. index; name a new folder"):
        model.index(posts, tmp_path)
    with pytest.raises(RetrievalError, match="two posts have the id a"):
        model.index([posts[0], posts[0]])
    with pytest.raises(RetrievalError, match="no posts to index"):
        model.index([])


def test_posts_with_one_id_are_refused_before_they_are_mixed_up(model: MathAMR) -> None:
    with pytest.raises(RetrievalError, match="two posts have the id 0"):
        model.encode(["Cats sleep.", Post("0", "answer", body="$x^2$ is prime.", markup="text")])


def test_settings_of_another_make_are_refused(model: MathAMR, tmp_path: Path) -> None:
    place = tmp_path / "demo"
    model.save_pretrained(place)
    settings = json.loads((place / "mathamr.json").read_text())
    for change in ({"virtual_nodes": {**settings["virtual_nodes"], "rooms": 3}}, {"virtual_nodes": {"structure": "x"}}):
        (place / "mathamr.json").write_text(json.dumps(settings | change))
        with pytest.raises(StoreError, match=r"mathamr.json is damaged"):
            MathAMR.from_pretrained(place)


def test_a_model_is_saved_where_one_is(model: MathAMR, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    model.save_pretrained(".")
    assert MathAMR.from_pretrained(tmp_path / "here").dimension == model.dimension


def test_a_folder_that_is_no_saved_model_is_not_replaced(model: MathAMR, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("My project.")
    with pytest.raises(StoreError, match=r"the folder holds README.md without mathamr.json, .* name a new folder"):
        model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "My project."


def test_a_model_that_is_replaced_is_named(model: MathAMR, tmp_path: Path) -> None:
    place = tmp_path / "demo"
    model.save_pretrained(place)
    (place / "mathamr.json").unlink()  # as a killed call leaves it
    model.save_pretrained(place)  # nothing else is there: no warning
    files = model._files
    weights = {name: tensor + 1 for name, tensor in files.weights.items()}
    with pytest.warns(UserWarning, match=r"demo held a model with the weights \w{12}; it is replaced by \w{12}"):
        MathAMR(dataclasses.replace(files, weights=weights)).save_pretrained(place)
    (place / "mathamr.json").unlink()
    with pytest.raises(StoreError, match=r"is not a saved model"):
        model.save_pretrained(place)


def damage(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoint.json", "vocabulary.json"])
def test_a_changed_file_is_refused_with_both_hashes(model: MathAMR, tmp_path: Path, name: str) -> None:
    model.save_pretrained(tmp_path / "demo")
    damage(tmp_path / "demo", name)
    with pytest.raises(StoreError, match=rf"{name} has the SHA-256 \w{{64}}, but mathamr.json says \w{{64}}"):
        MathAMR.from_pretrained(tmp_path / "demo")


@pytest.mark.parametrize("name", ["mathamr.json", "model.safetensors", "checkpoint.json", "vocabulary.json"])
def test_a_missing_file_is_named(model: MathAMR, tmp_path: Path, name: str) -> None:
    model.save_pretrained(tmp_path / "demo")
    (tmp_path / "demo" / name).unlink()
    with pytest.raises(StoreError, match=f"{name} is missing"):
        MathAMR.from_pretrained(tmp_path / "demo")


def test_another_vocabulary_is_refused_with_both_hashes(model: MathAMR, tmp_path: Path) -> None:
    place = tmp_path / "demo"
    model.save_pretrained(place)
    content = json.loads((place / "vocabulary.json").read_text())
    content["labels"][-1] = "another"
    (place / "vocabulary.json").write_text(json.dumps(content))
    settings = json.loads((place / "mathamr.json").read_text())
    settings["files"]["vocabulary.json"] = digests.of_file(place / "vocabulary.json")
    (place / "mathamr.json").write_text(json.dumps(settings))
    with pytest.raises(StoreError, match=f"trained with the vocabulary {model.vocabulary.hash}, not with"):
        MathAMR.from_pretrained(place)


def test_other_virtual_nodes_are_refused(model: MathAMR, tmp_path: Path) -> None:
    place = tmp_path / "demo"
    model.save_pretrained(place)
    settings = json.loads((place / "mathamr.json").read_text())
    settings["virtual_nodes"] = dataclasses.asdict(dataclasses.replace(model.spec, connectivity="circular"))
    (place / "mathamr.json").write_text(json.dumps(settings))
    with pytest.raises(StoreError, match="trained on graphs of configuration"):
        MathAMR.from_pretrained(place)


def test_a_folder_with_other_files_is_not_written_to(model: MathAMR, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match=r"other files, e.g. thesis.tex"):
        model.save_pretrained(tmp_path)
    assert (tmp_path / "thesis.tex").exists()
    with pytest.raises(StoreError, match=r"thesis.tex: is a file, and a model is a folder; name a new folder"):
        model.save_pretrained(tmp_path / "thesis.tex")


def test_a_link_to_a_folder_is_followed(model: MathAMR, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to("v1", target_is_directory=True)
    for _ in ("new", "replaced"):
        model.save_pretrained(link)
        assert (link.is_symlink(), link.resolve()) == (True, tmp_path / "v1")
        assert sorted(path.name for path in (tmp_path / "v1").iterdir()) == sorted(model_folder.FILES)


def test_a_name_that_is_nothing_is_refused(model: MathAMR) -> None:
    with pytest.raises(ConfigError, match="neither a folder nor a hub id"):
        MathAMR.from_pretrained("no/such/folder")
    with pytest.raises(ConfigError, match="is not a hub id"):
        model.push_to_hub("name-without-owner")
    with pytest.raises(ConfigError, match="no pairs to learn from"):
        MathAMR.train([])
    with pytest.raises(ConfigError, match=r"pair 1 is 'Is it\?'; give \(question, answer\), two texts"):
        MathAMR.train([("Is it?", "It is."), "Is it?"])  # type: ignore[list-item]


def test_the_hub_gets_and_gives_the_files_of_a_model_alone(
    model: MathAMR, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for huggingface_hub, which records what it is asked for."""
    asked: list[object] = []

    def upload_folder(repo_id: str, folder_path: Path, allow_patterns: list[str]) -> str:
        asked.append(("upload", repo_id, allow_patterns))
        shutil.copytree(folder_path, tmp_path / "stored")
        return "https://hub/commit"

    def snapshot_download(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append(("download", name, revision, allow_patterns))
        if name == "lab/gone":
            raise OSError("404: no such repository\nmore lines")
        return str(tmp_path / "stored")

    api = SimpleNamespace(
        create_repo=lambda name, private, exist_ok: asked.append(("create", name, private)), upload_folder=upload_folder
    )
    stand_in = SimpleNamespace(HfApi=lambda token: api, snapshot_download=snapshot_download)
    monkeypatch.setattr(model_folder, "_hub", lambda: stand_in)
    assert model.push_to_hub("lab/demo", data="24 pairs", scores={"MRR": 0.5}, private=True) == "https://hub/commit"
    stored = (tmp_path / "stored" / "README.md").read_text()
    assert "## Data\n\n24 pairs\n" in stored
    assert "| MRR | 0.500 |" in stored
    opened = MathAMR.from_pretrained("lab/demo", revision="v1")
    assert torch.equal(opened.encode(TEXTS[0]).vectors, model.encode(TEXTS[0]).vectors)
    files = list(model_folder.FILES)
    assert asked == [
        ("create", "lab/demo", True),
        ("upload", "lab/demo", files),
        ("download", "lab/demo", "v1", files),
    ]
    with pytest.raises(
        ConfigError, match=r"lab/gone is not a folder, and cannot be downloaded: 404: no such repository$"
    ):
        MathAMR.from_pretrained("lab/gone")


@pytest.mark.parametrize("parser", ["amrlib-bart-large", "embedded 1 en_core_web_sm 3.8.0"])
def test_another_parser_is_said(parser: str, model: MathAMR, tmp_path: Path) -> None:
    place = tmp_path / "demo"
    model.save_pretrained(place)
    settings = json.loads((place / "mathamr.json").read_text())
    own, settings["parser"] = settings["parser"], parser
    (place / "mathamr.json").write_text(json.dumps(settings))
    with pytest.warns(UserWarning, match=f"graphs of the parser {parser}; {own} reads texts"):
        opened = MathAMR.from_pretrained(place)
    opened.index(TEXTS, tmp_path / "index").close()
    assert json.loads((tmp_path / "index" / "index.json").read_text())["parser"] == own


def test_a_checkpoint_of_a_training_is_opened_with_its_tensors(
    model: MathAMR, training_folder: Path, tmp_path: Path
) -> None:
    best = training_folder / "model" / "best"
    with pytest.raises(StoreError, match=r"is a training checkpoint; open it with MathAMR.from_checkpoint"):
        MathAMR.from_pretrained(best)
    opened = MathAMR.from_checkpoint(best, training_folder / "preprocessed.db")
    assert torch.equal(opened.encode(TEXTS).vectors, model.encode(TEXTS).vectors)
    assert repr(opened) == repr(model)
    assert re.search(r" parameters, parser 'embedded \d+ en_core_web\w+ [\d.]+'\)$", repr(opened))
    opened.save_pretrained(tmp_path / "saved")
    assert MathAMR.from_pretrained(tmp_path / "saved").encode(TEXTS[0]).vectors.equal(opened.encode(TEXTS[0]).vectors)


def test_a_checkpoint_has_the_parser_of_its_graphs(training_folder: Path, tmp_path: Path) -> None:
    """As in an experiment's folder, whose records name the collection with the graphs of the tensors."""
    best, tensors = training_folder / "model" / "best", tmp_path / "preprocessed-1.db"
    shutil.copyfile(training_folder / "preprocessed.db", tensors)
    assert repr(MathAMR.from_checkpoint(best, tensors)).endswith("parser 'embedded')")
    for number in (1, 2):
        add_graphs(tmp_path / f"collection-{number}.db", [], source="s", parser=f"embedded {number} small 3.8.0")
    with pytest.raises(
        ConfigError, match=r"parsers embedded 1 small 3.8.0 and embedded 2 small 3.8.0; give parser_name="
    ):
        MathAMR.from_checkpoint(best, tensors)
    assert repr(MathAMR.from_checkpoint(best, tensors, parser_name="own")).endswith("parser 'own')")
    record = {"path": "elsewhere/collection-1.db", "graphs": GraphStore(tensors).source}
    (tmp_path / "collection-1-5e2a.content.json").write_text(json.dumps(record))
    MathAMR.from_checkpoint(best, tensors).save_pretrained(tmp_path / "saved")
    with pytest.warns(UserWarning, match="graphs of the parser embedded 1 small 3.8.0; embedded"):
        MathAMR.from_pretrained(tmp_path / "saved")


def test_too_few_pairs_are_counted(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"answered questions: 2; give at least 3$"):
        MathAMR.train(PAIRS[:2], out=tmp_path)


@pytest.mark.parametrize("questions", [4, 10])
def test_default_settings_hold_out_two_questions_of_few(
    questions: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repr(MathAMR.train(PAIRS[:questions], out=tmp_path, encoder=ENCODER)).startswith("MathAMR(")
    assert "1 question is held out" not in capsys.readouterr().err


def test_every_refusal_is_an_error_of_the_project() -> None:
    assert issubclass(StoreError, MathAMRError)
