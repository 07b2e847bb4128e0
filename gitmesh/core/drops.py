"""Whether a commit may drop all that runs on a node, or most of the mesh (G3). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from gitmesh.core.model import Mesh
from gitmesh.core.record import Record
from gitmesh.core.refusal import Answer, Code, Refusal

MANY = 3
"""Fewer than that are no mass, even where they are more than half."""


def check_drops(mesh: Mesh, record: Record, refused: Collection[str]) -> Iterator[Refusal]:
    """Refuse a drop that `allow: drop` does not name, and a name there that allows nothing (any more).

    What is refused already drops nothing: files that can't be read (a mesh.yaml among them is a mesh without
    id), and those in `refused`, whose consumers stand or which may only have moved.
    """
    unread = any("@" in each or each.startswith(("spreads/", "nodes/")) for each in mesh.broken)
    if unread or not mesh.id:
        return
    losing = _losing(mesh, record)
    dropped = {
        name: [each for each in those if each not in refused]
        for name, those in losing.items()
        if name not in mesh.allow_drop
    }
    massive = _massive(record, losing, dropped)
    if massive:
        yield _unsaid(mesh, massive)
    used = used_allowances(mesh, record)
    for number, name in enumerate(mesh.allow_drop):
        if name not in used:
            yield Refusal(
                Code.DROP_LEFTOVER,
                name,
                f"nothing is left to drop from `{name}` that this would allow",
                mesh.at.child("allow", "drop", number),
                answers=(Answer(f"remove `{name}` from `allow: drop` in mesh.yaml"),),
            )


def used_allowances(mesh: Mesh, record: Record) -> tuple[str, ...]:
    """The nodes that `allow: drop` names and that lose something by it. One that was used stays so while
    the same commit is resolved again, which every renewal does; another commit does not bring it along."""
    losing = _losing(mesh, record)
    again = record.assignments.keys() == mesh.assignments.keys()
    return tuple(
        sorted(
            name
            for name in set(mesh.allow_drop)
            if (again and name in record.dropped) or (name in losing and name not in record.dropped)
        )
    )


def _losing(mesh: Mesh, record: Record) -> dict[str, list[str]]:
    """By node, its recorded assignments that this commit has no more."""
    losing: dict[str, list[str]] = {}
    for each in sorted(record.assignments.keys() - mesh.assignments.keys()):
        losing.setdefault(each.partition("@")[2], []).append(each)
    return losing


def _massive(
    record: Record, losing: Mapping[str, list[str]], dropped: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Of what is `dropped`, by node: all that a node has, or everything where most of the mesh goes."""
    count = sum(map(len, losing.values()))
    most = count >= MANY and 2 * count > len(record.assignments)
    had = Counter(each.partition("@")[2] for each in record.assignments) if dropped else Counter()
    return {name: those for name, those in dropped.items() if those and (most or len(those) == had[name])}


def _unsaid(mesh: Mesh, massive: Mapping[str, list[str]]) -> Refusal:
    nodes = sorted(massive)
    dropped = [each for name in nodes for each in massive[name]]
    shown = ", ".join(dropped[:5]) + (f" and {len(dropped) - 5} more" if len(dropped) > 5 else "")
    names = ", ".join(sorted({*mesh.allow_drop, *nodes}))
    return Refusal(
        Code.DROP_UNSAID,
        "mesh.yaml",
        f"it drops all that a node has, or more than half of the mesh: {shown}",
        mesh.at,
        "nothing here allows it",
        answers=(
            Answer(f"if that is meant: `allow: {{drop: [{names}]}}` in mesh.yaml; the data stays"),
            Answer("else bring the files of these assignments back"),
        ),
    )
