"""What a module requires, against the contracts: refused at parse, where, and what answers it."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from gitmesh.repo.document import check, read
from tests.core.definitions import refusals_of, refused_once, with_container, words_of


def _requires(line: str) -> str:
    return f"module: app\nrequires:\n  http: {{host: port, listens: 80}}\n  it: {line}\n"


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("{module: databse}", Code.CONTRACT_UNKNOWN, ("module",)),
        ("{module: database, extension: [a]}", Code.ASK_UNKNOWN, ("extension",)),
        ("{module: database, default: 3}", Code.ASK_UNKNOWN, ("default",)),
        ("{module: database, extensions: a}", Code.ASK_TYPE, ("extensions",)),
        ("{module: database, extensions: [1]}", Code.ASK_TYPE, ("extensions",)),
        ("{module: route}", Code.ASK_MISSING, ()),
        ("{module: route, upstream: '${http:address}', name: a.b}", Code.ASK_UNKNOWN, ("name",)),
        ("{module: route, upstream: 'no port'}", Code.ASK_TYPE, ("upstream",)),
        ("{module: secret, form: octal}", Code.ASK_TYPE, ("form",)),
        ("{module: secret, form: text}", Code.ASK_TYPE, ("form",)),
        ("{module: secret, length: 3}", Code.ASK_TYPE, ("length",)),
        (
            "{module: database, narrow: {password: {minLength: 8}}}",
            Code.NARROW_LOOSENS,
            ("narrow", "password"),
        ),
        (
            "{module: database, narrow: {password: {pattern: '[0-9]+'}}}",
            Code.NARROW_LOOSENS,
            ("narrow", "password"),
        ),
        (
            "{module: secret, narrow: {value: {maxLength: 20, minLength: 30}}}",
            Code.NARROW_LOOSENS,
            ("narrow", "value"),
        ),
        (
            "{module: database, narrow: {pasword: {minLength: 32}}}",
            Code.REFERENCE_UNKNOWN,
            ("narrow", "pasword"),
        ),
        ("{module: scrape, address: 'x', takes: start}", Code.ASK_UNKNOWN, ("takes",)),
        ("{module: scrape, address: 'x', max-age: 90d}", Code.ASK_UNKNOWN, ("max-age",)),
        ("{operator: {type: integer, minimum: 1}, default: 0}", Code.VALUE_TYPE, ("default",)),
        ("{operator: {type: string, pattern: '(a+)+'}}", Code.SCHEMA, ("operator", "pattern")),
    ],
)
@pytest.mark.rule("A1")
@pytest.mark.rule("A6")
def test_a_requirement_that_is_refused(line: str, code: Code, keys: tuple[str, ...]) -> None:
    refusal = refused_once(_requires(line), code, "requires", "it", *keys)
    assert refusal.subject.startswith("app.it")
    assert refusal.answers


@pytest.mark.rule("A6")
def test_a_contract_that_is_unknown_is_answered() -> None:
    refusal = refused_once(_requires("{module: databse}"), Code.CONTRACT_UNKNOWN, "requires", "it", "module")
    assert "did you mean `database`?" in words_of(refusal)


@pytest.mark.parametrize(
    "line",
    [
        "{module: database, narrow: {password: {minLength: 32}}}",
        "{module: database, seat: mesh-store}",
        "{module: secret, seat: mesh-vault, form: base64url, length: 43}",
        "{module: secret, source: operator, form: text, lines: many}",
        "{module: secret, form: hex, length: 64, narrow: {value: {pattern: '[0-9a-f]{64}'}}}",
        "{module: token, takes: never, max-age: 90d}",
        "{operator: {type: integer, minimum: 1}, default: 2}",
    ],
)
@pytest.mark.rule("A6")
def test_a_requirement_that_may_be(line: str) -> None:
    assert refusals_of(_requires(line)) == []


@pytest.mark.parametrize("kind", ["cloud", "node", "provider"])
@pytest.mark.rule("A1")
@pytest.mark.rule("A2")
def test_another_kind_of_provider(kind: str) -> None:
    value, _ = read("m", _requires(f"{{{kind}: database}}").encode())
    assert [each.at.keys[:2] for each in check("module", "m", value)] == [("requires", "it")]


@pytest.mark.rule("A13")
def test_a_persistence_flag() -> None:
    line = "{host: directory, owner: '1:1', mode: '0750', persistent: true}"
    value, _ = read("m", _requires(line).encode())
    assert [each.at.keys for each in check("module", "m", value)] == [("requires", "it", "persistent")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{module: database, seat: mesh-controller}", Code.SEAT_FOUNDATION),
        ("{module: database, seat: mesh-stor}", Code.SEAT_UNKNOWN),
        ("{module: database, seat: mesh-edge}", Code.SEAT_UNKNOWN),
        ("{module: secret, seat: mesh-store}", Code.SECRET_RESERVED),
    ],
)
@pytest.mark.rule("A7")
@pytest.mark.rule("A8")
def test_a_seat_that_delivers_no_such_thing(line: str, code: Code) -> None:
    refused_once(_requires(line), code, "requires", "it", "seat")


@pytest.mark.rule("A15")
def test_the_seats_of_a_module() -> None:
    assert refusals_of("module: app\nseats: [mesh-controller]\n") == []
    refused_once("module: app\nseats: [mesh-stor]\n", Code.SEAT_UNKNOWN, "seats", 0)
    refused_once("module: app\nseats: [mesh-store]\n", Code.PROVIDES_MISMATCH, "seats", 0)


@pytest.mark.rule("B14")
def test_two_requirements_of_one_contract() -> None:
    two = "module: app\nrequires:\n  one: {module: database}\n  two: {module: database%s}\n"
    assert "`as: two`" in words_of(refused_once(two % "", Code.AS_NEEDED, "requires", "two"))
    assert refusals_of(two % ", as: ro") == []
    three = two % ", as: ro" + "  three: {module: database, as: ro}\n"
    refused_once(three, Code.AS_NEEDED, "requires", "three")
    assert refusals_of("module: app\nrequires:\n  one: {module: secret}\n  two: {module: secret}\n") == []


def test_what_stands_on_a_broken_contract_is_silent() -> None:
    text = with_container("env: {X: '${gone:field}', Y: '${gone:other}'}").replace(
        "requires:\n", "requires:\n  gone: {module: gone, ask: 3}\n"
    )
    assert refusals_of(text, broken=("gone",)) == []
    assert [each.code for each in refusals_of(text)] == [Code.CONTRACT_UNKNOWN], (
        "and an unknown one says so once"
    )


def test_asks_that_read_each_other() -> None:
    text = (
        "module: app\nrequires:\n"
        "  one: {module: scrape, address: '${two:address}'}\n"
        "  two: {module: scrape, as: b, address: '${one:address}'}\n"
    )
    refusals = refusals_of(text)
    assert [each.code for each in refusals] == [Code.CYCLE]
    assert "one:address" in refusals[0].message
    seen = "  seen: {module: scrape, address: '${web:url}'}\n  mesh:"
    assert refusals_of(with_container("env: {X: x}").replace("  mesh:", seen)) == []


def test_unused_names_fields() -> None:
    text = "module: app\nrequires: {db: {module: database}}\nunused: {%s: {%s: why}}\n"
    assert refusals_of(text % ("db", "database")) == []
    refused_once(text % ("dv", "database"), Code.REFERENCE_UNKNOWN, "unused", "dv")
    refused_once(text % ("db", "prefix"), Code.REFERENCE_UNKNOWN, "unused", "db", "prefix")


@pytest.mark.rule("A4")
@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (
            "{module: database, narrow: {password: {pattern: '${http:port}'}}}",
            ("narrow", "password", "pattern"),
        ),
        ("{operator: {enum: ['${http:port}']}}", ("operator", "enum", 0)),
        ("{operator: {type: string}, default: '${http:port}'}", ("default",)),
        (
            "{host: directory, owner: '1:1', mode: '0750'}\n"
            "provides: {database: {accepts: {extensions: {items: {enum: ['${http:port}']}}}}}",
            None,
        ),
    ],
)
def test_no_answer_is_read_in_a_type(line: str, keys: tuple[str | int, ...] | None) -> None:
    found = [each for each in refusals_of(_requires(line)) if each.code is Code.REFERENCE_FORM]
    place = ("provides", "database", "accepts", "extensions", "items", "enum", 0) if keys is None else keys
    assert [each.at.keys[-len(place) :] for each in found] == [place]
