"""Every durable write, failed and killed at each of its operations."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gitmesh import fsops
from gitmesh.fsops import Exposed, Outside, Root
from tests.real import require

NOBODY = 65534
SECRET = b"GMCANARY-fsops"
KILLED = 77
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture(autouse=True)
def _no_fault() -> Iterator[None]:
    yield
    fsops.fault = fsops._no_fault


def at_operation(number: int, then: Callable[[], None]) -> Callable[[str, str], None]:
    seen = 0

    def fault(operation: str, path: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            then()

    return fault


def no_space() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def in_child(run: Callable[[], None]) -> int:
    """The exit status of a forked child that runs `run`: 0 if it returned, 1 if it raised."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(number: int, run: Callable[[], object]) -> int:
    def child() -> None:
        fsops.fault = at_operation(number, lambda: os._exit(KILLED))
        run()

    return in_child(child)


def staged(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.startswith(fsops.STAGED)]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# --- what is written -----------------------------------------------------------------------------------


@pytest.mark.rule("S55")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Root(tmp_path) as root:
            root.write("a/b/open", b"x", 0o644)
            root.write("a/b/closed", SECRET, 0o400)
            root.make_directory("made/dir", 0o750)
    finally:
        os.umask(before)
    assert mode(tmp_path / "a/b/open") == 0o644
    assert mode(tmp_path / "a/b/closed") == 0o400
    assert mode(tmp_path / "a/b") == mode(tmp_path / "made") == 0o755
    assert mode(tmp_path / "made/dir") == 0o750


def test_reads_back_stats_and_removes(tmp_path: Path) -> None:
    with Root(tmp_path) as root:
        assert root.write("/x/y", b"1") is True
        assert root.read("x/y") == b"1"
        assert root.exists("x/y") and not root.exists("x/z") and not root.exists("q/z")
        assert root.entries("x") == ["y"] and root.entries("nowhere") == []
        assert root.remove_directory("x") is False
        assert root.remove("x/y") is True and root.remove("x/y") is False and root.remove("q/y") is False
        assert root.remove_directory("x") is True and root.remove_directory("x") is False


def test_any_path(tmp_path: Path) -> None:
    fsops.make_directory(tmp_path / "a/b", 0o700)
    assert fsops.write(tmp_path / "a/b/c", b"1", 0o600) is True
    assert (tmp_path / "a/b/c").read_bytes() == b"1"
    assert mode(tmp_path / "a/b") == 0o700 and mode(tmp_path / "a") == 0o755
    assert fsops.remove(tmp_path / "a/b/c") is True and fsops.remove(tmp_path / "a/b/c") is False


def test_a_directory_that_is_there_gets_its_mode_and_keeps_what_it_holds(tmp_path: Path) -> None:
    with Root(tmp_path) as root:
        root.make_directory("d", 0o700)
        root.write("d/kept", b"1")
        root.make_directory("d", 0o750)
        assert mode(tmp_path / "d") == 0o750 and root.read("d/kept") == b"1"


def test_owners_are_set_by_root(tmp_path: Path) -> None:
    require(os.geteuid() == 0, "setting owners needs root")
    with Root(tmp_path) as root:
        assert root.write("f", SECRET, 0o400, (1234, 1235)) is True
        assert root.make_directory("d", 0o750, (1234, 1235)) is True
    for name in ("f", "d"):
        found = (tmp_path / name).stat()
        assert (found.st_uid, found.st_gid) == (1234, 1235)
    assert mode(tmp_path / "f") == 0o400


def test_an_owner_that_cannot_be_set_is_answered(tmp_path: Path) -> None:
    require(os.geteuid() == 0, "changing the user needs root")
    tmp_path.chmod(0o777)
    reach(tmp_path)

    def run() -> None:
        become_nobody()
        with Root(tmp_path) as root:
            assert root.write("f", b"1", 0o400, (0, 0)) is False
            assert root.make_directory("d", 0o750, (0, 0)) is False
            assert root.write("own", b"1", 0o400, (NOBODY, NOBODY)) is True

    assert in_child(run) == 0
    assert (tmp_path / "f").stat().st_uid == NOBODY and mode(tmp_path / "f") == 0o400


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def reach(path: Path) -> None:
    """Let everybody pass through the test's own folders."""
    for parent in path.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)


# --- failing and being killed --------------------------------------------------------------------------


@pytest.mark.rule("S38")
@pytest.mark.rule("E2")
def test_killed_at_each_operation_the_old_or_the_new_file_is_there_whole(tmp_path: Path) -> None:
    number, outcomes = 0, set()
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        with Root(folder) as root:
            root.write("f", b"old" * 1000, 0o600)
            status = killed_at(number, partial(root.write, "f", b"new" * 5000, 0o640, (0, 0)))
            found = root.read("f")
            assert (found, mode(folder / "f")) in {(b"old" * 1000, 0o600), (b"new" * 5000, 0o640)}
            outcomes.add(found[:3])
            root.write("other", b"1")
            assert staged(folder) == []
        if status == 0:
            break
        assert status == KILLED
    assert outcomes == {b"old", b"new"} and number > 6


