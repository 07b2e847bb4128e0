"""What a new declaration does to a node that runs an old one, and why (DESIGN §3, G2). Pure.

It compares what two declarations say, holes included, so that it needs no secret and shows none: a step
names keys and never what stands at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from gitmesh.core.declaration import AssignmentSpec, ContainerSpec, Declaration, FileSpec, RegistrySpec
from gitmesh.core.waiting import waiting


class Verb(StrEnum):
    """What is done, in the order of doing it."""

    MAKE_SECRET = "make-secret"  # noqa: S105 - a verb, no secret
    DROP_SECRET = "drop-secret"  # noqa: S105 - a verb, no secret
    MAKE_DIRECTORY = "make-directory"
    CHANGE_DIRECTORY = "change-directory"
    MOVE_DIRECTORY = "move-directory"
    KEEP_DIRECTORY = "keep-directory"
    STOP = "stop"
    RECREATE = "recreate"
    RELOAD = "reload"
    START = "start"
    CHANGE_JOB = "change-job"
    CHANGE_REGISTRY = "change-registry"
    ENSURE_LOGIN = "ensure-login"
    RETIRE_LOGIN = "retire-login"
    WAIT = "wait"


_ORDER = {verb: place for place, verb in enumerate(Verb)}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done to `subject`; `why` names the keys that say so."""

    verb: Verb
    subject: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssignmentPlan:
    """The steps of one assignment, in order; `change` is new, changed or left."""

    assignment: str
    change: str
    steps: tuple[Step, ...]


def plan(old: Declaration | None, new: Declaration | None) -> tuple[AssignmentPlan, ...]:
    """What changes on one node: those that leave first, then providers before consumers."""
    before = {} if old is None else old.assignments
    after = {} if new is None else new.assignments
    made, waits = _secrets(old, new), _waits(old, new)
    planned = []
    for each in (*sorted(before.keys() - after.keys()), *_providers_first(after)):
        steps = [*made.pop(each, ()), *_steps(before.get(each), after.get(each)), *waits.get(each, ())]
        if steps or before.get(each) != after.get(each):
            change = "new" if each not in before else "changed" if each in after else "left"
            ordered = sorted(steps, key=lambda step: (_ORDER[step.verb], step.subject))
            planned.append(AssignmentPlan(each, change, tuple(ordered)))
    return (*_own(old, new, made), *planned)


def _own(
    old: Declaration | None, new: Declaration | None, made: Mapping[str, list[Step]]
) -> Iterator[AssignmentPlan]:
    """What changes of the node's own, which no assignment requires: how it reaches registries of images."""
    before = {} if old is None else old.registries
    after = {} if new is None else new.registries
    none = RegistrySpec()
    names = sorted(before.keys() | after.keys())
    steps = [
        Step(Verb.CHANGE_REGISTRY, each, tuple(changed_keys(before.get(each, none), after.get(each, none))))
        for each in names
        if before.get(each) != after.get(each)
    ]
    node = new or old
    if steps and node is not None:
        own = f"mesh@{node.node}"
        change = "changed" if before and after else "new" if after else "left"
        yield AssignmentPlan(own, change, (*made.get(own, ()), *steps))


def _providers_first(assignments: Mapping[str, AssignmentSpec]) -> list[str]:
    return in_order(
        {each: sorted({*spec.needs} & assignments.keys()) for each, spec in sorted(assignments.items())}
    )


