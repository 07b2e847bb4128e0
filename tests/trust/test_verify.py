"""The order of checks on a node, against the attacks of SECURITY §3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gitmesh.trust import canonical
from gitmesh.trust.counters import Counters, Mark
from gitmesh.trust.documents import State, plain
from gitmesh.trust.envelope import Kind, sign
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import sign_root
from gitmesh.trust.verify import (
    Bundle,
    open_slice,
    take_answers,
    verify_answers,
    verify_index,
    verify_report,
    walk_roots,
)
from tests.trust import world
from tests.trust.world import CONTROLLER, DAY, DECLARED, FRESH, NOW, STRANGER, World, pull, signing


def refused(why: Why, attempt: Callable[[], object]) -> Refused:
    """The refusal of `attempt`, which must be for `why`."""
    with pytest.raises(Refused) as caught:
        attempt()
    assert caught.value.why is why
    return caught.value


def test_an_honest_pull_gives_what_was_approved() -> None:
    found = pull(World().bundle())
    assert found.declaration == world.DECLARATION
    assert found.slice == world.slice_of("athens")
    assert (found.counters.deploy.seq, found.counters.approval.seq) == (1, 1)
    assert found.counters.deploy.digest == found.deploy_sha256
    assert found.counters.newest == NOW


def test_the_same_again_and_then_a_newer_one_is_accepted() -> None:
    first = pull(World().bundle())
    again = pull(World().bundle(), first.counters)
    assert again.counters == first.counters
    newer = pull(World(2).bundle(), again.counters)
    assert newer.counters.deploy.seq == 2
    assert Counters.from_json(canonical.decode(canonical.encode(newer.counters.to_json()))) == newer.counters


def test_a_bundle_survives_its_files() -> None:
    bundle = replace(World().bundle(), roots={2: b"two", 13: b"thirteen"})
    assert Bundle.from_files(bundle.files()) == bundle
    strange = {f"trust/{name}.root.json": b"" for name in ("0", "01", "x", "", "-1", "²", "1" * 12)}
    assert Bundle.from_files(strange).roots == {}


@pytest.mark.rule("S1")
@pytest.mark.rule("F1")
def test_a_deploy_rolled_back() -> None:
    seen = pull(World(5).bundle()).counters
    refused(Why.ROLLBACK, lambda: pull(World(4).bundle(), seen))


@pytest.mark.rule("S2")
def test_an_approval_rolled_back_under_a_newer_deploy() -> None:
    seen = pull(World(1, approval_seq=7).bundle()).counters
    refused(Why.ROLLBACK, lambda: pull(World(2, approval_seq=6).bundle(), seen))


@pytest.mark.rule("S3")
def test_the_vaults_index_rolled_back() -> None:
    verified = pull(World().bundle())
    _, seen = verify_index(world.index(seq=5), verified, FRESH)
    refused(Why.ROLLBACK, lambda: verify_index(world.index(seq=4), verified, seen))
    other = world.index(seq=5, versions={world.PASSWORD: 9})
    refused(Why.EQUIVOCATION, lambda: verify_index(other, verified, seen))
    _, again = verify_index(world.index(seq=5), verified, seen)
    assert again == seen


@pytest.mark.rule("S3")
def test_one_secrets_version_rolled_back_in_a_newer_index() -> None:
    verified = pull(World().bundle())
    _, seen = verify_index(world.index(seq=5, versions={world.PASSWORD: 4}), verified, FRESH)
    told = refused(Why.ROLLBACK, lambda: verify_index(world.index(seq=6), verified, seen))
    assert world.PASSWORD in told.message


def test_a_version_never_goes_back_though_the_secret_was_gone_for_a_while() -> None:
    verified = pull(World().bundle())
    _, seen = verify_index(world.index(seq=1, versions={world.PASSWORD: 4}), verified, FRESH)
    _, seen = verify_index(world.index(seq=2, secrets={}), verified, seen)
    refused(Why.ROLLBACK, lambda: verify_index(world.index(seq=3), verified, seen))


@pytest.mark.rule("S3")
def test_a_nodes_answers_rolled_back() -> None:
    verified = pull(World().bundle())
    _, seen = verify_answers(world.answers(seq=9), verified, "sparta", FRESH)
    assert seen.answers["sparta"].seq == 9
    told = refused(Why.ROLLBACK, lambda: verify_answers(world.answers(seq=8), verified, "sparta", seen))
    assert "sparta" in told.message
    other = world.answers(seq=9, fields={})
    refused(Why.EQUIVOCATION, lambda: verify_answers(other, verified, "sparta", seen))


@pytest.mark.rule("S4")
@pytest.mark.rule("F1")
def test_a_freeze_ends_with_the_deploys_expiry() -> None:
    bundle = World().bundle()
    assert pull(bundle, now=NOW + DAY - 1).deploy.seq == 1
    refused(Why.EXPIRED, lambda: pull(bundle, now=NOW + DAY))


@pytest.mark.rule("S5")
def test_fresh_deploys_do_not_keep_an_old_approval_alive() -> None:
    frozen = World(2)
    frozen.deploy |= {"issued": NOW + 30 * DAY, "expires": NOW + 31 * DAY}
    refused(Why.EXPIRED, lambda: pull(frozen.bundle(), now=NOW + 30 * DAY))
    assert pull(frozen.bundle(), now=NOW + 30 * DAY - 1).approval.seq == 1


@pytest.mark.rule("S5")
def test_a_stolen_deployer_key_cannot_sign_for_longer_than_the_root_allows() -> None:
    long = World()
    long.deploy["expires"] = NOW + 15 * DAY
    refused(Why.LIFETIME, lambda: pull(long.bundle()))
    backwards = World()
    backwards.deploy |= {"issued": NOW + 2 * DAY}
    refused(Why.LIFETIME, lambda: pull(backwards.bundle()))
    approval = World()
    approval.approval["expires"] = NOW + 91 * DAY
    refused(Why.LIFETIME, lambda: pull(approval.bundle()))


@pytest.mark.rule("S6")
def test_a_clock_set_back_does_not_unexpire() -> None:
    later = World(3)
    later.deploy |= {"issued": NOW + 3 * DAY, "expires": NOW + 4 * DAY}
    seen = pull(later.bundle(), now=NOW + 3 * DAY + 1).counters
    refused(Why.EXPIRED, lambda: pull(World(4).bundle(), seen, now=NOW))


@pytest.mark.rule("S7")
def test_a_clock_years_ahead_is_refused_and_leaves_no_trace() -> None:
    seen = pull(World().bundle()).counters
    refused(Why.EXPIRED, lambda: pull(World(2).bundle(), seen, now=NOW + 3650 * DAY))
    assert pull(World(2).bundle(), seen).counters.deploy.seq == 2


@pytest.mark.rule("S8")
def test_a_fast_forward_by_a_stolen_deployer_key_is_undone_by_the_next_root() -> None:
    stolen = World(canonical.LARGEST)
    stolen.deploy |= {"issued": NOW + 900 * DAY, "expires": NOW + 901 * DAY}
    seen = pull(stolen.bundle()).counters
    assert seen.newest == NOW + 900 * DAY
    fresh = signing("new deployer")
    recovered = World(2)
    recovered.deploy["root_version"] = 2
    recovered.deployer = fresh
    refused(Why.SIGNATURE, lambda: pull(recovered.bundle(), seen))
    recovered.roots = {2: sign_root(world.root(version=2, deployer=fresh), [CONTROLLER])}
    found = pull(recovered.bundle(), seen)
    assert (found.counters.deploy.seq, found.counters.root_version) == (2, 2)
    assert found.counters.newest == NOW
    assert found.counters.approval == seen.approval


@pytest.mark.rule("S8")
def test_a_root_that_keeps_the_deployer_keeps_its_counter() -> None:
    seen = pull(World(5).bundle()).counters
    older = World(4)
    older.deploy["root_version"] = 2
    older.roots = {2: sign_root(world.root(version=2), [CONTROLLER])}
    refused(Why.ROLLBACK, lambda: pull(older.bundle(), seen))


@pytest.mark.rule("S8")
def test_a_new_vault_starts_its_counter_again_and_no_version() -> None:
    verified = pull(World().bundle())
    _, seen = verify_index(world.index(seq=canonical.LARGEST, versions={world.PASSWORD: 4}), verified, FRESH)
    fresh = signing("new vault")
    moved = World(2)
    moved.deploy["root_version"] = 2
    moved.roots = {2: sign_root(world.root(version=2, vault=fresh, vault_epoch=2), [CONTROLLER])}
    after = pull(moved.bundle(), seen)
    refused(Why.SIGNATURE, lambda: verify_index(world.index(seq=2), after, after.counters))
    refused(Why.EPOCH, lambda: verify_index(world.index(fresh, epoch=1), after, after.counters))
    low = world.index(fresh, epoch=2)
    refused(Why.ROLLBACK, lambda: verify_index(low, after, after.counters))
    good = world.index(fresh, epoch=2, versions={world.PASSWORD: 5})
    assert verify_index(good, after, after.counters)[1].vault.seq == 1


@pytest.mark.rule("S9")
def test_a_deploy_beside_an_approval_that_it_does_not_name() -> None:
    old, new = World(1, 1).bundle(), World(2, 2).bundle()
    refused(Why.DIGEST, lambda: pull(replace(new, deploy=old.deploy)))
    refused(Why.DIGEST, lambda: pull(replace(new, approval=old.approval)))


@pytest.mark.rule("S9")
@pytest.mark.parametrize("part", ["shard", "slice", "declaration"])
def test_one_old_file_in_a_new_tree(part: str) -> None:
    other = World()
    other.slices["athens"] = world.slice_of("athens", declaration_sha256="0" * 64, epoch=2)
    old = replace(other.bundle(), declaration=b"{}")
    mixed = replace(World().bundle(), **{part: getattr(old, part)})
    refused(Why.DIGEST, lambda: pull(mixed))


@pytest.mark.rule("S10")
def test_two_deploys_with_one_number() -> None:
    seen = pull(World(5).bundle()).counters
    other = World(5)
    other.deploy["expires"] = NOW + DAY + 1
    refused(Why.EQUIVOCATION, lambda: pull(other.bundle(), seen))


@pytest.mark.rule("S10")
def test_two_approvals_with_one_number() -> None:
    seen = pull(World(1, approval_seq=7).bundle()).counters
    other = World(2, approval_seq=7)
    other.approval["expires"] = NOW + 31 * DAY
    refused(Why.EQUIVOCATION, lambda: pull(other.bundle(), seen))


@pytest.mark.rule("S11")
def test_ci_changes_what_was_approved() -> None:
    honest = World().bundle()
    evil = canonical.encode({"v": 1, "node": "athens", "text": "something else"})
    refused(Why.DIGEST, lambda: pull(replace(honest, declaration=evil)))
    mine = world.slice_of("athens", declaration_sha256=canonical.digest(evil))
    refused(Why.DIGEST, lambda: pull(replace(honest, declaration=evil, slice=plain(mine))))
    shard = plain({"athens": canonical.digest(plain(mine))})
    forged = replace(honest, declaration=evil, slice=plain(mine), shard=shard)
    refused(Why.DIGEST, lambda: pull(forged))


@pytest.mark.rule("S11")
@pytest.mark.rule("F1")
@pytest.mark.rule("F3")
def test_a_deployer_that_is_no_approver_approves_nothing() -> None:
    operators = [signing("operator 1"), signing("operator 2")]
    start = world.trusted(approvers=operators, threshold=2)
    forged = World()
    forged.slices["athens"] = world.slice_of("athens", grants={"app@athens": ("privileged",)})
    refused(Why.SIGNATURE, lambda: pull(forged.bundle(), start=start))
    forged.approvers = operators
    assert pull(forged.bundle(), start=start).slice.grants == {"app@athens": ("privileged",)}


@pytest.mark.rule("S13")
def test_what_is_no_approval_by_two_of_three() -> None:
    operators = [signing(f"operator {number}") for number in range(3)]
    start = world.trusted(approvers=operators, threshold=2)
    attempt = World()
    for signers in ([operators[0]], [operators[0], operators[0]], [operators[1], CONTROLLER]):
        attempt.approvers = signers
        refused(Why.THRESHOLD, lambda: pull(attempt.bundle(), start=start))
    attempt.approvers = [CONTROLLER, STRANGER]
    refused(Why.SIGNATURE, lambda: pull(attempt.bundle(), start=start))
    attempt.approvers = [operators[2], operators[0]]
    assert pull(attempt.bundle(), start=start).approval.seq == 1


@pytest.mark.rule("S13")
def test_one_signature_under_two_keyids_counts_once() -> None:
    operators = [signing("operator 1"), signing("operator 2")]
    start = world.trusted(approvers=operators, threshold=2)
    attempt = World()
    attempt.approvers = operators[:1]
    bundle = attempt.bundle()
    assert bundle.approval is not None
    envelope = canonical.decode(bundle.approval)
    (signature,) = envelope["signatures"]
    envelope["signatures"] = [signature, {**signature, "keyid": "ffffffffffffffff"}]
    doubled = replace(bundle, approval=canonical.encode(envelope))
    refused(Why.THRESHOLD, lambda: pull(doubled, start=start))


@pytest.mark.rule("S13")
def test_a_signature_of_another_kind_counts_for_nothing() -> None:
    bundle = World().bundle()
    assert bundle.approval is not None
    envelope = canonical.decode(bundle.approval)
    payload = canonical.decode(canonical.from_base64(envelope["payload"]))
    as_index = sign(Kind.VAULT_INDEX, payload, [CONTROLLER])
    refused(Why.KIND, lambda: pull(replace(bundle, approval=as_index)))
    renamed = canonical.decode(as_index) | {"payloadType": Kind.APPROVAL.type}
    refused(Why.SIGNATURE, lambda: pull(replace(bundle, approval=canonical.encode(renamed))))


@pytest.mark.rule("S14")
def test_the_next_root_needs_both() -> None:
    old = [signing(f"root {number}") for number in range(3)]
    new = [signing(f"new root {number}") for number in range(3)]
    start = world.trusted(*old[:2], root_keys=old, root_threshold=2)
    after = world.root(version=2, root_keys=new, root_threshold=2)
    deploy = World()
    deploy.deploy["root_version"] = 2
    for signers, why in (
        (new[:2], Why.SIGNATURE),
        (old[:2], Why.SIGNATURE),
        ([old[0], *new[:2]], Why.THRESHOLD),
        ([*old[:2], new[0]], Why.THRESHOLD),
    ):
        deploy.roots = {2: sign_root(after, signers)}
        refused(why, lambda: pull(deploy.bundle(), start=start))
    deploy.roots = {2: sign_root(after, [*old[1:], *new[:2]])}
    assert pull(deploy.bundle(), start=start).trusted.root.version == 2


@pytest.mark.rule("S14")
def test_a_root_is_never_skipped() -> None:
    third = sign_root(world.root(version=3), [CONTROLLER])
    deploy = World()
    deploy.deploy["root_version"] = 3
    deploy.roots = {3: third}
    refused(Why.ROOT, lambda: pull(deploy.bundle()))
    deploy.roots = {2: third}
    refused(Why.ROOT, lambda: pull(deploy.bundle()))
    deploy.roots = {2: sign_root(world.root(version=2), [CONTROLLER]), 3: third}
    assert pull(deploy.bundle()).trusted.root.version == 3


@pytest.mark.rule("S14")
def test_an_expired_root() -> None:
    start = world.trusted(expires=NOW + 2)
    refused(Why.EXPIRED, lambda: pull(World().bundle(), start=start))


def test_another_meshs_root_does_not_follow() -> None:
    deploy = World()
    deploy.roots = {2: sign_root(world.root(version=2, mesh="0" * 32), [CONTROLLER])}
    refused(Why.MESH, lambda: pull(deploy.bundle()))


def test_roots_accepted_on_the_way_are_kept_though_the_deploy_is_refused() -> None:
    second = sign_root(world.root(version=2), [CONTROLLER])
    deploy = World()
    deploy.roots = {2: second}
    refused(Why.ROOT, lambda: pull(deploy.bundle()))
    newest, counters, accepted = walk_roots(world.trusted(), {2: second}, FRESH)
    assert (newest.root.version, counters.root_version) == (2, 2)
    assert [each.blob for each in accepted] == [second]
    refused(Why.ROLLBACK, lambda: pull(World().bundle(), counters))


@pytest.mark.rule("S15")
def test_an_approver_removed_from_the_root_takes_the_cached_approval_along() -> None:
    operators = [signing(f"operator {number}") for number in range(3)]
    start = world.trusted(approvers=operators, threshold=2)
    deploy = World()
    deploy.approvers = operators[:2]
    seen = pull(deploy.bundle(), start=start).counters
    deploy.deploy |= {"root_version": 2, "seq": 2}
    left = world.root(version=2, approvers=operators[1:], threshold=2)
    deploy.roots = {2: sign_root(left, [CONTROLLER])}
    refused(Why.THRESHOLD, lambda: pull(deploy.bundle(), seen, start=start))
    deploy.approvers = operators[1:]
    assert pull(deploy.bundle(), seen, start=start).trusted.root.version == 2


@pytest.mark.rule("S19")
@pytest.mark.rule("F4")
def test_answers_that_are_not_its_own() -> None:
    verified = pull(World().bundle())
    refused(Why.SIGNATURE, lambda: verify_answers(world.answers(STRANGER), verified, "sparta", FRESH))
    stray = world.answers(world.SIGN["athens"])
    refused(Why.SIGNATURE, lambda: verify_answers(stray, verified, "sparta", FRESH))
    refused(Why.EPOCH, lambda: verify_answers(world.answers(epoch=2), verified, "sparta", FRESH))
    other = world.answers(node="delphi")
    refused(Why.NOT_IN_MESH, lambda: verify_answers(other, verified, "sparta", FRESH))
    refused(Why.NOT_IN_MESH, lambda: verify_answers(world.answers(), verified, "delphi", FRESH))
    turned = world.answers(for_="delphi")
    refused(Why.NOT_IN_MESH, lambda: verify_answers(turned, verified, "sparta", FRESH))
    refused(Why.MESH, lambda: verify_answers(world.answers(mesh="0" * 32), verified, "sparta", FRESH))


@pytest.mark.rule("S19")
def test_answers_of_a_node_that_the_approval_no_longer_asks() -> None:
    revoked = World()
    revoked.slices["athens"] = world.slice_of("athens", answers_from={})
    verified = pull(revoked.bundle())
    refused(Why.NOT_IN_MESH, lambda: verify_answers(world.answers(), verified, "sparta", FRESH))


@pytest.mark.rule("S20", "B12")
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"site": "abc", "GMCANARYextra": "x"}, "a field that its contract does not have"),
        ({}, "no site"),
        ({"site": 5}, "a site that its contract does not allow"),
        ({"site": "ABC"}, "a site that its contract does not allow"),
        ({"site": "abc\n"}, "a site that its contract does not allow"),
    ],
)
def test_an_answer_outside_its_contract_withholds_that_one_alone(fields: object, told: str) -> None:
    verified = pull(World().bundle())
    blob = world.answers(fields={"stats": fields, "search": {"site": "good"}})
    found, _ = verify_answers(blob, verified, "sparta", FRESH)
    taken, refusals = take_answers(found, DECLARED)
    assert taken == {"app@athens.search": {"site": "good"}}
    (refusal,) = refusals
    assert refusal.why is Why.FIELDS
    assert refusal.message == f"app@athens.stats: answered by umami@sparta with {told}"


@pytest.mark.rule("S20", "B12")
def test_all_wrong_answers_are_named_at_once() -> None:
    found, _ = verify_answers(
        world.answers(fields={"stats": {}, "search": {}}), pull(World().bundle()), "sparta", FRESH
    )
    taken, refusals = take_answers(found, DECLARED)
    assert taken == {}
    assert [each.message.split(":")[0] for each in refusals] == ["app@athens.search", "app@athens.stats"]


@pytest.mark.rule("F4")
def test_an_answer_for_what_another_node_provides_is_not_taken() -> None:
    found, _ = verify_answers(world.answers(), pull(World().bundle()), "sparta", FRESH)
    elsewhere = {"app@athens.stats": replace(world.SITE, node="delphi")}
    assert take_answers(found, elsewhere) == ({}, ())
    assert take_answers(found, DECLARED)[0] == {"app@athens.stats": {"site": "abc"}}


@pytest.mark.rule("S65")
def test_a_root_that_asks_for_a_newer_gitmesh() -> None:
    start = world.trusted(min_client="0.10.0")
    told = refused(Why.MIN_CLIENT, lambda: pull(World().bundle(), start=start, client="0.9.9"))
    assert "upgrade" in told.message
    for client in ("0.10", "0.10.0.dev1", "1"):
        assert pull(World().bundle(), start=start, client=client).approval.seq == 1


@pytest.mark.rule("S65")
def test_a_payload_of_a_later_format() -> None:
    bundle = World().bundle()
    assert bundle.deploy is not None
    payload = canonical.decode(canonical.from_base64(canonical.decode(bundle.deploy)["payload"]))
    later = sign(Kind.DEPLOY, payload | {"v": 2}, [CONTROLLER])
    told = refused(Why.VERSION, lambda: pull(replace(bundle, deploy=later)))
    assert "upgrade" in told.message
    never = sign(Kind.DEPLOY, payload | {"v": True}, [CONTROLLER])
    refused(Why.MALFORMED, lambda: pull(replace(bundle, deploy=never)))


PARTS = ["approval.json", "deploy.json", "shard.json", "slice.json", "declaration.json"]


@pytest.mark.parametrize("part", PARTS)
def test_a_bundle_fetched_by_half(part: str) -> None:
    files = World().bundle().files()
    del files[part]
    refused(Why.MISSING, lambda: pull(Bundle.from_files(files)))


@pytest.mark.parametrize("part", PARTS)
def test_a_file_too_large_is_refused_by_its_size(part: str) -> None:
    most = {"slice.json": 16 << 20, "declaration.json": 4 << 20}.get(part, 64 << 10)
    files = {**World().bundle().files(), part: b" " * (most + 1)}
    told = refused(Why.MALFORMED, lambda: pull(Bundle.from_files(files)))
    assert f"{most} is the limit" in told.message


@pytest.mark.rule("F1")
def test_documents_of_another_mesh() -> None:
    foreign = World()
    foreign.deploy["mesh"] = "0" * 32
    refused(Why.MESH, lambda: pull(foreign.bundle()))
    foreign = World()
    foreign.approval["mesh"] = "0" * 32
    refused(Why.MESH, lambda: pull(foreign.bundle()))


def test_a_deploy_by_a_stranger() -> None:
    forged = World()
    forged.deployer = STRANGER
    refused(Why.SIGNATURE, lambda: pull(forged.bundle()))


def test_a_node_that_is_not_approved_as_itself() -> None:
    def approved(**changes: object) -> Bundle:
        changed = World()
        changed.slices["athens"] = world.slice_of("athens", **changes)
        return changed.bundle()

    refused(Why.NOT_IN_MESH, lambda: pull(approved(state=State.REVOKED)))
    assert pull(approved(state=State.PAUSED)).slice.state is State.PAUSED
    refused(Why.NOT_MY_KEY, lambda: pull(approved(sign=STRANGER.public_text)))
    refused(Why.NOT_MY_KEY, lambda: pull(approved(seal=world.sealing("other").public_text)))
    refused(Why.NOT_MY_KEY, lambda: pull(approved(epoch=2)))
    refused(Why.NOT_IN_MESH, lambda: pull(approved(node="delphi")))
    without = World()
    del without.slices["sparta"]
    refused(Why.NOT_IN_MESH, lambda: pull(replace(without.bundle(), slice=None), node="sparta"))


@pytest.mark.parametrize("shards", [{}, {"1": "0" * 64}, {"0": "0" * 64, "1": "0" * 64, "2": "0" * 64}])
def test_shards_that_are_not_numbered(shards: dict[str, str]) -> None:
    odd = World()
    odd.approval["shards"] = shards
    refused(Why.MALFORMED, lambda: pull(odd.bundle()))


def test_an_index_for_another_node() -> None:
    verified = pull(World().bundle())
    swapped = world.index(node="sparta")
    refused(Why.NOT_IN_MESH, lambda: verify_index(swapped, verified, FRESH))
    refused(Why.SIGNATURE, lambda: verify_index(world.index(CONTROLLER), verified, FRESH))


def test_a_report_is_its_nodes_own() -> None:
    mine = world.slice_of("athens")
    found, digest = verify_report(world.report(), mine, world.MESH)
    assert (found.node, len(digest)) == ("athens", 64)
    refused(Why.SIGNATURE, lambda: verify_report(world.report(STRANGER), mine, world.MESH))
    refused(Why.EPOCH, lambda: verify_report(world.report(node="sparta"), mine, world.MESH))
    refused(Why.EPOCH, lambda: verify_report(world.report(epoch=2), mine, world.MESH))
    refused(Why.MESH, lambda: verify_report(world.report(), mine, "0" * 32))


def test_a_newer_epoch_counts_before_the_number() -> None:
    old = Mark(9, "a" * 64, 1)
    assert old.advance(Mark(1, "b" * 64, 2), "answers").epoch == 2
    refused(Why.ROLLBACK, lambda: Mark(1, "b" * 64, 2).advance(old, "answers"))


@pytest.mark.parametrize(
    "spoilt", [None, {}, {"v": 1}, {"v": 2, "root_version": 1}, {"v": 1, "root_version": -1}]
)
def test_counters_that_are_none(spoilt: object) -> None:
    refused(Why.MALFORMED, lambda: Counters.from_json(spoilt))


def test_counters_of_another_format() -> None:
    kept = FRESH.to_json()
    assert Counters.from_json(kept) == FRESH
    refused(Why.MALFORMED, lambda: Counters.from_json({**kept, "v": 2}))


@pytest.mark.rule("F3")
def test_a_recipients_keys_come_from_its_approved_slice_alone() -> None:
    bundle = World().bundle("sparta")
    vault = pull(bundle, node="sparta")
    theirs = open_slice(vault.approval, "athens", bundle.shard, plain(world.slice_of("athens")))
    assert theirs.seal == world.SEAL["athens"].public_text
    forged = plain(world.slice_of("athens", seal=world.sealing("stranger").public_text))
    refused(Why.DIGEST, lambda: open_slice(vault.approval, "athens", bundle.shard, forged))
    refused(Why.DIGEST, lambda: open_slice(vault.approval, "athens", bundle.shard, bundle.slice))
    refused(Why.NOT_IN_MESH, lambda: open_slice(vault.approval, "delphi", bundle.shard, forged))


@pytest.mark.rule("S8")
def test_a_new_vault_key_starts_the_counter_again_within_an_epoch_too() -> None:
    verified = pull(World().bundle())
    _, seen = verify_index(world.index(seq=canonical.LARGEST), verified, FRESH)
    fresh = signing("new vault")
    moved = World(2)
    moved.deploy["root_version"] = 2
    moved.roots = {2: sign_root(world.root(version=2, vault=fresh), [CONTROLLER])}
    after = pull(moved.bundle(), seen)
    assert verify_index(world.index(fresh), after, after.counters)[1].vault.seq == 1
