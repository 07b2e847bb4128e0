"""What each trust document says (SECURITY §1.5): the nouns, and the one way to bytes and back.

Signed documents are opened with the keys that may sign them (`read_signed`); plain ones are bound by a digest
that a signed one holds (`read_slice`, `read_shard`). Nothing here decides whether a document counts:
`verify` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

from gitmesh.core.model import Json
from gitmesh.trust import canonical, shape
from gitmesh.trust.canonical import NotCanonical
from gitmesh.trust.envelope import Kind, open_envelope, sign
from gitmesh.trust.keys import Algorithm, KeyRefused, PublicKey, SigningKey
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.shape import AtLeast, Matches, Misshapen


@dataclass(frozen=True, slots=True)
class KeyOf:
    """The rule of a text that spells a public key."""

    algorithm: Algorithm

    def check(self, value: Json) -> str | None:
        """What was expected, where `value` is not that."""
        try:
            PublicKey.parse(value, self.algorithm)
        except KeyRefused:
            return f"{self.algorithm}:<base64>"
        return None


VERSION = 1
"""The `v` of every signed payload that this gitmesh reads."""

SLICE = 16 << 20
"""The longest slice that is read, in bytes: the vault's names every secret of the mesh."""

Digest = Annotated[str, Matches(r"[0-9a-f]{64}", "a sha256 in lower-case hex")]
Previous = Annotated[str, Matches(r"([0-9a-f]{64})?", "a sha256 in lower-case hex, or nothing")]
Commit = Annotated[str, Matches(r"[0-9a-f]{40}([0-9a-f]{24})?", "a git object id")]
MeshId = Annotated[str, Matches(r"[0-9a-f]{32}", "a mesh id, 32 hex digits")]
Name = Annotated[str, Matches(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "a name")]
AssignmentId = Annotated[str, Matches(r"[a-z0-9-]{1,63}@[a-z0-9-]{1,63}", "module@node")]
SecretId = Annotated[
    str,
    Matches(
        r"[a-z0-9-]{1,63}@[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})?",
        "module@node.requirement, of a hash with .field",
    ),
]
SignKey = Annotated[str, KeyOf(Algorithm.ED25519)]
SealKey = Annotated[str, KeyOf(Algorithm.X25519)]
AgeRecipient = Annotated[str, Matches(r"age1[a-z0-9]{10,4000}", "an age recipient")]
Release = Annotated[str, Matches(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", "a version such as 1.2.0")]
Word = Annotated[str, Matches(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}", "a word")]
Slot = Annotated[str, Matches(r"[a-z]", "a slot, a or b")]
Shard = Annotated[str, Matches(r"0|[1-9][0-9]{0,5}", "a shard's number")]
Count = Annotated[int, AtLeast(1)]
Number = Annotated[int, AtLeast(0)]
Time = Annotated[int, AtLeast(0)]
"""Seconds since 1970, UTC."""


# --- root ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Role:
    """Who may sign: `threshold` of these keys, each counted once."""

    keys: tuple[SignKey, ...]
    threshold: Count


@dataclass(frozen=True, slots=True)
class DeployerRole:
    """Who signs deploys: any one of these keys."""

    keys: tuple[SignKey, ...]


@dataclass(frozen=True, slots=True)
class VaultRole:
    """The vault: what it signs with, what is sealed to it, its epoch and the node it runs on."""

    sign: SignKey
    seal: SealKey
    age: AgeRecipient
    epoch: Count
    node: Name


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of a mesh (SECURITY §1.2)."""

    root: Role
    approver: Role
    deployer: DeployerRole
    vault: VaultRole


@dataclass(frozen=True, slots=True)
class Recovery:
    """Who can read the vault's store beside the vault."""

    age: tuple[AgeRecipient, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """For how long, in seconds, an approval and a deploy may be valid at most."""

    approval_max_age: Count
    deploy_max_age: Count


@dataclass(frozen=True, slots=True)
class Root:
    """Who may sign what in a mesh: `trust/<version>.root.json`."""

    KIND: ClassVar[Kind] = Kind.ROOT
    mesh: MeshId
    issued: Time
    version: Count
    expires: Time
    roles: Roles
    recovery: Recovery
    limits: Limits
    min_client: Release


# --- what the controller publishes ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """The commit of main that an approval came from, and its tree."""

    commit: Commit
    tree: Commit


@dataclass(frozen=True, slots=True)
class Approval:
    """What may run, through the digests of its shards: `approval.json`. `prev` is empty at seq 1."""

    KIND: ClassVar[Kind] = Kind.APPROVAL
    mesh: MeshId
    issued: Time
    seq: Count
    prev: Previous
    expires: Time
    source: Source
    resolver_spec: Word
    record_sha256: Digest
    shards: Mapping[Shard, Digest]


@dataclass(frozen=True, slots=True)
class Deploy:
    """Which approval is the newest, and that it still is: `deploy.json`."""

    KIND: ClassVar[Kind] = Kind.DEPLOY
    mesh: MeshId
    issued: Time
    seq: Count
    prev: Previous
    root_version: Count
    approval_seq: Count
    approval_sha256: Digest
    expires: Time


class State(StrEnum):
    """What a node may do: all, nothing new for now, or nothing any more."""

    ACTIVE = "active"
    PAUSED = "paused"
    REVOKED = "revoked"


class SecretKind(StrEnum):
    """Where a secret comes from: the vault makes it, an operator hands it, a provider's backend issues it, or
    the vault hashes another."""

    MADE = "made"
    HANDED = "handed"
    ISSUED = "issued"
    HASHED = "hashed"


class SecretRole(StrEnum):
    """What a recipient does with a secret: presents it, sets it at a backend, or it is the module's own."""

    PRESENT = "present"
    APPLY = "apply"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A node that a secret is sealed to; its key and epoch stand in its own slice."""

    node: Name
    role: SecretRole


@dataclass(frozen=True, slots=True)
class SliceSecret:
    """A secret, in the slice of a node that receives it or of the vault's node.

    `schema`, `form`, `length` are what its value must be (the contract's field as narrowed), `takes` and
    `rotation` how it may change, `applier` the provider assignment that sets it. A hash is `of` the secret
    that it hashes, in the way of its `form`. `role` is this node's own; only the vault's slice has
    `recipients`.
    """

    kind: SecretKind
    generation: Number
    contract_sha256: Digest
    assignment: AssignmentId
    field: Word
    schema: Mapping[str, Any]
    form: Word
    takes: Word
    rotation: Word
    length: Count | None = None
    applier: AssignmentId | None = None
    of: SecretId | None = None
    logins: tuple[Word, Word] | None = None
    handed_sha256: Digest | None = None
    role: SecretRole | None = None
    recipients: tuple[Recipient, ...] | None = None
    abandon: bool | None = None


@dataclass(frozen=True, slots=True)
class AnswersFrom:
    """The key and epoch that a provider's node signs its answers with."""

    sign: SignKey
    epoch: Count


@dataclass(frozen=True, slots=True)
class Slice:
    """What an approval says of one node: `slice.json`, plain, bound by its shard."""

    node: Name
    sign: SignKey
    seal: SealKey
    epoch: Count
    state: State
    declaration_sha256: Digest
    grants: Mapping[AssignmentId, tuple[str, ...]]
    answers_from: Mapping[Name, AnswersFrom]
    secrets: Mapping[SecretId, SliceSecret]


# --- what the vault and the nodes write ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NextValue:
    """The value that a rotation moves to."""

    slot: Slot
    version: Count


@dataclass(frozen=True, slots=True)
class IndexSecret:
    """Which value of a secret is current, and where its rotation stands."""

    slot: Slot
    version: Count
    phase: Word
    next: NextValue | None = None


@dataclass(frozen=True, slots=True)
class VaultIndex:
    """The values that the vault has sealed for one node: `index.json`."""

    KIND: ClassVar[Kind] = Kind.VAULT_INDEX
    mesh: MeshId
    issued: Time
    node: Name
    epoch: Count
    seq: Count
    approval_seq: Count
    secrets: Mapping[SecretId, IndexSecret]


@dataclass(frozen=True, slots=True)
class SealedHeader:
    """Where a sealed value belongs; all of it is bound inside the ciphertext too (SECURITY §2)."""

    mesh: MeshId
    node: Name
    node_epoch: Count
    vault_epoch: Count
    secret: SecretId
    assignment: AssignmentId
    field: Word
    slot: Slot
    version: Count


@dataclass(frozen=True, slots=True)
class Answers:
    """What providers on `node` answer consumers on the node `for_`: by the consumer's assignment and its
    requirement, the fields."""

    KIND: ClassVar[Kind] = Kind.ANSWERS
    mesh: MeshId
    issued: Time
    node: Name
    epoch: Count
    seq: Count
    approval_seq: Number
    for_: Name
    assignments: Mapping[AssignmentId, Mapping[Name, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Confirms:
    """What a node confirms to the vault; `ct` is sealed to it (`seal.open_confirms`)."""

    KIND: ClassVar[Kind] = Kind.CONFIRMS
    mesh: MeshId
    issued: Time
    node: Name
    epoch: Count
    seq: Count
    ct: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """What a node did with one value: it set it, authenticated with it, stopped using any other."""

    slot: Slot
    version: Count
    applied: bool | None = None
    authenticated: bool | None = None
    stopped: bool | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The declaration that a node runs, and how applying it went."""

    sha256: Digest
    result: Word


@dataclass(frozen=True, slots=True)
class ReportedWait:
    """`assignment` waits on `on` for `requirement`, since the pull that found it first."""

    assignment: str
    on: str
    requirement: str
    since: Time | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """What could not be applied, and why; never with a value in it."""

    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a node tells people: the deploy it saw, what it runs, what waits, failed, drifted, is orphaned."""

    KIND: ClassVar[Kind] = Kind.REPORT
    mesh: MeshId
    issued: Time
    node: Name
    epoch: Count
    seq: Count
    deploy_seq: Number
    deploy_sha256: Previous
    waiting: tuple[ReportedWait, ...]
    failed: tuple[Failed, ...]
    drift: tuple[str, ...]
    orphans: tuple[str, ...]
    client: Word
    applied: Applied | None = None
    remarks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Enrol:
    """A node's keys, signed by its new key and its token's (SECURITY §1.5)."""

    KIND: ClassVar[Kind] = Kind.ENROL
    mesh: MeshId
    issued: Time
    node: Name
    epoch: Count
    sign: SignKey
    seal: SealKey


# --- bytes ---------------------------------------------------------------------------------------------


class Signed(Protocol):
    """A document that is signed, or whose payload is."""

    KIND: ClassVar[Kind]

    @property
    def mesh(self) -> str:
        """The id of the mesh it is for."""


Document = TypeVar("Document", bound=Signed)


def payload_of(document: Signed) -> dict[str, Json]:
    """The payload that says `document`."""
    return {"v": VERSION, **shape.to_json(document)}


def signed(document: Signed, keys: Sequence[SigningKey]) -> bytes:
    """`document` as an envelope signed by each of `keys`. Raises `NotCanonical`."""
    return sign(document.KIND, payload_of(document), keys)


def from_payload(kind: type[Document], payload: Mapping[str, Json]) -> Document:
    """The document that an opened payload says. Raises `Refused`: version, malformed."""
    name = kind.KIND
    check_version(payload, name)
    try:
        return shape.from_json(kind, {key: each for key, each in payload.items() if key != "v"}, name)
    except Misshapen as wrong:
        raise Refused(Why.MALFORMED, str(wrong)) from None


def check_version(payload: Mapping[str, Json], name: str) -> None:
    """Refuse a payload of a format that this gitmesh does not read (S65)."""
    version = payload.get("v")
    if type(version) is not int:
        raise Refused(Why.MALFORMED, f"{name}: v is missing")
    if version != VERSION:
        raise Refused(Why.VERSION, f"{name}: format {version}, and this gitmesh reads {VERSION}: upgrade it")


def read_signed(
    kind: type[Document],
    blob: bytes,
    mesh: str,
    keys: Collection[bytes],
    threshold: int = 1,
    limit: int = canonical.LIMIT,
) -> tuple[Document, str]:
    """The document, and its payload's digest, once `threshold` of the raw `keys` signed it for `mesh`.

    Raises `Refused`: malformed, kind, signature, threshold, version, mesh.
    """
    opened = open_envelope(blob, kind.KIND, keys, threshold, limit)
    document = from_payload(kind, opened.payload)
    if document.mesh != mesh:
        raise Refused(Why.MESH, f"{kind.KIND}: made for another mesh")
    return document, opened.digest


def plain(document: Slice | Mapping[str, str]) -> bytes:
    """The bytes of a slice or a shard. Raises `NotCanonical`."""
    return canonical.encode(shape.to_json(document))


def read_slice(blob: bytes, limit: int = SLICE) -> Slice:
    """The slice that `blob` says. Raises `Refused`: malformed."""
    found: Slice = _read_plain(Slice, blob, "slice", limit)
    return found


def read_shard(blob: bytes, limit: int = canonical.LIMIT) -> Mapping[str, str]:
    """The shard that `blob` says: by node, the digest of its slice. Raises `Refused`: malformed."""
    shard: Mapping[str, str] = _read_plain(Mapping[Name, Digest], blob, "shard", limit)
    return shard


def _read_plain(kind: Any, blob: bytes, name: str, limit: int) -> Any:
    try:
        return shape.from_json(kind, canonical.decode(blob, limit), name)
    except NotCanonical as wrong:
        raise Refused(Why.MALFORMED, f"{name}: {wrong}") from None
    except Misshapen as wrong:
        raise Refused(Why.MALFORMED, str(wrong)) from None


def shard_of(node: str, count: int) -> str:
    """The shard of `count` that names a node's slice (SECURITY §1.3)."""
    return str(int.from_bytes(hashlib.sha256(node.encode()).digest(), "big") % count)


def sealed_name(secret: str, slot: str) -> str:
    """The path of a sealed value below its node's `sealed` ref."""
    return f"sealed/{secret}.{slot}.json"
