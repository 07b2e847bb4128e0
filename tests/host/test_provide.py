"""What a node does with credentials, at a backend of a few dictionaries (D2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitmesh.core.declaration import (
    AssignmentSpec,
    CheckSpec,
    ConsumerSpec,
    Declaration,
    ProvisionSpec,
    SecretSpec,
)
from gitmesh.core.waiting import Waiting
from gitmesh.host import provide as under_test
from gitmesh.host.adapters.base import Down, NoAdapter, Rejected, Slow
from gitmesh.host.authenticate import NoCheck
from gitmesh.host.fill import SecretValue, Values
from gitmesh.host.provide import Provided, authenticate_all, provide
from gitmesh.trust.documents import Confirm
from gitmesh.trust.secret import Secret
from tests.host.fake_adapter import FakeAdapter, FakeServer

TO, OTHER, ADMIN = "gitea@athens.database", "umami@athens.database", "postgres@sparta.superuser"
RUNNING = {"postgres@sparta"}


def secret(number: int, version: int = 1, slot: str = "a") -> SecretValue:
    return SecretValue(slot, version, Secret(f"GMCANARY{number}v{version}"))


def consumer(to: str, as_: str) -> ConsumerSpec:
    return ConsumerSpec(to, as_, "athens", "127.0.0.11", secret=to)


def spec(to: str, as_: str) -> SecretSpec:
    schema = {"type": "string"}
    return SecretSpec(
        to.rpartition(".")[0], "password", schema, "apply", "start", logins=(f"{as_}_a", f"{as_}_b")
    )


DECLARATION = Declaration(
    "0" * 32,
    "hellas",
    "sparta",
    "127.0.0.12",
    "/var/lib/mesh",
    assignments={
        "postgres@sparta": AssignmentSpec(
            "postgres_sparta",
            provides={
                "postgres-database": ProvisionSpec(
                    adapter="postgres",
                    address="127.0.0.12",
                    port=5432,
                    login="postgres",
                    admin=ADMIN,
                    consumers=(consumer(TO, "gitea_athens"), consumer(OTHER, "umami_athens")),
                )
            },
        )
    },
    secrets={TO: spec(TO, "gitea_athens"), OTHER: spec(OTHER, "umami_athens"), ADMIN: spec(ADMIN, "x")},
)
APPLYING = {TO: secret(1), OTHER: secret(2), ADMIN: secret(0)}


@pytest.fixture
def its(monkeypatch: pytest.MonkeyPatch) -> FakeAdapter:
    """The adapter `postgres`, whose backend is this test's own."""
    made = FakeAdapter(FakeServer(secret(0).value), answers={"database": "gitea"})

    def adapter(name: str) -> FakeAdapter:
        if name != "postgres":
            raise NoAdapter(f"no adapter {name!r}")
        return made

    monkeypatch.setattr(under_test, "adapter", adapter)
    return made


def confirmed(provided: Provided) -> dict[str, Confirm]:
    return dict(provided.confirms)


@pytest.mark.rule("D2")
def test_a_credential_is_set_and_confirmed_with_its_login(its: FakeAdapter) -> None:
    provided = provide(DECLARATION, RUNNING, APPLYING, {})
    assert its.said == [
        "ensure gitea_athens_a",
        "confirm gitea_athens_a",
        "ensure umami_athens_a",
        "confirm umami_athens_a",
    ]
    assert provided.confirms == {each: Confirm("a", 1, applied=True) for each in (TO, OTHER)}
    assert provided.answers[TO] == {"database": "gitea"}
    assert (provided.failed, provided.waiting, provided.not_run) == ([], [], [])
    moved = provide(DECLARATION, RUNNING, APPLYING | {TO: secret(1, 2, "b")}, confirmed(provided))
    assert its.said[4:] == ["ensure gitea_athens_b", "confirm gitea_athens_b", "confirm umami_athens_a"]
    assert moved.confirms[TO] == Confirm("b", 2, applied=True)
    assert set(its.server.logins) == {"gitea_athens_a", "gitea_athens_b", "umami_athens_a"}


@pytest.mark.rule("D2", "E1")
def test_what_was_confirmed_is_only_looked_at(its: FakeAdapter) -> None:
    before = confirmed(provide(DECLARATION, RUNNING, APPLYING, {}))
    its.said.clear()
    provided = provide(DECLARATION, RUNNING, APPLYING, before)
    assert its.said == ["confirm gitea_athens_a", "confirm umami_athens_a"]
    assert provided.confirms == before


@pytest.mark.rule("D2", "E2")
def test_a_rebuilt_backend_gets_every_credential_again(its: FakeAdapter) -> None:
    before = confirmed(provide(DECLARATION, RUNNING, APPLYING, {}))
    its.server.resources.clear()
    its.server.logins.clear()
    its.said.clear()
    assert provide(DECLARATION, RUNNING, APPLYING, before).confirms == before
    assert "ensure gitea_athens_a" in its.said and "ensure umami_athens_a" in its.said
    assert set(its.server.logins) == {"gitea_athens_a", "umami_athens_a"}


