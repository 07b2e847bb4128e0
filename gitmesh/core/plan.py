"""What a new declaration does to a node that runs an old one, and why (DESIGN §3, G2). Pure.

It compares what two declarations say, holes included, so that it needs no secret and shows none: a step
names keys, ports, places and images, and never what stands at a key. What becomes of a container is decided
as the host decides it (`core.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from gitmesh.core.compare import Fate, changed_keys, decide, marks
from gitmesh.core.declaration import (
    AnswerHole,
    AssignmentSpec,
    ContainerSpec,
    Declaration,
    Hole,
    LoginHole,
    ProvisionSpec,
    PublishSpec,
    RegistrySpec,
)
from gitmesh.core.model import Json
from gitmesh.core.steps import Step, Verb, in_verbs_order
from gitmesh.core.waiting import waiting

_FATES = {Fate.START: Verb.START, Fate.RECREATE: Verb.RECREATE, Fate.RELOAD: Verb.RELOAD}


@dataclass(frozen=True, slots=True)
class AssignmentPlan:
    """The steps of one assignment, in order; `change` is new, changed or left. The node's own are those of
    `mesh@<node>`."""

    assignment: str
    change: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """Which value of a secret is asked for: its generation, the digest of the file it was handed in, which is
    compared and never shown, and of a hash what it is of, and by what."""

    generation: int = 0
    handed: str | None = field(default=None, repr=False)
    hashed: str | None = None


Versions = Mapping[str, Version]
"""By the secret's id; one that is not in it was never rotated or handed."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The two sides of a node, and the secrets that they have alike at other versions."""

    old: Declaration | None
    new: Declaration | None
    before: Versions
    after: Versions
    renewed: Mapping[str, Step]


def plan(
    old: Declaration | None,
    new: Declaration | None,
    before: Versions | None = None,
    after: Versions | None = None,
) -> tuple[AssignmentPlan, ...]:
    """What changes on one node: its own, then those that leave, then providers before consumers.

    `before` and `after` are the versions that each side asks of its secrets.
    """
    before, after = before or {}, after or {}
    change = _Change(old, new, before, after, _renewed(old, new, before, after))
    was = {} if old is None else old.assignments
    now = {} if new is None else new.assignments
    if old == new and not change.renewed:
        return ()
    secrets, accepted, waits = _secrets(change), _accepted(old, new), _waits(old, new)
    images = set(() if old is None else _images(old.assignments.values()))
    planned = []
    for each in (*sorted(was.keys() - now.keys()), *_providers_first(now)):
        steps = [*secrets.pop(each, ()), *accepted.get(each, ())]
        steps += [*_steps(change, was.get(each), now.get(each)), *waits.get(each, ())]
        if each in now:
            pulled = sorted(set(_images([now[each]])) - images)
            images |= set(pulled)
            steps += [Step(Verb.PULL_IMAGE, image) for image in pulled]
        if steps or was.get(each) != now.get(each):
            kind = "new" if each not in was else "changed" if each in now else "left"
            planned.append(AssignmentPlan(each, kind, in_verbs_order(steps)))
    return (*_own(change, secrets), *planned)


# --- the node's own ------------------------------------------------------------------------------------


def _own(change: _Change, secrets: Mapping[str, list[Step]]) -> Iterator[AssignmentPlan]:
    """What changes of the node's own, which no assignment requires."""
    old, new = change.old, change.new
    node = new or old
    if node is None:
        return
    own = f"mesh@{node.node}"
    steps = [*secrets.get(own, ()), *_registries(old, new)]
    if old is not None and new is not None:
        for key, was, now in (("address", old.address, new.address), ("root", old.root, new.root)):
            if was != now:
                steps.append(Step(Verb.CHANGE_NODE, key, (f"{was} to {now}",)))
        if old.name != new.name:
            steps.append(Step(Verb.CHANGE_NODE, "mesh", (f"{old.name} to {new.name}",)))
    kind = "new" if old is None else "left" if new is None else "changed"
    if steps or kind != "changed":
        yield AssignmentPlan(own, kind, in_verbs_order(steps))


def _registries(old: Declaration | None, new: Declaration | None) -> Iterator[Step]:
    """How the node reaches registries of images."""
    before = {} if old is None else old.registries
    after = {} if new is None else new.registries
    none = RegistrySpec()
    for each in sorted(before.keys() | after.keys()):
        if before.get(each) != after.get(each):
            keys = changed_keys(before.get(each, none), after.get(each, none))
            yield Step(Verb.CHANGE_REGISTRY, each, tuple(keys))


def hosts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Step, ...]:
    """The private names that every node learns, forgets, or has at another address."""
    gone = [Step(Verb.FORGET_HOST, name) for name in sorted(before.keys() - after.keys())]
    come = [
        Step(Verb.LEARN_HOST, name, (address,))
        for name, address in sorted(after.items())
        if before.get(name) != address
    ]
    return (*come, *gone)


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


# --- secrets and waits ---------------------------------------------------------------------------------


