"""Who holds which seat (A15, B2, B8)."""

from __future__ import annotations

from gitmesh.core.model import Assignment, Mesh
from gitmesh.core.refusal import Answer, Code, Refusal, Related


def hold(mesh: Mesh) -> tuple[dict[str, str], list[Refusal]]:
    """The assignment that holds each held seat, and what is refused on the way."""
    holders: dict[str, str] = {}
    refusals: list[Refusal] = []
    for assignment in _in_order(mesh):
        for number, seat in enumerate(assignment.holds):
            refusal = _refuse(mesh, assignment, number, seat, holders)
            if refusal is None:
                holders[seat] = assignment.id
            else:
                refusals.append(refusal)
    return holders, refusals


def _in_order(mesh: Mesh) -> list[Assignment]:
    return [mesh.assignments[each] for each in sorted(mesh.assignments)]


def _refuse(
    mesh: Mesh, assignment: Assignment, number: int, seat: str, holders: dict[str, str]
) -> Refusal | None:
    at = assignment.at.child("holds", number)
    if seat not in mesh.seats:
        known = ", ".join(f"`{each}`" for each in sorted(mesh.seats))
        return Refusal(
            Code.SEAT_UNKNOWN,
            assignment.id,
            f"`{seat}` is no seat of this mesh",
            at,
            answers=(Answer(f"the seats are {known}"),),
        )
    module = mesh.modules.get(assignment.module)
    if module is not None and seat not in module.seats:
        return Refusal(
            Code.SEAT_UNDECLARED,
            assignment.id,
            f"module `{module.name}` does not declare the seat `{seat}`",
            at,
            related=(Related(module.at, "its `seats` are declared here"),),
            answers=(Answer(f"remove it from `holds`, or let `{module.name}` declare it in `seats`"),),
        )
    if seat in holders:
        first = mesh.assignments[holders[seat]]
        return Refusal(
            Code.SEAT_TWICE,
            assignment.id,
            f"the seat `{seat}` is held by {first.id} already",
            at,
            related=(Related(first.at.child("holds", first.holds.index(seat)), "held here"),),
            answers=(Answer("let one of the two hold it"),),
        )
    return None


def could_hold(mesh: Mesh, seat: str) -> tuple[Answer, ...]:
    """What would fill an unheld seat: assignments whose module declares it, else those modules (B2)."""
    able = sorted(name for name, module in mesh.modules.items() if seat in module.seats)
    standing = [each for each in _in_order(mesh) if each.module in able]
    if standing:
        return tuple(
            Answer(f"let {each.id} hold it", f"gitmesh assign {each.module} {each.node} --hold {seat}")
            for each in standing
        )
    if able:
        nodes = sorted(mesh.nodes)
        node = nodes[0] if len(nodes) == 1 else "NODE"
        return tuple(
            Answer(f"assign `{name}`, which can hold it", f"gitmesh assign {name} {node} --hold {seat}")
            for name in able
        )
    return (Answer(f"no module of this mesh declares `{seat}` in its `seats`; add one that does"),)
