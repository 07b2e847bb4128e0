"""The reader's side of a credential: signing in at the backend as the consumer would (D2)."""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.host.adapters.base import Rejected
from gitmesh.trust.secret import Secret

CHECKS = ("postgres", "none")
"""Those this version has; the contracts' closed set has mariadb, redis, amqp and s3 besides."""

LIMIT = 10.0
"""Seconds that one answer of the backend may take."""


class NoCheck(Exception):
    """No check of this name; the text names it and those there are."""


def authenticate(
    check: str,
    fields: Mapping[str, str],
    secret: Secret,
    login: str | None = None,
    *,
    hosts: Mapping[str, str] | None = None,
    limit: float = LIMIT,
) -> None:
    """Sign in with `login` and `secret` where the contract's `fields` say; returns when it worked.

    `hosts` are the declaration's private names with their addresses, which the node's resolver may not
    know. `none` does nothing: its reader confirms by being healthy (FORMATS "Contract"). Raises `Down`,
    `Slow`, `Rejected` with the backend's own message, and `NoCheck`.
    """
    match check:
        case "none":
            return
        case "postgres":
            _postgres(fields, secret, login, hosts or {}, limit)
        case _:
            raise NoCheck(f"this version of gitmesh has no check {check!r}; it has {', '.join(CHECKS)}")


def _postgres(
    fields: Mapping[str, str], secret: Secret, login: str | None, hosts: Mapping[str, str], limit: float
) -> None:
    from gitmesh.host.adapters.postgres_session import Session  # the driver is loaded where it is needed

    missing = [name for name in ("host", "port", "database") if name not in fields]
    if missing or login is None:
        raise Rejected(f"the check postgres needs {', '.join(missing) or 'a login'}")
    host, port = fields["host"], fields["port"]
    if not (port.isascii() and port.isdigit()):
        raise Rejected("the check postgres needs a number as `port`")
    address = hosts.get(host, host)
    tls = fields.get("tls", "disable")
    with Session(address, int(port), login, secret, fields["database"], tls=tls, limit=limit) as session:
        session.run("SELECT 1")
