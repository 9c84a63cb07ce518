"""The documentation as a site: it builds without a warning, and every public module has a page."""

from pathlib import Path

import pytest

import mathamr
from scripts.development.architecture import modules

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of packages that build it
def test_the_site_builds_without_a_warning_and_has_every_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the index of words, and colours and formatting of code, which take half of the time."""
    pytest.importorskip("mkdocs")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.chdir(ROOT)
    from material.plugins.search.plugin import SearchPlugin
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocstrings_handlers.python._internal import rendering

    monkeypatch.setattr(SearchPlugin, "on_page_context", lambda *_, **__: None)
    monkeypatch.setattr(rendering, "_get_formatter", lambda: lambda code, _: code)
    config = load_config("docs/site/mkdocs.yml", strict=True, site_dir=str(tmp_path))
    config.mdx_configs["pymdownx.highlight"] = {"use_pygments": False}
    config.plugins.on_startup(command="build", dirty=False)
    with caplog.at_level("WARNING"):
        build(config)  # which raises an error after a warning
    config.plugins.on_shutdown()
    assert caplog.messages == []
    names = [name for name, path in modules().items() if path.name not in ("__init__.py", "__main__.py")]
    assert not [name for name in names if not (tmp_path / "reference" / f"{name}.html").is_file()]
    for name in mathamr.__all__:
        module = getattr(mathamr, name).__module__
        assert f'id="{module}.{name}"' in (tmp_path / "reference" / f"{module}.html").read_text(encoding="utf-8")
    page = (tmp_path / "reference" / "mathamr.maxsim.html").read_text(encoding="utf-8")
    assert 'id="mathamr.maxsim.VectorSets.of"' in page
    assert "&gt;&gt;&gt;" in page  # doctests are blocks of code
    assert '<h1 id="mathamr">' in (tmp_path / "index.html").read_text(encoding="utf-8")
