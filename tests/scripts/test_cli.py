"""The command ``mathamr``: it finds every command, says what is wrong, and imports nothing slow for its help."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments import cli

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "numpy", "scipy", "lxml", "hydra", "omegaconf", "spacy"}
FILES = [entry.file for entry in cli.COMMANDS.values() if entry.file]
FILES += [file for entry in cli.COMMANDS.values() for _, _, file in entry.parts]


def test_every_command_has_its_file_and_every_file_a_command() -> None:
    scripts = {path.name for path in (ROOT / "scripts").glob("*.py")}
    for folder in ("cluster", "text"):
        scripts |= {f"{folder}/{path.name}" for path in (ROOT / "scripts" / folder).glob("*.py")}
    assert sorted(FILES) == sorted(scripts)


def test_the_wheel_has_every_command_but_the_benchmarks() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    missing = [file for file in FILES if f'"scripts/{file.split("/")[0]}" = "experiments/commands/' not in text]
    assert missing == ["bench.py"]


def test_the_list_of_commands_imports_nothing_heavy() -> None:
    program = "import sys; from experiments.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not HEAVY & set(done.stderr.split())
    assert all(f"\n  {name} " in done.stdout for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serach"], "unknown command 'serach'; did you mean search?"),
        (["build", "graph"], "unknown command build 'graph'; did you mean graphs?"),
        (["completion"], "name one shell: bash, zsh, fish"),
        (["run", "+exp=trial", "nonsense=1"], "unknown key nonsense"),
        (["run", "--exp", "trial"], "--exp is not an option; write +exp=NAME"),
        (["run", "+exp=trial", "--root", "posts"], "--root is not an option; write data.root=DIR"),
        (["run", "+exp=trial", "--track", "bm25"], "--track is not an option; write track=NAME"),
        (["run", "trial"], "'trial' is not a setting; write KEY=VALUE, or +exp=NAME for an experiment"),
        (["evaluate", "--task", "1", "--qrels", "gone.tsv", "--run", "gone.tsv"], "gone.tsv"),
    ],
)
def test_a_wrong_command_line_is_one_message(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = list(sys.argv)
    assert cli.main(words) == 2
    assert said in capsys.readouterr().err
    assert sys.argv == before


def test_groups_of_commands_list_their_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build"]) == 0
    assert "usage: mathamr build COMMAND" in capsys.readouterr().out
    assert cli.main(["trees", "--latex", "x^2"]) == 0
    assert "O!SUP" in capsys.readouterr().out


def test_a_shell_completes_commands_and_their_parts() -> None:
    steps = """
source /dev/stdin
COMP_WORDS=(mathamr bu); COMP_CWORD=1; _mathamr; echo "${COMPREPLY[@]}"
COMP_WORDS=(mathamr build te); COMP_CWORD=2; _mathamr; echo "${COMPREPLY[@]}"
"""
    written = subprocess.run(
        [sys.executable, "-m", "experiments.cli", "completion", "bash"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    ).stdout  # fmt: skip
    done = subprocess.run(["bash", "-c", steps], input=written, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["build", "tensors"]


@pytest.mark.parametrize("words", [["train"], ["text", "finetune"]])
def test_the_help_starts_several_processes_without_a_file_of_the_checkout(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "torchrun" in line]
    assert line.split()[3:][: 2 + len(words)] == ["-m", cli.__name__, *words]


@pytest.mark.parametrize("name", ["report", "completion"])  # not of scripts/, whose help test_commands.py covers
def test_the_help_of_a_command_imports_nothing_heavy(name: str) -> None:
    program = f"import sys; from experiments.cli import main; main(['{name}', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "usage: " in done.stdout
    assert not HEAVY & set(done.stdout.splitlines()[-1].split())


def test_the_help_of_run_lists_every_experiment_and_imports_nothing_heavy() -> None:
    program = (
        "import sys; from experiments.cli import main; main(['run', '--help']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not HEAVY & set(done.stderr.split())
    assert all(f"\n  {path.stem} " in done.stdout for path in (ROOT / "conf" / "exp").glob("*.yaml"))


def test_an_experiment_may_be_named_without_the_plus(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "exp=trial", "nonsense=1"]) == 2
    assert "unknown key nonsense" in capsys.readouterr().err
