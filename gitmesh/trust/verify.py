"""Whether what was fetched counts: the checks of a pull in order (SECURITY §1.6, steps 3 to 6, parts of 7).

Pure: bytes, what was trusted before and the time in; a verdict and new counters out. Everything is checked
again at each pull, against the newest root, whatever was accepted earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gitmesh import __version__
from gitmesh.core.contract import check_value
from gitmesh.core.declaration import AnswersSpec
from gitmesh.core.model import Json
from gitmesh.trust import canonical
from gitmesh.trust.counters import NEVER, Counters, Mark
from gitmesh.trust.documents import (
    SLICE,
    Answers,
    Approval,
    Deploy,
    Report,
    SealedHeader,
    Slice,
    State,
    VaultIndex,
    read_shard,
    read_signed,
    read_slice,
    shard_of,
)
from gitmesh.trust.keys import raw_sign
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import TrustedRoot, check_root, next_root, raw_keys

HEAD = 64 << 10
"""The longest approval, deploy or shard that is read, in bytes."""
DECLARATION = 4 << 20
MACHINE = 4 << 20
"""The longest document of the vault or of another node that is read."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a node fetched of the controller's; None where a file is missing. `roots` are by version."""

    approval: bytes | None
    deploy: bytes | None
    shard: bytes | None
    slice: bytes | None
    declaration: bytes | None
    roots: Mapping[int, bytes] = field(default_factory=dict)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Bundle:
        """From the files of the refs `fresh`, the shard and the node, put together."""
        names = ("approval.json", "deploy.json", "shard.json", "slice.json", "declaration.json")
        roots = {version: blob for path, blob in files.items() if (version := _root_version(path))}
        approval, deploy, shard, slice_, declaration = (files.get(name) for name in names)
        return cls(approval, deploy, shard, slice_, declaration, roots)

    def files(self) -> dict[str, bytes]:
        """The same, as files to keep."""
        found = {
            "approval.json": self.approval,
            "deploy.json": self.deploy,
            "shard.json": self.shard,
            "slice.json": self.slice,
            "declaration.json": self.declaration,
        }
        kept = {name: blob for name, blob in found.items() if blob is not None}
        return kept | {f"trust/{version}.root.json": blob for version, blob in self.roots.items()}


def _root_version(path: str) -> int:
    """The version that `trust/<version>.root.json` names; 0 for another path."""
    number = path.removeprefix("trust/").removesuffix(".root.json")
    plain = number.isascii() and number.isdigit() and len(number) < 10
    return int(number) if plain and path == f"trust/{int(number)}.root.json" else 0


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """A node's own public keys, `ed25519:…` and `x25519:…`; `epoch` None where it keeps none."""

    sign: str
    seal: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """What counts now, with the counters to keep. `declaration` is the approved bytes."""

    trusted: TrustedRoot
    approval: Approval
    approval_sha256: str
    deploy: Deploy
    deploy_sha256: str
    slice: Slice
    declaration: bytes
    counters: Counters

    @property
    def mesh(self) -> str:
        """The mesh's id."""
        return self.trusted.root.mesh


@dataclass(frozen=True, slots=True)
class Head:
    """The root, deploy and approval that count now, before any node's slice is looked at."""

    trusted: TrustedRoot
    approval: Approval
    approval_sha256: str
    deploy: Deploy
    deploy_sha256: str
    counters: Counters


def verify(
    bundle: Bundle,
    trusted: TrustedRoot,
    counters: Counters,
    node: str,
    keys: OwnKeys,
    now: int,
    client: str = __version__,
) -> Verified:
    """Steps 3 to 6 for the node `node` at the system's time `now`, in seconds.

    Raises `Refused` with any reason but those of sealed values and answers. The caller keeps running what it
    runs (75), and keeps the roots that `walk_roots` accepts even then.
    """
    head = verify_head(bundle, trusted, counters, now, client)
    mine = open_slice(head.approval, node, bundle.shard, bundle.slice)
    _check_own(mine, node, keys)
    declaration = _present(bundle.declaration, "the declaration", DECLARATION)
    if canonical.digest(declaration) != mine.declaration_sha256:
        raise Refused(Why.DIGEST, "the declaration: not the bytes that were approved")
    return Verified(
        head.trusted,
        head.approval,
        head.approval_sha256,
        head.deploy,
        head.deploy_sha256,
        mine,
        declaration,
        head.counters,
    )


