"""mesh.yaml, the nodes and the names of files: what they say, and what they are refused for."""

from __future__ import annotations

import pytest

from gitmesh.core.model import Pause, Registry, Rollout
from gitmesh.core.refusal import Code
from gitmesh.repo.load_mesh import time_zones
from tests.repo.test_load import BASE, _load, _load_files, _refused

MESH = BASE["mesh.yaml"] + "seats: {hall: database}\n"
HANDED = "id: ENC[a]\nvalue: ENC[b]\nsops: {mac: 'ENC[c]'}\n"


def test_everything_that_it_may_say() -> None:
    mesh, refusals = _load(
        mesh=MESH
        + "registries: {docker.io: {mirror: mirror.example.org, credential: hub}, ghcr.io: {}}\n"
        + "rollout: {first: big}\nnotify: {team: 'ntfy://x'}\ngitmesh: '1.4.0'\n"
        + "deploy: {branch: live, keep: 3}\norigin: ssh://git@git.example.org/hellas.git\n",
        handed__hub=HANDED,
    )
    assert refusals == []
    assert mesh.registries == {
        "docker.io": Registry("mirror.example.org", "hub"),
        "ghcr.io": Registry(),
    }
    assert mesh.rollout == Rollout("big", "10m")
    assert mesh.notify == {"team": "ntfy://x"} and mesh.gitmesh == "1.4.0"
    assert (mesh.branch, mesh.keep) == ("live", 3)
    mesh, _ = _load(mesh=MESH + "notify: ops@example.org\n")
    assert mesh.notify == {"default": "ops@example.org"}


@pytest.mark.parametrize(
    ("text", "code", "keys"),
    [
        ("timezone: Mars/Olympus", Code.SCHEMA, ("timezone",)),
        ("timezone: europe/berlin", Code.SCHEMA, ("timezone",)),
        ("domain: 'https://example.org'", Code.SCHEMA, ("domain",)),
        ("deploy: {branch: a..b}", Code.SCHEMA, ("deploy", "branch")),
        ("deploy: {branch: a.lock}", Code.SCHEMA, ("deploy", "branch")),
        ("deploy: {branch: a/}", Code.SCHEMA, ("deploy", "branch")),
        (
            "registries: {docker.io: {credential: hub}}",
            Code.HANDED_MISSING,
            ("registries", "docker.io", "credential"),
        ),
        ("rollout: {first: bigg}", Code.KEY_UNKNOWN, ("rollout", "first")),
        ("choose: {secret: store@sparta}", Code.SECRET_RESERVED, ("choose", "secret")),
        ("origin: 'ext::sh -c id'", Code.SCHEMA, ("origin",)),
        ("origin: '-oProxyCommand=id'", Code.SCHEMA, ("origin",)),
        ("origin: git://git.example.org/a.git", Code.SCHEMA, ("origin",)),
        ("origin: ssh://-oProxyCommand=id/a", Code.SCHEMA, ("origin",)),
        ("mailbox: hellas.git", Code.SCHEMA, ("mailbox",)),
        ("mailbox: 'https://a:GMCANARY@git.example.org/a.git'", Code.SECRET_EXPOSED, ("mailbox",)),
    ],
)
@pytest.mark.rule("B10")
def test_what_it_may_not_say(text: str, code: Code, keys: tuple[str, ...]) -> None:
    base = "\n".join(each for each in MESH.splitlines() if each.partition(":")[0] != text.partition(":")[0])
    _, refusals = _load(mesh=f"{base}\n{text}\n")
    assert [(each.code, each.at.file, each.at.keys) for each in refusals] == [(code, "mesh.yaml", keys)]
    assert "GMCANARY" not in repr(refusals)


@pytest.mark.parametrize(
    "remote",
    [
        "ssh://git@git.example.org/hellas.git",
        "ssh://git@[fd00::1]:2222/srv/hellas.git",
        "git@git.example.org:team/hellas.git",
        "https://git.example.org:8443/team/hellas.git",
        "file:///srv/mesh repo/hellas.git",
        "/srv/hellas.git",
    ],
)
def test_remotes_that_git_reads(remote: str) -> None:
    assert _refused(mesh=f"{MESH}origin: '{remote}'\nmailbox: '{remote}'\n") == []


