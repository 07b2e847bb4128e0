"""A mesh with a vault: what its mailbox and its store hold."""

from __future__ import annotations

import shutil

from gitmesh.trust.documents import SealedHeader
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.keys import raw_sign
from gitmesh.trust.seal import open_sealed
from gitmesh.vault.store import Store
from tests.world import DATABASE, World

FRESH, SHARD, WHOLE = "refs/gitmesh/fresh", "refs/gitmesh/shard/0", "refs/gitmesh/whole"
ATHENS, SPARTA, DELPHI = (f"refs/gitmesh/node/{each}" for each in ("athens", "sparta", "delphi"))
OWN = {"gitea@athens.internal", "gitea@athens.jwt", "gitea@athens.key"}
SUPERUSER = "postgres@sparta.superuser"
PLACE = f"sealed/{DATABASE}.a.json"


def restored(begun: World) -> World:
    """The mesh as it was before any pull, in the same place, since its files name that."""
    shutil.rmtree(begun.folder)
    shutil.copytree(begun.folder.parent / "kept", begun.folder, symlinks=True)
    return World(begun.folder)


def sealed(world: World) -> dict[str, dict[str, bytes]]:
    """The files of every node's `sealed` ref."""
    return {ref.rpartition("/")[2]: world.files(ref) for ref in world.refs("refs/gitmesh/sealed")}


def given(world: World, node: str) -> set[str]:
    """The secrets that are sealed to a node."""
    names = sealed(world).get(node, {}).keys() - {"index.json"}
    return {each.removeprefix("sealed/").removesuffix(".a.json") for each in names}


def opened(world: World, node: str, secret: str) -> str:
    """What a node reads in the value sealed to it."""
    blob = world.files(f"refs/gitmesh/sealed/{node}")[f"sealed/{secret}.a.json"]
    said = read_unverified(blob, Kind.SEALED).payload
    header = SealedHeader(**{key: each for key, each in said.items() if key not in ("v", "alg", "ct")})
    vault = raw_sign(world.trusted_root().roles.vault.sign)
    return open_sealed(blob, header, world.installed(node).seal(), vault).text()


def versions(world: World, node: str) -> dict[str, int]:
    """The versions that a node's index names."""
    index = read_unverified(sealed(world)[node]["index.json"], Kind.VAULT_INDEX).payload
    return {secret: entry["version"] for secret, entry in index["secrets"].items()}


def stored(world: World) -> dict[str, str]:
    """Every value in the vault's store, by secret."""
    store = Store(world.store(), world.root("delphi") / "etc/gitmesh/vault/age", ())
    entries = {secret: slots for node in store.nodes() for secret, slots in store.read(node).items()}
    return {secret: slots["a"].value.text() for secret, slots in entries.items()}


def kept(world: World) -> dict[str, bytes]:
    """Every file of the vault's store, byte for byte."""
    folder = world.store()
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
