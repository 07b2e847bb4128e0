"""Why requirements have their answers, for a person and for a program; no secret is in either."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from gitmesh.core.explained import Explained, Part
from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.report.located import safe


def as_text(rows: Sequence[Explained], refusals: Iterable[Refusal], record: str) -> str:
    """A block for each requirement, then what is refused of them, and the record they were answered with."""
    blocks = ["\n".join(map(safe, _block(each))) for each in rows]
    refused = [safe(f"refused[{each.code.value}]: {each.subject}: {each.message}") for each in refusals]
    return "\n\n".join([*blocks, *refused, safe(f"record: {record}")]) + "\n"


def _block(row: Explained) -> Iterator[str]:
    yield f"{row.id}: {row.contract}"
    if not row.used:
        yield "  not used: the assignment neither uses, pins nor places it"
    elif row.by is None:
        yield "  not answered"
    else:
        yield f"  answered by {row.by} ({row.rule})"
    if row.recorded is not None:
        yield f"  recorded: {row.recorded}"
    for other, why in row.others.items():
        yield f"  not {other}: it {why}"
    for part in row.parts:
        yield f"  {part.name} = {_value(part)}"


def _value(part: Part) -> str:
    if part.hole is not None:
        return f"<{part.hole}: filled on the node; waits on {part.waits_on} until it is there>"
    return part.value if isinstance(part.value, str) else json.dumps(part.value)


def as_json(rows: Sequence[Explained], refusals: Iterable[Refusal], record: str) -> dict[str, Json]:
    """Version 1 of `gitmesh explain ASSIGNMENT --format json`, frozen as `schemas/explained.json` says."""
    return {
        "v": 1,
        "requirements": [_row(each) for each in rows],
        "refusals": [
            {"code": each.code.value, "subject": each.subject, "message": each.message} for each in refusals
        ],
        "record": record,
    }


def _row(row: Explained) -> dict[str, Json]:
    return {
        "id": row.id,
        "kind": row.kind,
        "contract": row.contract,
        "used": row.used,
        "by": row.by,
        "rule": row.rule,
        "recorded": row.recorded,
        "others": [{"assignment": each, "reason": why} for each, why in row.others.items()],
        "fields": [
            {"name": each.name, "value": each.value, "hole": each.hole, "waits_on": each.waits_on}
            for each in row.parts
        ],
    }
