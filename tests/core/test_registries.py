"""Registries of images: who is told of one, and who receives its credential (C4, G17)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmesh.core.compose import compose
from gitmesh.core.declaration import Holed, RegistrySpec, SecretHole
from gitmesh.core.plan import plan
from gitmesh.core.refusal import Code
from gitmesh.core.steps import Verb
from gitmesh.deploy.slices import declaration_blob, slices
from gitmesh.trust.keys import SealingKey, SigningKey
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import NOTHING, declarations, resolved

HANDED = "id: ENC[a]\nvalue: ENC[b]\nsops: {mac: 'ENC[c]'}\n"


def with_registries(said: str) -> dict[str, str | None]:
    """The base, whose images are all docker.io's, with registries said in mesh.yaml."""
    mesh = mesh_files(NOTHING)["mesh.yaml"].decode()
    return {"mesh.yaml": f"{mesh}registries: {said}\n", "handed/hub.yaml": HANDED}


HUB = with_registries("{docker.io: {mirror: 'm.example.org:5000/x', credential: hub}}")


@pytest.mark.rule("G17")
@pytest.mark.rule("C4")
def test_one_handed_credential_reaches_each_node_that_pulls_and_no_other() -> None:
    idle = {"nodes/idle.yaml": "address: 10.7.0.99\n"}
    found = declarations({**HUB, **idle})
    for node in ("athens", "sparta", "delphi"):
        id_ = f"mesh@{node}.hub"
        hole = Holed((SecretHole(id_),))
        assert found[node].registries == {"docker.io": RegistrySpec("m.example.org:5000/x", hole)}
        assert [each for each in found[node].secrets if each.startswith("mesh@")] == [id_]
        assert found[node].secrets[id_].role == "own"
    assert found["idle"].registries == {} and found["idle"].secrets == {}


@pytest.mark.rule("C4")
def test_the_vault_is_told_whose_it_is_and_which_file_was_handed(tmp_path: Path) -> None:
    files: dict[str, str | None] = {**HUB}
    for number, node in enumerate(("athens", "sparta", "delphi")):
        sign, seal = SigningKey.generate().public_text, SealingKey.generate().public_text
        keys = f"{{sign: '{sign}', seal: '{seal}', epoch: 1}}"
        files[f"nodes/{node}.yaml"] = f"address: 10.7.0.{11 + number}\nkeys: {keys}\n"
    resolution, refusals = resolved(files)
    assert refusals == ()
    declarations = compose(resolution)
    blobs = {node: declaration_blob(each) for node, each in declarations.items()}
    told = slices(resolution, declarations, blobs)
    secret = told["delphi"]["secrets"]["mesh@athens.hub"]
    assert secret["kind"] == "handed" and secret["rotation"] == "never"
    assert secret["handed_sha256"] == resolution.mesh.handed["hub"]
    assert secret["recipients"] == [{"node": "athens", "role": "own"}]
    assert told["athens"]["secrets"]["mesh@athens.hub"]["role"] == "own"
    assert "mesh@athens.hub" not in told["sparta"]["secrets"]


@pytest.mark.rule("G2")
def test_a_registry_is_told_in_the_plan_and_recreates_nothing() -> None:
    plain, mirrored = declarations()["athens"], declarations(HUB)["athens"]
    (planned,) = plan(plain, mirrored)
    assert planned.assignment == "mesh@athens"
    told = {(each.verb, each.subject) for each in planned.steps}
    assert (Verb.CHANGE_REGISTRY, "docker.io") in told
    assert "mesh@athens.hub" in {subject for _, subject in told}, "and the secret that it needs"
    assert plan(mirrored, mirrored) == ()
    assert [each.assignment for each in plan(mirrored, plain)] == ["mesh@athens"]


@pytest.mark.parametrize(
    "mirror",
    [
        "https://mirror.example.org",
        "Mirror.example.org",
        "mirror.example.org/",
        "user@mirror.example.org",
        "-x",
    ],
)
def test_a_mirror_is_a_host_and_a_path(mirror: str) -> None:
    _, refusals = resolved(with_registries(f"{{docker.io: {{mirror: '{mirror}'}}}}"))
    assert [each.code for each in refusals] == [Code.SCHEMA]


def test_no_module_has_the_meshs_name() -> None:
    _, refusals = resolved({"modules/mesh/module.yaml": "module: mesh\n"})
    assert [each.code for each in refusals] == [Code.SCHEMA]
    assert "no module is called `mesh`" in refusals[0].message


def test_an_image_on_the_machine_itself_has_no_registry() -> None:
    edge = mesh_files(NOTHING)["modules/edge/module.yaml"].decode()
    job = "jobs:\n  trim: {at: daily, host: [fstrim, '/']}\n"
    found = declarations({**HUB, "modules/edge/module.yaml": edge + job})["delphi"].registries
    assert found.keys() == {"docker.io"}
