"""What a module leaves unread of what its providers derive from it (A10).

A field whose provider serves `${consumer:…}` differs for each consumer. A module that reads the host of its
database and writes the database's name as a literal works only until the name is another. A literal can't
be told from a word that happens to be the same, so nothing is searched for: the field is read, or listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitmesh.core.checking import Checking
from gitmesh.core.definition_reads import spots
from gitmesh.core.model import Contract, FieldName, Kind, Module, Requirement
from gitmesh.core.reference import references
from gitmesh.core.refusal import At, Code, Refusal, Related

Consumed = Mapping[str, Mapping[str, At]]
"""By contract, the fields that speak of the consumer, and where a provider says so."""


def consumed_fields(modules: Iterable[Module]) -> Consumed:
    """The fields that any of `modules` serves with `${consumer:…}`."""
    found: dict[str, dict[str, At]] = {}
    for module in modules:
        for provision in module.provides.values():
            for name, text in provision.serves.items():
                if any(ref.requirement == "consumer" for ref in references(text)):
                    fields = found.setdefault(provision.contract, {})
                    fields.setdefault(name, provision.at.child("serves", name))
    return found


def check_unread(module: Module, contracts: Mapping[str, Contract], consumed: Consumed) -> list[Refusal]:
    """Refuse each field of `consumed` that the module neither reads nor lists under `unused`, of every
    requirement that it reads at all. `consumed` is of all modules of the mesh, or of the catalogue."""
    checking = Checking(module, contracts, {})
    reads = _reads(checking)
    for requirement in module.requires.values():
        contract = checking.contract(requirement)
        if requirement.kind is Kind.MODULE and contract is not None:
            read = _contained(contract, reads.get(requirement.name, set()))
            if read:
                _check_requirement(checking, requirement, consumed.get(contract.name, {}), read)
    return checking.refusals


def _check_requirement(
    checking: Checking, requirement: Requirement, fields: Mapping[str, At], read: set[str]
) -> None:
    listed = checking.module.unused.get(requirement.name, {})
    for name, at in fields.items():
        if name not in read and name not in listed:
            checking.refuse(
                Code.FIELD_UNREAD,
                f"{requirement.name}.{name}",
                f"`{name}` is made for each consumer, and this one does not read it",
                requirement.at,
                f"write `${{{requirement.name}:{name}}}` where the module says it as a literal",
                f"or say why it is not needed: `unused: {{{requirement.name}: {{{name}: REASON}}}}`",
                related=(Related(at, "made for each consumer here"),),
            )


def _reads(checking: Checking) -> dict[str, set[str]]:
    """By requirement, what the module's texts read of it."""
    found: dict[str, set[str]] = {}
    for spot in spots(checking):
        for ref in references(spot.text):
            found.setdefault(ref.requirement, set()).add(ref.field)
    return found


def _contained(contract: Contract, read: Iterable[str]) -> set[str]:
    """The fields of `contract` among `read`, and those that the derived ones are made of."""
    return {each for name in read for each in _pieces(contract, name)}


def _pieces(contract: Contract, name: str) -> Iterator[str]:
    field = contract.fields.get(name)
    if field is None:
        return
    yield name
    for piece in field.derived or ():
        if isinstance(piece, FieldName):
            yield from _pieces(contract, piece.name)
