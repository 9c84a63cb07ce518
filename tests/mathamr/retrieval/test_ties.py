"""Equal scores have one order everywhere: that in which trec_eval reads them, by id as a string, descending."""

from __future__ import annotations

from typing import cast

import ir_measures
import torch

from mathamr.evaluation.order import best_first
from mathamr.evaluation.runs import Run
from mathamr.maxsim import VectorSets
from mathamr.retrieval.bm25 import BM25Index
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.fusion import interpolate, rankings_of, reciprocal_rank_fusion, standard_sum
from mathamr.retrieval.index import ranked
from mathamr.retrieval.scores import topic_scores
from mathamr.retrieval.strategies import Strategy, search_reference
from mathamr.stages.retrieval.threads import Threads
from mathamr.stages.topic_sets import Retrieved, TopicSet

IDS = ["9", "10", "2", "200"]
EXPECTED = ["9", "200", "2", "10"]
EQUAL = [(name, 1.0) for name in IDS]


def thread_ranking() -> list[tuple[str, float]]:
    """Answers of two questions that have one score."""
    threads = Threads({"9": "q1", "10": "q1", "2": "q2", "200": "q2"})
    found = Retrieved({"A.1": [("q1", 1.0), ("q2", 1.0)]})
    results = threads.answers(found, TopicSet(1, [], [], "mini"), 9).results
    return cast(list[tuple[str, float]], results["A.1"])


def test_each_search_orders_equal_scores_in_the_same_way() -> None:
    vectors = VectorSets.of([torch.tensor([[1.0, 0.0]])] * 4)
    one = vectors.select(torch.tensor([0]))
    strategy = Strategy("maxsim")
    rankings = {
        "exact": ExactIndex.build(IDS, vectors).search(one, strategy, 4)[0],
        "reference": search_reference(IDS, vectors, one, strategy, 4)[0],
        "qdrant": ranked(IDS, [1.0] * 4),
        "bm25": BM25Index.build(IDS, [["x"]] * 4).search([["x"]])[0],
        "rrf": reciprocal_rank_fusion([{"A.1": [one]} for one in EQUAL])["A.1"],
        "weighted": interpolate([{"A.1": EQUAL}], [1.0])["A.1"],
        "standard": standard_sum([{"A.1": topic_scores(EQUAL, 9)}])["A.1"],
        "threads": thread_ranking(),
        "run file": rankings_of(Run.from_results("me", {"A.1": EQUAL}))["A.1"],
    }
    assert {system: [name for name, _ in ranking] for system, ranking in rankings.items()} == dict.fromkeys(
        rankings, EXPECTED
    )


def test_the_order_is_that_of_trec_eval() -> None:
    """Reciprocal rank of each document as the only relevant one gives its rank."""
    run = [ir_measures.ScoredDoc("A.1", name, score) for name, score in EQUAL]
    ranks = {}
    for name in IDS:
        (value,) = ir_measures.iter_calc([ir_measures.RR], [ir_measures.Qrel("A.1", name, 1)], run)
        ranks[name] = round(1 / value.value)
    assert sorted(ranks, key=ranks.__getitem__) == EXPECTED


def test_scores_that_differ_beyond_float32_are_equal() -> None:
    assert best_first(["a", "b"], [0.1, 0.1 - 1e-12]).tolist() == [1, 0]
    assert best_first([], []).tolist() == []
