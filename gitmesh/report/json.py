"""The outcome of a check for programs: version 1, frozen as `schemas/refusals.json` says.

A key may join it; none changes its meaning or goes away while `v` is 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from gitmesh import explain
from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.report.located import Located, Place, located


def refused(
    refusals: Iterable[Refusal],
    files: Mapping[str, bytes],
    commit: str | None = None,
    record: str | None = None,
) -> dict[str, Json]:
    """What a commit (None: a working tree) is refused for; `files` are the bytes that were checked,
    `record` says what it was resolved with, where it was."""
    found = [_refusal(each) for each in located(refusals, files)]
    result: dict[str, Json] = {"v": 1, "result": "refused", "commit": commit, "refusals": found}
    return result if record is None else {**result, "record": record}


def resolved(counts: Mapping[str, int], record: str, commit: str | None = None) -> dict[str, Json]:
    """A commit that resolves: how much of what it has, and the record it was resolved with."""
    return {
        "v": 1,
        "result": "resolved",
        "commit": commit,
        "refusals": [],
        "counts": dict(counts),
        "record": record,
    }


def failed(message: str, command: str | None = None) -> dict[str, Json]:
    """A check that could not be made, and the command that may mend it."""
    return {
        "v": 1,
        "result": "failed",
        "commit": None,
        "refusals": [],
        "error": {"message": message, "command": command},
    }


def dump(value: Mapping[str, Json]) -> str:
    """One line of ASCII per outcome: what a terminal would obey is escaped by JSON itself."""
    return json.dumps(value, ensure_ascii=True, separators=(", ", ": "))


def _refusal(found: Located) -> dict[str, Json]:
    refusal = found.refusal
    return {
        "code": refusal.code.value,
        "rule": explain.rule(refusal.code.value),
        "subject": refusal.subject,
        "message": refusal.message,
        "at": None if found.place is None else _at(found.place),
        "label": refusal.label,
        "related": [{"at": _at(each), "label": each.label} for each in found.related],
        "answers": [{"text": each.text, "command": each.command} for each in refusal.answers],
    }


def _at(place: Place) -> dict[str, Json]:
    span = place.span
    if span is None:
        return {"file": place.file}
    return {
        "file": place.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
