"""A module's definition against the contracts: everything that can be said of it at parse (RULES A).

"At parse" is: looking at nothing but the module and the contracts. `check_module` says all at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from gitmesh.core.checking import Checking, may_say, nearest
from gitmesh.core.contract import check_value, narrow
from gitmesh.core.contract_schema import check_schema
from gitmesh.core.definition_containers import check_containers
from gitmesh.core.definition_made import can_be_met
from gitmesh.core.definition_provides import check_provides
from gitmesh.core.definition_reads import check_reads, plain, tree_references
from gitmesh.core.model import Ask, Contract, FieldName, Json, Kind, Module, Requirement, Takes
from gitmesh.core.refusal import Code, Refusal, Related

VAULT = "mesh-vault"


def check_module(
    module: Module,
    contracts: Mapping[str, Contract],
    seats: Mapping[str, str | None],
    broken: Collection[str] = (),
) -> list[Refusal]:
    """Everything the definition is refused for (A1–A16, but for what only its schema or a whole catalogue
    can tell). `seats` are those of the commit and what each delivers; `broken` the contracts whose files
    were refused."""
    checking = Checking(module, contracts, seats, broken)
    _check_seats(checking)
    for requirement in module.requires.values():
        _check_requirement(checking, requirement)
    _check_words(checking)
    _check_circles(checking)
    _check_unused(checking)
    check_containers(checking)
    check_provides(checking)
    check_reads(checking)
    return checking.refusals


# --- seats ---------------------------------------------------------------------------------------------


def _check_seats(checking: Checking) -> None:
    """The seats that it can hold are seats, and it provides what they deliver."""
    module = checking.module
    for number, seat in enumerate(module.seats):
        at = module.at.child("seats", number)
        if seat not in checking.seats:
            checking.refuse(
                Code.SEAT_UNKNOWN,
                "",
                f"`{seat}` is no seat of this mesh",
                at,
                may_say(seat, checking.seats, "seat"),
                root=f"{module.name} holds {nearest(seat, checking.seats) or seat}",
            )
            continue
        delivers = checking.seats[seat]
        if delivers is not None and delivers not in module.provides:
            checking.refuse(
                Code.PROVIDES_MISMATCH,
                "",
                f"its seat `{seat}` delivers `{delivers}`, which the module does not provide",
                at,
                f"provide `{delivers}`, or remove the seat",
                root=f"{module.name} provides {delivers}",
            )


def _check_seat(checking: Checking, requirement: Requirement) -> None:
    """A requirement's `seat` exists, delivers, and delivers just this (A7, A8)."""
    seat, at = requirement.seat, requirement.at.child("seat").of_value()
    if seat is None:
        return
    delivering = [name for name, contract in checking.seats.items() if contract == requirement.contract]
    answer = f"leave `seat` out, or name: {', '.join(delivering)}" if delivering else "leave `seat` out"
    if requirement.contract == "secret" and seat != VAULT:
        said = f"a secret is always answered by the holder of `{VAULT}`"
        checking.refuse(Code.SECRET_RESERVED, requirement.name, said, at, "leave `seat` out")
    elif seat not in checking.seats:
        said = f"`{seat}` is no seat of this mesh"
        checking.refuse(Code.SEAT_UNKNOWN, requirement.name, said, at, answer)
    elif checking.seats[seat] is None:
        said = f"`{seat}` is a foundation seat, which delivers nothing"
        checking.refuse(Code.SEAT_FOUNDATION, requirement.name, said, at, answer)
    elif checking.seats[seat] != requirement.contract:
        said = f"`{seat}` delivers `{checking.seats[seat]}`, not `{requirement.contract}`"
        checking.refuse(Code.SEAT_UNKNOWN, requirement.name, said, at, answer)


# --- requirements --------------------------------------------------------------------------------------


def _check_requirement(checking: Checking, requirement: Requirement) -> None:
    match requirement.kind:
        case Kind.OPERATOR:
            _check_operator(checking, requirement)
        case Kind.MODULE:
            contract = checking.contract(requirement)
            if contract is not None:
                _check_asks(checking, requirement, contract)
                _check_narrow(checking, requirement, contract)
                _check_options(checking, requirement, contract)
            elif requirement.contract not in checking.broken:
                _contract_unknown(checking, requirement)
        case Kind.HOST | Kind.MESH:
            pass


def _contract_unknown(checking: Checking, requirement: Requirement) -> None:
    checking.refuse(
        Code.CONTRACT_UNKNOWN,
        requirement.name,
        f"there is no contract `{requirement.contract}`",
        requirement.at.child("module").of_value(),
        may_say(requirement.contract, checking.contracts, "contract"),
        f"or add contracts/{requirement.contract}.yaml",
        root=f"contract {requirement.contract}",
    )


