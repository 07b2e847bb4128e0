"""A mesh that was deployed once, for the tests of its vault."""

from __future__ import annotations

import shutil

import pytest

from tests.vault.vaulted import restored
from tests.world import World


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A mesh that was deployed once; no node has pulled. Not to be changed: `world` restores it."""
    folder = tmp_path_factory.mktemp("vault") / "world"
    folder.mkdir()
    world = World.begin(folder)
    world.deploy()
    shutil.copytree(folder, folder.parent / "kept", symlinks=True)
    return world


@pytest.fixture
def world(begun: World) -> World:
    """The same, as it was."""
    return restored(begun)
