"""What a node fetches: every document for it, by its path; nothing is verified yet (SECURITY §1.6).

What the vault or another node wrote can't hold up the rest: a ref of theirs that is no plain set of files is
named and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitmesh.host.installed import Installed
from gitmesh.host.take import answers_file, only_vault
from gitmesh.repo.objects import Malformed, read_files
from gitmesh.repo.transport import Damaged, RepoError, fetch
from gitmesh.trust.documents import shard_of
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.refused import Refused


@dataclass
class Fetched:
    """The documents by path, and which could not be read, by whose they are, with why."""

    files: dict[str, bytes] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)


def fetch_documents(cache: Path, installed: Installed, accepted: Mapping[str, bytes]) -> Fetched:
    """Everything for this node, in two connections where nothing moved to another shard.

    `accepted` says how many shards there were. Raises `RepoError`, and `Damaged` for the cache itself.
    """
    node, access = installed.node, installed.access()
    count = shard_count(accepted.get("approval.json")) or 1
    mine = [
        "refs/gitmesh/fresh",
        f"refs/gitmesh/shard/{shard_of(node, count)}",
        f"refs/gitmesh/node/{node}",
    ]
    sealed = f"refs/gitmesh/sealed/{node}"
    together = installed.origin == installed.mailbox
    refs = fetch(cache, installed.origin, [*mine, *([sealed] if together else [])], access=access)
    if not together:
        refs |= fetch(cache, installed.mailbox, [sealed], access=access)
    found = Fetched()
    for ref in mine:
        if ref in refs:
            found.files |= read_files(cache, refs[ref])
    actual = shard_count(found.files.get("approval.json"))
    if actual not in (0, count):
        shard = f"refs/gitmesh/shard/{shard_of(node, actual)}"
        for commit in fetch(cache, installed.origin, [shard], access=access).values():
            found.files |= read_files(cache, commit)
    if sealed in refs:
        found.files |= only_vault(_read(cache, refs[sealed], "vault", found))
    _fetch_answers(cache, installed, found)
    return found


def _read(cache: Path, commit: str, whose: str, found: Fetched) -> dict[str, bytes]:
    try:
        return read_files(cache, commit)
    except Malformed as wrong:
        found.refused.append((whose, wrong.message))
        return {}


def _fetch_answers(cache: Path, installed: Installed, found: Fetched) -> None:
    """The answers of the providers that this node's slice names; each signature is checked later."""
    sources = _sources(found.files.get("slice.json"))
    refs = {f"refs/gitmesh/answers/{each}/{installed.node}": each for each in sources}
    for ref, commit in _fetch_each(cache, installed, refs, found).items():
        blob = _read(cache, commit, refs[ref], found).get("answers.json")
        if blob is not None:
            found.files[answers_file(refs[ref])] = blob


def _fetch_each(cache: Path, installed: Installed, refs: Mapping[str, str], found: Fetched) -> dict[str, str]:
    """All at once; where one of them can't be had, each by itself, so that it holds up no other (S60)."""
    try:
        return fetch(cache, installed.mailbox, sorted(refs), access=installed.access())
    except Damaged:
        raise
    except RepoError as wrong:
        if len(refs) == 1:
            found.refused += [(whose, wrong.message) for whose in refs.values()]
            return {}
    commits: dict[str, str] = {}
    for ref, whose in sorted(refs.items()):
        commits |= _fetch_each(cache, installed, {ref: whose}, found)
    return commits


def _sources(blob: bytes | None) -> Iterable[str]:
    """The nodes that a slice says answer, before it is verified: a hint of what to fetch."""
    try:
        named = sorted(json.loads(blob or b"{}")["answers_from"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return [each for each in named if isinstance(each, str) and each.replace("-", "").isalnum()]


def shard_count(approval: bytes | None) -> int:
    """How many shards an approval says there are, before it is verified; 0 where it says nothing."""
    try:
        return 0 if approval is None else len(read_unverified(approval, Kind.APPROVAL).payload["shards"])
    except (Refused, KeyError, TypeError):
        return 0
