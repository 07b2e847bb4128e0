"""Every durable write (DESIGN §6, SECURITY decision 11).

A file is staged beside its target under a hidden name that others can't read, gets its owner and mode on
the descriptor, is synced and renamed, and its directory is synced. A directory is made the same way. So
after a kill or a power cut the old one or the new one is there, whole, and the next write in that directory
sweeps up what was staged (S38). No mode depends on the umask (S55).
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

STAGED = ".gitmesh-"
"""What the name of everything staged begins with."""

LIMIT = 64 << 20
"""The longest file that is read, in bytes, where the caller names no other limit."""

Owner = tuple[int, int]
"""A user id and a group id, as numbers."""


def _no_fault(operation: str, path: str) -> None:
    """Nothing goes wrong by itself."""


fault: Callable[[str, str], None] = _no_fault
"""Called before each operation (open, write, fchown, fchmod, fsync, rename, fsyncdir, mkdir, unlink, rmdir)
with the path it is for; tests fail or kill here."""


class Exposed(PermissionError):
    """A private file belongs to another user, or its group or others may read it."""


class Outside(ValueError):
    """A path that would leave its root: `..`, or a name that is none."""


# --- any path ------------------------------------------------------------------------------------------


def write(path: Path, content: bytes, mode: int = 0o644, owner: Owner | None = None) -> bool:
    """Put `content` at `path`, whole or not at all, in a directory that exists.

    A link at `path` is replaced, never followed. Answers False where `owner` could not be set, which needs
    root: the file is then there, owned by who runs. Raises OSError, naming `path`.
    """
    with _named(path), _opened(path.parent) as directory:
        return _write_at(directory, path.name, content, mode, owner, str(path))


def make_directory(path: Path, mode: int = 0o755, owner: Owner | None = None) -> bool:
    """Make the directory, or give the one that is there this mode and owner; parents are made 0755.

    Answers False where `owner` could not be set. Raises OSError, naming `path`.
    """
    if not path.parent.is_dir():
        make_directory(path.parent)
    with _named(path), _opened(path.parent) as parent:
        return _make_at(parent, path.name, mode, owner, str(path))


def remove(path: Path) -> bool:
    """Remove the file or the link at `path`; answers whether there was one. Raises OSError."""
    with _named(path), _opened(path.parent) as directory:
        return _remove_at(directory, path.name, str(path))


def read_private(path: Path, limit: int = 1 << 16) -> bytes:
    """The content of a file that only its owner, who runs this, may read: a key (S57).

    Opened once, and checked on that descriptor. Raises `Exposed`, FileNotFoundError and other OSErrors.
    """
    with _named(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise Exposed(errno.EACCES, "not private: expected mode 0600 and its reader as its owner")
            return _read_all(descriptor, limit)
        finally:
            os.close(descriptor)


# --- under a root --------------------------------------------------------------------------------------


class Root:
    """A directory under which everything is reached by descriptor, and never through a link (S36).

    Paths are as seen from inside, `var/lib/mesh` or `/var/lib/mesh`. Use it in a `with` statement, or
    `close` it. All methods raise OSError, naming the whole path (ELOOP: a link stands in it), and `Outside`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)

    def shown(self, relative: str) -> str:
        """The whole path, for a message."""
        return str(self.path / relative.lstrip("/"))

    def write(self, relative: str, content: bytes, mode: int = 0o644, owner: Owner | None = None) -> bool:
        """As `fsops.write`; parents are made, 0755, where they are missing."""
        *parents, name = _components(relative)
        with _named(self.shown(relative)), self._reached(parents, make=True) as directory:
            return _write_at(directory, name, content, mode, owner, self.shown(relative))

    def make_directory(self, relative: str, mode: int = 0o755, owner: Owner | None = None) -> bool:
        """As `fsops.make_directory`."""
        *parents, name = _components(relative)
        with _named(self.shown(relative)), self._reached(parents, make=True) as directory:
            return _make_at(directory, name, mode, owner, self.shown(relative))

    def read(self, relative: str, limit: int = LIMIT) -> bytes:
        """The content of a regular file. Raises FileNotFoundError and other OSErrors."""
        *parents, name = _components(relative)
        with _named(self.shown(relative)), self._reached(parents) as directory:
            descriptor = _open_at(directory, name, os.O_RDONLY | os.O_NONBLOCK)
            try:
                return _read_all(descriptor, limit)
            finally:
                os.close(descriptor)

    def remove(self, relative: str) -> bool:
        """Remove a file or a link; answers whether there was one."""
        *parents, name = _components(relative)
        with _named(self.shown(relative)):
            try:
                with self._reached(parents) as directory:
                    return _remove_at(directory, name, self.shown(relative))
            except FileNotFoundError:
                return False

    def remove_directory(self, relative: str) -> bool:
        """Remove an empty directory; answers False where it is not there or holds anything (E5)."""
        *parents, name = _components(relative)
        with _named(self.shown(relative)):
            try:
                with self._reached(parents) as directory:
                    _sweep(directory, name)
                    fault("rmdir", self.shown(relative))
                    os.rmdir(name, dir_fd=directory)
                    _sync_directory(directory, self.shown(relative))
            except FileNotFoundError:
                return False
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def stat(self, relative: str) -> os.stat_result | None:
        """What stands there, a link as a link; None where nothing does."""
        *parents, name = _components(relative)
        with _named(self.shown(relative)):
            try:
                with self._reached(parents) as directory:
                    return os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return None

    def exists(self, relative: str) -> bool:
        """Whether anything stands there."""
        return self.stat(relative) is not None

    def entries(self, relative: str) -> list[str]:
        """The names in a directory, sorted, without what is staged; empty where it is not there."""
        with _named(self.shown(relative)):
            try:
                with self._reached(_components(relative)) as directory:
                    names = os.listdir(directory)  # noqa: PTH208 - of a descriptor, which pathlib has not
                    return sorted(name for name in names if not name.startswith(STAGED))
            except FileNotFoundError:
                return []

    @contextmanager
    def _reached(self, components: list[str], make: bool = False) -> Iterator[int]:
        descriptor = os.dup(self._descriptor)
        try:
            for position, name in enumerate(components):
                try:
                    below = _open_at(descriptor, name, os.O_RDONLY | os.O_DIRECTORY)
                except FileNotFoundError:
                    if not make:
                        raise
                    _make_at(descriptor, name, 0o755, None, self.shown("/".join(components[: position + 1])))
                    below = _open_at(descriptor, name, os.O_RDONLY | os.O_DIRECTORY)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)


