"""Assignments and spreads into nouns, and whether their module can be told what they say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gitmesh.core.checking import may_say, nearest
from gitmesh.core.model import Assignment, Contract, Json, Kind, Layers, Module, Node, Requirement
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related

PLACED = ("directory", "access", "device", "port")
"""What of a node an assignment may place."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A spread's file, whose value fits its schema."""

    name: str
    file: str
    value: Mapping[str, Json]

    def covers(self, node: Node) -> bool:
        """Whether the spread's module is assigned to `node`."""
        return self.value.get("every", False) or self.value.get("label") in node.labels


def read_assignment(
    module: str, node: str, file: str, said: Mapping[str, Json], spread: str | None = None
) -> Assignment:
    """The assignment that a file (its own, or a spread's) says."""
    return Assignment(
        module=module,
        node=node,
        at=At(file),
        pins=said.get("pins", {}),
        uses=tuple(said.get("uses", ())),
        values=said.get("values", {}),
        place=said.get("place", {}),
        holds=tuple(said.get("holds", ())),
        grants=tuple(said.get("grants", ())),
        as_=said.get("as"),
        spread=spread,
        fresh=said.get("fresh", False),
        moved="moved" in said,
    )


def expand(
    spreads: Iterable[Spread],
    nodes: Mapping[str, Node],
    assigned: Mapping[str, Assignment],
    refusals: list[Refusal],
) -> tuple[list[Assignment], set[str]]:
    """The assignments that spreads make, and the ids of those that are refused. An assignment's own file
    wins whole; two spreads on one pair are refused, once for both, however many nodes they share."""
    made: dict[str, tuple[Spread, Assignment]] = {}
    shared: dict[tuple[str, str], tuple[Spread, Spread, list[str]]] = {}
    for spread in spreads:
        module = spread.value["module"]
        for node in nodes.values():
            id_ = f"{module}@{node.name}"
            if id_ in assigned or not spread.covers(node):
                continue
            if id_ in made:
                first = made[id_][0]
                shared.setdefault((first.name, spread.name), (first, spread, []))[2].append(node.name)
                continue
            made[id_] = (spread, read_assignment(module, node.name, spread.file, spread.value, spread.name))
    refusals += [_twice(*each) for each in shared.values()]
    twice = {f"{second.value['module']}@{node}" for _, second, on in shared.values() for node in on}
    return [assignment for _, assignment in made.values()], twice


def _twice(first: Spread, second: Spread, nodes: list[str]) -> Refusal:
    module = second.value["module"]
    where = f"`{nodes[0]}`" + (f" and {len(nodes) - 1} more nodes" if len(nodes) > 1 else "")
    return Refusal(
        Code.ASSIGNMENT_TWICE,
        f"{module}@{nodes[0]}",
        f"the spreads `{first.name}` and `{second.name}` both assign `{module}` to {where}",
        At(second.file),
        related=(Related(At(first.file), "the other spread"),),
        answers=(
            Answer("let their labels have no node in common"),
            Answer(f"or add assignments/{nodes[0]}/{module}.yaml, which wins over both"),
        ),
    )


def check_assignments(
    assignments: Iterable[Assignment], modules: Mapping[str, Module], contracts: Mapping[str, Contract]
) -> list[Refusal]:
    """What assignments say of their module's requirements (B1, B6, A7); a spread is checked once."""
    refusals: list[Refusal] = []
    seen: set[str] = set()
    keys: dict[str, Mapping[str, bool | None]] = {}
    for assignment in assignments:
        module = modules.get(assignment.module)
        if module is None or assignment.spread in seen:
            continue
        if assignment.spread is not None:
            seen.add(assignment.spread)
        subject = assignment.id if assignment.spread is None else f"spread {assignment.spread}"
        refusals += _check_pins(assignment, module, subject)
        for number, name in enumerate(assignment.uses):
            if name not in module.requires:
                optional = [each.name for each in module.requires.values() if each.optional]
                at = assignment.at.child("uses", number)
                refusals.append(_unknown(subject, module, name, at, optional, "optional requirement"))
        if assignment.values:
            if module.name not in keys:
                keys[module.name] = value_keys(module, contracts)
            at = assignment.at.child("values")
            refusals += _check_values(assignment.values, keys[module.name], module, subject, at)
        refusals += _check_places(assignment, module, subject)
        refusals += _check_grants(assignment, module, subject)
    return refusals


