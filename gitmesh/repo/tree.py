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
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO

from gitmesh.core.refusal import Answer, At, Code, Refusal, Related
from gitmesh.repo.transport import RepoError, environment

DOCUMENT_LIMIT = 256 << 10
SOURCE_LIMIT = 1 << 20
ENTRY_LIMIT = 1 << 20
TOTAL_LIMIT = 512 << 20
SOURCE_DEPTH = 4
"""Names below a module's folder: at most three folders and a file."""

_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_HANDED = re.compile(rf"(?:{_NAME.pattern})(?:@{_NAME.pattern}\.{_NAME.pattern})?", re.ASCII)
_ROOT = re.compile(r"[1-9][0-9]{0,8}\.root", re.ASCII)
_TOP_FILES = ("mesh", "catalogue", "rotations", "purges", "reveals")
_YAML_FOLDERS = {"contracts": _NAME, "nodes": _NAME, "spreads": _NAME, "values": _NAME, "handed": _HANDED}
_TOP_FOLDERS = (*_YAML_FOLDERS, "modules", "assignments", "trust", "catalogue")
_NAME_RULE = "a name is a-z, 0-9 and - inside, starts with a letter, and has at most 63 characters"


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one commit (None: of a working tree) by path, and what was refused about others.

    `ids` has the git id of each file's content where a commit was read.
    """

    files: Mapping[str, bytes]
    commit: str | None = None
    refusals: tuple[Refusal, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict)


class _Shape(Enum):
    """What stands at a path."""

    FILE = "a file"
    EXECUTABLE = "an executable file"
    FOLDER = "a folder"
    LINK = "a symbolic link"
    REPOSITORY = "another git repository"
    OTHER = "no regular file"


class _Place(Enum):
    """What the grammar makes of a path."""

    IGNORED = 0
    FOLDER = 1
    DOCUMENT = 2
    SOURCE = 3


_LIMITS = {_Place.DOCUMENT: DOCUMENT_LIMIT, _Place.SOURCE: SOURCE_LIMIT}


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why the grammar refuses a path; `better` is the path or the command that would be right."""

    code: Code
    message: str
    better: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    shape: _Shape
    id: str = ""
    size: int = 0


def open_tree(path: Path, revision: str | None = None) -> Tree:
    """The mesh repo at `path` as of `revision`, or as it lies on disk where that is None.

    Raises RepoError where there is no repository, no such revision, or git refuses to read.
    """
    if revision is None:
        return _Disk().read(path)
    commit = _resolve(path, revision)
    entries, refusals = _judged(_listed(path, commit))
    sizes = {entry.id: entry.size for entry in entries.values()}
    if sum(sizes.values()) > TOTAL_LIMIT:
        raise _flood()
    contents = _contents(path, sizes.keys())
    files = {name: contents[entry.id] for name, entry in sorted(entries.items())}
    ids = {name: entry.id for name, entry in sorted(entries.items())}
    return Tree(files, commit, tuple(refusals), ids)


# --- the grammar ---------------------------------------------------------------------------------------


def _judge(path: str, shape: _Shape) -> _Place | _Fault:
    """What the grammar makes of `path`, whose folders it has accepted."""
    parts = path.split("/")
    if parts[0] == "catalogue" and len(parts) > 1:
        return _in_catalogue(parts, shape)
    return _in_mesh(parts, shape)


def _in_catalogue(parts: list[str], shape: _Shape) -> _Place | _Fault:
    if len(parts) == 2:
        return _named_folder(parts[1], shape)
    if parts[2] not in ("contracts", "modules"):
        return _Place.IGNORED
    return _folder(shape) if len(parts) == 3 else _in_mesh(parts[2:], shape)


def _in_mesh(parts: list[str], shape: _Shape) -> _Place | _Fault:
    top, *rest = parts
    if not rest:
        return _at_top(top, shape)
    if top in _YAML_FOLDERS:
        return _yaml_file(rest[0], shape, _YAML_FOLDERS[top]) if len(rest) == 1 else _Place.IGNORED
    if top == "trust":
        return _root_file(rest[0], shape) if len(rest) == 1 else _Place.IGNORED
    if len(rest) == 1:
        return _named_folder(rest[0], shape)
    if top == "assignments":
        return _yaml_file(rest[1], shape, _NAME) if len(rest) == 2 else _Place.IGNORED
    return _module_file(rest[1:], shape)


