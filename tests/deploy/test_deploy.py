"""`gitmesh deploy` on a real origin: what it publishes, when it changes nothing, and what it never signs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema_rs
import pytest

from gitmesh.assets import asset
from gitmesh.core.model import Json
from gitmesh.core.refusal import Code
from gitmesh.deploy import publish as publishing
from gitmesh.deploy import run as running
from gitmesh.deploy.publish import WHOLE
from gitmesh.deploy.run import DEPLOY_LIFE, RENEW_AFTER, Deployed
from gitmesh.repo import transport
from gitmesh.repo.transport import Access, Rejected, Update
from gitmesh.trust import canonical
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import read_slice, shard_of
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import pinned_root
from gitmesh.trust.verify import Bundle, OwnKeys, verify
from tests.real import PROJECT
from tests.world import DAY, NODES, NOW, World, git

BRANCH = "refs/heads/deploy"
AGAIN = """\
from pathlib import Path
import sys
from tests.world import World
print(World(Path(sys.argv[1])).deploy().seq)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A mesh that was never deployed."""
    return World.begin(tmp_path)


def payload(blob: bytes, kind: Kind) -> dict[str, Json]:
    """What a signed document says."""
    return read_unverified(blob, kind).payload


def content(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A deploy's files but the signed ones."""
    return {path: blob for path, blob in files.items() if path not in ("approval.json", "deploy.json")}


def break_main(world: World) -> str:
    """A merge that does not resolve: gitea loses its public name."""
    world.write("assignments/athens/gitea.yaml", "pins: {database: postgres@sparta}\n")
    return world.commit_push("gitea without a name")


def mend_main(world: World) -> str:
    """The merge after it."""
    said = "pins: {database: postgres@sparta}\nvalues: {web.name: git.example.org}\n"
    world.write("assignments/athens/gitea.yaml", said)
    return world.commit_push("gitea has its name again")


# --- what is published ---------------------------------------------------------------------------------


@pytest.mark.rule("B22")
def test_the_same_inputs_give_the_same_bytes_in_another_place(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for name in ("origin.git", "nodes"):
        shutil.copytree(tmp_path / name, elsewhere / name)
    world.deploy()
    surroundings = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, str(elsewhere)], cwd=PROJECT, env=surroundings, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"1\n"), done.stderr.decode()
    other = World(elsewhere)
    assert other.deployed() == world.deployed()
    assert other.refs("refs/gitmesh") == world.refs("refs/gitmesh")


@pytest.mark.rule("F1")
def test_every_document_is_approved_by_its_digest(world: World) -> None:
    commit = world.commit_push()
    done = world.deploy()
    assert (done.seq, done.refusals, done.absent, done.commit) == (1, (), (), commit)
    files = world.deployed()
    approval = payload(files["approval.json"], Kind.APPROVAL)
    deploy = payload(files["deploy.json"], Kind.DEPLOY)
    assert deploy["approval_sha256"] == canonical.digest(canonical.encode(approval))
    assert deploy["expires"] == NOW + DEPLOY_LIFE
    assert approval["source"] == {
        "commit": commit,
        "tree": git(world.bare, "rev-parse", f"{commit}^{{tree}}"),
    }
    assert approval["record_sha256"] == canonical.digest(files["record.json"])
    assert approval["mesh"] == deploy["mesh"] == world.trusted_root().mesh
    for name, digest in approval["shards"].items():
        assert canonical.digest(files[f"shards/{name}.json"]) == digest
    for node in NODES:
        shard = canonical.decode(files[f"shards/{shard_of(node, len(approval['shards']))}.json"])
        slice_ = files[f"nodes/{node}/slice.json"]
        assert shard[node] == canonical.digest(slice_)
        declared = canonical.digest(files[f"nodes/{node}/declaration.json"])
        assert read_slice(slice_).declaration_sha256 == declared


