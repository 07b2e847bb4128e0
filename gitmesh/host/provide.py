"""What a node does with credentials: sets those it provides, and signs in with those it reads (D2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gitmesh.core.declaration import CheckSpec, ConsumerSpec, Declaration, Filled, ProvisionSpec
from gitmesh.core.model import Json
from gitmesh.core.waiting import Waiting
from gitmesh.host.adapters import adapter
from gitmesh.host.adapters.base import Adapter, Backend, Consumer, Credential, Down, NoAdapter, Rejected, Slow
from gitmesh.host.authenticate import NoCheck, authenticate
from gitmesh.host.fill import VAULT, Filler, SecretValue, Unfilled, Values
from gitmesh.trust.documents import Confirm
from gitmesh.trust.secret import Secret

_OURS = ("vault",)
"""Adapters that the pull itself is."""


@dataclass
class Provided:
    """What came of it: `confirms` by secret, `answers` by the consumer's requirement, and what did not go.

    `waiting`: a backend that can't be reached, for now. `not_run`: adapters and checks of later versions.
    """

    confirms: dict[str, Confirm] = field(default_factory=dict)
    answers: dict[str, dict[str, Json]] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)


def provide(
    declaration: Declaration,
    running: Collection[str],
    applying: Mapping[str, SecretValue],
    confirmed: Mapping[str, Confirm],
) -> Provided:
    """See that every consumer's credential that came is set at its backend, and confirm it.

    `running`: the assignments that are applied. A credential that was `confirmed` before is tried first,
    and set again only where the backend does not know it: one that was rebuilt gets every credential anew.
    """
    provided = Provided()
    for id_, spec in sorted(declaration.assignments.items()):
        for contract, provision in spec.provides.items():
            if provision.adapter is None or provision.adapter in _OURS or id_ not in running:
                continue
            try:
                its = adapter(provision.adapter)
            except NoAdapter:
                provided.not_run.append(f"{id_}: not run here: adapter {provision.adapter} of {contract}")
                continue
            for consumer in provision.consumers:
                _serve(declaration, id_, provision, its, consumer, applying, confirmed, provided)
    return provided


def _serve(
    declaration: Declaration,
    id_: str,
    provision: ProvisionSpec,
    its: Adapter,
    consumer: ConsumerSpec,
    applying: Mapping[str, SecretValue],
    confirmed: Mapping[str, Confirm],
    provided: Provided,
) -> None:
    value = None if consumer.secret is None else applying.get(consumer.secret)
    admin = None if provision.admin is None else applying.get(provision.admin)
    if value is None or consumer.secret is None or (provision.admin is not None and admin is None):
        return
    backend = Backend(
        provision.address,
        provision.port,
        provision.login,
        None if admin is None else admin.value,
        provision.location,
        provision.options,
    )
    who = Consumer(consumer.to, consumer.as_, consumer.asks, _plain(consumer.serves))
    logins = declaration.secrets[consumer.secret].logins
    assert value.slot in ("a", "b")
    slot: Literal["a", "b"] = "a" if value.slot == "a" else "b"
    login = consumer.as_ if logins is None else logins[0 if slot == "a" else 1]
    try:
        _set(its, backend, who, Credential(slot, login, value.value), value, confirmed, provided)
    except Down:
        provided.waiting.append(Waiting(id_, f"{provision.adapter} at {_where(provision)}", consumer.to))
        _stands(consumer.to, value, confirmed, provided)
    except Slow:
        _stands(consumer.to, value, confirmed, provided)
        provided.failed.append((id_, f"{provision.adapter} at {_where(provision)} did not answer in time"))
    except Rejected as rejected:
        provided.failed.append((id_, f"{provision.adapter} refused the login of {consumer.to}: {rejected}"))


def _stands(to: str, value: SecretValue, confirmed: Mapping[str, Confirm], provided: Provided) -> None:
    """A backend that can't be asked takes back no confirm of this version."""
    last = confirmed.get(to)
    if last is not None and (last.slot, last.version) == (value.slot, value.version):
        provided.confirms[to] = last


def _set(
    its: Adapter,
    backend: Backend,
    who: Consumer,
    credential: Credential,
    value: SecretValue,
    confirmed: Mapping[str, Confirm],
    provided: Provided,
) -> None:
    last = confirmed.get(who.to)
    known = last is not None and last.applied and (last.slot, last.version) == (value.slot, value.version)
    try:
        if not known:
            raise Rejected("not set yet")
        its.confirm(backend, who, credential)
    except Rejected:
        answers = its.ensure(backend, who, credential)
        its.confirm(backend, who, credential)
        if answers:
            provided.answers[who.to] = dict(answers)
    provided.confirms[who.to] = Confirm(value.slot, value.version, applied=True)


def authenticate_all(
    declaration: Declaration,
    running: Collection[str],
    values: Values,
    confirmed: Mapping[str, Confirm],
    provided: Provided,
) -> None:
    """Sign in with every credential that a consumer of this node was given, once per version, and confirm."""
    filler = Filler(declaration, values)
    for id_, spec in sorted(declaration.assignments.items()):
        for check in spec.checks.values():
            value = values.secrets.get(check.secret)
            if value is None or id_ not in running:
                continue
            last = confirmed.get(check.secret)
            if (
                last is not None
                and last.authenticated
                and (last.slot, last.version) == (value.slot, value.version)
            ):
                _confirm(provided, check.secret, value)
                continue
            try:
                _sign_in(
                    declaration, filler, id_, check, value.value, _login(declaration, check.secret, value)
                )
            except NoCheck:
                provided.not_run.append(f"{id_}: not run here: check {check.check}")
            except Down:
                on = declaration.secrets[check.secret].by or VAULT
                provided.waiting.append(Waiting(id_, on, check.secret))
            except (Slow, Rejected, Unfilled) as wrong:
                provided.failed.append((id_, f"could not sign in for {check.secret}: {wrong}"))
            else:
                _confirm(provided, check.secret, value)


def _sign_in(
    declaration: Declaration, filler: Filler, id_: str, check: CheckSpec, secret: Secret, login: str | None
) -> None:
    fields = {}
    for name, text in check.fields.items():
        filled = filler.text(id_, text)
        if isinstance(filled, str):
            fields[name] = filled
    authenticate(check.check, fields, secret, login, hosts=declaration.hosts)


def _login(declaration: Declaration, secret: str, value: SecretValue) -> str | None:
    logins = declaration.secrets[secret].logins
    return None if logins is None else logins[0 if value.slot == "a" else 1]


def _confirm(provided: Provided, secret: str, value: SecretValue) -> None:
    before = provided.confirms.get(secret)
    applied = None if before is None else before.applied
    provided.confirms[secret] = Confirm(value.slot, value.version, applied=applied, authenticated=True)


def _plain(serves: Mapping[str, Filled]) -> dict[str, str]:
    """What is served without a hole; an adapter is given its login and secret apart."""
    return {name: text for name, text in serves.items() if isinstance(text, str)}


def _where(provision: ProvisionSpec) -> str:
    return f"{provision.address}:{provision.port}"
