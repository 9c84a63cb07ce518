"""Training on pairs of texts: posts -> graphs -> tensors -> an encoder, all in one folder.

    pairs = [("Why is $\\sqrt 2$ irrational?", "Suppose $\\sqrt 2 = p/q$ ...")]
    best, tensors = train_on_pairs(pairs, Path("model"), encoder=None, training=None, spec=None, workers=1)

The steps are those of mathamr build graphs, mathamr build tensors and mathamr train, with the default settings of
``conf/``. The same call resumes an interrupted one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from graphs import shared_files
from graphs.corpus.post import Pair, Post
from graphs.errors import ConfigError, TrainingError
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.collection import Collection
from mathamr.default_settings import values
from mathamr.model.config import EncoderConfig
from mathamr.stages.console import Console
from mathamr.stages.data.graphs import build_graphs
from mathamr.stages.data.tensors import build_tensors, build_vocabulary, count_labels
from mathamr.stages.learning.graph_model import TrainingData, train_graph_model
from mathamr.stages.learning.reporting import only_trainer
from mathamr.stages.parsers import factory
from mathamr.stages.settings import GraphConfig
from mathamr.training.config import TrainConfig
from mathamr.training.pairs import FEWEST_QUESTIONS, smallest_fraction


def train_on_pairs(
    pairs: Iterable[tuple[str, str]],
    folder: Path,
    *,
    encoder: EncoderConfig | None,
    training: TrainConfig | None,
    spec: VirtualNodeSpec | None,
    workers: int,
) -> tuple[Path, Path]:
    """Train an encoder; return its checkpoint and its tensors, files of ``folder``.

    Arguments and errors are those of :meth:`mathamr.pretrained.model.MathAMR.train`.
    """
    posts, known = _posts(pairs)
    questions = len({pair.question_id for pair in known})
    if questions < FEWEST_QUESTIONS:
        raise TrainingError(f"answered questions: {questions}; give at least {FEWEST_QUESTIONS}")
    encoder = encoder or EncoderConfig(**values("model", "thesis"))
    if training is None:
        training = TrainConfig(**values("train", "laptop"))
        fraction = training.validation_fraction
        if round(questions * fraction) < 2:  # the loss of a single question is always 0
            fraction = smallest_fraction(questions)
        learned = int(len(known) * (1 - fraction))  # the others are held out
        batch_size = max(2, min(training.batch_size, learned))
        training = replace(training, batch_size=batch_size, validation_fraction=fraction)
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    content = shared_files.key([[post.post_id, post.body] for post in posts])[:16]
    graphs, tensors = folder / "collection.db", folder / "preprocessed.db"
    build_graphs(posts, graphs, factory(), console, source=content, workers=workers, total=len(posts))
    config = GraphConfig(**values("graph"))
    spec = spec or config.spec()
    with Collection(graphs) as source:
        labels = build_vocabulary([count_labels(source.rows(), spec.formulas, console)], config, console)
        store = build_tensors(
            source.rows(), tensors, labels, spec, console, source=content, total=len(source), workers=workers
        )
    with only_trainer(folder / "model"):
        result, _ = train_graph_model(TrainingData(store, known), training, encoder, folder / "model", console)
    return result.best, tensors


def _posts(pairs: Iterable[tuple[str, str]]) -> tuple[list[Post], list[Pair]]:
    """Return the texts as posts, without repetitions, and the pairs of their ids."""
    ids: dict[str, str] = {}
    posts: list[Post] = []

    def post_of(text: str, kind: str) -> str:
        if text not in ids:
            ids[text] = f"{kind[0]}{len(ids)}"
            posts.append(Post(ids[text], "question" if kind == "question" else "answer", body=text, markup="text"))
        return ids[text]

    known = []
    for place, pair in enumerate(pairs):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise ConfigError(f"pair {place} is {pair!r:.80}; give (question, answer), two texts")
        known.append(Pair(post_of(pair[0], "question"), post_of(pair[1], "answer")))
    if not known:
        raise ConfigError("no pairs to learn from; give questions with their answers")
    return posts, list(dict.fromkeys(known))
