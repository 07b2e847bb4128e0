"""Which violations of a schema are mistakes, and which only follow from one (B10).

A line that is gone or indented wrongly moves what stands below it to where none of it belongs: that is one
mistake, at the map where it shows, however many keys are then unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gitmesh.core.model import Json

Violation = Any
"""A `jsonschema.ValidationError`, as in `repo.schema`."""

Keys = tuple[str | int, ...]

STRANGE = "none of its keys can stand here"
SHIFTED = "nothing in it has the form that belongs here; a line above it may be missing, or indented wrongly"


def roots(errors: Iterable[Violation], value: Json) -> tuple[list[Violation], dict[Keys, str]]:
    """The violations of `value` that are mistakes of their own, and the maps that are wrong as a whole."""
    errors = list(errors)
    doubtful = _doubtful(errors)
    errors = [each for each in errors if not _in_branch(each) or _keys(each) not in doubtful]
    # A value of another type has nothing else wrong with it.
    typed = {_keys(each) for each in errors if each.validator == "type"}
    errors = [each for each in errors if each.validator == "type" or _keys(each) not in typed]
    wrong = {_keys(each): STRANGE for each in errors if _keys(each) and _all_strange(each)}
    prefixes = {_keys(each)[:length] for each in errors for length in range(1, len(_keys(each)))}
    wrong |= {keys: SHIFTED for keys in prefixes if _shifted(_at(value, keys), keys, errors)}
    outermost = {keys: said for keys, said in wrong.items() if not _below(keys[:-1], wrong)}
    rest = [each for each in errors if not _below(_keys(each), outermost)]
    lacking = {_keys(each) for each in rest if each.validator == "required"}
    return [each for each in rest if not _moved(each, lacking)], outermost


def unknown(error: Violation) -> list[str]:
    """The keys of a map that its schema does not have."""
    return [key for key in error.instance if key not in error.schema.get("properties", ())]


def meant(key: str, error: Violation) -> str | None:
    """What a map's unknown `key` was meant to be: a free key that is near, or the only one that is missing
    where this one is the only unknown and begins like it."""
    from difflib import get_close_matches  # a few milliseconds that a tree without mistakes need not pay

    known = error.schema.get("properties", ())
    free = [each for each in known if each not in error.instance]
    near = get_close_matches(key[:80], free, n=1, cutoff=0.65)
    missing = [each for each in error.schema.get("required", ()) if each not in error.instance]
    closed = error.schema.get("additionalProperties") is False
    if near or not closed or len(missing) != 1 or len(unknown(error)) != 1:
        return near[0] if near else None
    return str(missing[0]) if key[:1] == missing[0][:1] else None


def _keys(error: Violation) -> Keys:
    return tuple(error.absolute_path)


def _closed(error: Violation) -> bool:
    return error.validator == "additionalProperties" and error.validator_value is False


def _in_branch(error: Violation) -> bool:
    """Whether the error is of one of several forms, which another key of the map chooses."""
    return not {"then", "else"}.isdisjoint(error.absolute_schema_path)


def _doubtful(errors: Iterable[Violation]) -> set[Keys]:
    """The maps with a mistake that is none of one form, so that the form may be another."""
    sure = [each for each in errors if not _in_branch(each)]
    return {_keys(each) for each in sure} | {_keys(each)[:-1] for each in sure}


def _all_strange(error: Violation) -> bool:
    """Whether a closed map has several keys, and knows none of them nor any that is near."""
    strange = unknown(error) if _closed(error) else []
    return (
        len(strange) > 1
        and len(strange) == len(error.instance)
        and not any(meant(each, error) for each in strange)
    )


def _shifted(value: Json, keys: Keys, errors: Sequence[Violation]) -> bool:
    """Whether nearly all of a map's entries are of another shape than belongs there."""
    below = [each for each in errors if _keys(each)[: len(keys)] == keys and len(_keys(each)) > len(keys)]
    misshapen = {_keys(each)[len(keys)] for each in below if _misshapen(each)}
    return isinstance(value, Mapping) and len(misshapen) > 1 and 3 * len(misshapen) > 2 * len(value)


def _misshapen(error: Violation) -> bool:
    if _closed(error):
        return not any(meant(each, error) for each in unknown(error))
    return error.validator == "anyOf" or (error.validator == "type" and "object" in error.validator_value)


def _moved(error: Violation, lacking: set[Keys]) -> bool:
    """Whether an unknown key stands below a map that lacks a key, and is no misspelling."""
    return (
        _closed(error)
        and any(len(keys) < len(_keys(error)) and _keys(error)[: len(keys)] == keys for keys in lacking)
        and not any(meant(each, error) for each in unknown(error))
    )


def _below(keys: Keys, maps: Iterable[Keys]) -> bool:
    return any(keys[: len(each)] == each for each in maps)


def _at(value: Json, keys: Keys) -> Json:
    for key in keys:
        value = value[key]
    return value