def _unknown(subject: str, module: Module, name: str, at: At, known: Iterable[str], what: str) -> Refusal:
    return Refusal(
        Code.KEY_UNKNOWN,
        f"{subject}.{name}",
        f"`{name}` is no {what} of `{module.name}`",
        at,
        related=(Related(module.at, "its requirements stand here"),),
        answers=(Answer(may_say(name, known, what)),),
    )


# --- pins ----------------------------------------------------------------------------------------------


def _check_pins(assignment: Assignment, module: Module, subject: str) -> Iterator[Refusal]:
    for name in assignment.pins:
        at = assignment.at.child("pins", name)
        requirement = module.requires.get(name)
        if requirement is None:
            pinned = [each.name for each in module.requires.values() if _can_be_pinned(each)]
            yield _unknown(subject, module, name, at, pinned, "requirement that can be pinned")
            continue
        fault = _pin_fault(requirement)
        if fault is not None:
            code, message, answer = fault
            yield Refusal(
                code,
                f"{subject}.{name}",
                message,
                at,
                related=(Related(requirement.at, "required here"),),
                answers=(Answer(answer),),
            )


def _can_be_pinned(requirement: Requirement) -> bool:
    return _pin_fault(requirement) is None


def _pin_fault(requirement: Requirement) -> tuple[Code, str, str] | None:
    name = requirement.name
    match requirement.kind:
        case Kind.HOST:
            message = f"`{name}` is answered by the assignment's own node, and needs no provider"
            return (
                Code.PIN_ON_HOST,
                message,
                f"remove the pin; where it lies is said by `place: {{{name}: …}}`",
            )
        case Kind.MESH:
            return Code.PIN_ON_HOST, f"`{name}` is answered by the mesh itself", "remove the pin"
        case Kind.OPERATOR:
            message = f"`{name}` is answered by a person, not by a provider"
            return Code.PIN_ON_HOST, message, f"remove the pin; say `values: {{{name}: …}}`"
        case Kind.MODULE if requirement.contract == "secret":
            message = "a secret is always answered by the holder of `mesh-vault`"
            return Code.SECRET_RESERVED, message, "remove the pin"
        case Kind.MODULE if requirement.seat is not None:
            message = f"`{name}` names the seat `{requirement.seat}`, whose holder answers it"
            return Code.PIN_BESIDE_SEAT, message, "remove the pin, or the `seat` of the requirement"
        case Kind.MODULE:
            return None


# --- values --------------------------------------------------------------------------------------------


def value_keys(module: Module, contracts: Mapping[str, Contract]) -> dict[str, bool | None]:
    """What `values` may say of a module: the key, and whether it names a handed secret. None: the contract
    is not known, so that any key below the requirement may be right."""
    keys: dict[str, bool | None] = {}
    for name, requirement in module.requires.items():
        if requirement.kind is Kind.OPERATOR:
            keys[name] = False
        elif requirement.kind is Kind.MODULE:
            contract = contracts.get(requirement.contract)
            if contract is None:
                keys[f"{name}."] = None
            elif contract.name == "secret" and _source(requirement, contract) == "operator":
                keys[name] = True
            for ask, declared in contract.asks.items() if contract is not None else ():
                if declared.from_operator:
                    keys[f"{name}.{ask}"] = False
    return keys


def _source(requirement: Requirement, contract: Contract) -> Json:
    said = requirement.asks.get("source")
    if isinstance(said, tuple):
        return "".join(each for each in said if isinstance(each, str))
    return contract.asks["source"].default if "source" in contract.asks else None


def _check_values(
    values: Mapping[str, Json], keys: Mapping[str, bool | None], module: Module, subject: str, at: At
) -> Iterator[Refusal]:
    for key, value in values.items():
        if key not in keys:
            if f"{key.partition('.')[0]}." not in keys:
                known = [each for each, handed in keys.items() if handed is not None]
                unknown = _unknown(subject, module, key, at.child(key), known, "value that an operator gives")
                # Where it is only misspelt, the value is not missing too.
                yield replace(unknown, root=f"value {subject}.{nearest(key, known) or key}")
        elif keys[key] and not isinstance(value, str):
            yield Refusal(
                Code.VALUE_TYPE,
                f"{subject}.{key}",
                "expected the name of a handed file",
                at.child(key),
                answers=(Answer(f"name one of handed/, or leave it out for handed/{subject}.{key}.yaml"),),
            )