@pytest.mark.rule("F1")
@pytest.mark.parametrize("node", NODES)
def test_a_node_verifies_what_its_own_refs_hold(world: World, node: str) -> None:
    world.deploy()
    files = world.files("refs/gitmesh/fresh") | world.files("refs/gitmesh/shard/0")
    bundle = Bundle.from_files(files | world.files(f"refs/gitmesh/node/{node}"))
    installed = world.installed(node)
    trusted = pinned_root(files["trust/1.root.json"], installed.root_sha256)
    keys = OwnKeys(installed.sign().public_text, installed.seal().public_text, 1)
    verified = verify(bundle, trusted, Counters(root_version=1), node, keys, NOW)
    assert verified.slice.node == node
    assert verified.declaration == world.deployed()[f"nodes/{node}/declaration.json"]


def test_what_is_published_fits_its_schemas(world: World) -> None:
    world.deploy()
    files = world.deployed()
    found = {
        "published/root": [canonical.decode(json_of(files["trust/1.root.json"], Kind.ROOT))],
        "published/approval": [payload(files["approval.json"], Kind.APPROVAL)],
        "published/deploy": [payload(files["deploy.json"], Kind.DEPLOY)],
        "published/shard": [canonical.decode(files["shards/0.json"])],
        "published/slice": [canonical.decode(files[f"nodes/{node}/slice.json"]) for node in NODES],
        "declaration": [canonical.decode(files[f"nodes/{node}/declaration.json"]) for node in NODES],
        "record": [canonical.decode(files["record.json"])],
    }
    for name, values in found.items():
        schema = jsonschema_rs.validator_for(json.loads((asset("schemas") / f"{name}.json").read_text()))
        for value in values:
            assert [str(each) for each in schema.iter_errors(value)] == [], name


def json_of(blob: bytes, kind: Kind) -> bytes:
    """The canonical payload of a signed document."""
    return canonical.encode(payload(blob, kind))


def test_a_node_that_has_not_enrolled_is_named_and_gets_no_ref(tmp_path: Path) -> None:
    world = World.begin(tmp_path, enrolled=("delphi", "sparta"))
    assert world.deploy().absent == ("athens",)
    assert set(world.refs("refs/gitmesh/node")) == {"refs/gitmesh/node/delphi", "refs/gitmesh/node/sparta"}
    assert "nodes/athens/declaration.json" in world.deployed()
    world.enrol("athens")
    world.commit_push()
    assert world.deploy().absent == ()
    assert "refs/gitmesh/node/athens" in world.refs("refs/gitmesh/node")


# --- what changes, and what does not -------------------------------------------------------------------


def test_with_nothing_new_nothing_moves_until_a_renewal_is_due(world: World) -> None:
    world.deploy()
    before, files = world.refs(), world.deployed()
    world.pass_time(RENEW_AFTER - 1)
    again = world.deploy()
    assert (again.seq, again.pushed) == (1, ())
    assert world.refs() == before
    world.pass_time(1)
    renewed = world.deploy()
    assert renewed.seq == 2
    assert content(world.deployed()) == content(files)
    moved = {ref for ref, commit in world.refs().items() if before[ref] != commit}
    assert moved == set(renewed.pushed) == {BRANCH, WHOLE, "refs/gitmesh/fresh"}
    assert payload(world.deployed()["deploy.json"], Kind.DEPLOY)["expires"] == world.now + DEPLOY_LIFE


def test_what_expired_is_renewed(world: World) -> None:
    world.deploy()
    world.pass_time(200 * DAY)
    assert world.deploy().seq == 2
    assert world.pull("delphi").stale == ""


@pytest.mark.rule("E7")
def test_a_change_moves_the_refs_of_those_it_concerns(world: World) -> None:
    world.deploy()
    before = world.refs()
    world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], "code.example.org")
    world.commit_push()
    done = world.deploy()
    assert done.seq == 2
    kept = {ref for ref, commit in world.refs().items() if before[ref] == commit}
    # athens has the name in its environment, delphi in its proxy's files; sparta has no part in it.
    assert {each for each in kept if each.startswith("refs/gitmesh/node/")} == {"refs/gitmesh/node/sparta"}
    assert before["refs/gitmesh/node/athens"] != world.refs()["refs/gitmesh/node/athens"]


