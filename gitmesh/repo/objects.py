"""Commits written and read as flat mappings of files, with pygit2 and without any checkout.

What is read was fetched, so it is hostile: plain files only (mode 100644), every object's hash is
verified, sizes are known before contents. What is written is synced before a ref can name it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gitmesh.repo.transport import Damaged, RepoError

if TYPE_CHECKING:
    from pygit2 import Oid, Repository

FILE_LIMIT = 8 << 20
TOTAL_LIMIT = 512 << 20
ENTRY_LIMIT = 1 << 20
FOLDER_LIMIT = 8 << 20
DEPTH_LIMIT = 8
SYNC_EACH = 64
"""Up to so many files each object is synced by itself; the thousands of a deploy are synced once, together,
which takes a fifth of the time."""

_PLAIN = 0o100644
_FOLDER = 0o040000
_MODE = re.compile(rb"[0-7]{5,6}")
_COMMIT, _TREE, _BLOB = 1, 2, 3
"""Object types as libgit2 numbers them."""
_KINDS = {b"commit": _COMMIT, b"tree": _TREE, b"blob": _BLOB}
_HEADER = 4096
"""Bytes, more than a loose object's header takes."""
_ID = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")


class Malformed(RepoError):
    """A commit holds what no commit of gitmesh's own holds: a link, a bomb, a strange name."""


def write_commit(
    repo_path: Path,
    files: Mapping[str, bytes],
    parents: Sequence[str],
    message: str,
    when: int,
    author: str,
    *,
    durable: bool = True,
) -> str:
    """Write a commit of exactly `files` (path to content) and give its id; no ref moves.

    `when` is in seconds since 1970, `author` is a name; its address is `<name>@gitmesh`. The same arguments
    give the same id, and content the repository has is not written again. Without `durable` nothing is
    synced: for a cache that a power cut may break and `rebuild` mends. Raises RepoError.
    """
    pygit2 = _library()
    repo = _open(repo_path)
    pygit2.settings.enable_fsync_gitdir(durable and len(files) <= SYNC_EACH)
    try:
        tree = _write_tree(repo, _nested(files))
        who = pygit2.Signature(author, f"{author}@gitmesh", when, 0, "utf-8")
        commit = str(repo.create_commit(None, who, who, message, tree, list(parents)))
        if durable and len(files) > SYNC_EACH:
            os.sync()
        return commit
    except (pygit2.GitError, ValueError, KeyError, OSError) as error:
        raise _damaged(repo_path, "can't be written to", error) from error


def read_files(repo_path: Path, commit: str, limit: int = FILE_LIMIT) -> dict[str, bytes]:
    """All files of `commit` by path, none larger than `limit` bytes.

    Raises Malformed for anything that is no plain file, Damaged for a missing or broken object.
    """
    store = _Store(repo_path)
    files: dict[str, bytes] = {}
    total = 0
    for path, blob in store.walk(commit):
        files[path] = store.read(blob, _BLOB, limit, path)
        total += len(files[path])
        if total > TOTAL_LIMIT:
            raise Malformed(f"commit {commit} holds more than {TOTAL_LIMIT >> 20} MiB")
    return files


def read_file(repo_path: Path, commit: str, path: str, limit: int = FILE_LIMIT) -> bytes | None:
    """One file of `commit` by its exact path, or None where it has none; no other content is read.

    Raises Malformed where something else than a plain file of at most `limit` bytes stands there, Damaged
    for a missing or broken object.
    """
    store = _Store(repo_path)
    tree = store.tree_of(commit)
    *folders, name = path.split("/")
    for folder in folders:
        found = store.children(tree, path).get(folder)
        if found is None:
            return None
        tree = _expect(found, _FOLDER, path)
    last = store.children(tree, path).get(name)
    return None if last is None else store.read(_expect(last, _PLAIN, path), _BLOB, limit, path)


def tree_of(repo_path: Path, commit: str) -> str:
    """The id of a commit's tree: equal for equal content. Raises Malformed, Damaged."""
    return _Store(repo_path).tree_of(commit)


