"""A mesh of two nodes and everything that is signed in it, for the tests of `gitmesh.trust`.

`athens` runs app@athens, a consumer; `sparta` holds the vault and provides. One controller key is deployer
and approver unless a test says otherwise. Each builder takes changes by name, so that a test shows what is
wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gitmesh.core.declaration import AnswersSpec
from gitmesh.trust import canonical, seal
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import (
    Answers,
    AnswersFrom,
    Approval,
    Confirm,
    Deploy,
    IndexSecret,
    Recipient,
    Report,
    Role,
    Root,
    SealedHeader,
    SecretKind,
    SecretRole,
    Slice,
    SliceSecret,
    Source,
    State,
    VaultIndex,
    VaultRole,
    plain,
    shard_of,
    signed,
)
from gitmesh.trust.keys import SealingKey, SigningKey
from gitmesh.trust.root import TrustedRoot, genesis_root, merge_roles, open_root, sign_root
from gitmesh.trust.secret import Secret
from gitmesh.trust.verify import Bundle, OwnKeys, Verified, verify

DAY = 86400
NOW = 1_800_000_000
MESH = "7f" * 16
PASSWORD = "app@athens.database"
COOKIE = "app@athens.cookie"
VALUES = {PASSWORD: "GMCANARYpassword", COOKIE: "GMCANARYcookie"}
RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"


def signing(name: str) -> SigningKey:
    """A signing key that is the same in each run."""
    return SigningKey(hashlib.sha256(f"GMCANARY sign {name}".encode()).digest())


def sealing(name: str) -> SealingKey:
    """A sealing key that is the same in each run."""
    return SealingKey(hashlib.sha256(f"GMCANARY seal {name}".encode()).digest())


CONTROLLER, VAULT = signing("controller"), signing("vault")
SIGN = {"athens": signing("athens"), "sparta": signing("sparta")}
SEAL = {"athens": sealing("athens"), "sparta": sealing("sparta")}
VAULT_SEAL = sealing("vault")
STRANGER = signing("stranger")


# --- the root ------------------------------------------------------------------------------------------


def root(
    root_keys: Sequence[SigningKey] = (CONTROLLER,),
    root_threshold: int = 1,
    approvers: Sequence[SigningKey] = (CONTROLLER,),
    threshold: int = 1,
    deployer: SigningKey = CONTROLLER,
    vault: SigningKey = VAULT,
    vault_epoch: int = 1,
    **changes: Any,
) -> Root:
    """A root that says so; `changes` replace its own fields."""
    vault_role = VaultRole(vault.public_text, VAULT_SEAL.public_text, RECIPIENT, vault_epoch, "sparta")
    roles = replace(
        merge_roles(deployer.public_text, vault_role),
        root=Role(tuple(key.public_text for key in root_keys), root_threshold),
        approver=Role(tuple(key.public_text for key in approvers), threshold),
    )
    return replace(genesis_root(MESH, NOW, roles, [RECIPIENT]), **changes)


def trusted(*signers: SigningKey, **changes: Any) -> TrustedRoot:
    """Such a root, signed by the controller or by `signers`."""
    return open_root(sign_root(root(**changes), signers or (CONTROLLER,)))


# --- what the controller publishes ---------------------------------------------------------------------

DECLARATION = canonical.encode({"v": 1, "node": "athens", "text": "with holes"})
OTHER_DECLARATION = canonical.encode({"v": 1, "node": "sparta", "text": "another's"})
SITE = AnswersSpec("umami@sparta", "sparta", {"site": {"type": "string", "pattern": "[a-z]+"}})
DECLARED = {"app@athens.stats": SITE, "app@athens.search": SITE}


def slice_secret(name: str, **changes: Any) -> SliceSecret:
    """What a slice says of a secret."""
    field = "password" if name == PASSWORD else "value"
    role = SecretRole.PRESENT if name == PASSWORD else SecretRole.OWN
    schema = {"type": "string"}
    whole = SliceSecret(
        kind=SecretKind.MADE,
        generation=0,
        contract_sha256=canonical.digest(canonical.encode(schema)),
        assignment="app@athens",
        field=field,
        schema=schema,
        form="alnum",
        takes="start",
        rotation="two" if name == PASSWORD else "in-place",
        length=43,
        applier="postgres@sparta" if name == PASSWORD else None,
        logins=("app_athens_a", "app_athens_b") if name == PASSWORD else None,
        role=role,
    )
    return replace(whole, **changes)


def slice_of(node: str, /, **changes: Any) -> Slice:
    """A node's slice."""
    if node == "athens":
        secrets = {name: slice_secret(name) for name in VALUES}
        answers_from = {"sparta": AnswersFrom(SIGN["sparta"].public_text, 1)}
        declaration = DECLARATION
    else:
        recipients = (Recipient("athens", SecretRole.PRESENT), Recipient("sparta", SecretRole.APPLY))
        secrets = {
            PASSWORD: slice_secret(PASSWORD, role=SecretRole.APPLY, recipients=recipients),
            COOKIE: slice_secret(COOKIE, role=None, recipients=(Recipient("athens", SecretRole.OWN),)),
        }
        answers_from = {}
        declaration = OTHER_DECLARATION
    whole = Slice(
        node=node,
        sign=SIGN[node].public_text,
        seal=SEAL[node].public_text,
        epoch=1,
        state=State.ACTIVE,
        declaration_sha256=canonical.digest(declaration),
        grants={},
        answers_from=answers_from,
        secrets=secrets,
    )
    return replace(whole, **changes)


