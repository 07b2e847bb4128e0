"""PostgreSQL: a database and its owner for each consumer, and two logins that act as that owner.

The database `<as>` belongs to the role `<as>`, which can't log in. The logins `<as>_a` and `<as>_b` are
members of it and become it as they sign in, so that whatever they make belongs to it and outlives them (D5).
No password reaches the server: it is given the SCRAM-SHA-256 verifier, computed here, and even that in a
transaction of which the server logs and tracks nothing (C10).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gitmesh.core.model import Json
from gitmesh.host.adapters.base import (
    Answers,
    Backend,
    Consumer,
    Credential,
    Rejected,
    Rotation,
    Slot,
    login_of,
)
from gitmesh.host.adapters.postgres_session import LIMIT, Session, is_of, verifier
from gitmesh.trust.secret import Secret

_IDENTITY = re.compile(r"[a-z][a-z0-9_]{0,17}", re.ASCII)
_EXTENSION = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_OWN_DATABASES = frozenset({"postgres", "template0", "template1"})

_UNRECORDED = (
    "SET LOCAL log_statement = 'none'",
    "SET LOCAL log_min_duration_statement = -1",
    "SET LOCAL log_min_duration_sample = -1",
    "SET LOCAL log_transaction_sample_rate = 0",
    "SET LOCAL log_min_error_statement = 'panic'",
    "SET LOCAL track_activities = off",
    "SET LOCAL pg_stat_statements.track = 'none'",
    "SET LOCAL pgaudit.log = 'none'",
)
"""What keeps a transaction out of every log, view and audit; only a superuser may say it."""


class Postgres:
    """The adapter. `limit` is in seconds, for each answer of the server."""

    rotation: Rotation = "two"

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit

    def ensure(self, backend: Backend, consumer: Consumer, credential: Credential) -> Answers:
        """As `Adapter.ensure`; nothing is answered, since the mesh derives every field."""
        _check_identity(consumer)
        login = login_of(consumer, credential.slot)
        if credential.login != login:
            raise Rejected(f"{consumer.to}: a login of PostgreSQL is plainly {login}, no text around it")
        wanted = _extensions(consumer)
        with self._administration(backend, consumer, "postgres") as session:
            _ensure_owner(session, consumer.as_)
            _ensure_login(session, consumer.as_, login, credential.secret)
            _ensure_database(session, consumer.as_)
        with self._administration(backend, consumer, consumer.as_) as session:
            _ensure_inside(session, consumer.as_, wanted)
        return {}

    def confirm(self, backend: Backend, consumer: Consumer, credential: Credential) -> None:
        """As `Adapter.confirm`."""
        with self._session(backend, consumer, credential.login, credential.secret, consumer.as_) as session:
            acts_as = session.one("SELECT current_user")
        if acts_as != consumer.as_:
            raise Rejected(f"{credential.login} signs in, but acts as {acts_as} and not as {consumer.as_}")

    def retire(self, backend: Backend, consumer: Consumer, slot: Slot) -> None:
        """As `Adapter.retire`."""
        _check_identity(consumer)
        login = login_of(consumer, slot)
        with self._administration(backend, consumer, "postgres") as session:
            if not _close_login(session, consumer.as_, login):
                return
            there = _owner_of_database(session, consumer.as_) is not None
        if there:
            with self._administration(backend, consumer, consumer.as_) as session:
                session.run(f"REASSIGN OWNED BY {_name(login)} TO {_name(consumer.as_)}")
                session.run(f"DROP OWNED BY {_name(login)}")  # only rights are left to it by now
        with self._administration(backend, consumer, "postgres") as session:
            session.run(f"DROP ROLE IF EXISTS {_name(login)}")

    def remove(self, backend: Backend, consumer: Consumer) -> None:
        """As `Adapter.remove`."""
        self.retire(backend, consumer, "a")
        self.retire(backend, consumer, "b")

    def purge(self, backend: Backend, consumer: Consumer) -> None:
        """As `Adapter.purge`; a database of that name which belongs to another role is `Rejected`."""
        self.remove(backend, consumer)
        with self._administration(backend, consumer, "postgres") as session:
            if _owner_of_database(session, consumer.as_) not in (None, consumer.as_):
                raise Rejected(f"the database {consumer.as_} belongs to another role; it stays")
            session.run(f"DROP DATABASE IF EXISTS {_name(consumer.as_)} WITH (FORCE)")
            session.run(f"DROP ROLE IF EXISTS {_name(consumer.as_)}")

    def apply(self, backend: Backend, value: Secret) -> None:
        """As `Adapter.apply`."""
        address, port = _reached(backend)
        login, current = _administrator(backend)
        try:
            session = Session(address, port, login, current, "postgres", limit=self._limit)
        except Rejected:
            pass  # `value` may be in force already, from before a kill; whether it is, the last line tells
        else:
            with session:
                session.run("BEGIN")
                _set_password(session, login, value)
                session.run("COMMIT")
        with Session(address, port, login, value, "postgres", limit=self._limit):
            pass

    def _administration(self, backend: Backend, consumer: Consumer, database: str) -> Session:
        """A session of the administrator, in which no function that a consumer made is found by mistake."""
        session = self._session(backend, consumer, *_administrator(backend), database)
        milliseconds = int(self._limit * 1000)
        session.run("SET search_path = pg_catalog")
        session.run(f"SET statement_timeout = {milliseconds}")
        session.run(f"SET lock_timeout = {milliseconds}")
        return session

    def _session(
        self, backend: Backend, consumer: Consumer, login: str, secret: Secret, database: str
    ) -> Session:
        address, port = _reached(backend)
        tls = consumer.serves.get("tls", "disable")
        return Session(address, port, login, secret, database, tls=tls, limit=self._limit)


# --- roles ---------------------------------------------------------------------------------------------


def _ensure_owner(session: Session, owner: str) -> None:
    found = _role(session, owner)
    if found is None:
        session.run(f"CREATE ROLE {_name(owner)} NOLOGIN")
        return
    powerful, signs_in, member_of = found
    if powerful:
        raise Rejected(f"the role {owner} has rights over the whole server; no consumer is given it")
    if signs_in and member_of:
        raise Rejected(f"the role {owner} is a login of {member_of[0]}; no other consumer is given it")


def _ensure_login(session: Session, owner: str, login: str, secret: Secret) -> None:
    """The login, its membership and what it becomes appear in one transaction: no kill leaves half of it."""
    found = _role(session, login)
    if found is not None and not _is_login_of(found, owner):
        raise Rejected(f"the role {login} is there already and is no login of {owner}")
    session.run("BEGIN")
    if found is None:
        session.run(f"CREATE ROLE {_name(login)} IN ROLE {_name(owner)}")
    session.run(f"ALTER ROLE {_name(login)} LOGIN")
    session.run(f"ALTER ROLE {_name(login)} SET role = {_name(owner)}")
    _set_password(session, login, secret)
    session.run("COMMIT")


def _set_password(session: Session, login: str, secret: Secret) -> None:
    """Give `login` its password where it has another, inside a transaction. An administrator who is no
    superuser can't see which it has, nor keep the verifier out of a log of all statements."""
    if session.one("SHOW is_superuser") == "on":
        stored = session.one("SELECT rolpassword FROM pg_authid WHERE rolname = :login", login=login)
        if is_of(stored, secret):
            return
        for statement in _UNRECORDED:
            session.run(statement)
    session.run(Secret(f"ALTER ROLE {_name(login)} PASSWORD '{verifier(secret).text()}'"))


