"""A hostile git host, CI or node against a pull: what is changed, moved or rolled back is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gitmesh import fsops
from gitmesh.core.model import Json
from gitmesh.host.pull import Pulled
from gitmesh.trust import canonical
from gitmesh.trust.documents import (
    Approval,
    Deploy,
    DeployerRole,
    IndexSecret,
    SealedHeader,
    VaultIndex,
    payload_of,
    read_signed,
    sealed_name,
    signed,
)
from gitmesh.trust.keys import SigningKey, raw_seal, raw_sign, read_key
from gitmesh.trust.root import sign_root
from gitmesh.trust.seal import seal
from gitmesh.trust.secret import Secret
from tests.host.settled import (
    FRESH,
    SITE,
    STATS,
    Faults,
    answer,
    command,
    copy_of,
    files_at,
    flipped,
    reboot,
    running,
    settled_mesh,
)
from tests.world import DATABASE, DAY, World

MINE = "refs/gitmesh/node/athens"
SHARD = "refs/gitmesh/shard/0"
SEALED = "refs/gitmesh/sealed/athens"
ANSWERS = "refs/gitmesh/answers/sparta/athens"
KEY = "gitea@athens.key"
CHAIN = {
    "approval.json": FRESH,
    "deploy.json": FRESH,
    "shard.json": SHARD,
    "slice.json": MINE,
    "declaration.json": MINE,
}


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with settled_mesh(tmp_path_factory.mktemp("settled")) as world:
        yield world


@pytest.fixture
def world(settled: World, tmp_path: Path) -> World:
    return copy_of(settled, tmp_path / "world")


@pytest.fixture
def athens(world: World) -> Path:
    return world.root("athens")


def put(world: World, ref: str, name: str, blob: bytes | None) -> None:
    """Put one file of a ref, or take it away."""
    held = {path: each for path, each in world.files(ref).items() if path != name}
    world.send(ref, held if blob is None else {**held, name: blob})


def changed(blob: bytes) -> Iterator[bytes]:
    """The document broken in several ways; none of them touches a signature's hint alone."""
    hint = blob.find(b'"keyid"')
    for each in flipped(blob):
        if hint < 0 or each[:hint] != blob[:hint] or each[hint + 28 :] != blob[hint + 28 :]:
            yield each
    yield from (b"", b"{}", blob[:-1], blob + b"\n", b"[" * 100_000)


def subjects(pulled: Pulled) -> set[str]:
    return {each.subject for each in pulled.failed}


def vault_key(world: World) -> SigningKey:
    return read_key(world.root("delphi") / "etc/gitmesh/vault/sign", SigningKey)


def deployer(world: World) -> SigningKey:
    return read_key(world.root("delphi") / "etc/gitmesh/controller/deploy.key", SigningKey)


# --- the declaration's chain ---------------------------------------------------------------------------


@pytest.mark.rule("F1", "S11", "S28")
@pytest.mark.parametrize("name", CHAIN)
def test_a_changed_byte_of_the_chain_changes_nothing_that_runs(world: World, athens: Path, name: str) -> None:
    before, good = running(athens), world.files(CHAIN[name])[name]
    for blob in changed(good):
        put(world, CHAIN[name], name, blob)
        pulled = world.pull("athens")
        assert pulled.stale and pulled.seq == 1, blob[:80]
        assert running(athens) == before
    done = command(world, "athens")
    assert done.exit_code == 75 and "keeps running deploy 1" in done.output
    put(world, CHAIN[name], name, good)
    assert world.pull("athens").stale == ""


@pytest.mark.rule("S32", "F1")
def test_half_of_it_is_refused_whole(world: World, athens: Path) -> None:
    before = running(athens)
    for name, ref in CHAIN.items():
        good = world.files(ref)[name]
        put(world, ref, name, None)
        assert "missing; fetched by half" in world.pull("athens").stale
        put(world, ref, name, good)
    for ref in (FRESH, SHARD, MINE):
        files = world.files(ref)
        world.send(ref, None)
        assert world.pull("athens").stale
        world.send(ref, files)
    assert running(athens) == before
    assert world.pull("athens").stale == ""


