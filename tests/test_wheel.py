"""The wheel in a new environment, in an empty folder: experiment, index, search, library, server and notebook.

Dependencies are those of this environment, which the new one finds by a path; the project itself is in the wheel alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.experiments.test_every_experiment import write_collection

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "notebooks" / "tour.py"
SMALL = [
    "model.hidden_dim=8", "model.projection_dim=4", "model.num_layers=1", "model.num_bases=2", "train.epochs=1",
    "train.device=cpu", "train.batch_size=8", "workers=1", "experiment.seeds=[1]", "index=exact", "wandb=disabled",
]  # fmt: skip
ONE_PROCESS = """
import sys
from pathlib import Path
from experiments import cli
assert cli.__file__.startswith({environment!r})
assert cli.main(["run", "+exp=trial", *{settings!r}]) == 0
(best,), (tensors,) = Path().glob("outputs/shared/*/models/*/best"), Path().glob("outputs/shared/*/preprocessed-*.db")
assert cli.main(["index", "--from", "outputs/trial-alone", "configured", "--out", "index"]) == 0
assert cli.main(["search", "index=index", "Is every ring finite?"]) == 0
assert cli.main(["sweep", "conf/sweeps/optimizer.yaml", "--check"]) == 0
from mathamr import MathAMR
model = MathAMR.from_checkpoint(best, tensors)
model.save_pretrained("saved")
print("dimension", MathAMR.from_pretrained("saved").encode("Is $x^2+1$ prime?").vectors.shape[1])
"""
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the programs of an environment with the wheel."""
    pytest.importorskip("build")
    place = tmp_path_factory.mktemp("wheel")
    isolation = ["--no-isolation"] if find_spec("hatchling") else []  # else pip installs it first
    build = [sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", str(place / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=place)
    (wheel,) = (place / "dist").glob("*.whl")
    environment = place / "environment"
    venv.create(environment, with_pip=False)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(environment / "bin" / "python"),
        "install",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run([*install, "--no-index", "--quiet", str(wheel)], check=True, capture_output=True, cwd=place)
    return environment / "bin"


@pytest.mark.slow
def test_the_commands_of_the_wheel_run_in_an_empty_folder(programs: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    data = write_collection(tmp_path / "data")

    settings = ["data=jsonl", f"data.root={data}", *SMALL]
    script = ONE_PROCESS.format(environment=str(programs.parent), settings=settings)
    command = [str(programs / "python"), "-c", script]
    done = subprocess.run(command, cwd=work, env=CLEAN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    assert "trial-alone" in printed
    assert "search:" in printed
    assert "score" in printed
    assert printed.splitlines()[-1] == "dimension 4"
    assert answer_of_a_server([str(programs / "mathamr"), "serve", "index=index", "port=0", "k=2"], work) == 2
    assert not list(work.glob("conf"))


def answer_of_a_server(command: list[str], folder: Path) -> int:
    """Start a server, ask it one question, stop it; return the number of results."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    with subprocess.Popen(command, cwd=folder, env=CLEAN, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            home = server.stdout.readline().strip()
            body = json.dumps({"query": "Is every ring finite?"}).encode()
            request = Request(f"{home}/api/search", data=body, headers={"Content-Type": "application/json"})
            with urlopen(request, timeout=60) as answer:
                found = json.load(answer)
            with urlopen(f"{home}/", timeout=60) as page:
                assert b"<title>MathAMR+ search</title>" in page.read()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=60) == 0
        finally:
            server.kill()
    return len(found["results"])


@pytest.mark.slow
def test_the_notebook_runs_in_an_empty_folder(programs: Path, tmp_path: Path) -> None:
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    text = NOTEBOOK.read_text(encoding="utf-8")
    for whole, part in (("[:100]", "[:40]"), ('"epochs": 3', '"epochs": 1')):
        assert text.count(whole) == 1
        text = text.replace(whole, part)
    notebook = jupytext.reads(text, fmt="py:percent")
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.create_kernel_manager().kernel_spec.argv[0] = str(programs / "python")
    client.execute(env=CLEAN)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/svg+xml") == 2
    assert kinds.count("image/png") == 1
    printed = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
    assert printed.count("best match") == 3
    assert (tmp_path / "demo-model" / "model.safetensors").is_file()
