"""What must not move: input and output of a resolution (DESIGN §3, `schemas/record.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitmesh.core.codec import Malformed, decode, encode
from gitmesh.core.model import Json


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is kept for one assignment while it stands: its identity, its ports and its providers, the
    last two by requirement (B14, B17, G1)."""

    as_: str
    ports: Mapping[str, int] = field(default_factory=dict)
    providers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a mesh; an empty one is a mesh that was never deployed."""

    assignments: Mapping[str, Recorded] = field(default_factory=dict)

    def of(self, assignment: str) -> Recorded:
        """What is kept for `assignment`; nothing for a new one."""
        return self.assignments.get(assignment, _NOTHING)


_NOTHING = Recorded(as_="")
EMPTY = Record()


def to_json(record: Record, mesh: str) -> dict[str, Json]:
    """The record as the deploy branch holds it; `mesh` is the mesh's id."""
    return {"v": 1, "mesh": mesh, "assignments": encode(record.assignments)}


def from_json(value: Json) -> Record:
    """The record that a deploy branch holds. Raises `Malformed`."""
    if not isinstance(value, dict) or value.get("v") != 1 or value.keys() != {"v", "mesh", "assignments"}:
        raise Malformed("record: expected v 1, mesh and assignments")
    return decode(Record, {"assignments": value["assignments"]}, "record")
