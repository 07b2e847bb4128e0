"""One table of what every adapter must do, run against the real servers and the fake one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gitmesh.core.identity import LONGEST
from gitmesh.host.adapters import ADAPTERS, adapter
from gitmesh.host.adapters.base import (
    Down,
    NoAdapter,
    Rejected,
    Slot,
    Slow,
)
from gitmesh.host.authenticate import NoCheck, authenticate
from gitmesh.trust.secret import Secret
from tests.host.benches import BENCHES, PASSWORDS, Bench, consumer, credential
from tests.host.postgres_server import (
    postgres,  # noqa: F401 - a fixture, asked for by name
    postgres_folder,  # noqa: F401 - the same
)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.fixture(params=[pytest.param("fake"), pytest.param("postgres", marks=pytest.mark.real)])
def bench(request: pytest.FixtureRequest) -> Bench:
    return BENCHES[request.param](request)


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
    app = consumer("longestname_athens")
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
