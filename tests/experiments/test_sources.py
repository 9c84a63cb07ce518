"""Learning from further collections: what depends on them, and that nothing of them is found."""

import json
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from experiments.configuration.composition import parser_options
from experiments.configuration.registration import job_settings, register, validated
from experiments.plan import plan
from experiments.run import run
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Post
from graphs.errors import ConfigError
from graphs.stores.collection import Collection, build
from graphs.stores.store import GraphStore
from mathamr.stages import parsers
from mathamr.stages.sources import sources_of
from mathamr.stages.tensors import _rows
from tests.experiments.tiny_settings import built

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.batch_size=8", "train.epochs=1"]


def composed(*overrides: str) -> DictConfig:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", ["+exp=trial", *overrides])


@pytest.fixture
def math(tmp_path: Path) -> Path:
    """Twelve problems about words and symbols that the collection does not have."""
    folder = tmp_path / "math-train"
    folder.mkdir()
    line = {"problem": "How many kangaroos solve ${i}y^7=1$?", "solution": "Exactly ${i}$ kangaroos, as $y^7={i}$."}
    lines = [{key: text.replace("{i}", str(i)) for key, text in line.items()} for i in range(12)]
    (folder / "train.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return folder


def with_sources(collection: Path, math: Path, *overrides: str) -> DictConfig:
    places = ["data=jsonl", f"data.root={collection}", f"outputs={math.parent / 'out'}", "workers=1"]
    sources = f"+data.sources={{math:{{name:problems,root:{math}}},own:{{name:titles,root:{collection}}}}}"
    return composed(*SMALL, *places, "train.device=cpu", sources, *overrides)


def keys(config: DictConfig) -> tuple[str, str]:
    (job,) = plan(config, Fingerprints("fingerprint"))
    return job.model_key, job.key


def test_what_the_key_of_a_model_depends_on(collection: Path, math: Path, tmp_path: Path) -> None:
    def key(*overrides: str) -> str:
        return keys(with_sources(collection, math, *overrides))[0]

    both = "train.pairs=[jsonl,math]"
    assert key() == keys(composed(*SMALL, "data=jsonl", f"data.root={collection}"))[0]  # described, and not used
    found = [
        key(),
        key(both),
        key(both, "train.pair_weights=[1,0.75]"),
        key(both, "data.sources.math.most_pairs=9"),
        key("train.pairs=[jsonl,math,own]"),
        key("train.pretrain_pairs=[math]"),
        key("train.pretrain_pairs=[math]", "train.pretrain_epochs=2"),
    ]
    assert len(set(found)) == len(found)
    assert key(both, "data.sources.own.most_pairs=9") == key(both)
    elsewhere = math.rename(tmp_path / "elsewhere")
    assert keys(with_sources(collection, elsewhere, both))[0] == found[1]
    with (elsewhere / "train.jsonl").open("a") as file:
        file.write('{"problem": "One more?", "solution": "Yes."}\n')
    assert keys(with_sources(collection, elsewhere, both))[0] not in found


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.pairs=[jsonl,maths]"], "train.pairs names maths: it is neither the collection jsonl nor of data."),
        (["train.pretrain_pairs=[x]"], "train.pretrain_pairs names x: it is neither"),
        (["train.pairs=[math]", "data.sources.math.root=/nowhere"], "data.sources.math: data.root='/nowhere' is not"),
        (["train.pairs=[math]", "data.sources.math.most_pairs=0"], "data.sources.math.most_pairs=0 must be at least 1"),
        (["+data.sources={jsonl: {name: mathdocs}}"], "data.sources: jsonl is the name of the collection itself"),
        (["+data.sources={a/b: {name: mathdocs}}"], "'a/b' would begin post ids"),
    ],
)
def test_sources_that_cannot_be_are_refused(collection: Path, math: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        sources_of(job_settings(with_sources(collection, math, *overrides)))
    assert message in str(caught.value)


def jobs(config: DictConfig) -> dict[str, dict[str, Any]]:
    places = (Path(config.outputs) / config.experiment.name / "jobs").iterdir()
    return {place.name.removesuffix("-seed42"): json.loads((place / "result.json").read_text()) for place in places}


@pytest.mark.slow
def test_sources_are_learned_from_and_never_found(
    collection: Path, math: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = with_sources(collection, math)
    config.experiment.conditions = OmegaConf.create(
        {
            "alone": {},
            "together": {"train": {"pairs": ["jsonl", "math", "own"], "pair_weights": [1.0, 1.0, 0.5]}},
            "before": {"train": {"pretrain_pairs": ["math"]}},
        }
    )
    config.experiment.baseline = "alone"
    assert run(validated(config), "the command").failed == 0
    said = capsys.readouterr().err
    assert "source math: 12 pairs; left out, because their questions are topics: 0\n" in said
    assert "epoch 1, pretraining: loss" in said
    assert "graphs have changed" not in said
    results = jobs(config)
    trained_on = {"alone": 36, "together": 36 + 12 + 40, "before": 36 + 12}
    assert {name: result["train_pairs"] for name, result in results.items()} == trained_on
    assert {name: result["epochs"] for name, result in results.items()} == {"alone": 1, "together": 1, "before": 2}
    shared = math.parent / "out" / "shared"
    assert sorted(path.name.split("-")[0] for path in shared.iterdir()) == ["jsonl", "problems", "titles"]
    (own,) = shared.glob("jsonl-*")
    stores = {len(store): store for store in map(GraphStore, own.glob("preprocessed-*.db"))}
    assert sorted(stores) == [80, 80 + 24, 80 + 24 + 80]  # one for each union of sources
    assert "math/train-1/solution" in stores[104]
    assert len({store.vocabulary.hash for store in stores.values()}) == 3
    for size, store in stores.items():
        assert ("kangaroo" in store.vocabulary.labels) == (size > 80)
    with Collection(next(own.glob("collection-*.db"))) as searched:
        known = set(searched.post_ids("answer"))
    for name in results:
        run_file = math.parent / "out" / config.experiment.name / "jobs" / f"{name}-seed42" / "run.tsv"
        found = {line.split("\t")[1] for line in run_file.read_text().splitlines()}
        assert found
        assert found <= known


def test_a_source_that_holds_pairs_of_the_collection_is_refused_before_anything_runs(
    collection: Path, math: Path
) -> None:
    again = f"+data.sources={{again: {{name: jsonl, root: {collection}, most_pairs: 3}}}}"
    config = with_sources(collection, math, again, "train.pairs=[jsonl,again]")
    with pytest.raises(ConfigError, match=r"data\.sources\.again has 3 pairs of the collection itself, q0 with a0"):
        run(validated(config), "the command")
    assert built(math.parent / "out") == set()


def test_an_id_of_the_collection_is_never_taken_for_one_of_a_source(tmp_path: Path) -> None:
    path = tmp_path / "collection.db"
    posts = [Post("math/1", "question", body="Why?", markup="text")]
    build(path, posts, parsers.factory("embedded", parser_options("embedded")), source="any")
    assert [row[0] for row in _rows({"": path}, ("question",), None)] == ["math/1"]
    with pytest.raises(ConfigError, match=r"a post math/1, which looks like one of data\.sources\.math; give"):
        list(_rows({"": path, "math": path}, ("question",), None))


def test_a_source_that_holds_a_topic_is_refused(collection: Path, math: Path) -> None:
    posts = [
        {"post_id": "T.1", "kind": "question", "title": "Finite ring", "body": "Is every ring finite?"},
        {"post_id": "x", "kind": "answer", "body": "No.", "parent_id": "T.1"},
    ]
    leaking = math.parent / "leaking"
    leaking.mkdir()
    (leaking / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    source = f"+data.sources={{leaking: {{name: jsonl, root: {leaking}}}}}"
    changes = ["train.pairs=[jsonl,leaking]", "train.batch_size=2", "train.pair_weights=[1,2]"]
    config = with_sources(collection, math, source, *changes)
    with pytest.raises(ConfigError, match=r"data\.sources\.leaking holds 1 topics of the experiment, T\.1 among them"):
        run(validated(config), "the command")
