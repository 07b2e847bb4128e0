"""Answers that need no other assignment: the host's, the mesh's and the operator's (B5, B6, B14–B17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gitmesh.core.contract import check_value, narrow
from gitmesh.core.identity import dns, identity_of, logins
from gitmesh.core.model import Assignment, Contract, Json, Kind, Mesh, Node, Requirement, Schema, Takes
from gitmesh.core.reference import references
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related


@dataclass(frozen=True, slots=True)
class Answered:
    """One requirement with its answer. `by` is an assignment for a module's, else a node, `mesh` or
    `operator`; `rule` is how it came to be; `fields` are a local answer's values."""

    consumer: Assignment
    requirement: Requirement
    by: str
    rule: str
    contract: Contract
    fields: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of the mesh. `kind` made, handed, issued, hashed; `applier` the provider whose provisioner
    sets it; `rotation` two, in-place, never. Its recipients follow from the holes (`core.compose`). A hash is
    one of its own, so that its readers need not have the value: `of` is that secret, `form` the hash."""

    id: str
    kind: str
    assignment: str
    contract: str
    field: str
    schema: Schema
    form: str
    length: int | None
    takes: str
    rotation: str
    applier: str | None = None
    logins: tuple[str, str] | None = None
    handed: str | None = None
    own: bool = False
    of: str | None = None


def open_answers(mesh: Mesh, answered: Answered) -> tuple[str, ...]:
    """The fields without a secret that only its running provider knows, in the module's order (B12)."""
    if answered.requirement.kind is not Kind.MODULE:
        return ()
    provider = mesh.modules[mesh.assignments[answered.by].module]
    names = provider.provides[answered.contract.name].answers
    return tuple(name for name in names if not answered.contract.fields[name].secret)


def generation_of(mesh: Mesh, secret: Secret) -> int:
    """The rotation that a commit asks for; one that is never rotated stays, whatever answers are accepted."""
    return 0 if secret.rotation == "never" else mesh.rotations.get(secret.of or secret.id, 0)


def private_name(mesh: Mesh, node: str) -> str:
    """The name by which the mesh's machines reach a node."""
    return f"{node}.{mesh.name}.internal"


def answer_local(
    mesh: Mesh, assignment: Assignment, requirement: Requirement, port: int | None
) -> Answered | Refusal | None:
    """The answer to a host, mesh or operator requirement; None where its port was refused already."""
    node = mesh.nodes[assignment.node]
    match requirement.kind, requirement.contract:
        case Kind.OPERATOR, _:
            return _operator(mesh, assignment, requirement)
        case Kind.MESH, "identity":
            name = identity_of(assignment, None)
            fields: dict[str, Json] = {"as": name, "dns": dns(name), "module": assignment.module}
            return _answered(assignment, requirement, "mesh", "the mesh", fields)
        case Kind.MESH, _:
            facts: dict[str, Json] = {"name": mesh.name, "timezone": mesh.timezone}
            facts |= {} if mesh.domain is None else {"domain": mesh.domain}
            return _answered(assignment, requirement, "mesh", "the mesh", facts)
        case _, "port":
            return None if port is None else _port(mesh, node, assignment, requirement, port)
        case _, "machine":
            return _answered(assignment, requirement, node.name, "own node", _machine(mesh, node))
        case _, "machines":
            names = [private_name(mesh, each) for each in sorted(mesh.nodes)]
            return _answered(assignment, requirement, node.name, "own node", {"names": names})
        case _, "volume":
            name = identity_of(assignment, None)
            location = f"volume:{name}-{requirement.name}"
            return _answered(assignment, requirement, node.name, "own node", {"location": location})
        case _, "directory":
            return _directory(node, assignment, requirement)
        case _:
            return _placed(node, assignment, requirement)


def _answered(
    assignment: Assignment, requirement: Requirement, by: str, rule: str, fields: Mapping[str, Json]
) -> Answered:
    return Answered(assignment, requirement, by, rule, _bare(requirement.contract), fields)


@lru_cache
def _bare(name: str) -> Contract:
    """What stands for the contract of a local answer: one for all, since a large mesh has very many."""
    return Contract(name, {})


def _machine(mesh: Mesh, node: Node) -> dict[str, Json]:
    fields: dict[str, Json] = {"name": private_name(mesh, node.name), "address": node.address, **node.machine}
    return fields if node.public is None else {**fields, "public": node.public}


