"""Narrowing a contract: what loosens or contradicts it is refused, and the rest is `allOf`."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gitmesh.core.contract import check_value, narrow
from gitmesh.core.contract_schema import check_schema
from gitmesh.core.json_schema import json_schema


@pytest.mark.parametrize(
    ("base", "narrowing", "result"),
    [
        ({"minLength": 24}, {"minLength": 32}, {"minLength": 32}),
        ({"type": "string"}, {"maxLength": 40}, {"type": "string", "maxLength": 40}),
        ({"enum": ["a", "b"]}, {"enum": ["b"]}, {"enum": ["b"]}),
        ({"type": ["string", "null"]}, {"type": "string"}, {"type": "string"}),
        (
            {"items": {"type": "string"}},
            {"items": {"enum": ["a"]}},
            {"items": {"type": "string", "enum": ["a"]}},
        ),
        ({"required": ["a"]}, {"required": ["b"]}, {"required": ["a", "b"]}),
        ({"additionalProperties": True}, {"additionalProperties": False}, {"additionalProperties": False}),
        ({"description": "x"}, {"description": "y"}, {"description": "y"}),
        ({"uniqueItems": False}, {"uniqueItems": True}, {"uniqueItems": True}),
    ],
)
@pytest.mark.rule("A6")
def test_narrowing(base: dict[str, Any], narrowing: dict[str, Any], result: dict[str, Any]) -> None:
    assert narrow(base, narrowing) == (result, None)


@pytest.mark.parametrize(
    ("base", "narrowing"),
    [
        ({"minLength": 24}, {"minLength": 8}),
        ({"maxLength": 40}, {"maxLength": 41}),
        ({"minimum": 1}, {"minimum": 0}),
        ({"maximum": 5}, {"maximum": 6}),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}),
        ({"enum": ["a"]}, {"pattern": "b"}),
        ({"enum": ["a"]}, {"const": "b"}),
        ({"type": "string"}, {"type": "integer"}),
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"format": "hostname"}, {"format": "email"}),
        ({"uniqueItems": True}, {"uniqueItems": False}),
        ({"maxLength": 40}, {"minLength": 41}),
        ({"maximum": 65535}, {"minimum": 70000}),
        ({"maxItems": 2}, {"minItems": 3}),
        ({"const": 5}, {"minimum": 6}),
        ({"const": "a"}, {"enum": ["b"]}),
        ({"enum": [1, 2]}, {"minimum": 3}),
        ({"enum": ["a", "b"]}, {"minLength": 2}),
        ({"type": "integer"}, {"minLength": 3}),
        ({"type": "string"}, {"minimum": 3}),
        ({"items": {"enum": ["a", "b"]}, "uniqueItems": True}, {"minItems": 3}),
        ({"items": {"maximum": 1}}, {"items": {"minimum": 2}}),
        ({"maxProperties": 1, "required": ["a"]}, {"required": ["b"]}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"minProperties": 2}),
        ({"additionalProperties": False}, {"additionalProperties": True}),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"properties": {"b": {}}}),
        ({"properties": {"a": {"minLength": 2}}}, {"properties": {"a": {"minLength": 1}}}),
        ({"items": {"maxLength": 2}}, {"items": {"maxLength": 3}}),
        ({}, {"minLenght": 2}),
    ],
)
@pytest.mark.rule("A6")
def test_loosening_is_refused(base: dict[str, Any], narrowing: dict[str, Any]) -> None:
    schema, wrong = narrow(base, narrowing)
    assert schema == base
    assert wrong


def _optional(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


TEXT = [*("".join(each) for size in range(4) for each in product("ab", repeat=size)), 1, True, None]
INTEGERS = [*range(-2, 7), "1", True, None]
LISTS = [*([*each] for size in range(4) for each in product((0, 1, "a"), repeat=size)), "a", None]
TYPES = st.sampled_from(["string", "integer", "array", ["string", "integer"], ["integer", "null"]])
OF_TYPE: dict[str, tuple[st.SearchStrategy[dict[str, Any]], list[Any]]] = {
    "text": (
        _optional(
            type=TYPES,
            minLength=st.integers(0, 4),
            maxLength=st.integers(0, 4),
            pattern=st.sampled_from(["a*", "[ab]{2}", "b|ab", "a+b?"]),
            enum=st.lists(st.sampled_from(TEXT), min_size=1, max_size=3),
            const=st.sampled_from(TEXT),
        ),
        TEXT,
    ),
    "integers": (
        _optional(
            type=TYPES,
            minimum=st.integers(-2, 6),
            maximum=st.integers(-2, 6),
            enum=st.lists(st.sampled_from(INTEGERS), min_size=1, max_size=3),
            const=st.sampled_from(INTEGERS),
        ),
        INTEGERS,
    ),
    "lists": (
        _optional(
            type=TYPES,
            minItems=st.integers(0, 3),
            maxItems=st.integers(0, 3),
            uniqueItems=st.booleans(),
            items=_optional(type=TYPES, maximum=st.integers(0, 1), enum=st.just([0, "a"])),
        ),
        LISTS,
    ),
}


@pytest.mark.rule("A6")
@pytest.mark.parametrize("kind", OF_TYPE)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_what_fits_the_narrowed_is_what_fits_both(kind: str, data: st.DataObject) -> None:
    schemas, values = OF_TYPE[kind]
    base, narrowing = data.draw(schemas), data.draw(schemas)
    assume(not check_schema(base) and not check_schema(narrowing))
    oracle = Draft202012Validator({"allOf": [json_schema(base), json_schema(narrowing)]})
    schema, wrong = narrow(base, narrowing)
    for value in values:
        if wrong is None:
            assert (check_value(schema, value) is None) == oracle.is_valid(value), value
        elif wrong.startswith("nothing fits both"):
            assert not oracle.is_valid(value) or not _speaks_of(wrong, value), value


def _speaks_of(wrong: str, value: Any) -> bool:
    """Whether a contradiction is about values of this type: `minLength` says nothing of an integer."""
    kinds = {"Length": str, "imum": int, "Items": list, "items": list}
    named = [kind for part, kind in kinds.items() if part in wrong]
    return any(isinstance(value, kind) and not isinstance(value, bool) for kind in named) if named else True


MAPS = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(
            st.sampled_from("ab"),
            st.sampled_from([{}, {"type": "string"}, {"minLength": 2}, {"type": "integer", "minimum": 1}]),
        ),
        "additionalProperties": st.booleans() | st.sampled_from([{"type": "string"}, {"maxLength": 1}]),
        "required": st.lists(st.sampled_from("ab"), unique=True),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(1, 3),
        "enum": st.just([{"a": "xx"}, {"b": 1}, {}]),
    },
)
ENTRIES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "xx", 0, 1]), max_size=3)


@given(MAPS, MAPS, ENTRIES)
@pytest.mark.rule("A6")
def test_narrowing_is_what_json_schema_calls_all_of(
    base: dict[str, Any], narrowing: dict[str, Any], value: dict[str, Any]
) -> None:
    schema, wrong = narrow(base, narrowing)
    if wrong is None:
        oracle = Draft202012Validator({"allOf": [base, narrowing]})
        assert (check_value(schema, value) is None) == oracle.is_valid(value)


@pytest.mark.rule("A6")
def test_a_narrowed_property_keeps_what_the_contract_says_of_all_others() -> None:
    schema, wrong = narrow(
        {"additionalProperties": {"type": "string"}}, {"properties": {"b": {"minLength": 2}}}
    )
    assert wrong is None
    assert check_value(schema, {"b": 5}) == "`b`: expected text"


@pytest.mark.rule("A6")
def test_a_contradiction_deep_in_a_type_is_named_where_it_is() -> None:
    _, wrong = narrow({"items": {"maximum": 1}}, {"items": {"minimum": 2}})
    assert wrong == "`items`: nothing fits both: `minimum` would be 2, `maximum` 1"


@pytest.mark.rule("A6")
def test_a_property_that_a_narrowing_closes_out_may_not_be_there() -> None:
    schema, wrong = narrow({"properties": {"a": {}}}, {"additionalProperties": False})
    assert wrong is None
    assert check_value(schema, {"a": 1}) is not None
    assert (
        narrow({"properties": {"a": {}}, "required": ["a"]}, {"additionalProperties": False})[1] is not None
    )
