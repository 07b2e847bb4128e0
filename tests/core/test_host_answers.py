"""What the host and the mesh answer: facts, machines, accesses and placements (B6, B15, B16, B18)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gitmesh.core.refusal import Code
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import APP, NOTHING, declarations, resolved
from tests.real import PROJECT

NAME = "web.name: app.example.org"


def app(requires: str = "", mounts: str = "", env: str = "") -> dict[str, str | None]:
    """The base's app with more requirements, mounts and variables."""
    text = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    text = text.replace("  http: ", f"{requires}  http: ")
    text = text.replace("{/data: data}", f"{{/data: data{mounts}}}").replace(
        "    mounts: ", f"{env}    mounts: "
    )
    return {"modules/app/module.yaml": text}


@pytest.mark.parametrize(("allow", "read_only"), [("read", True), ("write", False)])
@pytest.mark.rule("B16")
def test_an_access_is_located_by_the_assignment_and_nothing_else(allow: str, read_only: bool) -> None:
    files = app(f"  inbox: {{host: access, allow: {allow}}}\n", ", /inbox: inbox")
    found = declarations({**files, APP: f"values: {{{NAME}}}\nplace: {{inbox: /srv/scans}}\n"})
    spec = found["athens"].assignments["app@athens"]
    mount = spec.containers["app"].mounts["/inbox"]
    assert (mount.location, mount.read_only) == ("/srv/scans", read_only)
    assert spec.directories.keys() == {"data"}, "the host makes, owns and removes directories, and no access"


@pytest.mark.parametrize("path", ["/", "/run/podman/podman.sock", "/run/", "/var/run", "/srv/x.sock/"])
@pytest.mark.rule("B16", "S64")
def test_an_access_to_everything_or_a_socket_is_granted(path: str) -> None:
    files = app("  inbox: {host: access, allow: write}\n", ", /inbox: inbox")
    said = f"values: {{{NAME}}}\nplace: {{inbox: {path}}}\n"
    _, refusals = resolved({**files, APP: said})
    assert [each.code for each in refusals] == [Code.GRANT_MISSING]
    _, refusals = resolved({**files, APP: f"{said}grants: ['access:inbox']\n"})
    assert refusals == ()


@pytest.mark.parametrize("path", ["/a/../b", "/a//b", "/a/./b", "/.."])
@pytest.mark.rule("B15", "B16")
def test_a_place_is_one_path(path: str) -> None:
    files = app("  inbox: {host: access, allow: read}\n", ", /inbox: inbox")
    for name in ("data", "inbox"):
        place = {"data": "/srv/data", "inbox": "/srv/scans", name: path}
        _, refusals = resolved({**files, APP: f"values: {{{NAME}}}\nplace: {json.dumps(place)}\n"})
        assert [(each.code, each.subject) for each in refusals] == [(Code.PLACE_BAD, f"app@athens.{name}")]


@pytest.mark.rule("B18")
def test_a_fact_is_read_like_anything_else() -> None:
    env = (
        "      ZONE: '${facts:timezone} ${facts:domain} ${facts:name}'\n      ME: '${me:dns} ${me:module}'\n"
    )
    found = declarations(app("  facts: {mesh: facts}\n  me: {mesh: identity}\n", env=env))
    told = found["athens"].assignments["app@athens"].containers["app"].env
    assert told["ZONE"] == "UTC example.org hellas"
    assert told["ME"] == "app-athens app"


@pytest.mark.rule("B18")
def test_a_fact_that_nobody_said_is_refused_where_it_would_be_said() -> None:
    files = app("  facts: {mesh: facts}\n", env="      DOMAIN: '${facts:domain}'\n")
    mesh = mesh_files(NOTHING)["mesh.yaml"].decode().replace("domain: example.org\n", "")
    _, refusals = resolved({**files, "mesh.yaml": mesh})
    assert [(each.code, each.at.file) for each in refusals] == [(Code.VALUE_MISSING, "mesh.yaml")]


@pytest.mark.rule("B18", "B10")
def test_a_fact_of_the_machine_is_said_with_the_node() -> None:
    files = app("  machine: {host: machine}\n", env="      CPUS: '${machine:cpus} ${machine:arch}'\n")
    _, refusals = resolved(files)
    assert [(each.code, each.at.file) for each in refusals] == [(Code.VALUE_MISSING, "nodes/athens.yaml")] * 2
    assert {each.answers[0].text for each in refusals} == {
        f"say `machine: {{{each}: …}}` in nodes/athens.yaml" for each in ("cpus", "arch")
    }
    node = "address: 10.7.0.11\nports: {from: 31000, to: 31999}\nmachine: {arch: x86_64, cpus: 8}\n"
    found = declarations({**files, "nodes/athens.yaml": node})
    assert found["athens"].assignments["app@athens"].containers["app"].env["CPUS"] == "8 x86_64"


@pytest.mark.rule("B18")
def test_the_machine_and_the_machines() -> None:
    env = "      ME: '${machine:name} ${machine:address}'\n      PEERS_JSON: '/etc/peers'\n"
    text = app("  machine: {host: machine}\n  peers: {host: machines}\n", env=env)["modules/app/module.yaml"]
    assert text is not None
    text += "    files: {/etc/peers: {json: {names: '${peers:names}'}}}\n"
    found = declarations({"modules/app/module.yaml": text})
    container = found["athens"].assignments["app@athens"].containers["app"]
    assert container.env["ME"] == "athens.hellas.internal 10.7.0.11"
    resolution, _ = resolved({"modules/app/module.yaml": text})
    names = resolution.answers["app@athens", "peers"].fields["names"]
    assert names == [f"{each}.hellas.internal" for each in ("athens", "delphi", "sparta")]


RESOLVE = """
import json, sys
from gitmesh.core.codec import encode
from gitmesh.core.compose import compose
from gitmesh.core.record import Record, to_json
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, mesh_files
files = mesh_files(HERE / "resolved" / "values-in-three-layers")
if sys.argv[1] == "backwards":
    files = dict(reversed(files.items()))
mesh, refusals = load(files)
found = resolve(mesh, Record())
assert not refusals and not found.refusals
declared = {node: encode(each) for node, each in compose(found).items()}
print(json.dumps([declared, to_json(found.record, mesh.id)], sort_keys=True))
"""


@pytest.mark.rule("B22")
def test_c104_the_same_bytes_under_another_hash_seed_locale_and_order() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", RESOLVE, order],
            cwd=PROJECT,
            env={"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for order, seed, locale, zone in (
            ("forwards", "0", "C", "UTC"),
            ("backwards", "1", "tr_TR.UTF-8", "Asia/Kolkata"),
            ("forwards", "4242", "C.UTF-8", "America/St_Johns"),
        )
    }
    assert len(outputs) == 1 and len(next(iter(outputs))) > 1000
