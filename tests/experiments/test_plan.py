"""What is run, what is not run again, and what is refused before anything runs."""

import json
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from experiments.conditions import composed
from experiments.config import register
from experiments.plan import Job, finished, plan, run_key, select, with_needs
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError
from graphs.shared_files import joined
from mathamr.stages.settings import JobSettings
from mathamr.systems.settings.built_in import GivenRunSettings
from mathamr.systems.settings.trained import GraphSettings
from tests.experiments.tiny_settings import trial
from tests.mathamr.job_settings import shared_fields

ROOT = Path(__file__).resolve().parents[2]
DATA = Fingerprints(posts="posts", topics="topics", judgments="judgments")
OTHER_DATA = Fingerprints(posts="others")


def config(**experiment: Any) -> Any:
    description = {
        "name": "demo",
        "conditions": {"none": {"graph": {"connectivity": "none"}}, "ring": {"graph": {"connectivity": "circular"}}},
        "baseline": "none",
        "seeds": [1, 2, 3],
        **experiment,
    }
    changed = deepcopy(defaults())
    changed.experiment = {**changed.experiment, "labels": {}, "analyses": [], **description}
    return changed


@cache
def defaults() -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        settings = ["data.root=/somewhere", "train.epochs=7", "train.device=cpu", "index=exact"]
        found = compose("config", ["+exp=vn_connectivity", *settings])
    return OmegaConf.create(OmegaConf.to_container(found, resolve=True))


def names(jobs: list[Job]) -> list[str]:
    return [job.name for job in jobs]


def test_conditions_times_seeds() -> None:
    jobs = plan(config(), DATA)
    assert names(jobs) == ["none-seed1", "none-seed2", "none-seed3", "ring-seed1", "ring-seed2", "ring-seed3"]
    assert isinstance(jobs[4].settings, GraphSettings)
    assert jobs[4].settings.graph.connectivity == "circular"
    assert jobs[4].settings.train.seed == jobs[4].settings.seed == 2
    assert len({job.key for job in jobs}) == 6


def test_a_job_is_the_same_on_another_machine_and_another_with_other_data_or_settings() -> None:
    here = plan(config(), DATA)[0]
    elsewhere = config()
    elsewhere.outputs, elsewhere.data.root, elsewhere.train.device = "/scratch/out", "/scratch/data", "cuda"
    assert plan(elsewhere, DATA)[0].key == here.key
    assert plan(config(), Fingerprints("other posts"))[0].key != here.key
    longer = config()
    longer.train.epochs = 8
    assert plan(longer, DATA)[0].key != here.key


def changed(**changes: Any) -> Job:
    one = config(conditions={"none": {}})
    for key, value in changes.items():
        OmegaConf.update(one, key.replace("__", "."), value)
    return plan(one, DATA)[0]


@pytest.mark.parametrize(
    ("change", "model", "result"),
    [
        ({}, "same", "same"),
        ({"retrieval__strategy": "single_vector"}, "same", "another"),
        ({"index__backend": "qdrant"}, "same", "another"),
        ({"data__years": [2022]}, "same", "another"),
        ({"experiment__tasks": [1, 2]}, "same", "another"),
        ({"experiment__example": {"topic": "A.1", "post": None}}, "same", "another"),
        ({"index__keep": True}, "same", "same"),
        ({"train__checkpoint_every": 1}, "same", "same"),
        ({"train__workers": 3}, "same", "same"),
        ({"train__device": "cuda"}, "same", "same"),
        ({"workers": 8}, "same", "same"),
        ({"experiment__name": "another"}, "same", "same"),
        ({"experiment__title": "Another"}, "same", "same"),
        ({"train__epochs": 8}, "another", "another"),
        ({"model__hidden_dim": 32}, "another", "another"),
        ({"graph__connectivity": "circular"}, "another", "another"),
        ({"experiment__seeds": [9]}, "another", "another"),
    ],
)
def test_what_a_model_and_a_result_depend_on(change: dict[str, Any], model: str, result: str) -> None:
    before, after = changed(), changed(**change)
    assert (after.model_key == before.model_key) == (model == "same")
    assert (after.key == before.key) == (result == "same")


