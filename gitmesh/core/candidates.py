"""Who could answer a module requirement, and who is out and why (B3, B4; FORMATS `accepts`). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitmesh.core.choose import Candidates
from gitmesh.core.contract import check_value
from gitmesh.core.model import Assignment, Contract, Json, Mesh, Requirement
from gitmesh.core.refusal import Code, Refusal


def whole(mesh: Mesh, assignment: Assignment) -> bool:
    """Whether nothing that the assignment stands on was refused already: else it is silent."""
    return (
        assignment.module in mesh.modules
        and assignment.node in mesh.nodes
        and f"modules/{assignment.module}" not in mesh.broken
        and f"nodes/{assignment.node}" not in mesh.broken
        and assignment.id not in mesh.broken
    )


def offers_of(mesh: Mesh, assignments: Iterable[Assignment]) -> dict[str, list[str]]:
    """By contract, which of `assignments` provide it."""
    offers: dict[str, list[str]] = {}
    for each in assignments:
        for contract in mesh.modules[each.module].provides:
            offers.setdefault(contract, []).append(each.id)
    return offers


def candidates_of(mesh: Mesh, requirement: Requirement) -> Candidates:
    """Who could answer a module requirement whose contract the mesh has, and who is out, with why."""
    assignments = [each for _, each in sorted(mesh.assignments.items()) if whole(mesh, each)]
    contract = mesh.contracts[requirement.contract]
    return candidates_among(mesh, offers_of(mesh, assignments).get(contract.name, []), requirement, contract)


def candidates_among(
    mesh: Mesh, offers: list[str], requirement: Requirement, contract: Contract
) -> Candidates:
    """Which of the assignments in `offers`, that provide `contract`, accept what is asked."""
    able: list[str] = []
    out: dict[str, str] = {}
    for provider in offers:
        accepts = mesh.modules[mesh.assignments[provider].module].provides[contract.name].accepts
        wrong = _not_accepted(accepts, requirement, contract)
        if wrong is None:
            able.append(provider)
        else:
            out[provider] = wrong
    return Candidates(tuple(able), out)


def _not_accepted(
    accepts: Mapping[str, Mapping[str, Json]], requirement: Requirement, contract: Contract
) -> str | None:
    for ask, schema in accepts.items():
        asked = requirement.asks.get(ask, contract.asks[ask].default if ask in contract.asks else None)
        asked = _literal(asked)
        items = schema.get("items", {}).get("enum")
        if isinstance(asked, list) and items is not None:
            lacking = sorted({str(each) for each in asked} - {str(each) for each in items})
            if lacking:
                return f"has no {', '.join(lacking)}"
        wrong = check_value(schema, asked)
        if wrong is not None:
            return f"does not accept `{ask}`: {wrong}"
    return None


def _literal(value: Json) -> Json:
    """An ask whose texts are literal, as JSON; text with a reference stays a tuple, which nothing accepts."""
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else value
    if isinstance(value, list):
        return [_literal(each) for each in value]
    return value


def stands_on_broken(mesh: Mesh, choice: Refusal, holder: str | None) -> bool:
    """Whether a refused file might have answered: then the lack of a provider is no second mistake."""
    if holder is not None:
        return not whole(mesh, mesh.assignments[holder])
    if choice.code not in (Code.NO_PROVIDER, Code.PIN_BAD):
        return False
    providers = ("modules/", "spreads/", "nodes/")
    might = any("@" in each or each.startswith(providers) for each in mesh.broken)
    return might or any(not whole(mesh, each) for each in mesh.assignments.values())


def may_be_held(mesh: Mesh, seat: str) -> bool:
    """Whether an assignment whose file was refused may be the one that holds `seat`."""
    modules = [
        mesh.modules.get(mesh.assignments[each].module) for each in mesh.broken & mesh.assignments.keys()
    ]
    return any(module is None or seat in module.seats for module in modules)
