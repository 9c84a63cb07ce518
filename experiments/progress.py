"""Progress of long jobs on the terminal: count, rate, remaining time, and a summary line when a stage ends.

    with Console().stage("AMR", total=5194, unit="posts") as advance:
        build(..., progress=advance)        # AMR: 5,194 posts in 41 s, 126.7 posts/s

On a terminal the line moves; in a log file each stage leaves a line every half minute and one at its end. Everything
goes to standard error, so that standard output holds results alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

_LOG_EVERY = 30.0  # seconds between lines in a log file


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f} {task.fields['unit']}/s")


class Console:
    """Where an experiment says what it is doing."""

    def __init__(self) -> None:
        self._rich = RichConsole(stderr=True, highlight=False, soft_wrap=True)

    def say(self, message: str) -> None:
        """One line."""
        self._rich.print(message, markup=False)

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "items") -> Iterator[Callable[[int], None]]:
        """A stage of the work; yields a function that is told how many items more are done."""
        start = time.monotonic()
        done = 0
        if self._rich.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                _Rate(),
                TimeRemainingColumn(),
            )
            with Progress(*columns, console=self._rich, transient=True) as progress:
                task = progress.add_task(name, total=total, unit=unit)

                def advance(count: int) -> None:
                    nonlocal done
                    done += count
                    progress.advance(task, count)

                yield advance
        else:
            last = start

            def advance(count: int) -> None:
                nonlocal done, last
                done += count
                now = time.monotonic()
                if now - last >= _LOG_EVERY and done:
                    last = now
                    rate = done / (now - start)
                    left = "" if total is None else f" of {total:,}, {_duration((total - done) / rate)} left"
                    self.say(f"  {name}: {done:,} {unit}{left}, {rate:,.1f} {unit}/s")

            yield advance
        seconds = time.monotonic() - start
        if done and seconds >= 1:
            self.say(f"{name}: {done:,} {unit} in {_duration(seconds)}, {done / seconds:,.1f} {unit}/s")
        sys.stderr.flush()


def _duration(seconds: float) -> str:
    """
    >>> _duration(7.2), _duration(75), _duration(7300)
    ('7 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
