"""Recorded providers against a commit: none changes or goes while consumers stand (G1, B21). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitmesh.core.choose import Unsaid, seat_of
from gitmesh.core.model import Assignment, Mesh, Requirement
from gitmesh.core.moves import Confirmed
from gitmesh.core.record import Record
from gitmesh.core.refusal import Answer, Code, Refusal, Related
from gitmesh.core.seats import GUARDED

Needed = Iterable[tuple[Assignment, tuple[Requirement, ...]]]
"""Each whole assignment with the requirements that it uses."""


def provider_changed(mesh: Mesh, unsaid: Iterable[Unsaid]) -> Iterator[Refusal]:
    """One refusal for each provider that a commit would replace by another, for all consumers (G1)."""
    moves: dict[tuple[str, str], list[Unsaid]] = {}
    for each in unsaid:
        moves.setdefault((each.recorded, each.choice.provider), []).append(each)
    for moved in moves.values():
        yield _changed(mesh, moved)


def _changed(mesh: Mesh, moved: list[Unsaid]) -> Refusal:
    first = moved[0]
    old, new = first.recorded, first.choice
    subject = f"{first.consumer.id}.{first.requirement.name}"
    also = [f"{each.consumer.id}.{each.requirement.name}" for each in moved[1:]]
    shown = ", ".join(also[:3]) + (f" and {len(also) - 3} more" if len(also) > 3 else "")
    others = f", as are {shown}" if len(also) > 1 else f", as is {shown}" if also else ""
    return Refusal(
        Code.PROVIDER_CHANGED,
        subject,
        f"answered by {old} so far{others}, and this commit would make it {new.provider} ({new.rule})",
        first.consumer.at,
        f"no pin for `{first.requirement.name}`" if first.requirement.seat is None else "",
        related=(
            Related(mesh.assignments[new.provider].at, f"{new.provider} is assigned here"),
            Related(first.requirement.at, "required here"),
        ),
        answers=(_stay(mesh, first, also), _move(first, also)),
    )


def _stay(mesh: Mesh, first: Unsaid, also: list[str]) -> Answer:
    old, seat = first.recorded, first.requirement.seat
    module, _, node = old.partition("@")
    if not first.able:
        return Answer(f"stay with {old}: let it provide `{first.requirement.contract}` as before")
    if seat is not None:
        said = f"stay with {old}: let it hold `{seat}`, and {first.choice.provider} not"
        return Answer(said, f"gitmesh assign {module} {node} --hold {seat}")
    return Answer(f"stay with {old}", _pin(first, old, also))


def _move(first: Unsaid, also: list[str]) -> Answer:
    old, new = first.recorded, first.choice.provider
    said = f"move to {new}; the data in {old} stays behind"
    if first.requirement.seat is not None:
        return Answer(said, f"gitmesh choose {first.requirement.contract} {new}")
    return Answer(said, _pin(first, new, also))


def _pin(first: Unsaid, provider: str, also: list[str]) -> str:
    more = "".join(f" --also {each}" for each in also)
    return f"gitmesh pin {first.consumer.id} {first.requirement.name} {provider}{more}"


def stands_on_gone(mesh: Mesh, consumer: Assignment, requirement: Requirement, recorded: str | None) -> bool:
    """Whether its recorded provider was unassigned under it: `check_unassigned` says so, once."""
    if recorded is None or recorded in mesh.assignments or seat_of(requirement) in GUARDED:
        return False
    return requirement.name not in consumer.pins


def check_unassigned(mesh: Mesh, record: Record, needed: Needed, confirmed: Confirmed) -> Iterator[Refusal]:
    """A provider with consumers can't be unassigned (B21), nor one that a consumer is still leaving (D9):
    that one goes where `allow: drop` names its node."""
    used: dict[str, list[tuple[Assignment, Requirement]]] = {}
    left: dict[str, list[str]] = {}
    for consumer, requirements in needed:
        kept = record.of(consumer.id)
        for requirement in requirements:
            provider = kept.providers.get(requirement.name)
            if stands_on_gone(mesh, consumer, requirement, provider):
                used.setdefault(str(provider), []).append((consumer, requirement))
                continue
            left_for = kept.leaving.get(requirement.name, provider)
            waited_for = (
                requirement.name in kept.resources and (consumer.id, requirement.name) not in confirmed
            )
            if waited_for and left_for is not None and _is_lost(mesh, requirement, left_for):
                left.setdefault(left_for, []).append(f"{consumer.id}.{requirement.name}")
    for provider, consumers in used.items():
        yield _in_use(mesh, provider, consumers)
    for provider, names in left.items():
        if provider not in used:
            yield _not_left(mesh, provider, names)


def _is_lost(mesh: Mesh, requirement: Requirement, provider: str) -> bool:
    gone = provider not in mesh.assignments and seat_of(requirement) not in GUARDED
    return gone and provider.partition("@")[2] not in mesh.allow_drop


def _in_use(mesh: Mesh, provider: str, consumers: list[tuple[Assignment, Requirement]]) -> Refusal:
    module, _, node = provider.partition("@")
    names = ", ".join(f"{consumer.id}.{requirement.name}" for consumer, requirement in consumers)
    seats = dict.fromkeys(requirement.seat for _, requirement in consumers if requirement.seat is not None)
    hold = "".join(f" --hold {seat}" for seat in seats)
    return Refusal(
        Code.PROVIDER_IN_USE,
        provider,
        f"unassigned, and still used by {names}",
        consumers[0][0].at,
        "this consumer stands",
        answers=(
            Answer(
                f"assign it again: `assignments/{node}/{module}.yaml`",
                f"gitmesh assign {module} {node}{hold}",
            ),
            Answer("pin its consumers to another provider first; their data stays behind")
            if not seats
            else Answer("move its consumers first: let another hold the seat, and choose that one"),
        ),
    )


def _not_left(mesh: Mesh, provider: str, names: list[str]) -> Refusal:
    module, _, node = provider.partition("@")
    consumer = mesh.assignments[names[0].partition(".")[0]]
    return Refusal(
        Code.PROVIDER_IN_USE,
        provider,
        f"unassigned, and {', '.join(names)} moved away from it and did not confirm its new provider yet",
        consumer.at,
        "this consumer moves",
        answers=(
            Answer("assign it again until that is confirmed", f"gitmesh assign {module} {node}"),
            Answer(f"or let it go all the same: `allow: {{drop: [{node}]}}` in mesh.yaml"),
        ),
    )
