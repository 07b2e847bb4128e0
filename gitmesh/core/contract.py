"""The contracts' subset of JSON Schema: what a schema may say, what fits one, what narrows one (A6).

Small on purpose, and strict where JSON Schema is lenient: a pattern holds for the whole value and in
ASCII, `1.0` is no integer, a keyword that nobody knows is refused, a format is checked, nothing is ever
fetched, and a string has no control characters. `lines: many` in a schema allows line ends and tabs; the
resolver sets it for a secret of many lines, no file says it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from gitmesh.core.contract_schema import LEAST, NOTES, SHOWN, SPEAKS_OF, TYPES, check_schema
from gitmesh.core.formats import FORMATS
from gitmesh.core.model import Json, Schema
from gitmesh.core.patterns import LONGEST_MATCHED, both, compiled

ALPHABETS: Mapping[str, str] = {
    "alnum": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    "hex": "0123456789abcdef",
    "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "base64url": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    "mixed": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!",
}
"""What a value is made of, by its form."""
MADE_LENGTH = 43
"""Characters of a made value, where nothing says another length."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_CONTROL_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


# --- what fits a schema --------------------------------------------------------------------------------


def check_value(schema: Schema, value: Json) -> str | None:
    """What is wrong with `value`, in words that never quote it; None where it fits `schema`."""
    types = schema.get("type")
    if types is not None and _type_of(value) not in ([types] if isinstance(types, str) else types):
        names = [types] if isinstance(types, str) else types
        return f"expected {' or '.join(TYPES[each] for each in names)}"
    if "enum" in schema and not any(_equal(value, each) for each in schema["enum"]):
        return f"expected one of {', '.join(map(_shown, schema['enum']))}"
    if "const" in schema and not _equal(value, schema["const"]):
        return f"expected {_shown(schema['const'])}"
    match value:
        case str():
            return _wrong_text(schema, value)
        case bool() | None:
            return None
        case int():
            return _wrong_number(schema, value)
        case list():
            return _wrong_list(schema, value)
        case Mapping():
            return _wrong_map(schema, value)
        case _:
            return "a number with a point; write it as quoted text"


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case list():
            return "array"
        case Mapping():
            return "object"
        case _:
            return "number"


def _equal(one: Json, other: Json) -> bool:
    """Equal as JSON, all the way down: True is not 1, nor [True] [1]."""
    if _type_of(one) != _type_of(other):
        return False
    match one:
        case list():
            return len(one) == len(other) and all(map(_equal, one, other))
        case Mapping():
            return one.keys() == other.keys() and all(_equal(each, other[key]) for key, each in one.items())
        case _:
            return bool(one == other)


