"""One commit and the record in, every answer or every refusal out (RULES B; DESIGN §3).

Pure: the same inputs give the same resolution on any machine (B22).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from operator import itemgetter

from gitmesh.core import choose as choosing
from gitmesh.core.acts import check_acts
from gitmesh.core.answer import Answered, Secret, answer_local, consumer_identity, hashes_of, secret_of
from gitmesh.core.candidates import candidates_among, may_be_held, offers_of, stands_on_broken, whole
from gitmesh.core.drops import check_drops, used_allowances
from gitmesh.core.environments import check_environments
from gitmesh.core.facts import check_facts
from gitmesh.core.grants import check_addresses, check_grants
from gitmesh.core.identity import identity_of, logins
from gitmesh.core.model import Assignment, Contract, Kind, Mesh, Requirement
from gitmesh.core.moves import Confirmed, check_moves, follow, settled, unsaid_moves
from gitmesh.core.orphans import TakenUp, check_orphans, orphaned
from gitmesh.core.ports import Wanted, give
from gitmesh.core.read import Reader
from gitmesh.core.readable import check_readable
from gitmesh.core.record import Record, Recorded, Resource
from gitmesh.core.refusal import Answer, Code, Refusal, Related, ordered
from gitmesh.core.registries import credentials
from gitmesh.core.seats import check_guarded, hold, kept_holders
from gitmesh.core.spread import once_for_a_spread
from gitmesh.core.standing import check_unassigned, provider_changed, stands_on_gone
from gitmesh.core.unique import check_names, check_places


@dataclass(frozen=True, slots=True)
class Resolution:
    """Who answers what. Where `refusals` is not empty, nothing may be composed from it.

    `answers` by (assignment, requirement); `secrets` by id; `record` is what the next resolution takes.
    """

    mesh: Mesh
    answers: Mapping[tuple[str, str], Answered]
    secrets: Mapping[str, Secret]
    holders: Mapping[str, str]
    record: Record
    refusals: tuple[Refusal, ...]
    ports: Mapping[tuple[str, str], int] = field(default_factory=dict)
    taken_up: Mapping[str, TakenUp] = field(default_factory=dict)
    """By its id, the orphaned data that an assignment has again (G8)."""

    @property
    def reader(self) -> Reader:
        """What reads fields of these answers."""
        return Reader(self.mesh, self.answers)


def resolve(mesh: Mesh, record: Record, confirmed: Confirmed = frozenset()) -> Resolution:
    """The resolution of `mesh`, given what must not move. `confirmed` names the (assignment, requirement)
    whose new provider works, so that the old one is left (D9)."""
    holders, refusals = hold(mesh)
    refusals += check_guarded(mesh, record.holders, holders)
    record = follow(mesh, record)
    assignments = [each for _, each in sorted(mesh.assignments.items()) if whole(mesh, each)]
    needed = [(each, used(mesh, each)) for each in assignments]
    wanted = [
        Wanted(each, requirement)
        for each, requirements in needed
        for requirement in requirements
        if requirement.kind is Kind.HOST and requirement.contract == "port"
    ]
    ports, refused = give(mesh, record, wanted)
    refusals += refused
    answers: dict[tuple[str, str], Answered] = {}
    for each, requirements in needed:
        for requirement in requirements:
            if requirement.kind is not Kind.MODULE:
                answered = answer_local(mesh, each, requirement, ports.get((each.id, requirement.name)))
                _keep(answers, refusals, each, requirement, answered)
    _answer_by_modules(mesh, holders, record, needed, answers, refusals)
    reader = Reader(mesh, answers)
    refusals += check_readable(reader, answers)
    refusals += check_facts(mesh, reader, assignments, answers)
    refusals += check_environments(mesh, assignments, answers)
    secrets = _secrets(mesh, answers)
    refusals += check_names(mesh, reader, answers)
    refusals += check_places(mesh, answers)
    refusals += check_grants(mesh, assignments, answers)
    refusals += check_addresses(mesh, answers)
    refusals += _check_handed(mesh, secrets)
    refusals += check_acts(mesh, answers, secrets)
    refusals += _check_identities(needed)
    in_use = [*check_unassigned(mesh, record, needed, confirmed)]
    refusals += in_use
    refusals += _check_cycles(mesh, answers)
    secrets |= credentials(mesh, assignments)
    now = _record(mesh, assignments, answers, ports)
    unsaid = unsaid_moves(mesh, record, now)
    refusals += check_moves(mesh, record, now, unsaid)
    refusals += check_drops(mesh, record, {each.subject for each in in_use} | unsaid.keys())
    settled_, taken_up, refused = _settle(mesh, record, holders, now, confirmed)
    refusals += refused
    return Resolution(
        mesh,
        answers,
        secrets,
        holders,
        settled_,
        once_for_a_spread(mesh, ordered(refusals)),
        ports,
        taken_up,
    )


def used(mesh: Mesh, assignment: Assignment) -> tuple[Requirement, ...]:
    """The requirements of an assignment that count: all but the optional ones that it does not use."""
    said = {*assignment.uses, *assignment.pins, *assignment.place}
    requires = mesh.modules[assignment.module].requires
    return tuple(each for each in requires.values() if not each.optional or each.name in said)


def _keep(
    answers: dict[tuple[str, str], Answered],
    refusals: list[Refusal],
    assignment: Assignment,
    requirement: Requirement,
    answered: Answered | Refusal | None,
) -> None:
    if isinstance(answered, Refusal):
        refusals.append(answered)
    elif answered is not None:
        answers[assignment.id, requirement.name] = answered


def _answer_by_modules(
    mesh: Mesh,
    holders: Mapping[str, str],
    record: Record,
    needed: list[tuple[Assignment, tuple[Requirement, ...]]],
    answers: dict[tuple[str, str], Answered],
    refusals: list[Refusal],
) -> None:
    """Choose a provider for each module requirement; seats that nobody holds are refused once each."""
    offers = offers_of(mesh, (consumer for consumer, _ in needed))
    # Who could answer is the same for every assignment of a module.
    asked: dict[tuple[str, str], choosing.Candidates] = {}
    unheld: dict[str, list[tuple[Assignment, Requirement]]] = {}
    unsaid: list[choosing.Unsaid] = []
    for consumer, requirements in needed:
        for requirement in requirements:
            if requirement.kind is not Kind.MODULE:
                continue
            contract = mesh.contracts.get(requirement.contract)
            if contract is None:
                continue
            if _needs_vault(contract) and "mesh-vault" not in holders:
                unheld.setdefault("mesh-vault", []).append((consumer, requirement))
            seat = choosing.seat_of(requirement)
            if seat is not None and seat not in holders:
                if seat != "mesh-vault":
                    unheld.setdefault(seat, []).append((consumer, requirement))
                continue
            key = (consumer.module, requirement.name)
            if key not in asked:
                asked[key] = candidates_among(mesh, offers.get(contract.name, []), requirement, contract)
            candidates = asked[key]
            recorded = record.of(consumer.id).providers.get(requirement.name)
            if stands_on_gone(mesh, consumer, requirement, recorded):
                continue
            choice = choosing.choose(mesh, holders, consumer, requirement, candidates, recorded)
            if isinstance(choice, choosing.Unsaid):
                if choice.able or whole(mesh, mesh.assignments[choice.recorded]):
                    unsaid.append(choice)
                continue
            if isinstance(choice, Refusal):
                if not stands_on_broken(mesh, choice, seat and holders[seat]):
                    refusals.append(choice)
                continue
            answers[consumer.id, requirement.name] = Answered(
                consumer, requirement, choice.provider, choice.rule, contract
            )
    refusals += [
        choosing.seat_unheld(mesh, seat, by)
        for seat, by in sorted(unheld.items())
        # Whose holder was unassigned under its consumers is refused for that (B21).
        if not may_be_held(mesh, seat) and not any(_is_of_gone(mesh, record, seat, *each) for each in by)
    ]
    refusals += provider_changed(mesh, unsaid)


def _is_of_gone(
    mesh: Mesh, record: Record, seat: str, consumer: Assignment, requirement: Requirement
) -> bool:
    recorded = record.of(consumer.id).providers.get(requirement.name)
    named = choosing.seat_of(requirement) == seat
    return named and stands_on_gone(mesh, consumer, requirement, recorded)


def _needs_vault(contract: Contract) -> bool:
    """A per-consumer secret is demanded by the contract, whoever will answer it (C2)."""
    return contract.credential is not None


def _secrets(mesh: Mesh, answers: Mapping[tuple[str, str], Answered]) -> dict[str, Secret]:
    secrets = {}
    for key, answered in sorted(answers.items(), key=itemgetter(0)):
        secret = secret_of(mesh, answered)
        if secret is not None:
            secrets[f"{key[0]}.{key[1]}"] = secret
    hashes = [hash_ for each in answers.values() for hash_ in hashes_of(mesh, each, secrets)]
    return secrets | {each.id: each for each in hashes}


def _check_identities(needed: list[tuple[Assignment, tuple[Requirement, ...]]]) -> list[Refusal]:
    """Identities and the logins made of them are unique in the mesh (B14)."""
    refusals = []
    held: dict[str, tuple[Assignment, str | None]] = {}
    for each, requirements in needed:
        words = {requirement.as_word for requirement in requirements}
        for word in sorted({None, *words}, key=lambda word: word or ""):
            identity = identity_of(each, word)
            taken = [held[name] for name in (identity, *logins(identity)) if name in held]
            if taken and taken[0] != (each, word):
                refusals.append(_identity_held(each, identity, taken[0][0]))
            held |= dict.fromkeys((identity, *logins(identity)), (each, word))
    return refusals


def _identity_held(each: Assignment, identity: str, other: Assignment) -> Refusal:
    return Refusal(
        Code.IDENTITY_HELD,
        each.id,
        f"its identity `{identity}`, or a login of it, is {other.id}'s already",
        each.at,
        related=(Related(other.at, "held here"),),
        answers=(Answer(f"give one of the two another: `as: NAME` in {each.at.file}"),),
    )


def _check_cycles(mesh: Mesh, answers: Mapping[tuple[str, str], Answered]) -> list[Refusal]:
    """Requirements that wait must not wait for each other, nor one for itself, in a circle (B21)."""
    graph: dict[str, set[str]] = {}
    for (consumer, _), answered in answers.items():
        if waits(mesh, answered):
            graph.setdefault(consumer, set()).add(answered.by)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        path = list(reversed(error.args[1]))
        return [
            Refusal(
                Code.CYCLE,
                path[0],
                f"each waits for the next: {' -> '.join(path)}",
                mesh.assignments[path[0]].at,
                related=tuple(
                    Related(mesh.assignments[each].at, f"{each} is assigned here") for each in path[1:-1]
                ),
                answers=(Answer("let one of them be answered by another provider"),),
            )
        ]
    return []


def _check_handed(mesh: Mesh, secrets: Mapping[str, Secret]) -> list[Refusal]:
    """A secret that only an operator can give must have been handed (C4): once for all that read one file."""
    missing: dict[str, list[Secret]] = {}
    for secret in secrets.values():
        if secret.handed is not None and secret.handed not in mesh.handed:
            missing.setdefault(secret.handed, []).append(secret)
    return [_handed_missing(mesh, name, readers) for name, readers in missing.items()]


def _handed_missing(mesh: Mesh, name: str, readers: list[Secret]) -> Refusal:
    first = readers[0]
    assignment = mesh.assignments[first.assignment]
    requirement = mesh.modules[assignment.module].requires[first.id.rpartition(".")[2]]
    more = f"; {len(readers) - 1} more would read it" if len(readers) > 1 else ""
    return Refusal(
        Code.HANDED_MISSING,
        first.id,
        f"an operator hands this secret over, and nobody has{more}",
        assignment.at,
        f"no handed/{name}.yaml",
        related=(Related(requirement.at, "required here"),),
        answers=(Answer(f"encrypt it to the mesh's vault with sops, as handed/{name}.yaml"),),
    )


def waits(mesh: Mesh, answered: Answered) -> bool:
    """Whether the requirement waits on its provider: for a credential or an answer (FORMATS "Provides")."""
    if answered.requirement.kind is not Kind.MODULE or answered.requirement.contract == "secret":
        return False
    provision = mesh.modules[mesh.assignments[answered.by].module].provides[answered.contract.name]
    applied = answered.contract.credential is not None and provision.provisioner is not None
    return applied or bool(provision.answers)


def _record(
    mesh: Mesh,
    assignments: list[Assignment],
    answers: Mapping[tuple[str, str], Answered],
    ports: Mapping[tuple[str, str], int],
) -> dict[str, Recorded]:
    """What is kept of each assignment, as this commit says it."""
    providers: dict[str, dict[str, str]] = {}
    places: dict[str, dict[str, str]] = {}
    resources: dict[str, dict[str, Resource]] = {}
    for (consumer, name), answered in answers.items():
        contract = answered.requirement.contract
        if answered.requirement.kind is Kind.HOST and contract == "directory":
            places.setdefault(consumer, {})[name] = str(answered.fields["location"])
        elif answered.requirement.kind is Kind.MODULE and contract != "secret":
            providers.setdefault(consumer, {})[name] = answered.by
            if waits(mesh, answered):
                made = Resource(contract, consumer_identity(answered))
                resources.setdefault(consumer, {})[name] = made
    given: dict[str, dict[str, int]] = {}
    for (assignment, name), port in ports.items():
        given.setdefault(assignment, {})[name] = port
    return {
        each.id: Recorded(
            identity_of(each, None),
            given.get(each.id, {}),
            providers.get(each.id, {}),
            places=places.get(each.id, {}),
            resources=resources.get(each.id, {}),
        )
        for each in assignments
    }


def _settle(
    mesh: Mesh, before: Record, holders: Mapping[str, str], now: Mapping[str, Recorded], confirmed: Confirmed
) -> tuple[Record, dict[str, TakenUp], list[Refusal]]:
    """The next record, what was taken up, and what is refused for the sake of what `before` holds."""
    kept = {id_: settled(mesh.assignments[id_], before.of(id_), each, confirmed) for id_, each in now.items()}
    standing = Record(
        kept, holders=kept_holders(before.holders, holders), dropped=used_allowances(mesh, before)
    )
    record, taken = orphaned(mesh, before, standing)
    return record, taken, [*check_orphans(mesh, before, record, taken)]