def _close_login(session: Session, owner: str, login: str) -> bool:
    """Let `login` in no more and end its sessions; False where there is none."""
    found = _role(session, login)
    if found is None:
        return False
    if not _is_login_of(found, owner):
        raise Rejected(f"the role {login} is no login of {owner}; it stays")
    session.run(f"ALTER ROLE {_name(login)} NOLOGIN PASSWORD NULL")
    session.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = :login", login=login)
    return True


_Role = tuple[bool, bool, list[str]]
"""Whether it has rights over the whole server, whether it may log in, and the roles it is a member of."""


def _is_login_of(found: _Role, owner: str) -> bool:
    """An identity may itself end in `_a`: another consumer's owner could be called like this login."""
    powerful, _, member_of = found
    return not powerful and owner in member_of


def _role(session: Session, name: str) -> _Role | None:
    rows = session.run(
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls, rolcanlogin"
        " FROM pg_roles WHERE rolname = :name",
        name=name,
    )
    if not rows:
        return None
    above = session.run(
        "SELECT owner.rolname FROM pg_auth_members m JOIN pg_roles owner ON owner.oid = m.roleid"
        " JOIN pg_roles login ON login.oid = m.member WHERE login.rolname = :name ORDER BY 1",
        name=name,
    )
    return rows[0][0], rows[0][1], [row[0] for row in above]


