"""Hashes that a contract wants: made by the vault, sealed to who reads them."""

from __future__ import annotations

from dataclasses import replace

import bcrypt
import pytest
from passlib.hash import sha512_crypt

from gitmesh.trust.secret import Secret
from gitmesh.vault.store import Store
from tests.vault.vaulted import (
    OWN,
    SUPERUSER,
    given,
    kept,
    opened,
    sealed,
    stored,
    versions,
)
from tests.world import DATABASE, DAY, World

HASH = f"{DATABASE}.hash"


def hashing(world: World, by: str = "bcrypt") -> None:
    """Let the contract have a hash of the password, and PostgreSQL's node a file with each consumer's."""
    contract = world.mesh / "contracts/postgres-database.yaml"
    fields = contract.read_text().partition("  hash:")[0].partition("credential:")[0]
    field = f"  hash: {{type: string, hashed: {{of: password, with: {by}}}}}\n"
    credential = "credential: {login: user, secret: password, by: vault, rotation: two, check: postgres}\n"
    contract.write_text(fields + field + credential)
    files = {"/etc/users/${consumer:as}": {"each": "postgres-database", "text": "${consumer:hash}"}}
    world.edit("modules/postgres/module.yaml", ["containers", "postgres", "files"], files)
    world.commit_push("a hash")
    world.deploy()


def recovered(world: World) -> Store:
    """The vault's store, as the vault opens it."""
    root = world.trusted_root()
    return Store(
        world.store(),
        world.root("delphi") / "etc/gitmesh/vault/age",
        (root.roles.vault.age, *root.recovery.age),
    )


@pytest.mark.rule("C1", "C2")
def test_a_hash_goes_to_whoever_reads_it_and_is_of_the_value_that_its_consumer_has(world: World) -> None:
    hashing(world)
    world.pull("delphi")
    assert given(world, "sparta") == {DATABASE, SUPERUSER, HASH}
    assert given(world, "athens") == OWN, "its reader has the value only once it was applied"
    world.confirm("sparta", {DATABASE: 1})
    world.pull("delphi")
    assert given(world, "athens") == {*OWN, DATABASE}, "and no hash, which it does not read"
    hashed = opened(world, "sparta", HASH)
    assert hashed == stored(world)[HASH]
    assert bcrypt.checkpw(opened(world, "athens", DATABASE).encode(), hashed.encode())
    world.pull("sparta")
    (file,) = world.root("sparta").rglob("*/users/*")
    assert (file.read_text(), file.stat().st_mode & 0o777) == (hashed, 0o400)


@pytest.mark.rule("S45")
def test_the_same_bytes_of_a_hash_stay_until_it_is_made_otherwise(world: World) -> None:
    hashing(world)
    world.pull("delphi")
    before, files = sealed(world), kept(world)
    world.pull("delphi", world.now + 600)
    assert (sealed(world), kept(world)) == (before, files)
    world.pass_time(DAY)
    hashing(world, "sha512-crypt")
    world.pull("delphi")
    assert versions(world, "sparta") == {DATABASE: 1, SUPERUSER: 1, HASH: 2}
    assert sha512_crypt.verify(stored(world)[DATABASE], opened(world, "sparta", HASH))


@pytest.mark.rule("C1")
def test_a_new_version_of_a_value_has_a_new_hash(world: World) -> None:
    hashing(world)
    world.pull("delphi")
    store = recovered(world)
    entries = store.read("athens")
    old = entries[DATABASE]["a"]
    entries[DATABASE] = {"a": replace(old, value=Secret("an0ther" * 5), version=2)}
    store.write("athens", entries)
    world.pull("delphi")
    assert versions(world, "sparta") == {DATABASE: 2, SUPERUSER: 1, HASH: 2}
    assert bcrypt.checkpw(b"an0ther" * 5, opened(world, "sparta", HASH).encode())