def _port(mesh: Mesh, node: Node, assignment: Assignment, requirement: Requirement, port: int) -> Answered:
    host = private_name(mesh, node.name)
    listens = requirement.asks.get("listens", port)
    fields: dict[str, Json] = {"port": port, "listens": listens, "host": host, "address": f"{host}:{port}"}
    reach = str(requirement.asks.get("reach", "mesh"))
    return _answered(assignment, requirement, node.name, reach, fields)


def _directory(node: Node, assignment: Assignment, requirement: Requirement) -> Answered | Refusal:
    placed = assignment.place.get(requirement.name)
    if placed is None:
        location = f"{node.root.rstrip('/')}/{assignment.module}/{requirement.name}"
        return _answered(assignment, requirement, node.name, "own node", {"location": location})
    return _placed(node, assignment, requirement)


def _placed(node: Node, assignment: Assignment, requirement: Requirement) -> Answered | Refusal:
    placed = assignment.place.get(requirement.name)
    subject = f"{assignment.id}.{requirement.name}"
    if placed is None:
        return Refusal(
            Code.VALUE_MISSING,
            subject,
            f"nothing says where this {requirement.contract} is on `{node.name}`",
            assignment.at,
            f"no place for `{requirement.name}`",
            related=(Related(requirement.at, "required here"),),
            answers=(Answer(f"say so in {assignment.at.file}: `place: {{{requirement.name}: /a/path}}`"),),
        )
    parts = placed.split("/") if isinstance(placed, str) else []
    # A directory is owned and has its mode set: the root of the machine is nobody's.
    whole = requirement.contract == "directory" and placed == "/"
    if parts[:1] != [""] or ".." in parts or "." in parts or "" in parts[1:-1] or whole:
        return Refusal(
            Code.PLACE_BAD,
            subject,
            "the root of a machine can't be a module's own directory"
            if whole
            else "a place on a node is an absolute path without `..`",
            assignment.at.child("place", requirement.name).of_value(),
            related=(Related(requirement.at, "required here"),),
            answers=(Answer(f"write `place: {{{requirement.name}: /a/path}}`"),),
        )
    return _answered(assignment, requirement, node.name, "placed", {"location": placed})


def layered(mesh: Mesh, assignment: Assignment, key: str) -> tuple[bool, Json, At]:
    """The operator's value for `key`: the assignment's, else its label's, else the mesh's (B5).

    Two labels of the node that say different values were refused when the commit was read.
    """
    if key in assignment.values:
        return True, assignment.values[key], assignment.at.child("values", key)
    layers = mesh.values.get(assignment.module)
    if layers is not None:
        for label in sorted(mesh.nodes[assignment.node].labels):
            if key in layers.labels.get(label, {}):
                return True, layers.labels[label][key], layers.at.child("labels", label, key)
        if key in layers.mesh:
            return True, layers.mesh[key], layers.at.child("mesh", key)
    return False, None, assignment.at


def _operator(mesh: Mesh, assignment: Assignment, requirement: Requirement) -> Answered | Refusal:
    found, value, at = layered(mesh, assignment, requirement.name)
    if not found and requirement.has_default:
        return _answered(assignment, requirement, "operator", "default", {"value": requirement.default})
    if not found:
        return value_missing(assignment, requirement, requirement.name)
    wrong = check_value(requirement.schema or {}, value)
    if wrong is not None:
        return value_type(assignment, requirement, requirement.name, at, wrong)
    return _answered(assignment, requirement, "operator", "the operator's value", {"value": value})


def value_missing(assignment: Assignment, requirement: Requirement, key: str) -> Refusal:
    """The refusal of a value that only a person can give (B5); an ask is given by the assignment alone."""
    here = Answer("give one for this assignment", f"gitmesh set {assignment.id} {key} VALUE")
    many = Answer(f"give one for many in values/{assignment.module}.yaml, under `mesh` or a label")
    ask = requirement.kind is Kind.MODULE
    return Refusal(
        Code.VALUE_MISSING,
        f"{assignment.id}.{key}",
        "no value: the assignment gives none, and there is no default"
        if ask
        else "no value: neither the assignment, nor a label, nor the mesh gives one, and there is no default",
        assignment.at,
        f"no value for `{key}`",
        related=(Related(requirement.at, "required here"),),
        answers=(here,) if ask else (here, many),
        root=f"value {assignment.id}.{key}",
    )