@pytest.mark.rule("S14", "S28")
def test_a_changed_root_is_refused(world: World, athens: Path) -> None:
    before, good = running(athens), world.files(FRESH)["trust/1.root.json"]
    for blob in (*changed(good), good):
        put(world, FRESH, "trust/2.root.json", blob)
        assert world.pull("athens").stale
        assert running(athens) == before
    put(world, FRESH, "trust/2.root.json", None)
    assert world.pull("athens").stale == ""
    # The first root was pinned long ago: what stands there now counts for nothing.
    put(world, FRESH, "trust/1.root.json", b"{}")
    assert world.pull("athens").stale == ""


def _next(world: World, domain: str = "forge.example.org") -> dict[str, dict[str, bytes]]:
    """The published refs before a change that is then deployed and pulled."""
    old = {ref: world.files(ref) for ref in (FRESH, SHARD, MINE, SEALED)}
    text = (world.mesh / "assignments/athens/gitea.yaml").read_text()
    world.write("assignments/athens/gitea.yaml", text.replace("git.example.org", domain))
    world.commit_push()
    world.pass_time(60)
    assert world.deploy().refusals == ()
    assert world.pull("athens").seq == 2
    return old


@pytest.mark.rule("S1", "F1")
def test_a_whole_older_deploy_is_refused(world: World, athens: Path) -> None:
    old = _next(world)
    before = running(athens)
    for ref in (FRESH, SHARD, MINE):
        world.send(ref, old[ref])
    done = command(world, "athens")
    assert done.exit_code == 75 and "rollback" in done.output
    assert running(athens) == before


@pytest.mark.rule("S2", "F1")
def test_an_older_approval_under_a_newer_deploy_is_refused(world: World, athens: Path) -> None:
    old = _next(world)
    before = running(athens)
    mesh, keys = world.trusted_root().mesh, [raw_sign(deployer(world).public_text)]
    approval, digest = read_signed(Approval, old[FRESH]["approval.json"], mesh, keys)
    newest, _ = read_signed(Deploy, world.files(FRESH)["deploy.json"], mesh, keys)
    forged = replace(newest, seq=3, approval_seq=approval.seq, approval_sha256=digest)
    for ref in (SHARD, MINE):
        world.send(ref, old[ref])
    world.send(FRESH, {**old[FRESH], "deploy.json": signed(forged, [deployer(world)])})
    pulled = world.pull("athens")
    assert "approval" in pulled.stale and "rollback" in pulled.stale
    assert running(athens) == before


@pytest.mark.rule("S9", "F1")
def test_one_old_document_among_new_ones_is_refused(world: World, athens: Path) -> None:
    old = _next(world)
    before = running(athens)
    for name, ref in CHAIN.items():
        new = world.files(ref)[name]
        put(world, ref, name, old[ref][name])
        assert world.pull("athens").stale, name
        put(world, ref, name, new)
    assert running(athens) == before
    assert world.pull("athens").stale == ""


@pytest.mark.rule("S10", "F1")
def test_one_number_with_two_contents_is_an_alarm(world: World, athens: Path) -> None:
    before = running(athens)
    mesh, keys = world.trusted_root().mesh, [raw_sign(deployer(world).public_text)]
    deploy, _ = read_signed(Deploy, world.files(FRESH)["deploy.json"], mesh, keys)
    other = replace(deploy, expires=deploy.expires - 1)
    put(world, FRESH, "deploy.json", signed(other, [deployer(world)]))
    pulled = world.pull("athens")
    assert "equivocation" in pulled.stale
    assert running(athens) == before


@pytest.mark.rule("S11", "F1")
def test_another_nodes_documents_are_refused(world: World, athens: Path) -> None:
    before = running(athens)
    world.send(MINE, world.files("refs/gitmesh/node/sparta"))
    assert "not the bytes that were approved" in world.pull("athens").stale
    assert running(athens) == before


