"""The wheel in a new environment, in an empty folder: an experiment, an index and a search.

Dependencies are those of this environment, which the new one finds by a path; the project itself is in the wheel alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.experiments.test_every_experiment import write_collection

ROOT = Path(__file__).resolve().parents[1]
SMALL = [
    "model.hidden_dim=8", "model.projection_dim=4", "model.num_layers=1", "model.num_bases=2", "train.epochs=1",
    "train.device=cpu", "train.batch_size=8", "workers=1", "experiment.seeds=[1]", "index=exact", "wandb=disabled",
]  # fmt: skip
# Commands as the console script calls them, one after another in one interpreter.
STEPS = """
import mathamr
from experiments.cli import main
print(mathamr.__file__)
assert main(["index", "--from", "outputs/trial-alone", "configured", "--out", "index"]) in (0, None)
assert main(["search", "index=index", "Is every ring finite?"]) in (0, None)
from mathamr import MathAMR
model = MathAMR.from_checkpoint({best!r}, {tensors!r})
model.save_pretrained("saved")
print(MathAMR.from_pretrained("saved").encode("Is $x^2+1$ prime?").vectors.shape[1])
"""


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_folder(tmp_path: Path) -> None:
    pytest.importorskip("build")
    isolation = ["--no-isolation"] if find_spec("hatchling") else []  # else pip installs it first
    build = [sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    environment, work = tmp_path / "environment", tmp_path / "work"
    venv.create(environment, with_pip=False)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--no-deps"]
    subprocess.run([*install, "--no-index", "--quiet", str(wheel)], check=True, capture_output=True, cwd=tmp_path)
    work.mkdir()
    data = write_collection(tmp_path / "data")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def mathamr(*words: str, program: str = "mathamr") -> str:
        command = [str(environment / "bin" / program), *words]
        done = subprocess.run(command, cwd=work, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "trial-alone" in mathamr("run", "+exp=trial", "data=jsonl", f"data.root={data}", *SMALL)
    (best,), (tensors,) = work.glob("outputs/shared/*/models/*/best"), work.glob("outputs/shared/*/preprocessed-*.db")
    printed = mathamr("-c", STEPS.format(best=str(best), tensors=str(tensors)), program="python")
    place, *found, width = printed.strip().splitlines()
    assert str(environment) in place
    assert any("search:" in line for line in found)
    assert any("score" in line for line in found)
    assert width == "4"
    assert "mathamr serve" in mathamr("serve", "--help") or "browser" in mathamr("serve", "--help")
    assert not list(work.glob("conf"))
