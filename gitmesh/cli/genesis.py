"""The first keys of a mesh and of a node (C3, C8): made where they are used, written once."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from gitmesh import fsops
from gitmesh.cli.main import Failure, Misused
from gitmesh.cli.opened import Opened
from gitmesh.core.model import Keys
from gitmesh.core.seats import hold
from gitmesh.host.installed import ETC, NODE_FILE
from gitmesh.repo.edit import put, render
from gitmesh.trust.documents import DeployerRole, Role, Roles, VaultRole
from gitmesh.trust.keys import AgeKey, Key, KeyRefused, SealingKey, SigningKey, read_key, write_key
from gitmesh.trust.refused import Refused
from gitmesh.trust.root import genesis_root, open_root, sign_root
from gitmesh.vault.run import KEYS

ROOT_FILE = "trust/1.root.json"
CONTROLLER_KEY = f"{ETC}/controller/deploy.key"


@dataclass(frozen=True, slots=True)
class Begun:
    """What genesis made: the vault's node, each file with what it is, and the root's sha256."""

    node: str
    files: dict[str, str]
    sha256: str


def begin(opened: Opened, root: Path, root_key: Path | None, now: int) -> Begun:
    """Make the mesh's keys below `root` and its first root in the clone. Raises Failure."""
    if (opened.folder / ROOT_FILE).exists():
        raise Failure(
            f"{opened.folder / ROOT_FILE} is there already: this mesh has begun", "gitmesh genesis --show"
        )
    holders, _ = hold(opened.mesh)
    if "mesh-vault" not in holders:
        raise Failure(
            "nobody holds the seat `mesh-vault`", "gitmesh assign gitmesh-vault NODE --hold mesh-vault"
        )
    node = opened.mesh.assignments[holders["mesh-vault"]].node
    sign, seal, age = SigningKey.generate(), SealingKey.generate(), AgeKey.generate()
    recovery, controller = AgeKey.generate(), SigningKey.generate()
    roots = SigningKey.generate() if root_key is None else _read(root_key)
    made = {
        f"{KEYS}/sign": (sign, "the vault's signing key"),
        f"{KEYS}/seal": (seal, "the vault's sealing key"),
        f"{KEYS}/age": (age, "the vault's age key"),
        CONTROLLER_KEY: (controller, "the controller's key: it deploys and approves"),
        f"{ETC}/recovery.age": (recovery, "the recovery key: take it away, and keep it safe"),
    }
    if root_key is None:
        made[f"{ETC}/root.key"] = (roots, "the root's key: take it away, and keep it safe")
    there = [path for path in made if (root / path).exists()]
    if there:
        raise Failure(
            f"{root / there[0]} is there already, and no key is written over", f"ls -l {root / ETC}"
        )
    controlling = Role((controller.public_text,), 1)
    roles = Roles(
        Role((roots.public_text,), 1),
        controlling,
        DeployerRole(controlling.keys),
        VaultRole(sign.public_text, seal.public_text, age.public_text, 1, node),
    )
    blob = sign_root(genesis_root(opened.mesh.id, now, roles, [recovery.public_text]), [roots])
    for path, (key, _) in made.items():
        _make_private((root / path).parent)
        write_key(root / path, key)
    fsops.make_directory(opened.folder / "trust", 0o755)
    fsops.write(opened.folder / ROOT_FILE, blob, 0o644)
    files = {str(root / path): what for path, (_, what) in made.items()}
    files[str(opened.folder / ROOT_FILE)] = "the mesh's first root"
    return Begun(node, files, open_root(blob).digest)


def root_digest(folder: Path) -> str:
    """The sha256 of the first root's payload. Raises Failure."""
    try:
        return open_root((folder / ROOT_FILE).read_bytes()).digest
    except FileNotFoundError:
        raise Failure(f"{folder / ROOT_FILE} is not there", "gitmesh genesis") from None
    except Refused as wrong:
        raise Failure(f"{folder / ROOT_FILE}: {wrong.message}", f"git checkout -- {ROOT_FILE}") from None


def install(node: str, root: Path, origin: str, mailbox: str, root_sha256: str) -> Keys:
    """Make `root` the node `node`: its keys, if it has none, and what it pins. Raises Failure."""
    keys = root / ETC / "keys"
    _make_private(keys)
    sign = _own(keys / "sign", SigningKey)
    seal = _own(keys / "seal", SealingKey)
    said = {"node": node, "origin": origin, "mailbox": mailbox, "root_sha256": root_sha256}
    blob = "".join(f"{key}: {render(value)}\n" for key, value in said.items()).encode()
    path = root / NODE_FILE
    if path.exists() and path.read_bytes() != blob:
        raise Failure(f"{path} is there already and says otherwise", f"cat {shlex.quote(str(path))}")
    fsops.write(path, blob, 0o644)
    return Keys(sign.public_text, seal.public_text, 1)


def publish_keys(path: Path, keys: Keys) -> None:
    """Write a node's public keys into its file in a clone, which keeps its comments."""
    said = {"sign": keys.sign, "seal": keys.seal, "epoch": keys.epoch}
    path.write_bytes(put(path.read_bytes(), ["keys"], said))


def _own(path: Path, kind: type[Key]) -> Key:
    """The node's key of this kind, made where there is none."""
    try:
        return read_key(path, kind)
    except FileNotFoundError:
        key = kind.generate()
        write_key(path, key)
        return key
    except KeyRefused as wrong:
        raise Failure(wrong.message, wrong.fix) from None


def _read(path: Path) -> SigningKey:
    try:
        return read_key(path, SigningKey)
    except KeyRefused as wrong:
        raise Failure(wrong.message, wrong.fix) from None
    except OSError as wrong:
        raise Misused(f"{path}: {wrong.strerror}") from None


def _make_private(folder: Path) -> None:
    """A folder of keys, closed to others; those above it are made as they usually are."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            fsops.make_directory(each, 0o700 if each == folder else 0o755)
