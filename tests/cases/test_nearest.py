"""Whatever is named and is not there, the refusal suggests what it is nearest to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gitmesh.core.record import Record
from gitmesh.core.refusal import ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, mesh_files

BASE = mesh_files(HERE / "resolved" / "the-base")
ASSIGNMENT = "assignments/athens/app.yaml"
ADA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMGrAgoY5ZOmqbCwUvLwJ3tQMxKMEYLiBoEtZ6ooJ7wz ada"
APP, POSTGRES = "modules/app/module.yaml", "modules/postgres/module.yaml"


@dataclass(frozen=True)
class Slip:
    """`wrong` for `right` at its place in a file; a path in `renamed` is a file's name."""

    file: str
    right: str
    wrong: str
    meant: str


SLIPS = {
    "requirement": Slip(APP, "${database:user}", "${databse:user}", "database"),
    "field": Slip(APP, "${database:user}", "${database:usr}", "user"),
    "contract": Slip(APP, "{module: postgres-database}", "{module: postgres-databse}", "postgres-database"),
    "provision": Slip(POSTGRES, "  postgres-database:", "  postgres-databse:", "postgres-database"),
    "served field": Slip(POSTGRES, "database: '${", "databse: '${", "database"),
    "ask": Slip(APP, "upstream:", "upstrem:", "upstream"),
    "accepted ask": Slip(POSTGRES, "accepts: {extensions:", "accepts: {extension:", "extensions"),
    "port": Slip(APP, "publish: [http]", "publish: [htp]", "http"),
    "mount": Slip(APP, "{/data: data}", "{/data: dat}", "data"),
    "seat of a module": Slip(POSTGRES, "seats: [mesh-store]", "seats: [mesh-stor]", "mesh-store"),
    "seat held": Slip("assignments/sparta/postgres.yaml", "mesh-store", "mesh-stor", "mesh-store"),
    "key": Slip(APP, "containers:", "contaners:", "containers"),
    "key below": Slip(APP, "    publish:", "    publsh:", "publish"),
    "adapter": Slip(POSTGRES, "adapter: postgres", "adapter: postgre", "postgres"),
    "value key": Slip(ASSIGNMENT, "web.name", "web.nam", "web.name"),
    "shared value": Slip("values/app.yaml", "", "mesh: {worker: 3}\n", "workers"),
    "pin": Slip(ASSIGNMENT, "values:", "pins: {databse: postgres@sparta}\nvalues:", "database"),
    "pinned to": Slip(
        ASSIGNMENT, "values:", "pins: {database: postgres@sprta}\nvalues:", "postgres@sparta"
    ),
    "place": Slip(ASSIGNMENT, "values:", "place: {dat: /srv}\nvalues:", "data"),
    "module of a spread": Slip("spreads/all.yaml", "", "module: ap\nlabel: edge\n", "app"),
    "module assigned": Slip("assignments/delphi/postgre.yaml", "", "uses: []\n", "postgres"),
    "node": Slip("assignments/delpi/postgres.yaml", "", "uses: []\n", "delphi"),
    "module of values": Slip("values/ap.yaml", "", "mesh: {workers: 3}\n", "app"),
    "assignment chosen": Slip(
        "mesh.yaml", "domain:", "choose: {postgres-database: postgres@sprta}\ndomain:", "postgres@sparta"
    ),
    "contract chosen": Slip(
        "mesh.yaml", "domain:", "choose: {postgres-databse: postgres@sparta}\ndomain:", "postgres-database"
    ),
    "contract of a seat": Slip("mesh.yaml", "domain:", "seats: {mine: rout}\ndomain:", "route"),
    "label of a rollout": Slip("mesh.yaml", "domain:", "rollout: {first: edg}\ndomain:", "edge"),
    "handed name": Slip(
        "mesh.yaml", "domain:", "registries: {docker.io: {credential: rely}}\ndomain:", "relay"
    ),
    "secret rotated": Slip("rotations.yaml", "", "app@athens.databse: 1\n", "database"),
    "secret revealed": Slip("reveals.yaml", "", f"app@athens.ky: {ADA}\n", "key"),
    "format": Slip(
        APP, "    publish:", "    files: {/etc/a.conf: {yml: {a: 1}}}\n    publish:", "yaml"
    ),
    "kind": Slip(APP, "{module: postgres-database}", "{modul: postgres-database}", "module"),
    "type": Slip("contracts/route.yaml", "upstream: {type: string", "upstream: {typ: string", "type"),
    "container": Slip(APP, "    publish:", "    after: [ap]\n    publish:", "app"),
}  # fmt: skip


@pytest.mark.rule("B10")
@pytest.mark.parametrize("what", SLIPS)
def test_the_nearest_is_suggested(what: str) -> None:
    slip = SLIPS[what]
    before = BASE.get(slip.file, b"").decode()
    assert slip.right in before
    files = {
        **BASE,
        "nodes/delphi.yaml": BASE["nodes/delphi.yaml"] + b"labels: [edge]\n",
        "handed/relay.yaml": b"id: ENC[a]\nvalue: ENC[b]\nsops: {mac: 'ENC[c]'}\n",
        slip.file: before.replace(slip.right, slip.wrong, 1).encode() if before else slip.wrong.encode(),
    }
    mesh, refusals = load(files)
    found = ordered([*refusals, *resolve(mesh, Record()).refusals])
    said = [
        " ".join([each.message, *(f"{way.text} {way.command}" for way in each.answers)]) for each in found
    ]
    assert any(f"did you mean `{slip.meant}`" in each for each in said), said
