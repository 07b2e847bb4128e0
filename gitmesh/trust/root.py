"""The root: who may sign what, how it is made, and how a newer one takes its place (SECURITY §1.2, §1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gitmesh import __version__
from gitmesh.trust.documents import (
    DeployerRole,
    Limits,
    Recovery,
    Role,
    Roles,
    Root,
    VaultRole,
    from_payload,
    signed,
)
from gitmesh.trust.envelope import Kind, open_envelope, read_unverified
from gitmesh.trust.keys import SigningKey, raw_sign
from gitmesh.trust.refused import Refused, Why

DAY = 86400
LIFETIME = 5 * 365 * DAY
"""For how long a root is valid unless it is made otherwise, in seconds."""
LIMITS = Limits(approval_max_age=90 * DAY, deploy_max_age=14 * DAY)
SIZE = 64 << 10
"""The longest root that is read, in bytes."""
KEYS = 32
"""How many keys a role may name."""
FIRST_CLIENT = "0.1.0"


@dataclass(frozen=True, slots=True)
class TrustedRoot:
    """A root that a node trusts, with its envelope and its payload's digest."""

    root: Root
    digest: str
    blob: bytes


def raw_keys(keys: Sequence[str]) -> tuple[bytes, ...]:
    """The raw bytes of a role's keys. Raises `KeyRefused`."""
    return tuple(raw_sign(each) for each in keys)


def merge_roles(controller: str, vault: VaultRole) -> Roles:
    """The roles of a mesh where a merge approves: the controller's key, `ed25519:…`, holds them all."""
    role = Role((controller,), 1)
    return Roles(role, role, DeployerRole((controller,)), vault)


def genesis_root(
    mesh: str,
    issued: int,
    roles: Roles,
    recovery: Sequence[str],
    limits: Limits = LIMITS,
    lifetime: int = LIFETIME,
    min_client: str = FIRST_CLIENT,
) -> Root:
    """The first root of a mesh. `mesh` is its id, `recovery` are age recipients, times are seconds.

    Raises `Refused` (malformed) where a role could never be met.
    """
    root = Root(
        mesh=mesh,
        issued=issued,
        version=1,
        expires=issued + lifetime,
        roles=roles,
        recovery=Recovery(tuple(recovery)),
        limits=limits,
        min_client=min_client,
    )
    _check_roles(root)
    return root


def sign_root(root: Root, keys: Sequence[SigningKey]) -> bytes:
    """The root's envelope; a later root is signed by the keys of the one before it too."""
    return signed(root, keys)


def open_root(blob: bytes) -> TrustedRoot:
    """A root that its own keys signed: says that it is whole, not that it is ours. Raises `Refused`."""
    payload = read_unverified(blob, Kind.ROOT, SIZE).payload
    root = from_payload(Root, payload)
    _check_roles(root)
    return TrustedRoot(root, _signed_by(root, blob), blob)


def pinned_root(blob: bytes, sha256: str) -> TrustedRoot:
    """The root that a node was enrolled with, by the digest it was given by hand. Raises `Refused`."""
    found = open_root(blob)
    if found.digest != sha256:
        raise Refused(Why.DIGEST, "root: not the one whose sha256 this node was given")
    return found


def next_root(current: TrustedRoot, blob: bytes) -> TrustedRoot:
    """The root after `current`: exactly one version on, signed by enough keys of both (S14).

    Raises `Refused`: malformed, kind, signature, threshold, version, mesh, root.
    """
    _signed_by(current.root, blob)
    new = open_root(blob)
    if new.root.mesh != current.root.mesh:
        raise Refused(Why.MESH, "root: made for another mesh")
    if new.root.version != current.root.version + 1:
        expected = current.root.version + 1
        raise Refused(Why.ROOT, f"root: version {new.root.version}, and {expected} comes next")
    return new


def check_root(root: Root, now: int, client: str = __version__) -> None:
    """Refuse an expired root, and one that asks for a newer gitmesh than `client` (S14, S65)."""
    if root.expires <= now:
        raise Refused(Why.EXPIRED, "root: expired")
    if _release(client) < _release(root.min_client):
        raise Refused(
            Why.MIN_CLIENT, f"root: asks for gitmesh {root.min_client}, and this is {client}: upgrade it"
        )


def _signed_by(root: Root, blob: bytes) -> str:
    """The digest of the root in `blob`, once the root role of `root` signed it."""
    role = root.roles.root
    return open_envelope(blob, Kind.ROOT, raw_keys(role.keys), role.threshold, SIZE).digest


def _check_roles(root: Root) -> None:
    """Refuse a root whose roles could never be met, or be met by one key counted twice."""
    roles = root.roles
    needs = {
        "root": (roles.root.keys, roles.root.threshold),
        "approver": (roles.approver.keys, roles.approver.threshold),
        "deployer": (roles.deployer.keys, 1),
    }
    for name, (keys, threshold) in needs.items():
        if len(keys) > KEYS or len(set(raw_keys(keys))) != len(keys) or len(keys) < threshold:
            raise Refused(
                Why.MALFORMED, f"root: the role {name} needs {threshold} to {KEYS} keys, each named once"
            )


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, `0.1.0.dev2` as 0.1.0, without zeros at the end."""
    numbers: list[int] = []
    for part in version.split("."):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