def _check_operator(checking: Checking, requirement: Requirement) -> None:
    schema = requirement.schema or {}
    faults = check_schema(schema)
    for keys, said in faults:
        checking.refuse(
            Code.SCHEMA,
            requirement.name,
            said,
            requirement.at.child("operator", *keys).of_value(),
            "write it in the contracts' schema language",
        )
    if requirement.has_default and not faults:
        wrong = check_value(schema, requirement.default)
        if wrong is not None:
            checking.refuse(
                Code.VALUE_TYPE,
                requirement.name,
                f"its default does not fit: {wrong}",
                requirement.at.child("default").of_value(),
                "give a default that fits, or none",
            )


def _check_asks(checking: Checking, requirement: Requirement, contract: Contract) -> None:
    may = [name for name, ask in contract.asks.items() if not ask.from_operator]
    for name, said in requirement.asks.items():
        ask = contract.asks.get(name)
        if ask is None or ask.from_operator:
            only = "only an assignment's `values` may say it" if ask else f"`{contract.name}` has no such ask"
            checking.refuse(
                Code.ASK_UNKNOWN,
                f"{requirement.name}.{name}",
                f"`{name}` is nothing that a module may ask: {only}",
                requirement.at.child(name),
                f"leave it out; an assignment says `values: {{{requirement.name}.{name}: …}}`"
                if ask
                else _nearest_option(name, may) or may_say(name, may, "ask"),
                related=(Related(contract.at.child("asks", name) if ask else contract.at, "the contract"),),
                root=_unasked(checking, requirement, contract, name),
            )
        elif not tree_references(said):
            _check_ask(checking, requirement, contract, name, ask, plain(said))
    misspelt = {nearest(each, may) for each in requirement.asks if each not in contract.asks}
    for name, ask in contract.asks.items():
        given = name in requirement.asks or name in misspelt
        if not given and not ask.has_default and not ask.from_operator:
            checking.refuse(
                Code.ASK_MISSING,
                f"{requirement.name}.{name}",
                f"`{contract.name}` has to be asked with `{name}`",
                requirement.at,
                f"say `{name}:` beside `module: {contract.name}`",
                related=(Related(contract.at.child("asks", name), "asked for here"),),
            )


_OPTIONS = ("narrow", "takes", "optional", "as", "seat", "max-age")


def _nearest_option(name: str, asks: list[str]) -> str | None:
    """The answer to an unknown ask that is a misspelt option."""
    near = nearest(name, [*asks, *_OPTIONS])
    return f"did you mean the option `{near}`?" if near in _OPTIONS else None


def _unasked(checking: Checking, requirement: Requirement, contract: Contract, name: str) -> str:
    """The root of an unknown ask: the contract has none of that name, or `optional` is misspelt."""
    if nearest(name, [*contract.asks, *_OPTIONS]) == "optional":
        return f"{checking.module.name} has {requirement.name} optional"
    return "" if name in contract.asks else f"{contract.name} is asked {name}"


def _check_ask(
    checking: Checking, requirement: Requirement, contract: Contract, name: str, ask: Ask, value: Json
) -> None:
    wrong = check_value(ask.schema, value)
    if wrong is None and contract.name == "secret" and (name, value) == ("form", "text"):
        handed = plain(requirement.asks.get("source", ())) == "operator"
        wrong = None if handed else "`text` is for a secret that an operator hands over"
    if wrong is not None:
        checking.refuse(
            Code.ASK_TYPE,
            f"{requirement.name}.{name}",
            wrong,
            requirement.at.child(name).of_value(),
            f"ask for something that `{contract.name}` allows",
            related=(Related(contract.at.child("asks", name), "its type is said here"),),
        )


def _check_narrow(checking: Checking, requirement: Requirement, contract: Contract) -> None:
    """A field may be narrowed, never widened, and the vault must be able to meet what is left (A6)."""
    for name, narrowing in requirement.narrow.items():
        at = requirement.at.child("narrow", name)
        field = contract.fields.get(name)
        if field is None:
            checking.refuse(
                Code.REFERENCE_UNKNOWN,
                f"{requirement.name}.{name}",
                f"`{name}` is no field of `{contract.name}`",
                at,
                may_say(name, contract.fields, "field"),
            )
            continue
        schema, wrong = narrow(field.schema, narrowing)
        if wrong is None and not can_be_met(requirement, contract, name, schema):
            wrong = "the vault can make no such value: its form does not meet it"
        if wrong is not None:
            checking.refuse(
                Code.NARROW_LOOSENS,
                f"{requirement.name}.{name}",
                wrong,
                at.of_value(),
                "ask for what the contract allows, or for less",
                related=(Related(contract.at.child("fields", name), "the contract says this"),),
            )


