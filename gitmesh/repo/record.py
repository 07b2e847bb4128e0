"""The record as the last deploy left it: what `check` and `plan` resolve with (FORMATS "Published files")."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

from gitmesh.core.codec import Malformed
from gitmesh.core.record import EMPTY, Record, from_json
from gitmesh.repo.git import RepoError, environment, refuse_foreign

LIMIT = 256 << 20
"""Bytes of a record: a mesh of ten thousand nodes stays below a tenth of it."""

_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


def last_record(repo: Path, branch: str = "deploy", mesh: str | None = None) -> tuple[Record, str]:
    """The record on origin's deploy branch as last fetched, else an empty one; and which it is, in words.

    In a bare repository, which is an origin itself, its own branch counts. `mesh` is the mesh's id, where
    it is known. Raises RepoError for a record that can't be read or is another mesh's.
    """
    branch = branch if _BRANCH.fullmatch(branch) else "deploy"
    refs = {f"refs/remotes/origin/{branch}": f"origin/{branch}"}
    bare = _git(repo, "rev-parse", "--is-bare-repository")
    if bare is None:
        return EMPTY, f"empty, since {repo} is no git repository"
    if bare.strip() == b"true":
        refs[f"refs/heads/{branch}"] = branch
    for ref, shown in refs.items():
        found = _lookup(repo, ref)
        if found is not None:
            commit, blob = found
            return _read(repo, shown, blob, mesh), f"{shown} at {commit[:12]}, as last fetched"
    return EMPTY, f"empty, since no branch `{branch}` of origin was fetched"


def _lookup(repo: Path, ref: str) -> tuple[str, str] | None:
    """The commit of `ref` and the id of its record; None where there is no such ref."""
    asked = f"{ref}^{{commit}}\n{ref}:record.json\n".encode()
    lines = (_git(repo, "cat-file", "--batch-check", given=asked) or b"").decode().splitlines()
    commit, record = (line.split() for line in lines)
    if commit[1:2] != ["commit"]:
        return None
    if record[1:2] != ["blob"]:
        raise RepoError(f"{ref} has no record.json, so it is no deploy branch of gitmesh", _fetch(repo))
    if int(record[2]) > LIMIT:
        raise RepoError(f"the record on {ref} is larger than {LIMIT >> 20} MiB")
    return commit[0], record[0]


def _read(repo: Path, shown: str, blob: str, mesh: str | None) -> Record:
    content = _git(repo, "cat-file", "blob", blob) or b""
    try:
        value = json.loads(content)
        record = from_json(value)
    except (ValueError, RecursionError, Malformed) as error:
        raise RepoError(f"the record on {shown} is no record of gitmesh", _fetch(repo)) from error
    if mesh and value["mesh"] != mesh:
        raise RepoError(f"the record on {shown} is of another mesh than mesh.yaml's `id` says")
    return record


def _fetch(repo: Path) -> str:
    return f"git -C {shlex.quote(str(repo))} fetch origin"


def _git(repo: Path, *arguments: str, given: bytes = b"") -> bytes | None:
    """What git says; None outside of any repository."""
    command = ["git", "-C", str(repo), "-c", "core.fsmonitor=false", *arguments]
    done = subprocess.run(command, input=given, env=environment(None), capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if b"not a git repository" in done.stderr:
        return None
    refuse_foreign(repo, done.stderr)
    raise RepoError(f"{repo}: git can't read the last record", f"git -C {shlex.quote(str(repo))} fsck --full")