def in_order(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Each after those it needs; else in the order given."""
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(needs, ()))
    for each, needed in needs.items():
        sorter.add(each, *needed)
    try:
        return list(sorter.static_order())
    except CycleError:
        # Resolution refuses a cycle (B21); a node still starts everything it was told to.
        return list(needs)


def _secrets(old: Declaration | None, new: Declaration | None) -> dict[str, list[Step]]:
    """By the consumer's assignment on this node: the secrets that come and go."""
    before = {} if old is None else old.secrets
    after = {} if new is None else new.secrets
    steps: dict[str, list[Step]] = {}
    for id_ in sorted(before.keys() ^ after.keys()):
        verb, spec = (Verb.MAKE_SECRET, after[id_]) if id_ in after else (Verb.DROP_SECRET, before[id_])
        steps.setdefault(spec.assignment, []).append(Step(verb, id_))
    return steps


def _waits(old: Declaration | None, new: Declaration | None) -> dict[str, list[Step]]:
    """By assignment: whom it waits on for what the old declaration did not have yet (B11)."""
    had = () if old is None else old.secrets
    answers = {} if old is None else {to: each.fields for to, each in old.answers.items()}
    steps: dict[str, list[Step]] = {}
    for each in () if new is None else waiting(new, had, answers):
        steps.setdefault(each.assignment, []).append(Step(Verb.WAIT, each.requirement, (f"on {each.on}",)))
    return steps


def _steps(old: AssignmentSpec | None, new: AssignmentSpec | None) -> Iterator[Step]:
    before, after = old or AssignmentSpec(""), new or AssignmentSpec("")
    yield from _directories(before, after)
    for name in sorted(before.containers.keys() | after.containers.keys()):
        yield from _container(name, before.containers.get(name), after.containers.get(name))
    for name in sorted(before.jobs.keys() | after.jobs.keys()):
        if before.jobs.get(name) != after.jobs.get(name):
            yield Step(Verb.CHANGE_JOB, name)
    yield from _logins(before, after)


def _directories(before: AssignmentSpec, after: AssignmentSpec) -> Iterator[Step]:
    """Nothing of a directory is ever removed: one that is not declared any more is kept (E5)."""
    for name in sorted(before.directories.keys() | after.directories.keys()):
        old, new = before.directories.get(name), after.directories.get(name)
        if new is None:
            yield Step(Verb.KEEP_DIRECTORY, name)
        elif old is None:
            yield Step(Verb.MAKE_DIRECTORY, name)
        elif old.location != new.location:
            yield Step(Verb.MOVE_DIRECTORY, name, ("location",))
        elif old != new:
            yield Step(Verb.CHANGE_DIRECTORY, name, tuple(changed_keys(old, new)))


def _container(name: str, old: ContainerSpec | None, new: ContainerSpec | None) -> Iterator[Step]:
    if new is None:
        yield Step(Verb.STOP, name)
    elif old is None:
        yield Step(Verb.START, name, tuple(f"port {each.port}" for each in new.publish))
    elif old != new:
        verb = Verb.RELOAD if "reload" in new.plain and frame(old) == frame(new) else Verb.RECREATE
        yield Step(verb, name, tuple(changed_keys(old, new)))


def frame(spec: ContainerSpec) -> ContainerSpec:
    """The container with the paths, owners and modes of its files and not what is in them: where only that
    differs, a reload does."""
    bare = {path: FileSpec("text", each.owner, each.mode) for path, each in spec.files.items()}
    return replace(spec, files=bare)


def changed_keys(old: object, new: object) -> Iterator[str]:
    """The fields of one noun that differ; of a mapping (env, files, mounts) each key that does."""
    for each in fields(old):  # type: ignore[arg-type]  # two nouns of one class
        before, after = getattr(old, each.name), getattr(new, each.name)
        key = each.name.replace("_", "-")
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            names = sorted(before.keys() | after.keys())
            yield from (f"{key} {name}" for name in names if before.get(name) != after.get(name))
        else:
            yield key


def _logins(before: AssignmentSpec, after: AssignmentSpec) -> Iterator[Step]:
    """Consumers that this provider begins, or ceases, to serve; what a login reached stays (D5)."""
    old, new = _served(before), _served(after)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield Step(Verb.ENSURE_LOGIN if key in new else Verb.RETIRE_LOGIN, key)


def _served(spec: AssignmentSpec) -> dict[str, object]:
    return {each.to: each for given in spec.provides.values() for each in given.consumers}
