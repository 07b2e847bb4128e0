"""One table of what every adapter must do, run against the real servers and the fake one."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import threading
import time
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest

from gitmesh.core.identity import LONGEST
from gitmesh.host.adapters import ADAPTERS, adapter
from gitmesh.host.adapters.base import (
    Adapter,
    Backend,
    Consumer,
    Credential,
    Down,
    NoAdapter,
    Rejected,
    Slot,
    Slow,
    login_of,
)
from gitmesh.host.adapters.postgres import Postgres
from gitmesh.host.adapters.postgres_session import Session, verifier
from gitmesh.host.authenticate import NoCheck, authenticate
from gitmesh.trust.secret import Secret
from tests.host.fake_adapter import FakeAdapter, FakeServer
from tests.host.postgres_server import (
    backend_of,
    free_port,
    postgres,  # noqa: F401 - a fixture, asked for by name
    postgres_folder,  # noqa: F401 - the same
    started,
)
from tests.real import require

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


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


BENCHES: dict[str, Callable[[pytest.FixtureRequest], Bench]] = {
    "fake": lambda request: FakeBench(),
    "postgres": PostgresBench,
}


@pytest.fixture(params=[pytest.param("fake"), pytest.param("postgres", marks=pytest.mark.real)])
def bench(request: pytest.FixtureRequest) -> Bench:
    return BENCHES[request.param](request)


def consumer(as_: str | None = None, **asks: object) -> Consumer:
    """A consumer that no other test uses."""
    as_ = as_ or f"app{next(_numbers)}_athens"
    return Consumer(f"{as_}@athens.database", as_, asks, {"tls": "disable"})


def credential(of: Consumer, slot: Slot = "a", secret: str = PASSWORDS[0]) -> Credential:
    return Credential(slot, login_of(of, slot), Secret(secret))


# --- the table -----------------------------------------------------------------------------------------


def test_every_adapter_has_its_place_in_the_table() -> None:
    assert set(ADAPTERS) == set(BENCHES) - {"fake"}


def test_an_adapter_of_a_later_version_is_named() -> None:
    with pytest.raises(NoAdapter, match=r"'mariadb'.*it has postgres"):
        adapter("mariadb")


def test_ensure_twice_changes_nothing(bench: Bench) -> None:
    app = consumer()
    first = bench.adapter.ensure(bench.backend, app, credential(app))
    bench.put(app, credential(app), "kept")
    assert bench.adapter.ensure(bench.backend, app, credential(app)) == first
    assert bench.rows(app, credential(app)) == ["kept"]


@pytest.mark.parametrize("password", PASSWORDS, ids=["plain", "quotes", "backslash", "format", "unicode"])
def test_any_password_confirms_on_both_sides(bench: Bench, password: str) -> None:
    app = consumer()
    given = credential(app, secret=password)
    bench.adapter.ensure(bench.backend, app, given)
    bench.adapter.confirm(bench.backend, app, given)
    bench.authenticate(app, given)
    assert bench.rows(app, given) == []


@pytest.mark.rule("C10")
@pytest.mark.parametrize("password", PASSWORDS[1:], ids=["quotes", "backslash", "format", "unicode"])
def test_a_wrong_password_is_refused_without_saying_it(bench: Bench, password: str) -> None:
    app = consumer()
    bench.adapter.ensure(bench.backend, app, credential(app))
    wrong = credential(app, secret=password)
    for check in (bench.authenticate, lambda *of: bench.adapter.confirm(bench.backend, *of)):
        with pytest.raises(Rejected, match=wrong.login) as refused:
            check(app, wrong)
        assert "GMCANARY" not in str(refused.value)


def test_a_new_password_replaces_the_old_one(bench: Bench) -> None:
    app = consumer()
    old, new = credential(app), credential(app, secret="GMCANARYnew")
    bench.adapter.ensure(bench.backend, app, old)
    bench.adapter.ensure(bench.backend, app, new)
    bench.authenticate(app, new)
    with pytest.raises(Rejected):
        bench.authenticate(app, old)


@pytest.mark.rule("D2")
def test_two_credentials_work_at_once_over_one_resource(bench: Bench) -> None:
    app = consumer()
    a, b = credential(app), credential(app, "b", "GMCANARYb")
    bench.adapter.ensure(bench.backend, app, a)
    bench.put(app, a, "by a")
    bench.adapter.ensure(bench.backend, app, b)
    bench.put(app, b, "by b")
    assert bench.rows(app, a) == bench.rows(app, b) == ["by a", "by b"]


@pytest.mark.rule("D5")
@pytest.mark.rule("S47")
def test_retiring_one_leaves_the_other_and_the_rows(bench: Bench) -> None:
    app = consumer()
    a, b = credential(app), credential(app, "b", "GMCANARYb")
    bench.adapter.ensure(bench.backend, app, a)
    bench.put(app, a, "by a")
    bench.adapter.ensure(bench.backend, app, b)
    bench.adapter.retire(bench.backend, app, "a")
    bench.adapter.retire(bench.backend, app, "a")
    with pytest.raises(Rejected):
        bench.authenticate(app, a)
    bench.put(app, b, "by b")
    assert bench.rows(app, b) == ["by a", "by b"]


@pytest.mark.rule("D2")
@pytest.mark.rule("D5")
def test_many_rotations_keep_the_rows_and_never_lack_a_login(bench: Bench) -> None:
    app = consumer()
    slots: tuple[Slot, Slot] = ("a", "b")
    current = credential(app)
    bench.adapter.ensure(bench.backend, app, current)
    for turn in range(1, 7):
        bench.put(app, current, f"turn {turn}")
        following = credential(app, slots[turn % 2], f"GMCANARY{turn}")
        bench.adapter.ensure(bench.backend, app, following)
        for each in (current, following):
            bench.adapter.confirm(bench.backend, app, each)
        bench.adapter.retire(bench.backend, app, current.slot)
        current = following
    assert bench.rows(app, current) == [f"turn {turn}" for turn in range(1, 7)]


@pytest.mark.rule("D5")
def test_remove_takes_one_consumers_logins_and_keeps_what_they_reached(bench: Bench) -> None:
    gone, stays = consumer(), consumer()
    for each in (gone, stays):
        bench.adapter.ensure(bench.backend, each, credential(each))
        bench.put(each, credential(each), each.as_)
    bench.adapter.remove(bench.backend, gone)
    with pytest.raises(Rejected):
        bench.authenticate(gone, credential(gone))
    assert bench.rows(stays, credential(stays)) == [stays.as_]
    bench.adapter.ensure(bench.backend, gone, credential(gone, "b"))
    assert bench.rows(gone, credential(gone, "b")) == [gone.as_]


@pytest.mark.rule("D5")
def test_only_purge_removes_what_was_reached(bench: Bench) -> None:
    app = consumer()
    bench.adapter.ensure(bench.backend, app, credential(app))
    bench.put(app, credential(app), "gone")
    bench.adapter.purge(bench.backend, app)
    bench.adapter.purge(bench.backend, app)
    bench.adapter.ensure(bench.backend, app, credential(app))
    assert bench.rows(app, credential(app)) == []


@pytest.mark.rule("C2")
@pytest.mark.parametrize("apart", ["consumers", "requirements"])
def test_what_is_not_ones_own_is_out_of_reach(bench: Bench, apart: str) -> None:
    one = consumer()
    other = consumer() if apart == "consumers" else consumer(f"{one.as_}_q")
    for each in (one, other):
        bench.adapter.ensure(bench.backend, each, credential(each))
        bench.put(each, credential(each), each.as_)
    with pytest.raises(Rejected):
        bench.rows(other, credential(one))
    assert bench.rows(other, credential(other)) == [other.as_]


def test_an_identity_may_be_as_long_as_they_get(bench: Bench) -> None:
    app = consumer(f"longest{next(_numbers):0{LONGEST - 14}}_athens")
    assert len(app.as_) == LONGEST
    for slot in ("a", "b"):
        bench.adapter.ensure(bench.backend, app, credential(app, slot))
        bench.authenticate(app, credential(app, slot))


def test_a_server_that_is_down_is_waited_for(bench: Bench) -> None:
    app = consumer()
    with pytest.raises(Down):
        bench.adapter.ensure(bench.down(), app, credential(app))


def test_a_server_that_never_answers_has_a_limit(bench: Bench) -> None:
    app, slowed = consumer(), bench.slow()
    with pytest.raises(Slow):
        slowed.adapter.ensure(slowed.backend, app, credential(app))
    with pytest.raises(Slow):
        slowed.adapter.confirm(slowed.backend, app, credential(app))


def test_a_rebuilt_server_is_given_every_credential_again(bench: Bench) -> None:
    app = consumer()
    both = credential(app), credential(app, "b", "GMCANARYb")
    for each in both:
        bench.adapter.ensure(bench.backend, app, each)
    backend = bench.rebuild()
    for each in both:
        bench.adapter.ensure(backend, app, each)
        bench.authenticate(app, each)


def test_a_wrong_administrator_is_rejected(bench: Bench) -> None:
    app = consumer()
    backend = replace(bench.backend, admin=Secret("GMCANARYwrong"))
    with pytest.raises(Rejected) as rejected:
        bench.adapter.ensure(backend, app, credential(app))
    assert "GMCANARY" not in str(rejected.value)


def test_the_administrators_own_secret_is_changed_once(bench: Bench) -> None:
    app, new = consumer(), Secret("GMCANARY new 'admin'")
    bench.adapter.apply(bench.backend, new)
    try:
        bench.adapter.apply(bench.backend, new)  # a kill came before the new value was recorded
        with pytest.raises(Rejected):
            bench.adapter.ensure(bench.backend, app, credential(app))
        bench.adapter.ensure(replace(bench.backend, admin=new), app, credential(app))
        with pytest.raises(Rejected):
            bench.adapter.apply(bench.backend, Secret("GMCANARY another"))
    finally:
        assert bench.backend.admin is not None
        bench.adapter.apply(replace(bench.backend, admin=new), bench.backend.admin)


# --- PostgreSQL's own ----------------------------------------------------------------------------------


@pytest.fixture
def real(request: pytest.FixtureRequest) -> PostgresBench:
    return PostgresBench(request)


@contextmanager
def signed_in(bench: PostgresBench, login: str, secret: Secret, database: str) -> Iterator[Session]:
    with Session(bench.server.address, bench.server.port, login, secret, database) as session:
        yield session


@contextmanager
def as_admin(bench: PostgresBench, database: str = "postgres") -> Iterator[Session]:
    assert bench.backend.admin is not None
    with signed_in(bench, "postgres", bench.backend.admin, database) as session:
        yield session


@pytest.mark.real
@pytest.mark.rule("D5")
def test_what_a_login_makes_belongs_to_the_consumer(real: PostgresBench) -> None:
    app = consumer()
    a, b = credential(app), credential(app, "b")
    for each in (a, b):
        real.adapter.ensure(real.backend, app, each)
    with signed_in(real, a.login, a.secret, app.as_) as session:
        session.run("CREATE TABLE plain (n int)")
        session.run("CREATE SCHEMA own")
        session.run("SET ROLE NONE")
        session.run("CREATE TABLE public.stubborn (n int)")
    with as_admin(real, app.as_) as session:
        owners = dict(session.run("SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'public'"))
    assert owners == {"plain": app.as_, "stubborn": a.login}
    real.adapter.retire(real.backend, app, "a")
    with signed_in(real, b.login, b.secret, app.as_) as session:
        session.run("DROP TABLE plain")
        session.run("DROP SCHEMA own")
        session.run("ALTER TABLE stubborn ADD COLUMN m int")


@pytest.mark.real
@pytest.mark.rule("D2")
def test_ensure_leaves_live_sessions_alone_and_retire_ends_those_of_its_login(real: PostgresBench) -> None:
    app = consumer()
    a, b = credential(app), credential(app, "b")
    for each in (a, b):
        real.adapter.ensure(real.backend, app, each)
    with (
        signed_in(real, a.login, a.secret, app.as_) as of_a,
        signed_in(real, b.login, b.secret, app.as_) as of_b,
    ):
        real.adapter.ensure(real.backend, app, a)
        real.adapter.ensure(real.backend, app, credential(app, secret="GMCANARYother"))
        assert of_a.one("SELECT 1") == of_b.one("SELECT 1") == 1
        real.adapter.retire(real.backend, app, "a")
        with pytest.raises(Down):
            of_a.one("SELECT 1")
        assert of_b.one("SELECT 1") == 1


@pytest.mark.real
def test_the_verifier_is_written_only_when_the_password_changes(real: PostgresBench) -> None:
    app = consumer()

    def stored() -> str:
        with as_admin(real) as session:
            query = "SELECT rolpassword FROM pg_authid WHERE rolname = :login"
            return str(session.one(query, login=login_of(app, "a")))

    seen = []
    for secret in ("GMCANARYone", "GMCANARYone", "GMCANARYtwo"):
        real.adapter.ensure(real.backend, app, credential(app, secret=secret))
        seen.append(stored())
    assert seen[0] == seen[1] != seen[2]
    assert all(each.startswith("SCRAM-SHA-256$4096:") for each in seen)


@pytest.mark.real
def test_asked_extensions_are_there_and_no_others(real: PostgresBench) -> None:
    app = consumer(extensions=["citext", "earthdistance"])
    real.adapter.ensure(real.backend, app, credential(app))
    real.adapter.ensure(real.backend, app, credential(app))
    with signed_in(real, login_of(app, "a"), credential(app).secret, app.as_) as session:
        assert session.one("SELECT 'A'::citext = 'a'::citext") is True
        names = {row[0] for row in session.run("SELECT extname FROM pg_extension")}
    assert names == {"plpgsql", "citext", "cube", "earthdistance"}


@pytest.mark.real
@pytest.mark.parametrize("asked", [["no_such_extension"], ['citext"; SELECT 1; --'], "citext", [7]])
def test_an_extension_that_is_none_is_rejected(real: PostgresBench, asked: object) -> None:
    app = consumer(extensions=asked)
    with pytest.raises(Rejected):
        real.adapter.ensure(real.backend, app, credential(app))


@pytest.mark.parametrize("as_", ['x"; DROP', "postgres", "template1", "pg_x", "a" * 19, "", "Ä", "a-b"])
def test_an_identity_that_is_none_is_rejected_before_anything_is_reached(as_: str) -> None:
    app = Consumer("app@athens.database", as_)
    nowhere = Backend("127.0.0.1", 1, "postgres", Secret("GMCANARY"))
    for verb in (Postgres().remove, Postgres().purge):
        with pytest.raises(Rejected, match="identity"):
            verb(nowhere, app)
    with pytest.raises(Rejected, match="identity"):
        Postgres().ensure(nowhere, app, Credential("a", f"{as_}_a", Secret("GMCANARY")))


@pytest.mark.real
def test_no_consumer_is_given_a_role_that_is_not_its_own(real: PostgresBench) -> None:
    app, powerful, foreign = consumer(), consumer(), consumer()
    real.adapter.ensure(real.backend, app, credential(app))
    with as_admin(real) as session:
        session.run(f"CREATE ROLE {powerful.as_} CREATEDB")
        session.run(f"CREATE ROLE {foreign.as_}_a LOGIN")
        session.run(f"CREATE DATABASE {foreign.as_}")
    for other, why in (
        (consumer(login_of(app, "a")), "is a login of"),
        (powerful, "rights over the whole server"),
        (foreign, "is no login of"),
    ):
        with pytest.raises(Rejected, match=why):
            real.adapter.ensure(real.backend, other, credential(other))
    with pytest.raises(Rejected, match="it stays"):
        real.adapter.retire(real.backend, foreign, "a")
    with as_admin(real) as session:
        session.run(f"DROP ROLE {foreign.as_}_a")
    with pytest.raises(Rejected, match="belongs to postgres"):
        real.adapter.ensure(real.backend, foreign, credential(foreign))
    with pytest.raises(Rejected, match="it stays"):
        real.adapter.purge(real.backend, foreign)


@pytest.mark.real
def test_a_login_with_text_around_it_is_rejected(real: PostgresBench) -> None:
    app = consumer()
    affixed = Credential("a", f"{app.as_}_a@example.org", Secret("GMCANARY"))
    with pytest.raises(Rejected, match="no text around it"):
        real.adapter.ensure(real.backend, app, affixed)


@pytest.mark.real
def test_tls_is_required_where_the_provider_serves_it_so(real: PostgresBench) -> None:
    app = replace(consumer(), serves={"tls": "require"})
    with pytest.raises(Rejected, match="TLS"):
        real.adapter.ensure(real.backend, app, credential(app))


@pytest.mark.real
def test_tls_encrypts_where_the_server_has_it(real: PostgresBench, request: pytest.FixtureRequest) -> None:
    data = request.getfixturevalue("postgres_folder") / "data"
    _certificate(data)
    app = replace(consumer(), serves={"tls": "require"})
    given = credential(app)
    with as_admin(real) as session:
        session.run("ALTER SYSTEM SET ssl = on")
        session.run("SELECT pg_reload_conf()")
        try:
            _eventually(lambda: session.one("SHOW ssl") == "on")
            real.adapter.ensure(real.backend, app, given)
            real.adapter.confirm(real.backend, app, given)
            with Session(
                real.server.address, real.server.port, given.login, given.secret, app.as_, tls="require"
            ) as encrypted:
                assert encrypted.one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") is True
        finally:
            session.run("ALTER SYSTEM RESET ssl")
            session.run("SELECT pg_reload_conf()")
            _eventually(lambda: session.one("SHOW ssl") == "off")


def _certificate(folder: Path) -> None:
    """One for the server, of its own making."""
    require(shutil.which("openssl"), "no openssl is installed here")
    names = ["-keyout", str(folder / "server.key"), "-out", str(folder / "server.crt")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=postgres"]
    subprocess.run(["openssl", "req", "-x509", *kind, *names], check=True, capture_output=True)
    owner = folder.stat()
    for file in ("server.key", "server.crt"):
        os.chown(folder / file, owner.st_uid, owner.st_gid)
        (folder / file).chmod(0o600)


def _eventually(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        time.sleep(0.02)
    pytest.fail("it did not come to hold")


@pytest.mark.real
def test_a_server_that_is_busy_past_the_limit_is_slow(real: PostgresBench) -> None:
    app = consumer()
    real.adapter.ensure(real.backend, app, credential(app))
    with as_admin(real) as session:
        session.run("BEGIN")
        session.run("LOCK TABLE pg_auth_members IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Slow):
            Postgres(limit=0.3).ensure(real.backend, app, credential(app))


def forms(secret: str) -> set[str]:
    """How a secret may show in a log."""
    raw = secret.encode()
    return {
        secret,
        quote(secret),
        raw.hex(),
        b64encode(raw).decode(),
        repr(secret)[1:-1],
        secret.replace("'", "''"),
    }


@pytest.mark.real
@pytest.mark.rule("C10")
@pytest.mark.rule("S53")
def test_no_password_shows_in_the_servers_log_views_or_processes(real: PostgresBench) -> None:
    app = consumer()
    watched: list[str] = []
    done = threading.Event()

    def watch() -> None:
        with as_admin(real) as session:
            while not done.is_set():
                watched.extend(str(row) for row in session.run("SELECT query FROM pg_stat_activity"))
                watched.extend(map(_command_line, Path("/proc").glob("[0-9]*/cmdline")))
                time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for password in PASSWORDS:
            given = credential(app, secret=password)
            real.adapter.ensure(real.backend, app, given)
            real.adapter.confirm(real.backend, app, given)
            with pytest.raises(Rejected):
                real.authenticate(app, credential(app, secret=password + "wrong"))
        real.adapter.remove(real.backend, app)
    finally:
        done.set()
        watcher.join()
    seen = "\n".join(watched) + real.server.log.read_text(errors="replace")
    assert f'CREATE ROLE "{app.as_}"' in seen
    assert "GMCANARY" not in seen
    assert not [form for password in PASSWORDS for form in forms(password) if form in seen]
    assert "SCRAM-SHA-256$" not in seen


@pytest.mark.real
@pytest.mark.rule("C10")
@pytest.mark.rule("S53")
def test_no_error_carries_a_frame_that_holds_a_password(real: PostgresBench) -> None:
    app, secret = consumer(), Secret(PASSWORDS[1])
    unreached = replace(real.backend, admin=Secret("GMCANARYwrong"))
    with pytest.raises(Rejected) as signing_in:
        real.adapter.ensure(unreached, app, credential(app))
    with as_admin(real) as session, pytest.raises(Rejected) as setting:
        session.run(Secret(f"ALTER ROLE no_such_role PASSWORD '{verifier(secret).text()}'"))
    with pytest.raises(Rejected) as preparing:
        verifier(Secret("GMCANARY\u0007"))
    for error in (signing_in.value, setting.value, preparing.value):
        shown = _with_locals(error)
        assert "<secret>" in shown
        assert "GMCANARY" not in shown
        assert "SCRAM-SHA-256$" not in shown


def _with_locals(error: BaseException | None) -> str:
    """The error, what led to it, and the locals of every frame that is not a test's."""
    shown = []
    while error is not None:
        shown.append(repr(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "/tests/" not in frame.f_code.co_filename:
                shown.append(repr(frame.f_locals))
        error = error.__cause__ or error.__context__
    return "\n".join(shown)


def _command_line(of: Path) -> str:
    try:
        return of.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it ended in between
        return ""


# --- the reader's side ---------------------------------------------------------------------------------


def test_a_check_of_a_later_version_is_named() -> None:
    with pytest.raises(NoCheck, match=r"'amqp'.*it has postgres, none"):
        authenticate("amqp", {}, Secret("GMCANARY"))


def test_no_check_reaches_nothing() -> None:
    authenticate("none", {}, Secret("GMCANARY"))


@pytest.mark.parametrize(
    ("fields", "login", "why"),
    [
        ({"port": "5432"}, "x_a", "host, database"),
        ({"host": "127.0.0.1", "port": "5432", "database": "x"}, None, "a login"),
        ({"host": "127.0.0.1", "port": "٣", "database": "x"}, "x_a", "a number"),
        ({"host": "127.0.0.1", "port": "1", "database": "x", "tls": "prefer"}, "x_a", "tls"),
    ],
)
def test_what_the_check_lacks_is_named(fields: dict[str, str], login: str | None, why: str) -> None:
    with pytest.raises(Rejected, match=why):
        authenticate("postgres", fields, Secret("GMCANARY"), login)


def test_a_reader_waits_for_a_server_that_is_down_or_silent(silent_port: int) -> None:
    fields = {"host": "127.0.0.1", "port": str(silent_port), "database": "x"}
    with pytest.raises(Slow):
        authenticate("postgres", fields, Secret("GMCANARY"), "x_a", limit=0.2)
    with pytest.raises(Down):
        authenticate("postgres", {**fields, "port": "1"}, Secret("GMCANARY"), "x_a")


@pytest.mark.parametrize("password", ["", "GMCANARY\u0007", "GMCANARY\U0001f986", b"GMCANARY\xff"])
def test_a_password_that_no_client_could_send_is_rejected(silent_port: int, password: str | bytes) -> None:
    fields = {"host": "127.0.0.1", "port": str(silent_port), "database": "x"}
    with pytest.raises(Rejected, match="SASLprep"):
        authenticate("postgres", fields, Secret(password), "x_a", limit=0.2)
