"""The system of docs/extending.md: installed as a separate package, and run beside the others."""

import csv
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.indexes.kept_jobs import index_job
from experiments.indexes.untrained import index_documents
from experiments.plan import Job, plan
from experiments.run import run
from graphs.corpus.corpus import open_corpus
from graphs.corpus.jsonl import JsonLines
from graphs.errors import ConfigError
from mathamr.evaluation.runs import read_run
from mathamr.search_index import open_index
from mathamr.stages.console import Console
from mathamr.systems import registry
from mathamr.systems.searchable.kept import Part
from tests.documents.blocks import blocks_of
from tests.experiments.test_tracks import BM25, configured

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]
RANDOM: dict[str, Any] = {"track": "random"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, prefix = blocks_of(ROOT / "docs" / "extending.md"), "mathamr-random/"
    blocks = [(block.file.removeprefix(prefix), block.text) for block in page if block.file.startswith(prefix)]
    assert [name for name, _ in blocks] == [
        "pyproject.toml",
        "mathamr_random/conf/random/default.yaml",
        "mathamr_random/__init__.py",
    ]
    package, target = tmp_path / "mathamr-random", tmp_path / "site"
    for name, content in blocks:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    install = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(package)]
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path)
    monkeypatch.syspath_prepend(target)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.delitem(sys.modules, "mathamr_random", raising=False)


def jobs(config: Any) -> dict[str, Job]:
    data = open_corpus(config.data.name, config.data.root).fingerprints()
    return {job.name: job for job in plan(config, data)}


@pytest.mark.usefixtures("installed")
def test_a_system_of_another_package_runs_beside_the_others(collection: Path, tmp_path: Path) -> None:
    conditions = {
        "twice": {"track": "fusion", "fusion": {"of": ["fused", "random"]}},
        "fused": {"track": "fusion", "fusion": {"of": ["words", "random"]}},
        "words": BM25,
        "random": RANDOM,
        "five": {**RANDOM, "random": {"count": 5}},
    }
    place = [f"data.root={collection}", f"outputs={tmp_path / 'out'}"]
    config = configured(conditions, *place, seeds=(1,))
    ended = run(config, "command")
    assert ended.failed == 0, ended.table
    folder = tmp_path / "out" / "tracks"
    with (folder / "results.csv").open(newline="") as file:
        rows = {row["condition"]: row for row in csv.DictReader(file)}
    assert float(rows["words"]["ndcg_prime"]) > float(rows["random"]["ndcg_prime"]) > 0
    found = {name: read_run(folder / "jobs" / f"{name}-seed1" / "run.tsv", task=1).rankings for name in conditions}
    assert {len(hits) for hits in found["five"].values()} == {5}
    assert {len(hits) for hits in found["random"].values()} == {40}  # all judged answers
    assert found["fused"].keys() == found["twice"].keys() == found["random"].keys()

    planned = jobs(config)
    assert [job.condition for job in planned.values()] == ["words", "random", "five", "fused", "twice"]
    salted = jobs(configured(conditions, *place, "random.salt=7", seeds=(1,)))
    same = {name for name, job in planned.items() if salted[name].key == job.key}
    assert same == {"words-seed1"}
    assert planned["random-seed1"].model_key == ""
    misspelled = configured({"one": {**RANDOM, "random": {"cuont": 3}}}, *place)
    with pytest.raises(ConfigError, match=r"random\.cuont is not a setting; did you mean random\.count"):
        jobs(misspelled)


@pytest.mark.usefixtures("installed")
def test_a_system_of_another_package_is_searched(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["+exp=trial", "data=jsonl", f"data.root={collection}", f"outputs={tmp_path / 'out'}", "workers=1"]
    words += ["experiment.only=[random]", "experiment.baseline=random", "+experiment.conditions.random={track: random}"]
    words += ["experiment.seeds=[1]", "experiment.name=drawn", "wandb=disabled", "random.count=7"]
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = validated(compose("config", words))
    assert run(config, shlex.join(["python", "-m", "experiments.run", *words])).failed == 0
    folder = tmp_path / "out" / "drawn"
    for lacking in ("keep", "open_kept"):
        with monkeypatch.context() as changed:
            changed.delattr(registry.find("random"), lacking)
            with pytest.raises(ConfigError, match=f"lacks the method {lacking}; index another condition"):
                index_job(folder, "random", out=tmp_path / "index")
    assert not (tmp_path / "index").exists()
    records = {"NoneType; return builtins.dict": None, "a record that is not JSON: Object of": {"a": tmp_path}}
    for message, record in records.items():
        with monkeypatch.context() as changed:
            changed.setattr(registry.find("random"), "keep", lambda self, job, place, record=record: record)
            with pytest.raises(ConfigError, match=rf"track=random: keep\(\) returned {message}"):
                index_job(folder, "random", out=tmp_path / "index")
    index_job(folder, "random", out=tmp_path / "index")
    engine, _ = open_index(tmp_path / "index")
    expected = read_run(folder / "jobs" / "random-seed1" / "run.tsv", task=1).rankings
    assert isinstance(engine.searchable, Part)
    found = {topic.topic_id: engine.searchable.run(topic) for topic in JsonLines(collection).topics(1, [])}
    assert len(engine.answer("Is every ring finite?", k=10).results) == 7
    engine.close()
    assert found == expected
    assert engine.note == ""


@pytest.mark.usefixtures("installed")
def test_an_index_of_documents_depends_on_the_code_of_another_package(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "rings.md").write_text("Every finite integral domain is a field.")
    out = tmp_path / "index"

    def built() -> str:
        index_documents(tmp_path / "notes", ["bm25", "random"], out, Console())
        return str(json.loads((out / "index.json").read_text())["manifest"]["parts"]["random"]["settings"])

    def note() -> str:
        engine, _ = open_index(out)
        engine.close()
        return engine.note

    before, relative = built(), note()
    with (tmp_path / "site" / "mathamr_random" / "__init__.py").open("a") as code:
        code.write("# changed\n")
    changed = "the code of random has changed since this index was made; build it again with mathamr index"
    assert note() == f"{relative}; {changed}"
    assert built() != before
    assert note() == relative


def test_without_the_package_its_track_is_not_known(collection: Path) -> None:
    with pytest.raises(ConfigError, match=r"conditions\.random: track=random is not known; the tracks are graph"):
        jobs(configured({"random": RANDOM}, f"data.root={collection}"))
