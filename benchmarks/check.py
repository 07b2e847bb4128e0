"""How long `gitmesh check` takes, the start of the process included: `./dev bench`.

Prints medians and judges nothing: a machine's figures are compared with a peer's on the same machine
(`--peer ansible`), or with the empty Python that every run pays for, and never with a number in a test.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))  # so that it also runs as a file, as ./dev starts it

from benchmarks.synthetic import TEMPLATE, mesh_files, write  # noqa: E402 - after the path is set

REACH = {(100, 10): 0.4, (1000, 10): 1.0}
"""What the design sets out to reach, in seconds; shown beside the figure."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": ""}
"""This checkout is measured, whatever is installed."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Some runs of one command: seconds, and the most memory of one run in MiB."""

    seconds: tuple[float, ...]
    memory: float

    @property
    def median(self) -> float:
        """Of the seconds."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        spread = f"({min(self.seconds):.3f} to {max(self.seconds):.3f})"
        return f"{self.median:7.3f} s  {spread}  {self.memory:5.0f} MiB"


class Unsuccessful(Exception):
    """A measured command that did not end well: its time would say nothing."""


def measure(command: Sequence[str], folder: Path, runs: int) -> Figure:
    """Run a command `runs` times, after one run that warms the caches. Raises Unsuccessful."""
    taken = [once(command, folder) for _ in range(runs + 1)][1:]
    return Figure(tuple(seconds for seconds, _ in taken), max(memory for _, memory in taken))


def once(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds and MiB of one run."""
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT, stdout=said, stderr=said, stdin=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()[-5:]
            raise Unsuccessful(f"{' '.join(command)} ended with {child.returncode}:\n" + "\n".join(lines))
    return seconds, usage.ru_maxrss / 1024


def gitmesh_check(folder: Path, runs: int) -> Figure:
    """`gitmesh check` on a mesh."""
    return measure([sys.executable, "-m", "gitmesh", "check"], folder, runs)


def ansible_all(nodes: int, assignments: int, folder: Path, runs: int) -> Figure:
    """The peer: one task that reads every host's variables, the least that ansible can do with like files."""
    variables = folder / "host_vars"
    variables.mkdir()
    for node in range(nodes):
        lines = [f"app{each}: {{name: app{each}.n{node}.example.org}}" for each in range(assignments)]
        (variables / f"n{node}.yml").write_text("\n".join(lines) + "\n")
    (folder / "hosts.ini").write_text("".join(f"n{node} ansible_connection=local\n" for node in range(nodes)))
    task = ["-m", "ansible.builtin.debug", "-a", "msg={{ app0.name }}"]
    return measure(["ansible", "-i", "hosts.ini", "all", "-f", "20", *task], folder, runs)


PEERS: dict[str, Callable[[int, int, Path, int], Figure]] = {"ansible": ansible_all}


def sizes(text: str) -> tuple[int, int]:
    """`100x10`: nodes, and assignments on each."""
    nodes, _, assignments = text.partition("x")
    return int(nodes), int(assignments)


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure gitmesh check.")
    parser.add_argument("--runs", type=int, default=5, help="of each figure; the median is shown")
    parser.add_argument("--size", type=sizes, action="append", metavar="NODESxASSIGNMENTS",
                        help="of a synthetic mesh; default 100x10 and 1000x10")  # fmt: skip
    parser.add_argument("--peer", choices=sorted(PEERS), help="measure this one in the same run")
    parser.add_argument("--profile", action="store_true", help="show where the largest mesh's time goes")
    return parser.parse_args()


def main() -> int:
    """Measure, and print as it goes."""
    chosen = arguments()
    wanted = chosen.size or [(100, 10), (1000, 10)]
    print(f"{'what':<34}{'median':>9}   (least to most)     memory")
    try:
        with tempfile.TemporaryDirectory(prefix="gitmesh-bench-") as folder:
            compare(Path(folder), wanted, chosen)
    except Unsuccessful as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def compare(folder: Path, wanted: Sequence[tuple[int, int]], chosen: argparse.Namespace) -> None:
    """Every figure, smallest first."""
    show("an empty Python", measure([sys.executable, "-c", ""], folder, chosen.runs))
    shutil.copytree(TEMPLATE, folder / "template")
    show("check, the template", gitmesh_check(folder / "template", chosen.runs))
    for nodes, assignments in wanted:
        mesh = folder / f"{nodes}x{assignments}"
        write(mesh, mesh_files(nodes, assignments))
        figure = gitmesh_check(mesh, chosen.runs)
        reach = REACH.get((nodes, assignments))
        show(f"check, {nodes} nodes x {assignments}", figure, f"reach: {reach} s" if reach else "")
        if chosen.peer:
            against(chosen, nodes, assignments, folder / f"peer-{nodes}x{assignments}", figure)
    if chosen.profile:
        profile(folder / "{}x{}".format(*wanted[-1]))


def against(chosen: argparse.Namespace, nodes: int, assignments: int, folder: Path, figure: Figure) -> None:
    """A peer's figure and the ratio, or that it is not here."""
    if shutil.which(chosen.peer) is None:
        print(f"no peer here: {chosen.peer} is not on PATH")
        return
    folder.mkdir()
    peer = PEERS[chosen.peer](nodes, assignments, folder, 1)
    show(f"{chosen.peer}, {nodes} nodes", peer, f"{peer.median / figure.median:.1f} times as long")


def show(what: str, figure: Figure, beside: str = "") -> None:
    """One line."""
    print(f"{what:<34}{figure}  {beside}".rstrip(), flush=True)


def profile(mesh: Path) -> None:
    """The functions that take the most time in a check of `mesh`."""
    command = [sys.executable, "-m", "cProfile", "-s", "tottime", "-m", "gitmesh", "check"]
    done = subprocess.run(command, cwd=mesh, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    print("\n" + "\n".join(done.stdout.splitlines()[:30]))


if __name__ == "__main__":
    sys.exit(main())
