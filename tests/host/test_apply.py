"""Apply converges from any state, touches nothing that is right, and removes only what it made."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gitmesh import fsops
from gitmesh.core.declaration import Declaration, DirectorySpec
from gitmesh.core.model import Json
from gitmesh.fsops import Root
from gitmesh.host.apply import Outcome, apply, start_order
from gitmesh.host.fill import Values, fill
from gitmesh.host.filled import FilledAssignment
from gitmesh.host.runtimes.base import RuntimeFailed
from gitmesh.host.runtimes.files import FilesRuntime
from gitmesh.host.state import State, StateDamaged
from tests.host.declared import (
    ADMIN,
    DATABASE,
    DECLARATION,
    VALUES,
    rotated,
    with_assignment,
    with_container,
)

SECRETS = "run/gitmesh/secrets"
FILES = "var/lib/gitmesh/files"
PASSWORD_FILE = f"{SECRETS}/app@athens/web/run/secrets/password"


class FakeRuntime(FilesRuntime):
    """Keeps what runs in `running` and what was asked of it in `asked`; `broken` containers do not start."""

    def __init__(self, root: Root) -> None:
        super().__init__(root)
        self.running: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.broken: set[str] = set()

    def observe(self, assignment: str) -> Mapping[str, str]:
        return dict(self.running.get(assignment, {}))

    def stop(self, assignment: str, container: str) -> None:
        self.asked.append(f"stop {container}")
        del self.running[assignment][container]

    def start(self, filled: FilledAssignment, container: str) -> None:
        self.asked.append(f"start {container}")
        if container in self.broken:
            raise RuntimeFailed("the image could not be pulled")
        self.running.setdefault(filled.id, {})[container] = filled.containers[container].identity

    def reload(self, filled: FilledAssignment, container: str, how: Json) -> None:
        self.asked.append(f"reload {container} {how['signal']}")
        self.running[filled.id][container] = filled.containers[container].identity

    def take(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


class Node:
    """A node whose root is a folder of the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = Root(path)
        self.runtime = FakeRuntime(self.root)

    def apply(
        self, declaration: Declaration = DECLARATION, values: Values = VALUES, now: int = 100
    ) -> dict[str, Outcome]:
        outcomes = apply(self.root, fill(declaration, values), self.runtime, now=now, bundle="1-x")
        return {each.assignment: each for each in outcomes}

    def shown(self, path: str) -> str:
        return str(self.path / path)

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Every path with its mode and content, the record of when aside."""
        found = {}
        for each in sorted(self.path.rglob("*")):
            mode = stat.S_IMODE(each.lstat().st_mode)
            if each.name != "applied.json":
                found[str(each.relative_to(self.path))] = (mode, each.read_bytes() if each.is_file() else b"")
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    fsops.fault = fsops._no_fault
    made.root.close()


def operations(run: Callable[[], object]) -> list[tuple[str, str]]:
    seen = []
    fsops.fault = lambda operation, path: seen.append((operation, path))
    run()
    fsops.fault = fsops._no_fault
    return seen


def fail_on(path: str, number: int = errno.ENOSPC) -> None:
    def fault(operation: str, shown: str) -> None:
        if shown == path:
            raise OSError(number, os.strerror(number))

    fsops.fault = fault


# --- converging ----------------------------------------------------------------------------------------


@pytest.mark.rule("E1")
def test_the_second_apply_writes_nothing_and_asks_nothing(node: Node) -> None:
    assert {each.result for each in node.apply().values()} == {"applied"}
    assert node.runtime.take() == ["start site", "start db", "start web"]
    outcomes: dict[str, Outcome] = {}
    assert operations(lambda: outcomes.update(node.apply(now=200))) == []
    assert node.runtime.take() == []
    for each in outcomes.values():
        assert (each.changed, each.drifted, each.started, each.removed) == ((), (), (), ())
    assert State(node.root).applied().assignments["app@athens"].since == 100


def test_modes_and_owners(node: Node) -> None:
    node.apply()
    tree = node.tree()
    assert tree[PASSWORD_FILE][0] == 0o400
    assert tree[SECRETS][0] == 0o700
    assert tree[f"{SECRETS}/app@athens/web.env-file"][0] == 0o400
    assert tree[f"{FILES}/app@athens/web.environment"][0] == 0o400
    assert tree[f"{FILES}/store@athens/db.environment"][0] == 0o444
    assert tree[f"{FILES}/app@athens/web/opt/run.sh"][0] == 0o555
    assert tree["var/lib/mesh/store/data"][0] == tree["var/lib/mesh/store/data/wal"][0] == 0o700
    assert stat.S_IMODE((node.path / "var/lib/gitmesh/applied.json").stat().st_mode) == 0o600
    if os.geteuid() == 0:
        found = (node.path / PASSWORD_FILE).stat()
        assert (found.st_uid, found.st_gid) == (1000, 1000)
        assert (node.path / "var/lib/mesh/store/data/wal").stat().st_uid == 70


@pytest.mark.rule("C10")
def test_secrets_are_nowhere_but_in_their_files(node: Node) -> None:
    node.apply()
    holding = {path for path, (_, content) in node.tree().items() if b"GMCANARY" in content}
    assert holding and all(path.startswith(f"{SECRETS}/") for path in holding)
    assert b"GMCANARY" not in (node.path / "var/lib/gitmesh/applied.json").read_bytes()


@pytest.mark.rule("E2")
@pytest.mark.rule("S38")
def test_killed_anywhere_the_next_apply_ends_where_it_should(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = Node(tmp_path / "whole")
    total = len(operations(whole.apply))
    left = DECLARATION.assignments["app@athens"]
    fewer = replace(DECLARATION, assignments={"app@athens": left})
    for number in [*range(1, 24), *range(24, total + 1, 11)]:
        folder = tmp_path / str(number)
        folder.mkdir()
        node = Node(folder)
        child = os.fork()
        if child == 0:
            seen = 0

            def fault(operation: str, path: str, number: int = number) -> None:
                nonlocal seen
                seen += 1
                if seen == number:
                    os._exit(77)

            fsops.fault = fault
            node.apply()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77
        if number % 2:
            # What a killed run wrote for an assignment that then leaves is known, and removed.
            node.apply(fewer)
            assert not [path for path in node.tree() if "store@athens/" in path]
        node.apply()
        assert node.tree() == whole.tree()
        assert operations(node.apply) == []
        node.root.close()
    whole.root.close()


@pytest.mark.rule("S39")
def test_a_full_disk_at_any_operation_ends_well_once_there_is_space(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = Node(tmp_path / "whole")
    total = len(operations(whole.apply))
    for number in range(1, total + 1, 13):
        folder = tmp_path / str(number)
        folder.mkdir()
        node = Node(folder)
        seen = 0

        def fault(operation: str, path: str, number: int = number) -> None:
            nonlocal seen
            seen += 1
            if seen >= number:
                raise OSError(errno.ENOSPC, "No space left on device")

        fsops.fault = fault
        with pytest.raises(OSError, match="No space") as raised:
            node.apply()
        assert str(raised.value.filename).startswith(str(folder))
        fsops.fault = fsops._no_fault
        node.apply()
        assert node.tree() == whole.tree()
        node.root.close()
    whole.root.close()


# --- drift ---------------------------------------------------------------------------------------------


def edit(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b"edited")


@pytest.mark.rule("E3")
@pytest.mark.parametrize(
    "spoil",
    [
        edit,
        Path.unlink,
        lambda path: path.chmod(0o644),
        lambda path: (path.unlink(), path.symlink_to("/etc/hostname")),
    ],
    ids=["edited", "removed", "mode", "link"],
)
@pytest.mark.parametrize(
    "name", [PASSWORD_FILE, f"{FILES}/app@athens/web/opt/run.sh", f"{FILES}/app@athens/web.json"]
)
def test_a_file_that_was_changed_is_found_reported_and_repaired(
    node: Node, name: str, spoil: Callable[[Path], object]
) -> None:
    node.apply()
    before = node.tree()
    spoil(node.path / name)
    node.runtime.take()
    outcome = node.apply()["app@athens"]
    assert outcome.drifted == (node.shown(name), "container web") and outcome.result == "applied"
    assert node.tree() == before
    # A container sees a replaced file once it is made anew.
    assert node.runtime.take() == ["stop web", "start web"]
    assert node.apply()["app@athens"].drifted == ()


@pytest.mark.rule("E3")
def test_a_directory_and_a_container_that_were_changed(node: Node) -> None:
    node.apply()
    (node.path / "var/lib/mesh/app/data").chmod(0o777)
    del node.runtime.running["store@athens"]["db"]
    outcomes = node.apply()
    assert outcomes["app@athens"].drifted == (node.shown("var/lib/mesh/app/data"),)
    assert stat.S_IMODE((node.path / "var/lib/mesh/app/data").stat().st_mode) == 0o750
    assert outcomes["store@athens"].drifted == ("container db",)
    assert outcomes["store@athens"].started == ("db",)


def test_secrets_that_a_boot_took_are_filled_again_and_no_drift(node: Node) -> None:
    node.apply()
    before = node.tree()
    for path in sorted((node.path / "run").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert {each.drifted for each in node.apply().values()} == {()}
    assert node.tree() == before


# --- what is restarted ---------------------------------------------------------------------------------


@pytest.mark.rule("D6")
def test_an_applied_secret_is_written_and_restarts_nothing(node: Node) -> None:
    node.apply()
    node.runtime.take()
    outcome = node.apply(values=rotated(ADMIN, "GMCANARYadmin2"))["store@athens"]
    assert outcome.changed == (node.shown(f"{SECRETS}/store@athens/db/run/secrets/admin"),)
    assert node.runtime.take() == [] and outcome.drifted == ()


@pytest.mark.rule("D6")
def test_a_rotated_credential_recreates_its_reader_alone(node: Node) -> None:
    node.apply()
    node.runtime.take()
    outcomes = node.apply(values=rotated(DATABASE, "GMCANARYrotated"))
    assert node.runtime.take() == ["stop web", "start web"]
    assert outcomes["app@athens"].stopped == outcomes["app@athens"].started == ("web",)
    assert (node.path / PASSWORD_FILE).read_bytes() == b"GMCANARYrotated"


def test_a_reload_where_only_files_changed(node: Node) -> None:
    before = with_container(DECLARATION, "app@athens", "web", plain={"reload": {"signal": "HUP"}})
    node.apply(before)
    node.runtime.take()
    files = before.assignments["app@athens"].containers["web"].files
    script = replace(files["/opt/run.sh"], content="eA==")
    after = with_container(before, "app@athens", "web", files={**files, "/opt/run.sh": script})
    assert node.apply(after)["app@athens"].reloaded == ("web",)
    assert node.runtime.take() == ["reload web HUP"]
    node.apply(with_container(after, "app@athens", "web", command=("other",)))
    assert node.runtime.take() == ["stop web", "start web"]


def test_providers_start_first_and_stop_last(node: Node) -> None:
    assert start_order(fill(DECLARATION, VALUES).assignments) == ["site@athens", "store@athens", "app@athens"]
    node.apply()
    node.runtime.take()
    changed = with_container(DECLARATION, "store@athens", "db", command=("x",))
    node.apply(with_container(changed, "app@athens", "web", command=("x",)))
    assert node.runtime.take() == ["stop web", "stop db", "start db", "start web"]


def test_containers_start_after_those_they_name(node: Node) -> None:
    web = DECLARATION.assignments["app@athens"].containers["web"]
    containers = {"a": replace(web, plain={"after": ["z"]}), "z": web}
    node.apply(with_assignment(DECLARATION, "app@athens", containers=containers))
    assert node.runtime.take()[-2:] == ["start z", "start a"]


# --- failing -------------------------------------------------------------------------------------------


@pytest.mark.rule("G9")
def test_a_file_that_fails_withholds_nothing_else_and_is_retried_alone(node: Node) -> None:
    failing = node.shown(PASSWORD_FILE)
    fail_on(failing)
    outcomes = node.apply()
    fsops.fault = fsops._no_fault
    assert outcomes["app@athens"].result == "failed"
    assert outcomes["app@athens"].failed == {failing: "No space left on device"}
    assert outcomes["store@athens"].result == outcomes["site@athens"].result == "applied"
    assert node.runtime.take() == ["start site", "start db"]
    record = State(node.root).applied().assignments["app@athens"]
    assert (record.result, record.failed) == ("failed", {failing: "No space left on device"})
    outcomes = node.apply()
    assert outcomes["app@athens"].changed == (failing,) and outcomes["app@athens"].result == "applied"
    assert node.runtime.take() == ["start web"] and outcomes["store@athens"].changed == ()


@pytest.mark.rule("G9")
def test_what_lacks_a_new_file_keeps_running_as_it_was(node: Node) -> None:
    node.apply()
    node.runtime.take()
    fail_on(node.shown(PASSWORD_FILE))
    assert node.apply(values=rotated(DATABASE, "GMCANARYrotated"))["app@athens"].result == "failed"
    fsops.fault = fsops._no_fault
    assert node.runtime.take() == []
    node.apply(values=rotated(DATABASE, "GMCANARYrotated"))
    assert node.runtime.take() == ["stop web", "start web"]


@pytest.mark.rule("G9")
def test_a_directory_that_fails_stops_those_that_mount_it(node: Node) -> None:
    (node.path / "var/lib/mesh/app").mkdir(parents=True)
    (node.path / "var/lib/mesh/app/data").symlink_to("/etc")
    outcomes = node.apply()
    assert outcomes["app@athens"].failed == {
        node.shown("var/lib/mesh/app/data"): "a link stands in the path, and none is followed"
    }
    assert node.runtime.take() == ["start site", "start db"]


@pytest.mark.rule("G9")
def test_a_container_that_does_not_start(node: Node) -> None:
    node.runtime.broken.add("db")
    outcomes = node.apply()
    assert outcomes["store@athens"].failed == {"container db": "the image could not be pulled"}
    assert outcomes["app@athens"].started == ("web",)
    node.runtime.broken.clear()
    node.runtime.take()
    node.apply()
    assert node.runtime.take() == ["start db"]


@pytest.mark.rule("S36")
@pytest.mark.parametrize("location", ["/../../outside", "/var/../../x"])
def test_a_placement_out_of_the_root_fails(node: Node, location: str) -> None:
    directories = {"data": DirectorySpec(location, "0:0", "0755")}
    outcome = node.apply(with_assignment(DECLARATION, "app@athens", directories=directories))["app@athens"]
    assert outcome.result == "failed" and not (node.path.parent / "outside").exists()


# --- data and pruning ----------------------------------------------------------------------------------


@pytest.mark.rule("E5")
@pytest.mark.rule("G12")
def test_what_leaves_loses_its_files_and_never_its_data(node: Node) -> None:
    node.apply()
    (node.path / "var/lib/mesh/app/data/precious").write_text("data")
    stranger = node.path / FILES / "app@athens/web/mine"
    stranger.write_text("not gitmesh's")
    fewer = {name: each for name, each in DECLARATION.assignments.items() if name != "app@athens"}
    outcome = node.apply(replace(DECLARATION, assignments=fewer))["app@athens"]
    assert outcome.result == "left" and outcome.stopped == ("web",)
    assert outcome.kept == (node.shown("var/lib/mesh/app/data"),)
    assert node.shown(PASSWORD_FILE) in outcome.removed
    assert (node.path / "var/lib/mesh/app/data/precious").read_text() == "data"
    left = [path for path in node.tree() if "app@athens" in path and (node.path / path).is_file()]
    assert left == [f"{FILES}/app@athens/web/mine"]
    assert not (node.path / SECRETS / "app@athens").exists()
    assert operations(lambda: node.apply(replace(DECLARATION, assignments=fewer))) == []


@pytest.mark.rule("G12")
def test_a_file_that_is_no_longer_declared_is_removed(node: Node) -> None:
    node.apply()
    files = dict(DECLARATION.assignments["app@athens"].containers["web"].files)
    del files["/opt/run.sh"]
    outcome = node.apply(with_container(DECLARATION, "app@athens", "web", files=files))["app@athens"]
    assert outcome.removed == (node.shown(f"{FILES}/app@athens/web/opt/run.sh"),)
    assert not (node.path / FILES / "app@athens/web").exists()


@pytest.mark.rule("B11")
def test_what_waits_keeps_running(node: Node) -> None:
    node.apply()
    node.runtime.take()
    before = node.tree()
    outcomes = node.apply(values=Values({ADMIN: VALUES.secrets[ADMIN]}))
    assert set(outcomes) == {"store@athens"}
    assert node.runtime.take() == [] and node.tree() == before
    assert "app@athens" in State(node.root).applied().assignments


@pytest.mark.rule("G8")
def test_a_data_directory_that_is_gone_is_not_replaced_by_an_empty_one(node: Node) -> None:
    node.apply()
    (node.path / "var/lib/mesh/app/data").rename(node.path / "aside")
    for _ in range(2):
        outcome = node.apply()["app@athens"]
        assert "is gone" in outcome.failed[node.shown("var/lib/mesh/app/data")]
        assert not (node.path / "var/lib/mesh/app/data").exists()
    (node.path / "aside").rename(node.path / "var/lib/mesh/app/data")
    assert node.apply()["app@athens"].result == "applied"


@pytest.mark.rule("G8")
def test_a_placement_that_moved_waits_for_its_data(node: Node) -> None:
    node.apply()
    (node.path / "var/lib/mesh/app/data/precious").write_text("data")
    directories = {"data": DirectorySpec("/mnt/disk2/app", "1000:1000", "0750")}
    moved = with_assignment(DECLARATION, "app@athens", directories=directories)
    outcome = node.apply(moved)["app@athens"]
    assert "move it first" in outcome.failed[node.shown("mnt/disk2/app")]
    (node.path / "mnt/disk2").mkdir(parents=True)
    (node.path / "var/lib/mesh/app/data").rename(node.path / "mnt/disk2/app")
    assert node.apply(moved)["app@athens"].result == "applied"


# --- state ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "blob", [b"", b"{", b"\xff\xfe", b"[]", b'{"assignments": 3}', b'{"x": 1}', b"[" * 99999]
)
def test_a_damaged_record_is_named_with_the_way_out(node: Node, blob: bytes) -> None:
    node.apply()
    path = node.path / "var/lib/gitmesh/applied.json"
    path.write_bytes(blob)
    with pytest.raises(StateDamaged) as raised:
        node.apply()
    assert str(raised.value).startswith(f"{path}: ") and "gitmesh pull" in raised.value.way_out
    assert f"rm {path}" in raised.value.way_out
    path.unlink()
    assert {each.result for each in node.apply().values()} == {"applied"}


def test_bundles(node: Node) -> None:
    state = State(node.root)
    assert state.accepted() is None
    first = state.accept(4, {"a.json": b"1", "sealed/b.json": b"2"})
    assert state.accepted() == {"a.json": b"1", "sealed/b.json": b"2"} and first.startswith("4-")
    assert operations(lambda: state.accept(4, {"a.json": b"1", "sealed/b.json": b"2"})) == []
    assert stat.S_IMODE((node.path / "var/lib/gitmesh/accepted").stat().st_mode) == 0o700
    second = state.accept(5, {"a.json": b"3"}, keep=[first])
    assert state.accepted() == {"a.json": b"3"}
    assert state.accepted(first) == {"a.json": b"1", "sealed/b.json": b"2"}
    state.accept(6, {"a.json": b"4"})
    assert state.accepted(first) is None and state.accepted(second) is None
    names = [each.name for each in (node.path / "var/lib/gitmesh/accepted").iterdir()]
    assert len(names) == 3


@pytest.mark.rule("E2")
def test_a_kill_while_accepting_leaves_the_old_or_the_new_bundle(tmp_path: Path) -> None:
    number, seen = 0, set()
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        with Root(folder) as root:
            state = State(root)
            state.accept(1, {"a.json": b"old"})
            child = os.fork()
            if child == 0:
                count = 0

                def fault(operation: str, path: str, number: int = number) -> None:
                    nonlocal count
                    count += 1
                    if count == number:
                        os._exit(77)

                fsops.fault = fault
                state.accept(2, {"a.json": b"new", "b.json": b"new"})
                os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            found = state.accepted()
            assert found in ({"a.json": b"old"}, {"a.json": b"new", "b.json": b"new"})
            seen.add(found["a.json"])
            state.accept(2, {"a.json": b"new", "b.json": b"new"})
            assert state.accepted() == {"a.json": b"new", "b.json": b"new"}
        if status == 0:
            break
    assert seen == {b"old", b"new"}


def test_a_damaged_bundle_is_named(node: Node) -> None:
    state = State(node.root)
    name = state.accept(4, {"a.json": b"1"})
    path = node.path / "var/lib/gitmesh/accepted" / name / "a.json"
    path.write_bytes(b"x")
    with pytest.raises(StateDamaged, match="not what was accepted") as raised:
        state.accepted()
    assert raised.value.path == str(path)
    state.accept(4, {"a.json": b"1"})
    assert state.accepted() == {"a.json": b"1"}
    json.loads((node.path / "var/lib/gitmesh/accepted/current.json").read_bytes())
