"""Deploys of a large mesh to an origin beside it, and a pull of one of its nodes."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.measure import ENVIRONMENT, Figure, measure, reached, show
from gitmesh.cli.genesis import CONTROLLER_KEY, begin, install
from gitmesh.cli.opened import open_mesh
from gitmesh.core.model import Keys
from gitmesh.deploy import publish
from gitmesh.deploy.run import Controller, newest_root
from gitmesh.repo.edit import put
from gitmesh.repo.transport import push
from gitmesh.trust.keys import SealingKey, SigningKey, read_key

ALL_NEW = {(1000, 10): 2.0}
"""Seconds beyond the push that the design sets out to reach."""
ONE_CHANGE = {(1000, 10): 0.5}
PULL = 0.15
VAULT, PULLING = "n0", "n1"


def figures(size: tuple[int, int], mesh: Path, folder: Path, runs: int) -> None:
    """Show a deploy of all nodes, one after a file changed, one of nothing, and a pull of nothing."""
    what = "deploy, {} nodes x {}".format(*size)
    made = Made(mesh, folder)
    done = made.deploys(runs, made.forget)
    show(f"{what}, all new", done, _beyond(made, done, ALL_NEW.get(size)))
    numbers = itertools.count()
    done = made.deploys(runs, lambda: made.change(next(numbers)))
    show(f"{what}, one file changed", done, _beyond(made, done, ONE_CHANGE.get(size)))
    done = made.deploys(runs, lambda: None)
    show(f"{what}, nothing new", done)
    pull = [sys.executable, "-m", "gitmesh", "pull", "--root", str(made.root(PULLING))]
    done = measure(pull, folder, runs)
    show("pull of one of {} nodes, nothing new".format(*size), done, reached(done, PULL))


def _beyond(made: Made, done: Figure, reach: float | None) -> str:
    pushed = sorted(made.pushed)[len(made.pushed) // 2]
    return f"of that the push {pushed:.2f} s; " + reached(done, reach, pushed)


class Made:
    """A mesh after genesis with every node enrolled: a clone, an origin, and the two nodes that have keys."""

    def __init__(self, mesh: Path, folder: Path) -> None:
        self.folder, self.mesh, self.origin = folder, folder / "mesh", folder / "origin.git"
        self.pushed: list[float] = []
        shutil.copytree(mesh, self.mesh)
        for key in ("origin", "mailbox"):
            self._put("mesh.yaml", [key], self.origin.as_uri())
        begin(open_mesh(self.mesh), self.root(VAULT), None, int(time.time()))
        first = (self.mesh / "trust/1.root.json").read_bytes()
        digest = newest_root({"trust/1.root.json": first}).digest
        for file in sorted((self.mesh / "nodes").iterdir()):
            node = file.stem
            if node in (VAULT, PULLING):
                keys = install(node, self.root(node), self.origin.as_uri(), self.origin.as_uri(), digest)
            else:
                keys = Keys(SigningKey.generate().public_text, SealingKey.generate().public_text, 1)
            self._put(f"nodes/{node}.yaml", ["keys"], {"sign": keys.sign, "seal": keys.seal, "epoch": 1})
        _git(folder, "init", "-q", "--bare", "-b", "main", str(self.origin))
        _git(self.mesh, "init", "-q", "-b", "main")
        _git(self.mesh, "remote", "add", "origin", self.origin.as_uri())
        self._push("all")

    def root(self, node: str) -> Path:
        """The folder that stands for a node's `/`."""
        return self.folder / "nodes" / node

    def _put(self, path: str, keys: list[str], value: object) -> None:
        file = self.mesh / path
        file.write_bytes(put(file.read_bytes(), keys, value))

    def _push(self, message: str) -> None:
        _git(self.mesh, "add", "-A")
        _git(self.mesh, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", message)
        _git(self.mesh, "push", "-q", "origin", "main")

    def forget(self) -> None:
        """As if nothing had been deployed yet."""
        shutil.rmtree(self.folder / "controller.git", ignore_errors=True)
        for ref in _git(self.origin, "for-each-ref", "--format=%(refname)").splitlines():
            if ref != "refs/heads/main":
                _git(self.origin, "update-ref", "-d", ref)

    def change(self, number: int) -> None:
        """One assignment of one node is given another name."""
        file = next((self.mesh / f"assignments/{PULLING}").iterdir())
        self._put(str(file.relative_to(self.mesh)), ["values", "web.name"], f"new{number}.example.org")
        self._push(f"change {number}")

    def deploys(self, runs: int, before: Callable[[], object]) -> Figure:
        """Some deploys, each in a process of its own; what their pushes took is then in `pushed`."""
        log = self.folder / "pushed.json"
        log.write_text("")
        command = [sys.executable, "-m", "benchmarks.deploy", str(self.folder), str(log)]
        done = measure(command, self.folder, runs, before=before, environment=ENVIRONMENT)
        self.pushed = [json.loads(line) for line in log.read_text().splitlines()][1:]
        return done


def deploy_once(folder: Path, log: Path) -> None:
    """One deploy, as the command does it; adds the seconds of its push to `log`."""
    key = read_key(folder / "nodes" / VAULT / CONTROLLER_KEY, SigningKey)
    took = [0.0]

    def timed(*given: Any, **named: Any) -> None:
        began = time.perf_counter()
        push(*given, **named)
        took.append(time.perf_counter() - began)

    origin = (folder / "origin.git").as_uri()
    with mock.patch.object(publish, "push", timed):
        done = Controller(folder / "controller.git", origin, key, int(time.time())).deploy()
    if done.refusals:
        raise SystemExit("the mesh is refused")
    with log.open("a") as file:
        file.write(json.dumps(sum(took)) + "\n")


def _git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    import gc

    gc.disable()  # as the command does
    deploy_once(Path(sys.argv[1]), Path(sys.argv[2]))
