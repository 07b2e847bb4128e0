"""A resolution in, each node's declaration out, with holes for secrets, logins and answers (DESIGN §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gitmesh.core.answer import Answered, Secret, consumer_identity, open_answers, private_name
from gitmesh.core.compose_container import Composer
from gitmesh.core.contract import narrow
from gitmesh.core.declaration import (
    AnswerHole,
    AnswersSpec,
    AssignmentSpec,
    CheckSpec,
    ConsumerSpec,
    Declaration,
    DirectorySpec,
    Filled,
    Hole,
    Holed,
    JobSpec,
    ProvisionSpec,
    SecretHole,
    SecretSpec,
    assignment_holes,
    holes,
)
from gitmesh.core.identity import identity_of
from gitmesh.core.model import Assignment, Json, Kind, Provision, Takes
from gitmesh.core.read import Reader, as_text
from gitmesh.core.registries import registries_of
from gitmesh.core.resolve import Resolution, used, waits


def compose(resolution: Resolution) -> dict[str, Declaration]:
    """The declaration of every node. `resolution` must have no refusals."""
    mesh = resolution.mesh
    hosts = {private_name(mesh, name): node.address for name, node in sorted(mesh.nodes.items())}
    clients = _clients(resolution)
    on_node: dict[str, list[Assignment]] = {}
    for _, each in sorted(mesh.assignments.items()):
        on_node.setdefault(each.node, []).append(each)
    declarations = {}
    for name, node in sorted(mesh.nodes.items()):
        assignments = {each.id: _assignment(resolution, each, clients) for each in on_node.get(name, ())}
        bare = Declaration(mesh.id, mesh.name, name, node.address, node.root, hosts, assignments)
        bare = replace(bare, registries=registries_of(mesh, name, assignments))
        declarations[name] = _with_holes(resolution, bare)
    return declarations


def _clients(resolution: Resolution) -> dict[tuple[str, str], list[Answered]]:
    """By (provider, contract): the consumers' requirements it answers, in order."""
    clients: dict[tuple[str, str], list[Answered]] = {}
    for _, answered in sorted(resolution.answers.items(), key=lambda item: item[0]):
        if answered.requirement.kind is Kind.MODULE:
            clients.setdefault((answered.by, answered.contract.name), []).append(answered)
    return clients


def _assignment(
    resolution: Resolution, assignment: Assignment, clients: Mapping[tuple[str, str], list[Answered]]
) -> AssignmentSpec:
    mesh, module = resolution.mesh, resolution.mesh.modules[assignment.module]
    composer = Composer(mesh, resolution.reader, assignment, clients)
    containers = {name: composer.container(each) for name, each in module.containers.items()}
    jobs = {
        name: JobSpec(
            each.schedule,
            each.where,
            each.container,
            composer.container(each.spec),
        )
        for name, each in module.jobs.items()
    }
    mine = [
        resolution.answers[assignment.id, each.name]
        for each in used(mesh, assignment)
        if (assignment.id, each.name) in resolution.answers
    ]
    return AssignmentSpec(
        as_=identity_of(assignment, None),
        directories=_directories(
            mine, (*module.containers.values(), *(job.spec for job in module.jobs.values()))
        ),
        containers=containers,
        jobs=jobs,
        provides={
            contract: _provision(
                resolution, assignment, provision, clients.get((assignment.id, contract), [])
            )
            for contract, provision in module.provides.items()
        },
        needs=tuple(sorted({each.by for each in mine if waits(mesh, each)} - {assignment.id})),
        checks=_checks(resolution, mine),
    )


def _directories(mine: Iterable[Answered], containers: Iterable[object]) -> dict[str, DirectorySpec]:
    subs: dict[str, set[str]] = {}
    for container in containers:
        for mount in getattr(container, "mounts", {}).values():
            if mount.sub:
                subs.setdefault(mount.requirement, set()).add(mount.sub)
    return {
        each.requirement.name: DirectorySpec(
            str(each.fields["location"]),
            str(each.requirement.asks.get("owner", "0:0")),
            str(each.requirement.asks.get("mode", "0755")),
            tuple(sorted(subs.get(each.requirement.name, ()))),
        )
        for each in mine
        if each.requirement.kind is Kind.HOST and each.requirement.contract == "directory"
    }


def _provision(
    resolution: Resolution, assignment: Assignment, provision: Provision, clients: list[Answered]
) -> ProvisionSpec:
    provisioner = provision.provisioner
    consumers = (
        ()
        if provision.contract == "secret"
        else tuple(_consumer(resolution, provision, each) for each in clients)
    )
    if provisioner is None:
        return ProvisionSpec(consumers=consumers)
    where = resolution.answers.get((assignment.id, provisioner.at or ""))
    fields = {} if where is None else where.fields
    node = resolution.mesh.nodes[assignment.node]
    reach = None if where is None else where.requirement.asks.get("reach", "mesh")
    return ProvisionSpec(
        adapter=provisioner.adapter,
        address=("127.0.0.1" if reach == "local" else node.address) if "port" in fields else None,
        port=fields.get("port"),
        location=fields.get("location"),
        login=provisioner.login,
        admin=None if provisioner.admin is None else f"{assignment.id}.{provisioner.admin}",
        options=provisioner.options,
        consumers=consumers,
    )


