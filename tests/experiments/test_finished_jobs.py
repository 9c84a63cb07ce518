"""From an experiment to a search: the model, tensors and graphs of a finished job, and an index of them."""

import json
import re
import shlex
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

import scripts.index
import scripts.search
from experiments import run as runner
from experiments.configuration.composition import configuration_of
from experiments.configuration.registration import register, validated
from experiments.indexes.finished_jobs import finished_job
from experiments.run import Ended, run
from graphs.errors import ConfigError
from graphs.stores.store import GraphStore
from mathamr.search.catalog import Catalog
from mathamr.training import checkpoint
from tests.experiments.conftest import write_collection
from tests.experiments.tiny_settings import ROOT, SMALL

pytestmark = pytest.mark.usefixtures("without_plots")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory, without_plots: None) -> Path:
    """A finished experiment of two connectivities and BM25."""
    place = tmp_path_factory.mktemp("finished")
    settings = ["experiment.only=[none,circular,words]", "+experiment.conditions.words={track: bm25}"]
    return finished(write_collection(place / "data"), place / "out", "+exp=vn_connectivity", *settings)


def finished(collection: Path, outputs: Path, *changes: str) -> Path:
    """Run an experiment with one seed; return its folder."""
    settings = ["data=jsonl", f"data.root={collection}", f"outputs={outputs}", *SMALL, *changes]
    settings += ["experiment.seeds=[7]", "experiment.analyses=[]", "train.device=cpu", "workers=1"]
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = validated(compose("config", settings))
    assert run(config, shlex.join(["python", "-m", "experiments.run", *settings])).failed == 0
    return outputs / str(config.experiment.name)