@pytest.mark.rule("F1")
def test_an_approval_signed_by_anyone_else_is_refused(world: World, athens: Path) -> None:
    before = running(athens)
    mesh, keys = world.trusted_root().mesh, [raw_sign(deployer(world).public_text)]
    approval, _ = read_signed(Approval, world.files(FRESH)["approval.json"], mesh, keys)
    deploy, _ = read_signed(Deploy, world.files(FRESH)["deploy.json"], mesh, keys)
    stranger = SigningKey.generate()
    forged = replace(approval, seq=2)
    names = canonical.digest(canonical.encode(payload_of(forged)))
    after = replace(deploy, seq=2, approval_seq=2, approval_sha256=names)
    put(world, FRESH, "approval.json", signed(forged, [stranger]))
    put(world, FRESH, "deploy.json", signed(after, [deployer(world)]))
    assert "signature" in world.pull("athens").stale
    put(world, FRESH, "deploy.json", signed(after, [stranger]))
    assert "signature" in world.pull("athens").stale
    assert running(athens) == before


# --- what the vault wrote ------------------------------------------------------------------------------


def withheld_alone(world: World, athens: Path, before: object, named: str) -> Pulled:
    """The pull names `named` and goes on; even a reboot takes nothing away that was given before."""
    pulled = world.pull("athens")
    assert (pulled.stale, pulled.seq, subjects(pulled)) == ("", 1, {named})
    assert running(athens) == before
    reboot(athens)
    world.pull("athens")
    assert running(athens) == before
    done = command(world, "athens")
    assert done.exit_code == 1 and f"failed: {named}: " in done.output
    return pulled


@pytest.mark.rule("F2", "G9", "S28")
def test_a_changed_byte_of_the_index_is_named_and_takes_nothing_back(world: World, athens: Path) -> None:
    before, good = running(athens), world.files(SEALED)["index.json"]
    for blob in changed(good):
        put(world, SEALED, "index.json", blob)
        pulled = world.pull("athens")
        assert (pulled.stale, subjects(pulled)) == ("", {"vault"}), blob[:80]
        assert running(athens) == before
    withheld_alone(world, athens, before, "vault")
    put(world, SEALED, "index.json", good)
    assert world.pull("athens").failed == []


@pytest.mark.rule("F2", "G9", "S28")
def test_a_changed_byte_of_a_sealed_value_withholds_only_itself(world: World, athens: Path) -> None:
    name = sealed_name(KEY, "a")
    before, good = running(athens), world.files(SEALED)[name]
    for blob in changed(good):
        put(world, SEALED, name, blob)
        pulled = world.pull("athens")
        assert (pulled.stale, subjects(pulled)) == ("", {KEY}), blob[:80]
        assert running(athens) == before
    withheld_alone(world, athens, before, KEY)


@pytest.mark.rule("F2", "G9")
def test_on_a_node_that_has_nothing_yet_it_waits_with_that_one_named(settled: World, tmp_path: Path) -> None:
    world = copy_of(settled, tmp_path / "world")
    athens = world.root("athens")
    for part in ("var", "run"):
        (athens / part).rename(athens / f"{part}.old")
    put(world, SEALED, sealed_name(KEY, "a"), b"{}")
    pulled = world.pull("athens")
    assert subjects(pulled) == {KEY}
    assert [(each.assignment, each.on, each.requirement) for each in pulled.waiting] == [
        ("gitea@athens", "mesh-vault", KEY)
    ]
    assert not (athens / "run").exists()


@pytest.mark.rule("F2", "S32")
@pytest.mark.parametrize("name", ["index.json", sealed_name(KEY, "a")])
def test_what_the_vault_wrote_and_is_gone_is_named(world: World, athens: Path, name: str) -> None:
    before = running(athens)
    put(world, SEALED, name, None)
    withheld_alone(world, athens, before, "vault" if name == "index.json" else KEY)