def _consumer(resolution: Resolution, provision: Provision, client: Answered) -> ConsumerSpec:
    """The provider's entry for one consumer; every served value is read as the consumer reads it (B20)."""
    reader = resolution.reader
    consumer, requirement = client.consumer, client.requirement
    id_ = f"{consumer.id}.{requirement.name}"
    return ConsumerSpec(
        to=id_,
        as_=consumer_identity(client),
        node=consumer.node,
        address=resolution.mesh.nodes[consumer.node].address,
        asks={name: _json(reader.ask(client, name)) for name in client.contract.asks},
        serves={
            name: as_text(reader.field(consumer.id, requirement.name, name)) for name in provision.serves
        },
        secret=id_ if id_ in resolution.secrets else None,
        login=reader.login(client) or None,
        answers=provision.answers,
    )


def _json(value: Json) -> Json:
    return value.to_json() if isinstance(value, Holed) else value


def _checks(resolution: Resolution, mine: Iterable[Answered]) -> dict[str, CheckSpec]:
    """How this reader authenticates with each credential that waits for its provider (D2)."""
    checks = {}
    for each in mine:
        id_ = f"{each.consumer.id}.{each.requirement.name}"
        secret = resolution.secrets.get(id_)
        credential = each.contract.credential
        if secret is not None and credential is not None and secret.applier is not None:
            fields = _open_fields(resolution.reader, each)
            checks[each.requirement.name] = CheckSpec(credential.check, id_, fields)
    return checks


def _open_fields(reader: Reader, answered: Answered) -> dict[str, Filled]:
    fields = {}
    for name, declared in answered.contract.fields.items():
        if not declared.secret and declared.derived is None:
            fields[name] = as_text(reader.field(answered.consumer.id, answered.requirement.name, name))
    return fields


# --- what its holes need -------------------------------------------------------------------------------


def _with_holes(resolution: Resolution, bare: Declaration) -> Declaration:
    """The declaration with what each of its holes is held against, from the holes themselves."""
    own = [each.credential for each in bare.registries.values() if each.credential is not None]
    found = (
        *(hole for text in own for hole in holes(text)),
        *(hole for spec in bare.assignments.values() for hole in assignment_holes(spec)),
    )
    presents = {hole.secret for hole in found if isinstance(hole, SecretHole)}
    logins = {hole.secret for hole in found if not isinstance(hole, AnswerHole)}
    applies = {
        consumer.secret
        for spec in bare.assignments.values()
        for provision in spec.provides.values()
        if provision.adapter is not None
        for consumer in provision.consumers
        if consumer.secret is not None
    }
    admins = {
        provision.admin
        for spec in bare.assignments.values()
        for provision in spec.provides.values()
        if provision.admin is not None
    }
    mine = sorted((presents | logins | applies | admins) & resolution.secrets.keys())
    lent = _lent(resolution, bare)
    return replace(
        bare,
        secrets={
            each: _secret_spec(
                resolution.secrets[each], bare.node, each in presents | logins, each in applies, each in lent
            )
            for each in mine
        },
        answers=_answers(resolution, found),
    )


def _lent(resolution: Resolution, bare: Declaration) -> set[str]:
    """The secrets that a provider serves from its own, and that another assignment here presents."""
    return {
        hole.secret
        for id_, spec in bare.assignments.items()
        for hole in assignment_holes(spec)
        if isinstance(hole, SecretHole)
        and resolution.secrets[hole.secret].own
        and resolution.secrets[hole.secret].assignment != id_
    }


def _secret_spec(secret: Secret, node: str, presents: bool, applies: bool, lent: bool) -> SecretSpec:
    if secret.own:
        role = "own" if secret.assignment.endswith(f"@{node}") else "present"
    elif applies:
        role = "apply+present" if presents else "apply"
    else:
        role = "present"
    # Its owner says how the owner takes a new value; whoever it lends it to reads it at start.
    takes = str(Takes.START) if lent else secret.takes
    return SecretSpec(
        secret.assignment, secret.field, secret.schema, role, takes, secret.applier, secret.logins
    )


def _answers(resolution: Resolution, found: Iterable[Hole]) -> dict[str, AnswersSpec]:
    answers = {}
    for to in sorted({hole.to for hole in found if isinstance(hole, AnswerHole)}):
        assignment, _, requirement = to.partition(".")
        answered = resolution.answers[assignment, requirement]
        answers[to] = AnswersSpec(
            answered.by,
            resolution.mesh.assignments[answered.by].node,
            {
                name: narrow(
                    answered.contract.fields[name].schema, answered.requirement.narrow.get(name, {})
                )[0]
                for name in open_answers(resolution.mesh, answered)
            },
            resolution.mesh.rotations.get(to, 0),
        )
    return answers
