"""An adapter whose backend is a few dictionaries: the real seam, for tests that need no server."""

from __future__ import annotations

from dataclasses import dataclass, field

from gitmesh.host.adapters.base import (
    Answers,
    Backend,
    Consumer,
    Credential,
    Down,
    Rejected,
    Rotation,
    Slot,
    Slow,
    login_of,
)
from gitmesh.trust.secret import Secret


@dataclass
class FakeServer:
    """What a server holds: rows by resource, and each login's resource and secret. Set `state` to `down` or
    `slow`; `refuse` names logins whose new secret it rejects (S46)."""

    admin: Secret
    state: str = "up"
    refuse: set[str] = field(default_factory=set)
    resources: dict[str, list[str]] = field(default_factory=dict)
    logins: dict[str, tuple[str, Secret]] = field(default_factory=dict)

    def answer(self) -> None:
        """As every request: what is down or slow says so."""
        if self.state == "down":
            raise Down("the server can't be reached")
        if self.state == "slow":
            raise Slow("the server gave no answer within the limit")

    def sign_in(self, login: str, secret: Secret, resource: str) -> list[str]:
        """The rows of `resource`, for its own logins."""
        self.answer()
        reaches, password = self.logins.get(login, ("", Secret("")))
        if password != secret or reaches != resource:
            raise Rejected(f"password authentication failed for {login}")
        return self.resources[resource]


class FakeAdapter:
    """Makes resources in `server`; `said` lists the verbs in the order they came."""

    rotation: Rotation = "two"

    def __init__(self, server: FakeServer, answers: Answers | None = None) -> None:
        self.server = server
        self.answers = answers or {}
        self.said: list[str] = []

    def _administer(self, backend: Backend, verb: str, subject: str) -> None:
        self.said.append(f"{verb} {subject}")
        self.server.answer()
        if backend.admin != self.server.admin:
            raise Rejected("password authentication failed for the administrator")

    def ensure(self, backend: Backend, consumer: Consumer, credential: Credential) -> Answers:
        self._administer(backend, "ensure", credential.login)
        if credential.login in self.server.refuse:
            raise Rejected(f"the password for {credential.login} is not accepted")
        self.server.resources.setdefault(consumer.as_, [])
        self.server.logins[credential.login] = (consumer.as_, credential.secret)
        return dict(self.answers)

    def confirm(self, backend: Backend, consumer: Consumer, credential: Credential) -> None:
        self.said.append(f"confirm {credential.login}")
        self.server.sign_in(credential.login, credential.secret, consumer.as_)

    def retire(self, backend: Backend, consumer: Consumer, slot: Slot) -> None:
        self._administer(backend, "retire", login_of(consumer, slot))
        self.server.logins.pop(login_of(consumer, slot), None)

    def remove(self, backend: Backend, consumer: Consumer) -> None:
        self.retire(backend, consumer, "a")
        self.retire(backend, consumer, "b")

    def purge(self, backend: Backend, consumer: Consumer) -> None:
        self.remove(backend, consumer)
        self.server.resources.pop(consumer.as_, None)

    def apply(self, backend: Backend, value: Secret) -> None:
        self.said.append("apply")
        self.server.answer()
        if self.server.admin not in (backend.admin, value):
            raise Rejected("password authentication failed for the administrator")
        self.server.admin = value
