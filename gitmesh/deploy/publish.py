"""What a deploy writes: the deploy branch for people, and one small ref for each reader (SECURITY §1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitmesh.repo.objects import parents_of, read_files, tree_of, write_commit
from gitmesh.repo.transport import Update, fetch, init_bare, push, remote_refs

FRESH = "refs/gitmesh/fresh"
_MAIN = "refs/heads/main"
_ABSENT = ""
"""The lease on a ref that must not be there yet."""
_AUTHOR = "deploy"


def node_ref(node: str) -> str:
    """The ref that a node reads its own slice and declaration from."""
    return f"refs/gitmesh/node/{node}"


def shard_ref(shard: str) -> str:
    """The ref of one shard."""
    return f"refs/gitmesh/shard/{shard}"


@dataclass(frozen=True, slots=True)
class Branch:
    """The deploy branch, and how many of its commits are kept."""

    name: str
    keep: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What stood on origin at the last fetch: commits by ref, and the deploy branch's files."""

    refs: Mapping[str, str]
    files: Mapping[str, bytes]


def fetch_main(cache: Path, origin: str) -> str | None:
    """The tip of origin's main, fetched into the bare repo `cache`, which is made where it is missing."""
    if not cache.exists():
        init_bare(cache)
    return fetch(cache, origin, [_MAIN]).get(_MAIN)


def look(cache: Path, origin: str, branch: Branch) -> Seen:
    """Fetch what stands of earlier deploys on `origin` into `cache`."""
    patterns = (f"refs/heads/{branch.name}", FRESH, shard_ref("*"), node_ref("*"))
    names = sorted(remote_refs(origin, patterns))
    refs = fetch(cache, origin, names)
    tip = refs.get(f"refs/heads/{branch.name}")
    return Seen(refs, {} if tip is None else read_files(cache, tip))


def small_refs(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The files of each small ref, from those of the deploy branch."""
    refs: dict[str, dict[str, bytes]] = {}
    for path, blob in files.items():
        match path.split("/"):
            case ["approval.json" | "deploy.json"] | ["trust", _]:
                refs.setdefault(FRESH, {})[path] = blob
            case ["shards", name]:
                refs[shard_ref(name.removesuffix(".json"))] = {"shard.json": blob}
            case ["nodes", node, "slice.json" | "declaration.json" as name]:
                refs.setdefault(node_ref(node), {})[name] = blob
            case _:
                pass
    # A node that has not enrolled has a declaration to look at, and no slice: nothing for it to read yet.
    return {
        ref: held for ref, held in refs.items() if not ref.startswith(node_ref("")) or "slice.json" in held
    }


def publish(
    cache: Path, origin: str, branch: Branch, seen: Seen, files: Mapping[str, bytes], note: str, now: int
) -> tuple[str, ...]:
    """Push the deploy branch and every small ref that differs, all or nothing; returns the refs pushed.

    A ref whose content is as it was keeps its commit, so that a node with nothing new receives nothing.
    Raises `Rejected` where another deploy came first.
    """
    updates = _advance(cache, branch, seen, files, note, now)
    wanted = small_refs(files)
    for ref, held in sorted(wanted.items()):
        old = seen.refs.get(ref)
        new = write_commit(cache, held, (), note, now, _AUTHOR)
        if old is None or tree_of(cache, old) != tree_of(cache, new):
            updates.append(Update(ref, new, old or _ABSENT, force=True))
    for ref, old in sorted(seen.refs.items()):
        if ref.startswith(("refs/gitmesh/shard/", "refs/gitmesh/node/")) and ref not in wanted:
            updates.append(Update(ref, None, old, force=True))
    if updates:
        push(cache, origin, updates, atomic=True)
    return tuple(each.ref for each in updates)


def _advance(
    cache: Path, branch: Branch, seen: Seen, files: Mapping[str, bytes], note: str, now: int
) -> list[Update]:
    """The branch's new commit, where its files differ. Twice `keep` commits are cut back to `keep`."""
    if dict(files) == dict(seen.files):
        return []
    ref, keep = f"refs/heads/{branch.name}", branch.keep
    old = seen.refs.get(ref)
    history = _history(cache, old)
    parent = old
    if len(history) >= 2 * keep:
        parent = None
        for commit in reversed(history[: keep - 1]):
            parents = () if parent is None else (parent,)
            parent = write_commit(
                cache, read_files(cache, commit), parents, "an earlier deploy", now, _AUTHOR
            )
    commit = write_commit(cache, files, () if parent is None else (parent,), note, now, _AUTHOR)
    return [Update(ref, commit, old or _ABSENT, force=True)]


def _history(cache: Path, commit: str | None) -> list[str]:
    """The commits from `commit` back, newest first; a deploy has one parent at most."""
    history = []
    while commit is not None:
        history.append(commit)
        parents = parents_of(cache, commit)
        commit = parents[0] if parents else None
    return history
