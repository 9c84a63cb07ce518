"""Every experiment of conf/exp runs to its report, on a made-up collection with topics of both tasks.

Those on pairs, which have tests with names, do so in test_text_experiments.py.
"""

import csv
import json
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from experiments.configuration.registration import register, validated
from experiments.plan import plan
from experiments.report import results, thesis
from experiments.run import run
from graphs.corpus.files import Fingerprints
from graphs.stores.collection import Collection
from graphs.stores.exchange import export_penman, import_penman
from mathamr.evaluation.result_names import is_reserved, titles
from scripts import submit

ROOT = Path(__file__).resolve().parents[2]
EVERY = sorted(path.stem for path in (ROOT / "conf" / "exp").glob("*.yaml"))
EMBEDDED = ("arqmath3_benchmark", "auxiliary_loss", "retrieval_strategy", "trial")  # in Qdrant; the others exactly
ON_PAIRS = ("answer_retrieval", "cross_retrieval", "knowledge_graph", "text_finetuning")
EXPERIMENTS = [name for name in EVERY if name not in ON_PAIRS]
RENDERED = ("embedding_geometry", "quality_fused", "vn_connectivity")  # every kind of plot is in one of these
SUBJECTS = ("ring", "group", "field", "lattice", "module", "category", "sheaf", "graph")
FORMULAS = ("x^2+1", r"\frac{a}{b}", r"\sum_{i=1}^n i", "f(x)=0", r"A \subset B")
SMALL = [
    "data=jsonl",
    "model.hidden_dim=8",
    "model.projection_dim=4",
    "model.num_layers=2",
    "model.num_bases=2",
    "train.epochs=1",
    "train.device=cpu",
    "train.workers=0",
    "text=tiny",
    "text.batch_size=8",
    "workers=1",
    "experiment.seeds=[1]",
    "wandb=disabled",
]


def post_of(post_id: str, kind: str, body: str, **more: Any) -> dict[str, Any]:
    return {"post_id": post_id, "kind": kind, "markup": "text", "body": body, **more}