def _at_top(name: str, shape: _Shape) -> _Place | _Fault:
    if name in _TOP_FOLDERS:
        return _folder(shape)
    stem, _, extension = name.partition(".")
    if stem.casefold() in _TOP_FILES and extension.casefold() in ("yaml", "yml"):
        right = f"{stem.casefold()}.yaml"
        return (
            _document(shape)
            if name == right
            else _Fault(Code.FILE_NAME, f"this file is called {right}", right)
        )
    if name.casefold() in _TOP_FOLDERS and shape is not _Shape.FILE:
        return _Fault(Code.FILE_NAME, f"this folder is called {name.casefold()}", name.casefold())
    return _Place.IGNORED


def _named_folder(name: str, shape: _Shape) -> _Place | _Fault:
    """A folder called by a module, a node or a catalogue."""
    if shape in (_Shape.FILE, _Shape.EXECUTABLE):
        if name.casefold().endswith((".yaml", ".yml")):
            return _Fault(Code.FILE_KIND, "a YAML file where only folders are read")
        return _Place.IGNORED
    if name.startswith("."):
        return _Place.IGNORED
    if not _NAME.fullmatch(name):
        return _Fault(Code.FILE_NAME, f"the folder's name is no name: {_NAME_RULE}", _nearest(name))
    return _folder(shape)


def _folder(shape: _Shape) -> _Place | _Fault:
    if shape is _Shape.FOLDER:
        return _Place.FOLDER
    return _Fault(Code.FILE_KIND, f"{shape.value} where a folder must be; links are not followed")


def _yaml_file(name: str, shape: _Shape, grammar: re.Pattern[str]) -> _Place | _Fault:
    stem, dot, extension = name.rpartition(".")
    if name.startswith("."):
        return _Place.IGNORED
    if not dot or extension.casefold() not in ("yaml", "yml"):
        if _printable(name):
            return _Place.IGNORED
        return _Fault(Code.FILE_NAME, "the name has a character that can't be shown")
    if not grammar.fullmatch(stem):
        more = (
            "; a handed value is <name>.yaml or <module>@<node>.<requirement>.yaml"
            if grammar is _HANDED
            else ""
        )
        better = "" if more else _nearest(stem, ".yaml")
        return _Fault(Code.FILE_NAME, f"the file's name is no name: {_NAME_RULE}{more}", better)
    if dot + extension != ".yaml":
        return _Fault(
            Code.FILE_NAME, f"the file ends in .{extension} and is read only as .yaml", f"{stem}.yaml"
        )
    return _document(shape)


def _root_file(name: str, shape: _Shape) -> _Place | _Fault:
    if not name.casefold().endswith(".root.json"):
        return _Place.IGNORED
    if not _ROOT.fullmatch(name.removesuffix(".json")):
        return _Fault(Code.FILE_NAME, "a root is called <number>.root.json, the number without leading zeros")
    return _document(shape)


def _module_file(parts: list[str], shape: _Shape) -> _Place | _Fault:
    name = parts[-1]
    if name.startswith(".#"):  # an editor's lock, a link that dangles while a file is being edited
        return _Place.IGNORED
    if len(parts) == 1 and name.casefold() in ("module.yaml", "module.yml"):
        right = "module.yaml"
        return (
            _document(shape)
            if name == right
            else _Fault(Code.FILE_NAME, f"this file is called {right}", right)
        )
    if not _printable(name) or "\\" in name or name.casefold() in (".", "..", ".git", "git~1") or not name:
        return _Fault(Code.FILE_NAME, "the name is one that no file beside a module may have")
    if len(parts) > SOURCE_DEPTH or (shape is _Shape.FOLDER and len(parts) == SOURCE_DEPTH):
        return _Fault(Code.FILE_NAME, f"files beside a module lie at most {SOURCE_DEPTH - 1} folders deep")
    if shape is _Shape.FOLDER:
        return _Place.FOLDER
    if shape in (_Shape.FILE, _Shape.EXECUTABLE):
        return _Place.SOURCE
    return _Fault(Code.FILE_KIND, f"{shape.value} where a file must be; links are not followed")


def _document(shape: _Shape) -> _Place | _Fault:
    if shape is _Shape.FILE:
        return _Place.DOCUMENT
    if shape is _Shape.EXECUTABLE:
        return _Fault(Code.FILE_KIND, "an executable file where a plain one must be", command="chmod a-x")
    return _Fault(Code.FILE_KIND, f"{shape.value} where a file must be; links are not followed")


