"""An assignment's file while a command edits it; `cli.written` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gitmesh.cli.main import Failure, Misused, nearest
from gitmesh.cli.opened import Opened
from gitmesh.core.assignment_schema import value_schemas
from gitmesh.core.contract import check_value
from gitmesh.core.grants import possible_grants
from gitmesh.core.model import Assignment, Json, Kind, Mesh, Module, Requirement, Schema
from gitmesh.repo.document import read
from gitmesh.repo.edit import Uneditable, drop, put


@dataclass
class Draft:
    """The file at `path` of an opened mesh repo, as it will be. `spread` is the file that the assignment
    stood in until now, where it had none of its own."""

    opened: Opened
    path: str
    blob: bytes
    spread: str | None = None

    @classmethod
    def of(cls, opened: Opened, module: str, node: str) -> Draft:
        """The assignment's file; a new one says what a spread has said of it so far, since it takes the
        spread's place whole (FORMATS "Assignment, spread, values")."""
        path = f"assignments/{node}/{module}.yaml"
        draft = cls(opened, path, opened.files.get(path, b""))
        standing = opened.mesh.assignments.get(f"{module}@{node}")
        if path not in opened.files and standing is not None and standing.spread is not None:
            draft.spread = standing.at.file
            for key, value in _said(standing).items():
                draft.put([key], value)
        return draft

    def put(self, keys: Sequence[str], value: Json) -> None:
        """Set the value at `keys`. Raises Failure where the file can't be edited by program."""
        try:
            self.blob = put(self.blob, keys, value)
        except Uneditable as error:
            raise Failure(f"{self.path}: {error}", "gitmesh check") from error

    def drop(self, keys: Sequence[str]) -> None:
        """Remove what stands at `keys`. Raises Failure as `put` does."""
        try:
            self.blob = drop(self.blob, keys)
        except Uneditable as error:
            raise Failure(f"{self.path}: {error}", "gitmesh check") from error

    def add(self, key: str, item: str) -> None:
        """Put `item` into the list at `key`, if it is not there."""
        value, _ = read(self.path, self.blob)
        held = value.get(key, []) if isinstance(value, dict) else []
        if item not in held:
            self.put([key], [*held, item])

    def after(self) -> Opened:
        """The mesh with this file as it will be."""
        return self.opened.with_files({self.path: self.blob})


def _said(assignment: Assignment) -> dict[str, Json]:
    said: dict[str, Json] = {
        "pins": dict(assignment.pins),
        "uses": list(assignment.uses),
        "values": dict(assignment.values),
        "place": dict(assignment.place),
        "grants": list(assignment.grants),
    }
    return {key: value for key, value in said.items() if value}


# --- what a person may name ----------------------------------------------------------------------------


def known_module(mesh: Mesh, name: str) -> Module:
    """The module called `name`. Raises Misused."""
    if name in mesh.modules:
        return mesh.modules[name]
    if f"modules/{name}" in mesh.broken:
        raise Failure(f"module `{name}` is refused itself", "gitmesh check")
    raise Misused(f"no module is called `{name}`{nearest(name, list(mesh.modules))}")


def known_node(mesh: Mesh, name: str) -> None:
    """Raise Misused where no node is called `name`."""
    if name not in mesh.nodes and f"nodes/{name}" not in mesh.broken:
        raise Misused(f"no node is called `{name}`{nearest(name, list(mesh.nodes))}")


def known_assignment(mesh: Mesh, id_: str) -> Assignment:
    """The assignment `module@node`. Raises Misused."""
    if id_ in mesh.assignments:
        return mesh.assignments[id_]
    module, at, node = id_.partition("@")
    if not at:
        raise Misused(f"`{id_}` is no assignment: one is called MODULE@NODE")
    known_module(mesh, module)
    known_node(mesh, node)
    near = nearest(id_, list(mesh.assignments))
    raise Misused(f"`{module}` is not assigned to `{node}`{near}", f"gitmesh assign {module} {node}")


