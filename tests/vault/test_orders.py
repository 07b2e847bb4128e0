"""The vault takes orders from approvals and the root, and from nowhere else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest

from gitmesh.core.model import Json
from gitmesh.repo.transport import RepoError
from gitmesh.trust import canonical
from gitmesh.trust.documents import payload_of
from gitmesh.trust.envelope import Kind, read_unverified, sign
from gitmesh.trust.keys import SealingKey, SigningKey
from gitmesh.trust.refused import Refused
from gitmesh.trust.root import genesis_root, sign_root
from tests.vault.vaulted import (
    FRESH,
    OWN,
    SHARD,
    SUPERUSER,
    WHOLE,
    given,
    kept,
    opened,
    sealed,
)
from tests.world import DATABASE, DAY, World


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