def test_a_removed_node_loses_its_ref_and_the_approval_names_it_no_more(world: World) -> None:
    world.deploy()
    (world.mesh / "assignments/athens/gitea.yaml").unlink()
    (world.mesh / "nodes/athens.yaml").unlink()
    world.edit("mesh.yaml", ["allow"], {"drop": ["athens"]})
    world.commit_push("athens is given up")
    done = world.deploy()
    assert done.refusals == ()
    assert world.deploy(world.pass_time(DAY)).refusals == (), "a renewal resolves the same commit again"
    assert "refs/gitmesh/node/athens" in done.pushed
    assert set(world.refs("refs/gitmesh/node")) == {"refs/gitmesh/node/delphi", "refs/gitmesh/node/sparta"}
    assert set(canonical.decode(world.deployed()["shards/0.json"])) == {"delphi", "sparta"}


def test_only_so_many_commits_of_the_branch_are_kept(world: World) -> None:
    world.edit("mesh.yaml", ["deploy"], {"branch": "deploy", "keep": 2})
    world.commit_push()
    depths = []
    for _ in range(6):
        world.deploy(world.pass_time(DAY))
        depths.append(int(git(world.bare, "rev-list", "--count", BRANCH)))
    assert depths == [1, 2, 3, 4, 2, 3]
    assert payload(world.deployed()["deploy.json"], Kind.DEPLOY)["seq"] == 6
    older = git(world.bare, "show", f"{BRANCH}~1:deploy.json").encode()
    assert payload(older, Kind.DEPLOY)["seq"] == 5


def test_the_branch_can_be_renamed(world: World) -> None:
    world.deploy()
    world.edit("mesh.yaml", ["deploy"], {"branch": "live", "keep": 20})
    world.commit_push()
    done = world.deploy()
    assert done.seq == 1, "the content is the same, so that nothing new is approved"
    assert done.pushed == ("refs/heads/live",)
    assert world.files("refs/heads/live") == world.files(WHOLE)
    assert world.deploy(world.pass_time(DAY)).seq == 2
    assert world.pull("delphi").seq == 2, "the vault finds it too"


# --- a main that does not resolve ----------------------------------------------------------------------


@pytest.mark.rule("G5")
def test_a_main_that_does_not_resolve_renews_what_was_approved(world: World) -> None:
    approved = world.commit_push()
    world.deploy()
    files = world.deployed()
    break_main(world)
    early = world.deploy()
    assert [each.code for each in early.refusals] == [Code.VALUE_MISSING]
    assert (early.seq, early.pushed) == (1, ())
    late = world.deploy(world.pass_time(DAY))
    assert [each.code for each in late.refusals] == [Code.VALUE_MISSING]
    assert late.seq == 2
    assert content(world.deployed()) == content(files)
    source = payload(world.deployed()["approval.json"], Kind.APPROVAL)["source"]
    assert source["commit"] == approved
    mend_main(world)
    mended = world.deploy()
    assert (mended.seq, mended.refusals) == (2, ())


@pytest.mark.rule("G5")
def test_a_mesh_file_that_does_not_load_freezes_nothing_either(world: World) -> None:
    world.edit("mesh.yaml", ["deploy"], {"branch": "live", "keep": 20})
    world.commit_push()
    world.deploy()
    world.write("mesh.yaml", "mesh: [\n")
    world.commit_push()
    done = world.deploy(world.pass_time(DAY))
    assert done.refusals
    assert done.seq == 2
    assert BRANCH not in world.refs()
    assert payload(world.files("refs/gitmesh/fresh")["deploy.json"], Kind.DEPLOY)["seq"] == 2


@pytest.mark.rule("G5")
def test_before_the_first_deploy_a_refused_main_publishes_nothing(world: World) -> None:
    break_main(world)
    done = world.deploy()
    assert [each.code for each in done.refusals] == [Code.VALUE_MISSING]
    assert (done.seq, done.pushed) == (0, ())
    assert set(world.refs()) == {"refs/heads/main"}


# --- what stands on origin is hostile ------------------------------------------------------------------


Change = Callable[[Mapping[str, bytes]], dict[str, bytes]]


