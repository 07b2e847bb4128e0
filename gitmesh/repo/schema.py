"""A mesh repo's files against `schemas/*.json`: whether they fit, and in words what does not.

jsonschema-rs answers the first in microseconds; only for a file that fails is jsonschema asked why.
Both are imported when they are needed. Nothing is ever fetched: the registry of schemas is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gitmesh.assets import asset
from gitmesh.core.model import Json
from gitmesh.core.refusal import Answer, At, Code, Refusal
from gitmesh.repo.habits import habit, remedy
from gitmesh.repo.schema_roots import meant, roots, unknown
from gitmesh.repo.strict import name, show

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

KINDS = (
    "mesh",
    "contract",
    "module",
    "node",
    "assignment",
    "spread",
    "values",
    "rotations",
    "purges",
    "reveals",
    "catalogue",
    "seats",
    "ratchet",
)

Violation = Any
"""A `jsonschema.ValidationError`, whose own types call every attribute possibly unset."""

_SUBSET = "subset.json"
"""What a contract's schema may say; a contract's file and a module's refer to it."""
_MOST = 50
"""More violations than this in one file are not worth reading."""

_SEE_SCHEMA = "see what stands where: gitmesh schema {}"
_TYPES = {
    "object": "a map",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "nothing",
}


def check(kind: str, file: str, value: Json) -> list[Refusal]:
    """What `schemas/<kind>.json` has against the value of `file`, each violation at its keys.

    An empty file (None) counts as an empty map, or list where the schema wants one. Raises `ValueError`
    for a kind that is not one of `KINDS`.
    """
    if value is None:
        value = [] if schema(kind).get("type") == "array" else {}
    if _quick(kind).is_valid(value):
        return []
    errors, wholes = roots(_thorough(kind).iter_errors(value), value)
    refusals = {refusal for error in errors for refusal in _refusals(file, error)}
    refusals |= {_refusal(file, keys, said, _SEE_SCHEMA.format(kind)) for keys, said in wholes.items()}
    if not refusals:
        said = f"this is no {kind} file"
        return [
            Refusal(Code.SCHEMA, file, said, At(file), answers=(Answer("see its schema: gitmesh schema"),))
        ]
    return sorted(refusals, key=lambda refusal: (list(map(str, refusal.at.keys)), refusal.message))[:_MOST]


@cache
def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file, whole in itself. Raises `ValueError` for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"no kind of file is called {kind!r}")
    text = (asset("schemas") / f"{kind}.json").read_text()
    loaded: dict[str, Any] = json.loads(text.replace(f'"{_SUBSET}#', '"#'))
    if _SUBSET in text:
        loaded["$defs"] |= json.loads((asset("schemas") / _SUBSET).read_bytes())["$defs"]
    return loaded


@cache
def _quick(kind: str) -> Any:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(schema(kind))


@cache
def _thorough(kind: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry

    # `$` matches before a final newline in Python only.
    validator = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]  # in its stubs
    return validator(schema(kind), registry=Registry())


