"""Learned ranking kept for search: the parts' scores and the facts of posts, weighted as in the experiment.

record = {"of": ["text", "words"], "features": ["standard"], "results": 1000, "years": {"A.1": "2020"}, "topics": {}}
open_learned(record, Path("index/everything"), parts).rank(topic)       # [("540", 1.32), ...]

A topic of the experiment is ranked by weights that its year did not teach, as in the run file; a typed query by weights
that all years taught.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.corpus.post import Topic
from graphs.errors import RetrievalError, StoreError
from mathamr.evaluation.order import best_first
from mathamr.ranking.features import Facts, features_of
from mathamr.ranking.judged import Floats
from mathamr.ranking.left_out import Fitted, LeftOut, read_left_out
from mathamr.retrieval.index import Ranking
from mathamr.retrieval.scores import documents_of
from mathamr.systems.searchable.facts import KeptFacts
from mathamr.systems.searchable.fusion import chosen
from mathamr.systems.searchable.kept import Part, entry

WEIGHTS = "weights.json"
FACTS = "facts.db"


def ranked(fitted: Fitted, documents: Sequence[str], features: Floats, results: int) -> Ranking:
    """Return the best documents by learned weights.

    Args:
        fitted: the weights.
        documents: ids of all candidates.
        features: their features (documents, features).
        results: most documents returned.
    """
    values = fitted.ranker.scores(features)
    order = best_first(documents, values)[:results]
    return [(documents[place], float(values[place])) for place in order]


@dataclass(frozen=True)
class LearnedSearch:
    """Learned weights of other conditions' scores.

    Attributes:
        parts: the conditions by name, in order.
        families: families of features.
        weights: the weights, by the years that taught them.
        years: year of each topic of the experiment.
        topics: questions that are the topic, by its id.
        facts: facts of the posts; None where no feature needs them.
        results: most results of a topic.
    """

    parts: Mapping[str, Part]
    families: Sequence[str]
    weights: LeftOut
    years: Mapping[str, str]
    topics: Mapping[str, frozenset[str]]
    facts: KeptFacts | None
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the weighted ranking; each part is searched."""
        systems = {name: {topic.topic_id: part.scores(topic)} for name, part in self.parts.items()}
        documents = documents_of(list(systems.values()), topic.topic_id)
        facts = Facts() if self.facts is None else self.facts.of(documents, self.topics)
        features = features_of(self.families, systems, facts, topic, documents)
        return ranked(self.weights.of(self.years.get(topic.topic_id, "")), documents, features, self.results)

    def close(self) -> None:
        """Close the facts; the parts are closed by their owner."""
        if self.facts is not None:
            self.facts.close()


def open_learned(record: Mapping[str, Any], folder: Path, parts: Mapping[str, Part]) -> LearnedSearch:
    """Open the weights in ``folder`` for parts that are open.

    Raises:
        StoreError: a part, a setting or a file is missing or damaged.
    """
    of = entry(record, "of")
    own = dict(zip(of, chosen(parts, of), strict=True))
    topics = {topic: frozenset(questions) for topic, questions in entry(record, "topics").items()}
    families, years, results = (entry(record, name) for name in ("features", "years", "results"))
    try:
        weights = read_left_out(json.loads((folder / WEIGHTS).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, RetrievalError) as error:
        raise StoreError(f"cannot be read as weights: {error}; build the index again", path=folder / WEIGHTS) from error
    facts = KeptFacts(folder / FACTS) if entry(record, "facts") else None
    return LearnedSearch(own, families, weights, years, topics, facts, results)
