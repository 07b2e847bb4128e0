"""What a commit does to a whole mesh, from the resolutions of the commit before and of its own (G2). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from gitmesh.core.answer import generation_of
from gitmesh.core.causes import Cause, causes
from gitmesh.core.compose import compose
from gitmesh.core.declaration import AnswerHole, Declaration, assignment_holes
from gitmesh.core.orphans import said
from gitmesh.core.plan import AssignmentPlan, Version, hosts, plan, renewal
from gitmesh.core.record import Record
from gitmesh.core.resolve import Resolution
from gitmesh.core.steps import Step, Verb


@dataclass(frozen=True, slots=True)
class SecretPlan:
    """What becomes of one secret: its step, who sets it, and who reads it; `restarts` are the containers
    which that restarts, as `gitea@athens web`."""

    step: Step
    applier: str | None
    readers: tuple[str, ...]
    restarts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """Everything that a commit does. `nodes` without a change are not in it; `everywhere` is done on every
    node; `kept` is data that stays, moves, is taken up again or purged; `moved` by their old ids are
    assignments with another; `dropped` are those that the record had and that are gone; `tentative` is what
    was given out for the first time, and holds if nothing merges before."""

    nodes: Mapping[str, tuple[AssignmentPlan, ...]]
    everywhere: tuple[Step, ...] = ()
    secrets: tuple[SecretPlan, ...] = ()
    kept: tuple[Step, ...] = ()
    causes: tuple[Cause, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    tentative: tuple[str, ...] = ()

    @property
    def changed(self) -> frozenset[str]:
        """The assignments for which anything is done."""
        return frozenset(each.assignment for planned in self.nodes.values() for each in planned)


def plan_mesh(old: Resolution, new: Resolution) -> MeshPlan:
    """What deploying `new` over `old` does; neither may have refusals."""
    was, now = compose(old), compose(new)
    before, after = _versions(old), _versions(new)
    planned = {
        node: plan(was.get(node), now.get(node), before, after) for node in sorted(was.keys() | now.keys())
    }
    nodes = {node: each for node, each in planned.items() if each}
    moved = _moved(old.record, new.record)
    return MeshPlan(
        nodes,
        hosts(_hosts(was), _hosts(now)),
        tuple(_secrets(old, new, nodes, was, now)),
        tuple(_kept(old, new)),
        causes(old, new),
        moved,
        tuple(sorted(old.record.assignments.keys() - new.record.assignments.keys() - moved.keys())),
        tuple(_given(old.record, new.record)),
    )


def _versions(resolution: Resolution) -> dict[str, Version]:
    mesh = resolution.mesh
    return {
        id_: Version(
            generation_of(mesh, each),
            None if each.handed is None else mesh.handed.get(each.handed),
            None if each.of is None else f"{each.form} of {each.of}",
        )
        for id_, each in resolution.secrets.items()
    }


def _hosts(declarations: Mapping[str, Declaration]) -> Mapping[str, str]:
    """The private names, which are the same on every node."""
    return next((each.hosts for each in declarations.values()), {})


def _secrets(
    old: Resolution,
    new: Resolution,
    nodes: Mapping[str, tuple[AssignmentPlan, ...]],
    was: Mapping[str, Declaration],
    now: Mapping[str, Declaration],
) -> Iterator[SecretPlan]:
    """Each secret that comes, goes or gets a new value, with who reads it."""
    before, after = _wanted(old, was), _wanted(new, now)
    asked = {id_: _secret_step(id_, before.get(id_), after.get(id_)) for id_ in before.keys() | after.keys()}
    steps = {id_: step for id_, step in sorted(asked.items()) if step is not None}
    # What is dropped has the readers it had.
    readers = _readers(was, steps.keys() - after.keys()) | _readers(now, steps.keys() & after.keys())
    restarts = _restarts(nodes)
    for id_, step in steps.items():
        secret = new.secrets.get(id_) or old.secrets[id_]
        restarted = () if step.verb is Verb.MAKE_SECRET else tuple(restarts.get(id_, ()))
        yield SecretPlan(step, secret.applier, tuple(readers.get(id_, ())), restarted)


def _wanted(resolution: Resolution, declarations: Mapping[str, Declaration]) -> dict[str, Version]:
    """The versions, but of the hashes that a contract has and nobody reads: the vault makes none of those."""
    received = {id_ for declaration in declarations.values() for id_ in declaration.secrets}
    return {
        id_: version
        for id_, version in _versions(resolution).items()
        if version.hashed is None or id_ in received
    }


def _secret_step(id_: str, before: Version | None, after: Version | None) -> Step | None:
    if before is None and after is not None:
        return Step(Verb.MAKE_SECRET if after.handed is None else Verb.TAKE_SECRET, id_)
    if after is None:
        return Step(Verb.DROP_SECRET, id_)
    return None if before is None else renewal(id_, before, after)


def _readers(declarations: Mapping[str, Declaration], wanted: Set[str]) -> dict[str, list[str]]:
    """By secret, the assignments that have a hole for it."""
    readers: dict[str, dict[str, None]] = {}
    for declaration in declarations.values():
        if not declaration.secrets.keys() & wanted:
            continue
        for id_, spec in sorted(declaration.assignments.items()):
            for hole in assignment_holes(spec):
                if not isinstance(hole, AnswerHole) and hole.secret in wanted:
                    readers.setdefault(hole.secret, {})[id_] = None
    return {secret: sorted(each) for secret, each in readers.items()}


def _restarts(nodes: Mapping[str, tuple[AssignmentPlan, ...]]) -> dict[str, list[str]]:
    """By secret, the containers that a new value of it recreates or reloads."""
    found: dict[str, list[str]] = {}
    for planned in nodes.values():
        for each in planned:
            for step in each.steps:
                if step.verb in (Verb.RECREATE, Verb.RELOAD):
                    secrets = {
                        why.partition(" ")[2] for why in step.why if why.startswith(("secret ", "login "))
                    }
                    for secret in sorted(secrets):
                        found.setdefault(secret, []).append(f"{each.assignment} {step.subject}")
    return found


def _given(old: Record, new: Record) -> Iterator[str]:
    """Ports and identities that the record did not have."""
    held = {each.as_ for each in old.assignments.values()}
    for id_, each in sorted(new.assignments.items()):
        was = old.of(id_)
        if each.as_ not in held:
            yield f"identity {each.as_} of {id_}"
        for name, port in sorted(each.ports.items()):
            if was.ports.get(name) != port:
                yield f"port {port} of {id_}.{name}"


def _moved(old: Record, new: Record) -> dict[str, str]:
    """Old id to new id of the assignments whose identity has another (G8)."""
    come = {each.as_: id_ for id_, each in new.assignments.items() if id_ not in old.assignments}
    return {
        id_: come[each.as_]
        for id_, each in sorted(old.assignments.items())
        if id_ not in new.assignments and each.as_ in come
    }


def _kept(old: Resolution, new: Resolution) -> Iterator[Step]:
    """Data that becomes nobody's, is somebody's again, is purged, or lies elsewhere than it is to be (G8)."""
    before, now = old.record, new.record
    for id_ in sorted(now.orphans.keys() - before.orphans.keys()):
        orphan = now.orphans[id_]
        why = (f"orphan {id_}", f"was {orphan.assignment}.{orphan.requirement}")
        yield Step(Verb.KEEP_DATA, said(orphan), why)
    for id_, taken in sorted(new.taken_up.items()):
        why = (f"orphan {id_}", f"by {taken.assignment}.{taken.requirement}")
        yield Step(Verb.TAKE_UP_DATA, said(taken.orphan), why)
    for id_ in sorted(now.purging.keys() - before.purging.keys()):
        yield Step(Verb.PURGE_DATA, said(now.purging[id_]), (f"orphan {id_}",))
    for id_, each in sorted(now.assignments.items()):
        was = before.of(id_)
        for name, origin in sorted(each.moving.items()):
            if was.moving.get(name) != origin:
                why = (f"from {origin.location} on {origin.node}", "waits until it is there")
                yield Step(Verb.MOVE_DATA, f"{id_}.{name}", why)
        for name, provider in sorted(each.leaving.items()):
            if was.leaving.get(name) != provider:
                yield Step(Verb.LEAVE_PROVIDER, f"{id_}.{name}", (provider, "what it made stays there"))