@pytest.mark.rule("S38")
def test_killed_at_each_operation_a_directory_is_whole_or_absent(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        with Root(folder) as root:
            status = killed_at(number, partial(root.make_directory, "a/b", 0o710, (0, 0)))
            if (folder / "a").exists():
                assert mode(folder / "a") == 0o755
            if (folder / "a/b").exists():
                assert mode(folder / "a/b") == 0o710
            root.make_directory("a/b", 0o710)
            root.write("a/x", b"1")
            assert staged(folder) == staged(folder / "a") == []
        if status == 0:
            break
    assert number > 8


@pytest.mark.rule("S39")
def test_no_space_at_each_operation_names_the_path_and_leaves_nothing_behind(tmp_path: Path) -> None:
    number = 0
    with Root(tmp_path) as root:
        root.write("d/f", b"old", 0o600)
        while True:
            number += 1
            fsops.fault = at_operation(number, no_space)
            try:
                root.write("d/f", b"new", 0o640)
                break
            except OSError as error:
                assert error.errno == errno.ENOSPC and error.filename == str(tmp_path / "d/f")
            assert root.read("d/f") in (b"old", b"new") and staged(tmp_path / "d") == []
        assert number > 5 and root.read("d/f") == b"new"


def test_a_sweep_leaves_what_another_run_is_writing(tmp_path: Path) -> None:
    with Root(tmp_path) as root:

        def other_writes(operation: str, path: str) -> None:
            if operation == "rename" and path.endswith("/first"):
                root.write("second", b"2")

        fsops.fault = other_writes
        root.write("first", b"1")
        assert root.read("first") == b"1" and root.read("second") == b"2"


@pytest.mark.rule("S55")
def test_a_secret_is_private_at_every_operation(tmp_path: Path) -> None:
    seen = []

    def look(operation: str, path: str) -> None:
        for each in tmp_path.iterdir():
            seen.append((operation, mode(each) & 0o077))

    before = os.umask(0)
    try:
        with Root(tmp_path) as root:
            fsops.fault = look
            root.write("f", SECRET, 0o400, (os.geteuid(), os.getegid()))
            root.write("f", SECRET + b"2", 0o400)
    finally:
        os.umask(before)
    assert {operation for operation, _ in seen} >= {
        "write",
        "fchown",
        "fchmod",
        "fsync",
        "rename",
        "fsyncdir",
    }
    assert {exposed for _, exposed in seen} == {0}


@pytest.mark.rule("S55")
def test_another_user_never_reads_a_secret(tmp_path: Path) -> None:
    require(os.geteuid() == 0, "reading as another user needs root")
    tmp_path.chmod(0o755)
    reach(tmp_path)
    stop, ready = os.pipe()

    def reader() -> None:
        become_nobody()
        os.set_blocking(stop, False)
        os.close(ready)
        while True:
            for each in tmp_path.iterdir():
                with pytest.raises((PermissionError, FileNotFoundError)):
                    each.read_bytes()
            try:
                if os.read(stop, 1) == b"":
                    return
            except BlockingIOError:
                continue

    child = os.fork()
    if child == 0:
        status = 1
        try:
            reader()
            status = 0
        finally:
            os._exit(status)
    os.close(stop)
    before = os.umask(0)
    with Root(tmp_path) as root:
        for number in range(100):
            root.write(f"secret{number % 3}", SECRET, 0o400)
    os.umask(before)
    os.close(ready)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- never through a link ------------------------------------------------------------------------------


@pytest.mark.rule("S36")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "a/./x", "", "/", "..", "a/x\0y"])
def test_a_path_out_of_the_root_is_refused(tmp_path: Path, path: str) -> None:
    with Root(tmp_path) as root:
        with pytest.raises(Outside):
            root.write(path, b"1")
        with pytest.raises(Outside):
            root.make_directory(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("S36")
def test_a_link_in_a_path_is_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    (inside / "file").symlink_to(outside / "target")
    with Root(inside) as root:
        for attempt in (
            lambda: root.write("link/x", b"1"),
            lambda: root.make_directory("link/x"),
            lambda: root.make_directory("link"),
            lambda: root.entries("link"),
        ):
            with pytest.raises(OSError) as raised:
                attempt()
            assert raised.value.errno == errno.ELOOP
        with pytest.raises(OSError, match="symbolic links"):
            root.read("file")
        root.write("file", b"1")
        assert not (inside / "file").is_symlink() and root.read("file") == b"1"
        assert root.remove("link") is True
    assert list(outside.iterdir()) == []


@pytest.mark.rule("S36")
def test_a_racer_who_swaps_a_parent_for_a_link_gains_nothing(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (inside / "real").mkdir(parents=True)
    (inside / "spare").symlink_to(outside)
    done = threading.Event()

    rename = ctypes.CDLL(None).renameat2
    names = (os.fsencode(inside / "real"), os.fsencode(inside / "spare"))

    def swap() -> None:
        while not done.is_set():
            assert rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0

    racer = threading.Thread(target=swap)
    racer.start()
    written = 0
    try:
        with Root(inside) as root:
            for _ in range(300):
                try:
                    root.write("real/f", b"1")
                    written += 1
                except OSError:
                    continue
    finally:
        done.set()
        racer.join()
    assert 0 < written < 300 and list(outside.iterdir()) == []


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with Root(tmp_path) as root:
        root.write("big", b"12345")
        with pytest.raises(OSError, match="regular file"):
            root.read("fifo")
        with pytest.raises(OSError, match="at most 4 bytes"):
            root.read("big", limit=4)


@pytest.mark.rule("S57")
def test_a_private_file_is_checked_on_the_descriptor_it_is_read_from(tmp_path: Path) -> None:
    key = tmp_path / "key"
    fsops.write(key, SECRET, 0o600)
    assert fsops.read_private(key) == SECRET
    key.chmod(0o640)
    with pytest.raises(Exposed) as raised:
        fsops.read_private(key)
    assert raised.value.filename == str(key)
    (tmp_path / "link").symlink_to(key)
    with pytest.raises(OSError, match="symbolic links"):
        fsops.read_private(tmp_path / "link")