def _pattern(_validator: Any, pattern: str, instance: Json, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError("does not have the form that is expected")


# --- in words ------------------------------------------------------------------------------------------


def _refusals(file: str, error: Violation) -> Iterator[Refusal]:
    """The refusals that one error stands for; a choice of several forms is narrowed to the one meant."""
    keys = tuple(error.absolute_path)
    said = error.schema.get("errorMessage") if isinstance(error.schema, Mapping) else None
    match error.validator:
        case "additionalProperties" if error.validator_value is False:
            yield from _unknown(file, keys, error)
        case _ if _about_key(error):
            yield _bad_key(file, keys, str(error.instance), said)
        case "required":
            yield from _missing(file, keys, error)
        case "dependentRequired":
            yield from _missing_beside(file, keys, error)
        case "anyOf" | "oneOf" if _all_required(error):
            yield from _choice(file, keys, error)
        case "enum":
            yield _one_of(file, keys, error, said)
        case _:
            text = said or _plain(error)
            known = remedy(keys, error.instance) or _answer(error)
            answer = known or (None if "expected" in text else "see its schema: gitmesh schema")
            yield _refusal(file, keys, text, answer, value=True)


def _refusal(
    file: str, keys: tuple[str | int, ...], said: str, answer: str | None = None, *, value: bool = False
) -> Refusal:
    message = f"`{show(keys)}`: {said}" if keys else said
    answers = (Answer(answer),) if answer else ()
    return Refusal(Code.SCHEMA, file, message, At(file, keys, value), answers=answers)


def _unknown(file: str, keys: tuple[str | int, ...], error: Violation) -> Iterator[Refusal]:
    for key in unknown(error):
        yield _unknown_key(file, (*keys, key), meant(key, error), list(error.schema.get("properties", ())))


def _unknown_key(file: str, keys: tuple[str | int, ...], close: str | None, known: Sequence[str]) -> Refusal:
    if (instead := habit(keys)) is not None:
        return _refusal(file, keys, "unknown key", instead)
    said = f"unknown key; did you mean `{close}`?" if close else "unknown key"
    return _refusal(file, keys, said, f"write `{close}`" if close else f"there are {_listed(known)}")


def _about_key(error: Violation) -> bool:
    """Whether the error is about a key's own text; `propertyNames` may also be a property's name."""
    path = ["", *map(str, error.absolute_schema_path)]
    return any(part == "propertyNames" and before != "properties" for before, part in pairwise(path))


def _bad_key(file: str, keys: tuple[str | int, ...], key: str, said: str | None) -> Refusal:
    said = said or "does not have the form that is expected"
    return _refusal(file, (*keys, key), f"not a key that can stand here: {said}")


def _missing(file: str, keys: tuple[str | int, ...], error: Violation) -> Iterator[Refusal]:
    """One error names one missing key, in its message only; so they are found again here."""
    known = error.schema.get("properties", {})
    for key in error.validator_value:
        if key in error.instance or f"'{key}' " not in error.message:
            continue
        about = str(known.get(key, {}).get("description", "")) if isinstance(known.get(key), Mapping) else ""
        misspelt = next((each for each in unknown(error) if meant(each, error) == key), None)
        if misspelt is not None:
            yield _unknown_key(file, (*keys, misspelt), key, list(known))
            continue
        yield _refusal(file, keys, f"`{key}` is missing", f"add `{key}`" + (f": {about}" if about else ""))


def _missing_beside(file: str, keys: tuple[str | int, ...], error: Violation) -> Iterator[Refusal]:
    """A key that another one needs; a misspelt one is refused as an unknown key."""
    meanings = {meant(each, error) for each in unknown(error)}
    for key, needed in error.validator_value.items():
        for each in needed if key in error.instance else ():
            if each not in error.instance and each not in meanings:
                yield _refusal(file, keys, f"`{each}` is missing beside `{key}`", f"add `{each}`")


def _all_required(error: Violation) -> bool:
    branches = error.validator_value
    return isinstance(branches, list) and all(set(branch) == {"required"} for branch in branches)


def _choice(file: str, keys: tuple[str | int, ...], error: Violation) -> Iterator[Refusal]:
    """Of several keys just one has to stand: a misspelt one is named, else the choice."""
    choices = [branch["required"][0] for branch in error.validator_value]
    said = str(error.schema.get("errorMessage", f"needs one of {_listed(choices)}"))
    if not isinstance(error.instance, Mapping):
        return
    if not any(choice in error.instance for choice in choices):
        for key in error.instance:
            if close := _close(key, choices):
                yield _unknown_key(file, (*keys, key), close, choices)
                return
    present = [choice for choice in choices if choice in error.instance]
    answer = f"keep one of {_listed(present)}" if len(present) > 1 else f"add one of {_listed(choices)}"
    yield _refusal(file, keys, said, answer)


def _one_of(file: str, keys: tuple[str | int, ...], error: Violation, said: str | None) -> Refusal:
    choices = [each if isinstance(each, str) else json.dumps(each) for each in error.validator_value]
    close = _close(error.instance, choices) if isinstance(error.instance, str) else None
    expected = said or f"expected {_listed(choices, 'or')}"
    tail = f"; did you mean `{close}`?" if close else ""
    return _refusal(file, keys, expected + tail, f"write `{close}`" if close else None, value=True)


def _plain(error: Violation) -> str:
    wanted: Any = error.validator_value
    match error.validator:
        case "type":
            return f"expected {_expected(error)}, and this is {_type(error.instance)}"
        case "const":
            return f"expected `{wanted if isinstance(wanted, str) else json.dumps(wanted)}`"
        case "minimum":
            return f"expected a number from {wanted} on"
        case "maximum":
            return f"expected a number up to {wanted}"
        case "minItems" | "minProperties":
            return "expected at least one item"
        case "uniqueItems":
            return "something is listed twice"
        case _:
            return "does not have the form that is expected"


def _answer(error: Violation) -> str | None:
    if error.validator == "uniqueItems":
        return "keep one of each"
    if error.validator != "type":
        return None
    if isinstance(error.instance, int) and "string" in _names(error.validator_value):
        pattern = error.schema.get("pattern", "") if isinstance(error.schema, Mapping) else ""
        return "if it is text, quote it" if re.search(pattern, str(error.instance)) else None
    if error.instance is None:
        return "say a value, or remove the key"
    if "array" in _names(error.validator_value) and isinstance(error.instance, str):
        return "put it in brackets: [ … ]"
    return None


def _names(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _expected(error: Violation) -> str:
    if error.validator == "type":
        return " or ".join(_TYPES.get(each, each) for each in _names(error.validator_value))
    return "another form"


def _type(value: Json) -> str:
    for kind, said in (
        (bool, "boolean"),
        (int, "integer"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, kind):
            return _TYPES[said]
    return "empty"


def _close(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` is probably a misspelling of."""
    import difflib  # a few milliseconds that a tree without mistakes need not pay

    return next(iter(difflib.get_close_matches(word[:80], list(choices), n=1, cutoff=0.65)), None)


def _listed(words: Sequence[str], joint: str = "and") -> str:
    shown = [f"`{name(word)}`" for word in words]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {joint} {shown[-1]}"