def check_layers(
    layers: Layers,
    module: Module,
    contracts: Mapping[str, Contract],
    assignments: Iterable[Assignment],
    nodes: Mapping[str, Node],
) -> list[Refusal]:
    """What `values/<module>.yaml` says, for the mesh and by label (B5)."""
    keys = value_keys(module, contracts)
    refusals: list[Refusal] = []
    said = [(layers.mesh, ("mesh",)), *((each, ("labels", name)) for name, each in layers.labels.items())]
    for values, where in said:
        at = layers.at.child(*where)
        own = {key for key in values if "." in key and key in keys}
        shared = {key: value for key, value in values.items() if key not in own}
        refusals += _check_values(shared, keys, module, f"values/{module.name}", at)
        refusals += [_given_by_each(module, key, at.child(key)) for key in values if key in own]
    return refusals + _check_labels(layers, module, assignments, nodes)


def _given_by_each(module: Module, key: str, at: At) -> Refusal:
    """An ask that its contract leaves to the operator is said for one assignment, never for many."""
    requirement = module.requires[key.partition(".")[0]]
    return Refusal(
        Code.KEY_UNKNOWN,
        f"values/{module.name}.{key}",
        f"`{key}` is given by each assignment for itself, and not for many",
        at,
        related=(Related(requirement.at, "required here"),),
        answers=(Answer("say it in the assignment", f"gitmesh set {module.name}@NODE {key} VALUE"),),
    )


def _check_labels(
    layers: Layers, module: Module, assignments: Iterable[Assignment], nodes: Mapping[str, Node]
) -> list[Refusal]:
    """Two labels of a node that say different values: nothing says which one counts. One refusal for all
    the nodes that two labels share."""
    clashes: dict[tuple[str, str, str], list[Assignment]] = {}
    for assignment in assignments:
        node = nodes.get(assignment.node)
        if assignment.module != module.name or node is None:
            continue
        labels = [each for each in sorted(node.labels) if each in layers.labels]
        for key in {key: None for label in labels for key in layers.labels[label]}:
            saying = [each for each in labels if key in layers.labels[each]]
            other = next((each for each in saying if _differ(layers, key, saying[0], each)), None)
            if other is not None and key not in assignment.values:
                clashes.setdefault((key, saying[0], other), []).append(assignment)
    return [_value_twice(layers, *names, which) for names, which in clashes.items()]


def _differ(layers: Layers, key: str, one: str, other: str) -> bool:
    # 1 and true are equal in Python, and not in YAML.
    values = [layers.labels[each][key] for each in (one, other)]
    return json.dumps(values[0], sort_keys=True) != json.dumps(values[1], sort_keys=True)


def _value_twice(layers: Layers, key: str, one: str, other: str, which: list[Assignment]) -> Refusal:
    more = f", and so have {len(which) - 1} more" if len(which) > 1 else ""
    first = which[0]
    return Refusal(
        Code.VALUE_TWICE,
        f"{first.id}.{key}",
        f"`{first.node}` has the labels `{one}` and `{other}`{more}, and they give different values",
        layers.at.child("labels", other, key),
        related=(Related(layers.at.child("labels", one, key), "the other value"),),
        answers=(
            Answer("say it for the assignment", f"gitmesh set {first.id} {key} VALUE"),
            Answer("or let no node have both labels"),
        ),
    )


# --- places and grants ---------------------------------------------------------------------------------


def _check_places(assignment: Assignment, module: Module, subject: str) -> Iterator[Refusal]:
    for name, value in assignment.place.items():
        at = assignment.at.child("place", name)
        requirement = module.requires.get(name)
        if requirement is None or requirement.kind is not Kind.HOST or requirement.contract not in PLACED:
            placed = [each.name for each in module.requires.values() if each.contract in PLACED]
            yield _unknown(subject, module, name, at, placed, "requirement that can be placed")
        elif isinstance(value, str) == (requirement.contract == "port"):
            port = requirement.contract == "port"
            yield Refusal(
                Code.PLACE_BAD,
                f"{subject}.{name}",
                "a port is placed at a number" if port else f"a {requirement.contract} is placed at a path",
                at,
                related=(Related(requirement.at, "required here"),),
                answers=(Answer(f"write `place: {{{name}: {'8080' if port else '/a/path'}}}`"),),
            )


def _check_grants(assignment: Assignment, module: Module, subject: str) -> Iterator[Refusal]:
    """A grant of an access or a device names one of the module's."""
    for number, grant in enumerate(assignment.grants):
        contract, _, name = grant.partition(":")
        if contract not in ("access", "device"):
            continue
        known = [each.name for each in module.requires.values() if each.contract == contract]
        if name not in known:
            at = assignment.at.child("grants", number)
            yield _unknown(subject, module, name, at, known, f"{contract} requirement")
