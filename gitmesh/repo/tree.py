"""Reading one commit of a mesh repo, or its working tree, as a flat mapping of the files that count.

One grammar says what stands where (SECURITY §2b); it is the same for both ways of reading, and nothing
outside it is read. A commit is read with the `git` command: at 1,200 files it takes 15 ms packed and 65 ms
loose where importing pygit2 alone takes 70, it reads what a pre-receive hook holds in quarantine, and
sizes are known before any content.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gitmesh.core.refusal import Refusal
from gitmesh.repo.git import RepoError, environment, refuse_foreign
from gitmesh.repo.grammar import LIMITS, TOP_FOLDERS, Entry, Place, Shape, judge, judged, shown

ENTRY_LIMIT = 1 << 20
TOTAL_LIMIT = 512 << 20


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one commit (None: of a working tree) by path, and what was refused about others.

    `ids` has the git id of each file's content where a commit was read.
    """

    files: Mapping[str, bytes]
    commit: str | None = None
    refusals: tuple[Refusal, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict)


def open_tree(path: Path, revision: str | None = None) -> Tree:
    """The mesh repo at `path` as of `revision`, or as it lies on disk where that is None.

    Raises RepoError where there is no repository, no such revision, or git refuses to read.
    """
    if revision is None:
        return _Disk().read(path)
    commit = _resolve(path, revision)
    return _read(path, _listed(path, commit), commit)


def open_staged(path: Path) -> Tree:
    """The mesh repo at `path` as its index has it: what a commit would hold.

    A pre-commit hook asks this; the index is the one that git made for the commit at hand (C73). Raises
    RepoError as `open_tree` does, and where a merge left a file with two sides.
    """
    return _read(path, _staged(path), None)


def _read(path: Path, listed: Iterable[Entry], commit: str | None) -> Tree:
    entries, refusals = judged(listed)
    sizes = {entry.id: entry.size for entry in entries.values()}
    if sum(sizes.values()) > TOTAL_LIMIT:
        raise _flood()
    contents = _contents(path, sizes.keys())
    files = {name: contents[entry.id] for name, entry in sorted(entries.items())}
    ids = {name: entry.id for name, entry in sorted(entries.items())}
    return Tree(files, commit, tuple(refusals), ids)


# --- a working tree ------------------------------------------------------------------------------------


