"""Which port of its node each port requirement gets (B17, FORMATS "Published files")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gitmesh.core.model import Assignment, Json, Mesh, Node, Requirement
from gitmesh.core.record import Record
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related

_PROTOCOLS = {"tcp": ("tcp",), "udp": ("udp",), "tcp+udp": ("tcp", "udp")}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A port requirement of an assignment that is in use."""

    assignment: Assignment
    requirement: Requirement

    @property
    def key(self) -> tuple[str, str]:
        """(assignment, requirement)"""
        return self.assignment.id, self.requirement.name

    @property
    def at(self) -> At:
        """Where its number is said, else the assignment."""
        assignment, name = self.assignment, self.requirement.name
        return assignment.at.child("place", name).of_value() if name in assignment.place else assignment.at

    def fixed(self) -> Json:
        """The number that the operator places it at, else the one the module insists on, else None."""
        return self.assignment.place.get(self.requirement.name, self.requirement.asks.get("number"))

    def protocols(self) -> tuple[str, ...]:
        """The protocols it listens for."""
        return _PROTOCOLS[str(self.requirement.asks.get("protocol", "tcp"))]

    def meets(self, other: Wanted) -> bool:
        """Whether both bind an address in common: each its own, or one of them every address there is."""
        reaches = {self._reach(), other._reach()}
        return len(reaches) == 1 or "public" in reaches

    def _reach(self) -> Json:
        # Without `listens` the software itself binds, and where it does so nobody can tell.
        asks = self.requirement.asks
        return asks.get("reach", "mesh") if "listens" in asks else "public"


def give(
    mesh: Mesh, record: Record, wanted: Iterable[Wanted]
) -> tuple[dict[tuple[str, str], int], list[Refusal]]:
    """A port for each of `wanted`, which come by assignment id and then in their module's order.

    What the record holds comes first, then what is newly fixed, then the lowest free of the node's range:
    so no port moves while its assignment stands, whatever else is assigned, and be the range another since.
    """
    given: dict[tuple[str, str], int] = {}
    refusals: list[Refusal] = []
    by_node: dict[str, list[Wanted]] = {}
    for each in wanted:
        by_node.setdefault(each.assignment.node, []).append(each)
    for name, mine in by_node.items():
        _on_node(mesh.nodes[name], record, mine, given, refusals)
    return given, refusals


def _on_node(
    node: Node,
    record: Record,
    wanted: list[Wanted],
    given: dict[tuple[str, str], int],
    refusals: list[Refusal],
) -> None:
    taken: dict[tuple[int, str], list[Wanted]] = {}
    turns: tuple[list[tuple[Wanted, int]], ...] = ([], [])
    new: list[Wanted] = []
    for each in wanted:
        fixed = each.fixed()
        kept = record.of(each.assignment.id).ports.get(each.requirement.name)
        if fixed is None and kept is not None:
            turns[0].append((each, kept))
        elif fixed is None:
            new.append(each)
        elif isinstance(fixed, int):
            turns[kept != fixed].append((each, fixed))
    for each, number in (*turns[0], *turns[1]):
        _take(each, number, taken, given, refusals)
    _give_new(node, new, {number for number, _ in taken}, given, refusals)


def _give_new(
    node: Node,
    new: list[Wanted],
    numbers: set[int],
    given: dict[tuple[str, str], int],
    refusals: list[Refusal],
) -> None:
    port = node.first
    for each in new:
        while port in numbers or port in node.reserved:
            port += 1
        if port > node.last:
            refusals.append(_exhausted(node, each))
            continue
        given[each.key] = port
        port += 1


def _take(
    each: Wanted,
    number: int,
    taken: dict[tuple[int, str], list[Wanted]],
    given: dict[tuple[str, str], int],
    refusals: list[Refusal],
) -> None:
    for protocol in each.protocols():
        others = taken.setdefault((number, protocol), [])
        other = next((other for other in others if each.meets(other)), None)
        if other is not None and other is not each:
            refusals.append(_held(each, number, other))
            return
        others.append(each)
    given[each.key] = number


def _held(each: Wanted, number: int, other: Wanted) -> Refusal:
    name = each.requirement.name
    holder = f"{other.assignment.id}.{other.requirement.name}"
    return Refusal(
        Code.PORT_HELD,
        f"{each.assignment.id}.{name}",
        f"port {number} of `{each.assignment.node}` is held by {holder} already",
        each.at,
        related=(Related(each.requirement.at, "required here"), Related(other.at, "held here")),
        answers=(Answer(f"place it at another port: `place: {{{name}: NUMBER}}`"),),
    )


def _exhausted(node: Node, each: Wanted) -> Refusal:
    return Refusal(
        Code.PORTS_EXHAUSTED,
        f"{each.assignment.id}.{each.requirement.name}",
        f"node `{node.name}` has no free port from {node.first} to {node.last}",
        node.at.child("ports"),
        related=(Related(each.assignment.at, "assigned here"),),
        answers=(Answer(f"widen `ports` in {node.at.file}"),),
    )
