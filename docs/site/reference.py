"""Pages that are generated while the site is built: the README as its home, and a page for each module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for source, target in (("README.md", "index.md"), *((name, name) for name in ("CONTRIBUTING.md", "CHANGELOG.md"))):
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=re.sub(r"\]\(docs/", "](", text)))
    names = sorted(_modules())
    for name in names:
        files.append(File.generated(config, f"reference/{name}.md", content=f"# {name}\n\n::: {name}\n"))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the modules into the navigation, below their packages."""
    packages: dict[str, Any] = {}
    for name in sorted(_modules()):
        *parents, own = name.split(".")
        place = packages
        for parent in parents:
            place = place.setdefault(parent, {})
        place[own] = f"reference/{name}.md"
    (config.nav or []).append({"Reference": _nested(packages)})
    return config


def _nested(packages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: _nested(inside) if isinstance(inside, dict) else inside} for name, inside in packages.items()]


def _modules() -> list[str]:
    """Return the public modules of the three packages."""
    found = []
    for package in ("graphs", "mathamr", "experiments"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] not in ("__init__", "__main__") and not any(part.startswith("_") for part in parts):
                found.append(".".join(parts))
    return found
