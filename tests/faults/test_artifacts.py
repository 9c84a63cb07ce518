"""Damage in what the project has written: each case gives equal results, or one message that names the file.

Offsets are drawn by seed. More of them, for as long as one likes: ``FAULTS=2000 pytest tests/faults``.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import scripts.index
from experiments.report import results
from experiments.run import run
from graphs.corpus.corpus import open_corpus
from graphs.corpus.export import export_beir
from graphs.errors import MathAMRError
from graphs.graph.vocabulary import RESERVED_LABELS, RESERVED_RELATIONS, Vocabulary
from graphs.stores.store import GraphStore
from mathamr.evaluation.result_file import RESULT, checked
from mathamr.evaluation.runs import read_run, write_run
from mathamr.model import label_vectors
from mathamr.pretrained import folder
from mathamr.pretrained.folder import ModelFiles
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.search.catalog import Catalog
from mathamr.text import sentence_vectors
from mathamr.text.training.encoder_files import check_files, read_record
from mathamr.training import checkpoint
from tests.experiments.tiny_settings import trial
from tests.faults.artifacts import Guard, guard_of
from tests.faults.commands import experiment, graphs, ids_and_vectors, inputs, tensors, texts, weights
from tests.scripts.small_collection import index_arguments

pytestmark = pytest.mark.usefixtures("quick_composition")

VOCABULARY = Vocabulary([*RESERVED_LABELS, "solve-01", "V!x"], RESERVED_RELATIONS)
FAULTS = int(os.environ.get("FAULTS", "25"))  # of each sort, in each file


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with graphs and models, an index of it, and a finished experiment on it."""
    work = tmp_path_factory.mktemp("work")
    inputs(work)
    assert scripts.index.main(index_arguments(work, work / "index")) == 0
    run(trial(*experiment(work, work / "outputs")[1:]), "the command")
    found, store = checkpoint.load(work / "model1"), GraphStore(work / "graphs.db")
    model = ModelFiles(found.info, found.weights, store.vocabulary, store.spec, "embedded")
    store.close()
    folder.write(work / "pretrained", model, "A card.")
    export_beir(open_corpus("jsonl", work / "threads"), work / "beir")
    text = ["track=text", "text=tiny", "text.epochs=1", "text.batch_size=4", "text.max_length=24"]
    own = ["experiment.name=text", "index=qdrant", "index.keep=true"]
    assert run(trial(*experiment(work, work / "of-texts")[1:], *text, *own), "the command").failed == 0
    label_vectors.write(work, torch.arange(float(VOCABULARY.num_labels * 3)).reshape(-1, 3), VOCABULARY)
    sentences = [("255", ["Solve $x=1$.", "Is it so?"]), ("256", [])]
    sentence_vectors.add(work / "sentence_vectors" / "ab12.db", sentences, letters, encoder="letters", dimension=2)
    (ranked,) = work.glob("of-texts/text/jobs/*/run.tsv")
    write_run(read_run(ranked, task=1), work / "Lab-task1-plus-auto-both-P.tsv")
    return work


def pretrained(path: Path) -> Any:
    """Return what a model's folder holds; its card is for people."""
    model = folder.read(path)
    return model.info, model.vocabulary.labels, {name: tensor.tolist() for name, tensor in model.weights.items()}


def letters(texts: list[str]) -> list[list[int]]:
    return [[len(text), text.count("s")] for text in texts]


def labels(path: Path) -> Any:
    return label_vectors.read(path.parent, path.stem.removeprefix("label_vectors-"), VOCABULARY).tolist()


def sentences(path: Path) -> Any:
    found = sentence_vectors.SentenceVectors({"": path}, encoder="letters")
    try:
        return found.of(["255", "256"], [2, 1]).tolist()
    finally:
        found.close()


def encoder(path: Path) -> Any:
    check_files(path)
    return read_record(path)


def job(path: Path) -> Any:
    return checked(path, results.content_of(path / RESULT) or {}), (path / "run.tsv").read_text()


def test_every_file_is_of_a_known_kind(work: Path) -> None:
    files = [path.relative_to(work) for path in work.rglob("*") if path.is_file()]
    unknown = sorted(str(path) for path in files if guard_of(path) is None)
    assert not unknown, "say in tests/faults/artifacts.py what guards these files against damage"
    # formulas.db is made of published files alone: tests/graphs/formulas/test_formula_store.py damages it
    assert {guard_of(path) for path in files} == set(Guard) - {Guard.DATABASE}


# what is damaged, and how it is read
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "index": ("index", lambda path: ids_and_vectors(Catalog.open(path))),
    "vectors beside a model": (
        "outputs/shared/*/models/*/encoded",
        lambda path: ids_and_vectors(ExactIndex.open(path)),
    ),
    "checkpoint": ("model1", weights),
    "model's folder": ("pretrained", pretrained),
    "tensors": ("graphs.db", tensors),
    "graphs": ("collection.db", graphs),
    "texts": ("outputs/shared/*/posts.db", texts),
    "label vectors": ("label_vectors-*.safetensors", labels),
    "sentence vectors": ("sentence_vectors/ab12.db", sentences),
    "text encoder": ("of-texts/shared/*/models/*/best", encoder),
    "job": ("outputs/*/jobs/*", job),
}


def outcome(read: Callable[[Path], Any], place: Path) -> tuple[Any, str]:
    """What is read, or the message that it is refused with; any other exception is a failure of the test."""
    try:
        return read(place), ""
    except MathAMRError as error:
        return None, str(error)


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    written = [place for place, byte in enumerate(content) if byte]  # databases have much room that nothing is in
    changed[draw.choice(written)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def is_part(after: Any, before: Any) -> bool:
    """Return whether rows got lost, and all that are left are as they were."""
    if isinstance(before, dict):
        return all(before.get(name) == row for name, row in after.items())
    return all(row in before for row in after)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("damage", [cut, flip])
def test_damage_is_a_message_or_makes_no_difference(
    work: Path, tmp_path: Path, name: str, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    pattern, read = READERS[name]
    (source,) = work.glob(pattern)
    place = tmp_path / source.name
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, place)
    before = read(place)
    files = sorted(path for path in (place.rglob("*") if place.is_dir() else [place]) if path.is_file())
    noticed = 0
    for file in [file for file in files if file.stat().st_size and not file.name.endswith(".lock")]:
        content = file.read_bytes()
        for number in range(FAULTS):
            file.write_bytes(damage(content, random.Random(f"{name} {file.name} {number}")))
            after, message = outcome(read, place)
            noticed += bool(message)
            rows = guard_of(file.relative_to(tmp_path)) is Guard.ROWS and isinstance(before, dict | list)
            assert message or after == before or (rows and is_part(after, before)), (file, number)
            assert not message or str(tmp_path) in message or "post" in message, message
        file.write_bytes(content)
    assert noticed
    assert read(place) == before


def test_a_vector_that_is_made_anew_is_equal(work: Path, tmp_path: Path) -> None:
    """Vectors beside a model that are damaged are not used."""
    from mathamr.stages.vectors import EncodedPosts

    (source,) = work.glob("outputs/shared/*/models/*/encoded")
    shutil.copytree(source, tmp_path / "encoded")
    header = ExactIndex.open(tmp_path / "encoded").model_hash
    (path,) = (tmp_path / "encoded").glob("data-*/vectors.npy")
    assert list(EncodedPosts(tmp_path, header).encoded(["a1"])) == ["a1"]
    path.write_bytes(flip(path.read_bytes(), random.Random(5)))
    assert list(EncodedPosts(tmp_path, header).encoded(["a1"])) == []