def test_texts_to_pretrain_on_are_no_part_of_results_that_do_not_read_them() -> None:
    before, after = changed(track="bm25"), changed(track="bm25", data__texts="/somewhere/texts.txt")
    assert after.key == before.key


def test_the_key_of_a_condition_depends_on_everything_but_the_seed() -> None:
    fused = {"words": {"track": "bm25"}, "graph": {}, "sum": {"track": "fusion", "fusion": {"of": ["words", "graph"]}}}

    def keys(seed: int, epochs: int = 7) -> dict[str, str]:
        one = config(conditions=fused, baseline="words", seeds=[seed])
        one.train.epochs = epochs
        return {job.condition: job.condition_key for job in plan(one, DATA)}

    assert keys(1) == keys(2)
    assert len(set(keys(1).values())) == 3
    assert {name for name, key in keys(1, epochs=8).items() if key != keys(1)[name]} == {"graph", "sum"}


def test_a_changed_file_of_general_text_is_another_result(tmp_path: Path) -> None:
    one = config(analyses=["geometry"])
    one.geometry.general = str(tmp_path / "general.txt")
    with pytest.raises(ConfigError, match=r"geometry\.general=.*general\.txt cannot be read: No such file"):
        plan(one, DATA)
    keys = []
    for text in ("The sea is calm.\n", "The sea is rough.\n", "The sea is calm.\n"):
        (tmp_path / "general.txt").write_text(text)
        keys.append(plan(one, DATA)[0].key)
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize("analysis", ["collapse", "weighting", "failures", "geometry"])
def test_the_number_of_posts_that_an_analysis_looks_at_is_part_of_its_result(analysis: str) -> None:
    one = config(analyses=[analysis])
    keys = []
    for posts in (20_000, 100):
        one.geometry.posts = posts
        keys.append(plan(one, DATA)[0].key)
    assert keys[0] != keys[1]


def test_a_part_of_the_key_of_a_ranking_hides_no_part_of_its_model_or_its_collection() -> None:
    @dataclass(frozen=True, kw_only=True)
    class OwnSettings(JobSettings):
        size: int

        def model_key_parts(self) -> dict[str, Any]:
            return {"own": {"size": self.size}, "size": self.size}

        def result_key_parts(self) -> dict[str, Any]:
            return {"own": {"weight": 1}, "collection": "own"}

    keys = {run_key(OwnSettings(**shared_fields(), size=size), data) for size in (1, 2) for data in (DATA, OTHER_DATA)}
    assert len(keys) == 4
    for size, kind in ((Path(), "PosixPath"), (np.arange(2), "ndarray")):
        with pytest.raises(ConfigError, match=f"a part of a key is not JSON: Object of type {kind}"):
            run_key(OwnSettings(**shared_fields(), size=cast(Any, size)), DATA)
    assert list(joined({"weight": float("nan")})) == ["weight"]


def test_conditions_that_search_in_different_ways_share_a_model() -> None:
    ways = {name: {"retrieval": {"strategy": name}} for name in ("maxsim", "single_vector")}
    jobs = plan(config(conditions=ways, baseline="maxsim", seeds=[1, 2]), DATA)
    assert len({job.key for job in jobs}) == 4
    assert len({job.model_key for job in jobs}) == 2