def verify_head(
    bundle: Bundle, trusted: TrustedRoot, counters: Counters, now: int, client: str = __version__
) -> Head:
    """Steps 3 and 4, which need no node: the vault, a deploy and `status` start with it. Raises `Refused`."""
    trusted, counters, _ = walk_roots(trusted, bundle.roots, counters)
    now = max(now, counters.newest)
    root = trusted.root
    check_root(root, now, client)
    deploy, deploy_sha256 = _deploy(bundle.deploy, trusted, counters, now)
    approval, approval_sha256 = _approval(bundle.approval, trusted, deploy, counters, now)
    kept = replace(
        counters,
        approval=Mark(approval.seq, approval_sha256),
        deploy=Mark(deploy.seq, deploy_sha256),
        # The vault and the nodes have no part in this: their clocks must not stop the mesh's.
        newest=max(counters.newest, root.issued, approval.issued, deploy.issued),
    )
    return Head(trusted, approval, approval_sha256, deploy, deploy_sha256, kept)


def walk_roots(
    trusted: TrustedRoot, roots: Mapping[int, bytes], counters: Counters
) -> tuple[TrustedRoot, Counters, tuple[TrustedRoot, ...]]:
    """Step 3: from the trusted root to the newest of `roots`, one by one; also those accepted on the way.

    The caller keeps the result before it verifies anything else. Raises `Refused`.
    """
    if trusted.root.version < counters.root_version:
        raise Refused(Why.ROLLBACK, "root: older than the one this node trusted before")
    accepted: list[TrustedRoot] = []
    while (blob := roots.get(trusted.root.version + 1)) is not None:
        new = next_root(trusted, blob)
        counters = _after_root(counters, trusted, new)
        trusted = new
        accepted.append(new)
    return trusted, replace(counters, root_version=trusted.root.version), tuple(accepted)


def _after_root(counters: Counters, old: TrustedRoot, new: TrustedRoot) -> Counters:
    """A root that replaces a stolen key also undoes how far it ran ahead, in number and in time (S8)."""
    was, now = old.root.roles, new.root.roles
    newest = max(counters.newest, new.root.issued)
    if set(raw_keys(was.deployer.keys)) != set(raw_keys(now.deployer.keys)):
        counters, newest = replace(counters, deploy=NEVER), new.root.issued
    if was.vault.sign != now.vault.sign:
        counters = replace(counters, vault=NEVER)
    return replace(counters, newest=newest)


def _deploy(blob: bytes | None, trusted: TrustedRoot, counters: Counters, now: int) -> tuple[Deploy, str]:
    root = trusted.root
    keys = raw_keys(root.roles.deployer.keys)
    blob = _present(blob, "deploy.json", HEAD)
    deploy, digest = read_signed(Deploy, blob, root.mesh, keys, limit=HEAD)
    counters.deploy.advance(Mark(deploy.seq, digest), "deploy")
    _check_age("deploy", deploy.issued, deploy.expires, root.limits.deploy_max_age, now)
    if deploy.root_version != root.version:
        raise Refused(
            Why.ROOT, f"deploy: made under root {deploy.root_version}, and {root.version} is the newest here"
        )
    return deploy, digest


def _approval(
    blob: bytes | None, trusted: TrustedRoot, deploy: Deploy, counters: Counters, now: int
) -> tuple[Approval, str]:
    root = trusted.root
    role = root.roles.approver
    blob = _present(blob, "approval.json", HEAD)
    approval, digest = read_signed(Approval, blob, root.mesh, raw_keys(role.keys), role.threshold, HEAD)
    if (approval.seq, digest) != (deploy.approval_seq, deploy.approval_sha256):
        raise Refused(Why.DIGEST, "approval: not the one that the deploy names")
    counters.approval.advance(Mark(approval.seq, digest), "approval")
    _check_age("approval", approval.issued, approval.expires, root.limits.approval_max_age, now)
    return approval, digest


