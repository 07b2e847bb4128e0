"""An assignment's schema for its module: it takes what `check` takes, and refuses each kind of mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from gitmesh.assets import asset
from gitmesh.core.assignment_schema import assignment_schema, spread_schema, value_schemas, values_schema
from gitmesh.core.json_schema import contract_schema
from gitmesh.core.model import Mesh
from gitmesh.repo.document import read
from gitmesh.repo.edit import drop
from gitmesh.repo.load import load
from gitmesh.repo.schema import schema
from tests.cli.small_mesh import FILES
from tests.real import shared

DIALECTS = (Draft202012Validator, Draft7Validator)
"""The second is all that an older YAML language server knows."""


def fits(wanted: Mapping[str, Any], value: Any) -> bool:
    """Whether a value fits under both dialects, which have to agree."""
    [answer] = {dialect(wanted).is_valid(value) for dialect in DIALECTS}
    return answer


def files_of(folder: Path) -> dict[str, bytes]:
    """A mesh's files by name; the keys of a node are its enrolment's, and nothing of theirs is asked here."""
    found = {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not each.relative_to(folder).parts[0].startswith((".", "declarations"))
    }
    return {
        name: drop(blob, ["keys"]) if name.startswith("nodes/") else blob
        for name, blob in found.items()
        if not name.endswith(".md")
    }


def meshes() -> list[dict[str, bytes]]:
    """The template's and the example mesh's."""
    return [files_of(asset("mesh-repo-template")), files_of(shared("example-mesh"))]


@pytest.mark.rule("B5", "B1")
def test_every_assignment_spread_and_contract_fits_its_own_schema() -> None:
    for files in meshes():
        mesh, refusals = load(files)
        assert refusals == []
        assert mesh.assignments
        for each in mesh.assignments.values():
            if each.spread is None:
                value = read("", files[each.at.file])[0] or {}
                module = mesh.modules[each.module]
                for wanted in (
                    assignment_schema(schema("assignment"), mesh, module),
                    assignment_schema(schema("assignment"), mesh, module, each),
                ):
                    assert [error.message for error in DIALECTS[0](wanted).iter_errors(value)] == []
                    assert fits(wanted, value)
        for name, blob in files.items():
            if name.startswith("spreads/"):
                assert fits(spread_schema(schema("spread"), mesh), read("", blob)[0])


def test_every_schema_is_one_under_both_dialects() -> None:
    for files in meshes():
        mesh, _ = load(files)
        made = [spread_schema(schema("spread"), mesh), *map(contract_schema, mesh.contracts.values())]
        made += [assignment_schema(schema("assignment"), mesh, each) for each in mesh.modules.values()]
        made += [values_schema(schema("values"), mesh, each) for each in mesh.modules.values()]
        for each in made:
            assert each["title"]
            for dialect in DIALECTS:
                dialect.check_schema(each)


# --- each kind of mistake ------------------------------------------------------------------------------


MODULE = """\
module: gitea
seats: [mesh-controller]
requires:
  database: {module: postgres-database}
  sure: {module: postgres-database, as: sure, seat: mesh-store}
  spare: {module: postgres-database, optional: true, as: spare}
  web: {module: route, upstream: '${http:address}'}
  key: {module: secret, takes: never}
  relay: {module: secret, source: operator, optional: true}
  http: {host: port, listens: 3000}
  data: {host: directory, owner: '0:0', mode: '0700'}
  cache: {host: volume}
  media: {host: access, allow: read}
  gpu: {host: device, optional: true}
  workers: {operator: {type: integer, minimum: 1}}
  word: {operator: {type: string, pattern: '[a-z]+'}, default: git}
  shape: {operator: {type: object, properties: {a: {type: array, items: {pattern: '[a-z]'}}}}, default: {}}
containers:
  gitea: {image: 'docker.io/gitea/gitea:1.24.6@sha256:…', network: host, capabilities: [NET_ADMIN]}
