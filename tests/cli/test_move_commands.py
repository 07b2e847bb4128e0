"""`gitmesh move`, `gitmesh place`, values for many, and what the editing commands tell a program."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import NoReturn

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh import fsops
from gitmesh.assets import asset
from gitmesh.cli import operator_move
from gitmesh.cli.main import cli
from gitmesh.repo.document import read
from gitmesh.repo.git import RepoError
from tests.cli.small_mesh import FILES, SECOND, make

GITEA = "assignments/athens/gitea.yaml"
MOVED = "assignments/sparta/gitea.yaml"


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gitmesh(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


# --- move ----------------------------------------------------------------------------------------------


@pytest.mark.rule("G8")
def test_a_move_keeps_the_identity_the_comments_and_what_was_said(mesh: Path) -> None:
    done = gitmesh("move", "gitea@athens", "sparta")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"removed {GITEA}\nwrote {MOVED}\n")
    assert not (mesh / "assignments/athens").exists()
    text = (mesh / MOVED).read_text()
    assert "# ask Ada before moving it\n" in text and "# public\n" in text
    assert read(MOVED, text.encode())[0] == {
        "values": {"web.name": "git.example.org"},
        "as": "gitea_athens",
    }
    assert gitmesh("check").exit_code == 0


@pytest.mark.rule("G8")
def test_a_second_move_keeps_the_first_identity(mesh: Path) -> None:
    gitmesh("move", "gitea@athens", "sparta")
    (mesh / MOVED).write_text((mesh / MOVED).read_text() + "moved: {data: true}\n")
    assert gitmesh("move", "gitea@sparta", "delphi").exit_code == 0
    said = read(MOVED, (mesh / "assignments/delphi/gitea.yaml").read_bytes())[0]
    assert said == {"values": {"web.name": "git.example.org"}, "as": "gitea_athens"}


@pytest.mark.rule("G8")
def test_consumers_follow_a_provider_that_moves(mesh: Path) -> None:
    (mesh / "mesh.yaml").write_text(FILES["mesh.yaml"] + "choose: {postgres-database: postgres@sparta}\n")
    done = gitmesh("move", "postgres@sparta", "athens")
    assert done.exit_code == 0, done.output
    assert read(GITEA, (mesh / GITEA).read_bytes())[0]["pins"] == {"database": "postgres@athens"}
    assert "postgres-database: postgres@athens" in (mesh / "mesh.yaml").read_text()
    assert read("x", (mesh / "assignments/athens/postgres.yaml").read_bytes())[0] == {
        "holds": ["mesh-store"],
        "as": "postgres_sparta",
    }
    assert gitmesh("check").exit_code == 0


@pytest.mark.rule("G8")
def test_acts_and_handed_values_follow(mesh: Path) -> None:
    (mesh / GITEA).write_text(FILES[GITEA] + "uses: [relay]\n")
    (mesh / "rotations.yaml").write_text("gitea@athens.database: 3\n")
    (mesh / "handed").mkdir()
    (mesh / "handed/gitea@athens.relay.yaml").write_text("id: ENC[x]\nvalue: ENC[y]\nsops: {}\n")
    assert gitmesh("move", "gitea@athens", "sparta").exit_code == 0
    assert read("x", (mesh / "rotations.yaml").read_bytes())[0] == {"gitea@sparta.database": 3}
    assert read("x", (mesh / MOVED).read_bytes())[0]["values"]["relay"] == "gitea@athens.relay"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("gitea@athens", "athens"), 2, "gitea@athens is on `athens` already"),
        (("gitea@athens", "spartaa"), 2, "no node is called `spartaa`; did you mean `sparta`?"),
        (("gitae@athens", "sparta"), 2, "no module is called `gitae`; did you mean `gitea`?"),
        (("postgres@sparta", "delphi"), 2, "`postgres` is assigned to `delphi` already"),
    ],
)
def test_a_move_that_can_not_be_writes_nothing(
    mesh: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    make(mesh, SECOND)
    before = files(mesh)
    done = gitmesh("move", *arguments)
    assert (done.exit_code, said in done.output) == (code, True), done.output
    assert files(mesh) == before


def test_what_a_spread_assigns_is_not_moved(mesh: Path) -> None:
    make(mesh, {"spreads/forges.yaml": "module: gitea\nlabel: linux\nvalues: {title: Git}\n"})
    done = gitmesh("move", "gitea@delphi", "athens")
    assert done.exit_code == 2 and "assigned to `athens` already" in done.output
    (mesh / GITEA).unlink()
    done = gitmesh("move", "gitea@delphi", "athens")
    assert done.exit_code == 1 and "comes from spreads/forges.yaml" in done.output


def test_ctrl_c_waits_until_an_edit_is_whole(mesh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fsops.Root.write

    def interrupted(self: fsops.Root, *arguments: object, **more: object) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return real(self, *arguments, **more)  # type: ignore[arg-type]  # handed on as they came

    assert threading.current_thread() is threading.main_thread(), "where Python takes signals"
    monkeypatch.setattr(fsops.Root, "write", interrupted)
    gitmesh("move", "gitea@athens", "sparta")
    assert (mesh / MOVED).exists() and not (mesh / GITEA).exists()


# --- place ---------------------------------------------------------------------------------------------


@pytest.mark.rule("B15")
@pytest.mark.rule("B17")
def test_a_place_is_written_and_taken_back_to_the_byte(mesh: Path) -> None:
    before = files(mesh)
    assert gitmesh("place", "gitea@athens", "http", "8080").exit_code == 0
    assert read(GITEA, (mesh / GITEA).read_bytes())[0]["place"] == {"http": 8080}
    done = gitmesh("place", "gitmesh-vault@delphi", "store", "/mnt/vault")
    assert done.exit_code == 0, done.output
    assert gitmesh("check").exit_code == 0
    gitmesh("place", "gitea@athens", "http", "--unset")
    gitmesh("place", "gitmesh-vault@delphi", "store", "--unset")
    assert files(mesh) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gitea@athens", "http", "/srv"), "placed at a number from 1 to 65535"),
        (("gitea@athens", "http", "70000"), "placed at a number from 1 to 65535"),
        (("gitmesh-vault@delphi", "store", "mnt"), "placed at an absolute path"),
        (("gitmesh-vault@delphi", "store", "/mnt/../etc"), "placed at an absolute path"),
        (("gitea@athens", "database", "/mnt"), "`gitea` can place `http`"),
        (("gitea@athens", "htp", "80"), "did you mean `http`?"),
        (("gitea@athens", "http"), "give a PATH, a NUMBER or --unset"),
        (("gitea@athens", "http", "80", "--unset"), "give a PATH, a NUMBER or --unset"),
    ],
)
def test_a_place_that_can_not_be(mesh: Path, arguments: tuple[str, ...], said: str) -> None:
    before = files(mesh)
    done = gitmesh("place", *arguments)
    assert (done.exit_code, said in done.output) == (2, True), done.output
    assert files(mesh) == before


# --- values for many -----------------------------------------------------------------------------------


@pytest.mark.rule("G17")
@pytest.mark.rule("B5")
def test_a_value_is_written_once_for_many_and_taken_back(mesh: Path) -> None:
    before = files(mesh)
    assert gitmesh("set", "gitea", "workers", "4", "--mesh").exit_code == 0
    assert gitmesh("set", "gitea", "workers", "8", "--label", "linux").exit_code == 0
    said = read("x", (mesh / "values/gitea.yaml").read_bytes())[0]
    assert said == {"mesh": {"workers": 4}, "labels": {"linux": {"workers": 8}}}
    assert gitmesh("check").exit_code == 0
    assert gitmesh("set", "gitea", "workers", "--unset", "--mesh").exit_code == 0
    assert gitmesh("set", "gitea", "workers", "--unset", "--label", "linux").exit_code == 0
    assert files(mesh) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gitea", "workers", "none", "--mesh"), "does not fit"),
        (("gitea", "wrokers", "4", "--mesh"), "did you mean `workers`?"),
        (("gitea", "workers", "4", "--label", "linus"), "did you mean `linux`?"),
        (("gitea", "workers", "4", "--label", "linux", "--mesh"), "--mesh or --label, one of them"),
        (("gitea", "web.name", "a.example.org", "--mesh"), "each assignment's own to say"),
    ],
)
def test_a_value_for_many_that_is_refused(mesh: Path, arguments: tuple[str, ...], said: str) -> None:
    before = files(mesh)
    done = gitmesh("set", *arguments)
    assert (done.exit_code, said in done.output) == (2, True), done.output
    assert files(mesh) == before


# --- for programs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "changes", "result"),
    [
        (("pin", "gitea@athens", "database", "postgres@sparta"), [(GITEA, "changed")], "resolved"),
        (("set", "gitea@athens", "workers", "4"), [(GITEA, "changed")], "resolved"),
        (("set", "gitea", "workers", "4", "--mesh"), [("values/gitea.yaml", "added")], "resolved"),
        (("place", "gitea@athens", "http", "8080"), [(GITEA, "changed")], "resolved"),
        (("move", "gitea@athens", "sparta"), [(GITEA, "removed"), (MOVED, "added")], "resolved"),
        (("choose", "postgres-database", "postgres@sparta"), [("mesh.yaml", "changed")], "resolved"),
        (("unassign", "gitea", "athens"), [(GITEA, "removed")], "resolved"),
        (("assign", "gitea", "delphi"), [("assignments/delphi/gitea.yaml", "added")], "refused"),
    ],
)
def test_every_edit_is_told_as_json(
    mesh: Path, arguments: tuple[str, ...], changes: list[tuple[str, str]], result: str
) -> None:
    done = gitmesh(*arguments, "--format", "json")
    said = json.loads(done.output)
    jsonschema.validate(said, json.loads((asset("schemas") / "edited.json").read_text()))
    assert [(each["file"], each["action"]) for each in said["changes"]] == changes
    assert said["result"] == result


def test_a_failure_is_told_as_json_too(mesh: Path) -> None:
    done = gitmesh("pin", "gitea@athens", "databse", "postgres@sparta", "--format", "json")
    assert done.exit_code == 2
    assert "did you mean `database`?" in json.loads(done.output)["error"]["message"]
    make(mesh, SECOND)
    done = gitmesh("assign", "gitea", "sparta", "--format", "json")
    assert done.exit_code == 0, "its own node has one"
    done = gitmesh("unassign", "postgres", "sparta", "--format", "json")
    assert done.exit_code == 3
    assert "still used" in json.loads(done.output)["error"]["message"]


def test_what_git_does_not_give_is_told_as_json_too(mesh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object, **__: object) -> NoReturn:
        raise RepoError("no repository", "git init")

    monkeypatch.setattr(operator_move, "open_mesh", unreadable)
    done = gitmesh("place", "gitea@athens", "http", "8080", "--format", "json")
    assert (done.exit_code, json.loads(done.output)["error"]["message"]) == (1, "no repository")