def _check_age(name: str, issued: int, expires: int, most: int, now: int) -> None:
    if expires <= now:
        raise Refused(Why.EXPIRED, f"{name}: expired; what runs keeps running")
    if not issued <= expires <= issued + most:
        raise Refused(Why.LIFETIME, f"{name}: valid for longer than the {most} seconds that the root allows")


def _present(blob: bytes | None, name: str, limit: int) -> bytes:
    if blob is None:
        raise Refused(Why.MISSING, f"{name}: missing; fetched by half")
    if len(blob) > limit:
        raise Refused(Why.MALFORMED, f"{name}: {len(blob)} bytes, and {limit} is the limit")
    return blob


def open_slice(approval: Approval, node: str, shard: bytes | None, slice_: bytes | None) -> Slice:
    """Step 5: the slice that `approval` holds of `node`, through its shard, whatever its state.

    Raises `Refused`: missing, malformed, digest, not-in-mesh.
    """
    count = len(approval.shards)
    if count.bit_count() != 1 or approval.shards.keys() != {str(each) for each in range(count)}:
        raise Refused(Why.MALFORMED, "approval: its shards are not numbered from 0 up to a power of two")
    shard = _present(shard, "the shard", HEAD)
    if canonical.digest(shard) != approval.shards[shard_of(node, count)]:
        raise Refused(Why.DIGEST, "the shard: not the bytes that were approved")
    approved = read_shard(shard, HEAD).get(node)
    if approved is None:
        raise Refused(Why.NOT_IN_MESH, f"{node}: the approval does not name it")
    slice_ = _present(slice_, "the slice", SLICE)
    if canonical.digest(slice_) != approved:
        raise Refused(Why.DIGEST, "the slice: not the bytes that were approved")
    found = read_slice(slice_)
    if found.node != node:
        raise Refused(Why.NOT_IN_MESH, f"{node}: its slice is another node's")
    return found


def _check_own(mine: Slice, node: str, keys: OwnKeys) -> None:
    """Step 6. A paused node is let through: its vault goes on, and its host looks at the slice's state."""
    if mine.state is State.REVOKED:
        raise Refused(Why.NOT_IN_MESH, f"{node}: revoked")
    if (mine.sign, mine.seal) != (keys.sign, keys.seal) or keys.epoch not in (None, mine.epoch):
        raise Refused(
            Why.NOT_MY_KEY, f"{node}: approved with other keys or another epoch than this node's own"
        )


# --- what the vault and other nodes wrote --------------------------------------------------------------


def verify_index(blob: bytes, verified: Verified, counters: Counters) -> tuple[VaultIndex, Counters]:
    """The vault's index for this node, and the counters with it. Raises `Refused`: malformed, kind,
    signature, version, mesh, epoch, not-in-mesh, rollback, equivocation (S3)."""
    vault = verified.trusted.root.roles.vault
    index, digest = read_signed(VaultIndex, blob, verified.mesh, [raw_sign(vault.sign)], limit=MACHINE)
    if index.node != verified.slice.node:
        raise Refused(Why.NOT_IN_MESH, "vault-index: made for another node")
    if index.epoch != vault.epoch:
        raise Refused(Why.EPOCH, f"vault-index: of epoch {index.epoch}, and the root says {vault.epoch}")
    mark = counters.vault.advance(Mark(index.seq, digest, index.epoch), "vault-index")
    for secret, entry in index.secrets.items():
        if entry.version < counters.secrets.get(secret, 0):
            raise Refused(Why.ROLLBACK, f"vault-index: an older version of {secret} than was seen before")
    versions = {secret: entry.version for secret, entry in index.secrets.items()}
    return index, replace(counters, vault=mark, secrets={**counters.secrets, **versions})