def renewal(id_: str, before: Version, after: Version) -> Step | None:
    """What a secret of another version does: it rotates, or what was handed over anew is taken."""
    if before.generation != after.generation:
        return Step(Verb.ROTATE_SECRET, id_, (f"generation {before.generation} to {after.generation}",))
    if before.handed != after.handed:
        return Step(Verb.TAKE_SECRET, id_, ("handed over anew",))
    if before.hashed != after.hashed:
        return Step(Verb.ROTATE_SECRET, id_, (f"{before.hashed} to {after.hashed}",))
    return None


def _renewed(
    old: Declaration | None, new: Declaration | None, before: Versions, after: Versions
) -> dict[str, Step]:
    if old is None or new is None:
        return {}
    none = Version()
    alike = sorted(old.secrets.keys() & new.secrets.keys())
    steps = ((each, renewal(each, before.get(each, none), after.get(each, none))) for each in alike)
    return {each: step for each, step in steps if step is not None}


def _secrets(change: _Change) -> dict[str, list[Step]]:
    """By the consumer's assignment on this node: the secrets that come, go or get a new value."""
    before = {} if change.old is None else change.old.secrets
    after = {} if change.new is None else change.new.secrets
    steps: dict[str, list[Step]] = {}
    for id_ in sorted(before.keys() ^ after.keys()):
        verb, spec = (Verb.MAKE_SECRET, after[id_]) if id_ in after else (Verb.DROP_SECRET, before[id_])
        if id_ in after and change.after.get(id_, Version()).handed is not None:
            verb = Verb.TAKE_SECRET
        steps.setdefault(spec.assignment, []).append(Step(verb, id_))
    for id_, step in change.renewed.items():
        steps.setdefault(after[id_].assignment, []).append(step)
    return steps


def _accepted(old: Declaration | None, new: Declaration | None) -> dict[str, list[Step]]:
    """By assignment: the requirements whose changed answer is accepted (B12)."""
    steps: dict[str, list[Step]] = {}
    for to, now in () if new is None else sorted(new.answers.items()):
        was = None if old is None else old.answers.get(to)
        if was is not None and was.generation != now.generation:
            why = (f"generation {was.generation} to {now.generation}", f"what {now.by} answers now")
            steps.setdefault(to.rpartition(".")[0], []).append(Step(Verb.ACCEPT_ANSWER, to, why))
    return steps


def _waits(old: Declaration | None, new: Declaration | None) -> dict[str, list[Step]]:
    """By assignment: whom it waits on for what the old declaration did not have yet (B11)."""
    had = () if old is None else old.secrets
    answers = {} if old is None else {to: each.fields for to, each in old.answers.items()}
    steps: dict[str, list[Step]] = {}
    for each in () if new is None else waiting(new, had, answers):
        steps.setdefault(each.assignment, []).append(Step(Verb.WAIT, each.requirement, (f"on {each.on}",)))
    return steps


# --- one assignment ------------------------------------------------------------------------------------


def _steps(change: _Change, old: AssignmentSpec | None, new: AssignmentSpec | None) -> Iterator[Step]:
    before, after = old or AssignmentSpec(""), new or AssignmentSpec("")
    if old is not None and new is not None and old.as_ != new.as_:
        yield Step(Verb.CHANGE_IDENTITY, new.as_, (f"was {old.as_}",))
    yield from _directories(before, after)
    yield from _ports(before, after)
    for name in sorted(before.containers.keys() | after.containers.keys()):
        yield from _container(change, name, before.containers.get(name), after.containers.get(name))
    yield from _jobs(change, before, after)
    yield from _provisions(change, before, after)
    for name in sorted(before.checks.keys() & after.checks.keys()):
        if before.checks[name] != after.checks[name]:
            yield Step(Verb.CHANGE_CHECK, name, tuple(changed_keys(before.checks[name], after.checks[name])))
    if old is not None and new is not None:
        come = (f"after {each}" for each in after.needs if each not in before.needs)
        gone = (f"no longer after {each}" for each in before.needs if each not in after.needs)
        why = (*come, *gone)
        if why:
            yield Step(Verb.CHANGE_ORDER, "start", why)


def _directories(before: AssignmentSpec, after: AssignmentSpec) -> Iterator[Step]:
    """Nothing of a directory is ever removed: one that is not declared any more is kept (E5)."""
    for name in sorted(before.directories.keys() | after.directories.keys()):
        old, new = before.directories.get(name), after.directories.get(name)
        if new is None and old is not None:
            yield Step(Verb.KEEP_DIRECTORY, name, (old.location,))
        elif new is not None and old is None:
            yield Step(Verb.MAKE_DIRECTORY, name, (new.location,))
        elif old is not None and new is not None and old.location != new.location:
            why = (f"{old.location} to {new.location}", "waits until its data is there")
            yield Step(Verb.MOVE_DIRECTORY, name, why)
        elif old is not None and new is not None and old != new:
            yield Step(Verb.CHANGE_DIRECTORY, name, tuple(changed_keys(old, new)))


