"""The contracts' schemas against the public JSON-Schema-Test-Suite, for each keyword of the subset.

Each case agrees with the suite, or is one of the deliberate differences below, which are exact: one that
is gone fails the test as one that is new does.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitmesh.core.contract import check_value
from gitmesh.core.contract_schema import KEYWORDS as SUBSET
from gitmesh.core.contract_schema import NOTES, check_schema
from gitmesh.core.model import Json
from tests.real import shared

KEYWORDS = (
    *("type", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum"),
    *("items", "minItems", "maxItems", "uniqueItems", "properties", "required", "additionalProperties"),
    *("propertyNames", "minProperties", "maxProperties", "default", "format"),
)

DIFFERENCES: dict[str, tuple[tuple[str, str], ...]] = {
    "There are no floats: a number with a point is refused, in a schema and as a value.": (
        ("type", "integer type matches integers: a float with zero fractional part is an integer"),
        ("type", "refused: number type matches numbers"),
        ("enum", "enum with 0 does not match false: float zero is valid"),
        ("enum", "enum with [0] does not match [false]: [0.0] is valid"),
        ("enum", "enum with 1 does not match true: float one is valid"),
        ("enum", "enum with [1] does not match [true]: [1.0] is valid"),
        ("const", "const with 0 does not match other zero-like types: float zero is valid"),
        ("const", "const with 1 does not match true: float one is valid"),
        ("const", "refused: const with -2.0 matches integer and float types"),
        ("const", "float and integers are equal up to 64-bit representation limits: float is valid"),
        ("pattern", "pattern validation: ignores floats"),
        ("minLength", "refused: minLength validation with a decimal"),
        ("maxLength", "refused: maxLength validation with a decimal"),
        ("minimum", "refused: minimum validation"),
        ("minimum", "minimum validation with signed integer: boundary point with float is valid"),
        ("maximum", "refused: maximum validation"),
        ("maximum", "maximum validation with unsigned integer: below the maximum is valid"),
        ("maximum", "maximum validation with unsigned integer: boundary point float is valid"),
        ("items", "refused: nested items"),
        ("minItems", "refused: minItems validation with a decimal"),
        ("maxItems", "refused: maxItems validation with a decimal"),
        ("uniqueItems", "uniqueItems=false validation: numbers are unique if mathematically unequal"),
        ("properties", "refused: properties with escaped characters"),
        ("properties", "refused: properties whose names are Javascript object property names"),
        ("additionalProperties", "refused: additionalProperties with propertyNames"),
        ("minProperties", "refused: minProperties validation with a decimal"),
        ("maxProperties", "refused: maxProperties validation with a decimal"),
        ("default", "refused: the default keyword does not do anything if the property is missing"),
        ("format", "email format: all string formats ignore floats"),
        ("format", "ipv4 format: all string formats ignore floats"),
        ("format", "ipv6 format: all string formats ignore floats"),
        ("format", "hostname format: all string formats ignore floats"),
        ("format", "date format: all string formats ignore floats"),
        ("format", "uri format: all string formats ignore floats"),
    ),
    "Text has no line end and no control character, unless its contract allows lines.": (
        ("enum", "enum with escaped characters: member 1 is valid"),
        ("enum", "enum with escaped characters: member 2 is valid"),
        ("enum", "nul characters in strings: match string with nul"),
        ("const", "nul characters in strings: match string with nul"),
        ("required", "required with escaped characters: object with all properties present is valid"),
    ),
    "The keyword, or one that the schema uses beside it, is none of the subset's: the schema is refused.": (
        ("const", "refused: characters with the same visual representation but different codepoint"),
        (
            "const",
            "refused: characters with the same visual representation, but different number of codepoints",
        ),
        ("items", "refused: items does not look in applicators, valid case"),
        ("items", "refused: prefixItems validation adjusts the starting index for items"),
        ("uniqueItems", "refused: uniqueItems with an array of items"),
        ("uniqueItems", "refused: uniqueItems=false with an array of items"),
        ("properties", "refused: properties, patternProperties, additionalProperties interaction"),
        ("additionalProperties", "refused: additionalProperties being false does not allow other properties"),
        ("additionalProperties", "refused: non-ASCII pattern with additionalProperties"),
        ("additionalProperties", "refused: additionalProperties does not look in applicators"),
        ("additionalProperties", "refused: dependentSchemas with additionalProperties"),
    ),
    "A pattern is held against the whole value.": (
        ("pattern", "pattern is not anchored: matches a substring"),
    ),
    "Patterns match ASCII; classes of Unicode are none of the subset's.": (
        ("pattern", "refused: pattern with Unicode property escape requires unicode mode"),
    ),
    "A schema is a map: no list of them, and `true` or `false` for `additionalProperties` alone.": (
        ("items", "refused: items with boolean schema (true)"),
        ("items", "refused: items with boolean schema (false)"),
        ("items", "refused: items and subitems"),
        ("items", "refused: prefixItems with no additional items allowed"),
        ("items", "refused: items with heterogeneous array"),
        ("uniqueItems", "refused: uniqueItems with an array of items and additionalItems=false"),
        ("uniqueItems", "refused: uniqueItems=false with an array of items and additionalItems=false"),
        ("properties", "refused: properties with boolean schema"),
        ("propertyNames", "refused: propertyNames with boolean schema true"),
        ("propertyNames", "refused: propertyNames with boolean schema false"),
    ),
    "A format is checked; for the suite it is an annotation.": (
        ("format", "email format: invalid email string is only an annotation by default"),
        ("format", "ipv4 format: invalid ipv4 string is only an annotation by default"),
        ("format", "ipv6 format: invalid ipv6 string is only an annotation by default"),
        ("format", "hostname format: invalid hostname string is only an annotation by default"),
        ("format", "date format: invalid date string is only an annotation by default"),
        ("format", "uri format: invalid uri string is only an annotation by default"),
    ),
    "A format that nobody checks is refused.": (
        ("format", "refused: idn-email format"),
        ("format", "refused: regex format"),
        ("format", "refused: idn-hostname format"),
        ("format", "refused: date-time format"),
        ("format", "refused: time format"),
        ("format", "refused: json-pointer format"),
        ("format", "refused: relative-json-pointer format"),
        ("format", "refused: iri format"),
        ("format", "refused: iri-reference format"),
        ("format", "refused: uri-reference format"),
        ("format", "refused: uri-template format"),
        ("format", "refused: uuid format"),
        ("format", "refused: duration format"),
    ),
    "A schema that nothing fits is a mistake.": (("enum", "refused: empty enum"),),
}
"""Why a case differs, to the keyword and the cases that do."""


def groups(keyword: str) -> list[dict[str, Any]]:
    """The suite's groups for a keyword, each a schema and its cases."""
    read: list[dict[str, Any]] = json.loads(
        shared(f"vectors/jsonschema/tests/draft2020-12/{keyword}.json").read_bytes()
    )
    return read


def plain(schema: Json) -> Json:
    """The schema without the dialect that the suite names in each."""
    return {k: v for k, v in schema.items() if k != "$schema"} if isinstance(schema, dict) else schema


def differences(keyword: str) -> list[str]:
    """The cases that our reading answers in another way; a refused schema stands for all of its cases."""
    found = []
    for group in groups(keyword):
        schema = plain(group["schema"])
        if check_schema(schema):
            found.append(f"refused: {group['description']}")
            continue
        found += [
            f"{group['description']}: {case['description']}"
            for case in group["tests"]
            if (check_value(schema, case["data"]) is None) != case["valid"]
        ]
    return found


def test_the_suite_is_asked_about_every_keyword_that_says_something() -> None:
    assert set(KEYWORDS) == {each for each in SUBSET if each not in NOTES} | {"default"}


@pytest.mark.rule("A6")
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_each_case_agrees_or_differs_on_purpose(keyword: str) -> None:
    listed = [case for cases in DIFFERENCES.values() for each, case in cases if each == keyword]
    assert sorted(differences(keyword)) == sorted(listed)
