"""What a lint found, for a person and for programs (version 1, frozen as `schemas/linted.json` says)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from gitmesh.core.model import Json
from gitmesh.core.refusal import At, Refusal
from gitmesh.repo.document import locate
from gitmesh.report import json
from gitmesh.report.located import safe
from gitmesh.report.terminal import render


class Counted(Protocol):
    """Something that a definition may do, and that is counted (`catalogue.lint`)."""

    @property
    def kind(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def at(self) -> At: ...


def as_text(
    refusals: Sequence[Refusal],
    counted: Sequence[Counted],
    allowed: Mapping[str, int],
    counts: Mapping[str, int],
    files: Mapping[str, bytes],
    *,
    colour: bool,
) -> str:
    """Everything counted at its place, the refusals, and a line for each kind."""
    lines = [*(_line(each, files) for each in counted), *_counts(allowed, counts)]
    listed = "".join(f"{line}\n" for line in lines)
    if not refusals:
        return f"{listed}clean\n"
    return f"{listed}\n{render(refusals, files, colour=colour, held='the catalogue is not clean')}"


def _counts(allowed: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[str]:
    for kind, count in counts.items():
        limit = allowed.get(kind, 0)
        yield f"{kind}: {count} of {limit} allowed"
        if count < limit:
            retired = " --retired" if kind == "retired" else ""
            yield f"  the ratchet can be lowered: gitmesh catalogue lint{retired} --update-ratchet"


def as_json(
    refusals: Sequence[Refusal],
    counted: Sequence[Counted],
    allowed: Mapping[str, int],
    counts: Mapping[str, int],
    files: Mapping[str, bytes],
) -> str:
    """The same as one line of JSON."""
    result: dict[str, Json] = {
        "v": 1,
        "result": "refused" if refusals else "clean",
        "refusals": json.refused(refusals, files)["refusals"],
        "counts": {kind: {"count": count, "allowed": allowed.get(kind)} for kind, count in counts.items()},
        "counted": [
            {
                "kind": each.kind,
                "module": each.module,
                "what": each.what,
                "reason": each.reason,
                "at": _at(each.at, files),
            }
            for each in counted
        ],
    }
    return json.dump(result) + "\n"


def _at(at: At, files: Mapping[str, bytes]) -> dict[str, Json]:
    span = locate(files.get(at.file, b""), at)
    return {"file": at.file, "line": span.line, "column": span.column}


def _line(counted: Counted, files: Mapping[str, bytes]) -> str:
    at = _at(counted.at, files)
    place = f"{safe(counted.at.file)}:{at['line']}:{at['column']}"
    return f"{place}: {counted.kind}: {safe(counted.what)}: {safe(counted.reason)}"