# --- databases -----------------------------------------------------------------------------------------


def _ensure_database(session: Session, owner: str) -> None:
    """The database, which only its owner may enter; until the public's right is taken away, nobody can."""
    current = _owner_of_database(session, owner)
    if current is None:
        session.run(
            f"CREATE DATABASE {_name(owner)} OWNER {_name(owner)} TEMPLATE template0 CONNECTION LIMIT 0"
        )
    elif current != owner:
        raise Rejected(f"the database {owner} belongs to {current}; ALTER DATABASE {owner} OWNER TO {owner}")
    session.run(f"REVOKE ALL ON DATABASE {_name(owner)} FROM PUBLIC")
    if session.one("SELECT datconnlimit FROM pg_database WHERE datname = :name", name=owner) == 0:
        session.run(f"ALTER DATABASE {_name(owner)} CONNECTION LIMIT -1")


def _ensure_inside(session: Session, owner: str, extensions: Sequence[str]) -> None:
    """The schema `public` becomes the owner's (before PostgreSQL 15 it is not); what was asked is there."""
    schema = session.one(
        "SELECT r.rolname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner"
        " WHERE n.nspname = 'public'"
    )
    if schema not in (None, owner, "pg_database_owner"):
        session.run(f"ALTER SCHEMA public OWNER TO {_name(owner)}")
    there = {row[0] for row in session.run("SELECT extname FROM pg_extension")}
    for extension in extensions:
        if extension not in there:
            session.run("SET search_path = public")  # where an extension that names no schema goes
            session.run(f"CREATE EXTENSION IF NOT EXISTS {_name(extension)} CASCADE")
            session.run("SET search_path = pg_catalog")


def _owner_of_database(session: Session, name: str) -> Json:
    return session.one(
        "SELECT r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE d.datname = :name",
        name=name,
    )


# --- what is given -------------------------------------------------------------------------------------


def _check_identity(consumer: Consumer) -> None:
    name = consumer.as_
    if not _IDENTITY.fullmatch(name) or name in _OWN_DATABASES or name.startswith("pg_"):
        raise Rejected(f"{consumer.to}: PostgreSQL can't call a database by its identity")


def _extensions(consumer: Consumer) -> list[str]:
    asked = consumer.asks.get("extensions", [])
    if not isinstance(asked, list) or not all(
        isinstance(each, str) and _EXTENSION.fullmatch(each) for each in asked
    ):
        raise Rejected(f"{consumer.to}: `extensions` is not a list of names")
    return asked


def _reached(backend: Backend) -> tuple[str, int]:
    if backend.address is None or backend.port is None:
        raise Rejected("the adapter postgres needs `at:`, a port requirement")
    return backend.address, backend.port


def _administrator(backend: Backend) -> tuple[str, Secret]:
    if backend.login is None or backend.admin is None:
        raise Rejected("the adapter postgres needs `login:` and `admin:`")
    return backend.login, backend.admin


def _name(identifier: str) -> str:
    """An identifier, quoted."""
    return '"' + identifier.replace('"', '""') + '"'