class World:
    """One deploy, and how it is signed. Set an attribute before `bundle` to have it otherwise."""

    def __init__(self, seq: int = 1, approval_seq: int = 1) -> None:
        self.slices = {node: slice_of(node) for node in SIGN}
        self.approval: dict[str, Any] = {"seq": approval_seq}
        self.deploy: dict[str, Any] = {"seq": seq}
        self.approvers: Sequence[SigningKey] = (CONTROLLER,)
        self.deployer = CONTROLLER
        self.roots: dict[int, bytes] = {}

    def shards(self) -> dict[str, bytes]:
        """The shards, by number; there is one."""
        listed = {node: canonical.digest(plain(each)) for node, each in self.slices.items()}
        return {"0": plain({node: listed[node] for node in listed if shard_of(node, 1) == "0"})}

    def approval_document(self) -> Approval:
        """The approval."""
        whole = Approval(
            mesh=MESH,
            issued=NOW,
            seq=1,
            prev="",
            expires=NOW + 30 * DAY,
            source=Source("c" * 40, "d" * 40),
            resolver_spec="1",
            record_sha256="e" * 64,
            shards={number: canonical.digest(blob) for number, blob in self.shards().items()},
        )
        return replace(whole, **self.approval)

    def bundle(self, node: str = "athens") -> Bundle:
        """What `node` fetches."""
        approval = signed(self.approval_document(), self.approvers)
        payload = canonical.from_base64(canonical.decode(approval)["payload"])
        whole = Deploy(
            mesh=MESH,
            issued=NOW,
            seq=1,
            prev="",
            root_version=1,
            approval_seq=self.approval_document().seq,
            approval_sha256=canonical.digest(payload),
            expires=NOW + DAY,
        )
        return Bundle(
            approval=approval,
            deploy=signed(replace(whole, **self.deploy), [self.deployer]),
            shard=self.shards()["0"],
            slice=plain(self.slices[node]),
            declaration=DECLARATION if node == "athens" else OTHER_DECLARATION,
            roots=self.roots,
        )


def own_keys(node: str = "athens", **changes: Any) -> OwnKeys:
    """The keys that a node has."""
    return replace(OwnKeys(SIGN[node].public_text, SEAL[node].public_text, 1), **changes)


FRESH = Counters(root_version=1)


def pull(
    bundle: Bundle,
    counters: Counters = FRESH,
    now: int = NOW + 5,
    node: str = "athens",
    start: TrustedRoot | None = None,
    **more: Any,
) -> Verified:
    """`verify`, as that node."""
    return verify(bundle, start or trusted(), counters, node, own_keys(node), now, **more)


# --- what the vault and the nodes write ----------------------------------------------------------------


def index(signer: SigningKey = VAULT, versions: Mapping[str, int] | None = None, **changes: Any) -> bytes:
    """The vault's index for athens."""
    entries = {name: IndexSecret("a", 1, "idle") for name in VALUES}
    entries |= {name: IndexSecret("a", version, "idle") for name, version in (versions or {}).items()}
    whole = VaultIndex(MESH, NOW, "athens", 1, 1, 1, entries)
    return signed(replace(whole, **changes), [signer])


def header(name: str = PASSWORD, **changes: Any) -> SealedHeader:
    """Where a value of athens belongs."""
    field = "password" if name == PASSWORD else "value"
    return replace(SealedHeader(MESH, "athens", 1, 1, name, "app@athens", field, "a", 1), **changes)


def sealed(
    where: SealedHeader, value: str = VALUES[PASSWORD], to: str = "athens", signer: SigningKey = VAULT
) -> bytes:
    """A value sealed for the place `where`."""
    return seal.seal(where, Secret(value), SEAL[to].public, signer)


def answers(signer: SigningKey | None = None, fields: Any = None, **changes: Any) -> bytes:
    """What sparta answers athens."""
    given = {"stats": {"site": "abc"}} if fields is None else fields
    whole = Answers(MESH, NOW, "sparta", 1, 1, 1, "athens", {"app@athens": given})
    return signed(replace(whole, **changes), [signer or SIGN["sparta"]])


def report(signer: SigningKey | None = None, **changes: Any) -> bytes:
    """What athens reports."""
    whole = Report(MESH, NOW, "athens", 1, 1, 1, "a" * 64, (), (), (), (), "0.1.0")
    return signed(replace(whole, **changes), [signer or SIGN["athens"]])


def confirms(signer: SigningKey | None = None, node: str = "athens", epoch: int = 1, seq: int = 1) -> bytes:
    """What athens confirms to the vault."""
    confirmed = {PASSWORD: Confirm("a", 1, authenticated=True)}
    key = signer or SIGN[node]
    return seal.seal_confirms(confirmed, MESH, NOW, node, epoch, seq, key, VAULT_SEAL.public)
