"""Which module answers a requirement (B1–B4, G1): seat, pin, own node, only one, a person; never a guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gitmesh.core.checking import nearest
from gitmesh.core.model import Assignment, Mesh, Requirement
from gitmesh.core.refusal import Answer, Code, Refusal, Related
from gitmesh.core.seats import GUARDED, could_hold

FOR_MESH = "chosen for the mesh"
"""The rule where `mesh.yaml` says who answers a contract."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who could answer one requirement: `able` by assignment id in order, `out` with why each is none."""

    able: tuple[str, ...]
    out: Mapping[str, str]
    by_node: Mapping[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        """Sort who is able by node: each node may have its own, and each of its consumers looks here."""
        by_node: dict[str, list[str]] = {}
        for each in self.able:
            by_node.setdefault(each.partition("@")[2], []).append(each)
        object.__setattr__(self, "by_node", by_node)

    def includes(self, assignment: str) -> bool:
        """Whether an assignment is able to answer."""
        return assignment in self.by_node.get(assignment.partition("@")[2], ())


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider's assignment and the rule that chose it, as `gitmesh explain` says it."""

    provider: str
    rule: str


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A rule would choose another provider than the recorded one, and nobody said so (G1)."""

    consumer: Assignment
    requirement: Requirement
    recorded: str
    choice: Choice
    able: bool = True
    """Whether the recorded provider could still answer."""


def choose(
    mesh: Mesh,
    holders: Mapping[str, str],
    consumer: Assignment,
    requirement: Requirement,
    candidates: Candidates,
    recorded: str | None,
) -> Choice | Unsaid | Refusal:
    """The provider of one module requirement, or why there is none."""
    seat = seat_of(requirement)
    if seat is not None:
        held = _by_seat(mesh, holders, consumer, requirement, seat, candidates)
        if recorded is None or seat in GUARDED or isinstance(held, Refusal):
            return held
        said = mesh.choose.get(requirement.contract) == held.provider
        if said or held.provider == recorded:
            return held
        return Unsaid(consumer, requirement, recorded, held, candidates.includes(recorded))
    pin = consumer.pins.get(requirement.name)
    if pin is not None:
        return _by_pin(consumer, requirement, pin, candidates)
    ruled = _by_rule(mesh, consumer, requirement, candidates)
    if recorded is not None and (ruled is not None or candidates.includes(recorded)):
        return _by_record(consumer, requirement, ruled, recorded, candidates.includes(recorded))
    if ruled is not None:
        return ruled
    if candidates.able:
        return _ambiguous(mesh, holders, consumer, requirement, candidates.able)
    return _none(mesh, consumer, requirement, candidates)


def seat_of(requirement: Requirement) -> str | None:
    """The seat that a requirement names; a `secret` always names `mesh-vault` (A7)."""
    return "mesh-vault" if requirement.contract == "secret" else requirement.seat


def _by_seat(
    mesh: Mesh,
    holders: Mapping[str, str],
    consumer: Assignment,
    requirement: Requirement,
    seat: str,
    candidates: Candidates,
) -> Choice | Refusal:
    holder = holders.get(seat)
    if holder is None:
        return seat_unheld(mesh, seat, [(consumer, requirement)])
    if candidates.includes(holder):
        return Choice(holder, f"seat {seat}")
    why = candidates.out.get(holder, f"does not provide `{requirement.contract}`")
    return Refusal(
        Code.NO_PROVIDER,
        f"{consumer.id}.{requirement.name}",
        f"{holder} holds the seat `{seat}`, and {why}",
        consumer.at,
        related=(
            Related(requirement.at, "required here"),
            Related(mesh.assignments[holder].at, "the holder"),
        ),
        answers=(
            Answer(f"let an assignment hold `{seat}` that answers this"),
            Answer("name no seat in the requirement"),
        ),
    )


def seat_unheld(mesh: Mesh, seat: str, needed: Sequence[tuple[Assignment, Requirement]]) -> Refusal:
    """One refusal for a seat that nobody holds, naming all that need it (B2, B10)."""
    consumer, requirement = needed[0]
    count = len(needed)
    more = f", and {count - 1} more need it" if count > 1 else ""
    return Refusal(
        Code.SEAT_UNHELD,
        f"{consumer.id}.{requirement.name}",
        f"nobody holds the seat `{seat}`{more}",
        consumer.at,
        f"`{requirement.name}` needs `{seat}`",
        related=tuple(Related(each.at, f"{who.id} requires it here") for who, each in needed[:3]),
        answers=could_hold(mesh, seat),
        root=f"seat {seat}",
    )


def _by_pin(
    consumer: Assignment, requirement: Requirement, pin: str, candidates: Candidates
) -> Choice | Refusal:
    if candidates.includes(pin):
        return Choice(pin, "pinned")
    why = candidates.out.get(pin)
    if why is None:
        near = nearest(pin, candidates.able)
        meant = f"; did you mean `{near}`?" if near else ""
        why = f"is no assignment that provides `{requirement.contract}`{meant}"
    return Refusal(
        Code.PIN_BAD,
        f"{consumer.id}.{requirement.name}",
        f"pinned to `{pin}`, which {why}",
        consumer.at.child("pins", requirement.name).of_value(),
        related=(Related(requirement.at, "required here"),),
        answers=_pins(consumer, requirement, candidates.able),
    )


def _by_rule(
    mesh: Mesh, consumer: Assignment, requirement: Requirement, candidates: Candidates
) -> Choice | None:
    own = candidates.by_node.get(consumer.node, [])
    if len(own) == 1:
        return Choice(own[0], "own node")
    if len(candidates.able) == 1:
        return Choice(candidates.able[0], "the only one")
    chosen = mesh.choose.get(requirement.contract)
    if chosen is not None and candidates.includes(chosen):
        return Choice(chosen, FOR_MESH)
    return None


def _by_record(
    consumer: Assignment, requirement: Requirement, ruled: Choice | None, recorded: str, able: bool
) -> Choice | Unsaid:
    """A choice once made stands (G1): ambiguity leaves it, a said choice moves it, a rule is refused."""
    if ruled is None:
        return Choice(recorded, "recorded")
    if ruled.provider == recorded or ruled.rule == FOR_MESH:
        return ruled
    return Unsaid(consumer, requirement, recorded, ruled, able)


def _ambiguous(
    mesh: Mesh,
    holders: Mapping[str, str],
    consumer: Assignment,
    requirement: Requirement,
    able: tuple[str, ...],
) -> Refusal:
    seats = {holder: seat for seat, holder in holders.items() if mesh.seats.get(seat) == requirement.contract}
    first = sorted(able, key=lambda each: (each not in seats, each))
    pins = tuple(
        Answer(
            f"pin `{each}`" + (f" (holds `{seats[each]}`)" if each in seats else ""),
            _pin(consumer, requirement, each),
        )
        for each in first
    )
    mesh_wide = Answer("for the whole mesh", f"gitmesh choose {requirement.contract} {first[0]}")
    return Refusal(
        Code.AMBIGUOUS_PROVIDER,
        f"{consumer.id}.{requirement.name}",
        f"{len(able)} providers of `{requirement.contract}` and no choice made",
        consumer.at,
        f"no pin for `{requirement.name}`",
        related=(Related(requirement.at, "required here"),),
        answers=(*pins, mesh_wide),
    )


def _none(mesh: Mesh, consumer: Assignment, requirement: Requirement, candidates: Candidates) -> Refusal:
    able = sorted(name for name, module in mesh.modules.items() if requirement.contract in module.provides)
    answers = tuple(
        Answer(f"assign `{name}`, which provides it", f"gitmesh assign {name} NODE") for name in able
    )
    if not able:
        answers = (Answer(f"no module of this mesh provides `{requirement.contract}`; add one that does"),)
    out = "".join(f"; {each} is out: it {why}" for each, why in sorted(candidates.out.items()))
    return Refusal(
        Code.NO_PROVIDER,
        f"{consumer.id}.{requirement.name}",
        f"nobody provides `{requirement.contract}`{out}",
        consumer.at,
        related=(Related(requirement.at, "required here"),),
        answers=answers,
    )


def _pins(consumer: Assignment, requirement: Requirement, able: tuple[str, ...]) -> tuple[Answer, ...]:
    if not able:
        return (Answer(f"remove the pin of `{requirement.name}`"),)
    return tuple(Answer(f"pin `{each}`", _pin(consumer, requirement, each)) for each in able)


def _pin(consumer: Assignment, requirement: Requirement, provider: str) -> str:
    return f"gitmesh pin {consumer.id} {requirement.name} {provider}"