def _check_options(checking: Checking, requirement: Requirement, contract: Contract) -> None:
    _check_seat(checking, requirement)
    _check_applied(checking, requirement)
    secret = any(field.secret for field in contract.fields.values())
    for option, said in (("takes", requirement.takes), ("max-age", requirement.max_age)):
        if said is not None and not secret:
            checking.refuse(
                Code.ASK_UNKNOWN,
                f"{requirement.name}.{option}",
                f"`{option}` speaks of a secret, and `{contract.name}` has none",
                requirement.at.child(option),
                f"leave `{option}` out",
            )


def _check_applied(checking: Checking, requirement: Requirement) -> None:
    """What is taken by being applied, a provisioner logs in with: nobody else would apply it (D7)."""
    provisions = checking.module.provides.values()
    admins = {each.provisioner.admin for each in provisions if each.provisioner is not None}
    unsaid = any(each.answers and each.provisioner is None for each in provisions)
    if unsaid or admins - {None} - checking.module.requires.keys():
        return  # who logs in is refused itself
    if requirement.takes is Takes.APPLY and requirement.name not in admins:
        checking.refuse(
            Code.ASK_TYPE,
            f"{requirement.name}.takes",
            "`takes: apply` is for what a provisioner logs in with, and none of the module's names this",
            requirement.at.child("takes").of_value(),
            f"name it, `provisioner: {{admin: {requirement.name}, …}}`",
            "or say how the software takes a new value: `start`, `first-start` or `never`",
        )


def _check_words(checking: Checking) -> None:
    """Requirements of one contract are told apart by their `as`; the first keeps the plain identity (B14)."""
    seen: dict[tuple[str, str | None], Requirement] = {}
    for requirement in checking.module.requires.values():
        if requirement.kind is not Kind.MODULE or requirement.contract == "secret":
            continue
        first = seen.setdefault((requirement.contract, requirement.as_word), requirement)
        if first is not requirement:
            same = (
                f"with the word `{requirement.as_word}`"
                if requirement.as_word
                else "without a word of its own"
            )
            checking.refuse(
                Code.AS_NEEDED,
                requirement.name,
                f"another requirement of `{requirement.contract}` {same}",
                requirement.at,
                f"say `as: WORD` here, such as `as: {requirement.name.replace('-', '')[:18]}`",
                related=(Related(first.at, "the other one"),),
            )


def _check_circles(checking: Checking) -> None:
    """What is asked must not be read from itself, by way of whatever other asks."""
    graph: dict[str, set[str]] = {}
    for requirement in checking.module.requires.values():
        for ask, tree in requirement.asks.items() if requirement.kind is Kind.MODULE else ():
            reads = graph.setdefault(f"{requirement.name}:{ask}", set())
            for ref in tree_references(tree):
                reads |= _asks_behind(checking, ref.requirement, ref.field)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        path = list(reversed(error.args[1]))
        name = path[0].partition(":")[0]
        checking.refuse(
            Code.CYCLE,
            name,
            f"what each asks is read from the next: {' -> '.join(path)}",
            checking.module.requires[name].at,
            "ask for something that is known without it",
        )


def _asks_behind(checking: Checking, name: str, field: str) -> set[str]:
    """The asks of the requirement `name` that its `field` is, or is derived from."""
    requirement = checking.module.requires.get(name)
    contract = None if requirement is None else checking.contract(requirement)
    if requirement is None or contract is None or requirement.kind is not Kind.MODULE:
        return set()
    if field in contract.asks:
        return {f"{name}:{field}"}
    derived = contract.fields[field].derived if field in contract.fields else None
    pieces = [each.name for each in derived or () if isinstance(each, FieldName)]
    return set().union(*(_asks_behind(checking, name, each) for each in pieces))


def _check_unused(checking: Checking) -> None:
    """`unused` names fields of the module's requirements (A10)."""
    module = checking.module
    for name, fields in module.unused.items():
        requirement = module.requires.get(name)
        if requirement is None:
            checking.refuse(
                Code.REFERENCE_UNKNOWN,
                name,
                f"`unused` names `{name}`, which is no requirement",
                module.at.child("unused", name),
                may_say(name, module.requires, "requirement"),
                root=checking.lacks(name),
            )
            continue
        contract = checking.contract(requirement)
        for field in fields if contract is not None else ():
            if contract is not None and field not in contract.fields:
                checking.refuse(
                    Code.REFERENCE_UNKNOWN,
                    f"{name}.{field}",
                    f"`unused` names `{field}`, which is no field of `{contract.name}`",
                    module.at.child("unused", name, field),
                    may_say(field, contract.fields, "field"),
                )
