"""Nouns to plain JSON and back, for the documents that gitmesh publishes.

A noun's JSON has a key for each field that differs from its default (`as_` is `as`, `env_file` is
`env-file`), so that a document says only what matters and a default written out changes no byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Noun = TypeVar("Noun")


class Malformed(Exception):
    """JSON that is not the noun asked for; the text names the place and says what was expected."""


_Part = tuple[str, str, Any, Any, Callable[[], Any] | None]
"""(attribute, key, type, default, default factory) of one field of a noun."""
_PLANS: dict[Any, tuple[_Part, ...]] = {}
_PLAIN = frozenset({str, bool, int, NoneType})
"""Most of what is encoded, and looked at first."""


def _plan(kind: Any) -> tuple[_Part, ...]:
    """The fields of the noun `kind`; type hints are slow to resolve, so that each is looked at once."""
    if kind not in _PLANS:
        hints = get_type_hints(kind)
        _PLANS[kind] = tuple(
            (
                each.name,
                each.name.rstrip("_").replace("_", "-"),
                hints[each.name],
                each.default,
                None if each.default_factory is MISSING else each.default_factory,
            )
            for each in fields(kind)
        )
    return _PLANS[kind]


def encode(value: Any) -> Any:
    """The plain JSON of a noun, or of a collection of nouns. A noun with `to_json` says its own."""
    if type(value) in _PLAIN:
        return value
    own = getattr(value, "to_json", None)
    if own is not None:
        return own()
    if isinstance(value, str | bool | int | NoneType):
        return value
    if isinstance(value, Mapping):
        # Large mappings are of text, each node's addresses by name among them.
        return {key: each if type(each) is str else encode(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [encode(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(value)
    result = {}
    for name, key, _, default, factory in _plan(type(value)):
        each = getattr(value, name)
        if factory is not None:
            default = factory()
        if default is MISSING or each != default:
            result[key] = encode(each)
    return result


def decode(kind: type[Noun], value: Any, where: str = "") -> Noun:
    """The noun of class `kind` that `value` says. Raises `Malformed` for anything not of its shape."""
    result: Noun = _decode(kind, value, where)
    return result


def _decode(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    own = getattr(kind, "from_json", None)
    if own is not None:
        return own(value, where)
    origin = get_origin(kind)
    if origin is Union or origin is UnionType:
        return _union(get_args(kind), value, where)
    if origin is tuple:
        return _tuple(get_args(kind), value, where)
    if origin is frozenset:
        return frozenset(_tuple((get_args(kind)[0], ...), value, where))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(get_args(kind)[1], value, where)
    if kind in (str, int, bool):
        if type(value) is not kind:
            raise Malformed(f"{where}: expected {kind.__name__}")
        return value
    return _noun(kind, value, where)


def _union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and NoneType in options:
        return None
    for option in options:
        if option is not NoneType:
            try:
                return _decode(option, value, where)
            except Malformed as malformed:
                why = malformed
    raise why


def _tuple(items: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Malformed(f"{where}: expected a list")
    if items[-1] is Ellipsis:
        return tuple(_decode(items[0], each, f"{where}/{n}") for n, each in enumerate(value))
    if len(value) != len(items):
        raise Malformed(f"{where}: expected {len(items)} items")
    return tuple(
        _decode(item, each, f"{where}/{n}") for n, (item, each) in enumerate(zip(items, value, strict=True))
    )


def _mapping(item: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"{where}: expected an object")
    return {key: _decode(item, each, f"{where}/{key}") for key, each in value.items()}


def _noun(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise Malformed(f"{where}: expected an object")
    plan = _plan(kind)
    unknown = value.keys() - {key for _, key, *_ in plan}
    if unknown:
        raise Malformed(f"{where}: unknown key {min(unknown)}")
    given = {}
    for name, key, hint, default, factory in plan:
        if key in value:
            given[name] = _decode(hint, value[key], f"{where}/{key}")
        elif default is MISSING and factory is None:
            raise Malformed(f"{where}: {key} is missing")
    return kind(**given)
