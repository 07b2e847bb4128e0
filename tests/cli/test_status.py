"""`gitmesh status`: who runs, who waits on whom, what failed, from signed reports only."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gitmesh.assets import asset
from gitmesh.report.status import MeshStatus, NodeStatus, by_assignment, render
from gitmesh.trust.documents import Failed, Report, read_signed, signed
from gitmesh.trust.keys import raw_sign
from tests.cli.begun import NODES, Begun, gitmesh
from tests.world import World, git

DAY = 86_400
BEHIND_ALL = ("applied", "waiting", "failed", "behind", "unknown")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The small mesh, deployed and pulled by delphi and sparta; athens has not reported."""
    mesh = Begun.enrolled(tmp_path_factory.mktemp("told"))
    mesh.deploy()
    assert mesh.pull("delphi").exit_code == 0
    assert mesh.pull("sparta").exit_code == 0
    return mesh


def as_json(mesh: Begun, code: int = 0) -> Any:
    """What status says to programs, held against its schema."""
    done = mesh.status("--format", "json")
    assert done.exit_code == code, done.output
    said = json.loads(done.stdout)
    schema = json.loads((asset("schemas") / "status.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(said)
    return said


def node(said: Any, name: str) -> Any:
    """One node of the JSON."""
    return next(each for each in said["nodes"] if each["node"] == name)


@pytest.mark.rule("G10", "B11")
def test_it_says_who_runs_and_who_waits_on_whom(told: Begun) -> None:
    done = told.status()
    assert done.exit_code == 0, "waiting is no failure"
    heading, *lines = done.output.splitlines()
    commit = git(told.mesh, "rev-parse", "HEAD")
    assert heading == f"hellas: deploy 1 of commit {commit[:12]}: 2 applied, 1 waiting, 1 unknown"
    assert lines[0] == "athens: has not reported yet"
    assert lines[1] == "  gitea@athens  unknown would wait on postgres@sparta for database"
    port = json.loads(next(told.root("sparta").glob("var/lib/gitmesh/files/*/*.json")).read_text())
    address = f"10.7.0.12:{port['publish'][0]['port']}"
    wait = f"  postgres@sparta  waiting on postgres at {address} for gitea@athens.database since 20"
    assert [each for each in lines if each.startswith(wait) and each.endswith(" UTC")]


@pytest.mark.rule("G10")
def test_a_remark_is_said_once_under_its_assignment(told: Begun) -> None:
    lines = told.status().output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  caddy@delphi"))
    assert lines[at].split() == ["caddy@delphi", "applied"]
    assert len(lines) == len(set(lines))


@pytest.mark.rule("G10")
def test_for_programs(told: Begun) -> None:
    said = as_json(told)
    assert (said["mesh"], said["deploy"], said["settled"]) == ("hellas", 1, False)
    assert said["commit"] == git(told.mesh, "rev-parse", "HEAD")
    assert [each["node"] for each in said["nodes"]] == sorted(NODES)
    athens, sparta = node(said, "athens"), node(said, "sparta")
    assert (athens["deploy"], athens["age"], athens["note"]) == (None, None, "has not reported yet")
    assert athens["assignments"]["gitea@athens"]["state"] == "unknown"
    assert (sparta["deploy"], sparta["note"], sparta["alarm"]) == (1, "", "")
    assert sparta["assignments"]["postgres@sparta"]["state"] == "waiting"


# --- nodes that are behind, that failed, that lie ------------------------------------------------------


class Mail:
    """What stands in a mailbox, to be put there by whoever can write."""

    def __init__(self, world: World) -> None:
        self.world = world

    def report(self, of: str) -> Report:
        """A node's last report."""
        key = raw_sign(self.world.installed(of).sign().public_text)
        blob = self.world.files(f"refs/gitmesh/report/{of}")["report.json"]
        return read_signed(Report, blob, self.world.trusted_root().mesh, [key])[0]

    def send(self, of: str, report: Report, by: str | None = None) -> None:
        """Put `report` in the place of a node's, signed by the node, or by another."""
        key = self.world.installed(by or of).sign()
        self.world.send(f"refs/gitmesh/report/{of}", {"report.json": signed(report, [key])})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The template's mesh, deployed, and pulled once by each node."""
    world = World.begin(tmp_path, int(time.time()))
    world.deploy()
    world.round()
    return world


def status(world: World, code: int = 0) -> Any:
    """What status says of a world."""
    begun = Begun(world.folder)
    return as_json(begun, code)


@pytest.mark.rule("G10", "S10")
def test_what_a_report_can_say(world: World) -> None:
    """One world for many reports: each is put into sparta's place in turn."""
    mail = Mail(world)
    report = mail.report("sparta")
    said = status(world)
    assert node(said, "sparta")["assignments"]["postgres@sparta"]["state"] == "waiting"

    mail.send("sparta", replace(report, failed=(Failed("postgres@sparta", "disk full"),)))
    failed = node(status(world, 1), "sparta")["assignments"]["postgres@sparta"]
    assert (failed["state"], failed["why"]) == ("failed", ["disk full"])

    mail.send("sparta", replace(report, failed=(Failed("postgres@sparta.superuser", "refused"),)))
    failed = node(status(world, 1), "sparta")["assignments"]["postgres@sparta"]
    assert (failed["state"], failed["why"]) == ("failed", ["refused"])

    mail.send("sparta", replace(report, failed=(Failed("elsewhere", "refused"),)))
    assert node(status(world), "sparta")["notes"] == ["elsewhere: failed: refused"]

    mail.send("sparta", replace(report, drift=("/etc/a",), orphans=("/srv/b",), remarks=("a", "a")))
    assert node(status(world), "sparta")["notes"] == [
        "a", "drifted, and repaired: /etc/a", "kept, and nobody's: /srv/b"
    ]  # fmt: skip

    mail.send("sparta", replace(report, deploy_sha256="0" * 64))
    assert "another deploy 1 than the one shown here" in node(status(world, 1), "sparta")["alarm"]

    mail.send("sparta", replace(report, deploy_seq=9))
    assert "took deploy 9, and origin shows only 1" in node(status(world, 1), "sparta")["alarm"]


@pytest.mark.rule("G10")
def test_a_report_that_does_not_count_counts_for_nothing(world: World) -> None:
    mail = Mail(world)
    report = mail.report("sparta")
    mail.send("sparta", report, by="athens")
    sparta = node(status(world), "sparta")
    assert sparta["note"].startswith("its report does not count: ")
    assert sparta["assignments"]["postgres@sparta"]["state"] == "unknown"

    mail.send("sparta", mail_of_another(report), by="sparta")
    assert node(status(world), "sparta")["note"].startswith("its report does not count: ")

    for files in ({"report.json": b"{"}, {"other": b""}, {"report.json": b"\xff" * 100}):
        world.send("refs/gitmesh/report/sparta", files)
        sparta = node(status(world), "sparta")
        assert (sparta["deploy"], sparta["note"] != "") == (None, True)


def mail_of_another(report: Report) -> Report:
    """Athens' words under sparta's signature."""
    return replace(report, node="athens")


@pytest.mark.rule("F6")
def test_no_terminal_obeys_what_a_node_says(world: World) -> None:
    mail = Mail(world)
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    report = replace(
        mail.report("sparta"),
        failed=(Failed("postgres@sparta", evil),),
        remarks=(evil,),
        drift=(evil,),
    )
    mail.send("sparta", report)
    for options in ((), ("--format", "json")):
        output = gitmesh("status", "--repo", world.mesh, *options).output
        assert not {"\x1b", "\x07", "\u202e"} & set(output)
    assert "\\x1b]0;owned\\x07" in gitmesh("status", "--repo", world.mesh).output


@pytest.mark.rule("G10")
def test_a_node_that_has_not_pulled_the_newest_is_behind(world: World) -> None:
    world.edit("assignments/sparta/postgres.yaml", ["holds"], [])
    world.write("assignments/athens/miniflux.yaml", "values: {web.name: news.example.org}\n")
    world.commit_push()
    done = world.deploy()
    assert not done.refusals, [each.message for each in done.refusals]
    said = status(world)
    athens = node(said, "athens")
    assert (athens["deploy"], said["deploy"]) == (1, 2)
    assert athens["assignments"]["miniflux@athens"]["state"] == "behind"
    assert ", still at deploy 1\n" in gitmesh("status", "--repo", world.mesh).output


@pytest.mark.rule("G10")
def test_a_node_that_has_not_enrolled_and_one_that_is_not_deployed_yet(tmp_path: Path) -> None:
    world = World.begin(tmp_path, int(time.time()), enrolled=("delphi", "sparta"))
    world.deploy()
    assert node(status(world), "athens")["note"] == "has not enrolled"
    world.enrol("athens")
    assert node(status(world), "athens")["note"] == "not deployed yet"


# --- what can go wrong -----------------------------------------------------------------------------------


def failed(mesh: Begun, code: int) -> Mapping[str, str]:
    """The error that programs are told, which is the same that people are told."""
    done = mesh.status()
    assert done.exit_code == code
    error: dict[str, str] = as_json(mesh, code)["error"]
    assert done.output == f"error: {error['message']}\n  try: {error['command']}\n"
    return error


def test_before_the_first_deploy(tmp_path: Path) -> None:
    mesh = Begun.enrolled(tmp_path, ())
    error = failed(mesh, 1)
    assert error["message"] == f"{mesh.url} has no branch `deploy`: nothing was deployed yet"
    assert error["command"] == "gitmesh deploy"


def test_before_genesis(tmp_path: Path) -> None:
    assert failed(Begun.make(tmp_path), 1)["command"] == "gitmesh genesis"


def test_an_origin_that_is_not_reached(tmp_path: Path) -> None:
    mesh = Begun.enrolled(tmp_path, ())
    gone = (tmp_path / "gone.git").as_uri()
    git(mesh.mesh, "remote", "set-url", "origin", gone)
    error = failed(mesh, 1)
    assert error["message"].startswith(f"{gone}: ")
    assert error["command"] == f"git ls-remote {gone}"


def test_a_mesh_file_that_is_refused(tmp_path: Path) -> None:
    mesh = Begun.enrolled(tmp_path, ())
    (mesh.mesh / "mesh.yaml").write_text("mesh: [\n")
    error = failed(mesh, 1)
    assert error["command"] == "gitmesh check"


@pytest.mark.rule("S4")
def test_what_expired_is_stale_and_no_failure(told: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time() + 20 * DAY
    monkeypatch.setattr("gitmesh.cli.operator_status.time.time", lambda: later)
    error = failed(told, 75)
    assert error["message"].startswith("stale: ")
    assert error["message"].endswith("the nodes keep running what they accepted")


@pytest.mark.rule("S1")
def test_a_deploy_that_nobody_signed_is_not_shown(tmp_path: Path) -> None:
    mesh = Begun.enrolled(tmp_path)
    mesh.deploy()
    tree = git(mesh.folder / "origin.git", "rev-parse", "refs/heads/main^{tree}")
    tip = git(mesh.folder / "origin.git", "commit-tree", tree, "-m", "x")
    git(mesh.folder / "origin.git", "update-ref", "refs/heads/deploy", tip)
    assert failed(mesh, 75)["message"].startswith("stale: ")


# --- the text, by itself ---------------------------------------------------------------------------------


def test_everything_that_a_status_can_hold_is_said() -> None:
    states = {f"app{number}@athens": state for number, state in enumerate(BEHIND_ALL)}
    found = NodeStatus(
        "athens",
        seq=3,
        age=7300,
        alarm="two worlds",
        assignments=states,
        why={"app1@athens": ["on x for y", "on z for y", "on x for w"]},
        remarks={"app0@athens": ["not run here: a job", *(f"owner not set: /{each}" for each in "abcd")]},
        notes=["a note"],
    )
    mesh = MeshStatus("hellas", 4, "0" * 40, [found])
    assert render(mesh) == (
        "hellas: deploy 4 of commit 000000000000: 1 applied, 1 waiting, 1 failed, 1 behind, 1 unknown\n"
        "athens: reported 2 h ago, still at deploy 3\n"
        "  alarm: two worlds\n"
        "  app0@athens  applied\n"
        "      not run here: a job\n"
        "      owner not set: /a, and 3 more\n"
        "  app1@athens  waiting on x for y and 1 more\n"
        "  app1@athens  waiting on z for y\n"
        "  app2@athens  failed\n"
        "  app3@athens  behind\n"
        "  app4@athens  unknown\n"
        "  a note\n"
    )
    assert (mesh.settled, mesh.failed) == (False, True)
    assert MeshStatus("hellas", 4, "0" * 40, [NodeStatus("athens", 4, 1)]).settled


def test_remarks_are_sorted_by_assignment_and_said_once() -> None:
    remarks = ["a@n: not run here: x", "a@n: x", "a@n: y", "b@n: z", "all: well", "a@n: y"]
    assert by_assignment(remarks, {"a@n": "applied"}) == (
        {"a@n": ["not run here: x", "y"]},
        ["b@n: z", "all: well"],
    )
