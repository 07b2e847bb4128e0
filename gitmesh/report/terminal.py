"""Refusals for a person at a terminal, or for a log (DESIGN §3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import click

from gitmesh.core.refusal import Refusal
from gitmesh.report.located import Located, Place, located, safe

DEPLOYS = "nothing is deployed"
"""What does not go on where a commit is refused."""


def render(
    refusals: Iterable[Refusal], files: Mapping[str, bytes], *, colour: bool, held: str = DEPLOYS
) -> str:
    """Every refusal with its places and answers, and one line that counts them; empty for none.

    `files` are the bytes that were checked; `held` says what does not go on until they are answered. The
    same refusals give the same text (B10, B22).
    """
    found = located(refusals, files)
    if not found:
        return ""
    blocks = ["\n".join(_block(each, colour)) for each in found]
    return "\n\n".join([*blocks, summary(found, held)]) + "\n"


def summary(found: tuple[Located, ...], held: str = DEPLOYS) -> str:
    """How many refusals in how many files."""
    files = {each.place.file for each in found if each.place is not None}
    where = f" in {_count(len(files), 'file')}" if files else ""
    answered = "it is answered" if len(found) == 1 else "they are answered"
    return f"{_count(len(found), 'refusal')}{where}; {held} until {answered}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _block(found: Located, colour: bool) -> Iterator[str]:
    refusal = found.refusal
    head = _paint(f"refused[{refusal.code.value}]", colour, fg="red", bold=True)
    yield f"{head}: {_paint(f'{safe(refusal.subject)}: {safe(refusal.message)}', colour, bold=True)}"
    places = [each for each in (found.place, *found.related) if each is not None]
    numbers = [each.line.number for each in places if each.line is not None]
    gutter = len(str(max(numbers, default=1)))
    if found.place is not None:
        yield from _shown(found.place, "-->", "^", gutter, colour)
    for each in found.related:
        yield from _shown(each, ":::", "-", gutter, colour)
    for answer in refusal.answers:
        way = safe(answer.text) if answer.command is None else f"{safe(answer.text)}: {safe(answer.command)}"
        yield f"{' ' * gutter} = {_paint('answer', colour, fg='green')}: {way}"


def _shown(place: Place, arrow: str, mark: str, gutter: int, colour: bool) -> Iterator[str]:
    pad = " " * gutter
    head = f"{pad} {_paint(arrow, colour, fg='blue')} {place}"
    if place.line is None:
        yield f"{head} ({place.label})" if place.label else head
        return
    yield head
    bar = _paint("|", colour, fg="blue")
    number = _paint(f"{place.line.number:>{gutter}}", colour, fg="blue")
    yield f"{number} {bar} {place.line.text}".rstrip()
    tone = "red" if mark == "^" else "blue"
    marked = _paint(f"{mark * place.line.width} {place.label}".rstrip(), colour, fg=tone)
    yield f"{pad} {bar} {' ' * place.line.before}{marked}"


def _paint(text: str, colour: bool, fg: str | None = None, bold: bool = False) -> str:
    return click.style(text, fg=fg, bold=bold or None) if colour else text
