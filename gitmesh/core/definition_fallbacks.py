"""Absolute paths in a module's own code that stand in for an environment variable (A3, the second check).

Such a path decides where data lies as soon as the variable is forgotten, and no mount says it. It is looked
for in the files beside the module, for `gitmesh catalogue lint`. That is a search by form, in shell, Python,
JavaScript, Ruby and PHP: a path that is put together in another way is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gitmesh.core.model import Module
from gitmesh.core.refusal import At, Span

_NAMED = r"[\"'](?P<name>\w+)[\"']"
_PATH = r"[\"'`](?P<path>/[^\"'`\s]*)[\"'`]"
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        r"\$\{(?P<name>\w+):?[-=][\"']?(?P<path>/[^}\"'\s]*)",
        rf"(?:environ\.get|getenv|ENV\.fetch)\(\s*{_NAMED}\s*,\s*{_PATH}",
        rf"(?:environ\.get|getenv)\(\s*{_NAMED}\s*\)\s*(?:or|\?:)\s*{_PATH}",
        rf"process\.env\.(?P<name>\w+)\s*(?:\|\||\?\?)\s*{_PATH}",
        rf"(?:process\.env|ENV)\[{_NAMED}\]\s*(?:\|\||\?\?)\s*{_PATH}",
    )
)


@dataclass(frozen=True, slots=True)
class Fallback:
    """`path` is what the code takes where the environment has no `variable`."""

    variable: str
    path: str
    at: At


def fallbacks(module: Module) -> tuple[Fallback, ...]:
    """All of them in the files beside the module, file by file in the order they stand in."""
    folder = module.at.file.rpartition("/")[0]
    return tuple(
        found
        for name, blob in sorted(module.sources.items())
        for found in _in_code(f"{folder}/{name}", blob.decode("utf-8", "replace"))
    )


def _in_code(file: str, code: str) -> Iterator[Fallback]:
    matches = [match for form in _FORMS for match in form.finditer(code)]
    for match in sorted(matches, key=re.Match.start):
        yield Fallback(match["name"], match["path"], At(file, span=_span(code, *match.span("path"))))


def _span(code: str, start: int, end: int) -> Span:
    """The stretch of one line; a path holds no line's end."""
    line = code.count("\n", 0, start) + 1
    column = start - code.rfind("\n", 0, start)
    return Span(line, column, line, column + end - start)
