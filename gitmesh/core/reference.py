"""The one form that reads an answer: `${requirement:field}` (A4), and text made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(r"\$(?:\$\{|\{([^{}]*)\})")
_NAME = r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
_REFERENCE = re.compile(rf"({_NAME}):({_NAME})(?::({_NAME}))?", re.ASCII)
_RETIRED = ("bound", "port", "machine", "secret", "seat", "setting", "settings", "fact")


@dataclass(frozen=True, slots=True)
class Ref:
    """`${requirement:field}`; of `consumer` an alphabet may follow: `${consumer:as:dns}`."""

    requirement: str
    field: str
    alphabet: str | None = None

    def __str__(self) -> str:
        tail = f":{self.alphabet}" if self.alphabet else ""
        return f"${{{self.requirement}:{self.field}{tail}}}"


Text = tuple[str | Ref, ...]
"""Literal pieces and references in order; an empty tuple is the empty text."""


@dataclass(frozen=True, slots=True)
class BadForm(Exception):
    """Text holds a `${` that is not the one form (A4) or is a retired one (A16)."""

    found: str
    retired: bool


def parse(text: str) -> Text:
    """The pieces of `text`; `$${` stands for `${`. Raises `BadForm` for any other `${`."""
    pieces: list[str | Ref] = []
    literal = ""
    position = 0
    while (start := text.find("$", position)) >= 0:
        literal += text[position:start]
        match = _FORM.match(text, start)
        if match is None:
            if text.startswith("${", start):
                raise BadForm(text[start : start + 40].split("\n")[0], retired=False)
            literal += "$"
            position = start + 1
            continue
        position = match.end()
        if match.group(1) is None:
            literal += "${"
            continue
        pieces += [literal] if literal else []
        literal = ""
        pieces.append(_reference(match.group(1)))
    literal += text[position:]
    return (*pieces, literal) if literal else tuple(pieces)


def _reference(inside: str) -> Ref:
    match = _REFERENCE.fullmatch(inside)
    head = inside.partition(":")[0]
    if match is None or (match.group(3) and head != "consumer"):
        raise BadForm(f"${{{inside}}}", retired=head in _RETIRED)
    return Ref(match.group(1), match.group(2), match.group(3))


def references(text: Text) -> tuple[Ref, ...]:
    """The references in `text`, in order."""
    return tuple(piece for piece in text if isinstance(piece, Ref))