def trees_of(repo_path: Path, commits: Iterable[str]) -> dict[str, str]:
    """The id of each commit's tree, by the commit: `tree_of` for a thousand. Raises Malformed, Damaged."""
    store = _Store(repo_path)
    return {commit: store.tree_of(commit) for commit in commits}


def folders_of(repo_path: Path, commit: str, folder: str) -> dict[str, str]:
    """The tree id of each folder in the top folder `folder` of a commit, by name; nothing where it has none.

    A commit of just those files has that tree. Raises Malformed, Damaged.
    """
    store = _Store(repo_path)
    found = store.children(store.tree_of(commit), folder).get(folder)
    if found is None:
        return {}
    inside = store.children(_expect(found, _FOLDER, folder), folder)
    return {name: oid for name, (mode, oid) in inside.items() if mode == _FOLDER}


def parents_of(repo_path: Path, commit: str) -> tuple[str, ...]:
    """The ids of a commit's parents, in order; they need not be there. Raises Malformed, Damaged."""
    return _Store(repo_path).parents_of(commit)


@functools.cache
def _library() -> ModuleType:
    """pygit2, set up; imported here, since it takes longer than a pull with nothing new (PERF-NOTES)."""
    import pygit2

    pygit2.settings.enable_strict_hash_verification(True)
    pygit2.settings.enable_strict_object_creation(True)
    return pygit2


def _open(path: Path) -> Repository:
    pygit2 = _library()
    try:
        repo: Repository = pygit2.Repository(str(path))
        return repo
    except (pygit2.GitError, KeyError, OSError) as error:
        if "not owned by current user" in str(error):
            command = f"git config --global --add safe.directory {shlex.quote(str(path.absolute()))}"
            raise RepoError(f"{path} belongs to another user, so it is not read", command) from error
        raise Damaged(f"{path} is not a git repository, or is damaged") from error


def _damaged(path: Path, what: str, error: Exception | str) -> Damaged:
    return Damaged(f"{path} {what}: {error}", f"git --git-dir={shlex.quote(str(path))} fsck --full")


# --- writing -------------------------------------------------------------------------------------------


