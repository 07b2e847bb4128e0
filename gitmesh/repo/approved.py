"""Which commit of main the nodes run: the one that the last approval names, as last fetched."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gitmesh.repo.git import environment
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.refused import Refused

_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


def approved_commit(repo: Path, branch: str) -> str | None:
    """The commit that origin's deploy branch was made from; None before the first deploy.

    In a bare repository, which is an origin itself, its own branch counts. No signature is checked: a plan
    only compares with it, and decides nothing.
    """
    for ref in (f"refs/remotes/origin/{branch}", f"refs/heads/{branch}"):
        command = ["git", "-C", str(repo), "cat-file", "blob", f"{ref}:approval.json"]
        done = subprocess.run(command, env=environment(None), capture_output=True, check=False)
        if done.returncode == 0:
            return _source(done.stdout)
    return None


def _source(blob: bytes) -> str | None:
    try:
        payload = read_unverified(blob, Kind.APPROVAL).payload
    except Refused:
        return None
    match payload.get("source"):
        case {"commit": str(commit)} if _COMMIT.fullmatch(commit):
            return commit
        case _:
            return None
