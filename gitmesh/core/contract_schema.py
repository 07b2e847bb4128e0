"""What a schema of the contracts' subset may say (A6, SECURITY §2b)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from gitmesh.core.formats import FORMATS
from gitmesh.core.model import Json
from gitmesh.core.patterns import wrong_with

Keys = tuple[str | int, ...]

TYPES = {
    "string": "text",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "nothing",
}
NOTES = ("title", "description", "examples", "default")
SPEAKS_OF = {
    "pattern": "string",
    "minLength": "string",
    "maxLength": "string",
    "format": "string",
    "minimum": "integer",
    "maximum": "integer",
    "items": "array",
    "minItems": "array",
    "maxItems": "array",
    "uniqueItems": "array",
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "propertyNames": "object",
    "minProperties": "object",
    "maxProperties": "object",
}
LEAST = {
    "minLength": "maxLength",
    "minimum": "maximum",
    "minItems": "maxItems",
    "minProperties": "maxProperties",
}
_COUNTS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
KEYWORDS = ("type", "enum", "const", *SPEAKS_OF, *NOTES)
"""Every keyword that a schema may have."""
SHOWN = re.compile(r"[A-Za-z0-9_.-]{1,60}", re.ASCII)


def check_schema(schema: Json) -> list[tuple[Keys, str]]:
    """What is wrong with a schema: where in it, and what, in words. Empty where it may be used."""
    return list(_schema_faults(schema, ()))


def _schema_faults(schema: Json, at: Keys) -> Iterator[tuple[Keys, str]]:
    if not isinstance(schema, Mapping):
        yield at, "expected a schema, which is a map"
        return
    for keyword, value in schema.items():
        here = (*at, keyword)
        if keyword not in KEYWORDS:
            yield here, _unknown(keyword)
        elif keyword not in NOTES:
            yield from _keyword_faults(keyword, value, here)
            yield from _misplaced(schema, keyword, here)
        elif _has_float(value):
            yield here, "a number with a point; write it as quoted text"
    for least, most in LEAST.items():
        if _is_count(schema.get(least)) and _is_count(schema.get(most)) and schema[least] > schema[most]:
            yield (*at, least), f"`{least}` is more than `{most}`"


def _unknown(keyword: str) -> str:
    if keyword in ("$ref", "$dynamicRef"):
        return "a schema is written out here; it refers to no other"
    near = get_close_matches(keyword, KEYWORDS, 1)
    meant = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(KEYWORDS)}"
    name = f"`{keyword}`" if SHOWN.fullmatch(keyword) else "this"
    return f"{name} is no keyword of a contract's schema{meant}"


def _keyword_faults(keyword: str, value: Json, at: Keys) -> Iterator[tuple[Keys, str]]:
    if keyword == "type":
        types = value if isinstance(value, list) and value else [value]
        if not all(isinstance(each, str) and each in TYPES for each in types):
            yield at, f"expected one of {', '.join(TYPES)}"
    elif keyword in ("enum", "const"):
        yield from _value_faults(keyword, value, at)
    elif keyword == "pattern":
        wrong = wrong_with(value) if isinstance(value, str) else "is no text"
        if wrong is not None:
            yield at, f"the pattern {wrong}"
    elif keyword == "format":
        if not isinstance(value, str) or value not in FORMATS:
            yield at, f"expected one of the formats {', '.join(FORMATS)}"
    elif keyword in ("items", "propertyNames"):
        yield from _schema_faults(value, at)
    elif keyword == "additionalProperties":
        if not isinstance(value, bool):
            yield from _schema_faults(value, at)
    elif keyword == "properties":
        yield from _properties_faults(value, at)
    elif keyword == "required":
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            yield at, "expected a list of names"
    elif keyword == "uniqueItems":
        if not isinstance(value, bool):
            yield at, "expected true or false"
    elif not _is_count(value) or (keyword in _COUNTS and value < 0):
        yield at, "expected an integer" + (", 0 or more" if keyword in _COUNTS else "")


def _value_faults(keyword: str, value: Json, at: Keys) -> Iterator[tuple[Keys, str]]:
    if keyword == "enum" and (not isinstance(value, list) or not value):
        yield at, "expected a list of at least one value"
    elif _has_float(value):
        yield at, "a number with a point; write it as quoted text"


def _properties_faults(value: Json, at: Keys) -> Iterator[tuple[Keys, str]]:
    if not isinstance(value, Mapping):
        yield at, "expected a map of names to schemas"
        return
    for name, schema in value.items():
        yield from _schema_faults(schema, (*at, name))


def _misplaced(schema: Mapping[str, Json], keyword: str, at: Keys) -> Iterator[tuple[Keys, str]]:
    said, meant = schema.get("type"), SPEAKS_OF.get(keyword)
    if isinstance(said, str) and said in TYPES and meant is not None and said != meant:
        yield at, f"`{keyword}` says nothing of `type: {said}`"


def _is_count(value: Json) -> bool:
    return type(value) is int


def _has_float(value: Json) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_float, value))
    return isinstance(value, float)
