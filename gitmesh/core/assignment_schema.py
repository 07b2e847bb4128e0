"""What the files of one mesh may say of one module, as JSON Schema: what an editor completes and checks.

`schemas/assignment.json` allows what any assignment could say. Here its maps are closed over a module's own
requirements, the types of its values (B5), the providers that could answer (B1–B4), the seats that it
declares (A15) and the grants that it could need (S64). `gitmesh check` says all of it too, and more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gitmesh.core.answer import layered
from gitmesh.core.candidates import candidates_of
from gitmesh.core.choose import seat_of
from gitmesh.core.grants import possible_grants
from gitmesh.core.json_schema import closed
from gitmesh.core.model import Assignment, Json, Kind, Mesh, Module, Requirement, Schema

_PLACED = ("directory", "access", "device", "port")
_SHARED = ("assignmentId", "fresh", "path", "portNumber")
_MUST_BE_PLACED = ("access", "device")


def assignment_schema(
    general: Schema, mesh: Mesh, module: Module, assignment: Assignment | None = None
) -> dict[str, Json]:
    """`general`, the schema of every assignment's file, closed over `module`.

    With an `assignment` it also demands the values that neither a label nor the mesh gives it.
    """
    about = _about(mesh, module, assignment)
    return {
        **general,
        "title": f"assignments/{'*' if assignment is None else assignment.node}/{module.name}.yaml",
        "properties": {**general["properties"], **about},
        "required": _required(about),
        "$defs": {name: general["$defs"][name] for name in _SHARED},
    }


def spread_schema(general: Schema, mesh: Mesh) -> dict[str, Json]:
    """The schema of every spread: `general`, and what its `module` lets it say."""
    modules = sorted(mesh.modules)
    of_each = [_if_module(general, mesh, mesh.modules[name]) for name in modules]
    module = {"description": "A module of this mesh.", **_one_of(modules)}
    return {
        **general,
        "properties": {**general["properties"], "module": module},
        "allOf": [*general.get("allOf", ()), *of_each],
    }


def _if_module(general: Schema, mesh: Mesh, module: Module) -> dict[str, Json]:
    about = _about(mesh, module, None)
    own = {name: about[name] for name in about if name in general["properties"]}
    return {
        "if": {"properties": {"module": {"const": module.name}}, "required": ["module"]},
        "then": {"properties": own, "required": _required(own)},
    }


def values_schema(general: Schema, mesh: Mesh, module: Module) -> dict[str, Json]:
    """The schema of `values/<module>.yaml`: the operator's values, less the asks, which each assignment
    gives for itself (B5)."""
    known = {key: each for key, each in value_schemas(mesh, module).items() if "." not in key}
    values = closed("Values of the module's requirements.", known, ())
    labels = {**general["properties"]["labels"], "additionalProperties": values}
    return {
        **general,
        "title": f"values/{module.name}.yaml",
        "properties": {**general["properties"], "mesh": values, "labels": labels},
    }


def value_schemas(mesh: Mesh, module: Module) -> dict[str, Schema]:
    """The type of each value that an operator gives `module`, by its key: `workers`, `web.name` (B5)."""
    schemas: dict[str, Schema] = {}
    for name, requirement in module.requires.items():
        if requirement.kind is Kind.OPERATOR:
            schemas[name] = requirement.schema or {}
        elif is_handed(requirement):
            schemas[name] = {"type": "string"}
        elif requirement.kind is Kind.MODULE and requirement.contract in mesh.contracts:
            asks = mesh.contracts[requirement.contract].asks
            schemas |= {f"{name}.{ask}": each.schema for ask, each in asks.items() if each.from_operator}
    return schemas


def is_handed(requirement: Requirement) -> bool:
    """Whether the operator hands over the secret that is required: its value then names a handed file."""
    source = requirement.asks.get("source")
    return requirement.contract == "secret" and source in ("operator", ("operator",))


# --- the parts of an assignment ------------------------------------------------------------------------


def _about(mesh: Mesh, module: Module, assignment: Assignment | None) -> dict[str, Json]:
    requires = module.requires.values()
    optional = [each.name for each in requires if each.optional]
    return {
        "pins": closed("Which provider answers a requirement.", _pins(mesh, requires), ()),
        "uses": _listed("Optional requirements that are used.", optional),
        "values": _values(mesh, module, assignment),
        "place": closed("Where things lie on the node.", _places(requires), _unplaced(requires)),
        "holds": _listed("Seats that this assignment holds.", module.seats),
        "grants": _listed("Rights beyond a container's own.", possible_grants(module)),
    }


def _pins(mesh: Mesh, requires: Iterable[Requirement]) -> dict[str, Json]:
    return {
        each.name: {
            "description": f"Who answers `{each.name}`: a provider of `{each.contract}`.",
            **_provider(mesh, each),
        }
        for each in requires
        if each.kind is Kind.MODULE and seat_of(each) is None
    }


def _provider(mesh: Mesh, requirement: Requirement) -> dict[str, Json]:
    """One of those that could answer; any assignment while a refused file may hide one of them."""
    if mesh.broken or requirement.contract not in mesh.contracts:
        return {"$ref": "#/$defs/assignmentId"}
    return _one_of(candidates_of(mesh, requirement).able)


def _values(mesh: Mesh, module: Module, assignment: Assignment | None) -> dict[str, Json]:
    schemas = value_schemas(mesh, module)
    required = [key for key in schemas if _must_say(mesh, module, key, assignment)]
    values = closed("Answers that the operator gives.", schemas, required)
    contracts = {each.contract for each in module.requires.values() if each.kind is Kind.MODULE}
    # A contract whose file is refused may have asks for the operator.
    return values if contracts <= mesh.contracts.keys() else {**values, "additionalProperties": True}


def _must_say(mesh: Mesh, module: Module, key: str, assignment: Assignment | None) -> bool:
    """Whether the assignment has to give a value: nobody else does. An ask is its own alone; another
    value may come from a label or the mesh, which only a given assignment tells."""
    name, _, ask = key.partition(".")
    requirement = module.requires[name]
    if requirement.optional or is_handed(requirement):
        return False
    if ask:
        return not mesh.contracts[requirement.contract].asks[ask].has_default
    if requirement.has_default or assignment is None or assignment.node not in mesh.nodes:
        return False
    return not layered(mesh, replace(assignment, values={}), key)[0]


def _places(requires: Iterable[Requirement]) -> dict[str, Json]:
    return {
        each.name: {"$ref": "#/$defs/portNumber" if each.contract == "port" else "#/$defs/path"}
        for each in requires
        if each.kind is Kind.HOST and each.contract in _PLACED
    }


def _unplaced(requires: Iterable[Requirement]) -> list[str]:
    """What lies nowhere unless the assignment says where (B16)."""
    return [each.name for each in requires if each.contract in _MUST_BE_PLACED and not each.optional]


# --- schemas -------------------------------------------------------------------------------------------


def _listed(about: str, words: Iterable[str]) -> dict[str, Json]:
    return {"description": about, "type": "array", "items": _one_of(words), "uniqueItems": True}


def _one_of(words: Iterable[str]) -> dict[str, Json]:
    """One of `words`; where there is none nothing fits, and an empty `enum` is no JSON Schema."""
    known = list(words)
    return {"enum": known} if known else {"not": {}}


def _required(parts: Mapping[str, Json]) -> list[str]:
    """The parts that have to be there, since something in them has to."""
    return [name for name, each in parts.items() if each.get("required")]