def _nested(files: Mapping[str, bytes]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, content in files.items():
        folder = root
        *folders, name = path.split("/")
        for part in folders:
            folder = folder.setdefault(part, {})
        folder[name] = content
    return root


def _write_tree(repo: Repository, folder: Mapping[str, Any]) -> Oid:
    builder = repo.TreeBuilder()
    for name, content in folder.items():
        if isinstance(content, bytes):
            builder.insert(name, repo.create_blob(content), _PLAIN)
        else:
            builder.insert(name, _write_tree(repo, content), _FOLDER)
    return builder.write()


# --- reading -------------------------------------------------------------------------------------------


class _Store:
    """One repository's objects, each read by id, of a known type and a bounded size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repo = _open(path)
        self.folder = Path(self.repo.path, "objects")

    def read(self, oid: str, kind: int, limit: int, place: str) -> bytes:
        """An object's content; its size is known before it is read, and its hash is verified."""
        found, content = self._loose(oid, limit, place) or self._packed(oid, limit, place)
        if found != kind:
            raise Malformed(f"{_shown(place)}: object {oid} is of another type than its place says")
        return content

    def _loose(self, oid: str, limit: int, place: str) -> tuple[int, bytes] | None:
        """An object that is a file of its own, None for any other.

        Read here, because libgit2 (1.9.7) never comes back from such a file that is cut short.
        """
        try:
            with (self.folder / oid[:2] / oid[2:]).open("rb") as file:
                packed = file.read(limit + limit // 1000 + _HEADER)
            inflate = zlib.decompressobj()
            raw = inflate.decompress(packed, limit + _HEADER)
        except FileNotFoundError:
            return None
        except (OSError, zlib.error) as error:
            raise _damaged(self.path, f"has a broken object {oid}", error) from error
        header, _, content = raw.partition(b"\0")
        kind, _, size = header.partition(b" ")
        if size.isdigit() and int(size) > limit:
            raise _too_large(place, int(size), limit)
        algorithm = hashlib.sha1 if len(oid) == 40 else hashlib.sha256
        if not inflate.eof or kind not in _KINDS or algorithm(raw).hexdigest() != oid:
            raise _damaged(self.path, f"has a broken object {oid}", "its content is not what its name says")
        return _KINDS[kind], content

    def _packed(self, oid: str, limit: int, place: str) -> tuple[int, bytes]:
        pygit2 = _library()
        try:
            _, size = self.repo.odb.read_header(oid)
            if size > limit:
                raise _too_large(place, size, limit)
            kind, content = self.repo.odb.read(oid)
        except (pygit2.GitError, KeyError, ValueError, OSError) as error:
            raise _damaged(self.path, f"lacks object {oid}, or it is broken", error) from error
        return int(kind), bytes(content)

    def tree_of(self, commit: str) -> str:
        return self._headers(commit, b"tree")[0]

    def parents_of(self, commit: str) -> tuple[str, ...]:
        return self._headers(commit, b"parent")

    def _headers(self, commit: str, word: bytes) -> tuple[str, ...]:
        """The ids that a commit's own bytes name for `word`; it has exactly one tree, first."""
        if not _ID.fullmatch(commit.encode()):
            raise Malformed(f"{_shown(commit)} is no commit id")
        headers, _, _ = self.read(commit, _COMMIT, FOLDER_LIMIT, f"commit {commit}").partition(b"\n\n")
        named = [line.partition(b" ")[::2] for line in headers.split(b"\n")]
        ids = [(key, value) for key, value in named if key in (b"tree", b"parent")]
        if [key for key, _ in ids].count(b"tree") != 1 or named[0][0] != b"tree":
            raise Malformed(f"commit {commit} is malformed")
        if not all(_ID.fullmatch(value) for _, value in ids):
            raise Malformed(f"commit {commit} is malformed")
        return tuple(value.decode("ascii") for key, value in ids if key == word)

    def children(self, tree: str, place: str) -> dict[str, tuple[int, str]]:
        """Name to mode and id of a tree's entries, from its raw bytes, which hide nothing."""
        raw = self.read(tree, _TREE, FOLDER_LIMIT, place)
        width = len(tree) // 2
        children: dict[str, tuple[int, str]] = {}
        position = 0
        while position < len(raw):
            end = raw.find(b"\0", position)
            mode, _, encoded = raw[position:end].partition(b" ")
            position = end + 1 + width
            name = encoded.decode("utf-8", "surrogateescape")
            if end < 0 or position > len(raw) or not _MODE.fullmatch(mode) or _is_strange(name):
                raise Malformed(
                    f"{_shown(place)}: its folder is malformed, or has a name that no file may have"
                )
            if name in children:
                raise Malformed(f"{_shown(place)}: its folder has a name twice")
            children[name] = (int(mode, 8), raw[end + 1 : position].hex())
        return children

    def walk(self, commit: str) -> Iterator[tuple[str, str]]:
        """Path and blob of every file of a commit, by path; Malformed for what is no plain file."""
        waiting = [("", (_FOLDER, self.tree_of(commit)))]
        seen = 0
        while waiting:
            path, entry = waiting.pop()
            seen += 1
            if seen > ENTRY_LIMIT or path.count("/") > DEPTH_LIMIT:
                raise Malformed(
                    f"commit {commit} has more than {ENTRY_LIMIT} entries or {DEPTH_LIMIT} levels"
                )
            if entry[0] != _FOLDER:
                yield path, _expect(entry, _PLAIN, path)
                continue
            found = self.children(entry[1], path or f"commit {commit}")
            prefix = f"{path}/" if path else ""
            waiting += [(prefix + name, found[name]) for name in sorted(found, reverse=True)]


def _too_large(place: str, size: int, limit: int) -> Malformed:
    return Malformed(f"{_shown(place)} has {size} bytes, more than {limit}")


def _is_strange(name: str) -> bool:
    return name.casefold() in ("", ".", "..", ".git") or "/" in name or "\\" in name or not name.isprintable()


def _expect(entry: tuple[int, str], mode: int, path: str) -> str:
    found, oid = entry
    if found != mode:
        raise Malformed(f"{_shown(path)}: what stands there has mode {found:06o} and not {mode:06o}")
    return oid


def _shown(text: str) -> str:
    return ascii(text)[1:-1]