def with_another_key(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A deploy's files with athens's secrets to be sealed to sparta's key."""
    slices = {node: canonical.decode(files[f"nodes/{node}/slice.json"]) for node in ("athens", "sparta")}
    slices["athens"]["seal"] = slices["sparta"]["seal"]
    return {**files, "nodes/athens/slice.json": canonical.encode(slices["athens"])}


def with_another_declaration(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A deploy's files with another declaration for athens."""
    declaration = canonical.decode(files["nodes/athens/declaration.json"])
    declaration["assignments"] = {}
    return {**files, "nodes/athens/declaration.json": canonical.encode(declaration)}


def with_another_record(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A deploy's files with gitea's identity changed in the record."""
    record = canonical.decode(files["record.json"])
    record["assignments"]["gitea@athens"]["as"] = "someone_else"
    return {**files, "record.json": canonical.encode(record)}


def without_a_record(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A deploy's files without the record."""
    return {path: blob for path, blob in files.items() if path != "record.json"}


@pytest.mark.rule("F3")
@pytest.mark.parametrize("change", [with_another_key, with_another_declaration, with_another_record])
def test_a_renewal_signs_nothing_but_what_was_approved(world: World, change: Change) -> None:
    world.deploy()
    for ref in (WHOLE, BRANCH):
        world.send(ref, change(world.deployed()) if ref == WHOLE else world.files(WHOLE))
    break_main(world)
    before = world.refs()
    with pytest.raises(Refused) as refused:
        world.deploy(world.pass_time(DAY))
    assert refused.value.why is Why.DIGEST
    assert world.refs() == before
    if change is not with_another_record:
        mend_main(world)
        assert world.deploy().seq == 2, "a main that resolves needs nothing of what was changed"
        assert world.round()["athens"].seq == 2


@pytest.mark.rule("F3")
@pytest.mark.parametrize("change", [with_another_record, without_a_record])
def test_no_other_record_than_the_approved_one_is_resolved_with(world: World, change: Change) -> None:
    world.deploy()
    world.send(WHOLE, change(world.deployed()))
    with pytest.raises(Refused) as refused:
        world.deploy(world.pass_time(DAY))
    assert refused.value.why is Why.DIGEST


def test_a_deploy_that_another_key_signed_is_not_carried_on(world: World, tmp_path: Path) -> None:
    world.deploy()
    other = World.begin(tmp_path / "other")
    other.deploy()
    world.send(WHOLE, other.deployed())
    with pytest.raises(Refused) as refused:
        world.deploy(world.pass_time(DAY))
    assert refused.value.why is Why.SIGNATURE


def test_without_the_whole_the_branch_mends_it(world: World) -> None:
    world.deploy()
    before = world.refs()
    world.send(WHOLE, None)
    done = world.deploy()
    assert (done.seq, done.pushed) == (1, (WHOLE,))
    assert world.refs() == before


@pytest.mark.rule("F3")
def test_where_the_record_was_removed_nothing_is_given_out_anew(world: World) -> None:
    world.deploy()
    world.send(WHOLE, None)
    world.send(BRANCH, None)
    before = world.refs()
    with pytest.raises(Refused) as refused:
        world.deploy()
    assert refused.value.why is Why.MISSING
    assert world.refs() == before


# --- killed and racing deploys -------------------------------------------------------------------------


@pytest.mark.rule("S34")
def test_refs_that_a_killed_deploy_left_behind_are_mended(world: World) -> None:
    world.deploy()
    first = {ref: world.files(ref) for ref in world.refs("refs/gitmesh")}
    world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], "code.example.org")
    world.commit_push()
    world.deploy()
    good = {ref: world.files(ref) for ref in world.refs("refs/gitmesh")}
    behind = ("refs/gitmesh/fresh", "refs/gitmesh/shard/0", "refs/gitmesh/node/athens")
    for ref in behind:
        world.send(ref, first[ref])
    world.send("refs/gitmesh/node/sparta", None)
    world.send("refs/gitmesh/node/nobody", first["refs/gitmesh/node/athens"])
    branch = world.refs()[BRANCH]
    done = world.deploy()
    assert done.seq == 2
    assert set(done.pushed) == {*behind, "refs/gitmesh/node/sparta", "refs/gitmesh/node/nobody"}
    assert {ref: world.files(ref) for ref in world.refs("refs/gitmesh")} == good
    assert world.refs()[BRANCH] == branch
    assert world.deploy().pushed == ()


def test_a_broken_cache_is_made_anew(world: World) -> None:
    world.deploy()
    objects = [each for each in (world.folder / "controller.git/objects").rglob("*") if each.is_file()]
    assert objects
    for each in objects:
        # A new file, since this process may still have the old one mapped, and cut short it would end it.
        each.unlink()
        each.write_bytes(b"")
    assert (world.deploy().seq, world.deploy(world.pass_time(DAY)).seq) == (1, 2)


@pytest.mark.rule("S34")
def test_c71_the_second_of_two_deploys_resolves_anew_upon_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deploy()
    world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], "code.example.org")
    world.commit_push()
    push, other = transport.push, world.folder / "other.git"
    lost: list[Rejected] = []

    def too_late(
        cache: Path, origin: str, updates: list[Update], *, atomic: bool, access: Access | None
    ) -> None:
        monkeypatch.setattr(publishing, "push", push)
        assert world.deploy(cache=other).seq == 2
        with pytest.raises(Rejected) as raised:
            push(cache, origin, updates, atomic=atomic, access=access)
        lost.append(raised.value)
        raise raised.value

    monkeypatch.setattr(publishing, "push", too_late)
    # A clock that runs ahead, so that its documents are not the very same.
    late = world.deploy(world.now + 5)
    assert len(lost) == 1, "it did lose, and nothing was forced"
    assert (late.seq, late.pushed) == (2, ())
    before = world.refs()
    again = world.deploy()
    assert (again.seq, again.pushed) == (2, ())
    assert world.refs() == before