@pytest.mark.rule("B18", "B22")
def test_time_zones_come_with_gitmesh() -> None:
    assert {"UTC", "Europe/Berlin", "Asia/Kolkata"} <= time_zones()
    _, refusals = _load(mesh=MESH.replace("Europe/Berlin", "Berlin"))
    assert refusals[0].answers[0].text == "did you mean `Europe/Berlin`?"


def test_a_refused_mesh_file_makes_no_second_mistake_of_its_seats() -> None:
    assert _refused(mesh=MESH + "colour: red\n") == [(Code.SCHEMA, "mesh.yaml", ("colour",))]


# --- nodes ---------------------------------------------------------------------------------------------


def test_a_paused_node_says_why_and_until_when() -> None:
    token = f"ed25519:{'B' * 42}A="
    state = "{paused: {reason: new disk, until: '2027-01-31'}}"
    text = f"address: 10.7.0.11\nstate: {state}\nenrol: '{token}'\n"
    mesh, refusals = _load(nodes__athens=text)
    athens = mesh.nodes["athens"]
    assert refusals == []
    assert (athens.state, athens.pause, athens.enrol) == (
        "paused",
        Pause("new disk", "2027-01-31"),
        token,
    )
    mesh, _ = _load(nodes__athens="address: 10.7.0.11\nstate: revoked\n")
    assert (mesh.nodes["athens"].state, mesh.nodes["athens"].pause) == ("revoked", None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10.7.0.12", "10.7.0.12"),
        ("fd00::1", "fd00:0:0::1"),
        ("Athens.lan", "athens.lan."),
    ],
)
def test_two_nodes_with_one_address(one: str, other: str) -> None:
    _, refusals = _load(nodes__athens=f"address: '{one}'\n", nodes__sparta=f"address: '{other}'\n")
    assert [(each.code, each.subject) for each in refusals] == [(Code.ADDRESS_HELD, "node sparta")]


@pytest.mark.parametrize(
    "ports", ["{from: 0, to: 10}", "{from: 1, to: 65536}", "{from: 1, to: 9, reserved: [0]}"]
)
@pytest.mark.rule("B17")
def test_a_port_is_from_1_to_65535(ports: str) -> None:
    assert {each[0] for each in _refused(nodes__athens=f"address: 10.7.0.11\nports: {ports}\n")} == {
        Code.SCHEMA
    }


# --- names of files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("modules/gitea/module.yaml", "modules/Gitea/module.yaml"),
        ("nodes/web.yaml", "nodes/Web.yaml"),
        ("assignments/athens/app.yaml", "assignments/athens/App.yaml"),
        ("modules/app/caf\u00e9.txt", "modules/app/cafe\u0301.txt"),
        ("modules/app/stra\u00dfe.txt", "modules/app/STRASSE.txt"),
    ],
)
@pytest.mark.rule("B7")
def test_c83_names_that_one_file_system_holds_once_are_one(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        _, refusals = _load_files({first: "address: 10.7.0.19\n", second: "address: 10.7.0.19\n"})
        same = [each for each in refusals if "count as one" in each.message]
        assert len(same) == 1
        assert {same[0].at.file, same[0].related[0].at.file} == {one, other}


@pytest.mark.parametrize(
    "path",
    [
        "nodes/../x.yaml",
        "nodes/%2e%2e.yaml",
        "nodes/a%2fb.yaml",
        "nodes/.x.yaml",
        "nodes/-x.yaml",
        "nodes/x\u0000.yaml",
        "assignments/a/..yaml",
        "assignments/../app.yaml",
        "modules/../module.yaml",
        "values/a b.yaml",
        f"nodes/{'a' * 64}.yaml",
    ],
)
def test_c80_a_name_is_one_before_it_becomes_a_path(path: str) -> None:
    mesh, refusals = _load_files({path: "address: 10.7.0.19\n"})
    assert not {".", "/", "%"} & set("".join([*mesh.nodes, *mesh.modules, *mesh.values]))
    assert all(each.code is Code.FILE_NAME for each in refusals)
    assert refusals or path.count("/") != 1


@pytest.mark.parametrize("name", ["Web", "web.example", "1web", "web-", "w\u00e9b"])
def test_c94_a_name_is_never_lowered_silently(name: str) -> None:
    """The importer, which proposes the lowered form, comes with the importer's own cases."""
    mesh, refusals = _load_files({f"nodes/{name}.yaml": "address: 10.7.0.19\n"})
    assert [each.code for each in refusals] == [Code.FILE_NAME]
    assert sorted(mesh.nodes) == ["athens", "sparta"]