class _Disk:
    """Reads a working tree through descriptors: no link is followed, and none can be swapped in."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.entries: list[Entry] = []
        self.total = 0

    def read(self, path: Path) -> Tree:
        """The tree below `path`; RepoError where that is no readable folder."""
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise RepoError(f"{path} can't be read as a folder: {error.strerror}") from error
        self._folder(folder, "")
        accepted, refusals = judged(self.entries)
        files = {name: self.files[name] for name in sorted(accepted)}
        return Tree(files, None, tuple(refusals))

    def _folder(self, folder: int, prefix: str) -> None:
        """Read what counts in the folder that the descriptor `folder` is; closes it."""
        try:
            with os.scandir(folder) as found:
                names = sorted(found, key=lambda entry: entry.name)
            for found_entry in names:
                entry = Entry(prefix + found_entry.name, _disk_shape(found_entry))
                self._entry(folder, found_entry.name, entry)
        except OSError as error:
            place = prefix + error.filename if isinstance(error.filename, str) else prefix
            raise RepoError(f"{shown(place) or 'the folder'} can't be read: {error.strerror}") from error
        finally:
            os.close(folder)

    def _entry(self, folder: int, name: str, entry: Entry) -> None:
        verdict = judge(entry.path, entry.shape)
        if verdict is Place.FOLDER:
            self.entries.append(entry)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self._folder(os.open(name, flags, dir_fd=folder), f"{entry.path}/")
        elif isinstance(verdict, Place) and verdict in LIMITS:
            self._file(folder, name, entry, LIMITS[verdict])
        else:
            self.entries.append(entry)

    def _file(self, folder: int, name: str, entry: Entry, limit: int) -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            shape = _mode_shape(status.st_mode)
            whole = stat.S_ISREG(status.st_mode) and status.st_size <= limit
            content = _content(descriptor, limit) if whole else b""
        finally:
            os.close(descriptor)
        self.entries.append(Entry(entry.path, shape, size=max(status.st_size, len(content))))
        self.files[entry.path] = content
        self.total += len(content)
        if self.total > TOTAL_LIMIT or len(self.entries) > ENTRY_LIMIT:
            raise _flood()


def _content(descriptor: int, limit: int) -> bytes:
    """What the file holds, up to a byte more than `limit`; a file object for each costs more than reading."""
    parts = []
    while limit >= 0 and (part := os.read(descriptor, limit + 1)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _disk_shape(entry: os.DirEntry[str]) -> Shape:
    if entry.is_symlink():
        return Shape.LINK
    if entry.is_dir(follow_symlinks=False):
        return Shape.FOLDER
    return Shape.FILE if entry.is_file(follow_symlinks=False) else Shape.OTHER


def _mode_shape(mode: int) -> Shape:
    if not stat.S_ISREG(mode):
        return Shape.OTHER
    return Shape.EXECUTABLE if mode & stat.S_IXUSR else Shape.FILE


# --- a commit ------------------------------------------------------------------------------------------


_GIT_SHAPES = {
    "100644": Shape.FILE,
    "100755": Shape.EXECUTABLE,
    "040000": Shape.FOLDER,
    "120000": Shape.LINK,
    "160000": Shape.REPOSITORY,
}


_UNSAFE = re.compile(r"\A(?:-|\Z)|\.\.|[\x00-\x20\x7f]")
"""In what is no revision: an option, a range, a character that no ref has (C85). git is not asked then."""


def _git(
    path: Path, *arguments: str, given: bytes | None = None, index: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", str(path), "-c", "core.fsmonitor=false", *arguments]
    own = environment(None) | ({} if index is None else {"GIT_INDEX_FILE": index})
    return subprocess.run(command, input=given, env=own, capture_output=True, check=False)


def _resolve(path: Path, revision: str) -> str:
    """The commit that `revision` names; RepoError says why there is none, and what mends that."""
    folder = shlex.quote(str(path))
    if _UNSAFE.search(revision):
        raise RepoError(f"`{shown(revision)}` names no commit", f"git -C {folder} branch --all")
    done = _git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode == 0:
        return done.stdout.decode().strip()
    refuse_foreign(path, done.stderr)
    inside = _git(path, "rev-parse", "--is-shallow-repository")
    if inside.returncode:
        raise RepoError(f"{path} is not a git repository", f"git init {folder}")
    if _git(path, "rev-list", "-n1", "--all").stdout == b"":
        raise RepoError(f"{path} has no commit yet", f"git -C {folder} commit")
    if inside.stdout.strip() == b"true":
        raise RepoError(
            f"{path} is a shallow clone and does not have {shown(revision)}",
            f"git -C {folder} fetch --unshallow",
        )
    raise RepoError(f"{path} has no commit {shown(revision)}", f"git -C {folder} fetch")


def _listed(path: Path, commit: str) -> Iterator[Entry]:
    """What stands in the places of the grammar, each folder before what is in it."""
    top = list(_entries(path, commit, ()))
    yield from top
    places = [entry.path for entry in top if entry.shape is Shape.FOLDER and entry.path in TOP_FOLDERS]
    if places:
        within = (
            entry for entry in _entries(path, commit, tuple(dict.fromkeys(places))) if "/" in entry.path
        )
        yield from within


def _entries(path: Path, commit: str, places: tuple[str, ...]) -> Iterator[Entry]:
    recursion = ["-r", "-t"] if places else []
    command = ["git", "-C", str(path), "ls-tree", "-z", "-l", *recursion, commit, "--", *places]
    with subprocess.Popen(
        command, env=environment(None), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        for number, record in enumerate(_records(child.stdout)):
            if number > ENTRY_LIMIT:
                child.kill()
                raise _flood()
            yield _entry(record)
    if child.returncode:
        raise _unreadable(path, commit)


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(1 << 16):
        *records, rest = (rest + block).split(b"\0")
        yield from records


def _entry(record: bytes) -> Entry:
    head, _, name = record.partition(b"\t")
    mode, _, blob, size = head.decode().split()
    shape = _GIT_SHAPES.get(mode, Shape.OTHER)
    return Entry(name.decode("utf-8", "surrogateescape"), shape, blob, int(size) if size.isdigit() else 0)


def _staged(path: Path) -> Iterator[Entry]:
    """What stands in the index, each folder before what is in it."""
    done = _git(path, "ls-files", "--stage", "-z", index=_index_at_hand(path))
    if done.returncode:
        refuse_foreign(path, done.stderr)
        raise RepoError(f"{path} is not a git repository", f"git init {shlex.quote(str(path))}")
    found = [_staged_entry(record) for record in done.stdout.split(b"\0") if record]
    asked = "".join(f"{entry.id}\n" for entry in found).encode()
    sizes = _git(path, "cat-file", "--batch-check=%(objectsize)", given=asked).stdout.decode().splitlines()
    folders: set[str] = set()
    for entry, size in zip(found, sizes, strict=True):
        parts = entry.path.split("/")
        for folder in ("/".join(parts[:depth]) for depth in range(1, len(parts))):
            if folder not in folders:
                folders.add(folder)
                yield Entry(folder, Shape.FOLDER)
        yield Entry(entry.path, entry.shape, entry.id, int(size) if size.isdigit() else 0)


def _index_at_hand(path: Path) -> str | None:
    """The index that git made for the commit at hand, where a hook of this very repository runs in it."""
    said = os.environ.get("GIT_INDEX_FILE")
    own = _git(path, "rev-parse", "--absolute-git-dir").stdout.decode().strip()
    at_hand = Path(said or "").absolute()
    return str(at_hand) if said and own and at_hand.parent.resolve() == Path(own).resolve() else None


def _staged_entry(record: bytes) -> Entry:
    head, _, name = record.partition(b"\t")
    mode, blob, stage = head.decode().split()
    path = name.decode("utf-8", "surrogateescape")
    if stage != "0":
        raise RepoError(f"{shown(path)} is in a merge that is not finished", "git status")
    return Entry(path, _GIT_SHAPES.get(mode, Shape.OTHER), blob)


def _contents(path: Path, blobs: Set[str]) -> dict[str, bytes]:
    """The content of each blob, whose size is known to be small."""
    if not blobs:
        return {}
    done = _git(
        path, "cat-file", "--batch", "--buffer", given="".join(f"{blob}\n" for blob in sorted(blobs)).encode()
    )
    contents: dict[str, bytes] = {}
    position = 0
    while position < len(done.stdout):
        end = done.stdout.index(b"\n", position)
        blob, *kind = done.stdout[position:end].decode().split()
        if len(kind) != 2:
            break
        size = int(kind[1])
        contents[blob] = done.stdout[end + 1 : end + 1 + size]
        position = end + size + 2
    if done.returncode or contents.keys() != blobs:
        raise _unreadable(path, "the commit")
    return contents


def _flood() -> RepoError:
    return RepoError(f"the mesh repo holds more than {ENTRY_LIMIT} files or {TOTAL_LIMIT >> 20} MiB")


def _unreadable(path: Path, what: str) -> RepoError:
    return RepoError(f"{path}: git can't read {what}", f"git -C {shlex.quote(str(path))} fsck --full")
