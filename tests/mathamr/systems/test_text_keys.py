"""Keys of text encoders: they change with what trains them, also where no setting shows it."""

from pathlib import Path

import pytest

from experiments.plan import plan
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError
from mathamr.text import linearize
from mathamr.text.training import batches
from tests.experiments.tiny_settings import trial

pytestmark = pytest.mark.usefixtures("quick_composition")


def model_key(*settings: str) -> str | None:
    (job,) = plan(trial("track=text", "text=tiny", "experiment.seeds=[1]", *settings), Fingerprints("posts"))
    return job.model_key


@pytest.mark.parametrize(
    ("settings", "changes"), [(("text.epochs=0", "text.linearize=true"), True), (("text.epochs=0",), False)]
)
def test_another_way_to_write_formulas_is_another_model(
    settings: tuple[str, ...], changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = model_key(*settings)
    monkeypatch.setattr(linearize, "VERSION", linearize.VERSION + 1)
    assert (model_key(*settings) != before) == changes


@pytest.mark.parametrize(("epochs", "changes"), [(1, True), (0, False)])
def test_other_negatives_train_another_model(epochs: int, changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_key(f"text.epochs={epochs}")
    monkeypatch.setattr(batches, "VERSION", batches.VERSION + 1)
    assert (model_key(f"text.epochs={epochs}") != before) == changes


@pytest.mark.parametrize(
    ("settings", "changes"),
    [("text.gradient_checkpointing=true", False), ("text.gradient_accumulation=2", True), ("text.lora=4", True)],
)
def test_settings_that_train_another_encoder_are_in_its_key(settings: str, changes: bool) -> None:
    assert (model_key("text.epochs=1", settings) != model_key("text.epochs=1")) == changes


def test_other_texts_pretrain_another_model(tmp_path: Path) -> None:
    texts = tmp_path / "passages.txt"
    texts.write_text("Let $x$ be prime.\n")
    given, pretrained = f"data.texts={texts}", "text.pretraining_epochs=1"
    assert model_key(given) == model_key()  # nothing is pretrained
    keys = {model_key(pretrained), model_key(pretrained, given)}
    texts.write_text("Let $y$ be prime.\n")
    assert len({*keys, model_key(pretrained, given)}) == 3
    texts.unlink()
    with pytest.raises(ConfigError, match=r"data\.texts=.*passages\.txt cannot be read"):
        model_key(pretrained, given)


def test_a_guide_is_known_by_its_weights(tmp_path: Path) -> None:
    key = model_key("text.epochs=1")
    for folder in ("one", "other"):
        (tmp_path / folder / "guide").mkdir(parents=True)
        (tmp_path / folder / "guide" / "model.safetensors").write_bytes(b"weights")
    one, other = (f"text.guide={tmp_path / folder / 'guide'}" for folder in ("one", "other"))
    guided = model_key("text.epochs=1", one)
    assert guided == model_key("text.epochs=1", other) != key
    (tmp_path / "one" / "guide" / "model.safetensors").write_bytes(b"other weights")
    assert model_key("text.epochs=1", one) != guided


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((), "use text.late_interaction=true"),
        (("text.late_interaction=true", "train.processes=2"), "use train.processes=1, not 2"),
    ],
)
def test_vectors_of_tokens_are_trained_to_be_searched_and_in_one_process(
    settings: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        model_key("text.epochs=1", "text.loss=maxsim", *settings)


@pytest.mark.parametrize("text", ["minilm", "tiny", "thesis", "knowledge_graph"])
def test_graph_and_text_are_compared_with_every_encoder(text: str) -> None:
    jobs = plan(trial(f"text={text}", exp="graph_vs_text"), Fingerprints("posts"))
    assert any(job.condition == "text_tokens_finetuned" for job in jobs)
