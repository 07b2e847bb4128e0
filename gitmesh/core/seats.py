"""Who holds which seat (A15, B2, B8, B13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitmesh.core.checking import may_say, nearest
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
        return Refusal(
            Code.SEAT_UNKNOWN,
            assignment.id,
            f"`{seat}` is no seat of this mesh",
            at,
            answers=(Answer(may_say(seat, sorted(mesh.seats), "seat")),),
            root=f"seat {nearest(seat, mesh.seats) or seat}",
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


GUARDED = ("mesh-vault", "mesh-git", "mesh-controller", "mesh-broker")
"""The seats on which everything else stands; they are not moved by an assignment (B13)."""


def check_guarded(mesh: Mesh, held: Mapping[str, str], holders: Mapping[str, str]) -> Iterator[Refusal]:
    """Refuse that a seat everything stands on moves from who `held` it, unless that node is revoked.

    Raising one for the first time is no move.
    """
    for seat in GUARDED:
        before, now = held.get(seat), holders.get(seat)
        if before is None or now is None or before == now or _is_revoked(mesh, before):
            continue
        module, _, node = before.partition("@")
        holder = mesh.assignments[now]
        yield Refusal(
            Code.SEAT_BREAK_GLASS,
            now,
            f"`{seat}` is held by {before}, and an assignment alone does not move it",
            holder.at.child("holds", holder.holds.index(seat)),
            answers=(
                Answer(f"leave it with {before}", f"gitmesh assign {module} {node} --hold {seat}"),
                Answer(
                    f"if `{node}` is lost, break the glass: say `state: revoked` in nodes/{node}.yaml, keep "
                    "that file, and raise the seat here",
                    "gitmesh explain seat-break-glass",
                ),
            ),
        )


def kept_holders(held: Mapping[str, str], holders: Mapping[str, str]) -> dict[str, str]:
    """Who holds each seat, as it is recorded: a guarded one that nobody holds stays its last holder's, so
    that it can't be moved in two steps."""
    return {seat: held[seat] for seat in GUARDED if seat in held} | dict(holders)


def _is_revoked(mesh: Mesh, assignment: str) -> bool:
    node = mesh.nodes.get(assignment.partition("@")[2])
    return node is not None and node.state == "revoked"


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
