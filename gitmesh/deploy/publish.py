"""What a deploy writes: the deploy branch for people, and one small ref for each reader (SECURITY §1.3).

mesh.yaml names the branch, and so can rename it or fail to load. The next deploy and the vault therefore
find the branch's commit under a name that is always the same, `WHOLE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitmesh.repo.objects import folders_of, parents_of, read_files, tree_of, trees_of, write_commit
from gitmesh.repo.transport import Access, Update, fetch, init_bare, push, remote_refs

FRESH = "refs/gitmesh/fresh"
WHOLE = "refs/gitmesh/whole"
LIMIT = 1 << 28
"""The longest file of a deploy, in bytes: the record of a large mesh."""
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
    """The deploy branch, and how many of its commits are kept; without a name it stays where it is."""

    name: str | None
    keep: int

    @property
    def refs(self) -> tuple[str, ...]:
        """The refs that are at its commit."""
        return (WHOLE,) if self.name is None else (f"refs/heads/{self.name}", WHOLE)


@dataclass(frozen=True, slots=True)
class Seen:
    """What stood on origin at the last fetch: commits by ref, and the last deploy's commit and files."""

    refs: Mapping[str, str]
    commit: str | None
    files: Mapping[str, bytes]

    @property
    def lost(self) -> bool:
        """Whether something was deployed, and its whole is gone."""
        return self.commit is None and bool(self.refs)


def fetch_main(cache: Path, origin: str, access: Access | None = None) -> str | None:
    """The tip of origin's main, fetched into the bare repo `cache`, which is made where it is missing."""
    if not cache.exists():
        init_bare(cache)
    return fetch(cache, origin, [_MAIN], access=access).get(_MAIN)


def look(cache: Path, origin: str, branch: Branch, access: Access | None = None) -> Seen:
    """Fetch what stands of earlier deploys on `origin` into `cache`."""
    patterns = (*branch.refs, FRESH, shard_ref("*"), node_ref("*"))
    names = sorted(remote_refs(origin, patterns, access=access))
    refs = fetch(cache, origin, names, access=access)
    tip = next((refs[ref] for ref in (WHOLE, *branch.refs) if ref in refs), None)
    return Seen(refs, tip, {} if tip is None else read_files(cache, tip, LIMIT))


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
    cache: Path,
    origin: str,
    branch: Branch,
    seen: Seen,
    files: Mapping[str, bytes],
    note: str,
    now: int,
    access: Access | None = None,
) -> tuple[str, ...]:
    """Push the deploy branch and every small ref that differs, all or nothing; returns the refs pushed.

    A ref whose content is as it was keeps its commit, so that a node with nothing new receives nothing. The
    cache is not synced to disk: it holds nothing that origin lacks, and a broken one is made anew.
    Raises `Rejected` where another deploy came first.
    """
    whole = _advance(cache, branch, seen, files, note, now)
    updates = [
        Update(ref, whole, seen.refs.get(ref, _ABSENT)) for ref in branch.refs if seen.refs.get(ref) != whole
    ]
    wanted = small_refs(files)
    trees = trees_of(cache, {seen.refs[ref] for ref in wanted if ref in seen.refs})
    # A node's ref holds what the whole has in the node's folder, so that its tree needs no second look.
    folders = {node_ref(node): tree for node, tree in folders_of(cache, whole, "nodes").items()}
    for ref, held in sorted(wanted.items()):
        old = seen.refs.get(ref, _ABSENT)
        if old and trees[old] == folders.get(ref):
            continue
        new = _commit(cache, held, (), note, now)
        if not old or trees[old] != tree_of(cache, new):
            updates.append(Update(ref, new, old))
    for ref, old in sorted(seen.refs.items()):
        if ref.startswith(("refs/gitmesh/shard/", "refs/gitmesh/node/")) and ref not in wanted:
            updates.append(Update(ref, None, old))
    if updates:
        push(cache, origin, updates, atomic=True, access=access)
    return tuple(each.ref for each in updates)


def _advance(cache: Path, branch: Branch, seen: Seen, files: Mapping[str, bytes], note: str, now: int) -> str:
    """The commit of `files`, a new one where they differ. Twice `keep` commits are cut back to `keep`."""
    parent = seen.commit
    if parent is not None and dict(files) == dict(seen.files):
        return parent
    history = _history(cache, parent)
    if len(history) >= 2 * branch.keep:
        parent = None
        for commit in reversed(history[: branch.keep - 1]):
            held = read_files(cache, commit, LIMIT)
            parent = _commit(cache, held, () if parent is None else (parent,), "an earlier deploy", now)
    return _commit(cache, files, () if parent is None else (parent,), note, now)


def _commit(cache: Path, files: Mapping[str, bytes], parents: tuple[str, ...], note: str, now: int) -> str:
    return write_commit(cache, files, parents, note, now, _AUTHOR, durable=False)


def _history(cache: Path, commit: str | None) -> list[str]:
    """The commits from `commit` back, newest first; a deploy has one parent at most."""
    history = []
    while commit is not None:
        history.append(commit)
        parents = parents_of(cache, commit)
        commit = parents[0] if parents else None
    return history
