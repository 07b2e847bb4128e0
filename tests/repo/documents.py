"""What tests of strict YAML ask of a text."""

from __future__ import annotations

from typing import Any

from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo import document


def refused(text: str) -> list[tuple[Code, int, int]]:
    """The code, line and column of each refusal of `text`."""
    value, refusals = document.read("modules/x/module.yaml", text.encode())
    assert value is None
    assert all(refusal.subject and refusal.message and refusal.answers for refusal in refusals)
    return [(refusal.code, *start(refusal)) for refusal in refusals]


def start(refusal: Refusal) -> tuple[int, int]:
    assert refusal.at.span is not None
    return refusal.at.span.line, refusal.at.span.column


def value_of(text: str | bytes) -> Any:
    value, refusals = document.read("f.yaml", text if isinstance(text, bytes) else text.encode())
    assert refusals == []
    return value


def slowly(text: str) -> tuple[Any, list[Refusal]]:
    return document._read_slowly("f.yaml", text)