def write_collection(root: Path) -> Path:
    """32 questions with their answers on 8 subjects, 8 topics of Task 1 and 5 of Task 2."""
    posts, qrels, qrels2 = [], [], []
    for i, subject in enumerate(SUBJECTS * 4):
        formula = FORMULAS[i % 5]
        question = f"Let ${formula}$ be given. Is the {subject} number {i} finite?"
        posts.append(post_of(f"q{i}", "question", question, title=f"When is a {subject} finite?", tags=[subject]))
        posts.append(post_of(f"a{i}", "answer", f"The {subject} is finite if ${formula}$ holds.", parent_id=f"q{i}"))
        qrels += [f"T.{n}\t0\ta{i}\t{3 * (own == subject)}" for n, own in enumerate(SUBJECTS)]
        for n, own in enumerate(FORMULAS):
            qrels2 += [f"F.{n}\t0\t{post}{i}:0\t{3 * (own == formula)}" for post in "qa"]
    topics = [{"post_id": f"T.{n}", "body": f"Is every {subject} finite?"} for n, subject in enumerate(SUBJECTS)]
    topics2 = [
        {"post_id": f"F.{n}", "body": f"Where does ${formula}$ stand?", "formula_id": f"F.{n}:0"}
        for n, formula in enumerate(FORMULAS)
    ]
    root.mkdir()
    for name, rows in (("posts", posts), ("topics", topics), ("topics2", topics2)):
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, lines in (("qrels", qrels), ("qrels2", qrels2)):
        (root / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the collection; all experiments leave their outputs in it, and share what they can."""
    folder = tmp_path_factory.mktemp("every")
    write_collection(folder / "data")
    (folder / "math").mkdir()
    problems = [
        {"problem": f"Find ${x}$ for $n={n}$.", "solution": f"So ${x}={n}$."} for n in range(4) for x in FORMULAS
    ]
    (folder / "math" / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in problems))
    return folder


@pytest.fixture(autouse=True)
def few_renderings(request: pytest.FixtureRequest) -> None:
    """Render the plots of some experiments only."""
    if "callspec" not in vars(request.node) or request.node.callspec.params["name"] not in RENDERED:
        request.getfixturevalue("without_rendering")


def configured(name: str, place: Path, *, conf: Path = ROOT / "conf", outputs: str = "out") -> Any:
    register()
    with initialize_config_dir(str(conf), version_base="1.3"):
        folders = [f"data.root={place / 'data'}", f"outputs={place / outputs}"]
        if name == "quality":
            folders += [f"data.sources.math.root={place / 'math'}", f"data.sources.titles.root={place / 'data'}"]
        if name not in EMBEDDED:
            folders.append("index=exact")
        config = compose("config", [f"+exp={name}", *SMALL, *folders, "train.batch_size=8"])
    for condition in config.experiment.conditions.values():
        if "batch_size" in condition.get("train", {}):  # the conditions keep their order of sizes
            condition.train.batch_size = {32: 4, 256: 8, 1024: 16}[condition.train.batch_size]
        if condition.get("train", {}).get("epochs", 1) > 2:
            condition.train.epochs = 2
        if condition.get("text", {}).get("encoder") == "mpnet":  # whose weights are not here
            condition.text.encoder = "tiny"
            if name in ("embedding_geometry", "graph_vs_text"):  # not the same as the conditions of MiniLM
                OmegaConf.update(condition, "text.max_length", 32, force_add=True)
    if name == "quality":
        OmegaConf.set_struct(config.experiment.conditions, False)
        del config.experiment.conditions.duplicates  # this collection has no links between questions
    return validated(config)


def costs_of(condition: Any) -> list[str]:
    """The columns that a condition has by its track."""
    track, search = condition.get("track", "graph"), ["index_bytes", "queries_per_second"]
    if track in ("fusion", "learned", "rerank"):
        return search
    if track in ("bm25", "structure", "latent"):
        return [*search, "peak_memory_bytes"]
    trained = ["time_per_epoch_s", "pairs_per_second", "peak_memory_bytes"]
    untrained = track == "text" and condition.get("text", {}).get("epochs") == 0
    return [*search, "vectors", "parameters", *([] if untrained else trained)]


def parts_of(condition: Any, group: str) -> list[str]:
    """The conditions that a condition is made of."""
    own = condition.get(group, {})
    parts = [own.get("of", []), own.get("questions", [])]
    return [name for part in parts for name in ([part] if isinstance(part, str) else part)]


def leave_out_text(experiment: Any) -> None:
    """Without the extra ``text``: no conditions that need it, and none that fuse or are compared with these."""
    OmegaConf.set_struct(experiment, False)
    conditions = experiment.conditions
    gone = {
        name for name, condition in conditions.items() if condition.get("track") == "text" or "minilm" in str(condition)
    }
    for group in ("fusion", "learned", "rerank"):
        gone |= {name for name, condition in conditions.items() if gone & set(parts_of(condition, group))}
    for name in gone:
        del conditions[name]
    experiment.baselines = {name: of for name, of in experiment.baselines.items() if not {name, of} & gone}
    if experiment.baseline in gone:
        experiment.baseline = next(iter(conditions))


def test_there_are_experiments() -> None:
    assert set(thesis.all_tables()) <= set(EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_to_its_report(name: str, place: Path) -> None:
    config = configured(name, place)
    if find_spec("sentence_transformers") is None:
        leave_out_text(config.experiment)
    ended = run(config, f"python -m experiments.run +exp={name} data=jsonl data.root={place / 'data'}")
    assert ended.failed == 0, ended.table
    folder = place / "out" / config.experiment.name
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["condition"] for row in rows] == list(config.experiment.conditions)
    measures = {*titles(config.experiment.measures), "recall_1000"}
    assert all(is_reserved(name) or name in measures for name in rows[0]), "a measure could have such a column"
    for row in rows:
        assert row["status"] == "done"
        first = 1 in config.experiment.tasks
        assert not first or int(row["topics"]) == len(SUBJECTS)
        for cost in costs_of(config.experiment.conditions[row["condition"]]):
            assert float(row[cost if first else f"task2_{cost}"]) > 0, (row["condition"], cost)
        if 2 in config.experiment.tasks:
            assert int(row["task2_topics"]) == len(FORMULAS)
    report, page = (folder / "report.md").read_text(), (folder / "report.html").read_text()
    for condition in config.experiment.conditions:
        label = config.experiment.labels.get(condition, condition)
        assert label in report
    assert config.experiment.title in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=[\"']https?:", page), "the page is not self-contained"


@pytest.mark.slow
def test_models_are_trained_once(place: Path) -> None:
    """Conditions that differ in retrieval alone, and equal conditions of two experiments, share a model."""
    names = ("retrieval_strategy", "auxiliary_loss", "vn_connectivity")
    for name in names:
        if not (place / "out" / name / "report.html").exists():  # else the tests above have run it
            run(configured(name, place), "command")
    jobs = [job for name in names for job in plan(configured(name, place), Fingerprints("fingerprint"))]
    assert len(jobs) == 8 + 15 + 4
    assert len({job.model_key for job in jobs}) == 8  # 4 betas below 1, 4 kinds of edges; the rest is the model of none
    keys = {row["model_key"] for name in names for row in results.read(place / "out" / name).rows}
    assert len(keys) == 8
    trained = {path.parent.name for path in (place / "out" / "shared").glob("*/models/*/trained.json")}
    assert keys <= trained


@pytest.mark.slow
def test_the_benchmark_can_be_submitted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both files of a real run are valid: every post and formula in them is one of the collection."""
    command = f"python -m experiments.run +exp=arqmath3_benchmark data=jsonl data.root={place / 'data'}"
    run(configured("arqmath3_benchmark", place), command)
    folder, out = place / "out" / "arqmath3_benchmark", place / "submission"
    assert submit.main([str(folder), "--team", "Lab", "--run", "plus", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"Task 1, {32 * len(SUBJECTS)} results for {len(SUBJECTS)} topics: valid" in printed
    assert f"Task 2, {64 * len(FORMULAS)} results for {len(FORMULAS)} topics: valid" in printed
    assert len(list(out.iterdir())) == 2


@pytest.mark.slow
def test_the_experiment_in_the_documentation_runs(place: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(# @package.*?)```", (ROOT / "docs" / "experiments.md").read_text(), re.DOTALL)
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    (tmp_path / "conf" / "exp" / "vn_aggregation.yaml").write_text(example)
    config = configured("vn_aggregation", place, conf=tmp_path / "conf")
    assert run(config, "python -m experiments.run +exp=vn_aggregation").failed == 0
    rows = results.read(place / "out" / "vn_aggregation").rows
    assert {row["status"] for row in rows} == {"done"}
    assert len(rows) == 3
    assert len({row["model_key"] for row in rows}) == 2
    assert "Attention, document vectors only" in (place / "out" / "vn_aggregation" / "report.md").read_text()
    config.experiment.seeds = [42, 43, 44]
    jobs = plan(config, Fingerprints("fingerprint"))
    assert (len(jobs), len({job.model_key for job in jobs})) == (9, 6)  # as the text says


@pytest.mark.slow
def test_published_graphs_are_used_as_they_are(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Penman file, imported and named as docs/reproducing.md says: no post is parsed, and no topic that it has."""
    run(configured("trial", place), "command")
    (own,) = (place / "out" / "shared").glob("jsonl-*/collection-*.db")
    (own_topics,) = (place / "out" / "shared").glob("jsonl-*/topic-graphs-*.db")
    published = ""
    for path in (own, own_topics):
        with Collection(path) as graphs:
            export_penman(graphs, place / "graphs.penman")
        published += (place / "graphs.penman").read_text().split("\n", 1)[1]  # made elsewhere: without our header
    (place / "graphs.penman").write_text(published)
    target = place / "imported.db"
    import_penman(place / "graphs.penman", target)
    before = target.read_bytes()
    capsys.readouterr()
    config = configured("trial", place, outputs="imported")
    config.data.collection = str(target)
    assert run(config, "command").failed == 0
    said = capsys.readouterr().err
    assert "posts to graphs" not in said
    assert "topics to graphs" not in said
    assert target.read_bytes() == before
    rows = [results.read(place / out / "trial-alone").rows[0] for out in ("out", "imported")]
    assert rows[0]["ndcg_prime"] == rows[1]["ndcg_prime"]


@pytest.mark.parametrize("name", EVERY)
def test_an_experiment_begins_with_its_command_which_names_different_jobs(name: str, place: Path) -> None:
    first, *lines = (ROOT / "conf" / "exp" / f"{name}.yaml").read_text().splitlines()
    assert first == "# @package _global_"
    command = lines[0].removeprefix("# ")
    for line in lines[1:]:
        if not command.endswith("\\"):
            break
        command = command.removesuffix("\\") + line.removeprefix("# ")
    python, option, module, experiment, *settings = shlex.split(command)
    assert (python, option, module, experiment) == ("python", "-m", "experiments.run", f"+exp={name}")
    roots = [key for key in (setting.split("=")[0] for setting in settings) if key.endswith(".root")]
    given = [setting for setting in settings if setting.split("=")[0] not in roots]
    places = [f"{key}={place / ('math' if '.math.' in key else 'data')}" for key in roots]
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = validated(compose("config", [experiment, *given, *places]))
    jobs = plan(config, Fingerprints("fingerprint"))
    assert {job.condition for job in jobs} == set(config.experiment.conditions)


@pytest.mark.parametrize("name", thesis.all_tables())
def test_conditions_are_the_rows_of_the_thesis(name: str, place: Path) -> None:
    experiment = configured(name, place).experiment
    rows = {row for table in thesis.tables(name) for row in table.rows}
    assert rows == set(experiment.conditions)
    assert {table.baseline for table in thesis.tables(name)} == {experiment.baseline}
    assert set(experiment.labels) == rows
