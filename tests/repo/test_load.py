"""One commit's files into a mesh, and everything they are refused for."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gitmesh.core.model import Keys, Mesh
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.load import load
from gitmesh.repo.load_mesh import SHIPPED_SEATS

IMAGE = "docker.io/library/app:1@sha256:abc"

BASE = {
    "mesh.yaml": "mesh: hellas\nid: 7f0c2b9e\ndomain: example.org\ntimezone: Europe/Berlin\n",
    "nodes/athens.yaml": "address: 10.7.0.11\nlabels: [linux, big]\n",
    "nodes/sparta.yaml": "address: 10.7.0.12\nlabels: [linux]\n",
    "contracts/database.yaml": """
contract: database
fields:
  host:     {type: string}
  user:     {type: string}
  password: {type: string, secret: true}
credential: {login: user, secret: password, by: vault, rotation: two, check: none}
""",
    "contracts/route.yaml": """
contract: route
asks:
  name: {type: string, format: hostname, from: operator}
fields: {}
""",
    "modules/store/module.yaml": """
module: store
requires: {sql: {host: port, listens: 5432}}
provides: {database: {serves: {host: '${sql:host}'}}}
""",
    "modules/app/module.yaml": f"""
module: app
requires:
  db:    {{module: database}}
  web:   {{module: route}}
  mail:  {{module: secret, source: operator, optional: true}}
  key:   {{module: secret}}
  data:  {{host: directory, owner: '1:1', mode: '0750'}}
  disk:  {{host: access, allow: read, optional: true}}
  temp:  {{host: volume}}
  http:  {{host: port, listens: 80}}
  named: {{module: database, seat: hall, as: b}}
  count: {{operator: {{type: integer}}, default: 1}}
  mesh:  {{mesh: facts}}
containers:
  app: {{image: '{IMAGE}', mounts: {{/data: data}}}}
""",
    "assignments/athens/app.yaml": "",
    "assignments/sparta/store.yaml": "",
}


def _load(**changed: str | None) -> tuple[Mesh, list[Refusal]]:
    """The base with other files in it; `assignments__athens__app` stands for that path."""
    return _load_files({key.replace("__", "/") + ".yaml": text for key, text in changed.items()})


def _load_files(changed: dict[str, str | None]) -> tuple[Mesh, list[Refusal]]:
    seats = {"mesh.yaml": BASE["mesh.yaml"] + "seats: {hall: database}\n"}
    files = {**BASE, **seats, **changed}
    return load({path: text.encode() for path, text in files.items() if text is not None})


def _refused(**changed: str | None) -> list[tuple[Code, str, tuple[str | int, ...]]]:
    return [(each.code, each.at.file, each.at.keys) for each in _load(**changed)[1]]


def _said(refusal: Refusal) -> str:
    return " | ".join([refusal.message, *(each.text for each in refusal.answers)])


def test_a_mesh() -> None:
    mesh, refusals = _load(
        nodes__athens="""
address: 10.7.0.11
public: athens.example.org
root: /srv/mesh
ports: {from: 100, to: 200, reserved: [150]}
labels: [linux]
keys:
  sign: 'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
  seal: 'x25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
  epoch: 2
state: {paused: {reason: a disk, until: '2027-01-31'}}
""",
        assignments__athens__app="""
