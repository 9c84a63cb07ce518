"""The AMR parser that a configuration chooses: its options, its errors, and that two parsers' graphs never mix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import ConfigCompositionException

from experiments.configuration.composition import parser_options, read_groups
from experiments.configuration.registration import job_settings, register, validated
from experiments.plan import plan
from graphs.amr.parsers import PARSERS
from graphs.corpus.corpus import open_corpus
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError
from graphs.stores.collection import Collection
from mathamr.stages import parsers
from mathamr.stages.console import Console
from mathamr.stages.tensors import Preparation

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]


def composed(*overrides: str) -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return validated(compose("config", ["+exp=vn_connectivity", *overrides]))


def graphs_file(path: Path, verb: str) -> Path:
    path.write_text("".join(f"# ::id {i}\n({verb[0]} / {verb} :ARG1 (f / FORMULA_0))\n\n" for i in "78"))
    return path


def test_every_option_of_every_parser_has_a_default_and_no_other() -> None:
    [options] = read_groups([], "parsers")
    assert {name: set(options[name]) for name in options} == {
        name: {*entry.needs, *entry.takes} for name, entry in PARSERS.items()
    }


def test_the_command_line_reaches_every_option() -> None:
    config = composed("graph.parser=transition", "parsers.transition.python=py38", "parsers.transition.batch_size=2")
    name, options = parsers.parser_of(job_settings(config))
    assert (name, options["python"], options["batch_size"]) == ("transition", "py38", 2)
    assert options["model"] == "doc-sen-conll-amr-seed42"
    assert "worker" not in options
    assert parser_options("transition", ["python=py38", "batch_size=2"]) == options
    with pytest.raises(ConfigCompositionException, match="pyhton"):
        composed("parsers.transition.pyhton=py38")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["graph.parser=stanford"], "graph.parser=stanford is unknown. Choose from: embedded"),
        (["graph.parser=penman_file"], r"needs the option path.*; the options are parsers\.penman_file"),
        (["graph.parser=amrlib", "parsers.amrlib.model_dir=m", "parsers.amrlib.batch_size=many"], "is not a number"),
        (["graph.parser=penman_file", "parsers.penman_file.path=nowhere.penman"], "nowhere.penman: cannot be read"),
        (
            ["graph.parser=transition", "parsers.transition.python=py38", "parsers.transition.worker=nowhere.py"],
            "nowhere.py: cannot be read.*; it should be a program",
        ),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(composed(*overrides), Fingerprints("posts"))


def test_keys_change_with_what_the_graphs_depend_on_and_with_nothing_else(tmp_path: Path) -> None:
    def keys(*overrides: str) -> tuple[str, str]:
        job = plan(composed(*overrides), Fingerprints("posts"))[0]
        return job.model_key, job.key

    transition = ["graph.parser=transition", "parsers.transition.python=py38"]
    assert keys(*transition) == keys(*transition, "parsers.transition.seconds_per_chunk=5")
    assert keys() == keys("parsers.transition.model=other")  # of a parser that is not chosen
    others = [keys(), keys(*transition), keys(*transition, "parsers.transition.model=other")]
    for name in ("one", "two"):
        path = graphs_file(tmp_path / "graphs.penman", f"{name}-01")  # the same path, another content
        others.append(keys("graph.parser=penman_file", f"parsers.penman_file.path={path}"))
    for program in ("print(1)", "print(2)"):
        (tmp_path / "worker.py").write_text(program)
        others.append(keys(*transition, f"parsers.transition.worker={tmp_path / 'worker.py'}"))
    assert len({model for model, _ in others}) == len({key for _, key in others}) == 7


def test_graphs_of_two_files_lie_in_two_collections(tmp_path: Path) -> None:
    posts = [{"post_id": i, "kind": "answer", "body": "Solve $x$."} for i in "78"]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    preparation = Preparation(open_corpus("jsonl", tmp_path), tmp_path / "shared", Console())
    made = []
    for verb in ("solve-01", "prove-01"):
        path = graphs_file(tmp_path / f"{verb}.penman", verb)
        overrides = ["graph.parser=penman_file", f"parsers.penman_file.path={path}", "workers=1"]
        settings = job_settings(composed(*overrides))
        prepared = preparation(settings, [])
        assert preparation.of(settings) == prepared
        made.append(prepared)
        with Collection(prepared.collection) as graphs:
            assert [graph.penman.split()[2] for graph in graphs] == [verb, verb]
            assert str(graphs.meta["parser"]).startswith(f"penman_file 3 {verb}.penman sha256:")
    assert made[0].collection != made[1].collection
    assert made[0].posts != made[1].posts
