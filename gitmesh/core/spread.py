"""One mistake of a spread is one refusal, on however many nodes it shows (B10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gitmesh.core.model import Mesh
from gitmesh.core.refusal import Refusal


def once_for_a_spread(mesh: Mesh, refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """The refusals in their order, those that one spread has for the same on several nodes as one, with how
    many more there are. What differs by node, such as who holds a port there, stays apart."""
    groups: dict[object, list[Refusal]] = {}
    for each in refusals:
        assignment, _, rest = each.subject.partition(".")
        standing = mesh.assignments.get(assignment)
        spread = None if standing is None else standing.spread
        one = each if spread is None else (spread, each.code, each.at, rest, each.related)
        groups.setdefault(one, []).append(each)
    return tuple(_counted(mesh, group) for group in groups.values())


def _counted(mesh: Mesh, group: list[Refusal]) -> Refusal:
    first, more = group[0], len(group) - 1
    if not more:
        return first
    spread = mesh.assignments[first.subject.partition(".")[0]].spread
    nodes = "1 more node" if more == 1 else f"{more} more nodes"
    return replace(first, message=f"{first.message}; the same on {nodes} of the spread `{spread}`")
