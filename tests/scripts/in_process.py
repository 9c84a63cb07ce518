"""Scripts run in this process: what they print and their exit code, without the start of an interpreter.

    done = run_script("evaluate.py", "--task", "1", "--qrels", qrels, "--run", run)
    done.returncode, done.stdout, done.stderr

An exception that a script does not turn into a message comes out as it is. Scripts in processes of their own, for their
first line and for what a process does, are run by the tests that say so.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch


def run_script(name: str, *arguments: str | Path, stdin: str = "", folder: Path | None = None) -> CompletedProcess[str]:
    """Run ``scripts/NAME`` with these arguments, in ``folder`` where one is given."""
    module = import_module("scripts." + name.removesuffix(".py").replace("/", "."))
    words = [str(word) for word in arguments]
    out, error = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
        patch.object(sys, "stdin", io.StringIO(stdin)),
        patch.object(sys, "argv", [name, *words]),
        patch.object(sys, "path", list(sys.path)),
        contextlib.chdir(folder or Path.cwd()),
        _same_environment(),
    ):
        try:
            code = module.main(words) if signature(module.main).parameters else module.main()
        except SystemExit as ended:  # argparse ends so
            code = ended.code
    if isinstance(code, str):  # sys.exit("a message")
        error.write(f"{code}\n")
        code = 1
    return CompletedProcess([name, *words], code or 0, out.getvalue(), error.getvalue())


@contextlib.contextmanager
def _same_environment() -> Iterator[None]:
    """Variables that a script sets are not set for the next test."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
