"""Refusals as GitHub's workflow commands, which a forge shows beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitmesh.core.refusal import Refusal
from gitmesh.report.located import Located, located, safe

MOST = 10
"""How many annotations of one level the runner keeps of a step; what comes after is dropped silently."""


def render(refusals: Iterable[Refusal], files: Mapping[str, bytes]) -> str:
    """An `::error` line for each refusal, in order; `files` are the bytes that were checked.

    Where there are more than the runner keeps, the tenth says how many are not among them.
    """
    found = located(refusals, files)
    kept = found if len(found) <= MOST else found[: MOST - 1]
    lines = [_line(each) for each in kept]
    if len(found) > len(kept):
        left = f"{len(found) - len(kept)} more refusals, which the job's summary and `gitmesh check` show"
        lines.append(f"::error title=gitmesh::{escape_message(left)}")
    return "".join(f"{line}\n" for line in lines)


def _line(found: Located) -> str:
    refusal = found.refusal
    properties = {"title": refusal.code.value}
    if found.place is not None:
        properties = {"file": found.place.file, **_columns(found), **properties}
    head = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    text = "\n".join(_text(refusal))
    return f"::error {head}::{escape_message(text)}"


def _columns(found: Located) -> dict[str, str]:
    span = None if found.place is None else found.place.span
    if span is None:
        return {}
    lines = {"line": str(span.line), "endLine": str(span.end_line)}
    # A forge takes columns only where they are of one line.
    if span.line == span.end_line:
        lines |= {"col": str(span.column), "endColumn": str(span.end_column)}
    return lines


def _text(refusal: Refusal) -> list[str]:
    ways = [each.text if each.command is None else f"{each.text}: {each.command}" for each in refusal.answers]
    return [safe(each) for each in (f"{refusal.subject}: {refusal.message}", *ways)]


def escape_message(text: str) -> str:
    """As GitHub's runner reads it back: a line end would begin a command of its own."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A property of a command, which ends at a comma or at two colons."""
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