@pytest.mark.rule("S32", "G9")
def test_a_sealed_ref_that_is_gone_takes_nothing_back(world: World, athens: Path) -> None:
    before = running(athens)
    world.send(SEALED, None)
    pulled = world.pull("athens")
    assert pulled.stale == "" and "vault" in subjects(pulled)
    reboot(athens)
    world.pull("athens")
    assert running(athens) == before


@pytest.mark.rule("S3")
def test_an_older_index_is_refused_and_named(world: World, athens: Path) -> None:
    before, old = running(athens), world.files(SEALED)["index.json"]
    mesh = world.trusted_root().mesh
    index, _ = read_signed(VaultIndex, old, mesh, [raw_sign(vault_key(world).public_text)])
    newer = replace(index, seq=index.seq + 5, issued=world.now)
    put(world, SEALED, "index.json", signed(newer, [vault_key(world)]))
    assert world.pull("athens").failed == []
    put(world, SEALED, "index.json", old)
    pulled = withheld_alone(world, athens, before, "vault")
    assert "was seen before" in pulled.failed[0].message


@pytest.mark.rule("S3")
def test_an_older_version_under_a_newer_index_is_refused(world: World, athens: Path) -> None:
    mesh = world.trusted_root().mesh
    keys = [raw_sign(vault_key(world).public_text)]
    index, _ = read_signed(VaultIndex, world.files(SEALED)["index.json"], mesh, keys)
    for seq, version in ((index.seq + 1, 3), (index.seq + 2, 2)):
        secrets = {**index.secrets, KEY: IndexSecret("a", version, index.secrets[KEY].phase)}
        put(world, SEALED, "index.json", signed(replace(index, seq=seq, secrets=secrets), [vault_key(world)]))
        put(world, SEALED, sealed_name(KEY, "a"), _sealed(world, f"GMCANARY{version:035}", version=version))
        pulled = world.pull("athens")
    assert subjects(pulled) == {"vault", KEY} and "an older version" in pulled.failed[0].message
    delivered = [held for each in running(athens).values() if isinstance(held := each[-1], bytes)]
    assert any(b"GMCANARY" in each and each.endswith(b"3") for each in delivered)
    assert not any(b"GMCANARY" in each and each.endswith(b"2") for each in delivered)


def _sealed(world: World, value: str, key: SigningKey | None = None, **other: Any) -> bytes:
    """A value for athens, as the vault would seal version 1 of `KEY`; `other` says what is otherwise."""
    header = SealedHeader(
        mesh=world.trusted_root().mesh,
        node="athens",
        node_epoch=1,
        vault_epoch=1,
        secret=KEY,
        assignment="gitea@athens",
        field="value",
        slot="a",
        version=1,
    )
    recipient = raw_seal(world.installed("athens").seal().public_text)
    return seal(replace(header, **other), Secret(value), recipient, key or vault_key(world))


ELSEWHERE: dict[str, Any] = {
    "node": "sparta",
    "mesh": "0" * 32,
    "version": 2,
    "slot": "b",
    "field": "password",
    "secret": "gitea@athens.jwt",
    "assignment": "gitea@sparta",
    "node_epoch": 2,
    "vault_epoch": 2,
}


@pytest.mark.rule("S16", "F2")
def test_a_value_sealed_for_another_place_is_refused(world: World, athens: Path) -> None:
    before = running(athens)
    for name, other in ELSEWHERE.items():
        put(world, SEALED, sealed_name(KEY, "a"), _sealed(world, "GMCANARY" + "x" * 35, **{name: other}))
        pulled = world.pull("athens")
        assert (pulled.stale, subjects(pulled)) == ("", {KEY})
        assert f"sealed with another {name}" in pulled.failed[0].message
        assert running(athens) == before
    withheld_alone(world, athens, before, KEY)