@pytest.mark.rule("S34")
def test_c71_the_end_is_that_of_one_after_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The loser saw an older main: what it publishes then is what a deploy after the winner would."""
    world.deploy()
    push = transport.push

    def overtaken(
        cache: Path, origin: str, updates: list[Update], *, atomic: bool, access: Access | None
    ) -> None:
        monkeypatch.setattr(publishing, "push", push)
        world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], "second.example.org")
        world.commit_push("second")
        assert world.deploy(cache=world.folder / "other.git").seq == 2
        push(cache, origin, updates, atomic=atomic, access=access)

    world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], "first.example.org")
    world.commit_push("first")
    monkeypatch.setattr(publishing, "push", overtaken)
    late = world.deploy(world.now + 5)
    assert late.commit == git(world.bare, "rev-parse", "main")
    assert b"second.example.org" in world.deployed()["nodes/athens/declaration.json"]
    assert world.deploy(world.now + 5).pushed == ()


def test_c71_a_deploy_that_always_loses_says_so_in_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def lost(*_: object, **__: object) -> None:
        tried.append("push")
        raise Rejected({"refs/heads/deploy": "stale info"})

    monkeypatch.setattr(publishing, "push", lost)
    with pytest.raises(Rejected):
        world.deploy()
    assert len(tried) == running.ATTEMPTS
    assert world.refs("refs/heads/deploy") == {}


@pytest.mark.rule("S34")
def test_two_controllers_at_once_lose_and_mix_nothing(world: World) -> None:
    world.deploy()

    def one(number: int) -> Deployed | Rejected:
        try:
            return world.deploy(world.now + number, world.folder / f"controller{number}.git")
        except Rejected as rejected:
            return rejected

    for round_ in range(2, 7):
        world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], f"git{round_}.example.org")
        world.commit_push()
        with ThreadPoolExecutor(2) as both:
            done = [each for each in both.map(one, (1, 2)) if isinstance(each, Deployed)]
        assert {each.seq for each in done} == {round_}
        assert world.deploy().pushed == ()
        assert world.files(WHOLE) == world.deployed()
        for ref, held in publishing.small_refs(world.deployed()).items():
            assert world.files(ref) == held