def _printable(name: str) -> bool:
    """Whether `name` is NFC text without control, format, separator or undecodable characters."""
    categories = {unicodedata.category(character)[0] for character in name if character != " "}
    return not categories & {"C", "Z"} and unicodedata.is_normalized("NFC", name)


def _nearest(name: str, extension: str = "") -> str:
    """A name near to `name` by the grammar, or nothing where none is."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    near = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return near + extension if _NAME.fullmatch(near) else ""


# --- judging all entries -------------------------------------------------------------------------------


def _judged(entries: Iterable[_Entry]) -> tuple[dict[str, _Entry], list[Refusal]]:
    """The entries to read, by path, and the refusals; a folder comes before what is in it."""
    opened: set[str] = {""}
    seen: dict[str, _Place | _Fault] = {}
    accepted: dict[str, _Entry] = {}
    refusals: list[Refusal] = []
    for entry in entries:
        if entry.path.rpartition("/")[0] not in opened:
            continue
        verdict = _judge(entry.path, entry.shape)
        if entry.path in seen and (verdict is not _Place.IGNORED or seen[entry.path] is not _Place.IGNORED):
            verdict = _Fault(Code.FILE_KIND, "the name stands twice in its folder")
            accepted.pop(entry.path, None)
        seen[entry.path] = verdict
        if isinstance(verdict, _Place) and entry.size > (limit := _LIMITS.get(verdict, entry.size)):
            verdict = _too_large(limit)
        if isinstance(verdict, _Fault):
            refusals.append(_refusal(entry.path, verdict))
        elif verdict is _Place.FOLDER:
            opened.add(entry.path)
        elif verdict is not _Place.IGNORED:
            accepted[entry.path] = entry
    refusals += _collisions(accepted)
    return accepted, refusals


def _collisions(accepted: dict[str, _Entry]) -> list[Refusal]:
    """Refuse, and take out, paths that are one on a file system without case."""
    first: dict[str, str] = {}
    refusals: list[Refusal] = []
    if all(path == path.casefold() for path in accepted):
        return refusals
    for path in sorted(accepted):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            other = first.setdefault(part.casefold(), part)
            if other == part:
                continue
            fault = _Fault(Code.FILE_NAME, f"differs from {_shown(other)} only by case; rename one of them")
            refusals.append(_refusal(path, fault, (Related(At(_shown(other)), "the other"),)))
            del accepted[path]
            break
    return refusals


def _too_large(limit: int) -> _Fault:
    return _Fault(Code.FILE_TOO_LARGE, f"the file is larger than {limit >> 10} KiB and was not read")


def _refusal(path: str, fault: _Fault, related: tuple[Related, ...] = ()) -> Refusal:
    shown = _shown(path)
    answers: tuple[Answer, ...] = ()
    if fault.better:
        right = "/".join((*path.split("/")[:-1], fault.better))
        command = f"git mv {shlex.quote(path)} {shlex.quote(right)}" if shown == path else None
        answers = (Answer(f"rename it to {right}", command),)
    elif fault.command and shown == path:
        answers = (Answer("make it a plain file", f"{fault.command} {shlex.quote(path)}"),)
    return Refusal(
        fault.code, shown, f"{shown}: {fault.message}", At(shown), related=related, answers=answers
    )


def _shown(path: str) -> str:
    """`path` with what a terminal can't show, or would obey, written out."""
    return "".join(
        character if character == " " or _printable(character) else ascii(character)[1:-1]
        for character in path
    )


# --- a working tree ------------------------------------------------------------------------------------


