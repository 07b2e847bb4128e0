"""What an adapter is: who makes a consumer's resource at a backend, and gives it its logins (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gitmesh.core.identity import logins
from gitmesh.core.model import Json
from gitmesh.trust.secret import Secret

Slot = Literal["a", "b"]
"""Which of a consumer's two credentials (D2)."""

Rotation = Literal["two", "in-place"]
"""Whether a backend holds both credentials of a rotation at once (D2), or changes the one it has (D8)."""

Answers = Mapping[str, Json]
"""The fields that only the running backend knows, by name."""


class Down(Exception):
    """The backend can't be reached or is not ready; whoever needs it waits."""


class Slow(Exception):
    """The backend was reached and gave no answer within the limit."""


class Rejected(Exception):
    """The backend said no. The text is its own, without a secret."""


class NoAdapter(Exception):
    """No adapter of this name; the text names it and those there are."""


@dataclass(frozen=True, slots=True)
class Backend:
    """How to reach the backend, and as whom. `location` is the directory where `at` names one."""

    address: str | None = None
    port: int | None = None
    login: str | None = None
    admin: Secret | None = None
    location: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Consumer:
    """Whom the resource is for: `to` is the requirement, `as_` names the resource and its owner."""

    to: str
    as_: str
    asks: Mapping[str, Json] = field(default_factory=dict)
    serves: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credential:
    """One of the consumer's two logins with its secret."""

    slot: Slot
    login: str
    secret: Secret


class Adapter(Protocol):
    """Makes consumers' resources at one kind of backend. Every verb may be repeated, after a kill too.

    Each raises `Down`, `Slow` or `Rejected`, and nothing else for what a backend does. A frozen set of
    verbs: what a credential reached is touched by `purge` alone (D5).
    """

    rotation: Rotation

    def ensure(self, backend: Backend, consumer: Consumer, credential: Credential) -> Answers:
        """See that the resource is there and that `credential` reaches it; the other slot, live sessions
        and everything in the resource stay as they are."""
        ...

    def confirm(self, backend: Backend, consumer: Consumer, credential: Credential) -> None:
        """Authenticate with `credential`; `Rejected` where it does not reach the resource as its owner."""
        ...

    def retire(self, backend: Backend, consumer: Consumer, slot: Slot) -> None:
        """Remove the login of `slot`, ending its sessions, and nothing that it reached or made (D5)."""
        ...

    def remove(self, backend: Backend, consumer: Consumer) -> None:
        """Remove the consumer's logins; the resource is an orphan from then on, all in it kept (D5)."""
        ...

    def purge(self, backend: Backend, consumer: Consumer) -> None:
        """Remove the consumer's logins and the resource with everything in it, for good (D5)."""
        ...

    def apply(self, backend: Backend, value: Secret) -> None:
        """Change the administrator's own secret from `backend.admin` to `value`, and authenticate with it.
        Done already counts as done, so that a kill in between does not lock the provisioner out (D4)."""
        ...


def login_of(consumer: Consumer, slot: Slot) -> str:
    """What the consumer logs in with in `slot`: `<as>_a` or `<as>_b`."""
    return dict(zip(("a", "b"), logins(consumer.as_), strict=True))[slot]


def without(secrets: tuple[Secret | None, ...], text: str) -> str:
    """A backend's message with every one of `secrets` taken out (C10)."""
    for secret in secrets:
        if secret is not None and secret.reveal():
            text = text.replace(secret.reveal().decode(errors="replace"), "<secret>")
    return text
