"""The first keys of a mesh and of a node (C3, C8): made where they are used, written once."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from gitmesh import fsops
from gitmesh.cli.main import Failure, Misused, nearest
from gitmesh.cli.opened import Opened
from gitmesh.core.model import Keys, Mesh
from gitmesh.core.seats import hold
from gitmesh.host.installed import ETC, NODE_FILE, NotInstalled, read_installed
from gitmesh.repo.edit import put, render
from gitmesh.repo.transport import without_credentials
from gitmesh.trust.documents import DeployerRole, Role, Roles, VaultRole
from gitmesh.trust.keys import AgeKey, Key, KeyRefused, SealingKey, SigningKey, read_key, write_key
from gitmesh.trust.refused import Refused
from gitmesh.trust.root import genesis_root, open_root, sign_root
from gitmesh.vault.run import KEYS

ROOT_FILE = "trust/1.root.json"
CONTROLLER_KEY = f"{ETC}/controller/deploy.key"
RECOVERY_KEY = f"{ETC}/recovery.age"
ROOT_KEY = f"{ETC}/root.key"
_FILES = {
    f"{KEYS}/sign": "the vault's signing key",
    f"{KEYS}/seal": "the vault's sealing key",
    f"{KEYS}/age": "the vault's age key",
    CONTROLLER_KEY: "the controller's key: it deploys and approves",
    RECOVERY_KEY: "the recovery key: take it away, and keep it safe",
}


@dataclass(frozen=True, slots=True)
class Begun:
    """What genesis made: the vault's node, each file with what it is, the root's sha256, and the files that
    were there already and are used."""

    node: str
    files: dict[str, str]
    sha256: str
    kept: frozenset[str] = frozenset()


def begin(opened: Opened, root: Path, root_key: Path | None, now: int) -> Begun:
    """Make the mesh's keys below `root` and its first root in the clone. Raises Failure.

    The root is written last, so that a genesis that was interrupted is run again: it takes up the keys that
    are there and writes over none.
    """
    if (opened.folder / ROOT_FILE).exists():
        raise Failure(
            f"{opened.folder / ROOT_FILE} is there already: this mesh has begun", "gitmesh genesis --show"
        )
    node = _vault_node(opened.mesh)
    roots = None if root_key is None else _read(root_key)
    kept: set[str] = set()

    def key(path: str, kind: type[Key]) -> Key:
        held = _there(root / path, kind)
        if held is not None:
            kept.add(str(root / path))
            return held
        made = kind.generate()
        _make_private((root / path).parent)
        write_key(root / path, made)
        return made

    sign, seal = key(f"{KEYS}/sign", SigningKey), key(f"{KEYS}/seal", SealingKey)
    age, recovery = key(f"{KEYS}/age", AgeKey), key(RECOVERY_KEY, AgeKey)
    controller = key(CONTROLLER_KEY, SigningKey)
    files = {str(root / path): what for path, what in _FILES.items()}
    if roots is None:
        roots = key(ROOT_KEY, SigningKey)
        files[str(root / ROOT_KEY)] = "the root's key: take it away, and keep it safe"
    controlling = Role((controller.public_text,), 1)
    roles = Roles(
        Role((roots.public_text,), 1),
        controlling,
        DeployerRole(controlling.keys),
        VaultRole(sign.public_text, seal.public_text, age.public_text, 1, node),
    )
    blob = sign_root(genesis_root(opened.mesh.id, now, roles, [recovery.public_text]), [roots])
    fsops.make_directory(opened.folder / "trust", 0o755)
    fsops.write(opened.folder / ROOT_FILE, blob, 0o644)
    files[str(opened.folder / ROOT_FILE)] = "the mesh's first root"
    return Begun(node, files, open_root(blob).digest, frozenset(kept))


def _vault_node(mesh: Mesh) -> str:
    """The node of the assignment that holds `mesh-vault`. Raises Failure with the command that says which."""
    holders, _ = hold(mesh)
    if "mesh-vault" in holders:
        return mesh.assignments[holders["mesh-vault"]].node
    fit = sorted(name for name, module in mesh.modules.items() if "mesh-vault" in module.seats)
    module = fit[0] if fit else "gitmesh-vault"
    nodes = sorted(each.node for each in mesh.assignments.values() if each.module == module)
    command = f"gitmesh assign {module} {nodes[0] if nodes else 'NODE'} --hold mesh-vault"
    raise Failure("nobody holds the seat `mesh-vault`, so there is no node to make its keys for", command)


def _there(path: Path, kind: type[Key]) -> Key | None:
    """The private key in a file; None where there is none. Raises Failure for one that can't be used."""
    try:
        return read_key(path, kind)
    except FileNotFoundError:
        return None
    except KeyRefused as wrong:
        raise Failure(wrong.message, wrong.fix) from None


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
    said = {"node": node, "origin": origin, "mailbox": mailbox, "root_sha256": root_sha256}
    blob = "".join(f"{key}: {render(value)}\n" for key, value in said.items()).encode()
    path = root / NODE_FILE
    if path.exists() and path.read_bytes() != blob:
        raise Failure(f"{path} is there already and says {_otherwise(root, said)}", f"cat {_quoted(path)}")
    keys = root / ETC / "keys"
    _make_private(keys)
    sign = _own(keys / "sign", SigningKey)
    seal = _own(keys / "seal", SealingKey)
    fsops.write(path, blob, 0o600)  # a URL in it may hold a password
    return Keys(sign.public_text, seal.public_text, 1)


def _otherwise(root: Path, said: dict[str, str]) -> str:
    """What a node was enrolled with before, where that differs."""
    try:
        held = read_installed(root)
    except NotInstalled:
        return "something else; remove it to enrol anew"
    before = {
        "node": held.node, "origin": held.origin, "mailbox": held.mailbox, "root_sha256": held.root_sha256
    }  # fmt: skip
    other = [f"`{key}: {without_credentials(before[key])}`" for key in said if before[key] != said[key]]
    return f"{', '.join(other) or 'the same in other words'}; remove it to enrol anew"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def publish_keys(path: Path, keys: Keys) -> None:
    """Write a node's public keys into its file in a clone, which keeps its comments."""
    said = {"sign": keys.sign, "seal": keys.seal, "epoch": keys.epoch}
    fsops.write(path, put(path.read_bytes(), ["keys"], said), path.stat().st_mode & 0o777)


def known_node(opened: Opened, node: str) -> Path:
    """The file of a node in a clone. Raises Misused where the mesh has no such node."""
    nodes = opened.mesh.nodes
    if node not in nodes:
        path = f"nodes/{node}.yaml"
        if path in opened.files:
            raise Failure(f"{path} is refused itself", "gitmesh check")
        raise Misused(f"{opened.folder} has no node `{node}`{nearest(node, list(nodes))}")
    return opened.folder / "nodes" / f"{node}.yaml"


def unclaimed(opened: Opened, node: str, root: Path) -> None:
    """Raise Failure where the clone knows the node by other keys than those below `root`, if there are any:
    another machine is that node, and this one would take its place."""
    there = opened.mesh.nodes[node].keys
    if there is None:
        return
    sign = _there(root / ETC / "keys/sign", SigningKey)
    if sign is None or sign.public_text != there.sign:
        raise Failure(
            f"nodes/{node}.yaml has another machine's `keys:`; remove them there if that machine is gone",
            f"git log -- nodes/{node}.yaml",
        )


def _own(path: Path, kind: type[Key]) -> Key:
    """The node's key of this kind, made where there is none."""
    held = _there(path, kind)
    if held is not None:
        return held
    key = kind.generate()
    write_key(path, key)
    return key


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
