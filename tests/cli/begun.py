"""The small mesh after genesis, for tests of the commands that need keys: origin, a clone, three nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from gitmesh.cli.main import cli
from tests.cli.small_mesh import FILES, commit, git, make

NODES = ("delphi", "sparta", "athens")


def gitmesh(*arguments: str | Path) -> Result:
    """One command in this process."""
    return CliRunner().invoke(cli, [str(each) for each in arguments])


@dataclass(frozen=True, slots=True)
class Begun:
    """A mesh in `folder`: `origin.git` for both remotes, `mesh` the clone, `nodes/<name>` a node's `/`."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, files: dict[str, str] = FILES) -> Begun:
        """The mesh before genesis, committed and pushed."""
        begun = cls(folder)
        git(folder, "init", "-q", "--bare", "-b", "main", "origin.git")
        make(begun.mesh, files)
        text = (
            (begun.mesh / "mesh.yaml").read_text().replace("ssh://git@git.example.org/hellas.git", begun.url)
        )
        text = text.replace("ssh://git@git.example.org/mail.git", begun.url)
        (begun.mesh / "mesh.yaml").write_text(text)
        commit(begun.mesh)
        git(begun.mesh, "remote", "add", "origin", begun.url)
        begun.push()
        return begun

    @classmethod
    def enrolled(cls, folder: Path, nodes: tuple[str, ...] = NODES) -> Begun:
        """The mesh after genesis on delphi and the enrolment of `nodes`, pushed and not deployed."""
        begun = cls.make(folder)
        done = begun.genesis()
        assert done.exit_code == 0, done.output
        for node in nodes:
            done = begun.enrol(node)
            assert done.exit_code == 0, done.output
        begun.push()
        return begun

    @property
    def mesh(self) -> Path:
        """The clone."""
        return self.folder / "mesh"

    @property
    def url(self) -> str:
        """Origin's."""
        return (self.folder / "origin.git").as_uri()

    def root(self, node: str) -> Path:
        """The folder that stands for a node's `/`."""
        return self.folder / "nodes" / node

    def push(self) -> None:
        """Commit everything in the clone and push it."""
        commit(self.mesh)
        git(self.mesh, "push", "-q", "-f", "origin", "main")

    def genesis(self, *options: str | Path) -> Result:
        """Genesis on delphi."""
        return gitmesh("genesis", "--repo", self.mesh, "--root", self.root("delphi"), *options)

    def sha256(self) -> str:
        """The first root's."""
        return gitmesh("genesis", "--show", "--repo", self.mesh).output.strip()

    def enrol(self, node: str, *options: str | Path) -> Result:
        """The enrolment of a node, into the clone where no options say otherwise."""
        more = options or ("--repo", self.mesh)
        pinned = ("--origin", self.url, "--root-sha256", self.sha256())
        return gitmesh("enrol", node, "--root", self.root(node), *pinned, *more)

    def deploy(self, *options: str | Path) -> Result:
        """A deploy on delphi."""
        return gitmesh("deploy", "--root", self.root("delphi"), *options)

    def pull(self, node: str, *options: str) -> Result:
        """A pull of a node."""
        return gitmesh("pull", "--root", self.root(node), *options)

    def status(self, *options: str) -> Result:
        """Status in the clone."""
        return gitmesh("status", "--repo", self.mesh, *options)


def modes(folder: Path) -> dict[str, int]:
    """The mode of every file and folder below `folder`."""
    return {str(each.relative_to(folder)): each.lstat().st_mode & 0o7777 for each in folder.rglob("*")}


def contents(folder: Path) -> dict[str, bytes]:
    """The content of every file below `folder` that is not git's."""
    found = (each for each in folder.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}
