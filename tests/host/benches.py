"""What the table of adapters runs on: each adapter with a backend, and the consumer's view of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import pytest

from gitmesh.host.adapters import adapter
from gitmesh.host.adapters.base import (
    Adapter,
    Backend,
    Consumer,
    Credential,
    Slot,
    login_of,
)
from gitmesh.host.adapters.postgres import Postgres
from gitmesh.host.adapters.postgres_session import Session
from gitmesh.host.authenticate import authenticate
from gitmesh.trust.secret import Secret
from tests.host.fake_adapter import FakeAdapter, FakeServer
from tests.host.postgres_server import (
    backend_of,
    free_port,
    started,
)

PASSWORDS = (
    "GMCANARY0abcdefghij0123456789abcdefghij01",
    'GMCANARY it\'s "quoted"; DROP ROLE x; --',
    "GMCANARY\\back\\\\slash",
    "GMCANARY 100%s %d $1 :name $$ ",
    "GMCANARY-é-ß-日本-ﬁ",
)
_numbers = itertools.count()


class Bench(Protocol):
    """An adapter with a backend, and the consumer's own view of that backend."""

    adapter: Adapter
    backend: Backend

    def rows(self, consumer: Consumer, credential: Credential) -> list[str]:
        """Sign in as the consumer does, and read."""

    def put(self, consumer: Consumer, credential: Credential, row: str) -> None:
        """Sign in as the consumer does, and write."""

    def authenticate(self, consumer: Consumer, credential: Credential) -> None:
        """What the reader's node does to confirm."""

    def down(self) -> Backend:
        """A backend that nobody answers at."""

    def slow(self) -> Slowed:
        """A backend that takes the request and never answers, and an adapter with a short limit."""

    def rebuild(self) -> Backend:
        """A backend in its place that remembers nothing."""


@dataclass
class Slowed:
    adapter: Adapter
    backend: Backend


class FakeBench:
    def __init__(self) -> None:
        self.server = FakeServer(Secret("GMCANARYadmin"))
        self.adapter: Adapter = FakeAdapter(self.server)
        self.backend = Backend(admin=self.server.admin)

    def rows(self, consumer: Consumer, credential: Credential) -> list[str]:
        return list(self.server.sign_in(credential.login, credential.secret, consumer.as_))

    def put(self, consumer: Consumer, credential: Credential, row: str) -> None:
        self.server.sign_in(credential.login, credential.secret, consumer.as_).append(row)

    def authenticate(self, consumer: Consumer, credential: Credential) -> None:
        self.rows(consumer, credential)

    def down(self) -> Backend:
        self.server.state = "down"
        return self.backend

    def slow(self) -> Slowed:
        self.server.state = "slow"
        return Slowed(self.adapter, self.backend)

    def rebuild(self) -> Backend:
        self.server.resources.clear()
        self.server.logins.clear()
        return self.backend


class PostgresBench:
    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self.server = request.getfixturevalue("postgres")
        self.adapter: Adapter = adapter("postgres")
        self.backend = backend_of(self.server)

    def _session(self, consumer: Consumer, credential: Credential) -> Session:
        backend = self.backend
        assert backend.address is not None
        assert backend.port is not None
        return Session(backend.address, backend.port, credential.login, credential.secret, consumer.as_)

    def rows(self, consumer: Consumer, credential: Credential) -> list[str]:
        with self._session(consumer, credential) as session:
            if session.one("SELECT to_regclass('rows')") is None:
                return []
            return [row[0] for row in session.run("SELECT line FROM rows ORDER BY line")]

    def put(self, consumer: Consumer, credential: Credential, row: str) -> None:
        with self._session(consumer, credential) as session:
            session.run("CREATE TABLE IF NOT EXISTS rows (line text)")
            session.run("INSERT INTO rows VALUES (:row)", row=row)

    def authenticate(self, consumer: Consumer, credential: Credential) -> None:
        fields = {
            "host": "sparta.example.internal",
            "port": str(self.backend.port),
            "database": consumer.as_,
            "tls": "disable",
        }
        hosts = {"sparta.example.internal": self.backend.address or ""}
        authenticate("postgres", fields, credential.secret, credential.login, hosts=hosts)

    def down(self) -> Backend:
        return replace(self.backend, port=free_port())

    def slow(self) -> Slowed:
        port = self._request.getfixturevalue("silent_port")
        return Slowed(Postgres(limit=0.2), replace(self.backend, address="127.0.0.1", port=port))

    def rebuild(self) -> Backend:
        folder = self._request.getfixturevalue("postgres_folder") / "rebuilt"
        folder.mkdir()
        folder.chmod(0o755)
        server = started(folder, free_port())
        self._request.addfinalizer(server.stop)
        server.start()
        self.backend = backend_of(server)
        return self.backend


BENCHES: dict[str, Callable[[pytest.FixtureRequest], Bench]] = {
    "fake": lambda request: FakeBench(),
    "postgres": PostgresBench,
}


def consumer(as_: str | None = None, **asks: object) -> Consumer:
    """A consumer that no other test uses."""
    as_ = as_ or f"app{next(_numbers)}_athens"
    return Consumer(f"{as_}@athens.database", as_, asks, {"tls": "disable"})


def credential(of: Consumer, slot: Slot = "a", secret: str = PASSWORDS[0]) -> Credential:
    return Credential(slot, login_of(of, slot), Secret(secret))
