"""How a root is made and pinned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitmesh.trust import root as roots
from gitmesh.trust.documents import DeployerRole, Role, Root
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import genesis_root, next_root, open_root, pinned_root, sign_root
from tests.trust import world
from tests.trust.world import CONTROLLER, MESH, NOW, STRANGER, signing


def test_the_first_root_of_a_mesh_where_a_merge_approves() -> None:
    root = world.root()
    assert root.version == 1
    assert root.expires == NOW + roots.LIFETIME
    assert root.roles.approver.keys == root.roles.deployer.keys == (CONTROLLER.public_text,)
    blob = sign_root(root, [CONTROLLER])
    found = open_root(blob)
    assert found.root == root
    assert pinned_root(blob, found.digest) == found


def test_another_root_than_the_pinned_one() -> None:
    digest = open_root(sign_root(world.root(), [CONTROLLER])).digest
    other = sign_root(world.root(issued=NOW + 1), [CONTROLLER])
    with pytest.raises(Refused) as caught:
        pinned_root(other, digest)
    assert caught.value.why is Why.DIGEST


def test_a_root_that_its_own_keys_did_not_sign() -> None:
    with pytest.raises(Refused) as caught:
        open_root(sign_root(world.root(), [STRANGER]))
    assert caught.value.why is Why.SIGNATURE
    two = world.root(root_keys=[CONTROLLER, signing("second")], root_threshold=2)
    with pytest.raises(Refused) as caught:
        open_root(sign_root(two, [CONTROLLER]))
    assert caught.value.why is Why.THRESHOLD


def _with_roles(**changes: object) -> Root:
    root = world.root()
    return replace(root, roles=replace(root.roles, **changes))  # type: ignore[arg-type]  # any role, spoilt


@pytest.mark.parametrize(
    "spoilt",
    [
        _with_roles(approver=Role((), 1)),
        _with_roles(approver=Role((CONTROLLER.public_text,), 2)),
        _with_roles(approver=Role((CONTROLLER.public_text,) * 2, 2)),
        _with_roles(approver=Role((CONTROLLER.public_text,) * 2, 1)),
        _with_roles(root=Role(tuple(signing(str(n)).public_text for n in range(33)), 1)),
        _with_roles(deployer=DeployerRole(())),
        _with_roles(approver=Role(("ed25519:AAAA",), 1)),
        _with_roles(approver=Role((CONTROLLER.public_text,), 0)),
    ],
)
def test_a_role_that_could_never_be_met(spoilt: Root) -> None:
    with pytest.raises(Refused) as caught:
        open_root(sign_root(spoilt, [CONTROLLER]))
    assert caught.value.why is Why.MALFORMED


def test_genesis_refuses_it_too() -> None:
    spoilt = _with_roles(approver=Role((), 1)).roles
    with pytest.raises(Refused):
        genesis_root(MESH, NOW, spoilt, [world.RECIPIENT])


def test_another_meshs_root_is_not_the_next() -> None:
    foreign = sign_root(world.root(version=2, mesh="0" * 32), [CONTROLLER])
    with pytest.raises(Refused) as caught:
        next_root(world.trusted(), foreign)
    assert caught.value.why is Why.MESH
