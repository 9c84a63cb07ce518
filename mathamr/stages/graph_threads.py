"""Check of ``graph.thread``: an answer as one graph with its question, or also with its siblings."""

from __future__ import annotations

from collections.abc import Sequence

from graphs.errors import ConfigError
from mathamr.model.config import EncoderConfig
from mathamr.stages.needed import extent_of
from mathamr.stages.settings import PreparationSettings
from mathamr.stages.topic_sets import TopicSet

_NEED_DUPLICATES = ("accepted", "answers")


def check_graph_threads(
    settings: PreparationSettings, model: EncoderConfig, topic_sets: Sequence[TopicSet], *, trains: bool
) -> None:
    """Raise for settings that do not work with graphs of threads.

    In training an answer is never read with the question that it is the positive of. So only answers of duplicates
    train the virtual nodes of questions.

    Args:
        model: settings of its encoder.
        topic_sets: topics that the job is measured on.
        trains: the encoder is trained, and not given.

    Raises:
        ConfigError: names the setting to change.
    """
    thread = settings.graph.spec().thread
    if thread == "none":
        return
    training = settings.train
    wrong = {
        "finds answers, and Task 2 formulas; use experiment.tasks=[1]": any(one.task == 2 for one in topic_sets),
        "reads questions beside answers, and data.posts=needed parses some posts only; use data.posts=all": extent_of(
            settings.data
        )
        != "all",
        "has labels without words; use model.label_vectors=null": model.label_vectors is not None,
        "has several document nodes in a graph; use model.vn_init=zero or random": model.vn_init == "mean",
        "has no views of formulas; use train.formula_view_weight=0": training.formula_view_weight > 0,
        f"and train.positives={training.positives} read no answer with its question in training; use "
        "train.positives=duplicates or all": thread == "question" and trains and training.positives in _NEED_DUPLICATES,
    }
    for message, applies in wrong.items():
        if applies:
            raise ConfigError(f"graph.thread={thread} {message}")
