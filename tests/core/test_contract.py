"""The contracts' schema subset, narrowing, and a contract's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.contract import ALPHABETS, can_be_made, check_value, made_length
from gitmesh.core.contract_builtin import HOST, MESH, SECRET
from gitmesh.core.contract_parse import parse_contract
from gitmesh.core.contract_schema import check_schema
from gitmesh.core.formats import FORMATS
from gitmesh.core.model import FieldName, Json
from gitmesh.core.patterns import both, compiled, wrong_with
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.document import read
from tests.real import shared

# --- schemas -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ({"type": "text"}, ("type",)),
        ({"type": []}, ("type",)),
        ({"minLenght": 3}, ("minLenght",)),
        ({"$ref": "https://example.org/schema.json"}, ("$ref",)),
        ({"allOf": []}, ("allOf",)),
        ({"enum": []}, ("enum",)),
        ({"enum": [1.5]}, ("enum",)),
        ({"const": {"a": [0.1]}}, ("const",)),
        ({"default": 1.5}, ("default",)),
        ({"minimum": 1.5}, ("minimum",)),
        ({"minLength": -1}, ("minLength",)),
        ({"minLength": True}, ("minLength",)),
        ({"format": "uuid"}, ("format",)),
        ({"pattern": "(a+)+"}, ("pattern",)),
        ({"pattern": "[a"}, ("pattern",)),
        ({"pattern": 3}, ("pattern",)),
        ({"type": "array", "items": {"type": "strin"}}, ("items", "type")),
        ({"type": "object", "properties": {"a": {"minimum": "1"}}}, ("properties", "a", "minimum")),
        ({"type": "object", "additionalProperties": {"type": 1}}, ("additionalProperties", "type")),
        ({"type": "object", "propertyNames": {"pattern": "\\1"}}, ("propertyNames", "pattern")),
        ({"type": "object", "required": "a"}, ("required",)),
        ({"type": "array", "uniqueItems": 1}, ("uniqueItems",)),
        ({"type": "integer", "minLength": 3}, ("minLength",)),
        ({"type": "string", "minLength": 9, "maxLength": 3}, ("minLength",)),
    ],
)
@pytest.mark.rule("A6")
def test_a_schema_that_may_not_be(schema: dict[str, Any], keys: tuple[str, ...]) -> None:
    assert [where for where, _ in check_schema(schema)] == [keys]


def test_a_misspelt_keyword_is_answered() -> None:
    assert check_schema({"minLenght": 3})[0][1].endswith("did you mean `minLength`?")


def test_no_schema_at_all() -> None:
    assert check_schema(["a"]) == [((), "expected a schema, which is a map")]


def test_all_that_a_schema_may_say() -> None:
    schema = {
        "type": ["object", "null"],
        "title": "t",
        "description": "d",
        "examples": [{"a": "b"}],
        "default": None,
        "properties": {
            "a": {
                "type": "string",
                "minLength": 1,
                "maxLength": 5,
                "pattern": "[a-z]+",
                "format": "hostname",
            },
            "b": {"type": "integer", "minimum": 1, "maximum": 5},
            "c": {
                "type": "array",
                "items": {"enum": ["x"]},
                "minItems": 1,
                "maxItems": 2,
                "uniqueItems": True,
            },
            "d": {"const": 3},
        },
        "required": ["a"],
        "additionalProperties": False,
        "propertyNames": {"pattern": "[a-z]"},
        "minProperties": 1,
        "maxProperties": 3,
    }
    assert check_schema(schema) == []
    assert check_value(schema, {"a": "abc", "b": 2, "c": ["x"]}) is None
    assert check_value(schema, None) is None


# --- values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"type": "string"}, 3, "expected text"),
        ({"type": "integer"}, True, "expected an integer"),
        ({"type": "integer"}, 1.0, "expected an integer"),
        ({"type": "boolean"}, "true", "expected true or false"),
        ({"type": ["integer", "null"]}, "x", "expected an integer or nothing"),
        ({}, 1.5, "a number with a point; write it as quoted text"),
        ({"enum": ["http", "https"]}, "ftp", "expected one of http, https"),
        ({"enum": [1]}, True, "expected one of 1"),
        ({"const": [{"a": True}]}, [{"a": 1}], "expected [{'a': True}]"),
        ({"const": True}, 1, "expected true"),
        ({"minLength": 24}, "short", "shorter than 24 characters"),
        ({"maxLength": 2}, "abc", "longer than 2 characters"),
        ({"pattern": "[a-z]+"}, "abc\n", "holds a control character or more than one line"),
        ({"pattern": "[a-z]+"}, "abc1", "does not match the pattern [a-z]+"),
        ({"pattern": r"\d+"}, "٣", r"does not match the pattern \d+"),
        (
            {"pattern": "a*"},
            "a" * 2000,
            "longer than 1024 characters, the most that a pattern is held against",
        ),
        ({"type": "string"}, "a\x1b[31m", "holds a control character or more than one line"),
        ({"type": "string", "lines": "many"}, "a\x00", "holds a control character"),
        ({"format": "hostname"}, "a b", "expected a host name such as git.example.org"),
        ({"minimum": 1}, 0, "less than 1"),
        ({"maximum": 1}, 2, "more than 1"),
        ({"minItems": 1}, [], "fewer than 1 items"),
        ({"maxItems": 1}, ["a", "b"], "more than 1 items"),
        ({"items": {"type": "string"}}, ["a", 2], "item 2: expected text"),
        ({"uniqueItems": True}, ["a", "a"], "item 2 stands there already"),
        ({"required": ["a"]}, {}, "lacks `a`"),
        ({"minProperties": 1}, {}, "fewer than 1 entries"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, "`b` is not among a"),
        ({"additionalProperties": {"type": "string"}}, {"b": 1}, "`b`: expected text"),
        (
            {"propertyNames": {"pattern": "[A-Z]+"}},
            {"b": 1},
            "the name `b` does not match the pattern [A-Z]+",
        ),
    ],
)
def test_a_value_that_does_not_fit(schema: dict[str, Any], value: object, wrong: str) -> None:
    assert check_value(schema, value) == wrong


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "anything"),
        ({"type": "string", "lines": "many"}, "one\n\ttwo\n"),
        ({"enum": ["a", 1, None]}, None),
        ({"items": {}, "uniqueItems": True}, [1, True, "1"]),
        ({"properties": {"a": {"type": "integer"}}, "additionalProperties": False}, {"a": 1}),
    ],
)
def test_a_value_that_fits(schema: dict[str, Any], value: object) -> None:
    assert check_value(schema, value) is None


@given(
    st.text(min_size=8),
    st.sampled_from([{"minLength": 10**6}, {"type": "integer"}, {"pattern": "[^\\s\\S]"}]),
)
def test_what_is_wrong_never_quotes_the_value(value: str, schema: dict[str, Any]) -> None:
    wrong = check_value(schema, f"GMCANARY{value}")
    assert wrong is not None
    assert "GMCANARY" not in wrong


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "hostname",
            ["git.example.org", "Git.Example.ORG.", "bücher.example", "a"],
            ["a..b", "-a", "a b", "", "a_b"],
        ),
        (
            "uri",
            ["https://x.org/a?b#c", "mailto:a@b.c", "file:///srv/x"],
            ["x.org", "https://", "https:", "http://a b", "://x"],
        ),
        ("email", ["ops@example.org", "a.b+c@x.y"], ["ops", "@x.y", "a@", "a@b c", "a..b@x.y"]),
        ("ipv4", ["10.7.0.11"], ["10.7.0", "10.7.0.256", "::1"]),
        ("ipv6", ["::1", "fd00::1"], ["10.7.0.1", "fe80::1%eth0"]),
        ("date", ["2027-01-31"], ["2027-13-01", "2027-1-1"]),
    ],
)
def test_formats(name: str, good: list[str], bad: list[str]) -> None:
    _, fits = FORMATS[name]
    assert [each for each in good if not fits(each)] == []
    assert [each for each in bad if fits(each)] == []


# --- patterns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*",
        "(a?)+",
        "(a|a)*",
        "(a|ab)*",
        "([a-z]+|[0-9]+)*",
        "((ab)+c)+",
        r"(a)\1",
        "(?P<x>a)(?P=x)",
        "(?=a)a",
        "(?i)a",
        "a**",
        "a{2}{3}",
        "*a",
        "a(",
        "a)",
        "[a",
        r"\bword",
        "a^b",
        "a$b",
        ".*.*.*x",
        "[a-z]*[a-m]*[c-d]*x",
        "(a|b){0,100}(a|b){0,100}.{2,5}x{2,9}.*",
        "a{1,9999}" * 5,
        "a" * 501,
        "((((((((((a))))))))))",
        "",
        "a\nb",
        "a\x85",
    ],
)
def test_a_pattern_that_is_refused(pattern: str) -> None:
    assert wrong_with(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        "[A-Za-z0-9]+",
        "[a-z0-9.-]+:[0-9]+",
        "[0-9a-f]{40}",
        "[a-z0-9][a-z0-9.-]+",
        "PAPERLESS_[A-Z_]+",
        "^[a-z]+$",
        "(?:0|[1-9][0-9]{0,9}):(?:0|[1-9][0-9]{0,9})",
        "(ab|cd)+",
        "[a-z]+-[a-z]+-[a-z]+-[a-z]+",
        "[a-z]*[a-z0-9]*",
        r"v\d{1,3}(\.\d{1,3})?",
        "[]a]+",
        "a#b c&d-e~f",
    ],
)
def test_a_pattern_that_may_be(pattern: str) -> None:
    assert wrong_with(pattern) is None


def test_both_patterns() -> None:
    pattern = compiled(both("[a-z]+", ".{3,}"))
    assert [each for each in ("abc", "ab", "ABC", "abcd") if pattern.fullmatch(each)] == ["abc", "abcd"]
    assert both("a", "a") == "a"


# --- made values ---------------------------------------------------------------------------------------


def test_the_length_of_a_made_value() -> None:
    assert made_length({}) == 43
    assert made_length({"minLength": 64}) == 64
    assert made_length({"maxLength": 20}) == 20
    assert made_length({"minLength": 32}, 40) == 40


def test_what_can_be_made() -> None:
    assert all(can_be_made({"minLength": 24}, form) for form in ALPHABETS)
    assert can_be_made({"pattern": "[A-Za-z0-9]+"}, "alnum")
    assert not can_be_made({"pattern": "[0-9]+"}, "alnum")
    assert not can_be_made({"pattern": "[0-9a-f]{40}"}, "hex")
    assert can_be_made({"pattern": "[0-9a-f]{40}", "minLength": 40, "maxLength": 40}, "hex")


# --- a contract's file ---------------------------------------------------------------------------------


def _contract(**parts: Any) -> dict[str, Any]:
    return {"contract": "thing", "fields": {}, **parts}


def _refused(**parts: Any) -> list[tuple[Code, tuple[str | int, ...]]]:
    contract, refusals = parse_contract("contracts/thing.yaml", _contract(**parts))
    assert (contract is None) == bool(refusals)
    return [(each.code, each.at.keys) for each in refusals]


SECRET_FIELD = {"type": "string", "secret": True}
HASH = {"type": "string", "hashed": {"of": "p", "with": "bcrypt"}}
MADE = {"secret": "p", "by": "vault", "rotation": "two", "check": "none"}


def _hashed(
    hash_: Json, of: Mapping[str, Json] = SECRET_FIELD, credential: Mapping[str, Json] = MADE
) -> dict[str, Any]:
    """The parts of a contract whose field `a` is a hash of its credential `p`."""
    return {"fields": {"a": hash_, "p": of}, "credential": credential}


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        ({"fields": {"a": {"type": "string", "derived": "x{b}"}}}, ("fields", "a", "derived")),
        ({"fields": {"a": {"type": "string", "derived": "x{a"}}}, ("fields", "a", "derived")),
        ({"fields": {"a": {"derived": "{b}"}, "b": {"derived": "{a}"}}}, ("fields", "a", "derived")),
        ({"fields": {"a": {"derived": "{b}"}, "b": SECRET_FIELD}}, ("fields", "a", "derived")),
        ({"fields": {"a": {"derived": "{b}"}, "b": {"type": "array"}}}, ("fields", "a", "derived")),
        ({"fields": {"a": {"form": "hex"}}}, ("fields", "a", "form")),
        ({"fields": {"a": {"hashed": {"of": "b", "with": "bcrypt"}}, "b": {}}}, ("fields", "a", "hashed")),
        ({"fields": {"a": HASH}}, ("fields", "a", "hashed")),
        ({"fields": {"a": HASH, "p": SECRET_FIELD}}, ("fields", "a", "hashed")),
        (_hashed(HASH, credential={**MADE, "by": "provider"}), ("fields", "a", "hashed")),
        (_hashed({**HASH, "maxLength": 59}), ("fields", "a")),
        (_hashed({**HASH, "type": "integer"}), ("fields", "a")),
        (_hashed({**HASH, "form": "hex"}), ("fields", "a", "form")),
        (_hashed({**HASH, "derived": "{p}"}), ("fields", "a")),
        (_hashed(HASH, of={**SECRET_FIELD, "minLength": 73}), ("fields", "p")),
        ({"fields": {"a": {"type": "string", "minLenght": 1}}}, ("fields", "a", "minLenght")),
        ({"asks": {"a": {"pattern": "(a+)+"}}}, ("asks", "a", "pattern")),
        ({"asks": {"a": {"type": "integer", "default": "x"}}}, ("asks", "a", "default")),
        ({"asks": {"takes": {"type": "string"}}}, ("asks", "takes")),
        ({"asks": {"a": {}}, "fields": {"a": {}}}, ("asks", "a")),
        ({"unique": ["name"]}, ("unique", 0)),
        (
            {"credential": {"secret": "p", "by": "vault", "rotation": "two", "check": "none"}},
            ("credential", "secret"),
        ),
        (
            {
                "fields": {"p": {"type": "string"}},
                "credential": {"secret": "p", "by": "vault", "rotation": "two", "check": "none"},
            },
            ("credential", "secret"),
        ),
        (
            {
                "fields": {"p": SECRET_FIELD, "u": SECRET_FIELD},
                "credential": {
                    "secret": "p",
                    "login": "u",
                    "by": "vault",
                    "rotation": "two",
                    "check": "none",
                },
            },
            ("credential", "login"),
        ),
        (
            {
                "fields": {"p": {**SECRET_FIELD, "pattern": "[0-9]+"}},
                "credential": {"secret": "p", "by": "vault", "rotation": "two", "check": "none"},
            },
            ("fields", "p"),
        ),
    ],
)
@pytest.mark.rule("A6")
def test_a_contract_that_is_refused(parts: dict[str, Any], keys: tuple[str | int, ...]) -> None:
    assert _refused(**parts) == [(Code.CONTRACT_BAD, keys)]


def test_everything_wrong_with_a_contract_at_once() -> None:
    asks = {"a": {"type": "strin"}, "b": {"type": "integer", "default": "x"}}
    assert len(_refused(asks=asks, unique=["c"])) == 3


def test_a_contract() -> None:
    fields = {
        "host": {"type": "string", "format": "hostname"},
        "user": {"type": "string"},
        "password": {"type": "string", "secret": True, "minLength": 24, "form": "hex"},
        "hash": {"type": "string", "hashed": {"of": "password", "with": "bcrypt"}},
        "url": {"type": "string", "secret": True, "derived": "x://{user}:{password}@{host}/{path}"},
    }
    asks = {"path": {"type": "string", "default": "/"}, "name": {"type": "string", "from": "operator"}}
    credential = {
        "login": "user",
        "secret": "password",
        "by": "vault",
        "rotation": "two",
        "check": "postgres",
    }
    said = _contract(fields=fields, asks=asks, unique=["name"], credential=credential, tls=True)
    contract, refusals = parse_contract("contracts/thing.yaml", said)
    assert refusals == []
    assert contract is not None
    assert contract.fields["url"].derived == (
        "x://",
        FieldName("user"),
        ":",
        FieldName("password"),
        "@",
        FieldName("host"),
        "/",
        FieldName("path"),
    )
    assert contract.fields["password"].schema == {"type": "string", "minLength": 24, "maxLength": 72}
    assert contract.fields["password"].form == "hex"
    assert (contract.fields["hash"].hashed, contract.fields["hash"].secret) == (("password", "bcrypt"), True)
    assert contract.asks["name"].from_operator
    assert (contract.asks["path"].has_default, contract.asks["path"].default) == (True, "/")
    assert (contract.unique, contract.tls) == (("name",), True)
    assert contract.credential is not None
    assert (contract.credential.login, contract.credential.secret) == ("user", "password")


def test_the_contract_secret_keeps_its_shape() -> None:
    said = {"contract": "secret", "fields": {"token": SECRET_FIELD}}
    _, refusals = parse_contract("contracts/secret.yaml", said)
    assert [each.at.keys for each in refusals] == [("fields",)]


def test_the_contracts_of_the_example_mesh() -> None:
    contracts = {}
    problems: list[Refusal] = []
    for file in sorted(shared("example-mesh/contracts").glob("*.yaml")):
        value, refused = read(file.name, file.read_bytes())
        assert refused == []
        contract, refused = parse_contract(f"contracts/{file.name}", value)
        problems += refused
        contracts[file.stem] = contract
    assert problems == []
    assert len(contracts) == 12
    shipped, ours = contracts["secret"], SECRET
    assert shipped is not None
    assert (dict(shipped.fields), dict(shipped.asks)) == (dict(ours.fields), dict(ours.asks))
    assert shipped.credential == ours.credential


@pytest.mark.rule("A13")
@pytest.mark.rule("B18")
def test_what_hosts_and_the_mesh_answer() -> None:
    assert set(HOST["directory"].asks) == {"owner", "mode"}
    assert set(HOST["volume"].asks) == set()
    assert set(HOST["port"].fields) == {"port", "listens", "host", "address"}
    assert {"name", "timezone"} <= set(MESH["facts"].fields)
