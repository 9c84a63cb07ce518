"""The documentation as a site: it builds without a warning, and every public module has a page."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mathamr
from scripts.development.architecture import modules

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_has_every_module(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "docs/site/mkdocs.yml", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    names = [name for name, path in modules().items() if path.name not in ("__init__.py", "__main__.py")]
    assert not [name for name in names if not (tmp_path / "reference" / f"{name}.html").is_file()]
    for name in mathamr.__all__:
        module = getattr(mathamr, name).__module__
        assert f'id="{module}.{name}"' in (tmp_path / "reference" / f"{module}.html").read_text(encoding="utf-8")
    page = (tmp_path / "reference" / "mathamr.maxsim.html").read_text(encoding="utf-8")
    assert 'id="mathamr.maxsim.VectorSets.of"' in page
    assert "&gt;&gt;&gt;" in page  # doctests are blocks of code
    assert '<h1 id="mathamr">' in (tmp_path / "index.html").read_text(encoding="utf-8")
