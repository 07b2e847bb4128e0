"""What enrolment left on a node: its name, its remotes, the root it trusts, and its keys (SECURITY §1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gitmesh.repo import document
from gitmesh.repo.transport import Access
from gitmesh.trust.keys import SealingKey, SigningKey, read_key

ETC = "etc/gitmesh"
NODE_FILE = f"{ETC}/node.yaml"
SSH_FILE = f"{ETC}/ssh_config"
"""Where it is there, the only ssh configuration of a pull: the key of the node's account, its known hosts."""
_KEYS = ("node", "origin", "mailbox", "root_sha256")


class NotInstalled(Exception):
    """This is no enrolled node; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An enrolled node, whose files are all below `root`."""

    root: Path
    node: str
    origin: str
    mailbox: str
    root_sha256: str

    def sign(self) -> SigningKey:
        """The node's signing key. Raises `KeyRefused` and OSError."""
        return read_key(self.root / ETC / "keys/sign", SigningKey)

    def seal(self) -> SealingKey:
        """The node's sealing key. Raises `KeyRefused` and OSError."""
        return read_key(self.root / ETC / "keys/seal", SealingKey)

    def access(self) -> Access:
        """How its remotes are reached: by the node's own `ssh_config`, else as the user's ssh does."""
        path = self.root / SSH_FILE
        return Access(ssh=("-F", str(path.absolute()))) if path.exists() else Access()


def read_installed(root: Path) -> Installed:
    """The node whose files are below `root`. Raises `NotInstalled`."""
    path = root / NODE_FILE
    try:
        value, refusals = document.read(str(path), path.read_bytes())
    except FileNotFoundError:
        raise NotInstalled(f"{path} is not there: this node has not enrolled") from None
    texts = isinstance(value, dict) and all(isinstance(value.get(key), str) for key in _KEYS)
    if refusals or not texts or value.keys() != set(_KEYS):
        raise NotInstalled(f"{path} does not say {', '.join(_KEYS)}, and nothing else")
    return Installed(root, value["node"], value["origin"], value["mailbox"], value["root_sha256"])
