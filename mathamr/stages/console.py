"""Progress of long jobs on the terminal: count, rate, remaining time, and a summary line when a stage ends.

    with Console().stage("AMR", total=5194, unit="posts") as advance:
        build(..., progress=advance)        # AMR: 5,194 posts in 41 s, 126.7 posts/s

On a terminal the line moves; in a log file each stage leaves a line every half minute and one at its end. Everything
goes to standard error, so that standard output holds results alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from graphs.counts import counted
from mathamr.memory import give_back_memory

_LOG_EVERY = 30.0  # seconds between lines in a log file


class Stage:
    """Progress of a stage: a call adds finished items; :meth:`expect` sets a total that becomes known later."""

    def __init__(self, name: str, total: int | None, unit: str, report: Callable[[Stage], None]) -> None:
        self.name, self.total, self.unit, self.done = name, total, unit, 0
        self._skipped = 0
        self.start = time.monotonic()
        self._report = report

    def __call__(self, count: int) -> None:
        self.done += count
        self._report(self)

    def skip(self, count: int) -> None:
        """Add items that an earlier run has finished; they do not count for the rate."""
        self._skipped += count
        self(count)

    def expect(self, total: int) -> None:
        """Set the expected number of items."""
        self.total = total
        self._report(self)

    @property
    def rate(self) -> float:
        """Items a second so far."""
        return (self.done - self._skipped) / max(time.monotonic() - self.start, 1e-9)


class Console:
    """Progress and messages of an experiment, on standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console as RichConsole  # many modules import this one and print nothing

        self._rich = RichConsole(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self._said: set[str] = set()

    def say(self, message: str) -> None:
        """Print a line."""
        self._rich.print(message, markup=False)

    def once(self, message: str) -> None:
        """Print a line, unless it was printed before."""
        if message not in self._said:
            self._said.add(message)
            self.say(message)

    def failures(self, what: str, counts: Mapping[tuple[str, str], int]) -> None:
        """Print a table of failures by stage and kind, if there are any."""
        if counts:
            self.say(f"  {what}: {sum(counts.values()):,}")
        for (stage, kind), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            self.say(f"    {count:8,}  {stage}: {kind}")

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "items") -> Iterator[Stage]:
        """Show the progress that the block reports; print a summary line at the end."""
        if self._rich.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            bar = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
            with Progress(TextColumn("{task.description}"), *bar, console=self._rich, transient=True) as progress:
                task = progress.add_task(name, total=total, rate="")

                def show(stage: Stage) -> None:
                    rate = f"{stage.rate:,.1f} {unit}/s"
                    progress.update(task, total=stage.total, completed=stage.done, rate=rate)

                stage = Stage(name, total, unit, show)
                yield stage
        else:
            stage = Stage(name, total, unit, self._log_line())
            yield stage
        seconds = time.monotonic() - stage.start
        give_back_memory()  # stages of different kinds follow each other
        if stage.done and seconds >= 1:
            done = counted(stage.done, unit[:-1]) if unit.endswith("s") else f"{stage.done:,} {unit}"
            self.say(f"  {name}: {done} in {duration(seconds)}, {stage.rate:,.1f} {unit}/s")
        sys.stderr.flush()

    def _log_line(self) -> Callable[[Stage], None]:
        """Return a function that prints the progress of a stage every half minute."""
        last = time.monotonic()

        def report(stage: Stage) -> None:
            nonlocal last
            if time.monotonic() - last < _LOG_EVERY or not stage.done:
                return
            last = time.monotonic()
            rate = stage.rate
            left = ""
            if stage.total is not None:
                left = f" of {stage.total:,}"
                left += f", {duration((stage.total - stage.done) / rate)} left" if rate else ""
            self.say(f"  {stage.name}: {stage.done:,} {stage.unit}{left}, {rate:,.1f} {stage.unit}/s")

        return report


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(7.2), duration(75), duration(7300)
    ('7 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
