"""What a job says of its space, and what the report makes of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from experiments.analyses import failures, geometry, sampling, weighting
from experiments.configuration.config import GeometryConfig
from experiments.plan import plan
from experiments.report import results, writing
from experiments.report.blocks import Figure, markdown
from experiments.report.figures import geometry as figures
from experiments.report.geometry import embedding_space
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError, StoreError
from mathamr.analysis.isotropy import isoscore, partition_isotropy
from mathamr.analysis.overlap import overlap
from mathamr.analysis.shift import nearest_distances
from mathamr.analysis.similarities import cosine, survey
from mathamr.analysis.thresholds import highest_harmless, threshold_curve
from mathamr.evaluation.result_names import ARQMATH, is_reserved
from mathamr.evaluation.runs import Run
from mathamr.maxsim import VectorSets
from mathamr.retrieval.explanation import Explanation, VirtualNode, explain
from mathamr.stages.topic_sets import EmbeddingSpace, TopicSet
from tests.experiments.test_plan import config as planned
from tests.experiments.written_experiment import finish, write_plan

POSTS = [f"p{number}" for number in range(24)]
QRELS = {f"A.{n}": {f"p{n}": 3, f"p{n + 6}": 2, f"p{n + 12}": 1} for n in range(6)}


SETTINGS = GeometryConfig(k=3, samples=20, size=None, psi=25, posts=100, topics=3, statements=4, projections=[])


def space(*, single: bool = False, single_vector: bool = False, moved: float = 0.1) -> EmbeddingSpace:
    """Posts around six subjects, each of a formula, a sentence and the document; topics are posts 0 to 5, moved."""
    generator = np.random.default_rng(0)
    subjects = generator.normal(size=(6, 1, 8))
    vectors = np.tile(subjects, (4, 3, 1)) + 0.4 * generator.normal(size=(24, 3, 8))
    asked = vectors[:6] + moved * generator.normal(size=(6, 3, 8))
    if single:
        vectors, asked = vectors[:, 2:], asked[:, 2:]
    kinds = [2] if single else [0, 1, 2]
    documents, queries = (VectorSets.of(list(torch.from_numpy(array).float())) for array in (vectors, asked))
    return EmbeddingSpace(
        topics=list(QRELS),
        queries=queries,
        query_kinds=np.tile(kinds, 6),
        posts=POSTS,
        documents=documents,
        document_kinds=np.tile(kinds, 24),
        single_vector=single_vector,
        lengths=(lambda posts: (np.full(2_500, 5.0), np.full(len(posts), 3.0))) if single else None,
    )


def content_of(one: EmbeddingSpace) -> dict[str, Any]:
    run = Run.from_results("demo", {topic: [(f"p{topic[2:]}", 1.0)] for topic in QRELS})
    content = {
        "settings": {name: getattr(SETTINGS, name) for name in ("k", "psi", "samples", "size")},
        "sampled": {"posts": 24, "of_posts": 24},
        "run": geometry.of_run(run, QRELS, SETTINGS),
        "collapse": geometry.of_collapse(one),
        **geometry.of_space(one, QRELS, [number % 3 > 0 for number in range(24)], SETTINGS),
    }
    loaded: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return loaded


def test_a_space_of_virtual_nodes_is_compared_in_every_way() -> None:
    content = content_of(space())
    assert content["own"] == "maxsim"
    assert list(content["ways"]) == ["maxsim", "formula", "sentence", "document"]
    for way in content["ways"].values():
        assert way["queries"] == 6
        assert way["accuracy"] == [1.0, 1.0, 1.0]
        assert way["coe"][0] > way["roe"][0]
        assert len(way["densities"]["top-k"]) == len(way["points"]) == geometry.POINTS
    assert list(content["isotropy"]) == ["as they are", *geometry.TRANSFORMATIONS]
    assert content["isotropy"]["as they are"]["accuracy"] == content["ways"]["maxsim"]["accuracy"]
    assert content["isotropy"]["whitened"]["i_b"] == pytest.approx(1.0, abs=1e-3)
    assert content["collapse"]["all"]["documents"] == 24
    assert set(content["collapse"]) == {"all"}  # one formula and one sentence a post
    assert (content["words"]["with_formulas"], content["words"]["without"]) == (16, 8)
    assert content["statements"]["posts"] == ["p0", "p6", "p1", "p7", "p2", "p8"]  # grade 2 and 3
    row = geometry.columns(content)
    assert row["accuracy_at_k"] == 1.0
    assert row["coe"] == content["ways"]["maxsim"]["coe"][0]
    assert {"mrr_at_k", "roe", "i_a", "i_b", "threshold", "collapse_all_rank", "accuracy_interval"} <= row.keys()


def test_numbers_are_those_of_the_similarities_and_the_chosen_threshold() -> None:
    one = space(single=True, moved=2.0)
    content, vectors = content_of(one), one.documents.vectors.numpy()
    found = survey(cosine(one.queries.vectors.numpy(), vectors), [[n, n + 6] for n in range(6)], 3)
    assert 0 < content["ways"]["document"]["accuracy"][0] < 1
    curve = threshold_curve(found, 3, samples=20)
    best = highest_harmless(curve)
    assert content["chosen"] == curve.index(best) != content["of_paper"]
    above = overlap(found, psi=100 * best.removed, samples=20)
    row = {"threshold": best.tau, "threshold_removed": best.removed, "threshold_accuracy": best.metric.mean}
    row |= {"i_a": partition_isotropy(vectors), "i_b": isoscore(vectors)}
    assert {name: geometry.columns(content)[name] for name in row} == pytest.approx(row, abs=1e-5)
    assert content["at_threshold"]["roe"][0] == pytest.approx(above.roe.mean, abs=1e-5)
    domain = np.arange(24) % 3 > 0
    assert content["words"]["distances"] == pytest.approx(
        nearest_distances(vectors[domain], vectors[~domain]), abs=1e-5
    )


def test_a_lowest_relevant_grade_holds_for_the_run_and_the_space() -> None:
    run = Run.from_results("demo", {topic: [(f"p{int(topic[2:]) + 6}", 1.0)] for topic in QRELS})  # of grade 2
    assert [geometry.of_run(run, QRELS, SETTINGS, grade)["mrr"][0] for grade in (2, 3)] == [1.0, 0.0]
    counted = {topic: {f"p{n}": 2} for n, topic in enumerate(QRELS)}
    assert geometry.of_space(space(), counted, [True] * 24, SETTINGS)["judged"] == 6
    run = Run.from_results("demo", {topic: [("p0", 1.0)] for topic in QRELS})
    assert 0 < geometry.columns({"run": geometry.of_run(run, QRELS, SETTINGS)})["accuracy_interval"] <= 1


def test_the_way_of_the_search_comes_first() -> None:
    assert content_of(space(single_vector=True))["own"] == "document"
    content = content_of(space(single=True))
    assert list(content["ways"]) == ["document"]
    assert content["lengths"] == {"tokens": [5.0] * 2_000, "of_tokens": 2_500, "pooled": [3.0] * 6}
    assert content["collapse"] == {}


def test_a_sample_has_every_right_document_and_says_its_size() -> None:
    select, counts = sampling.sampler(QRELS, 15)
    chosen = select(POSTS)
    assert {f"p{n}" for n in range(12)} <= set(chosen)
    assert counts == {"posts": 15, "of_posts": 24}
    assert chosen == sampling.sampler(QRELS, 15)[0](POSTS)
    assert sampling.sampler(QRELS, 24)[0](POSTS) == POSTS


def test_a_space_of_judged_posts_has_those_of_any_grade(bench: Any) -> None:
    one = bench.job(analyses=("weighting",))
    one = replace(one, config=replace(one.config, geometry=replace(SETTINGS, posts=1)))
    taken: list[str] = []
    bench.track.embedding_space = lambda *given: taken.extend(given[-1](POSTS))
    sampling.judged_space(bench.track, one, None, None, {"A.1": {"p3": 0, "p9": 1, "p7": 3}})  # type: ignore[arg-type]
    assert taken == ["p3", "p7", "p9"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"projections": ["lda"]}, "Unknown projection 'lda'. Choose from: pca, tsne, umap"),
        ({"k": 0}, "geometry.k=0"),
        ({"psi": 120}, "geometry.psi=120"),
        ({"samples": 0}, "geometry.samples=0"),
        ({"size": 0}, "geometry.size=0 must be at least 1"),
        ({"posts": 0}, "geometry.posts=0 must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        geometry.check(["geometry"], replace(SETTINGS, **changes))


def test_an_analysis_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"experiment.analyses=topology; choose from: collapse, geometry"):
        geometry.check(["topology"], SETTINGS)


def test_a_job_without_vectors_has_what_its_run_says(bench: Any) -> None:
    one = bench.job(analyses=("geometry",))
    bench.run(one)
    place = bench.place(one)
    content = json.loads((place / "geometry.json").read_text())
    assert content["run"]["accuracy"] == [1.0, 1.0, 1.0]
    assert "ways" not in content
    result = json.loads((place / "result.json").read_text())
    assert result["accuracy_at_k"] == 1.0
    assert result["mrr_at_k"] == 1.0


def test_no_measure_can_have_a_column_of_a_job(bench: Any) -> None:
    one = bench.job(analyses=("collapse", "geometry"))
    whole = space()
    bench.track.embedding_space = lambda *_: EmbeddingSpace(
        ["A.1"],
        whole.queries.select(torch.tensor([0])),
        whole.query_kinds[:3],
        ["a", *POSTS[1:]],
        whole.documents,
        whole.document_kinds,
    )
    bench.run(one)
    result = json.loads((bench.place(one) / "result.json").read_text())
    assert {"mrr_at_k", "coe", "threshold_accuracy"} <= result.keys()
    assert [name for name in result if not is_reserved(name)] == [*ARQMATH, "recall_1000"]


def test_places_of_posts_go_from_the_job_to_a_map(bench: Any, tmp_path: Path) -> None:
    one = bench.job(analyses=("geometry",))
    one = replace(one, config=replace(one.config, geometry=replace(SETTINGS, projections=["pca"])))
    whole = space(single=True)
    asked = {"queries": whole.queries.select(torch.tensor([0])), "query_kinds": whole.query_kinds[:1]}
    bench.track.embedding_space = lambda *of: replace(whole, topics=["A.1"], posts=of[-1](["a", *POSTS[1:]]), **asked)
    bench.track.tags = lambda posts: {"p2": ("rings", "fields"), "p3": ("fields",)}
    bench.run(one)
    content = json.loads((bench.place(one) / "geometry.json").read_text())
    shown = content["projection"]
    assert shown["posts"] == ["a", *POSTS[1:]]
    assert shown["titles"] == ["T"] * 24
    assert shown["tags"][1:4] == [[], ["rings", "fields"], ["fields"]]
    assert np.asarray(shown["places"]["pca"]).shape == (24, 2)
    folder = write_plan(tmp_path / "spaces", ["text"], [1])
    (finish(folder, "text", 1, 0.5) / "geometry.json").write_text(json.dumps(content))
    built = embedding_space.blocks(results.read(folder))
    assert "24 posts as points in a plane, by PCA. Colours are tags: fields 1, rings 1, no tag 22." in markdown(built)


def test_what_cannot_be_measured_is_said_and_the_job_has_its_result(bench: Any) -> None:
    one = bench.job(analyses=("geometry",))
    broken = space(single=True)
    broken.documents.vectors[3] = 0
    bench.track.embedding_space = lambda *_: EmbeddingSpace(["A.1"], *_after(broken))
    bench.run(one)
    content = json.loads((bench.place(one) / "geometry.json").read_text())
    assert content["left_out"] == "no topic has a right document among the posts with vectors: nothing to measure"
    assert (bench.place(one) / "result.json").exists()


def _after(one: EmbeddingSpace) -> tuple[Any, ...]:
    return one.queries.select(torch.tensor([0])), one.query_kinds[:1], one.posts, one.documents, one.document_kinds


def test_keys_of_jobs_without_analyses_are_what_they_were() -> None:
    plain = plan(planned(), Fingerprints("posts"))[0]
    assert plan(planned(analyses=[]), Fingerprints("posts"))[0].key == plain.key
    collapse = plan(planned(analyses=["collapse"]), Fingerprints("posts"))[0]
    assert collapse.key != plain.key
    assert collapse.model_key == plain.model_key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_plan(tmp_path / "spaces", ["graph", "text", "words"], [1, 2])
    for seed in (1, 2):
        for condition, content in (("graph", content_of(space())), ("text", content_of(space(single=True)))):
            place = finish(folder, condition, seed, 0.5, key="same" if condition == "text" else f"graph{seed}")
            (place / "geometry.json").write_text(json.dumps(content))
        place = finish(folder, "words", seed, 0.4)
        (place / "geometry.json").write_text(json.dumps({key: content_of(space())[key] for key in ("settings", "run")}))
    return folder


def test_the_report_has_the_tables_of_the_paper(folder: Path) -> None:
    built = embedding_space.blocks(results.read(folder))
    text = markdown(built)
    for title in ("Table II ", "Table III "):
        assert f"In the form of {title}of the paper" in text
    assert "| graph | 1.000 | 0.000 | 1.000 |" in text
    assert "Thresholds by the paper's rule, and the best of all" in text
    assert "| words | 1.000 | 0.000 | 1.000 | 0.613 | – | – |" in text  # no vectors: accuracy alone
    assert "| graph | all vectors † | 6 |" in text
    assert "| graph | all kinds |" in text
    assert "No correlations: 2 conditions with vectors, and 3 are needed." in text
    assert "text: tokens 5.00, pooled 3.00" in text
    assert re.search(r"\| text \| 0\.\d+ \| graph \| 0\.000 \|", text)  # mean distance, baseline, D
    assert "between its distribution and that of the baseline" in text
    assert "The paper: Roychowdhury et al., arXiv:2406.12336." in text
    drawn = [block.draw(f"part-{number}") for number, block in enumerate(built) if isinstance(block, Figure)]
    assert len(drawn) == 4
    assert not any("<image" in one or "http" in one for one in drawn)
    assert drawn == [block.draw(f"part-{number}") for number, block in enumerate(built) if isinstance(block, Figure)]


def test_distances_from_posts_without_formulas_are_compared_with_the_baseline(folder: Path) -> None:
    near = content_of(space(single=True)) | {"words": {"distances": [0.001] * 16, "with_formulas": 16, "without": 8}}
    for seed in (1, 2):
        (folder / "jobs" / f"text-seed{seed}" / "geometry.json").write_text(json.dumps(near))
    text = markdown(embedding_space.blocks(results.read(folder)))
    assert "| Condition | Mean distance | Baseline | D | p |" in text
    assert "| text | 0.001 | graph | 1.000 | < 0.001 |" in text


def test_thresholds_are_those_of_the_paper_and_the_best(folder: Path) -> None:
    content = content_of(space(single=True, moved=2.0))
    head, line = embedding_space._thresholds(results.read(folder), {"text": [content]}, 3).rows
    shown = dict(zip(head, line, strict=True))
    for rule, name in (("paper", "of_paper"), ("best", "chosen")):
        one = content["thresholds"][content[name]]
        values = [f"{value:.3f}" for value in (one["tau"], one["metric"][0], one["removed"])]
        assert [shown[f"{what}, {rule}"] for what in ("τ", "Accuracy@3", "Removed")] == values
    assert shown["τ, paper"] != shown["τ, best"]
    above = content["at_threshold"]
    assert [shown["COE, best"], shown["ROE, best"]] == [f"{above[name][0]:.3f}" for name in ("coe", "roe")]
    assert shown["COE, best"] != shown["ROE, best"]


def test_long_ids_of_topics_fit_into_the_legend_of_statements() -> None:
    one = content_of(space())["statements"]
    drawn = figures.statements({"graph": one | {"topics": ["sympy.functions.combinatorial.A.0"] * 6}}).draw("part")
    assert "sympy.fun…ombinatorial.A.0" in drawn
    assert "sympy.functions" not in drawn.partition(">")[2]


def test_many_conditions_are_plotted_below_one_another() -> None:
    one = content_of(space())["statements"]
    drawn = [figures.statements(dict.fromkeys("abcdef"[:number], one)).draw("part") for number in (5, 6)]
    few, many = (float(svg.partition('height="')[2].partition("pt")[0]) for svg in drawn)
    assert many == 2 * few


@pytest.mark.usefixtures("without_rendering")
def test_the_page_has_a_part_on_the_space(folder: Path) -> None:
    writing.write([results.read(folder)], folder)
    assert "The embedding space" in (folder / "report.html").read_text()


def test_correlations_are_over_conditions(folder: Path) -> None:
    write_plan(folder, ["graph", "text", "words"], [1, 2])
    content = content_of(space())
    for seed in (1, 2):
        content["ways"]["maxsim"]["accuracy"][0], content["ways"]["maxsim"]["coe"][0] = 0.4 + seed / 10, 0.2
        (folder / "jobs" / f"words-seed{seed}" / "geometry.json").write_text(json.dumps(content))
    text = markdown(embedding_space.blocks(results.read(folder)))
    assert "In the form of Table I of the paper" in text
    assert "| Accuracy and COE | +0.9" in text or "| Accuracy and COE | +1.0" in text
    assert "| 3 |" in text
    assert "| Accuracy and I_A | – | – | – | – | – | all 3 models have the value 1" in text


def test_collapse_alone_is_one_table(folder: Path) -> None:
    for place in (folder / "jobs").iterdir():
        path = place / "geometry.json"
        path.write_text(json.dumps({"collapse": json.loads(path.read_text()).get("collapse", {})}))
    text = markdown(embedding_space.blocks(results.read(folder)))
    assert text.startswith("*How alike the vectors of a post are*")
    assert "###" not in text


def test_a_file_that_is_not_complete_is_named(folder: Path) -> None:
    (folder / "jobs" / "graph-seed1" / "geometry.json").write_text('{"run": {}, "ways": {}, "collapse": {}}')
    with pytest.raises(StoreError, match="is not complete"):
        embedding_space.blocks(results.read(folder))
    (folder / "jobs" / "graph-seed1" / "geometry.json").write_text('{"left_out": "no right document"}')
    text = markdown(embedding_space.blocks(results.read(folder)))
    assert "graph: not everything could be measured: no right document" in text


def test_other_weights_are_scored_on_the_judged_posts(bench: Any) -> None:
    one = bench.job(analyses=("weighting",))
    seen = space()
    bench.track.embedding_space = lambda *given: seen
    bench.run(one)
    place = bench.place(one)
    found = json.loads((place / "weighting.json").read_text())
    assert {"as it is", "idf, 0.7", "formulas alone", "centred"} <= found.keys()
    assert not (place / "geometry.json").exists()
    scores = weighting.weighted_scores(seen, QRELS)
    assert scores["as it is"] == scores["kinds alike"] > 0.8


def test_one_vector_a_post_has_no_weights_and_lifts(bench: Any) -> None:
    one = bench.job(analyses=("weighting", "failures"))
    bench.track.embedding_space = lambda *given: space(single=True)
    bench.run(one)
    assert not (bench.place(one) / "failures.md").exists()
    assert json.loads((bench.place(one) / "weighting.json").read_text()) == {}


def test_failures_name_what_lifts_a_post_and_what_is_missed(bench: Any) -> None:
    one = bench.job(analyses=("failures",))
    seen = space()
    nodes = [VirtualNode("formula", 0, "x^2"), VirtualNode("sentence", 0, "Look."), VirtualNode("document", 0, "")]

    def why(config: Any, encoded: Any, topic: Topic, post: str) -> Explanation | None:
        if post not in seen.posts:
            return None
        sets = list(seen.queries)[seen.topics.index(topic.topic_id)], list(seen.documents)[seen.posts.index(post)]
        return explain(sets[0], nodes, sets[1], nodes)

    bench.track.embedding_space, bench.track.explain = lambda *given: seen, why
    bench.run(one)
    assert (bench.place(one) / "failures.md").exists()

    topics = [Topic(name, Post(name, "question", body=f"Is {name} true?", markup="text")) for name in QRELS]
    run = Run.from_results("demo", {topic: [("p3", 1.0)] for topic in QRELS})
    topic_set = TopicSet(1, topics, [], "mini")
    qrels = {topic: {**grades, "p23": 3} for topic, grades in QRELS.items()}
    said = failures.describe(seen, topic_set, qrels, run, partial(why, None, None), bench.track.texts)
    assert "## A.3: nDCG' " in said
    assert "Is A.3 true?" in said
    assert re.search(r"1\. Post p\d+, \d+\.\d\d, grade 3, 3 vectors: Let it be\.", said)
    assert re.search(r"   - \+\d+\.\d\d to \d+\.\d\d: `x\^2` finds ", said)
    assert re.search(r"Missed, at \d+: post p\d+, 3 vectors: ", said)
    same = Explanation(nodes, nodes, torch.eye(3))
    lifts = failures._lifts(same, np.array([0.9, 0.8, 0.1]), np.array([0.9, 0.1, 0.0]))
    assert (
        next(lifts) == '   - +0.70 to 0.80: the sentence "Look." finds the sentence "Look."'
    )  # furthest above its mean


def test_best_matches_are_those_of_every_pair() -> None:
    one = space()
    best = failures.best_matches(one, "A.2")
    query, posts = list(one.queries)[2], list(one.documents)
    assert best == pytest.approx(np.array([[float((v @ post.T).max()) for post in posts] for v in query]), abs=1e-5)
