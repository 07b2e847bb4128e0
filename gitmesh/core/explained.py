"""Why a requirement has its answer: who gives it, by which rule, and who else could have (B1–B6, G1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gitmesh.core.candidates import candidates_of
from gitmesh.core.choose import FOR_MESH, Candidates
from gitmesh.core.declaration import AnswerHole, Hole, Holed, SecretHole
from gitmesh.core.model import Assignment, Json, Kind, Requirement
from gitmesh.core.read import Unread
from gitmesh.core.record import Record
from gitmesh.core.resolve import Resolution, used

_NOT = {
    "pinned": "is not the pinned one",
    "own node": "is on another node",
    "recorded": "is not the recorded one",
    FOR_MESH: "is not the one chosen for the mesh",
}
"""Why a provider that could answer does not, by the rule that chose another."""


@dataclass(frozen=True, slots=True)
class Part:
    """One field: its `value`, or the `hole` (secret, login, answer) that the node fills and whom that
    waits on. All None: it can't be read, which a refusal says."""

    name: str
    value: Json = None
    hole: str | None = None
    waits_on: str | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """One requirement. `by` and `rule` are None where it is not answered; `others` are the providers
    that do not answer, each with why; `recorded` is what the record keeps of it."""

    id: str
    kind: str
    contract: str
    used: bool
    by: str | None
    rule: str | None
    recorded: str | int | None
    others: Mapping[str, str]
    parts: tuple[Part, ...]


def explained(
    resolution: Resolution, record: Record, assignment: str, requirement: str | None = None
) -> tuple[Explained, ...]:
    """Each requirement of an assignment, or the one named, in the module's order.

    `record` is what the mesh was resolved with. The assignment, its module and the requirement exist.
    """
    consumer = resolution.mesh.assignments[assignment]
    requires = resolution.mesh.modules[consumer.module].requires.values()
    return tuple(
        _explained(resolution, record, consumer, each)
        for each in requires
        if requirement in (None, each.name)
    )


def _explained(
    resolution: Resolution, record: Record, consumer: Assignment, requirement: Requirement
) -> Explained:
    answered = resolution.answers.get((consumer.id, requirement.name))
    rule = None if answered is None else answered.rule
    kept = record.of(consumer.id)
    return Explained(
        id=f"{consumer.id}.{requirement.name}",
        kind=requirement.kind.value,
        contract=requirement.contract,
        used=requirement in used(resolution.mesh, consumer),
        by=None if answered is None else answered.by,
        rule=rule,
        recorded=kept.providers.get(requirement.name, kept.ports.get(requirement.name)),
        others=_others(resolution, consumer, requirement, None if answered is None else answered.by, rule),
        parts=_parts(resolution, consumer, requirement),
    )


def _others(
    resolution: Resolution, consumer: Assignment, requirement: Requirement, by: str | None, rule: str | None
) -> dict[str, str]:
    """Who does not answer a module requirement, and why not."""
    if requirement.kind is not Kind.MODULE or requirement.contract not in resolution.mesh.contracts:
        return {}
    candidates: Candidates = candidates_of(resolution.mesh, requirement)
    if rule is None:
        able = dict.fromkeys(candidates.able, "could answer")
    else:
        seat = rule.removeprefix("seat ")
        why = _NOT.get(rule, f"does not hold the seat `{seat}`")
        able = {each: why for each in candidates.able if each != by}
    return dict(sorted({**able, **candidates.out}.items()))


def _parts(resolution: Resolution, consumer: Assignment, requirement: Requirement) -> tuple[Part, ...]:
    answered = resolution.answers.get((consumer.id, requirement.name))
    if answered is None:
        return ()
    names = answered.fields if requirement.kind is not Kind.MODULE else answered.contract.fields
    return tuple(_part(resolution, consumer, requirement, name) for name in names)


def _part(resolution: Resolution, consumer: Assignment, requirement: Requirement, name: str) -> Part:
    try:
        value = resolution.reader.field(consumer.id, requirement.name, name)
    except Unread:
        return Part(name)
    if not isinstance(value, Holed):
        return Part(name, value)
    holes = [each for each in value.pieces if not isinstance(each, str)]
    # A URL with a login and its password is a secret.
    hole = next((each for each in holes if isinstance(each, SecretHole)), holes[0])
    return Part(name, None, *_waits(resolution, hole))


def _waits(resolution: Resolution, hole: Hole) -> tuple[str, str]:
    """What kind of hole it is, and whom it waits on: a credential on the one who applies it (D2)."""
    if isinstance(hole, AnswerHole):
        return "answer", hole.by
    kind = "secret" if isinstance(hole, SecretHole) else "login"
    secret = resolution.secrets.get(hole.secret)
    return kind, (None if secret is None else secret.applier) or "mesh-vault"