# --- the steps -----------------------------------------------------------------------------------------


def _components(relative: str) -> list[str]:
    components = [each for each in relative.split("/") if each]
    if not components or any(each in (".", "..") or "\0" in each for each in components):
        raise Outside(f"expected a path below the root without `.` and `..`, got {relative!r}")
    return components


@contextmanager
def _named(path: Path | str) -> Iterator[None]:
    """Errors name the whole path, not the last component."""
    try:
        yield
    except OSError as error:
        if error.filename == str(path) or error.errno is None:
            raise
        error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_at(directory: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except NotADirectoryError:
        # Linux says ENOTDIR of a link that O_NOFOLLOW did not follow.
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, "a link stands in the path, and none is followed") from None
        raise


def _read_all(descriptor: int, limit: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "expected a regular file")
    with open(descriptor, "rb", closefd=False) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"expected at most {limit} bytes")
    return content


def _write_at(directory: int, name: str, content: bytes, mode: int, owner: Owner | None, shown: str) -> bool:
    _sweep(directory)
    staged, descriptor = _stage(directory, shown, _create)
    try:
        rest = memoryview(content)
        while rest:
            fault("write", shown)
            rest = rest[os.write(descriptor, rest) :]
        owned = _own(descriptor, owner, shown)
        fault("fchmod", shown)
        os.fchmod(descriptor, mode)
        _put(directory, staged, name, descriptor, shown)
    except BaseException:
        # The error that is under way says more than one of the removal, and a later sweep removes it too.
        with suppress(OSError):
            os.unlink(staged, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)
    _sync_directory(directory, shown)
    return owned