pins: {db: store@sparta}
uses: [mail]
values: {web.name: app.example.org, count: 3, mail: relay}
place: {data: /mnt/app, http: 8080, disk: /srv}
grants: ['access:disk', host-network]
as: app_old
""",
        values__app="mesh: {count: 2}\nlabels: {big: {count: 4}}\n",
        rotations="app@athens.db: 3\nabandon: [app@athens.key]\n",
    )
    assert refusals == []
    assert (mesh.name, mesh.id, mesh.domain, mesh.timezone) == (
        "hellas",
        "7f0c2b9e",
        "example.org",
        "Europe/Berlin",
    )
    assert mesh.seats == {**SHIPPED_SEATS, "hall": "database"}
    athens = mesh.nodes["athens"]
    assert (athens.root, athens.first, athens.last, athens.reserved) == (
        "/srv/mesh",
        100,
        200,
        frozenset({150}),
    )
    assert (athens.keys, athens.state) == (
        Keys(
            "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "x25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            2,
        ),
        "paused",
    )
    app = mesh.assignments["app@athens"]
    assert (app.pins, app.uses, app.as_) == ({"db": "store@sparta"}, ("mail",), "app_old")
    assert app.place == {"data": "/mnt/app", "http": 8080, "disk": "/srv"}
    assert mesh.values["app"].labels == {"big": {"count": 4}}
    assert (mesh.rotations, mesh.abandon) == ({"app@athens.db": 3}, ("app@athens.key",))
    assert set(mesh.contracts) == {"database", "route", "secret"}, "`secret` is shipped"
    assert mesh.broken == frozenset()


def test_the_example_mesh(example_mesh: Path) -> None:
    mesh, refusals = load(_files(example_mesh))
    assert refusals == []
    assert (len(mesh.modules), len(mesh.contracts), len(mesh.assignments)) == (21, 12, 23)
    assert mesh.assignments["node-exporter@athens"].spread == "node-exporter"
    handed = example_mesh / "handed" / "gitmesh-controller@delphi.forge.yaml"
    assert mesh.handed == {handed.stem: hashlib.sha256(handed.read_bytes()).hexdigest()}


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and "declarations" not in each.parts
    }


# --- files and names -----------------------------------------------------------------------------------


def test_a_repo_without_mesh_yaml() -> None:
    mesh, refusals = load({})
    assert [(each.code, each.at.file) for each in refusals] == [(Code.FILE_MISSING, "mesh.yaml")]
    assert mesh.seats == SHIPPED_SEATS


@pytest.mark.parametrize(
    ("path", "text", "keys"),
    [
        ("modules__other__module", "module: app\n", ("module",)),
        ("contracts__other", "contract: database\nfields: {}\n", ("contract",)),
    ],
)
def test_a_name_that_is_not_its_place(path: str, text: str, keys: tuple[str, ...]) -> None:
    assert _refused(**{path: text}) == [(Code.SCHEMA, path.replace("__", "/") + ".yaml", keys)]


def test_two_definitions_of_one_name() -> None:
    text = BASE["contracts/route.yaml"]
    mesh, refusals = _load(catalogue__shop__contracts__route=text)
    assert [each.code for each in refusals] == [Code.DEFINED_TWICE, Code.CATALOGUE_UNPINNED]
    assert "contracts/route" in mesh.broken


def test_a_vendored_catalogue() -> None:
    mesh, refusals = _load_files(
        {
            "catalogue/shop/modules/tool/module.yaml": "module: tool\nrequires: {c: {module: ticket}}\n",
            "catalogue/shop/modules/tool/notes.txt": "anything",
            "catalogue/shop/contracts/ticket.yaml": "contract: ticket\nfields: {}\n",
        }
    )
    assert [each.code for each in refusals] == [Code.CATALOGUE_UNPINNED]
    assert "tool" in mesh.modules
    assert mesh.modules["tool"].at.file == "catalogue/shop/modules/tool/module.yaml"


@pytest.mark.rule("B7")
def test_names_that_differ_in_case_only() -> None:
    assert [each.code for each in _load_files({"assignments/athens/App.yaml": ""})[1]] == [
        Code.ASSIGNMENT_TWICE
    ]
    assert [each.code for each in _load_files({"nodes/Athens.yaml": "address: a\n"})[1]] == [Code.FILE_NAME]
    assert [each.code for each in _load_files({"nodes/Other.yaml": "address: a\n"})[1]] == [Code.FILE_NAME]


def test_what_has_no_place_is_not_read() -> None:
    files = {"README.md": "${", "docs/x.yaml": "&a", "nodes/readme.txt": "x", "modules/notes.yaml": "- &a"}
    assert _load_files(dict(files))[1] == []


# --- one mistake, one refusal --------------------------------------------------------------------------


def test_what_stands_on_a_refused_file_is_silent() -> None:
    mesh, refusals = _load(
        modules__app__module="module: app\nrequires: {x: 3}\n", assignments__athens__app="uses: [y]\n"
    )
    assert len(refusals) == 1
    assert (refusals[0].code, "app" in mesh.modules) == (Code.SCHEMA, False)
    assert mesh.broken == {"modules/app"}

    mesh, refusals = _load(contracts__database="contract: database\nfields: 3\n")
    assert [each.at.file for each in refusals] == ["contracts/database.yaml"]
    assert mesh.broken == {"contracts/database"}
    assert set(mesh.modules) == {"app", "store"}

    mesh, refusals = _load(nodes__athens="address: [x\n")
    assert [each.at.file for each in refusals] == ["nodes/athens.yaml"]
    assert mesh.broken == {"nodes/athens"}


def test_a_refused_assignment_keeps_its_seats() -> None:
    mesh, refusals = _load(assignments__athens__app="value: {x: y}\nholds: [hall]\n")
    assert [each.code for each in refusals] == [Code.SCHEMA]
    assert mesh.assignments["app@athens"].holds == ("hall",)
    assert mesh.broken == {"app@athens"}


def test_a_module_with_a_mistake_is_broken() -> None:
    broken = BASE["modules/store/module.yaml"].replace("sql:host", "sql:hots")
    mesh, refusals = _load(modules__store__module=broken)
    assert [each.code for each in refusals] == [Code.REFERENCE_UNKNOWN]
    assert mesh.broken == {"modules/store"}


# --- assignments ---------------------------------------------------------------------------------------


def test_an_unknown_module_or_node() -> None:
    mesh, refusals = _load_files({"assignments/athens/stor.yaml": "", "assignments/sparta/stor.yaml": ""})
    assert [(each.code, each.subject) for each in refusals] == [(Code.MODULE_UNKNOWN, "stor@athens")]
    assert "did you mean `store`?" in _said(refusals[0])
    assert "1 more" in refusals[0].message
    assert "stor@athens" in mesh.assignments
    _, refusals = _load_files({"assignments/atens/app.yaml": "", "assignments/atens/store.yaml": ""})
    assert [each.code for each in refusals] == [Code.NODE_UNKNOWN]
    assert "did you mean `athens`?" in _said(refusals[0])


@pytest.mark.parametrize(
    ("text", "code", "keys"),
    [
        ("pins: {dv: store@sparta}", Code.KEY_UNKNOWN, ("pins", "dv")),
        ("pins: {data: store@sparta}", Code.PIN_ON_HOST, ("pins", "data")),
        ("pins: {mesh: store@sparta}", Code.PIN_ON_HOST, ("pins", "mesh")),
        ("pins: {count: store@sparta}", Code.PIN_ON_HOST, ("pins", "count")),
        ("pins: {key: store@sparta}", Code.SECRET_RESERVED, ("pins", "key")),
        ("pins: {named: store@sparta}", Code.PIN_BESIDE_SEAT, ("pins", "named")),
        ("uses: [db, nail]", Code.KEY_UNKNOWN, ("uses", 1)),
        ("values: {counts: 3}", Code.KEY_UNKNOWN, ("values", "counts")),
        ("values: {web.nam: x}", Code.KEY_UNKNOWN, ("values", "web.nam")),
        ("values: {web: x}", Code.KEY_UNKNOWN, ("values", "web")),
        ("values: {db.host: x}", Code.KEY_UNKNOWN, ("values", "db.host")),
        ("values: {key: x}", Code.KEY_UNKNOWN, ("values", "key")),
        ("values: {mail: 3}", Code.VALUE_TYPE, ("values", "mail")),
        ("place: {date: /x}", Code.KEY_UNKNOWN, ("place", "date")),
        ("place: {temp: /x}", Code.KEY_UNKNOWN, ("place", "temp")),
        ("place: {db: /x}", Code.KEY_UNKNOWN, ("place", "db")),
        ("place: {http: /x}", Code.PLACE_BAD, ("place", "http")),
        ("place: {data: 80}", Code.PLACE_BAD, ("place", "data")),
        ("grants: ['access:data']", Code.KEY_UNKNOWN, ("grants", 0)),
    ],
)
@pytest.mark.rule("A7")
@pytest.mark.rule("B1")
@pytest.mark.rule("B5")
@pytest.mark.rule("B6")
def test_what_an_assignment_may_not_say(text: str, code: Code, keys: tuple[str | int, ...]) -> None:
    _, refusals = _load(assignments__athens__app=text + "\n")
    assert [(each.code, each.at.keys) for each in refusals] == [(code, keys)]
    assert refusals[0].subject.startswith("app@athens")
    assert refusals[0].answers


@pytest.mark.rule("B6")
def test_a_place_names_no_other_node() -> None:
    assert _refused(assignments__athens__app="place: {data: 'sparta:/srv/app'}\n") == [
        (Code.SCHEMA, "assignments/athens/app.yaml", ("place", "data"))
    ]


@pytest.mark.rule("B5")
def test_layers_say_what_an_assignment_may() -> None:
    text = "mesh: {counts: 3}\nlabels: {big: {web.nam: x}}\n"
    assert _refused(values__app=text) == [
        (Code.KEY_UNKNOWN, "values/app.yaml", ("mesh", "counts")),
        (Code.KEY_UNKNOWN, "values/app.yaml", ("labels", "big", "web.nam")),
    ]
    assert _refused(values__ap="mesh: {count: 3}\n") == [(Code.MODULE_UNKNOWN, "values/ap.yaml", ())]


@pytest.mark.rule("A8")
@pytest.mark.rule("A15")
def test_seats_and_choices() -> None:
    mesh = BASE["mesh.yaml"]
    hall = mesh + "seats: {hall: database}\n"
    assert _refused(mesh=hall + "choose: {database: store@sparta}\n") == []
    assert _refused(mesh=hall + "choose: {database: store@athens}\n") == [
        (Code.PIN_BAD, "mesh.yaml", ("choose", "database"))
    ]
    assert _refused(mesh=hall + "choose: {databse: store@sparta}\n") == [
        (Code.CONTRACT_UNKNOWN, "mesh.yaml", ("choose", "databse"))
    ]
    fixed = mesh + "seats: {hall: database, mesh-edge: database}\n"
    assert _refused(mesh=fixed) == [(Code.SCHEMA, "mesh.yaml", ("seats", "mesh-edge"))]
    unknown = mesh + "seats: {hall: database, gate: rout}\n"
    assert _refused(mesh=unknown) == [(Code.CONTRACT_UNKNOWN, "mesh.yaml", ("seats", "gate"))]
    assert [each[0] for each in _refused(mesh=mesh)] == [Code.SEAT_UNKNOWN], "the requirement names it"


# --- spreads -------------------------------------------------------------------------------------------


def test_a_spread() -> None:
    mesh, refusals = _load(
        spreads__apps="module: app\nlabel: linux\nvalues: {count: 5}\n",
        spreads__stores="module: store\nevery: true\n",
        assignments__athens__app="values: {web.name: a.example.org}\n",
    )
    assert refusals == []
    assert sorted(mesh.assignments) == ["app@athens", "app@sparta", "store@athens", "store@sparta"]
    assert mesh.assignments["app@sparta"].values == {"count": 5}
    assert mesh.assignments["app@sparta"].at.file == "spreads/apps.yaml"
    assert mesh.assignments["app@athens"].values == {"web.name": "a.example.org"}, "its own file wins whole"
    assert mesh.assignments["app@athens"].spread is None


@pytest.mark.rule("B7")
def test_two_spreads_on_one_pair() -> None:
    mesh, refusals = _load(
        spreads__one="module: app\nevery: true\n",
        spreads__two="module: app\nlabel: linux\n",
        assignments__athens__app=None,
    )
    assert [(each.code, each.at.file) for each in refusals] == [(Code.ASSIGNMENT_TWICE, "spreads/two.yaml")]
    assert "1 more" in refusals[0].message
    assert mesh.broken == {"app@athens", "app@sparta"}


def test_a_spread_is_refused_once() -> None:
    assert _refused(spreads__stores="module: store\nevery: true\nuses: [x]\n") == [
        (Code.KEY_UNKNOWN, "spreads/stores.yaml", ("uses", 0))
    ]
    assert _refused(spreads__other="module: other\nevery: true\n") == [
        (Code.MODULE_UNKNOWN, "spreads/other.yaml", ("module",))
    ]


# --- nodes, handed values, acts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("address: 10.7.0.300 x", ("address",)),
        ("address: 10.7.0.11\npublic: 'a b'", ("public",)),
        ("address: 10.7.0.11\nroot: /srv/../etc", ("root",)),
        ("address: 10.7.0.11\nports: {from: 200, to: 100}", ("ports",)),
    ],
)
def test_a_node_that_is_refused(text: str, keys: tuple[str, ...]) -> None:
    assert _refused(nodes__athens=text + "\n") == [(Code.SCHEMA, "nodes/athens.yaml", keys)]


@pytest.mark.rule("C4")
@pytest.mark.rule("C10")
def test_a_handed_value_must_be_encrypted() -> None:
    good = "id: ENC[a]\nvalue: ENC[b]\nsops: {mac: 'ENC[c]'}\n"
    mesh, refusals = _load(handed__relay=good)
    assert refusals == []
    assert mesh.handed == {"relay": hashlib.sha256(good.encode()).hexdigest()}
    mesh, refusals = _load(handed__relay=good.replace("ENC[b]", "GMCANARY1"))
    assert [(each.code, each.at.keys) for each in refusals] == [(Code.SECRET_EXPOSED, ("value",))]
    assert "GMCANARY" not in repr(refusals)
    assert "relay" in mesh.handed
    assert _refused(handed__relay="id: ENC[a]\nvalue: ENC[b]\n") == [(Code.SCHEMA, "handed/relay.yaml", ())]


def test_rotations_name_what_there_is() -> None:
    assert _refused(rotations="app@atens.db: 1\n") == [
        (Code.KEY_UNKNOWN, "rotations.yaml", ("app@atens.db",))
    ]
    assert _refused(rotations="abandon: [app@athens.dv]\n") == [
        (Code.KEY_UNKNOWN, "rotations.yaml", ("abandon", 0))
    ]
    assert [each[0] for each in _refused(purges="{}\n")] == [Code.SCHEMA]


@pytest.mark.rule("B10")
def test_everything_at_once() -> None:
    codes = {
        each[0]
        for each in _refused(
            assignments__athens__app="uses: [x]\npins: {data: store@sparta}\n",
            nodes__other="address: 'a b'\n",
            spreads__one="module: nothing\nevery: true\n",
            contracts__bad="contract: bad\nfields: {a: {pattern: '(a+)+'}}\n",
        )
    }
    assert codes == {Code.KEY_UNKNOWN, Code.PIN_ON_HOST, Code.SCHEMA, Code.MODULE_UNKNOWN, Code.CONTRACT_BAD}
