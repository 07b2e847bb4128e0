"""A mesh repo as a command finds it: its files, its mesh, and the record it is resolved with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitmesh.cli.main import Failure
from gitmesh.core.model import Mesh
from gitmesh.core.record import Record
from gitmesh.core.refusal import Refusal, ordered
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.repo.cache import Cache
from gitmesh.repo.load import load
from gitmesh.repo.record import last_record
from gitmesh.repo.tree import open_staged, open_tree


@dataclass(frozen=True, slots=True)
class Opened:
    """One commit of a mesh repo (None: its working tree) in `folder`.

    `refused` is what its files alone are refused for; `where` says which record it was given.
    """

    folder: Path
    files: Mapping[str, bytes]
    commit: str | None
    mesh: Mesh
    refused: tuple[Refusal, ...]
    record: Record
    where: str

    def resolve(self) -> tuple[Resolution, tuple[Refusal, ...]]:
        """The resolution, and everything that the commit is refused for."""
        resolution = resolve(self.mesh, self.record)
        return resolution, ordered([*self.refused, *resolution.refusals])

    def with_files(self, changes: Mapping[str, bytes | None]) -> Opened:
        """The same with some files changed or added, and without those that are None."""
        changed = {**self.files, **changes}
        files = {path: blob for path, blob in changed.items() if blob is not None}
        mesh, refused = load(files)
        return Opened(self.folder, files, None, mesh, tuple(refused), self.record, self.where)


def open_mesh(repo: Path | None, revision: str | None = None, *, staged: bool = False) -> Opened:
    """The mesh repo at `repo`, or around the current folder: as of `revision`, as its index has it where
    `staged`, else as it lies there. Raises Failure, RepoError."""
    folder = _top(repo, revision)
    tree = open_staged(folder) if staged else open_tree(folder, revision)
    cache = Cache.of(folder)
    mesh, refused = load(tree.files, cache)
    cache.keep()
    record, where = last_record(folder, mesh.branch, mesh.id)
    return Opened(folder, tree.files, tree.commit, mesh, (*tree.refusals, *refused), record, where)


def _top(repo: Path | None, revision: str | None) -> Path:
    """`repo`, or the nearest folder with a mesh.yaml; in a bare repo only a commit has one."""
    folders = (Path(), *Path().resolve().parents) if repo is None else (repo,)
    for folder in folders:
        if (folder / "mesh.yaml").is_file():
            return folder
    if revision is not None:
        return folders[0]
    above = " or above it" if repo is None else ""
    raise Failure(f"no mesh.yaml in {folders[0].resolve()}{above}", "gitmesh check --repo FOLDER")
