"""The credential of a registry on its way: approved for the nodes that pull, and named by the vault (C4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmesh.trust.documents import read_slice
from tests.world import World

HANDED = "id: ENC[a]\nvalue: ENC[b]\nsops: {mac: 'ENC[c]'}\n"


@pytest.mark.rule("C4", "G9")
def test_a_registrys_credential_is_approved_and_withholds_nothing_else(tmp_path: Path) -> None:
    world = World.begin(tmp_path)
    world.edit("mesh.yaml", ["registries"], {"docker.io": {"credential": "hub"}})
    world.write("handed/hub.yaml", HANDED)
    world.commit_push("pull with a login")
    assert world.deploy().refusals == ()
    approved = read_slice(world.deployed()["nodes/athens/slice.json"])
    assert approved.secrets["mesh@athens.hub"].kind == "handed"
    pulled = world.pull("delphi")
    assert [each for each in pulled.remarks if each.startswith("mesh@athens.hub: ")]
    assert [each for each in pulled.new if each.startswith("the vault made ")], "the others are made"
    world.pull("sparta")
    assert world.pull("athens").stale == ""
