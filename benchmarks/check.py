"""How long gitmesh takes, the start of the process included: `./dev bench`.

Prints medians and judges nothing: a machine's figures are compared with a peer's on the same machine
(`--peer ansible`), or with the empty Python that every run pays for, and never with a number in a test.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import ENVIRONMENT, Figure, Unsuccessful, measure, reached, show
from benchmarks.peers import PEERS, is_here
from benchmarks.synthetic import TEMPLATE, mesh_files, write

CHECK = [sys.executable, "-m", "gitmesh", "check"]
LARGE = (10_000, 10)
COLD = {(100, 10): 0.4, (1000, 10): 1.0, LARGE: 8.0}
"""What the design sets out to reach, in seconds; shown beside the figure."""
ONE_CHANGE = {(100, 10): 0.25, (1000, 10): 0.3, LARGE: 0.8}


def sizes(text: str) -> tuple[int, int]:
    """`100x10`: nodes, and assignments on each."""
    nodes, _, assignments = text.partition("x")
    return int(nodes), int(assignments)


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure gitmesh.")
    parser.add_argument("--runs", type=int, default=5, help="of each figure; the median is shown")
    parser.add_argument("--size", type=sizes, action="append", metavar="NODESxASSIGNMENTS",
                        help="of a synthetic mesh; default 100x10 and 1000x10")  # fmt: skip
    parser.add_argument("--large", action="store_true", help="10000x10 too, once")
    parser.add_argument("--deploy", action="store_true", help="measure deploys and a node's pull too")
    parser.add_argument("--peer", choices=sorted(PEERS), action="append", default=[],
                        help="measure this one in the same run")  # fmt: skip
    parser.add_argument("--profile", action="store_true", help="show where the largest mesh's time goes")
    return parser.parse_args()


def main() -> int:
    """Measure, and print as it goes."""
    chosen = arguments()
    print(f"{'what':<42}{'median':>9}  (least to most)   of a core    memory")
    try:
        with tempfile.TemporaryDirectory(prefix="gitmesh-bench-") as folder:
            compare(Path(folder), chosen)
    except Unsuccessful as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def compare(folder: Path, chosen: argparse.Namespace) -> None:
    """Every figure, smallest first."""
    show("an empty Python", measure([sys.executable, "-c", ""], folder, chosen.runs))
    shutil.copytree(TEMPLATE, folder / "template")
    show("check, the template, no cache", _check(folder / "template", None, chosen.runs))
    wanted: list[tuple[int, int]] = chosen.size or [(100, 10), (1000, 10)]
    for size in [*wanted, *([LARGE] if chosen.large else [])]:
        runs = 1 if size == LARGE else chosen.runs
        mesh = folder / "{}x{}".format(*size)
        write(mesh, mesh_files(*size))
        figure = checks(size, mesh, folder, runs)
        for peer in chosen.peer:
            against(peer, size, folder / f"{peer}-{mesh.name}", figure)
        if chosen.deploy:
            # Here, since a child's memory is never less than its parent's was when it began.
            from benchmarks import deploy

            deploy.figures(size, mesh, folder / f"deploy-{mesh.name}", runs)
    if chosen.profile:
        profile(mesh)


def checks(size: tuple[int, int], mesh: Path, folder: Path, runs: int) -> Figure:
    """`gitmesh check` with an empty cache, then with a filled one after an edit; answers the former."""
    what = "check, {} nodes x {}".format(*size)
    cache = folder / "cache"
    cold = _check(mesh, cache, runs, lambda: shutil.rmtree(cache, ignore_errors=True))
    show(f"{what}, empty cache", cold, reached(cold, COLD.get(size)))
    edited, numbers = mesh / "nodes/n0.yaml", itertools.count()
    text = edited.read_text()
    warm = _check(mesh, cache, runs, lambda: edited.write_text(f"{text}# {next(numbers)}\n"))
    show(f"{what}, one file changed", warm, reached(warm, ONE_CHANGE.get(size)))
    edited.write_text(text)
    return cold


def _check(mesh: Path, cache: Path | None, runs: int, before: Callable[[], object] = lambda: None) -> Figure:
    caching = {"GITMESH_CACHE": "off"} if cache is None else {"XDG_CACHE_HOME": str(cache)}
    environment = {**ENVIRONMENT, **caching}
    return measure(CHECK, mesh, runs, before=before, environment=environment)


def against(peer: str, size: tuple[int, int], folder: Path, figure: Figure) -> None:
    """A peer's figure and the ratio, or that it is not here."""
    if not is_here(peer):
        print(f"no peer here: {peer} is not on PATH")
        return
    folder.mkdir()
    taken = PEERS[peer](*size, folder, 1)
    show("{}, {} nodes x {}".format(peer, *size), taken, f"{taken.median / figure.median:.1f} times as long")


def profile(mesh: Path) -> None:
    """The functions that take the most time in a check of `mesh`."""
    command: Sequence[str] = [sys.executable, "-m", "cProfile", "-s", "tottime", *CHECK[1:]]
    environment = {**ENVIRONMENT, "GITMESH_CACHE": "off"}
    done = subprocess.run(command, cwd=mesh, env=environment, capture_output=True, text=True, check=False)
    print("\n" + "\n".join(done.stdout.splitlines()[:30]))


if __name__ == "__main__":
    sys.exit(main())