def _ports(before: AssignmentSpec, after: AssignmentSpec) -> Iterator[Step]:
    """Ports opened, closed, or moved: the same software then answers at another number, address or reach."""
    old, new = _published(before), _published(after)
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if now is None and was is not None:
            yield Step(Verb.CLOSE_PORT, _port(was), (was.reach,))
        elif now is not None and was is None:
            yield Step(Verb.OPEN_PORT, _port(now), (now.reach,))
        elif was is not None and now is not None and was != now:
            yield Step(Verb.MOVE_PORT, _port(now), (f"from {_port(was)} {was.reach}", f"to {now.reach}"))


def _published(spec: AssignmentSpec) -> dict[tuple[str, int, str], PublishSpec]:
    """By container, what its software listens on, and protocol."""
    return {
        (name, each.listens, each.protocol): each
        for name, container in spec.containers.items()
        for each in container.publish
    }


def _port(spec: PublishSpec) -> str:
    return f"{spec.port}/{spec.protocol}"


def _container(
    change: _Change, name: str, old: ContainerSpec | None, new: ContainerSpec | None
) -> Iterator[Step]:
    if new is None:
        yield Step(Verb.STOP, name)
    elif old is None:
        yield Step(Verb.START, name)
    else:
        fate, why = _compared(change, old, new)
        if fate in _FATES:
            yield Step(_FATES[fate], name, why)


def _compared(change: _Change, old: ContainerSpec, new: ContainerSpec) -> tuple[Fate, tuple[str, ...]]:
    """The fate of a container that both sides have, decided as the host does."""
    if change.old is None or change.new is None or (old == new and not change.renewed):
        return Fate.KEEP, ()
    was = marks(old, change.old.secrets, _version(change.old, change.before))
    now = marks(new, change.new.secrets, _version(change.new, change.after))
    decision = decide(was, now, reloads="reload" in new.plain)
    return decision.fate, decision.why


def _version(declaration: Declaration, versions: Versions) -> Callable[[Hole], Json]:
    """With which version a hole is filled; a login changes with the secret only where there are two."""
    none = Version()

    def version(hole: Hole) -> Json:
        if isinstance(hole, AnswerHole):
            return None
        spec, asked = declaration.secrets.get(hole.secret), versions.get(hole.secret, none)
        if isinstance(hole, LoginHole) and (spec is None or spec.logins is None):
            return None
        return [asked.generation, asked.handed, asked.hashed]

    return version


def _jobs(change: _Change, before: AssignmentSpec, after: AssignmentSpec) -> Iterator[Step]:
    for name in sorted(before.jobs.keys() | after.jobs.keys()):
        old, new = before.jobs.get(name), after.jobs.get(name)
        if old is None and new is not None:
            yield Step(Verb.ADD_JOB, name, (new.schedule,))
        elif new is None:
            yield Step(Verb.DROP_JOB, name)
        elif old is not None:
            own = changed_keys(replace(old, spec=new.spec), new)
            why = (*own, *_compared(change, old.spec, new.spec)[1])
            if why:
                yield Step(Verb.CHANGE_JOB, name, why)


# --- what it provides ----------------------------------------------------------------------------------


def _provisions(change: _Change, before: AssignmentSpec, after: AssignmentSpec) -> Iterator[Step]:
    """Consumers that this provider begins, or ceases, to serve, and how it reaches its backend."""
    for contract in sorted(before.provides.keys() | after.provides.keys()):
        old = before.provides.get(contract, ProvisionSpec())
        new = after.provides.get(contract, ProvisionSpec())
        if contract in before.provides and contract in after.provides:
            keys = tuple(changed_keys(replace(old, consumers=new.consumers), new))
            if keys:
                yield Step(Verb.CHANGE_PROVISION, contract, keys)
        yield from _consumers(change, contract, old, new)


def _consumers(change: _Change, contract: str, old: ProvisionSpec, new: ProvisionSpec) -> Iterator[Step]:
    """What a login reached stays when it is retired (D5)."""
    was = {each.to: each for each in old.consumers}
    now = {each.to: each for each in new.consumers}
    for to in sorted(was.keys() | now.keys()):
        if to not in now:
            yield Step(Verb.RETIRE_LOGIN, to)
            if old.adapter is not None:
                yield Step(Verb.KEEP_DATA, f"{contract} {was[to].as_}", (f"of {to}",))
        elif to not in was:
            yield Step(Verb.ENSURE_LOGIN, to, (now[to].as_,))
        else:
            keys = tuple(changed_keys(was[to], now[to]))
            if now[to].secret in change.renewed:
                keys += (f"secret {now[to].secret}",)
            if keys:
                yield Step(Verb.ENSURE_LOGIN, to, keys)


def _images(assignments: Iterable[AssignmentSpec]) -> Iterator[str]:
    """What a node pulls for these assignments; a job on the host has no image."""
    for spec in assignments:
        for each in (*spec.containers.values(), *(job.spec for job in spec.jobs.values())):
            if each.image:
                yield each.image
