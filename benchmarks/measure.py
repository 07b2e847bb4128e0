"""Running a command some times, each in a process of its own, and what that took."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": ""}
"""This checkout is measured, whatever is installed."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Some runs of one command: seconds, seconds that a core was at work for it (which other work on the
    machine sways less), and the most memory of one run in MiB."""

    seconds: tuple[float, ...]
    core: tuple[float, ...]
    memory: float

    @property
    def median(self) -> float:
        """Of the seconds."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        spread = f"({min(self.seconds):.3f} to {max(self.seconds):.3f})"
        return (
            f"{self.median:7.3f} s  {spread}  {statistics.median(self.core):7.3f} s  {self.memory:5.0f} MiB"
        )


class Unsuccessful(Exception):
    """A measured command that did not end well: its time would say nothing."""


def measure(
    command: Sequence[str],
    folder: Path,
    runs: int,
    *,
    before: Callable[[], object] = lambda: None,
    environment: Mapping[str, str] = ENVIRONMENT,
) -> Figure:
    """Run a command `runs` times, after one run that warms the file cache, each after a call of `before`.
    Raises Unsuccessful."""
    taken = []
    for _ in range(runs + 1):
        before()
        taken.append(once(command, folder, environment))
    seconds, core, memory = zip(*taken[1:], strict=True)
    return Figure(seconds, core, max(memory))


def once(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] = ENVIRONMENT
) -> tuple[float, float, float]:
    """Seconds, seconds of a core, and MiB of one run."""
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()[-5:]
            raise Unsuccessful(f"{' '.join(command)} ended with {child.returncode}:\n" + "\n".join(lines))
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def show(what: str, figure: Figure, beside: str = "") -> None:
    """One line."""
    print(f"{what:<42}{figure}  {beside}".rstrip(), flush=True)


def reached(figure: Figure, reach: float | None, less: float = 0.0) -> str:
    """What stands beside a figure that has a reach: by how much it is missed, if it is."""
    if reach is None:
        return ""
    seconds = figure.median - less
    return f"reach {reach} s" + (f", {seconds / reach:.1f} times that" if seconds > reach else "")