def _make_at(parent: int, name: str, mode: int, owner: Owner | None, shown: str) -> bool:
    try:
        descriptor = _open_at(parent, name, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return _make_new(parent, name, mode, owner, shown)
    try:
        found = os.fstat(descriptor)
        owned = owner in (None, (found.st_uid, found.st_gid)) or _own(descriptor, owner, shown)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            fault("fchmod", shown)
            os.fchmod(descriptor, mode)
        return owned
    finally:
        os.close(descriptor)


def _make_new(parent: int, name: str, mode: int, owner: Owner | None, shown: str) -> bool:
    _sweep(parent)
    staged, descriptor = _stage(parent, shown, _create_directory)
    try:
        owned = _own(descriptor, owner, shown)
        fault("fchmod", shown)
        os.fchmod(descriptor, mode)
        _put(parent, staged, name, descriptor, shown)
    except BaseException:
        # As in `_write_at`.
        with suppress(OSError):
            os.rmdir(staged, dir_fd=parent)
        raise
    finally:
        os.close(descriptor)
    _sync_directory(parent, shown)
    return owned


def _remove_at(directory: int, name: str, shown: str) -> bool:
    fault("unlink", shown)
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    _sync_directory(directory, shown)
    return True


def _create(directory: int, staged: str, shown: str) -> int:
    fault("open", shown)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(staged, flags, 0o600, dir_fd=directory)


def _create_directory(parent: int, staged: str, shown: str) -> int:
    fault("mkdir", shown)
    os.mkdir(staged, 0o700, dir_fd=parent)
    return _open_at(parent, staged, os.O_RDONLY | os.O_DIRECTORY)


def _stage(directory: int, shown: str, create: Callable[[int, str, str], int]) -> tuple[str, int]:
    """A new hidden name and its descriptor, locked, so that no other's sweep takes it for a left-over."""
    while True:
        staged = STAGED + secrets.token_hex(8)
        descriptor = create(directory, staged, shown)
        if _locked(descriptor) and os.fstat(descriptor).st_nlink:
            return staged, descriptor
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(directory: int, below: str | None = None) -> None:
    """Remove what a killed run left staged in `directory`, or in the one `below` it."""
    if below is not None:
        descriptor = _open_at(directory, below, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sweep(descriptor)
        finally:
            os.close(descriptor)
        return
    for name in os.listdir(directory):
        if name.startswith(STAGED):
            _sweep_one(directory, name)


def _sweep_one(directory: int, name: str) -> None:
    # Another run may be sweeping too, or have staged this one: what can't be had is left to it.
    with suppress(OSError):
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
        try:
            if not _locked(descriptor):
                return
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                os.rmdir(name, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)
        finally:
            os.close(descriptor)


def _own(descriptor: int, owner: Owner | None, shown: str) -> bool:
    """Set the owner; False where that is not permitted (not root, or no such id in the user namespace)."""
    if owner is None:
        return True
    fault("fchown", shown)
    try:
        os.fchown(descriptor, *owner)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EINVAL):
            return False
        raise
    return True


def _put(directory: int, staged: str, name: str, descriptor: int, shown: str) -> None:
    fault("fsync", shown)
    os.fsync(descriptor)
    fault("rename", shown)
    os.rename(staged, name, src_dir_fd=directory, dst_dir_fd=directory)


def _sync_directory(directory: int, shown: str) -> None:
    fault("fsyncdir", shown)
    os.fsync(directory)