def test_an_index_has_the_posts_that_the_job_searched(
    experiment: Path, collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not those that it learned from, nor those of another experiment, whose tensors and model it shares."""
    judgments, judged = (collection / "qrels.tsv").read_text().splitlines(keepends=True), {"a3", "a38", "a39"}
    (collection / "qrels.tsv").write_text("".join(line for line in judgments if line.split("\t")[2] in judged))
    settings = ["experiment.name=few", "experiment.only=[none]"]
    few = finished(collection, experiment.parent, "+exp=vn_connectivity", *settings)
    run_file = (few / "jobs" / "none-seed7" / "run.tsv").read_text().splitlines()
    assert {line.split("\t")[1] for line in run_file} == judged
    for kinds, posts in ((["answer"], judged), (["answer", "question"], judged | {"q3", "q38", "q39"})):
        words = ["--from", str(few), "none", "--device", "cpu", "--out", str(tmp_path / "index"), "--kinds", *kinds]
        assert scripts.index.main(words) == 0
        said = capsys.readouterr().err
        assert "only the posts that the job searched are indexed" in said
        assert "to index all posts, run the experiment again with data.regime=full" in said
        with closing(Catalog.open(tmp_path / "index")) as index:
            assert set(index.vectors.post_ids()) == posts
    words = finished(collection, experiment.parent, "+exp=trial", "experiment.name=words", "track=bm25")
    assert scripts.index.main(["--from", str(words), "configured", "--out", str(tmp_path / "words")]) == 0
    said = capsys.readouterr()
    assert "index:     3 posts of " in said.out
    assert "only the posts that the job searched are indexed" in said.err


def test_graphs_with_trees_made_elsewhere_are_those_of_the_job(experiment: Path, tmp_path: Path) -> None:
    copied = experiment.with_name("with_trees")
    shutil.copytree(experiment, copied)
    (tmp_path / "trees.db").write_bytes(b"trees")
    record = json.loads((copied / "experiment.json").read_text())
    record["command"] += f" data.formulas={tmp_path / 'trees.db'}"
    (copied / "experiment.json").write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"trees\.db has changed since .* has no .*; run the exp") as refusal:
        finished_job(copied, "none")
    named = re.search(r"(\S+) has no (\S+\.db)", str(refusal.value))
    assert named is not None
    graphs = Path(named[1]) / named[2]
    graphs.touch()
    job = finished_job(copied, "none")
    graphs.unlink()
    assert job.formulas_db == tmp_path / "trees.db"
    assert re.fullmatch(r"collection-embedded-3-trees[0-9a-f]{8}\.db", job.collection.name)


def test_equal_tensors_under_two_names_are_taken_once(experiment: Path) -> None:
    job = finished_job(experiment, "none")
    again = job.tensors[0].with_name("preprocessed-0.db")
    shutil.copy(job.tensors[0], again)
    again.with_suffix(".done").touch()
    try:
        assert finished_job(experiment, "none").tensors == (again, *job.tensors[1:])
    finally:
        again.with_suffix(".done").unlink()
        again.unlink()


def test_a_model_that_was_trained_again_on_other_graphs_is_not_that_of_the_job(experiment: Path) -> None:
    stamp = finished_job(experiment, "none").model.with_name("source")
    graphs = stamp.read_text()
    stamp.write_text("other-graphs")
    with pytest.raises(ConfigError, match=r"was trained again on other graphs .* job none-seed7; remove the result"):
        finished_job(experiment, "none")
    stamp.write_text(graphs)


def test_a_finished_job_is_indexed_and_searched(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = {condition: finished_job(experiment, condition) for condition in ("none", "circular")}
    for condition, connectivity in (("none", "none"), ("circular", "circular")):
        job = jobs[condition]
        trained_on = checkpoint.load(job.model).info.config_hash
        (tensors,) = [GraphStore(path, config_hash=trained_on) for path in job.tensors]
        assert (job.seed, tensors.spec.connectivity) == (7, connectivity)
    assert jobs["none"].collection == jobs["circular"].collection
    assert jobs["none"].tensors == jobs["circular"].tensors
    for made in ("preprocessed-*.db", "topics-*.db"):  # once: the second condition builds no tensors
        assert len(list(jobs["none"].collection.parent.glob(made))) == 1
    assert scripts.index.main(["--from", str(experiment), "circular", "--device", "cpu"]) == 0
    out = experiment / "indexes" / "circular-seed7"
    printed = capsys.readouterr().out
    assert "index:     40 posts" in printed
    assert f"mathamr search index={out}" in printed
    assert scripts.search.main([f"index={out}", "k=2", "Is every ring with $x^2+1$ finite?"]) == 0
    assert "post a" in capsys.readouterr().out
    failed = experiment / "jobs" / "circular-seed9"
    failed.mkdir()
    (failed / "failed.json").write_text('{"reason": "the disk is full"}')
    for arguments, message in (
        (
            [str(experiment), "circular", "--seed", "9"],
            "with seed 9; the job of seed 9 failed: the disk is full; finished seeds: 7\n",
        ),
        ([str(experiment), "square"], "unknown condition 'square' of vn_connectivity; choose from: none, sequential"),
        ([str(experiment), "circular", "--seed", "8"], "no finished job with seed 8; finished seeds: 7\n"),
        ([str(experiment), "sequential"], "no finished job with seeds 7; run it: mathamr run data=jsonl"),
        ([str(experiment), "--out", "index"], "give a condition of vn_connectivity; choose from: none, sequential"),
        ([str(experiment.parent), "circular"], "has no experiment.json"),
    ):
        assert scripts.index.main(["--from", *arguments]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(ConfigError, match="condition words is of track=bm25, which has no graph model"):
        finished_job(experiment, "words")
    job = jobs["circular"]
    job.tensors[0].with_suffix(".done").unlink()
    with pytest.raises(ConfigError, match=r"of the tensors preprocessed-\*\.db none fits .*; give --tensors"):
        finished_job(experiment, "circular")
    assert finished_job(experiment, "circular", tensors=job.tensors[0]).tensors == job.tensors


def test_a_finished_job_is_read_from_a_folder_of_any_name() -> None:
    root = '/tmp/mäth, "a(b" \\'
    command = "python -m experiments.run +exp=vn_connectivity data=arqmath data.root=/gone"
    assert configuration_of(command, Path(root)).data.root == root


def test_an_experiment_of_another_folder_is_composed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / 'my "conf", ä'
    (folder / "exp").mkdir(parents=True)
    content = (
        "# @package _global_\nexperiment: {name: odd, title: Odd, conditions: {words: {track: bm25}}, baseline: words}"
    )
    (folder / "exp" / "odd.yaml").write_text(content)
    commands = list[str]()
    monkeypatch.setattr(runner, "run", lambda composed, command: commands.append(command) or Ended("", 0))
    assert runner.start(["--config-dir", str(folder), "+exp=odd", "data.years=[2022]"]) == 0
    composed = configuration_of(commands[0])
    assert (composed.experiment.name, composed.data.years) == ("odd", [2022])
    folder.rename(tmp_path / "moved")
    with pytest.raises(ConfigError, match="ä is no folder; put it back"):
        configuration_of(commands[0])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("base: words", "exp/odd.yaml: unknown key experiment.base; did you mean experiment.baseline?"),
        ("seeds: 1, 2", "exp/odd.yaml: experiment.seeds: not a list; write [...]"),
        (None, "for one of yours, FOLDER/exp/odd.yaml, add --config-dir FOLDER"),
    ],
)
def test_a_faulty_experiment_of_another_folder_is_named(
    line: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "exp").mkdir()
    if line is not None:
        content = f"# @package _global_\nexperiment:\n  name: odd\n  {line}\n"
        (tmp_path / "exp" / "odd.yaml").write_text(content)
    assert runner.start(["--config-dir", str(tmp_path), "+exp=odd"]) == 2
    assert message in capsys.readouterr().err
