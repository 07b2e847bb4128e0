"""The runtime that writes what would run and starts nothing."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gitmesh.core.declaration import Holed, LoginHole
from gitmesh.fsops import Root
from gitmesh.host.apply import Outcome, apply
from gitmesh.host.fill import fill
from gitmesh.host.runtimes.base import Runtime
from gitmesh.host.runtimes.files import FilesRuntime
from tests.host.declared import DATABASE, DECLARATION, PASSWORD, VALUES, with_container
from tests.host.test_fsops import NOBODY, become_nobody, in_child, reach
from tests.real import require

FILES = "var/lib/gitmesh/files"


def applied(path: Path, declaration=DECLARATION, now: int = 1) -> dict[str, Outcome]:  # type: ignore[no-untyped-def]
    with Root(path) as root:
        runtime: Runtime = FilesRuntime(root)
        outcomes = apply(root, fill(declaration, VALUES), runtime, now=now)
    return {each.assignment: each for each in outcomes}


def test_what_would_run_is_described_without_secrets(tmp_path: Path) -> None:
    applied(tmp_path)
    text = (tmp_path / FILES / "app@athens/web.json").read_text()
    assert "GMCANARY" not in text
    said = json.loads(text)
    assert said["image"] == "docker.io/app:1@sha256:2"
    assert said["command"] == ["serve", "--port=80"]
    assert said["mounts"] == {"/data": {"location": "/var/lib/mesh/app/data/sub"}}
    assert said["env-file"] == "/run/gitmesh/secrets/app@athens/web.env-file"
    # Each path said is where the file is, below the root.
    where = said["files"]["/run/secrets/password"]
    assert (tmp_path / where.lstrip("/")).read_text() == PASSWORD
    assert said["identity"] == fill(DECLARATION, VALUES).assignments["app@athens"].containers["web"].identity
    store = json.loads((tmp_path / FILES / "store@athens/db.json").read_text())
    assert store["publish"] == [
        {"address": "10.7.0.11", "port": 31004, "listens": 5432, "protocol": "tcp", "reach": "mesh"}
    ]
    backup = json.loads((tmp_path / FILES / "store@athens/backup.job.json").read_text())
    assert backup["job"] == {"schedule": "daily", "where": "in", "container": "db"}


def test_c98_a_recreated_container_keeps_its_hostname(tmp_path: Path) -> None:
    applied(tmp_path)
    first = json.loads((tmp_path / FILES / "store@athens/db.json").read_text())
    assert first["hostname"] == "db"
    store = DECLARATION.assignments["store@athens"]
    changed = replace(store.containers["db"], env={"MORE": "x"})
    other = replace(store, containers={**store.containers, "db": changed})
    applied(tmp_path, replace(DECLARATION, assignments={**DECLARATION.assignments, "store@athens": other}), 2)
    again = json.loads((tmp_path / FILES / "store@athens/db.json").read_text())
    assert again["identity"] != first["identity"]
    assert again["hostname"] == "db"


def test_the_environment_is_written_line_by_line(tmp_path: Path) -> None:
    applied(tmp_path)
    text = (tmp_path / FILES / "app@athens/web.environment").read_text()
    assert text == "DB_USER=app_athens_a\nMODE=fast\n"


def test_a_login_in_a_command_closes_its_description(tmp_path: Path) -> None:
    login = Holed((LoginHole(DATABASE),))
    applied(tmp_path, with_container(DECLARATION, "app@athens", "web", env={}, command=(login,)))
    assert (tmp_path / FILES / "app@athens/web.json").stat().st_mode & 0o777 == 0o400


def test_jobs_and_adapters_that_it_cannot_run_are_named(tmp_path: Path) -> None:
    outcomes = applied(tmp_path)
    assert outcomes["store@athens"].not_run == ("job backup", "adapter exec of postgres-database")
    assert outcomes["app@athens"].not_run == ()


def test_it_sees_what_it_wrote(tmp_path: Path) -> None:
    applied(tmp_path)
    described = tmp_path / FILES / "store@athens/db.json"
    with Root(tmp_path) as root:
        runtime = FilesRuntime(root)
        identity = fill(DECLARATION, VALUES).assignments["store@athens"].containers["db"].identity
        assert runtime.observe("store@athens") == {"db": identity}
        assert runtime.observe("nobody@athens") == {}
        for spoilt in ("[]", "{", '{"identity": 3}'):
            described.chmod(0o644)
            described.write_text(spoilt)
            assert runtime.observe("store@athens") == {}
        described.unlink()
        described.symlink_to(tmp_path / "elsewhere")
        assert runtime.observe("store@athens") == {}


@pytest.mark.rule("E1")
def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    applied(tmp_path)
    before = {each: each.lstat().st_mtime_ns for each in tmp_path.rglob("*")}
    outcomes = applied(tmp_path, now=2)
    assert {each: each.lstat().st_mtime_ns for each in tmp_path.rglob("*")} == before
    assert {each.started for each in outcomes.values()} == {()}


@pytest.mark.rule("G12")
@pytest.mark.rule("E5")
def test_what_leaves_is_removed_and_its_directories_stay(tmp_path: Path) -> None:
    applied(tmp_path)
    outcome = applied(tmp_path, replace(DECLARATION, assignments={}))["store@athens"]
    assert outcome.result == "left" and outcome.kept[0] == str(tmp_path / "var/lib/mesh/store/data")
    assert list((tmp_path / FILES).iterdir()) == list((tmp_path / "run/gitmesh/secrets").iterdir()) == []
    assert (tmp_path / "var/lib/mesh/store/data/wal").is_dir()


def test_without_root_owners_that_cannot_be_set_are_listed_and_nothing_is_written_twice(
    tmp_path: Path,
) -> None:
    require(os.geteuid() == 0, "changing the user needs root")
    tmp_path.chmod(0o777)
    reach(tmp_path)

    def run() -> None:
        become_nobody()
        first = applied(tmp_path)["store@athens"]
        assert first.result == "applied"
        assert str(tmp_path / "var/lib/mesh/store/data") in first.unset_owners
        assert str(tmp_path / "run/gitmesh/secrets/store@athens/db/run/secrets/admin") in first.unset_owners
        second = applied(tmp_path)["store@athens"]
        assert second.changed == second.drifted == () and second.unset_owners == first.unset_owners

    assert in_child(run) == 0
    data = tmp_path / "var/lib/mesh/store/data"
    assert data.stat().st_uid == NOBODY
    # Root then sets them.
    outcome = applied(tmp_path)["store@athens"]
    assert outcome.unset_owners == () and (data.stat().st_uid, data.stat().st_gid) == (70, 70)
