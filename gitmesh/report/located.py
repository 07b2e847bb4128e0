"""Refusals with their lines and columns, and the source lines to show beside them.

What comes from the mesh repo is hostile: nothing of it reaches a terminal that the terminal would obey
(F6), and files where a secret may stand by mistake are named by place only (SECURITY §2b).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gitmesh.core.refusal import At, Refusal, Span
from gitmesh.repo.document import locate

WIDEST = 100
"""Terminal columns of a source line that are shown; a longer one is cut around its mark."""

_MARGIN = 20
_TAB = "    "
_ELLIPSIS = "…"
_PASSWORD = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]*(?=@)")
"""Who logs in to a URL, with the password: shown as long as it is, in stars."""
_UNQUOTED = ("handed/", "trust/")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source line fit for a terminal; `before` columns precede the mark, which is `width` wide."""

    number: int
    text: str
    before: int
    width: int


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a refusal. `span` is None where the file is not there, `line` where none may be shown."""

    file: str
    label: str
    span: Span | None = None
    line: SourceLine | None = None

    def __str__(self) -> str:
        if self.span is None:
            return self.file
        return f"{self.file}:{self.span.line}:{self.span.column}"


@dataclass(frozen=True, slots=True)
class Located:
    """A refusal, where it stands (None: nowhere in the repo), and the other places it speaks of."""

    refusal: Refusal
    place: Place | None
    related: tuple[Place, ...]


def located(refusals: Iterable[Refusal], files: Mapping[str, bytes]) -> tuple[Located, ...]:
    """Each refusal with its places, in the order given; `files` are the bytes that were checked."""
    return tuple(
        Located(
            refusal,
            _place(refusal.at, refusal.label, files),
            tuple(
                place for each in refusal.related if (place := _place(each.at, each.label, files)) is not None
            ),
        )
        for refusal in refusals
    )


def _place(at: At, label: str, files: Mapping[str, bytes]) -> Place | None:
    if not at.file:
        return None
    file = safe(at.file)
    blob = files.get(at.file)
    if blob is None:
        return Place(file, safe(label), at.span)
    span = locate(blob, at)
    return Place(file, safe(label), span, _source_line(at.file, blob, span))


def safe(text: str) -> str:
    """`text` with every character written out that a terminal would obey, hide or turn around."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def columns(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _source_line(file: str, blob: bytes, span: Span) -> SourceLine | None:
    if file.startswith(_UNQUOTED) or not file.endswith(".yaml"):
        return None
    lines = blob.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    if not 0 < span.line <= len(lines):
        return None
    line = _PASSWORD.sub(lambda found: "*" * len(found[0]), lines[span.line - 1].removesuffix("\r"))
    start = min(max(span.column - 1, 0), len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    return _cut(span.line, line, start, min(max(end, start), len(line)))


def _cut(number: int, line: str, start: int, end: int) -> SourceLine:
    """The part of `line` around the mark from `start` to `end` that fits in `WIDEST` columns.

    Characters far away are not even looked at: a line may be a quarter of a megabyte.
    """
    first = 0
    nearby = line[: start + WIDEST]
    if columns("".join(map(_display, nearby[:end]))) > WIDEST or len(nearby) > 4 * WIDEST:
        first = max(0, start - _MARGIN)
    lead = _ELLIPSIS if first else ""
    before = "".join(map(_display, line[first:start]))
    marked = "".join(map(_display, line[start : min(end, start + WIDEST)]))
    text, whole = _clip(lead + before + "".join(map(_display, line[start : start + WIDEST])))
    tail = "" if whole and start + WIDEST >= len(line) else _ELLIPSIS
    left = columns(lead + before)
    width = min(columns(marked), max(columns(text) - left, 0))
    return SourceLine(number, text.rstrip() + tail, left, max(width, 1))


def _display(character: str) -> str:
    return _TAB if character == "\t" else _shown(character)


def _clip(text: str) -> tuple[str, bool]:
    """As much of `text` as fits, and whether that is all of it."""
    taken = 0
    for index, character in enumerate(text):
        taken += _columns(character)
        if taken > WIDEST:
            return text[:index], False
    return text, True