"""


def small(more: Mapping[str, str] = {}) -> Mesh:
    """The small mesh with a gitea that requires a little of everything."""
    texts = {**FILES, "modules/gitea/module.yaml": MODULE, **more}
    mesh, _ = load({name: text.encode() for name, text in texts.items()})
    assert "gitea" in mesh.modules
    return mesh


LEAST: dict[str, Any] = {
    "values": {"web.name": "git.example.org", "workers": 2},
    "place": {"media": "/srv/media"},
}


def with_(part: str, value: Any) -> dict[str, Any]:
    """What the assignment says at least, and something more of one part."""
    return {**LEAST, part: {**LEAST.get(part, {}), **value} if isinstance(value, dict) else value}


GOOD = [
    LEAST,
    with_("pins", {"database": "postgres@sparta", "spare": "postgres@sparta"}),
    with_("uses", ["spare", "relay", "gpu"]),
    with_("values", {"word": "abc", "relay": "mail", "shape": {"a": ["b"]}}),
    with_("place", {"data": "/srv/x", "http": 8080, "gpu": "/dev/dri"}),
    with_("holds", ["mesh-controller"]),
    with_("grants", ["host-network", "cap:NET_ADMIN", "access:media", "device:gpu"]),
    with_("as", "gitea_old"),
    with_("fresh", True),
    with_("moved", {"data": True}),
]


@pytest.mark.parametrize("value", GOOD)
def test_what_an_assignment_may_say(value: Any) -> None:
    mesh = small()
    module = mesh.modules["gitea"]
    assert fits(assignment_schema(schema("assignment"), mesh, module), value)
    assert fits(
        assignment_schema(schema("assignment"), mesh, module, mesh.assignments["gitea@athens"]), value
    )


BAD = {
    "a key misspelt": with_("pin", {}),
    "a pin of no requirement": with_("pins", {"databse": "postgres@sparta"}),
    "a pin on what provides nothing": with_("pins", {"database": "gitea@athens"}),
    "a pin on no assignment": with_("pins", {"database": "postgres@athens"}),
    "a pin of a secret": with_("pins", {"key": "gitmesh-vault@delphi"}),
    "a pin beside a seat": with_("pins", {"sure": "postgres@sparta"}),
    "a pin of the host's": with_("pins", {"data": "athens"}),
    "a use of no requirement": with_("uses", ["spair"]),
    "a use of what is not optional": with_("uses", ["database"]),
    "a use listed twice": with_("uses", ["spare", "spare"]),
    "a value of no requirement": with_("values", {"worker": 2}),
    "a value of another type": with_("values", {"workers": "2"}),
    "a value out of its bounds": with_("values", {"workers": 0}),
    "text that fits its pattern in a part only": with_("values", {"word": "abc1"}),
    "text that does so deep in a structure": with_("values", {"shape": {"a": ["bc"]}}),
    "an ask that is the module's": with_("values", {"web.upstream": "a:1"}),
    "a handed file's name that is none": with_("values", {"relay": 3}),
    "a place of no requirement": with_("place", {"dat": "/srv"}),
    "a place of a volume": with_("place", {"cache": "/srv"}),
    "a port at a path": with_("place", {"http": "/srv"}),
    "a port that is none": with_("place", {"http": 70000}),
    "a directory at a number": with_("place", {"data": 8080}),
    "a path that is relative": with_("place", {"data": "srv"}),
    "a seat that the module does not declare": with_("holds", ["mesh-store"]),
    "a seat that the mesh does not have": with_("holds", ["mesh-elsewhere"]),
    "a grant that nothing needs": with_("grants", ["privileged"]),
    "a grant of another access": with_("grants", ["access:data"]),
    "an identity that is none": with_("as", "Gitea"),
    "no public name": {**LEAST, "values": {"workers": 2}},
    "no values at all": {"place": LEAST["place"]},
    "no place for what is only read": {"values": LEAST["values"]},
}


@pytest.mark.rule("B5", "B1", "A15")
@pytest.mark.parametrize("mistake", BAD)
def test_each_kind_of_mistake_is_refused(mistake: str) -> None:
    mesh = small()
    assert not fits(assignment_schema(schema("assignment"), mesh, mesh.modules["gitea"]), BAD[mistake])


@pytest.mark.rule("B5")
@pytest.mark.parametrize(
    ("shared_values", "needed"),
    [("", True), ("mesh: {workers: 4}\n", False), ("labels: {edge: {workers: 4}}\n", True)],
)
def test_a_value_is_demanded_of_an_assignment_where_nobody_else_gives_it(
    shared_values: str, needed: bool
) -> None:
    mesh = small({"values/gitea.yaml": shared_values} if shared_values else {})
    without = {**LEAST, "values": {"web.name": "git.example.org"}}
    module, assignment = mesh.modules["gitea"], mesh.assignments["gitea@athens"]
    assert fits(assignment_schema(schema("assignment"), mesh, module), without)
    assert fits(assignment_schema(schema("assignment"), mesh, module, assignment), without) is not needed


def test_what_a_refused_file_may_hide_is_not_denied() -> None:
    mesh = small({"modules/postgres/module.yaml": "module: postgres\nrequires: [\n"})
    wanted = assignment_schema(schema("assignment"), mesh, mesh.modules["gitea"])
    assert fits(wanted, with_("pins", {"database": "postgres@sparta"}))
    assert not fits(wanted, with_("pins", {"databse": "postgres@sparta"}))


def test_a_spread_is_closed_over_the_module_that_it_names() -> None:
    wanted = spread_schema(schema("spread"), small())
    assert fits(wanted, {"module": "gitea", "every": True, **LEAST})
    for wrong in (
        {"module": "gitee", "every": True},
        {"module": "gitea", "every": True},
        {"module": "gitea", **LEAST},
        {"module": "gitea", "every": True, **with_("values", {"worker": 2})},
        {"module": "gitea", "every": True, **LEAST, "holds": ["mesh-controller"]},
        {"module": "postgres", "every": True, "values": {"workers": 2}},
    ):
        assert not fits(wanted, wrong)


def test_shared_values_have_the_module_s_types_and_no_asks() -> None:
    mesh = small()
    wanted = values_schema(schema("values"), mesh, mesh.modules["gitea"])
    assert fits(wanted, {"mesh": {"workers": 2}, "labels": {"edge": {"word": "a"}}})
    for wrong in (
        {"mesh": {"worker": 2}},
        {"labels": {"edge": {"workers": "2"}}},
        {"mesh": {"web.name": "a.b"}},
    ):
        assert not fits(wanted, wrong)


def test_the_values_are_named_as_set_names_them() -> None:
    mesh = small()
    assert list(value_schemas(mesh, mesh.modules["gitea"])) == [
        "web.name",
        "relay",
        "workers",
        "word",
        "shape",
    ]


def test_a_contract_s_schema_says_its_asks_and_fields() -> None:
    mesh = small()
    wanted = contract_schema(mesh.contracts["postgres-database"])
    fields = {"host": "a.b", "port": 5432, "database": "d", "user": "u", "password": "p" * 24}
    assert fits(wanted, {"asks": {}, "fields": fields})
    assert not fits(wanted, {"asks": {}, "fields": {**fields, "password": "p" * 23 + "!"}})
    assert not fits(wanted, {"asks": {"extensions": []}, "fields": fields})
    assert wanted["properties"]["fields"]["properties"]["password"]["writeOnly"] is True
    route = contract_schema(mesh.contracts["route"])
    assert route["properties"]["asks"]["required"] == ["upstream", "name"]
