"""Experiments in tests keep no logbook with Weights & Biases, unless a test asks for one. And jobs without training."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from experiments.job import Outcome, run_job
from experiments.models import Models
from experiments.plan import Job
from graphs.corpus.post import Judgment, PlaceholderText, Post, Topic
from graphs.stores.posts import PostText
from mathamr.retrieval.explanation import Explanation, VirtualNode
from mathamr.stages.console import Console
from mathamr.stages.topic_sets import Encoded, Indexed, Question, Retrieved, Trained

SUBJECTS = ("ring", "group", "field", "lattice", "module", "category", "sheaf", "graph", "tree", "matroid")
FORMULAS = ("x^2+1", r"\frac{a}{b}", r"\sum_{i=1}^n i", "f(x)=0", r"A \subset B")
TOPIC = Topic("A.1", Post("A.1", "topic", title="What is $x$?", body="I ask.", markup="text"))
QUESTION = Question(1, [TOPIC], [Judgment("A.1", "a", 3), Judgment("A.1", "b", 0)], "judged")


class OneAnswer:
    """A track that trains nothing and finds ``a``; counts what it was asked for, and knows what it then found."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.encoded = 0
        self.graphs = "graphs"
        self.error: Exception | None = None

    def check(self, config: Any, questions: Any) -> None: ...

    def prepare(self, config: Any, questions: Any) -> None: ...

    def source(self, config: Any) -> str:
        return self.graphs

    def rankings_source(self, config: Any) -> str:
        return self.graphs

    def train(self, config: Any, folder: Path, log: Any) -> Trained:
        self.found.append(sorted(path.name for path in folder.iterdir() if path.name != "log.jsonl"))
        log({"kind": "start", "step": 0})
        log({"kind": "step", "step": 1})
        if self.error is not None:
            raise self.error
        (folder / "best").mkdir()
        (folder / "best" / "checkpoint.json").write_text(str(config.train.epochs))
        return Trained(folder / "best", {"time_per_epoch_s": 1.0})

    def best(self, folder: Path) -> Path:
        return folder / "best"

    def tidy(self, folder: Path) -> None: ...

    def encode(self, config: Any, trained: Trained, questions: Any) -> Encoded:
        self.encoded += 1
        return Encoded(None, {"encode_docs_per_second": 10.0})

    def index(self, config: Any, encoded: Encoded, question: Question, folder: Path) -> Indexed:
        folder.mkdir()
        (folder / "vectors").touch()
        return Indexed(None, {"vectors": 2})

    def retrieve(self, config: Any, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        return Retrieved({"A.1": [("a", 1.0), ("b", 0.5)]}, {"queries_per_second": 9.0})

    def explain(self, config: Any, encoded: Encoded, topic: Topic, post_id: str) -> Explanation:
        node = VirtualNode("formula", 0, "x")
        return Explanation([node], [node], torch.ones(1, 1))

    def space(self, config: Any, encoded: Encoded, question: Question, choose: Any) -> None:
        return None

    def there(self, encoded: Encoded, post_ids: Any) -> Any:
        return post_ids

    readable = there

    def texts(self, post_ids: Any) -> dict[str, PostText]:
        title, text = PlaceholderText(("T",), ()), PlaceholderText(("Let it be.",), ())
        return {name: PostText(name, title, text, []) for name in post_ids}


def job(epochs: int = 1, condition: str = "none", seed: int = 1, keep: bool = False) -> Job:
    config = {
        "data": {"years": []},
        "train": {"epochs": epochs},
        "index": {"keep": keep},
        "experiment": {"name": "demo"},
        "wandb": {"mode": "disabled", "artifacts": False},
    }
    return Job(condition, seed, OmegaConf.create(config), f"key{condition}{epochs}", f"model{epochs}")


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


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """40 questions with their answers on ten subjects, a topic each; two posts that are none."""
    root = tmp_path / "data"
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
