"""Retired forms that a module's schema has no place for, refused by their name (A16)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gitmesh.core.model import Json
from gitmesh.core.refusal import Answer, Code, Refusal
from gitmesh.core.retired import HOST_PATH, RETIRED


def named_retired(wrong: Iterable[Refusal], value: Json) -> list[Refusal]:
    """What the schema says of a module's document, with the retired forms among it as what they are."""
    return [_named(each, value) for each in wrong]


def _named(refusal: Refusal, value: Json) -> Refusal:
    keys = refusal.at.keys
    if keys == ("settings",):
        said, answer = "`settings:` is a form that is no more", RETIRED["settings"]
    elif "mounts" in keys[:-1] and refusal.at.value and _is_path(_below(value, keys)):
        said, answer = "a mount's host side is a requirement, and here a path is written out", HOST_PATH
    else:
        return refusal
    return replace(refusal, code=Code.RETIRED_FORM, message=said, answers=(Answer(answer),))


def _below(value: Json, keys: Iterable[str | int]) -> Json:
    for key in keys:
        value = value[key]
    return value


def _is_path(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(("/", "~", "."))
