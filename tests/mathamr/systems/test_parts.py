"""Scores that the parts of a combination leave: which of their lists are cut, and what documents beyond them score."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError, RetrievalError
from graphs.shared_files import write_json
from mathamr.evaluation.runs import Hit, Run, Task, write_run
from mathamr.retrieval.scores import SCORES, write_scores
from mathamr.stages.retrieval.threads import Threads
from mathamr.stages.settings import IndexConfig, RetrievalConfig, SearchSettings, ThreadConfig
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems import registry, thread_search
from mathamr.systems.parts import RANKINGS, cut_topics, formula_scores, scores_left
from mathamr.systems.searchable.kept import Part
from mathamr.systems.settings.built_in import GivenRunConfig, GivenRunSettings
from mathamr.systems.thread_search import ThreadSearch, searches_of
from tests.mathamr.job_settings import shared_fields

TOPIC = Topic("A.1", Post("A.1", "topic"))
COSINES = [("a", 0.90), ("b", 0.89), ("c", 0.70)]


def searched(task: Task = 1, depth: int | None = None, **retrieval: Any) -> ThreadSearch:
    """Return the search of a system that compares vectors."""
    index = IndexConfig(backend="exact", location=None, keep=False, m_all=0)
    own = RetrievalConfig(**{"strategy": "maxsim", "exact": True, "pool": 3, "ef": 10, "k": 1000, **retrieval})
    settings = SearchSettings(**shared_fields(), index=index, retrieval=own, thread=ThreadConfig(depth=depth))
    (search,) = searches_of(cast(Any, None), settings, [TopicSet(task, [TOPIC], [], "full")])
    return search


@pytest.mark.parametrize(
    ("search", "cut"),
    [
        (searched(), False),
        (searched(k=3), True),
        (searched(k=4), False),
        (searched(k=3, depth=9), False),
        (searched(depth=3), True),
        (searched(strategy="doc_vn_maxsim"), True),  # the pool has 3 posts
        (searched(strategy="doc_vn_maxsim", pool=4), False),
        (searched(strategy="doc_vn_maxsim", task=2), False),  # formulas have no pool
        (searched(exact=False, depth=100_000), True),
        (searched(k=3, depth=9, task=2), True),  # a depth is of Task 1 alone
    ],
)
def test_a_list_is_cut_where_its_own_search_ends(search: ThreadSearch, cut: bool) -> None:
    assert ("A.1" in search.answers(Retrieved({"A.1": COSINES})).cut) is cut
    part = Part(cast(Any, Fixed()), search.depth, cut_at=search.cut_at)
    if search.topic_set.task == 1:
        assert part.scores(TOPIC).floor == pytest.approx(0.70 if cut else 0.0)


class Fixed:
    """A system with one ranking."""

    def __init__(self, ranking: list[tuple[str, float]] = COSINES) -> None:
        self.ranking = ranking

    def rank(self, topic: Topic) -> list[tuple[str, float]]:
        return self.ranking


def test_a_part_sorts_what_its_system_finds_and_refuses_scores_without_order() -> None:
    part = Part(cast(Any, Fixed(COSINES[::-1])), depth=2)
    assert part.rank(TOPIC) == COSINES
    assert part.scores(TOPIC).scores == dict(COSINES[:2])
    repeated = Part(cast(Any, Fixed([*COSINES, (COSINES[0][0], 0.0)])), depth=9)
    assert repeated.rank(TOPIC) == COSINES
    assert repeated.scores(TOPIC).scores == dict(COSINES)
    with pytest.raises(RetrievalError, match="gives post a the score nan; scores must be finite"):
        Part(cast(Any, Fixed([("a", float("nan"))])), depth=None).rank(TOPIC)


def test_a_job_sorts_what_an_installed_system_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "is_installed", lambda track: True)
    monkeypatch.setattr(thread_search, "check_found", lambda *_: None)
    found = Retrieved({"A.1": COSINES[::-1]})
    system: Any = SimpleNamespace(index=lambda *_: Indexed(None), retrieve=lambda *_: found)
    retrieved, _ = searched(depth=2).run(system, cast(Any, SimpleNamespace(track="own")), Encoded(None), Path())
    assert retrieved.results == {"A.1": COSINES}  # the first two become scores.npz


def test_a_job_and_its_index_leave_the_same_of_equal_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "is_installed", lambda track: True)
    monkeypatch.setattr(thread_search, "check_found", lambda *_: None)
    equal = [("a", 0.5), ("c", 0.5), ("b", 0.5 + 1e-12), ("d", 0.9)]  # equal in float32
    system: Any = SimpleNamespace(index=lambda *_: Indexed(None), retrieve=lambda *_: Retrieved({"A.1": equal}))
    retrieved, _ = searched(depth=2).run(system, cast(Any, SimpleNamespace(track="own")), Encoded(None), Path())
    results = cast(Any, retrieved.results)["A.1"]
    assert [name for name, _ in results] == ["d", "c", "b", "a"]
    assert Part(cast(Any, Fixed(equal)), depth=2).scores(TOPIC).scores == dict(results[:2])


def test_formulas_of_an_installed_system_have_the_visual_ids_of_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "is_installed", lambda track: True)
    headers = nullcontext(SimpleNamespace(known=lambda wanted, kind=None: wanted))
    system: Any = SimpleNamespace(name="own", index=lambda *_: Indexed(None), visual_ids=lambda settings: {"f1": "v"})
    system.post_files = SimpleNamespace(headers=lambda: headers)

    def run(*hits: Any) -> tuple[Retrieved, dict[str, float]]:
        system.retrieve = lambda *_: Retrieved({"A.1": hits}, {"bytes": np.int64(3)})
        settings = cast(Any, SimpleNamespace(track="own"))
        return searched(task=2).run(system, settings, Encoded(None), Path())

    retrieved, costs = run(Hit("f1", 1.0, "p"))
    assert retrieved.visual_ids == {"f1": "v"}
    assert isinstance(costs["bytes"], int)
    with pytest.raises(RetrievalError, match=r"2 formulas, of which 1 have no visual id, e\.g\. 'v'; return"):
        run(Hit("f1", 1.0, "p"), Hit("v", 0.5, "p"))
    with pytest.raises(ConfigError, match=r"return a list of mathamr.evaluation.runs.Hit\(formula id, score, post id"):
        run(("f1", 1.0))


def test_answers_of_questions_are_cut_where_questions_are() -> None:
    search = replace(searched(k=3), threads=Threads({"answer": "a"}))
    found = search.answers(Retrieved({"A.1": COSINES}))  # two of three questions have no answer
    assert found.results == {"A.1": [("answer", 0.90)]}
    assert found.cut == {"A.1"}


def test_the_depth_of_a_given_run_is_unknown() -> None:
    settings = GivenRunSettings(**shared_fields(), run=GivenRunConfig(path=None, task2_path=None))
    (search,) = searches_of(cast(Any, None), settings, [TopicSet(1, [TOPIC], [], "full")])
    assert search.answers(Retrieved({"A.1": COSINES})).cut == {"A.1"}


@pytest.mark.parametrize("with_depth", [False, True])
def test_documents_beyond_a_part_s_list_score_as_its_own_limit_says(with_depth: bool, tmp_path: Path) -> None:
    write_run(Run("part", {"A.1": [Hit(*one) for one in COSINES]}), tmp_path / "run.tsv")
    if with_depth:
        write_scores(tmp_path / SCORES, {"A.1": COSINES}, depth=100_000)
    floors = []
    for record in ({}, {"cut": {"1": ["A.1"]}}, {"cut": {"1": []}}):
        write_json(tmp_path / RANKINGS, record)
        floors.append(scores_left(tmp_path, 1, 1000)["A.1"].floor)
    assert floors == [0.0, pytest.approx(0.70), 0.0]
    assert cut_topics(tmp_path, 2) is None


def test_formulas_are_counted_before_they_are_merged() -> None:
    hits = [Hit("f1", 0.9, "p"), Hit("f2", 0.89, "p"), Hit("f3", 0.88, "p"), Hit("f4", 0.87, "p")]
    visual_ids = {"f1": "v", "f2": "v", "f3": "w", "f4": "x"}
    runs = [Run("part", {"B.1": hits}, 2)]
    (unknown,) = formula_scores(runs, 4, visual_ids, [None])
    (complete,) = formula_scores(runs, 4, visual_ids, [[]])
    (cut,) = formula_scores(runs, 1000, visual_ids, [["B.1"]])
    assert [own["B.1"].floor for own in (unknown, complete, cut)] == [0.87, 0.0, 0.87]
    assert len(unknown["B.1"].scores) == 3
