"""Nouns of the trust documents to JSON and back, strictly (SECURITY §1.5).

A field's key is its name (`for_` is `for`). A field whose default is None may be absent, and null is never
written; every other field is always written. So each document has one JSON, and what is read is held against
its type: unknown and missing keys, and text or numbers outside their `Annotated` rule, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from gitmesh.core.model import Json
from gitmesh.trust.canonical import LARGEST

Noun = TypeVar("Noun")


class Misshapen(Exception):
    """JSON that is not the noun asked for; the text names the place and quotes nothing."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The rule of a text: all of it matches `pattern`, ASCII only."""

    pattern: str
    what: str

    def check(self, value: Json) -> str | None:
        """What was expected, where `value` is not that."""
        return None if re.fullmatch(self.pattern, value, re.ASCII) else self.what


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The rule of a number: `least` or more."""

    least: int

    def check(self, value: Json) -> str | None:
        """What was expected, where `value` is not that."""
        return None if self.least <= value <= LARGEST else f"a number of {self.least} or more"


@cache
def _plan(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """(attribute, key, type, may be absent) for each field of the noun."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (each.name, each.name.rstrip("_"), hints[each.name], each.default is None) for each in fields(kind)
    )


def _is_noun(kind: Any) -> bool:
    return is_dataclass(kind)


def to_json(value: Any) -> Json:
    """The JSON of a noun, or of a collection of nouns."""
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    kind: Any = type(value)
    if not _is_noun(kind):
        return str(value) if isinstance(value, StrEnum) else value
    given = ((key, getattr(value, name), absent) for name, key, _, absent in _plan(kind))
    return {key: to_json(each) for key, each, absent in given if not (absent and each is None)}


def from_json(kind: type[Noun], value: Json, where: str) -> Noun:
    """The noun that `value` says; `where` names it in messages. Raises `Misshapen`."""
    result: Noun = _read(kind, value, where)
    return result


def _read(kind: Any, value: Json, where: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        base, rule = get_args(kind)
        wrong = rule.check(_read(base, value, where))
        if wrong is not None:
            raise Misshapen(f"{where}: expected {wrong}")
        return value
    if origin is Union or origin is UnionType:
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return _read(inner, value, where)
    if origin is tuple:
        return _tuple(get_args(kind), value, where)
    if origin is not None and issubclass(origin, Mapping):
        key, item = get_args(kind)
        return _mapping(key, item, value, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _member(kind, value, where)
    if _is_noun(kind):
        return _noun(kind, value, where)
    if type(value) is not kind:
        raise Misshapen(f"{where}: expected {_NAMES[kind]}")
    return value


_NAMES = {str: "text", int: "an integer", bool: "true or false"}


def _member(kind: type[StrEnum], value: Json, where: str) -> StrEnum:
    if value not in [str(each) for each in kind]:
        raise Misshapen(f"{where}: expected {', '.join(kind)}")
    return kind(value)


def _tuple(items: tuple[Any, ...], value: Json, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Misshapen(f"{where}: expected a list")
    if items[-1] is Ellipsis:
        return tuple(_read(items[0], each, f"{where}[{number}]") for number, each in enumerate(value))
    if len(value) != len(items):
        raise Misshapen(f"{where}: expected {len(items)} items")
    return tuple(_read(item, each, where) for item, each in zip(items, value, strict=True))


def _mapping(key: Any, item: Any, value: Json, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misshapen(f"{where}: expected an object")
    return {_read(key, name, f"{where}: a key"): _read(item, each, where) for name, each in value.items()}


def _noun(kind: Any, value: Json, where: str) -> Any:
    if not isinstance(value, dict):
        raise Misshapen(f"{where}: expected an object")
    plan = _plan(kind)
    if value.keys() - {key for _, key, *_ in plan}:
        raise Misshapen(f"{where}: an unknown key")
    given = {}
    for name, key, hint, absent in plan:
        if key in value:
            given[name] = _read(hint, value[key], f"{where}.{key}")
        elif not absent:
            raise Misshapen(f"{where}: {key} is missing")
    return kind(**given)