def known_requirement(module: Module, name: str) -> Requirement:
    """The requirement of `module` called `name`. Raises Misused."""
    if name in module.requires:
        return module.requires[name]
    hint = nearest(name, list(module.requires)) or f"; it has {_list(module.requires) or 'none'}"
    raise Misused(f"`{module.name}` has no requirement `{name}`{hint}")


def check_pin(mesh: Mesh, module: Module, name: str, provider: str) -> None:
    """Raise Misused where the requirement `name` of `module` can't be pinned to `provider` (A7, B1, B6)."""
    requirement = known_requirement(module, name)
    if requirement.kind is not Kind.MODULE:
        raise Misused(f"`{name}` is answered by the {requirement.kind.value} and has no provider to pin")
    if requirement.contract == "secret":
        raise Misused(f"`{name}` is a secret: the holder of `mesh-vault` answers it, and nobody else")
    if requirement.seat is not None:
        raise Misused(f"`{name}` names the seat `{requirement.seat}`, whose holder answers it")
    check_provider(mesh, requirement.contract, provider)


def is_pinnable(requirement: Requirement) -> bool:
    """Whether a pin may say who answers: not a secret, the vault's (A7), nor what names a seat (B1)."""
    return requirement.kind is Kind.MODULE and requirement.contract != "secret" and requirement.seat is None


def check_provider(mesh: Mesh, contract: str, provider: str) -> None:
    """Raise Misused where `provider` is no assignment that provides `contract`."""
    able = [
        each.id
        for each in mesh.assignments.values()
        if each.module in mesh.modules and contract in mesh.modules[each.module].provides
    ]
    if provider in able:
        return
    what = "does not provide" if provider in mesh.assignments else "is no assignment that provides"
    hint = nearest(provider, able) or (f"; there is {_list(able)}" if able else "; nobody does")
    raise Misused(f"`{provider}` {what} `{contract}`{hint}")


def check_seat(mesh: Mesh, module: Module, seat: str) -> None:
    """Raise Misused where `module` can't hold `seat` (A15)."""
    if seat not in mesh.seats:
        raise Misused(f"`{seat}` is no seat of this mesh{nearest(seat, list(mesh.seats))}")
    if seat not in module.seats:
        can = f"it can hold {_list(module.seats)}" if module.seats else "it can hold none"
        raise Misused(f"`{module.name}` does not declare the seat `{seat}`; {can}")


def check_grant(module: Module, grant: str) -> None:
    """Raise Misused where `grant` is nothing that `module` could need (S64)."""
    could = possible_grants(module)
    if grant not in could:
        hint = nearest(grant, could) or f"; it needs {_list(could) or 'none'}"
        raise Misused(f"`{module.name}` needs no grant `{grant}`{hint}")


def check_key(mesh: Mesh, module: Module, key: str) -> None:
    """Raise Misused where `key` names no value that an operator gives `module`."""
    _schema(mesh, module, key)


def typed_value(mesh: Mesh, module: Module, key: str, text: str) -> Json:
    """The value that `text` stands for, held against the type of `key`: `workers`, `web.name` (B5).

    It is read as strict YAML; where the type is text, what reads as something else is taken as it stands.
    Raises Misused.
    """
    schema = _schema(mesh, module, key)
    text_wanted = schema.get("type") == "string"
    value, refusals = read("VALUE", f"- {text}\n".encode())
    readable = not refusals and isinstance(value, list) and len(value) == 1 and "\n" not in text
    if readable and not (text_wanted and not isinstance(value[0], str)):
        value = value[0]
    elif text_wanted:
        value = text
    else:
        said = refusals[0].answers[0].text if refusals and refusals[0].answers else "give one scalar"
        raise Misused(f"the value of `{key}` can't be read: {said}")
    wrong = check_value(schema, value)
    if wrong is not None:
        raise Misused(f"the value of `{key}` does not fit: {wrong}")
    return value


def _schema(mesh: Mesh, module: Module, key: str) -> Schema:
    """The type of an operator's value."""
    settable = value_schemas(mesh, module)
    if key in settable:
        return settable[key]
    hint = nearest(key, list(settable)) or f"; there is {_list(settable) or 'none'}"
    raise Misused(f"`{module.name}` takes no value `{key}`{hint}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)
