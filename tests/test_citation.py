"""CITATION.cff names the version and the licence of the package."""

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def test_citation_and_package_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["authors"][0]["name"] == project["authors"][0]["name"]
    assert f"({citation['version']})" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
