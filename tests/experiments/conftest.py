"""Experiments in tests keep no logbook with Weights & Biases, unless a test asks for one. And jobs without training."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from experiments.configuration.config import Config, ExperimentConfig, GeometryConfig, WandbConfig
from experiments.job import Outcome, run_job
from experiments.models import Models
from experiments.plan import Job
from experiments.report.blocks import Figure
from graphs.amr.embedded.parser import EmbeddedParser
from graphs.corpus.post import Judgment, PlaceholderText, Post, Topic
from graphs.stores.posts import PostText
from mathamr.retrieval.explanation import Explanation, VirtualNode
from mathamr.stages.console import Console
from mathamr.stages.settings import IndexConfig, RetrievalConfig, SearchSettings
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet, Trained
from tests.mathamr.job_settings import DATA, shared_fields

SUBJECTS = ("ring", "group", "field", "lattice", "module", "category", "sheaf", "graph", "tree", "matroid")
FORMULAS = ("x^2+1", r"\frac{a}{b}", r"\sum_{i=1}^n i", "f(x)=0", r"A \subset B")
_WORDS = ["is", "every", "finite", "the", "ring", "group", "field", "of", "a", "integers", "prime", "x", "2", "+", "$"]
TOPIC = Topic("A.1", Post("A.1", "topic", title="What is $x$?", body="I ask.", markup="text"))
QUESTION = TopicSet(1, [TOPIC], [Judgment("A.1", "a", 3), Judgment("A.1", "b", 0)], "judged")


_parsed: dict[tuple[str, ...], Any] = {}  # graphs by model and sentences, in all tests


class OneAnswer:
    """A track that trains nothing and finds ``a``; counts what it was asked for, and knows what it then found."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.encoded = 0
        self.graphs = "graphs"
        self.error: Exception | None = None

    def check(self, settings: Any, topic_sets: Any) -> None: ...

    def prepare(self, settings: Any, topic_sets: Any) -> None: ...

    def source(self, settings: Any) -> str:
        return self.graphs

    def pairs(self, settings: Any) -> dict[str, Any]:
        return {}

    def rankings_source(self, settings: Any) -> str:
        return self.graphs

    def train(self, settings: Any, folder: Path, log: Any) -> Trained:
        self.found.append(sorted(path.name for path in folder.iterdir() if path.name != "log.jsonl"))
        log({"kind": "start", "step": 0})
        log({"kind": "step", "step": 1})
        if self.error is not None:
            raise self.error
        (folder / "best").mkdir()
        (folder / "best" / "checkpoint.json").write_text(str(settings.train.epochs))
        return Trained(folder / "best", {"time_per_epoch_s": 1.0})

    def best(self, folder: Path) -> Path:
        return folder / "best"

    def tidy(self, folder: Path) -> None: ...

    def encode(self, settings: Any, trained: Trained, topic_sets: Any) -> Encoded:
        self.encoded += 1
        return Encoded(None, {"encode_docs_per_second": 10.0})

    def index(self, settings: Any, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        folder.mkdir()
        (folder / "vectors").touch()
        return Indexed(None, {"vectors": 2})

    def retrieve(self, settings: Any, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        return Retrieved({"A.1": [("a", 1.0), ("b", 0.5)]}, {"queries_per_second": 9.0})

    def explain(self, settings: Any, encoded: Encoded, topic: Topic, post_id: str) -> Explanation:
        node = VirtualNode("formula", 0, "x")
        return Explanation([node], [node], torch.ones(1, 1))

    def embedding_space(self, settings: Any, encoded: Encoded, topic_set: TopicSet, select: Any) -> None:
        return None

    def searchable(self, encoded: Encoded, post_ids: Any) -> Any:
        return post_ids

    readable = searchable

    def texts(self, post_ids: Any) -> dict[str, PostText]:
        title, text = PlaceholderText(("T",), ()), PlaceholderText(("Let it be.",), ())
        return {name: PostText(name, title, text, []) for name in post_ids}


@dataclass(frozen=True)
class Training:
    """Settings of the training of :class:`OneAnswer`."""

    epochs: int


@dataclass(frozen=True, kw_only=True)
class OneAnswerSettings(SearchSettings):
    """Settings of :class:`OneAnswer`."""

    train: Training


def job(
    epochs: int = 1, condition: str = "none", seed: int = 1, keep: bool = False, analyses: tuple[str, ...] = ()
) -> Job:
    config = Config(
        data=DATA,
        geometry=GeometryConfig(k=3, samples=20, size=None, psi=25, posts=100, topics=3, statements=4, projections=[]),
        wandb=WandbConfig(mode="disabled", project="p", entity=None, artifacts=False),
        experiment=ExperimentConfig(name="demo", title="Demo", baseline="none", analyses=list(analyses)),
        track="test",
        outputs="outputs",
        workers=1,
        job=None,
    )
    settings = OneAnswerSettings(
        **shared_fields(seed=seed),
        train=Training(epochs),
        index=IndexConfig(backend="exact", location=None, m_all=0, keep=keep),
        retrieval=RetrievalConfig(strategy="maxsim", exact=True, pool=10, ef=10, k=10),
    )
    return Job(
        condition=condition,
        seed=seed,
        config=config,
        settings=settings,
        key=f"key{condition}{epochs}",
        model_key=f"model{epochs}",
    )


class Bench:
    """Runs jobs in ``folder/demo``."""

    job = staticmethod(job)

    def __init__(self, folder: Path) -> None:
        self.track, self.said = OneAnswer(), list[str]()
        self.shared, self.folder = folder / "shared", folder / "demo"
        self.models = Models(self.shared, self.said.append)

    def run(self, one: Job) -> Outcome:
        return run_job(one, self.folder, self.track, self.models, [QUESTION], Console())

    def place(self, one: Job) -> Path:
        return self.folder / "jobs" / one.name


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(autouse=True)
def without_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")


@pytest.fixture(scope="session", autouse=True)
def every_composition_is_quick(quick_composition: None) -> None:
    """Compose quickly in all tests of experiments."""


@pytest.fixture(scope="module", autouse=True)
def quick_parser() -> Iterator[None]:
    """Let the embedded parser parse the same sentences once, not in each test."""
    parse = EmbeddedParser.parse

    def parse_new(self: EmbeddedParser, chunks: Sequence[Sequence[str]]) -> list[Any]:
        keys = [(self.model, *chunk) for chunk in chunks]
        new = [key for key in dict.fromkeys(keys) if key not in _parsed]
        _parsed.update(zip(new, parse(self, [chunk for _, *chunk in new]), strict=True))
        return [_parsed[key] for key in keys]

    with patch.object(EmbeddedParser, "parse", parse_new):
        yield


@pytest.fixture(scope="module")
def without_plots() -> Iterator[None]:
    """Leave the plots of reports empty; tests of reports, and of every experiment, draw them."""

    def init(self: Figure, draw: Any, alt: str, caption: str) -> None:
        vars(self).update(draw=lambda name: f'<svg id="{name}" role="img"></svg>', alt=alt, caption=caption)

    with patch.object(Figure, "__init__", init):
        yield


@pytest.fixture
def without_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reports make all their plots, and leave out the last step to SVG, which takes longer than the jobs."""
    from experiments.report.figures import charts, geometry, heat_map

    for module in (charts, geometry, heat_map):
        monkeypatch.setattr(module, "svg", lambda _, name, alt: f'<svg id="{name}" role="img"></svg>')


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """40 questions with their answers on ten subjects, a topic each; two broken posts."""
    return write_collection(tmp_path / "data")


def write_collection(root: Path) -> Path:
    """Write the collection to a new folder."""
    root.mkdir()
    posts: list[dict[str, Any]] = []
    for i, subject in enumerate(SUBJECTS * 4):
        formula = FORMULAS[i % 5]
        posts.append(
            {"post_id": f"q{i}", "kind": "question", "markup": "text", "title": f"When is a {subject} finite?"}
            | {"body": f"Let ${formula}$ be given. Is the {subject} number {i} finite?"}
        )
        posts.append(
            {"post_id": f"a{i}", "kind": "answer", "markup": "text", "parent_id": f"q{i}"}
            | {"body": f"The {subject} is finite if ${formula}$ holds. See $n={i}$."}
        )
    posts.append({"post_id": "empty", "kind": "answer", "markup": "text", "parent_id": "q0", "body": ""})
    lines = [json.dumps(post) for post in posts] + ['{"post_id": "broken", ']
    (root / "posts.jsonl").write_text("\n".join(lines) + "\n")
    topics = [
        {"post_id": f"T.{i}", "markup": "text", "title": f"Finite {subject}", "body": f"Is every {subject} finite?"}
        for i, subject in enumerate(SUBJECTS)
    ]
    (root / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    answers = [(f"a{i}", subject) for i, subject in enumerate(SUBJECTS * 4)]
    (root / "qrels.tsv").write_text(
        "".join(
            f"T.{i}\t0\t{answer}\t{3 * (own == subject)}\n"
            for i, subject in enumerate(SUBJECTS)
            for answer, own in answers
        )
    )
    return root


def with_years(collection: Path) -> Path:
    """Give the topics of a collection names of two years of ARQMath."""
    names = {f"T.{i}": f"A.{i + 1 if i < 5 else i + 201}" for i in range(10)}
    for file in ("topics.jsonl", "qrels.tsv"):
        text = (collection / file).read_text()
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"').replace(f"{old}\t", f"{new}\t")
        (collection / file).write_text(text)
    return collection


def write_splade(place: Path) -> Path:
    """Write a SPLADE with random weights below ``place``; return its folder."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sentence_transformer.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    folder = place / "masked"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BertForMaskedLM(BertConfig.from_dict(sizes)).save_pretrained(folder)
    modules = [Transformer(str(folder), transformer_task="fill-mask"), SpladePooling("max")]
    model = SparseEncoder(modules=modules, device="cpu")
    model.save_pretrained(str(place / "splade"))
    return place / "splade"
