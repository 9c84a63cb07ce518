"""Commands: what they print, their messages and their exit codes.

    @command
    def main(arguments: Sequence[str] | None = None) -> str:
        given = argparse.ArgumentParser().parse_args(arguments)
        return "what is printed"

``main()`` then returns an exit code: 0, or the number that the function returns; 1 after a fault of the program; 2
after an error, with a message on standard error; 75 after training was stopped and has saved; 130 after Ctrl-C. Only
the first of several ranks prints. A closed output (``| head``) is not an error: the exit code stays, or is 141 as of
other programs, if the command has not ended before. A character that the output's encoding lacks is printed as
``\\xe9`` or ``\\u03b1``.

The docstring of a command's module is its help, so ``main`` has none. Every command takes ``--debug``, which raises the
exception with its traceback.

>>> @command
... def main(arguments: Sequence[str] | None = None) -> str:
...     return " ".join(arguments or [])
>>> main(["3", "graphs"])
3 graphs
0
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Protocol

from graphs.errors import MathAMRError
from graphs.extensions import package_at_fault
from graphs.whole_file import cause_of
from mathamr.default_settings import CONF

DEBUG = "--debug"
HELP = frozenset(("-h", "--help"))
"""Words that ask for help."""
FAULT = 1
"""Exit code after a fault of the program."""
SHOWN = 300
"""Characters of an unexpected error in a message."""
_READ_ONLY = "make it writable, or choose another place"
_WAYS_OUT = {
    errno.ENOSPC: "make room, then run it again: finished work is kept",
    errno.EDQUOT: "make room, then run it again: finished work is kept",
    errno.EFBIG: "allow larger files (ulimit -f), then run it again: finished work is kept",
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
}
STOPPED = 130
"""Exit code after Ctrl-C, as in shells: 128 plus the number of SIGINT."""
CLOSED = 141
"""Exit code of a command whose output was closed before its end: 128 plus the number of SIGPIPE."""


class Main(Protocol):
    """Function of a command: arguments (default: those of the process) to an exit code."""

    def __call__(self, arguments: Sequence[str] | None = None) -> int: ...


def command(function: Callable[[Sequence[str] | None], str | int | None]) -> Main:
    """Turn ``function`` into a command: print a returned text, and convert numbers and errors to exit codes."""

    @wraps(function)
    def main(arguments: Sequence[str] | None = None) -> int:
        words = list(sys.argv[1:] if arguments is None else arguments)
        debug = take_debug(words)
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
            sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does
        try:
            result = _called(function, words)
            is_shown = isinstance(result, str) and int(os.environ.get("RANK", "0")) == 0
            _write(f"{result}\n" if is_shown and result else "")
        except (Exception, KeyboardInterrupt) as error:
            if debug:
                raise
            return ended_by(error)
        return result if isinstance(result, int) else 0

    return main


def _called(function: Callable[[Sequence[str] | None], str | int | None], words: Sequence[str]) -> str | int | None:
    """Call a command's function; what argparse has printed before it ends the program is written at once."""
    try:
        return function(words)
    except SystemExit:
        _write("")
        raise


def _write(text: str) -> None:
    """Write the end of a command's output, unless nobody reads it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        if not _nobody_reads(error):
            raise


def take_debug(words: list[str]) -> bool:
    """Remove ``--debug`` from the words of a command line; return whether it was there.

    >>> words = ["--out", "index", "--debug"]
    >>> take_debug(words), words
    (True, ['--out', 'index'])
    """
    is_debug = DEBUG in words
    words[:] = [word for word in words if word != DEBUG]
    return is_debug


def ended_by(error: Exception | KeyboardInterrupt) -> int:
    """Print the error that ended a command to standard error; return the exit code."""
    message, code = explained(error)
    if message:
        print(message, file=sys.stderr)
    return code


def explained(error: Exception | KeyboardInterrupt) -> tuple[str, int]:
    """Return the message and the exit code of the error that ended a command; "" if nobody reads its output.

    >>> explained(MathAMRError("no such corpus"))
    ('no such corpus', 2)
    """
    if isinstance(error, KeyboardInterrupt):
        return "stopped; the same command resumes from the saved state", STOPPED
    if _nobody_reads(error):
        return "", CLOSED
    if isinstance(error, MathAMRError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        return _of_file(cause_of(error)), MathAMRError.exit_code
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, of a GPU
        way_out = f"out of memory; use smaller batches or fewer workers ({error})".removesuffix(" ()")
        return way_out, MathAMRError.exit_code
    lines = str(error).strip().splitlines() or [""]
    if type(error).__name__ == "UncompletedJobError":  # submitit's, of a job without a result
        way_out = "if it was cancelled or killed, run the command again: finished work is kept"
        return f"{' '.join(lines[:2])}; {way_out}", FAULT
    package = package_at_fault(error)
    to = " to the authors of this package" if package else ""
    message = (
        f"a fault of {package or 'the program'}: {type(error).__name__}: {lines[0][:SHOWN]}\n"
        f"run it again with {DEBUG} for a traceback, and please report it{to}"
    )
    return message, FAULT


class PartFailedError(MathAMRError):
    """Failure of one run of several under ``--multirun``, with the message and the exit code of that run.

    Hydra's launcher takes it from the process of the run, such as a Slurm job, to that of the command.

    >>> error = PartFailedError.of(ValueError("two values"))
    >>> print(error.exit_code, error)
    1 a fault of the program: ValueError: two values
    run it again with --debug for a traceback, and please report it
    """

    exit_code = FAULT

    @classmethod
    def of(cls, error: Exception) -> PartFailedError:
        """Return the failure of a run that ``error`` ended."""
        message, code = explained(error)
        failed = cls(message)
        failed.exit_code = code
        return failed

    def ending_job(self) -> PartFailedError:
        """Return this error; a Slurm job, whose process submitit would end with 0, ends with its code."""
        if "SUBMITIT_EXECUTOR" in os.environ:
            atexit.register(_end, self.exit_code)
        return self


def _end(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _of_file(error: OSError) -> str:
    """Return a message with the file, the problem and the fix.

    >>> _of_file(OSError(errno.ENOSPC, "No space left on device", "outputs/run.tsv"))
    'outputs/run.tsv: No space left on device; make room, then run it again: finished work is kept'
    """
    if error.strerror is None:
        return str(error)
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror}; {_WAYS_OUT.get(error.errno or 0, 'give another path')}"


def _nobody_reads(error: Exception) -> bool:
    """Return whether the reader has closed standard output; then redirect it to the null device."""
    if not isinstance(error, BrokenPipeError) or error.filename is not None:
        return False
    with contextlib.suppress(OSError, ValueError):  # a stand-in for standard output, which has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
    return True


def run_usage() -> str:
    """Return the help of ``mathamr run``: its docstring, and the experiments with their titles."""
    about = ast.get_docstring(ast.parse(Path(__file__).with_name("run.py").read_text(encoding="utf-8"))) or ""
    titles = {}
    for path in sorted((CONF / "exp").glob("*.yaml")):
        found = re.search(r"^  title: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        titles[path.stem] = found[1] if found else ""
    width = max(map(len, titles))
    listed = [f"  {name:{width}}  {title}".rstrip() for name, title in titles.items()]
    settings = f"Settings and their values: {CONF}; --cfg job prints those of a command line."
    about = about.replace("python -m experiments.run", "mathamr run")
    return "\n".join([about, "", "Experiments (+exp=NAME):", *listed, "", settings])
