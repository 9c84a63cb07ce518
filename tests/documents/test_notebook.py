"""The notebook of the whole way runs to its end, with its drawings, its plot and its results."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "tour.py"


@pytest.mark.slow
def test_the_notebook_runs_to_its_end(tmp_path: Path) -> None:
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    notebook = jupytext.read(SOURCE)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/svg+xml") == 2
    assert kinds.count("image/png") == 1
    printed = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
    assert printed.count("best match") == 3
    assert (tmp_path / "demo-model" / "model.safetensors").is_file()
