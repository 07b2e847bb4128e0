"""A catalogue of others in the mesh repo: `catalogue/<name>/`, pinned by commit and digest (G15).

What a remote holds is hostile. It is fetched under the limits of `repo.transport` into a repository of its
own, and read by the one grammar of a mesh repo: no link, no other repository, no name and no size that a
mesh repo's own file could not have.
"""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.repo.edit import put
from gitmesh.repo.load_catalogue import SEATS, digest, vendored
from gitmesh.repo.transport import RepoError, fetch, init_bare
from gitmesh.repo.tree import open_tree

PARTS = ("modules/", "contracts/", SEATS)
"""What is vendored of a repository; nothing else of it is even written."""
MOST_LINES = 400
"""So many lines of a diff are shown; git shows the rest of it."""
LONGEST = 200
"""So many characters of a line."""
_BRANCHES = ("main", "master")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_AT = re.compile(r"(?P<remote>.+)@(?P<commit>[A-Za-z0-9._-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pin:
    """What a catalogue is pinned to."""

    remote: str
    commit: str
    sha256: str

    def json(self) -> dict[str, Json]:
        """As catalogue.yaml says it."""
        return {"from": self.remote, "commit": self.commit, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A commit of a catalogue: its files by path, and what they are refused for."""

    commit: str
    files: Mapping[str, bytes]
    refusals: tuple[Refusal, ...]


def split(given: str) -> tuple[str, str | None]:
    """`REMOTE[@COMMIT]` as its two parts. What follows the last `@` is a commit, a tag or a branch only
    where it has no `/` and no `:`, so that `git@example.org:shop.git` is a remote."""
    match = _AT.fullmatch(given)
    return (given, None) if match is None else (match["remote"], match["commit"])


def fetch_catalogue(remote: str, revision: str | None = None) -> Fetched:
    """The catalogue at `remote`, as of a commit, tag or branch, else of its branch main (or master).

    Raises RepoError where it can't be fetched, has no such commit, or holds no definition.
    """
    with tempfile.TemporaryDirectory(prefix="gitmesh-") as folder:
        repo = Path(folder) / "catalogue.git"
        init_bare(repo)
        refs = fetch(repo, remote, ["refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*"])
        tree = open_tree(repo, _chosen(remote, revision, refs))
    files = {path: blob for path, blob in tree.files.items() if path.startswith(PARTS)}
    refusals = tuple(each for each in tree.refusals if each.at.file.startswith(PARTS))
    if not files and not refusals:
        raise RepoError(f"{remote} holds no modules/ and no contracts/ at {tree.commit}")
    assert tree.commit is not None
    return Fetched(tree.commit, files, refusals)


def _chosen(remote: str, revision: str | None, refs: Mapping[str, str]) -> str:
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    branches = _BRANCHES if revision is None else (revision,)
    for ref in (f"refs/{kind}/{name}" for name in branches for kind in ("tags", "heads")):
        if ref in refs:
            return refs[ref]
    named = ", ".join(sorted(each.split("/", 2)[2] for each in refs)[:20]) or "none at all"
    wanted = "branch main or master" if revision is None else f"tag or branch {revision}"
    raise RepoError(f"{remote} has no {wanted}; it has {named}")


def standing(files: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    """What the mesh repo with these files holds of a catalogue now, by path in it."""
    return vendored(files).get(name, {})


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Each path that differs, with what becomes of it: added, changed or removed."""
    return [
        (path, "added" if path not in before else "removed" if path not in after else "changed")
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


def diff(before: Mapping[str, bytes], after: Mapping[str, bytes], name: str) -> tuple[list[str], int]:
    """A unified diff of at most `MOST_LINES` lines, long ones cut, and how many more there are."""
    folder = f"catalogue/{name}"
    lines = [line for path, _ in changes(before, after) for line in _diff(before, after, folder, path)]
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines[:MOST_LINES]]
    return shown, max(len(lines) - MOST_LINES, 0)


def _diff(before: Mapping[str, bytes], after: Mapping[str, bytes], folder: str, path: str) -> list[str]:
    try:
        one, other = (files.get(path, b"").decode().splitlines() for files in (before, after))
    except UnicodeDecodeError:
        return [f"{folder}/{path} is no text, and differs"]
    old = f"a/{folder}/{path}" if path in before else "/dev/null"
    new = f"b/{folder}/{path}" if path in after else "/dev/null"
    return list(difflib.unified_diff(one, other, old, new, lineterm=""))


def pinned(blob: bytes, name: str, pin: Pin) -> bytes:
    """catalogue.yaml with the pin. Raises `Uneditable` where the file can't be edited by program."""
    for key, value in pin.json().items():
        blob = put(blob, [name, key], value)
    return blob


def pin_of(remote: str, fetched: Fetched) -> Pin:
    """The pin of what was fetched."""
    return Pin(remote, fetched.commit, digest(fetched.files))
