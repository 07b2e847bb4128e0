"""Data that no assignment has any more: listed by an id, taken up again, or purged (D5, G8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gitmesh.core.model import Mesh
from gitmesh.core.record import Orphan, Record, Recorded
from gitmesh.core.refusal import Answer, At, Code, Refusal

Key = tuple[str, ...]
"""What makes data the same: (directory, node, location) or (resource, provider, contract, name)."""


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Orphaned data that has an assignment again."""

    assignment: str
    requirement: str
    orphan: Orphan


def orphaned(mesh: Mesh, before: Record, now: Record) -> tuple[Record, dict[str, TakenUp]]:
    """The record `now` with the orphans of `before` and those that came, and what was taken up, by id."""
    left = list(_left(before, now))
    if not (left or before.orphans or before.purging):
        return replace(now, next_orphan=before.next_orphan), {}
    live = _live(now)
    # One whose line left purges.yaml is gone.
    purging = {id_: each for id_, each in before.purging.items() if id_ in mesh.purges}
    known = {**before.orphans, **purging}
    taken = {id_: TakenUp(*live[_key(each)], each) for id_, each in known.items() if _key(each) in live}
    orphans = {id_: each for id_, each in known.items() if id_ not in taken}
    listed = {_key(each) for each in known.values()}
    number = before.next_orphan
    for each in sorted(left, key=_order):
        if _key(each) not in live and _key(each) not in listed:
            listed.add(_key(each))
            orphans[f"o{number}"] = each
            number += 1
    # An id counts only once it was given: nobody purges what is orphaned by the same commit.
    purging = {id_: orphans[id_] for id_ in mesh.purges if id_ in known and id_ in orphans}
    orphans = {id_: each for id_, each in orphans.items() if id_ not in purging}
    return replace(now, orphans=orphans, purging=purging, next_orphan=number), taken


def _left(before: Record, now: Record) -> Iterator[Orphan]:
    """What assignments had before, and may still have: only of those that changed."""
    for id_, kept in before.assignments.items():
        if kept != now.assignments.get(id_):
            yield from _of(id_, kept)


def _of(id_: str, kept: Recorded) -> Iterator[Orphan]:
    """Everything an assignment has, as it would be orphaned."""
    node = id_.partition("@")[2]
    for name, where in kept.places.items():
        yield Orphan("directory", id_, name, node, where)
    for name, origin in kept.moving.items():
        yield Orphan("directory", id_, name, origin.node, origin.location)
    for name, made in kept.resources.items():
        for provider in {kept.providers.get(name), kept.leaving.get(name)} - {None}:
            where = str(provider)
            yield Orphan("resource", id_, name, where.partition("@")[2], where, made.contract, made.as_)


def _live(now: Record) -> dict[Key, tuple[str, str]]:
    return {
        _key(each): (each.assignment, each.requirement)
        for id_, kept in now.assignments.items()
        for each in _of(id_, kept)
    }


def _key(each: Orphan) -> Key:
    if each.kind == "directory":
        return "directory", each.node, each.where.rstrip("/")
    return "resource", each.where, each.contract, each.as_


def _order(each: Orphan) -> Key:
    return each.assignment, each.requirement, *_key(each)


# --- what is refused -----------------------------------------------------------------------------------


def check_orphans(mesh: Mesh, before: Record, now: Record, taken: Mapping[str, TakenUp]) -> Iterator[Refusal]:
    """Refuse to take up data for one that is to begin `fresh`, and purges of what is no orphan."""
    for id_, each in taken.items():
        assignment = mesh.assignments[each.assignment]
        if assignment.fresh and id_ not in mesh.purges:
            yield _found(mesh, id_, each)
    for number, id_ in enumerate(mesh.purges):
        if id_ not in now.purging:
            yield _purge(At("purges.yaml", (number,)), id_, taken.get(id_), before.orphans)


def _found(mesh: Mesh, id_: str, each: TakenUp) -> Refusal:
    assignment = mesh.assignments[each.assignment]
    return Refusal(
        Code.ORPHAN_FOUND,
        f"{each.assignment}.{each.requirement}",
        f"it is to begin fresh, and orphaned data is there: {id_}, {said(each.orphan)}",
        assignment.at.child("fresh"),
        answers=(
            Answer("take it up again: remove `fresh`"),
            Answer(f"purge it first: add `{id_}` to purges.yaml in a commit before this one"),
        ),
    )


def _purge(at: At, id_: str, taken: TakenUp | None, orphans: Mapping[str, Orphan]) -> Refusal:
    if taken is not None:
        why = f"{said(taken.orphan)} is in use: {taken.assignment}.{taken.requirement} has it"
    else:
        known = ", ".join(f"`{each}`" for each in sorted(orphans, key=lambda each: (len(each), each)))
        why = f"no orphan has this id; there is {known or 'none'}"
    return Refusal(Code.PURGE_REFUSED, id_, why, at, answers=(Answer(f"remove `{id_}` from purges.yaml"),))


def said(orphan: Orphan) -> str:
    """An orphan in words."""
    if orphan.kind == "directory":
        return f"{orphan.where} on {orphan.node}"
    return f"`{orphan.as_}` of {orphan.where}"
