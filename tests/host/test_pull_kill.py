"""A pull that is killed, or stopped by Ctrl-C, at any durable operation: the next one ends right (E2)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitmesh import fsops
from gitmesh.host.installed import read_installed
from gitmesh.host.pull import Pulled, pull
from gitmesh.trust.counters import Counters
from tests.host.settled import SITE, STATS, Faults, answer, counting, running, settled_mesh
from tests.world import World

SAMPLES = 10
HOME = "var/lib/gitmesh"
STORE = "var/lib/mesh/gitmesh-vault"
MINIFLUX = "pins: {database: postgres@sparta}\nvalues: {web.name: news.example.org}\n"


@dataclass(frozen=True)
class Start:
    """A node before a pull that has something to do, and how it is after it: what runs, and its counters."""

    world: World
    node: str
    root: Path
    operations: int
    runs: dict[str, tuple[object, ...]]
    counters: Counters

    def copy(self, folder: Path) -> Path:
        """The node as it was before, in a folder of its own; origin is everybody's."""
        return copied(self.root, folder)


def copied(root: Path, folder: Path) -> Path:
    subprocess.run(["cp", "-a", f"{root}/.", str(folder)], check=True)
    return folder


def pulls(start: Start, root: Path) -> Pulled:
    return pull(read_installed(root), start.world.now)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with settled_mesh(tmp_path_factory.mktemp("settled")) as world:
        yield world


@pytest.fixture(scope="module", params=["athens at first", "sparta at first", "athens changed", "delphi"])
def start(mesh: World, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Start:
    node, _, kind = str(request.param).partition(" ")
    root = copied(mesh.root(node), tmp_path_factory.mktemp("start"))
    if kind == "changed":
        text = (mesh.mesh / "assignments/athens/gitea.yaml").read_text()
        mesh.write("assignments/athens/gitea.yaml", text.replace("git.example.org", "forge.example.org"))
        mesh.write("rotations.yaml", f"{STATS}: 1\n")
        mesh.commit_push()
        mesh.pass_time(60)
        mesh.deploy()
        answer(mesh, {"site": SITE.replace("7", "8")}, 2)
    elif kind:
        for part in ("run", "var"):
            subprocess.run(["rm", "-rf", str(root / part)], check=True)
    else:
        mesh.write("assignments/athens/miniflux.yaml", MINIFLUX)
        mesh.commit_push()
        mesh.pass_time(60)
        assert mesh.deploy().refusals == ()
    begun = Start(mesh, node, root, 0, {}, Counters(root_version=1))
    done = begun.copy(tmp_path_factory.mktemp("done"))
    with counting() as operations:
        pulls(begun, done)
    count = len(operations)
    pulls(begun, done)
    return Start(mesh, node, root, count, runs(done), counters(done))


def runs(root: Path) -> dict[str, tuple[object, ...]]:
    """What is to be the same after every way there; what the vault makes is random."""
    return {path: held for path, held in running(root).items() if not path.startswith(f"{STORE}/")}


def versions(root: Path) -> set[int]:
    """Every version in the vault's store."""
    states = [json.loads(path.read_bytes()) for path in root.glob(f"{STORE}/*/_state.json")]
    return {each["version"] for state in states for each in state.values() if isinstance(each, dict)}


def counters(root: Path) -> Counters:
    """The node's counters; none where it has none yet."""
    path = root / HOME / "trust/state.json"
    return Counters.from_json(json.loads(path.read_bytes())) if path.exists() else Counters(root_version=1)


def numbers(root: Path) -> dict[str, tuple[int, int]]:
    """Everything that never goes back."""
    seen = counters(root)
    marks = {"approval": seen.approval, "deploy": seen.deploy, "vault": seen.vault}
    marks |= {f"answers of {node}": mark for node, mark in seen.answers.items()}
    found = {name: (mark.epoch, mark.seq) for name, mark in marks.items()}
    found |= {secret: (0, version) for secret, version in seen.secrets.items()}
    outbox = root / HOME / "mailbox.json"
    said = json.loads(outbox.read_bytes())["refs"] if outbox.exists() else {}
    return found | {ref: (0, each["seq"]) for ref, each in said.items()} | {"newest": (0, seen.newest)}


def no_less(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> bool:
    return all(number <= after[name] for name, number in before.items())


def staged(root: Path) -> list[Path]:
    return list(root.rglob(f"{fsops.STAGED}*"))


def samples(count: int) -> list[int]:
    """The first, the last and some between, a different distance apart each time."""
    assert count > SAMPLES
    return sorted({1 + place * (count - 1) // (SAMPLES - 1) for place in range(SAMPLES)})


def killed_at(start: Start, root: Path, at: int) -> bool:
    """Pull in a child that is killed at its operation `at`; whether it came that far."""
    child = os.fork()
    if child == 0:
        fsops.fault = Faults(at, killed=True)
        try:
            pulls(start, root)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def ends_right(start: Start, root: Path, before: dict[str, tuple[int, int]]) -> None:
    """The next pull makes the node what an undisturbed one makes it, and the one after it does nothing."""
    stopped = numbers(root)
    assert no_less(before, stopped)
    pulled = pulls(start, root)
    assert (pulled.stale, pulled.failed) == ("", [])
    assert runs(root) == start.runs
    assert versions(root) == ({1} if start.node == "delphi" else set())
    assert counters(root) == start.counters
    assert no_less(stopped, numbers(root))
    assert staged(root) == []
    again = pulls(start, root)
    assert (again.stale, again.new) == ("", [])


@pytest.mark.rule("E2", "S41")
def test_a_killed_pull_is_finished_by_the_next(start: Start, tmp_path: Path) -> None:
    for at in samples(start.operations):
        folder = tmp_path / str(at)
        folder.mkdir()
        root = start.copy(folder)
        before = numbers(root)
        assert killed_at(start, root, at), at
        ends_right(start, root, before)


@pytest.mark.rule("E2", "S41")
def test_a_pull_stopped_by_hand_leaves_nothing_behind(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in samples(start.operations)[1::3]:
        folder = tmp_path / str(at)
        folder.mkdir()
        root = start.copy(folder)
        before = numbers(root)
        monkeypatch.setattr(fsops, "fault", Faults(at, killed=False))
        with pytest.raises(KeyboardInterrupt):
            pulls(start, root)
        monkeypatch.undo()
        assert staged(root) == []
        ends_right(start, root, before)


@pytest.mark.rule("E2", "S41")
def test_a_pull_killed_again_and_again_arrives(start: Start, tmp_path: Path) -> None:
    """Each try gets a little further, as on a machine that keeps crashing."""
    root = start.copy(tmp_path)
    before = numbers(root)
    for at in range(5, start.operations, max(5, start.operations // 6)):
        killed_at(start, root, at)
    ends_right(start, root, before)
