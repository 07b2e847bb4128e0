"""A session with PostgreSQL over pg8000: its limits, its errors as the seam's three, its passwords."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import ssl
from base64 import b64decode, b64encode
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

import pg8000.native
from scramp import ScramException  # type: ignore[import-untyped]  # pg8000's own part; it ships no types
from scramp.utils import saslprep  # type: ignore[import-untyped]  # the same

from gitmesh.core.model import Json
from gitmesh.host.adapters.base import Down, Rejected, Slow, without
from gitmesh.trust.secret import Secret

LIMIT = 30.0
"""Seconds that one answer of the server may take; a new database is the slowest."""

ITERATIONS = 4096
"""As PostgreSQL's own default; a made value has 256 bits, so that more would buy nothing."""

_VERIFIER = re.compile(
    r"SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/=]+)\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+", re.ASCII
)

_NOT_READY = frozenset({"57P01", "57P02", "57P03", "53300"})
"""Shutting down, crashed, starting up, too many connections."""
_TOOK_LONG = frozenset({"57014", "55P03"})
"""The statement's or the lock's time limit."""


class Session:
    """Signed in as `login` in `database`; use it in a `with` statement. Each answer may take `limit` seconds.

    `tls` is `disable`, or `require`: encrypted, the certificate not verified, as libpq means that word.
    Signing in and `run` raise `Down`, `Slow` and `Rejected`, and do so outside the handler: no error carries
    the driver's frames, whose locals hold the password (S53).
    """

    def __init__(
        self,
        address: str,
        port: int,
        login: str,
        secret: Secret,
        database: str,
        *,
        tls: str = "disable",
        limit: float = LIMIT,
    ) -> None:
        self._secret = secret
        context = _tls(tls)
        prepared = _prepared(secret)
        failure: Exception
        try:
            self._connection = pg8000.native.Connection(
                login,
                host=address,
                port=port,
                database=database,
                password=prepared.text(),
                ssl_context=context,
                timeout=limit,
                application_name="gitmesh",
            )
        except (pg8000.native.Error, ScramException, OSError) as error:
            failure = _said(error, secret)
        else:
            return
        raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(pg8000.native.Error, OSError):  # the connection may be gone by now
            self._connection.close()

    def run(self, statement: str | Secret, **values: Json) -> list[list[Json]]:
        """The rows of `statement`, in which `:name` stands for a value. One that holds a password's
        verifier is given as a `Secret`."""
        failure: Exception
        try:
            rows = self._connection.run(
                statement.text() if isinstance(statement, Secret) else statement, **values
            )
        except (pg8000.native.Error, OSError) as error:
            failure = _said(error, self._secret)
        else:
            return list(rows or ())
        raise failure

    def one(self, query: str, **values: Json) -> Json:
        """The first column of the first row, or None."""
        rows = self.run(query, **values)
        return rows[0][0] if rows else None


def _tls(wanted: str) -> ssl.SSLContext | Literal[False]:
    match wanted:
        case "disable":
            return False
        case "require":
            encrypted = ssl.create_default_context()
            encrypted.check_hostname = False
            encrypted.verify_mode = ssl.CERT_NONE
            return encrypted
        case _:
            raise Rejected("`tls` is neither `disable` nor `require`")


def _said(error: Exception, secret: Secret) -> Exception:
    """The driver's error as one of the seam's three."""
    said = error.args[0] if error.args else None
    if isinstance(error, pg8000.native.DatabaseError) and isinstance(said, dict):
        text = without((secret,), str(said.get("M", "no reason given")))
        state = said.get("C")
        if state in _NOT_READY:
            return Down(text)
        return Slow(text) if state in _TOOK_LONG else Rejected(text)
    if "Can't create a connection" in str(error):
        return Down("the server can't be reached")
    causes = _causes(error)
    if any(isinstance(each, TimeoutError) for each in causes):
        return Slow("the server gave no answer within the limit")
    if "SSL" in str(error) or any(isinstance(each, ssl.SSLError) for each in causes):
        return Rejected("the server offers no TLS that gitmesh can use, and `tls: require` asks for it")
    if isinstance(error, ScramException):
        return Rejected("the server failed to prove that it knows the password")
    return Down("the connection to the server broke")


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what led to it."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _prepared(secret: Secret) -> Secret:
    """The password as both sides of SCRAM see it: plain ASCII is itself, other text is normalised, so that a
    client which types `é` as two code points gets in too. `Rejected` for what SASLprep forbids."""
    prepared = Secret("")
    with suppress(ScramException, ValueError):
        prepared = Secret(saslprep(secret.text()))
    if prepared == Secret(""):
        raise Rejected("the password is empty or has a character that SASLprep forbids (RFC 4013)")
    return prepared


def verifier(secret: Secret, salt: bytes | None = None, iterations: int = ITERATIONS) -> Secret:
    """What PostgreSQL stores for a password (RFC 5803): good for checking it, not for signing in with.
    It stays a secret all the same, since a weak password could be guessed from it (SECURITY §0.12)."""
    salt = os.urandom(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", _prepared(secret).reveal(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    parts = [b64encode(part).decode() for part in (salt, stored, server)]
    return Secret(f"SCRAM-SHA-256${iterations}:{parts[0]}${parts[1]}:{parts[2]}")


def is_of(stored: Json, secret: Secret) -> bool:
    """Whether what the server stored is the verifier of `secret`."""
    match = _VERIFIER.fullmatch(stored) if isinstance(stored, str) else None
    if match is None:
        return False
    return verifier(secret, b64decode(match[2]), int(match[1])) == Secret(match[0])