def test_a_condition_names_the_run_files_of_tests(tmp_path: Path) -> None:
    files = {test: str(tmp_path / f"{test}.tsv") for test in ("easy", "hard")}
    for path in files.values():
        Path(path).write_text(f"A.1\t{path}\t1\t2.0\tx\n")
    tested = trial("data=pairs", "experiment.tasks=[easy,hard]", "experiment.baseline=own")
    tested.experiment.conditions = {
        "own": {"track": "run", "run": {"paths": files}},
        "easy": {"track": "run", "run": {"paths": {"easy": files["easy"]}}},
    }
    settings = [job.settings for job in plan(tested, DATA)]
    assert [one.run.paths for one in settings if isinstance(one, GivenRunSettings)] == [files, {"easy": files["easy"]}]
    for paths, message in (
        ("easy.tsv", "experiment.conditions.own.run.paths is a group of settings; write e.g. run: {paths: {"),
        (None, "experiment.conditions.own.run.paths is a group of settings"),
    ):
        tested.experiment.conditions.own = {"track": "run", "run": {"paths": paths}}
        with pytest.raises(ConfigError, match=re.escape(message)):
            plan(tested, DATA)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": "nine"}, "experiment.baseline=nine is not among the conditions: none, ring"),
        ({"seeds": [1, 2, 1]}, r"repeats a seed: \[1, 2, 1\]"),
        ({"seeds": []}, "name no job"),
        ({"conditions": {}}, "name no job"),
        (
            {"only": ["none", "rign"]},
            "experiment.only=rign is not among the conditions: none, ring; did you mean ring?",
        ),
        ({"baselines": {"ring": "nine"}}, "experiment.baselines=nine is not among the conditions"),
        (
            {"conditions": {"none": {"graph": {"conectivity": "x"}}}},
            "experiment.conditions.none.graph.conectivity is not a setting; did you mean graph.connectivity",
        ),
        (
            {"conditions": {"none": {"connectivity": "x"}}},
            "none.connectivity is not a setting; did you mean graph.connect",
        ),
        (
            {"conditions": {"none": {"track": "lsa", "lsa": {"size": 9}}}},
            "experiment.conditions.none: track=lsa is not known; the tracks are graph",
        ),
        (
            {"conditions": {"none": {"graph.connectivity": "circular"}}},
            r"none: graph\.connectivity has a dot; write graph: \{connectivity: circular\}",
        ),
        ({"conditions": {"none": {"graph": "circular"}}}, "none.graph is a group of settings; write e.g. graph: {"),
        ({"conditions": {"none": "circular"}}, "none=circular changes no setting"),
        (
            {"conditions": {"none": {"track": "latent", "thread": {"read": "question"}}}},
            "none.thread.read has no effect with track=latent, which reads retrieval, latent; remove it",
        ),
        ({"conditions": {"none": {"train": {"seed": 7}}}}, "none.train.seed: seeds are those of experiment.seeds"),
        ({"conditions": {"none": {"data": {"root": "/x"}}}}, "none.data.root: all conditions share data"),
        ({"conditions": {"none": {}, "None": {}}}, "none and None would have one output"),
        ({"conditions": {"none": {}, "../up": {}}}, "becomes a folder"),
        *(({"name": name}, "experiment.name=.* becomes a folder") for name in ("../../x", "/x", "..", "", "Shared")),
        ({"labels": {"none": "A", "ring": "A"}}, "none and ring would both be called 'A'; change a label"),
        ({"labels": {"ring": "none"}}, "none and ring would both be called 'none'; change a label"),
        ({"measures": {"MRR": "RR(rel=2)", "mrr": "P@3"}}, "title 'mrr' and the title 'MRR' give one column, mrr"),
        ({"measures": {"Topics": "P@1"}}, "title 'Topics' gives the column topics, which the results use for"),
        ({"measures": {"Best val MRR": "P@1"}}, "gives the column best_val_mrr, which the results use for"),
        ({"measures": {"Task2 nDCG": "P@1"}}, "gives the column task2_ndcg, which the results use for"),
        ({"measures": {"'": "P@1"}}, "has no letter from a to z and no digit"),
        ({"conditions": {"none": {}, "same": {"graph": {"connectivity": "none"}}}}, "none and same are the same"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(config(**change), DATA)


def test_a_condition_changes_a_setting_that_others_refer_to() -> None:
    epochs: dict[str, Any] = {str(count): {"track": "bm25", "train": {"epochs": count}} for count in (1, 2)}
    named = config(conditions=epochs, baseline="1")
    named.bm25.k1 = "${train.epochs}"
    assert len({job.key for job in plan(named, DATA)}) == 2
    own = {name: {**one, "bm25": {"k1": "${train.epochs}"}} for name, one in epochs.items()}
    assert len({job.key for job in plan(config(conditions=own, baseline="1"), DATA)}) == 2


def test_parts_of_an_array_cover_every_job_once() -> None:
    jobs = plan(config(), DATA)
    parts = [select(jobs, f"{k}/4") for k in (1, 2, 3, 4)]
    assert sorted(name for part in parts for name in names(part)) == sorted(names(jobs))
    assert select(jobs, None) == jobs
    assert names(select(jobs, "2/2", ["ring"])) == ["ring-seed2"]


def test_a_part_of_an_array_has_the_jobs_that_its_own_need() -> None:
    conditions = {
        "words": {"track": "bm25"},
        "graph": {},
        "other": {"track": "bm25", "bm25": {"k1": 0.7}},
        "sum": {"track": "fusion", "fusion": {"of": ["words", "graph"]}},
        "sums": {"track": "fusion", "fusion": {"of": ["sum", "other"]}},
    }
    jobs = plan(config(conditions=conditions, baseline="words", seeds=[1]), DATA)
    assert names(with_needs(select(jobs, "5/5"), jobs)) == [f"{name}-seed1" for name in conditions]
    assert names(with_needs(select(jobs, "4/5"), jobs)) == ["words-seed1", "graph-seed1", "sum-seed1"]
    assert names(with_needs(select(jobs, "2/4"), jobs)) == ["graph-seed1"]
    only = select(jobs, None, ["sum", "graph"])
    assert names(with_needs(select(only, "2/2"), only)) == ["graph-seed1", "sum-seed1"]


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "a/b", "1/0"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(ConfigError, match="K/N"):
        select(plan(config(), DATA), part)


def test_only_a_result_of_this_very_configuration_counts_as_finished(tmp_path: Path) -> None:
    job = plan(config(), DATA)[0]
    result = tmp_path / "jobs" / job.name / "result.json"
    assert finished(job, tmp_path) is None
    result.parent.mkdir(parents=True)
    result.write_text('{"key": "another"}')
    assert finished(job, tmp_path) is None
    result.write_text('{"key": ')
    assert finished(job, tmp_path) is None
    result.write_text(json.dumps({"key": job.key, "ndcg_prime": 0.5}))
    assert finished(job, tmp_path) == {"key": job.key, "ndcg_prime": 0.5}


def test_keys_are_made_without_torch() -> None:
    """A system is imported when one of its jobs runs; a refusal on the command line does not wait for it."""
    program = (
        "import sys\n"
        "from hydra import compose, initialize_config_dir\n"
        "from experiments import config, plan, run\n"
        "from graphs.corpus.files import Fingerprints\n"
        "config.register()\n"
        f"with initialize_config_dir({str(ROOT / 'conf')!r}, version_base='1.3'):\n"
        "    composed = compose('config', ['+exp=graph_vs_text', 'train.pairs=null'])\n"
        "print(len(plan.plan(composed, Fingerprints('posts'))), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    jobs, with_torch = done.stdout.split()
    assert int(jobs) > 10
    assert with_torch == "False"


def test_settings_that_contradict_each_other_are_refused_with_their_condition() -> None:
    message = r"^experiment\.conditions\.cold: train\.temperature=0\.0 must be a positive number"
    with pytest.raises(ConfigError, match=message):
        plan(config(conditions={"none": {}, "cold": {"train": {"temperature": 0.0}}}), DATA)
    contradicting = config()
    contradicting.train.temperature = 0.0
    with pytest.raises(ConfigError, match=r"^train\.temperature=0\.0 must be a positive number"):
        plan(contradicting, DATA)


def test_a_setting_that_refers_to_another_one_follows_each_condition_and_seed() -> None:
    referring = config(conditions={"none": {}, "wide": {"model": {"hidden_dim": 32}}}, seeds=[1, 2])
    referring.text.max_length = "${model.hidden_dim}"
    referring.workers = "${train.seed}"
    found = {
        key: (one["text"]["max_length"], one["workers"])
        for key, one in composed(referring, ["none", "wide"], [1, 2]).items()
    }
    usual = referring.model.hidden_dim
    assert found == {("none", 1): (usual, 1), ("none", 2): (usual, 2), ("wide", 1): (32, 1), ("wide", 2): (32, 2)}


def test_a_condition_can_refer_to_what_it_does_not_change() -> None:
    referring = config(conditions={"none": {}, "as_text": {"model": {"hidden_dim": "${text.max_length}"}}}, seeds=[1])
    before = OmegaConf.to_container(referring)
    found = composed(referring, ["as_text", "none"], [1])
    assert found["as_text", 1]["model"]["hidden_dim"] == referring.text.max_length
    assert found["none", 1]["model"]["hidden_dim"] == referring.model.hidden_dim
    assert OmegaConf.to_container(referring) == before
