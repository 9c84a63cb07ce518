"""Second stage: the first results of another condition, of the same seed, scored again by a heavier model.

    conditions:
      graph: {}
      questions: {thread: {read: question}}
      again: {track: rerank, rerank: {of: graph, questions: questions}}
      texts: {track: rerank, rerank: {of: graph, scorer: cross_encoder, encoder: FOLDER}}

``cross_encoder`` reads the texts of topic and answer together. ``attention`` reads the vectors of the other condition's
model (:mod:`mathamr.ranking.cross_scorer`) and is trained on the pairs of ``train``, without those whose questions are
topics. Vectors of their questions are made by a condition with the same model and ``thread.read=question``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphs.corpus.corpus import Corpus
from graphs.corpus.leaks import PairsApart
from graphs.corpus.post import Topic
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, RetrievalError, StoreError
from graphs.shared_files import read_json
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.result_file import RESULT
from mathamr.evaluation.runs import check_k
from mathamr.model.encoding import device_of
from mathamr.ranking.cross_scorer import CrossScorer, mine, rescore, train_cross_scorer
from mathamr.ranking.text_models import open_cross_encoder
from mathamr.retrieval.index import Ranking, ranked
from mathamr.stages.console import Console
from mathamr.stages.leak_control import CollectionPairs
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.parts import RANKINGS, joint_size, joint_speed, places_of, run_left
from mathamr.systems.registry import system
from mathamr.systems.settings.combined import RerankSettings
from mathamr.systems.system import System
from mathamr.training.limits import check_bounds

SCORERS = ("attention", "cross_encoder")
STEP = 1e-4  # between results that are not scored again, as a share of the range of new scores
_MOST_ANSWERS = 20_000  # that negatives are mined from

Rescore = Callable[[Topic, Sequence[str]], NDArray[np.float64]]
"""A topic and ids of answers -> a score for each answer."""


@system("rerank")
class RerankSystem(System[RerankSettings]):
    """Score the first results of another condition again."""

    tasks = frozenset({1})

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        super().__init__(corpus, shared, console)
        self._pairs = CollectionPairs(corpus, self.post_files, console)

    def check(self, settings: RerankSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check the scorer; the plan has checked the condition."""
        self._pairs.topic_sets = topic_sets
        own = settings.rerank
        if own.scorer not in SCORERS:
            raise ConfigError(f"rerank.scorer={own.scorer} is not one of {', '.join(SCORERS)}")
        check_k(own.depth, "rerank.depth")
        check_bounds("rerank", own, positive=("learning_rate",))
        if own.scorer == "cross_encoder":
            if own.encoder is None:
                raise ConfigError("rerank.scorer=cross_encoder needs rerank.encoder, the folder of a CrossEncoder")
            open_cross_encoder(own.encoder, max_length=own.max_length, device="cpu")

    def pairs(self, settings: RerankSettings) -> Mapping[str, PairsApart]:
        """Return the pairs that the attention learns from; none of a cross-encoder."""
        return {"": self._pairs(settings.train)} if settings.rerank.scorer == "attention" else {}

    def index(self, settings: RerankSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Return the costs of the other condition; nothing is indexed again."""
        return Indexed(None, joint_size(settings, settings.needs()[:1], topic_set))

    def retrieve(self, settings: RerankSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Score the first results again; the others follow in their order."""
        own = settings.rerank
        places = places_of(settings, settings.needs())
        run = run_left(places[0], topic_set.test_name, 1)
        by_text = own.scorer == "cross_encoder"
        score = self._by_text(settings) if by_text else self._by_vectors(settings, places, topic_set)
        results: dict[str, Ranking] = {}
        with Stopwatch() as watch:
            for topic in topic_set.topics:
                names = [hit.doc_id for hit in run.rankings.get(topic.topic_id, ())]
                results[topic.topic_id] = reranked(names, score(topic, names[: own.depth]))[: settings.retrieval.k]
        return Retrieved(results, joint_speed(settings, settings.needs()[:1], topic_set, watch.seconds))

    def _by_text(self, settings: RerankSettings) -> Rescore:
        own = settings.rerank
        assert own.encoder is not None
        model = open_cross_encoder(own.encoder, max_length=own.max_length, device=device_of(settings.train.device))

        def score(topic: Topic, names: Sequence[str]) -> NDArray[np.float64]:
            texts = self.texts(names)
            if unknown := [name for name in names if name not in texts]:
                raise RetrievalError(
                    f"topic {topic.topic_id}: {len(unknown):,} results of rerank.of={own.of} are no posts of the "
                    f"collection, e.g. {unknown[0]}; use a run over this collection"
                )
            return model(as_text(extract(topic.post)), [as_text(texts[name].text) for name in names])

        return score

    def _by_vectors(self, settings: RerankSettings, places: Sequence[Path], topic_set: TopicSet) -> Rescore:
        vectors = self._vectors(settings, places, topic_set)
        scorer = self._trained(settings, vectors, self._searched(topic_set))

        def score(topic: Topic, names: Sequence[str]) -> NDArray[np.float64]:
            if not names:
                return np.zeros(0)
            question, answers = vectors.sets([topic.post.post_id]), vectors.sets(names)
            return rescore(scorer, question, answers).double().cpu().numpy()

        return score

    def _vectors(self, settings: RerankSettings, places: Sequence[Path], topic_set: TopicSet) -> EncodedPosts:
        """Open the vectors of the other conditions' model."""
        (key,) = {(read_json(place / RESULT) or {}).get("model_key") for place in places}
        folder = self.shared / "models" / str(key)
        encoded = read_json(folder / "encoded.json")
        if encoded is None:
            message = f"no vectors of rerank.of={settings.rerank.of}; remove {places[0]} and run it again"
            raise StoreError(message, path=folder)
        vectors = EncodedPosts(folder, encoded["model_hash"])
        identity = vectors.kept_identity(topic.post.post_id for topic in topic_set.topics)
        for place in places:
            used = (read_json(place / RANKINGS) or {}).get("vectors", {}).get(str(topic_set.test_name), identity)
            if used != identity:
                message = f"the vectors are of other topics or another model than in {place}; remove it and run again"
                raise StoreError(message, path=folder)
        return vectors

    def _searched(self, topic_set: TopicSet) -> frozenset[str] | None:
        """Return the posts that are searched for the topics, with their questions; None: all."""
        if topic_set.regime != "judged":
            return None
        judged = {judgment.doc_id for judgment in topic_set.judgments}
        questions = self.threads([topic_set]).question_of(judged)
        return frozenset(judged | set(questions.values()))

    def _trained(self, settings: RerankSettings, vectors: EncodedPosts, searched: frozenset[str] | None) -> CrossScorer:
        """Train the attention on the pairs whose posts have vectors.

        Args:
            searched: posts that other conditions make vectors of for these topics. There may be vectors of more, made
                for other topics; what is trained does not depend on them.
        """
        own, kept = settings.rerank, self._pairs(settings.train).kept
        known = frozenset(vectors.encoded([post for pair in kept for post in (pair.question_id, pair.answer_id)]))
        if searched is not None:
            known &= searched
        pairs = [pair for pair in kept if pair.question_id in known and pair.answer_id in known]
        if not pairs:
            raise ConfigError(
                f"rerank.questions={own.questions}: no question of a training pair has vectors; use "
                "thread.read=question in that condition, or rerank.scorer=cross_encoder"
            )
        pairs = pairs[:_MOST_ANSWERS]
        questions = list(dict.fromkeys(pair.question_id for pair in pairs))
        answers = list(dict.fromkeys(pair.answer_id for pair in pairs))
        row = {name: place for place, name in enumerate(questions)}
        column = {name: place for place, name in enumerate(answers)}
        question_sets, read = vectors.sets(questions), vectors.sets(answers)
        places = [(row[pair.question_id], column[pair.answer_id]) for pair in pairs]
        with torch.no_grad():
            examples = mine(question_sets, read, places, count=own.negatives, closest=settings.train.negative_closest)
        if not examples:
            has_others = len(set(places)) < len(questions) * len(answers)
            raise ConfigError(
                f"rerank.scorer=attention: no training pair of {len(pairs):,} has negatives, because "
                + (
                    f"all other answers score above train.negative_closest={settings.train.negative_closest} times the "
                    "right one; raise it (at most 1.0), or set null"
                    if has_others
                    else "there are no other answers; use more training pairs, or rerank.scorer=cross_encoder"
                )
            )

        def report(epoch: int, loss: float) -> None:
            self.console.say(f"  cross-scorer: epoch {epoch + 1} of {own.epochs}, loss {loss:.4f}")

        return train_cross_scorer(
            question_sets,
            read,
            examples,
            hidden_dim=own.hidden_dim,
            epochs=own.epochs,
            learning_rate=own.learning_rate,
            seed=settings.seed,
            report=report,
        )


def reranked(names: Sequence[str], scores: NDArray[np.float64]) -> Ranking:
    """Return a ranking with its first results in the order of new scores, and the others a little below.

    All of the others together lower the range of the scores by little, so that a fusion still tells the first apart:

    >>> reranked(["a", "b", "c", "d"], np.array([0.25, 0.75]))
    [('b', 0.75), ('a', 0.25), ('c', 0.24995), ('d', 0.2499)]

    Args:
        names: ids of the results, best first.
        scores: new scores of the first of them.
    """
    first = ranked(names[: len(scores)], scores)
    highest, lowest = (first[0][1], first[-1][1]) if first else (0.0, 0.0)
    step = STEP * max(highest - lowest, abs(lowest) / 500, 0.001)  # more than a float32 resolves
    return first + [(name, lowest - step * place) for place, name in enumerate(names[len(scores) :], start=1)]
