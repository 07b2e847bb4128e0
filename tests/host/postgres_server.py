"""A real PostgreSQL for the tests: private, with every statement in its log, and everything thrown away."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmesh.cli.demo_postgres import PostgresServer, find_postgres
from gitmesh.host.adapters.base import Backend
from gitmesh.trust.secret import Secret
from tests.real import require

ADMIN = "GMCANARYadmin'\\ 100%"
ADDRESS = "127.0.0.6"
_LOUD = (
    "fsync=off",
    "log_statement=all",
    "log_min_duration_statement=0",
    "log_connections=on",
    "log_error_verbosity=verbose",
    "log_min_error_statement=debug5",
    "log_min_messages=debug1",
)


def free_port(address: str = ADDRESS) -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def started(folder: Path, port: int) -> PostgresServer:
    """A server whose data lie in `folder`, not started yet."""
    binaries = find_postgres()
    require(binaries, "no PostgreSQL server is installed here (Debian: postgresql)")
    assert binaries is not None
    password = folder / "password"
    password.write_text(ADMIN + "\n")
    password.chmod(0o600)
    return PostgresServer(
        binaries, folder / "data", password, ADDRESS, port, log=folder / "log", settings=_LOUD
    )


def backend_of(server: PostgresServer) -> Backend:
    """How an adapter reaches it."""
    return Backend(server.address, server.port, "postgres", Secret(ADMIN))


@pytest.fixture(scope="session")
def postgres_folder() -> Iterator[Path]:
    """A folder that the server's user may enter; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="gitmesh-postgres-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres(postgres_folder: Path) -> Iterator[PostgresServer]:
    """The server that all tests share; each uses its own identities."""
    with started(postgres_folder, free_port()) as server:
        yield server
