"""A small real mesh in a folder: a bare origin, an operator's clone, three enrolled nodes, one controller.

Its commands are the Python functions below the CLI, called with the time that a test gives, so that days
pass in no time: `world = World.begin(tmp_path)`, then `world.deploy()` and `world.pull("athens")`.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gitmesh.assets import asset
from gitmesh.cli.genesis import CONTROLLER_KEY, begin, install, publish_keys
from gitmesh.cli.opened import open_mesh
from gitmesh.deploy.run import Controller, Deployed, newest_root
from gitmesh.host.installed import Installed, read_installed
from gitmesh.host.pull import Pulled, pull
from gitmesh.repo.edit import put
from gitmesh.repo.objects import read_files, write_commit
from gitmesh.repo.transport import Update, init_bare, push
from gitmesh.repo.tree import open_tree
from gitmesh.trust.documents import Confirm, Root
from gitmesh.trust.keys import SigningKey, raw_seal, read_key
from gitmesh.trust.seal import seal_confirms

NOW = 1_800_000_000
"""The time at which a world begins, in seconds."""
DAY = 86_400
NODES = ("delphi", "sparta", "athens")
"""In the order in which they pull: delphi holds the vault, sparta PostgreSQL, athens gitea."""
ASSIGNMENTS = {
    "athens/gitea": "pins: {database: postgres@sparta}\nvalues: {web.name: git.example.org}\n",
    "sparta/postgres": "holds: [mesh-store]\n",
    "delphi/caddy": "holds: [mesh-edge]\nvalues: {acme: ops@example.org}\n",
    "delphi/gitmesh-vault": "holds: [mesh-vault]\n",
}
DATABASE = "gitea@athens.database"
"""The id of the one shared secret: sparta applies it, athens reads it."""


@dataclass
class World:
    """The mesh in `folder`: `origin.git`, the clone `mesh`, and `nodes/<name>` as each machine's root.

    `now` is the time that deploys and pulls take where none is given; move it with `pass_time`.
    """

    folder: Path
    now: int = NOW

    @classmethod
    def begin(cls, folder: Path, now: int = NOW, enrolled: tuple[str, ...] = NODES) -> World:
        """A mesh after genesis with the nodes `enrolled`: committed and pushed, and not deployed."""
        world = cls(folder, now)
        shutil.copytree(asset("mesh-repo-template"), world.mesh)
        git(folder, "init", "-q", "--bare", "-b", "main", "origin.git")
        shutil.rmtree(world.mesh / "assignments")
        for name, text in ASSIGNMENTS.items():
            world.write(f"assignments/{name}.yaml", text)
        for key in ("origin", "mailbox"):
            world.edit("mesh.yaml", [key], world.origin)
        git(world.mesh, "init", "-q", "-b", "main")
        git(world.mesh, "remote", "add", "origin", world.origin)
        begin(open_mesh(world.mesh), world.root("delphi"), None, now)
        for node in enrolled:
            world.enrol(node)
        world.commit_push("the mesh begins")
        return world

    # --- places ----------------------------------------------------------------------------------------

    @property
    def mesh(self) -> Path:
        """The operator's clone."""
        return self.folder / "mesh"

    @property
    def bare(self) -> Path:
        """The bare repo that is origin and mailbox."""
        return self.folder / "origin.git"

    @property
    def origin(self) -> str:
        """Its URL."""
        return self.bare.as_uri()

    def root(self, node: str) -> Path:
        """The folder that stands for a node's `/`."""
        return self.folder / "nodes" / node

    def installed(self, node: str) -> Installed:
        """What enrolment left on a node: its keys are read through it."""
        return read_installed(self.root(node))

    def store(self) -> Path:
        """Where the vault keeps its store: the one directory of gitmesh-vault's placement on delphi."""
        return next(self.root("delphi").glob("var/lib/mesh/gitmesh-vault/*"))

    # --- an operator -----------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> None:
        """Write a file of the clone, its folders included."""
        file = self.mesh / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def edit(self, path: str, keys: list[str], value: object) -> None:
        """Set one value in a YAML file of the clone, as `gitmesh set` would."""
        file = self.mesh / path
        file.write_bytes(put(file.read_bytes(), keys, value))

    def enrol(self, node: str) -> None:
        """Make the node's keys, and write their public halves into the clone."""
        first = open_mesh(self.mesh).files["trust/1.root.json"]
        digest = newest_root({"trust/1.root.json": first}).digest
        keys = install(node, self.root(node), self.origin, self.origin, digest)
        publish_keys(self.mesh / "nodes" / f"{node}.yaml", keys)

    def commit_push(self, message: str = "a change") -> str:
        """Commit everything in the clone and push it to main; returns the commit."""
        git(self.mesh, "add", "-A")
        git(self.mesh, "commit", "-q", "--allow-empty", "-m", message)
        git(self.mesh, "push", "-q", "origin", "main")
        return git(self.mesh, "rev-parse", "HEAD")

    # --- controller and nodes --------------------------------------------------------------------------

    def pass_time(self, seconds: int) -> int:
        """Move the clock on; returns what it says then."""
        self.now += seconds
        return self.now

    def deploy(self, now: int | None = None, cache: Path | None = None) -> Deployed:
        """One deploy by the controller; `cache` stands for another machine's own copy."""
        return self.controller(now, cache).deploy()

    def controller(self, now: int | None = None, cache: Path | None = None) -> Controller:
        """The controller, for tests that drive it themselves."""
        key = read_key(self.root("delphi") / CONTROLLER_KEY, SigningKey)
        return Controller(cache or self.folder / "controller.git", self.origin, key, now or self.now)

    def pull(self, node: str, now: int | None = None) -> Pulled:
        """One pull of a node."""
        return pull(self.installed(node), now or self.now)

    def round(self, now: int | None = None) -> dict[str, Pulled]:
        """One pull on each enrolled node, the vault's first."""
        there = [node for node in NODES if (self.root(node) / "etc/gitmesh/node.yaml").exists()]
        return {node: self.pull(node, now) for node in there}

    def confirm(
        self, node: str, versions: Mapping[str, int], seq: int = 1, authenticated: bool = True
    ) -> None:
        """Play a node's confirms: that it applied each secret in the version given."""
        installed, root = self.installed(node), self.trusted_root()
        confirms = {
            secret: Confirm(slot="a", version=version, applied=True, authenticated=authenticated)
            for secret, version in versions.items()
        }
        blob = seal_confirms(
            confirms, root.mesh, self.now, node, 1, seq, installed.sign(), raw_seal(root.roles.vault.seal)
        )
        self.send(f"refs/gitmesh/confirms/{node}", {"confirms.json": blob})

    # --- what stands on origin -------------------------------------------------------------------------

    def trusted_root(self) -> Root:
        """The newest root on main."""
        return newest_root(open_tree(self.bare, "main").files).root

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """The commit of each ref of origin below `prefix`."""
        lines = git(self.bare, "for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
        return dict(line.split(" ") for line in lines)

    def files(self, ref: str) -> dict[str, bytes]:
        """The files of a ref of origin; none where the ref is not there."""
        commit = self.refs(ref).get(ref)
        return {} if commit is None else read_files(self.bare, commit)

    def deployed(self) -> dict[str, bytes]:
        """The files of the deploy branch."""
        return self.files("refs/heads/deploy")

    def send(self, ref: str, files: Mapping[str, bytes] | None) -> None:
        """Put a ref of origin to these files, or remove it, as whoever can write there could."""
        cache = self.folder / "anyone.git"
        if not cache.exists():
            init_bare(cache)
        commit = None if files is None else write_commit(cache, files, (), "anyone", self.now, "anyone")
        push(cache, self.origin, [Update(ref, commit, None, force=True)])


def git(where: Path, *arguments: str) -> str:
    """git's output, without the last newline."""
    names = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    done = subprocess.run(
        ["git", *arguments],
        cwd=where,
        check=True,
        env={**os.environ, **names},
        capture_output=True,
        text=True,
    )
    return done.stdout.rstrip("\n")


def objects(repo: Path) -> bytes:
    """The content of every object of a git repo, inflated."""
    command = ["git", f"--git-dir={repo}", "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    return subprocess.run(command, capture_output=True, check=True).stdout


def spellings(value: str) -> set[bytes]:
    """A secret as it could stand somewhere by mistake: plain, in base64 at any offset, in hex, in a URL."""
    raw = value.encode()
    # Of base64, the part that does not depend on what stands before and after it.
    shifted = (base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3))
    return {raw, raw.hex().encode(), raw.hex().upper().encode(), quote(value, safe="").encode(), *shifted}
