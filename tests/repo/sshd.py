"""A real sshd on the loopback, whose accounts are keys with forced commands, as a mesh's git server has."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real import require

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@dataclass(frozen=True)
class Server:
    """A running sshd. `options` are what an account's ssh needs: its key, and the known host key."""

    folder: Path
    port: int

    def url(self, repo: Path) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repo}"

    def options(self, account: str) -> tuple[str, ...]:
        return (
            *("-F", os.devnull, "-i", str(self.folder / account), "-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "-o", "GlobalKnownHostsFile=none"),
            *("-o", "ConnectTimeout=5"),
        )

    def know(self, key: str) -> None:
        """Make `key` (the name of a key pair in the folder) the host key that clients expect."""
        public = (self.folder / f"{key}.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")


def keypair(folder: Path, name: str) -> str:
    """Make an ed25519 key pair `name`, and give its public line."""
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(made, check=True, capture_output=True)
    return (folder / f"{name}.pub").read_text().strip()


@contextmanager
def serve(folder: Path, accounts: Mapping[str, str]) -> Iterator[Server]:
    """Run sshd with `accounts`: name to the environment its forced command sets (`GITMESH_NODE=athens`)."""
    require(
        Path(SSHD).exists() and shutil.which("git-shell"), "sshd (openssh-server) and git-shell are needed"
    )
    folder.mkdir(parents=True, exist_ok=True)
    keypair(folder, "host")
    keypair(folder, "stranger")
    lines = [
        f'restrict,command="{setting} exec git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"" {keypair(folder, name)}'
        for name, setting in accounts.items()
    ]
    (folder / "authorized_keys").write_text("\n".join(lines) + "\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nPidFile none\nUsePAM no\nStrictModes no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        "LogLevel ERROR\n"
    )
    server = Server(folder, port)
    server.know("host")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    try:
        _await(server, daemon)
        yield server
    finally:
        daemon.terminate()
        daemon.wait()


def _await(server: Server, daemon: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        if daemon.poll() is not None:
            break
        time.sleep(0.05)
    pytest.fail(f"sshd did not start: {(server.folder / 'log').read_text()}")