class _Disk:
    """Reads a working tree through descriptors: no link is followed, and none can be swapped in."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.entries: list[_Entry] = []
        self.total = 0

    def read(self, path: Path) -> Tree:
        """The tree below `path`; RepoError where that is no readable folder."""
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise RepoError(f"{path} can't be read as a folder: {error.strerror}") from error
        self._folder(folder, "")
        accepted, refusals = _judged(self.entries)
        files = {name: self.files[name] for name in sorted(accepted)}
        return Tree(files, None, tuple(refusals))

    def _folder(self, folder: int, prefix: str) -> None:
        """Read what counts in the folder that the descriptor `folder` is; closes it."""
        try:
            with os.scandir(folder) as found:
                names = sorted(found, key=lambda entry: entry.name)
            for found_entry in names:
                entry = _Entry(prefix + found_entry.name, _disk_shape(found_entry))
                self._entry(folder, found_entry.name, entry)
        except OSError as error:
            place = prefix + error.filename if isinstance(error.filename, str) else prefix
            raise RepoError(f"{_shown(place) or 'the folder'} can't be read: {error.strerror}") from error
        finally:
            os.close(folder)

    def _entry(self, folder: int, name: str, entry: _Entry) -> None:
        verdict = _judge(entry.path, entry.shape)
        if verdict is _Place.FOLDER:
            self.entries.append(entry)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self._folder(os.open(name, flags, dir_fd=folder), f"{entry.path}/")
        elif isinstance(verdict, _Place) and verdict in _LIMITS:
            self._file(folder, name, entry, _LIMITS[verdict])
        else:
            self.entries.append(entry)

    def _file(self, folder: int, name: str, entry: _Entry, limit: int) -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            shape = _mode_shape(status.st_mode)
            content = (
                file.read(limit + 1) if stat.S_ISREG(status.st_mode) and status.st_size <= limit else b""
            )
        self.entries.append(_Entry(entry.path, shape, size=max(status.st_size, len(content))))
        self.files[entry.path] = content
        self.total += len(content)
        if self.total > TOTAL_LIMIT or len(self.entries) > ENTRY_LIMIT:
            raise _flood()


def _disk_shape(entry: os.DirEntry[str]) -> _Shape:
    if entry.is_symlink():
        return _Shape.LINK
    if entry.is_dir(follow_symlinks=False):
        return _Shape.FOLDER
    return _Shape.FILE if entry.is_file(follow_symlinks=False) else _Shape.OTHER


def _mode_shape(mode: int) -> _Shape:
    if not stat.S_ISREG(mode):
        return _Shape.OTHER
    return _Shape.EXECUTABLE if mode & stat.S_IXUSR else _Shape.FILE


# --- a commit ------------------------------------------------------------------------------------------

_GIT_SHAPES = {
    "100644": _Shape.FILE,
    "100755": _Shape.EXECUTABLE,
    "040000": _Shape.FOLDER,
    "120000": _Shape.LINK,
    "160000": _Shape.REPOSITORY,
}


def _git(path: Path, *arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", str(path), "-c", "core.fsmonitor=false", *arguments]
    return subprocess.run(command, input=given, env=environment(None), capture_output=True, check=False)


def _resolve(path: Path, revision: str) -> str:
    """The commit that `revision` names; RepoError says why there is none, and what mends that."""
    done = _git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode == 0:
        return done.stdout.decode().strip()
    errors = done.stderr.decode(errors="backslashreplace")
    folder = shlex.quote(str(path))
    if "dubious ownership" in errors:
        command = f"git config --global --add safe.directory {shlex.quote(str(path.resolve()))}"
        raise RepoError(f"{path} belongs to another user, so git does not read it", command)
    inside = _git(path, "rev-parse", "--is-shallow-repository")
    if inside.returncode:
        raise RepoError(f"{path} is not a git repository", f"git init {folder}")
    if _git(path, "rev-list", "-n1", "--all").stdout == b"":
        raise RepoError(f"{path} has no commit yet", f"git -C {folder} commit")
    if inside.stdout.strip() == b"true":
        raise RepoError(
            f"{path} is a shallow clone and does not have {_shown(revision)}",
            f"git -C {folder} fetch --unshallow",
        )
    raise RepoError(f"{path} has no commit {_shown(revision)}", f"git -C {folder} fetch")


def _listed(path: Path, commit: str) -> Iterator[_Entry]:
    """What stands in the places of the grammar, each folder before what is in it."""
    top = list(_entries(path, commit, ()))
    yield from top
    places = [entry.path for entry in top if entry.shape is _Shape.FOLDER and entry.path in _TOP_FOLDERS]
    if places:
        within = (
            entry for entry in _entries(path, commit, tuple(dict.fromkeys(places))) if "/" in entry.path
        )
        yield from within


def _entries(path: Path, commit: str, places: tuple[str, ...]) -> Iterator[_Entry]:
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


def _entry(record: bytes) -> _Entry:
    head, _, name = record.partition(b"\t")
    mode, _, blob, size = head.decode().split()
    shape = _GIT_SHAPES.get(mode, _Shape.OTHER)
    return _Entry(name.decode("utf-8", "surrogateescape"), shape, blob, int(size) if size.isdigit() else 0)


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
