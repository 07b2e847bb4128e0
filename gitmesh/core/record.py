"""What must not move: input and output of a resolution (DESIGN §3, `schemas/record.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitmesh.core.codec import Malformed, decode, encode
from gitmesh.core.model import Json

_MAY_HAVE = ("orphans", "purging", "next-orphan", "holders", "dropped")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a directory's data still lies while its assignment has another place for it (G8)."""

    node: str
    location: str


@dataclass(frozen=True, slots=True)
class Resource:
    """What a provider made for one requirement, a database for instance: it is called `as_` there."""

    contract: str
    as_: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is kept for one assignment while it stands: its identity, and by requirement its ports, its
    providers, the providers it is `leaving`, where its directories are, what its providers made for it and
    where the data of a directory is `moving` from (B14, B17, G1, D9, G8).

    `moved` tells that it said `moved: {data: true}`, which counts for one move.
    """

    as_: str
    ports: Mapping[str, int] = field(default_factory=dict)
    providers: Mapping[str, str] = field(default_factory=dict)
    leaving: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Resource] = field(default_factory=dict)
    moving: Mapping[str, Origin] = field(default_factory=dict)
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Orphan:
    """Data that no assignment has any more: a `directory`, `where` it lies on `node`, or a `resource`, which
    the provider `where` made under the name `as_`. `assignment` and `requirement` had it last."""

    kind: str
    assignment: str
    requirement: str
    node: str
    where: str
    contract: str = ""
    as_: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a mesh; an empty one is a mesh that was never deployed.

    `orphans` by id, and those that purges.yaml names in `purging`; an id is given once, since `next_orphan`
    only grows. `holders` by seat. `dropped` are the nodes whose allowance to drop was used (G3).
    """

    assignments: Mapping[str, Recorded] = field(default_factory=dict)
    orphans: Mapping[str, Orphan] = field(default_factory=dict)
    purging: Mapping[str, Orphan] = field(default_factory=dict)
    next_orphan: int = 1
    holders: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def of(self, assignment: str) -> Recorded:
        """What is kept for `assignment`; nothing for a new one."""
        return self.assignments.get(assignment, _NOTHING)


_NOTHING = Recorded(as_="")
EMPTY = Record()


def to_json(record: Record, mesh: str) -> dict[str, Json]:
    """The record as the deploy branch holds it; `mesh` is the mesh's id."""
    return {"v": 1, "mesh": mesh, "assignments": {}, **encode(record)}


def from_json(value: Json) -> Record:
    """The record that a deploy branch holds. Raises `Malformed`."""
    said = value.keys() - set(_MAY_HAVE) if isinstance(value, dict) else None
    if said != {"v", "mesh", "assignments"} or value["v"] != 1:
        raise Malformed("record: expected v 1, mesh and assignments")
    return decode(Record, {key: value[key] for key in ("assignments", *_MAY_HAVE) if key in value}, "record")