@pytest.mark.rule("S16", "F2")
def test_values_that_changed_places_are_refused(world: World, athens: Path) -> None:
    before, held = running(athens), world.files(SEALED)
    names = [sealed_name(each, "a") for each in (KEY, "gitea@athens.jwt")]
    for name, other in zip(names, reversed(names), strict=True):
        put(world, SEALED, name, held[other])
    pulled = world.pull("athens")
    assert subjects(pulled) == {KEY, "gitea@athens.jwt"}
    assert running(athens) == before


@pytest.mark.rule("S18", "F2")
def test_a_value_sealed_by_anyone_else_is_refused(world: World, athens: Path) -> None:
    before = running(athens)
    blob = _sealed(world, "GMCANARY" + "x" * 35, world.installed("sparta").sign())
    put(world, SEALED, sealed_name(KEY, "a"), blob)
    withheld_alone(world, athens, before, KEY)


@pytest.mark.rule("G9")
def test_a_value_outside_its_contract_is_not_delivered(world: World, athens: Path) -> None:
    mesh = world.trusted_root().mesh
    keys = [raw_sign(vault_key(world).public_text)]
    index, _ = read_signed(VaultIndex, world.files(SEALED)["index.json"], mesh, keys)
    before = running(athens)
    secrets = {**index.secrets, DATABASE: replace(index.secrets[DATABASE], version=2)}
    newer = replace(index, seq=index.seq + 1, secrets=secrets)
    put(world, SEALED, "index.json", signed(newer, [vault_key(world)]))
    bad = _sealed(world, "GMCANARY'; DROP", secret=DATABASE, version=2, field="password")
    put(world, SEALED, sealed_name(DATABASE, "a"), bad)
    pulled = world.pull("athens")
    assert subjects(pulled) == {"gitea@athens"}
    assert all("GMCANARY" not in each.message for each in pulled.failed)
    assert running(athens) == before


# --- what another node answered ------------------------------------------------------------------------


@pytest.mark.rule("F4", "G9", "S28")
def test_a_changed_byte_of_an_answer_is_named_and_takes_nothing_back(world: World, athens: Path) -> None:
    before, good = running(athens), world.files(ANSWERS)["answers.json"]
    for blob in changed(good):
        put(world, ANSWERS, "answers.json", blob)
        pulled = world.pull("athens")
        assert (pulled.stale, subjects(pulled)) == ("", {"sparta"}), blob[:80]
        assert running(athens) == before
    withheld_alone(world, athens, before, "sparta")
    put(world, ANSWERS, "answers.json", good)
    assert world.pull("athens").failed == []


@pytest.mark.rule("S3", "F4")
def test_older_answers_are_refused_and_named(world: World, athens: Path) -> None:
    old = world.files(ANSWERS)
    answer(world, {"site": SITE.replace("7", "8")}, 2)
    assert world.pull("athens").failed == []
    before = running(athens)
    world.send(ANSWERS, old)
    pulled = withheld_alone(world, athens, before, "sparta")
    assert "was seen before" in pulled.failed[0].message


@pytest.mark.rule("S19", "F4")
def test_answers_of_anyone_else_are_refused(world: World, athens: Path) -> None:
    before, other = running(athens), {"site": SITE.replace("7", "8")}
    play = partial(answer, world, other, 2)
    for forge in (
        partial(play, by="delphi"),
        partial(play, by="delphi", node="delphi"),
        partial(play, node="delphi"),
        partial(play, for_="delphi"),
        partial(play, mesh="0" * 32),
        partial(play, epoch=2),
    ):
        forge()
        pulled = world.pull("athens")
        assert (pulled.stale, subjects(pulled)) == ("", {"sparta"})
        assert running(athens) == before
    withheld_alone(world, athens, before, "sparta")


