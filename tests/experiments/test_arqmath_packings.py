"""The same part of ARQMath under its own names and in every published packing: the same graphs and the same runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.run import run
from graphs.stores.collection import Collection

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
PART, LAYOUT = SHARED / "data" / "arqmath-mini", SHARED / "tools" / "official_tree.py"
SMALL = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.epochs=1", "train.max_pairs=200"]

pytestmark = [
    pytest.mark.usefixtures("without_plots"),
    pytest.mark.shared,
    pytest.mark.long,
    pytest.mark.skipif(not (PART.is_dir() and LAYOUT.is_file()), reason="the development data is not here"),
]


def made_from(root: Path, outputs: Path) -> tuple[dict[str, str], str, str]:
    """Run words and graphs of judged answers of 2020; return the graphs, the words' run and the graphs' run."""
    register()
    places = [f"data.root={root}", f"outputs={outputs}", "data.regime=judged", "data.years=[2020]"]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", ["+exp=trial", "data=arqmath", *places, *SMALL, "experiment.seeds=[42]"])
    config.experiment.conditions = {"graph": {}, "words": {"track": "bm25"}}
    config.experiment.baseline = "graph"
    assert run(validated(config), "command").failed == 0
    (path,) = outputs.glob("shared/*/collection-*.db")
    with Collection(path) as graphs:
        found = {post_id: penman for post_id, penman, _ in graphs.rows("question", "answer")}
    jobs = outputs / "trial-alone" / "jobs"
    words, graphs_run = (jobs / f"{name}-seed42" / "run.tsv" for name in ("words", "graph"))
    return found, words.read_text(), graphs_run.read_text()


@pytest.fixture(scope="module")
def of_the_part(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str, str]:
    return made_from(PART, tmp_path_factory.mktemp("part"))


@pytest.mark.parametrize("packing", [[], ["--flat"], ["--gz"]], ids=["zip", "flat", "gz"])
def test_every_packing_gives_the_same_graphs_and_runs(
    packing: list[str], of_the_part: tuple[dict[str, str], str, str], tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    subprocess.run([sys.executable, str(LAYOUT), str(PART), str(tree), *packing], check=True, capture_output=True)
    assert made_from(tree, tmp_path / "out") == of_the_part
