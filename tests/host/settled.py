"""A mesh whose nodes have pulled until nothing was new, copied for each test; and what a node's files are."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gitmesh import fsops
from gitmesh.cli.main import cli
from gitmesh.core.model import Json
from gitmesh.host import adapters, provide
from gitmesh.host.adapters.base import Adapter, Down
from gitmesh.host.said import ref_of
from gitmesh.trust.documents import Answers, signed
from gitmesh.trust.secret import Secret
from tests.host.fake_adapter import FakeAdapter, FakeServer
from tests.world import DATABASE, World, git

STATS = "gitea@athens.stats"
"""What umami on sparta answers gitea on athens."""
SITE = "0f0e0d0c-0b0a-4090-8807-060504030201"
FRESH = "refs/gitmesh/fresh"
UMAMI = "pins: {database: postgres@sparta}\nvalues: {web.name: stats.example.org}\n"
GITEA = "uses: [stats]\npins: {database: postgres@sparta}\nvalues: {web.name: git.example.org}\n"


@contextmanager
def settled_mesh(folder: Path) -> Iterator[World]:
    """`settle`, where nobody listens at the mesh's addresses, whatever else runs on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        down = FakeAdapter(FakeServer(Secret(""), state="down"))
        patch.setattr(provide, "adapter", partial(_adapter, down))
        patch.setattr(provide, "authenticate", _down)
        yield settle(folder)


def _adapter(its: FakeAdapter, name: str) -> Adapter:
    return its if name == "postgres" else adapters.adapter(name)


def _down(*_: object, **__: object) -> None:
    raise Down("the server can't be reached")


def settle(folder: Path) -> World:
    """A mesh where everything is delivered: sparta's confirm and its answer are played."""
    world = World.begin(folder)
    world.write("assignments/sparta/umami.yaml", UMAMI)
    world.write("assignments/athens/gitea.yaml", GITEA)
    world.commit_push()
    world.deploy()
    world.round()
    world.confirm("sparta", {DATABASE: 1, "umami@sparta.database": 1})
    answer(world, {"site": SITE}, 1)
    world.round()
    world.round()
    world.pass_time(60)
    return world


def answer(
    world: World, fields: Mapping[str, Json], seq: int, by: str = "sparta", epoch: int = 1, **other: str
) -> bytes:
    """Play a node's answers to athens; `other` replaces what the document says of itself."""
    document = Answers(
        other.get("mesh", world.trusted_root().mesh),
        world.now,
        other.get("node", "sparta"),
        epoch,
        seq,
        1,
        other.get("for_", "athens"),
        {"gitea@athens": {"stats": fields}},
    )
    blob = signed(document, [world.installed(by).sign()])
    world.send("refs/gitmesh/answers/sparta/athens", {"answers.json": blob})
    return blob


def copy_of(world: World, folder: Path) -> World:
    """The same mesh in another folder, owners and modes included."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"{world.folder}/.", str(folder)], check=True)
    copied = World(folder, world.now)
    for file in folder.glob("nodes/*/etc/gitmesh/node.yaml"):
        file.write_text(file.read_text().replace(world.origin, copied.origin))
    git(copied.mesh, "remote", "set-url", "origin", copied.origin)
    return copied


def content(root: Path, *below: str) -> dict[str, tuple[object, ...]]:
    """Every file and folder below, or the whole machine: what it is and what is in it, but not when."""
    return {
        str(path.relative_to(root)): _content(path)
        for part in below or ("",)
        for path in sorted((root / part).rglob("*"))
    }


def _content(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    held = path.read_bytes() if stat.S_ISREG(found.st_mode) else None
    return stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, held


def running(root: Path) -> dict[str, tuple[object, ...]]:
    """What a node runs: its containers' files and its directories."""
    return content(root, "var/lib/gitmesh/files", "run/gitmesh/secrets", "var/lib/mesh")


def stamps(root: Path) -> dict[str, tuple[int, ...]]:
    """Of every file and folder, what changes with any write."""
    return {
        str(path): (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        for path in sorted(root.rglob("*"))
        for found in [path.lstat()]
    }


def reboot(root: Path) -> None:
    """Lose what lies on the tmpfs."""
    shutil.rmtree(root / "run")


def command(world: World, node: str, *more: str) -> Result:
    """`gitmesh pull` as it is typed, at the world's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: float(world.now))
        patch.setattr("gitmesh.host.memory.keep_private", lambda: None)
        return CliRunner().invoke(cli, ["pull", "--root", str(world.root(node)), *more])


def flipped(blob: bytes, count: int = 8) -> Iterator[bytes]:
    """The bytes with one of them changed, at places spread over all of it."""
    for number in range(count):
        place = number * (len(blob) - 1) // (count - 1)
        yield blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :]


def files_at(world: World, ref: str, **changed: bytes | None) -> None:
    """Put a ref back with some files changed; `_json` ends the name, None takes the file away."""
    held: dict[str, bytes] = dict(world.files(ref))
    for key, blob in changed.items():
        name = key.replace("__", "/").replace("_json", ".json")
        held.pop(name, None)
        if blob is not None:
            held[name] = blob
    world.send(ref, held)


@contextmanager
def gone(world: World) -> Iterator[None]:
    """While origin can't be reached."""
    away = world.bare.with_name("away.git")
    world.bare.rename(away)
    try:
        yield
    finally:
        away.rename(world.bare)


@contextmanager
def counting() -> Iterator[list[str]]:
    """Every durable operation, as `rename /path`."""
    seen: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fsops, "fault", partial(_note, seen))
        yield seen


def _note(seen: list[str], operation: str, path: str) -> None:
    seen.append(f"{operation} {path}")


def report_of(node: str) -> str:
    """The ref of a node's report."""
    return ref_of("report", node)


class Faults:
    """Stands for `fsops.fault`: at the operation `at` it kills its program, or stops it as Ctrl-C does."""

    def __init__(self, at: int, killed: bool) -> None:
        self.left = at
        self.killed = killed

    def __call__(self, operation: str, path: str) -> None:
        self.left -= 1
        if self.left == 0:
            if self.killed:
                os.kill(os.getpid(), signal.SIGKILL)
            raise KeyboardInterrupt