def expected_header(
    verified: Verified, index: VaultIndex, secret: str, following: bool = False
) -> SealedHeader:
    """Where the value of `secret` that `index` names must have been sealed to; `following`: the one that a
    rotation moves to. Raises `Refused`: recipient where the approval gives this node no such secret, missing
    where the vault has no such value yet."""
    mine = verified.slice
    approved = mine.secrets.get(secret)
    if approved is None or approved.role is None:
        raise Refused(Why.RECIPIENT, f"{secret}: not approved for {mine.node}")
    entry = index.secrets.get(secret)
    value = None if entry is None else entry.next if following else entry
    if value is None:
        raise Refused(Why.MISSING, f"{secret}: the vault has sealed no such value yet")
    return SealedHeader(
        mesh=verified.mesh,
        node=mine.node,
        node_epoch=mine.epoch,
        vault_epoch=verified.trusted.root.roles.vault.epoch,
        secret=secret,
        assignment=approved.assignment,
        field=approved.field,
        slot=value.slot,
        version=value.version,
    )


def verify_answers(
    blob: bytes, verified: Verified, from_node: str, counters: Counters
) -> tuple[Answers, Counters]:
    """What `from_node` answers this node, and the counters with it (F4, S19). Raises `Refused`: malformed,
    kind, signature, version, mesh, epoch, not-in-mesh, rollback, equivocation."""
    mine = verified.slice
    source = mine.answers_from.get(from_node)
    if source is None:
        raise Refused(Why.NOT_IN_MESH, f"answers of {from_node}: nothing approved asks it anything")
    answers, digest = read_signed(Answers, blob, verified.mesh, [raw_sign(source.sign)], limit=MACHINE)
    if answers.node != from_node or answers.for_ != mine.node:
        raise Refused(Why.NOT_IN_MESH, f"answers of {from_node}: by or for another node")
    if answers.epoch != source.epoch:
        raise Refused(Why.EPOCH, f"answers of {from_node}: of another epoch than was approved")
    return answers, counters.answered(from_node, Mark(answers.seq, digest, answers.epoch))


def take_answers(
    answers: Answers, declared: Mapping[str, AnswersSpec]
) -> tuple[dict[str, dict[str, Json]], tuple[Refused, ...]]:
    """The answered fields by the consumer's requirement (`gitea@athens.stats`), of those that `declared` says
    this node gives; and a refusal (fields) for each requirement outside its contract (S20)."""
    taken: dict[str, dict[str, Json]] = {}
    refusals: list[Refused] = []
    for to, spec in sorted(declared.items()):
        assignment, _, requirement = to.rpartition(".")
        fields = answers.assignments.get(assignment, {}).get(requirement)
        if spec.node != answers.node or fields is None:
            continue
        wrong = list(_wrong_fields(spec, fields))
        if wrong:
            refusals.append(Refused(Why.FIELDS, f"{to}: answered by {spec.by} with {'; '.join(wrong)}"))
        else:
            taken[to] = dict(fields)
    return taken, tuple(refusals)


def _wrong_fields(spec: AnswersSpec, fields: Mapping[str, Json]) -> Iterator[str]:
    """What is wrong, without a word of the provider's: a name of its making could be anything."""
    if fields.keys() - spec.fields.keys():
        yield "a field that its contract does not have"
    for name, schema in sorted(spec.fields.items()):
        if name not in fields:
            yield f"no {name}"
        elif check_value(schema, fields[name]) is not None:
            yield f"a {name} that its contract does not allow"


def verify_report(blob: bytes, of: Slice, mesh: str) -> tuple[Report, str]:
    """A node's report, by its approved slice, and its digest. Raises `Refused`: malformed, kind, signature,
    version, mesh, epoch."""
    report, digest = read_signed(Report, blob, mesh, [raw_sign(of.sign)], limit=MACHINE)
    if (report.node, report.epoch) != (of.node, of.epoch):
        raise Refused(Why.EPOCH, f"report of {of.node}: of another node or epoch")
    return report, digest