def _shown(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "nothing" if value is None else str(value)


def _wrong_text(schema: Schema, value: str) -> str | None:
    many = schema.get("lines") == "many"
    if (_CONTROL_BUT_LINES if many else _CONTROL).search(value):
        return "holds a control character" + ("" if many else " or more than one line")
    if len(value) < schema.get("minLength", 0):
        return f"shorter than {schema['minLength']} characters"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        return f"longer than {schema['maxLength']} characters"
    if "format" in schema:
        wanted, fits = FORMATS[schema["format"]]
        if not fits(value):
            return f"expected {wanted}"
    if "pattern" in schema:
        if len(value) > LONGEST_MATCHED:
            return f"longer than {LONGEST_MATCHED} characters, the most that a pattern is held against"
        if not compiled(schema["pattern"]).fullmatch(value):
            return f"does not match the pattern {schema['pattern']}"
    return None


def _wrong_number(schema: Schema, value: int) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"less than {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"more than {schema['maximum']}"
    return None


def _wrong_count(schema: Schema, least: str, most: str, count: int, what: str) -> str | None:
    if count < schema.get(least, 0):
        return f"fewer than {schema[least]} {what}"
    if most in schema and count > schema[most]:
        return f"more than {schema[most]} {what}"
    return None


def _wrong_list(schema: Schema, value: Sequence[Json]) -> str | None:
    wrong = _wrong_count(schema, "minItems", "maxItems", len(value), "items")
    if wrong is not None:
        return wrong
    items = schema.get("items", {})
    for number, each in enumerate(value, 1):
        wrong = check_value(items, each)
        if wrong is not None:
            return f"item {number}: {wrong}"
        if schema.get("uniqueItems") and any(_equal(each, other) for other in value[: number - 1]):
            return f"item {number} stands there already"
    return None


def _wrong_map(schema: Schema, value: Mapping[str, Json]) -> str | None:
    wrong = _wrong_count(schema, "minProperties", "maxProperties", len(value), "entries")
    if wrong is not None:
        return wrong
    for name in schema.get("required", ()):
        if name not in value:
            return f"lacks `{name}`"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, each in value.items():
        shown = f"`{name}`" if SHOWN.fullmatch(name) else "a name in it"
        wrong = check_value(schema.get("propertyNames", {}), name)
        if wrong is not None:
            return f"the name {shown} {wrong}" if shown.startswith("`") else f"{shown} {wrong}"
        if name not in properties and others is False:
            return f"{shown} is not among {', '.join(properties) or 'its names: it has none'}"
        wrong = check_value(properties.get(name, {} if isinstance(others, bool) else others), each)
        if wrong is not None:
            return f"{shown}: {wrong}"
    return None


# --- narrowing -----------------------------------------------------------------------------------------


class _Loosens(Exception):
    """Why a narrowing is none."""


def narrow(base: Schema, narrowing: Schema) -> tuple[Schema, str | None]:
    """The schema that what fits both fits, and None; or `base` and why the narrowing is refused: it
    loosens what `base` says, or leaves nothing that could fit (A6)."""
    faults = check_schema(narrowing)
    if faults:
        keys, said = faults[0]
        return base, f"{'.'.join(map(str, keys))}: {said}" if keys else said
    try:
        return _narrowed(base, narrowing), None
    except _Loosens as loosens:
        return base, str(loosens)


def _narrowed(base: Schema, narrowing: Schema) -> Schema:
    result = dict(base)
    for keyword, value in narrowing.items():
        if keyword in base and keyword not in (*NOTES, "properties"):
            result[keyword] = _both(keyword, base[keyword], value)
        else:
            result[keyword] = value
    _refuse_new_properties(base, narrowing)
    if "properties" in result:
        result["properties"] = _both_properties(base, narrowing)
    _refuse_misplaced(result, narrowing)
    _refuse_empty(result)
    return result


def _narrowed_part(name: str, base: Schema, narrowing: Schema) -> Schema:
    """A part of a list or map, narrowed; a value without that part might fit, so its fault is its own."""
    try:
        return _narrowed(base, narrowing)
    except _Loosens as loosens:
        raise _Loosens(f"`{name}`: {loosens}") from None


def _both(keyword: str, base: Json, value: Json) -> Json:
    """One keyword of the conjunction. Raises `_Loosens`."""
    if keyword in LEAST or keyword in LEAST.values():
        return _bound(keyword, base, value)
    combine: Mapping[str, Callable[[Json, Json], Json]] = {
        "type": _both_types,
        "enum": _both_enums,
        "pattern": both,
        "items": partial(_narrowed_part, "items"),
        "propertyNames": partial(_narrowed_part, "propertyNames"),
        "required": lambda one, other: list(dict.fromkeys([*one, *other])),
        "additionalProperties": _both_others,
    }
    if keyword in combine:
        return combine[keyword](base, value)
    if not _equal(base, value) and not (keyword == "uniqueItems" and value is True):
        raise _Loosens(f"the contract says another `{keyword}`: {_shown(base)}")
    return value


def _bound(keyword: str, base: int, value: int) -> int:
    loosens = value < base if keyword in LEAST else value > base
    if loosens:
        raise _Loosens(f"`{keyword}: {value}` loosens the contract, which says {base}")
    return value


def _both_types(base: Json, value: Json) -> Json:
    allowed = [base] if isinstance(base, str) else base
    if not set([value] if isinstance(value, str) else value) <= set(allowed):
        raise _Loosens(f"the contract's type is {' or '.join(allowed)}")
    return value


def _both_enums(base: list[Json], value: list[Json]) -> list[Json]:
    if not all(any(_equal(each, one) for one in base) for each in value):
        raise _Loosens(
            f"`enum` names what the contract does not allow; it allows {', '.join(map(_shown, base))}"
        )
    return value


def _both_properties(base: Schema, narrowing: Schema) -> dict[str, Schema]:
    """The properties that either names; a name that one leaves out is among its `additionalProperties`,
    and one that the narrowing closes out is gone."""
    names = dict.fromkeys([*base.get("properties", {}), *narrowing.get("properties", {})])
    wanted = {name: _property(narrowing, name) for name in names}
    return {
        name: _narrowed_part(name, _property(base, name) or {}, schema)
        for name, schema in wanted.items()
        if schema is not None
    }


def _property(schema: Schema, name: str) -> Schema | None:
    """What a schema says of a property, named or not; None where it may not be there."""
    said = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
    if isinstance(said, bool):
        return {} if said else None
    return dict(said)


def _both_others(base: Json, value: Json) -> Json:
    if base is True or value is False:
        return value
    if base is False or value is True:
        raise _Loosens("`additionalProperties` loosens the contract")
    return _narrowed_part("additionalProperties", base, value)


def _refuse_new_properties(base: Schema, narrowing: Schema) -> None:
    if base.get("additionalProperties") is False:
        for name in narrowing.get("properties", {}):
            if name not in base.get("properties", {}):
                raise _Loosens(f"`{name}` is none of the contract's properties")


def _refuse_misplaced(result: Schema, narrowing: Schema) -> None:
    said = result.get("type")
    for keyword in narrowing:
        if isinstance(said, str) and SPEAKS_OF.get(keyword, said) != said:
            raise _Loosens(f"`{keyword}` says nothing of the contract's `type: {said}`")


def _refuse_empty(result: Schema) -> None:
    """Raise `_Loosens` where nothing could fit both; what two patterns have in common is not asked."""
    for least, most in LEAST.items():
        if least in result and most in result and result[least] > result[most]:
            raise _Loosens(f"nothing fits both: `{least}` would be {result[least]}, `{most}` {result[most]}")
    rest = {keyword: value for keyword, value in result.items() if keyword not in ("enum", "const")}
    if "const" in result and check_value(result, result["const"]) is not None:
        raise _Loosens("nothing fits both: the only value of `const` is not allowed")
    if "enum" in result and all(check_value(rest, each) is not None for each in result["enum"]):
        raise _Loosens("nothing fits both: no value of `enum` is left")
    _refuse_empty_map(result)
    _refuse_empty_list(result)


def _refuse_empty_map(result: Schema) -> None:
    required, names = result.get("required", ()), result.get("properties", {})
    closed = result.get("additionalProperties") is False
    for name in required:
        if closed and name not in names:
            raise _Loosens(f"nothing fits both: `{name}` is required, and may not be there")
    if len(set(required)) > result.get("maxProperties", len(required)):
        raise _Loosens(f"nothing fits both: {len(set(required))} names are required, and fewer may be there")
    if closed and result.get("minProperties", 0) > len(names):
        raise _Loosens(f"nothing fits both: `minProperties` is more than the {len(names)} names there may be")


def _refuse_empty_list(result: Schema) -> None:
    choices = result.get("items", {}).get("enum")
    if result.get("uniqueItems") and choices is not None and result.get("minItems", 0) > len(choices):
        raise _Loosens(f"nothing fits both: `minItems` is more than the {len(choices)} items there may be")


# --- made values ---------------------------------------------------------------------------------------


def made_length(schema: Schema, length: int = MADE_LENGTH) -> int:
    """How many characters a made value has: `length`, clamped into what the schema allows."""
    wanted: int = max(length, schema.get("minLength", 0))
    longest: int = schema.get("maxLength", wanted)
    return min(wanted, longest)


def can_be_made(schema: Schema, form: str, length: int = MADE_LENGTH) -> bool:
    """Whether the vault could make a value of `form` that fits: some of many tries do (FORMATS, "A value
    the vault makes"). The tries are the same for everyone, since a refusal has to be."""
    return any(check_value(schema, each) is None for each in _tries(schema, form, length))


def _tries(schema: Schema, form: str, length: int) -> Iterator[str]:
    alphabet = ALPHABETS[form]
    for number in range(64 if "pattern" in schema or "format" in schema or "enum" in schema else 1):
        stream = hashlib.shake_256(f"{form}:{number}".encode()).digest(made_length(schema, length))
        yield "".join(alphabet[each % len(alphabet)] for each in stream)