def value_type(assignment: Assignment, requirement: Requirement, key: str, at: At, wrong: str) -> Refusal:
    """The refusal of an operator's value outside its type."""
    return Refusal(
        Code.VALUE_TYPE,
        f"{assignment.id}.{key}",
        wrong,
        at.of_value() if at.keys else assignment.at,
        related=(Related(requirement.at, "its type is said here"),),
        answers=(Answer("give another", f"gitmesh set {assignment.id} {key} VALUE"),),
    )


def secret_of(mesh: Mesh, answered: Answered) -> Secret | None:
    """The secret that an answered requirement brings into the mesh, if it does (C2)."""
    credential = answered.contract.credential
    requirement = answered.requirement
    if requirement.kind is not Kind.MODULE or credential is None:
        return None
    if requirement.contract == "secret":
        return _own_secret(mesh, answered)
    provision = mesh.modules[mesh.assignments[answered.by].module].provides[answered.contract.name]
    if credential.secret in provision.serves:
        return None
    declared = answered.contract.fields[credential.secret]
    schema = _narrowed(requirement, credential.secret, declared.schema)
    return Secret(
        id=f"{answered.consumer.id}.{requirement.name}",
        kind="issued" if credential.by == "provider" else "made",
        assignment=answered.consumer.id,
        contract=answered.contract.name,
        field=credential.secret,
        schema=schema,
        form=declared.form or "alnum",
        length=None,
        takes=str(requirement.takes or Takes.START),
        rotation=credential.rotation,
        applier=None if provision.provisioner is None else answered.by,
        logins=logins(consumer_identity(answered)) if credential.login else None,
    )


def hash_id(answered: Answered, name: str) -> str:
    """The id of the hash in the field `name`: beside the secret's own, and no requirement's."""
    return f"{answered.consumer.id}.{answered.requirement.name}.{name}"


def hashes_of(mesh: Mesh, answered: Answered, secrets: Mapping[str, Secret]) -> Iterator[Secret]:
    """The hashes that an answered requirement has of one of `secrets`: its own, or the one that is served."""
    requirement, credential = answered.requirement, answered.contract.credential
    if requirement.kind is not Kind.MODULE or credential is None:
        return
    provision = mesh.modules[mesh.assignments[answered.by].module].provides[answered.contract.name]
    shared = references(provision.serves.get(credential.secret, ()))
    id_ = f"{answered.by}.{shared[0].requirement}" if shared else f"{answered.consumer.id}.{requirement.name}"
    hashed = secrets.get(id_)
    if hashed is None:
        return
    for name, field_ in answered.contract.fields.items():
        if field_.hashed is not None:
            yield Secret(
                id=hash_id(answered, name),
                kind="hashed",
                assignment=answered.consumer.id,
                contract=answered.contract.name,
                field=name,
                schema=_narrowed(requirement, name, field_.schema),
                form=field_.hashed[1],
                length=None,
                takes=str(requirement.takes or Takes.START),
                rotation=hashed.rotation,
                of=hashed.id,
            )


def consumer_identity(answered: Answered) -> str:
    """`${consumer:as}`: what the provider's resource for this requirement is called (B14)."""
    return identity_of(answered.consumer, answered.requirement.as_word)


def _narrowed(requirement: Requirement, field: str, schema: Schema) -> Schema:
    """A field's schema as the requirement narrows it; that it does so rightly was checked at parse (A6)."""
    narrowing = requirement.narrow.get(field)
    return schema if narrowing is None else narrow(schema, narrowing)[0]


def _own_secret(mesh: Mesh, answered: Answered) -> Secret:
    requirement, consumer = answered.requirement, answered.consumer
    asks = {name: ask.default for name, ask in answered.contract.asks.items()}
    asks |= {name: _literal(value) for name, value in requirement.asks.items()}
    takes = requirement.takes or Takes.START
    handed = asks.get("source") == "operator"
    named = layered(mesh, consumer, requirement.name)[1] if handed else None
    schema = _narrowed(requirement, "value", answered.contract.fields["value"].schema)
    fixed = handed or takes in (Takes.FIRST_START, Takes.NEVER)
    return Secret(
        id=f"{consumer.id}.{requirement.name}",
        kind="handed" if handed else "made",
        assignment=consumer.id,
        contract="secret",
        field="value",
        schema={**schema, "lines": "many"} if asks.get("lines") == "many" else schema,
        form=str(asks.get("form", "alnum")),
        length=asks.get("length"),
        takes=str(takes),
        rotation="never" if fixed else "in-place",
        handed=(named or f"{consumer.id}.{requirement.name}") if handed else None,
        own=True,
    )


def _literal(value: Json) -> Json:
    """A literal ask: text of one piece is that piece."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value
