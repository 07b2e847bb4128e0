"""What is PostgreSQL's own: whose things are, what it records, what its adapter will not touch."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from gitmesh.host.adapters.base import (
    Backend,
    Consumer,
    Credential,
    Down,
    Rejected,
    Slow,
    login_of,
)
from gitmesh.host.adapters.postgres import Postgres
from gitmesh.host.adapters.postgres_session import Session, verifier
from gitmesh.trust.secret import Secret
from tests.host.benches import PASSWORDS, PostgresBench, consumer, credential
from tests.host.postgres_server import (
    postgres,  # noqa: F401 - a fixture, asked for by name
    postgres_folder,  # noqa: F401 - the same
)
from tests.real import require


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
            ):
                found = session.run(
                    "SELECT ssl FROM pg_stat_ssl NATURAL JOIN pg_stat_activity WHERE usename = :n",
                    n=given.login,
                )
                assert found == [[True]]
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