@pytest.mark.rule("B11")
def test_a_backend_that_is_down_is_waiting_and_takes_no_confirm_back(its: FakeAdapter) -> None:
    its.server.state = "down"
    provided = provide(DECLARATION, RUNNING, APPLYING, {})
    assert provided.waiting == [
        Waiting("postgres@sparta", "postgres at 127.0.0.12:5432", each) for each in (TO, OTHER)
    ]
    assert (provided.confirms, provided.failed) == ({}, [])
    its.server.state = "up"
    before = confirmed(provide(DECLARATION, RUNNING, APPLYING, {}))
    its.server.state = "down"
    assert provide(DECLARATION, RUNNING, APPLYING, before).confirms == before
    newer = APPLYING | {TO: secret(1, 2, "b")}
    assert provide(DECLARATION, RUNNING, newer, before).confirms == {OTHER: before[OTHER]}


@pytest.mark.rule("G9")
def test_one_credential_that_fails_withholds_no_other(its: FakeAdapter) -> None:
    its.server.refuse.add("gitea_athens_a")
    provided = provide(DECLARATION, RUNNING, APPLYING, {})
    assert provided.confirms.keys() == {OTHER}
    assert [each for each, _ in provided.failed] == ["postgres@sparta"]
    assert TO in provided.failed[0][1] and "GMCANARY" not in provided.failed[0][1]
    its.server.state = "slow"
    slow = provide(DECLARATION, RUNNING, APPLYING, confirmed(provided))
    assert len(slow.failed) == 2 and all("did not answer in time" in why for _, why in slow.failed)
    assert slow.confirms == provided.confirms


def test_nothing_is_asked_of_a_provider_that_is_not_there_yet(its: FakeAdapter) -> None:
    assert provide(DECLARATION, (), APPLYING, {}) == Provided()
    without_admin = {each: value for each, value in APPLYING.items() if each != ADMIN}
    assert provide(DECLARATION, RUNNING, without_admin, {}) == Provided()
    assert provide(DECLARATION, RUNNING, {ADMIN: APPLYING[ADMIN]}, {}) == Provided()
    assert its.said == []


def test_an_adapter_of_a_later_version_is_named_once(its: FakeAdapter) -> None:
    spec_ = AssignmentSpec("x", provides={"route": ProvisionSpec("edge"), "secret": ProvisionSpec("vault")})
    declared = Declaration("0" * 32, "hellas", "sparta", "::1", "/", assignments={"caddy@sparta": spec_})
    provided = provide(declared, {"caddy@sparta"}, {}, {})
    assert provided.not_run == ["caddy@sparta: not run here: adapter edge of route"]


# --- the reader's side ---------------------------------------------------------------------------------

READER = Declaration(
    "0" * 32,
    "hellas",
    "athens",
    "127.0.0.11",
    "/var/lib/mesh",
    assignments={
        "gitea@athens": AssignmentSpec(
            "gitea_athens", checks={"database": CheckSpec("postgres", TO, {"host": "sparta", "port": "1"})}
        )
    },
    secrets={
        TO: SecretSpec(
            "gitea@athens", "password", {"type": "string"}, "present", "start", by="postgres@sparta",
            logins=("gitea_athens_a", "gitea_athens_b"),
        )
    },
)  # fmt: skip


def sign_in(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[], None],
    before: dict[str, Confirm],
    version: int = 1,
) -> tuple[Provided, list[str | None]]:
    logins: list[str | None] = []

    def authenticate(check: str, fields: object, value: Secret, login: str | None, hosts: object) -> None:
        assert check == "postgres" and fields == {"host": "sparta", "port": "1"}
        logins.append(login)
        answer()

    monkeypatch.setattr(under_test, "authenticate", authenticate)
    provided = Provided()
    values = Values({TO: secret(1, version, "b" if version == 2 else "a")})
    authenticate_all(READER, {"gitea@athens"}, values, before, provided)
    return provided, logins


def fails(wrong: Exception) -> Callable[[], None]:
    def answer() -> None:
        raise wrong

    return answer


@pytest.mark.rule("D2")
def test_a_reader_signs_in_once_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    first, logins = sign_in(monkeypatch, lambda: None, {})
    assert logins == ["gitea_athens_a"]
    assert first.confirms == {TO: Confirm("a", 1, authenticated=True)}
    again, logins = sign_in(monkeypatch, lambda: None, first.confirms)
    assert logins == [] and again.confirms == first.confirms
    newer, logins = sign_in(monkeypatch, lambda: None, first.confirms, version=2)
    assert logins == ["gitea_athens_b"]
    assert newer.confirms == {TO: Confirm("b", 2, authenticated=True)}


@pytest.mark.rule("B11", "G9")
def test_a_reader_that_can_not_sign_in_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    down, _ = sign_in(monkeypatch, fails(Down("no route")), {})
    assert down.waiting == [Waiting("gitea@athens", "postgres@sparta", TO)]
    assert (down.confirms, down.failed) == ({}, [])
    for wrong in (Rejected("password authentication failed"), Slow("no answer")):
        provided, _ = sign_in(monkeypatch, fails(wrong), {})
        assert provided.confirms == {} and TO in provided.failed[0][1]
    later, _ = sign_in(monkeypatch, fails(NoCheck("no check")), {})
    assert later.not_run == ["gitea@athens: not run here: check postgres"]