@pytest.mark.rule("S20")
def test_an_answer_outside_its_contract_is_refused_alone(world: World, athens: Path) -> None:
    before = running(athens)
    bad: list[tuple[dict[str, Json], str]] = [
        ({"site": SITE, "admin": "x"}, "a field that its contract does not have"),
        ({}, "no site"),
        ({"site": 7}, "a site that its contract does not allow"),
        ({"site": SITE + "\n"}, "a site that its contract does not allow"),
    ]
    for seq, (fields, said) in enumerate(bad, 2):
        answer(world, fields, seq)
        pulled = world.pull("athens")
        assert (pulled.stale, subjects(pulled)) == ("", {"sparta"})
        assert STATS in pulled.failed[0].message and said in pulled.failed[0].message
        assert running(athens) == before


@pytest.mark.rule("S60", "G9")
def test_a_provider_that_floods_its_ref_holds_up_nobody_else(world: World, athens: Path) -> None:
    before = running(athens)
    world.send(ANSWERS, {"answers.json": b"x" * (9 << 20)})
    pulled = world.pull("athens")
    assert (pulled.stale, subjects(pulled)) == ("", {"sparta"})
    assert running(athens) == before


# --- what is kept of it --------------------------------------------------------------------------------


@pytest.mark.rule("F6")
def test_files_that_nobody_asked_for_are_not_kept(world: World, athens: Path) -> None:
    for ref in (FRESH, SHARD, MINE, SEALED):
        files_at(world, ref, junk_json=b"x", sealed__junk_json=b"x", trust__junk_json=b"x")
    pulled = world.pull("athens")
    assert (pulled.stale, pulled.failed) == ("", [])
    assert not list((athens / "var/lib/gitmesh/accepted").rglob("junk*"))


@pytest.mark.rule("S5")
def test_fresh_deploys_over_an_old_approval_end_with_it(world: World, athens: Path) -> None:
    before = running(athens)
    mesh, keys = world.trusted_root().mesh, [raw_sign(deployer(world).public_text)]
    deploy, _ = read_signed(Deploy, world.files(FRESH)["deploy.json"], mesh, keys)
    for seq, days in ((2, 80), (3, 100)):
        when = world.now + days * DAY
        fresh = replace(deploy, seq=seq, issued=when, expires=when + 10 * DAY)
        put(world, FRESH, "deploy.json", signed(fresh, [deployer(world)]))
        pulled = world.pull("athens", when)
        assert bool(pulled.stale) == (days > 90)
    assert "approval: expired" in pulled.stale
    assert running(athens) == before


@pytest.mark.rule("S8", "S41")
def test_the_next_root_undoes_a_counter_that_was_run_up_even_after_kills(
    world: World, athens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh, stolen = world.trusted_root().mesh, deployer(world)
    files = world.files(FRESH)
    deploy, _ = read_signed(Deploy, files["deploy.json"], mesh, [raw_sign(stolen.public_text)])
    ahead = replace(deploy, seq=2**53 - 1)
    put(world, FRESH, "deploy.json", signed(ahead, [stolen]))
    assert world.pull("athens").seq == 2**53 - 1
    new, root = SigningKey.generate(), world.trusted_root()
    roles = replace(root.roles, deployer=DeployerRole((new.public_text,)))
    key = read_key(world.root("delphi") / "etc/gitmesh/root.key", SigningKey)
    second = sign_root(replace(root, version=2, issued=world.now, roles=roles), [key])
    renewed = signed(replace(deploy, seq=2, root_version=2, issued=world.now), [new])
    world.send(FRESH, {**files, "trust/2.root.json": second, "deploy.json": renewed})
    before = running(athens)
    for operations in range(1, 60, 3):
        faults = Faults(operations, killed=False)
        monkeypatch.setattr(fsops, "fault", faults)
        try:
            world.pull("athens")
        except KeyboardInterrupt:
            continue
        finally:
            monkeypatch.undo()
        break
    pulled = world.pull("athens")
    assert (pulled.stale, pulled.seq, pulled.failed) == ("", 2, [])
    assert running(athens) == before
    put(world, FRESH, "deploy.json", signed(ahead, [stolen]))
    assert "signature" in world.pull("athens").stale
