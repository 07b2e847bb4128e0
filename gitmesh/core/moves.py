"""What keeps its identity and data through a move or rename, and what may not change unsaid (G8, D9)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from gitmesh.core.model import Assignment, Mesh
from gitmesh.core.record import Origin, Record, Recorded
from gitmesh.core.refusal import Answer, Code, Refusal, Related

Confirmed = Collection[tuple[str, str]]
"""(assignment, requirement) of each that confirmed its new provider."""


def follow(mesh: Mesh, record: Record) -> Record:
    """The record with each assignment that moved under its new name: a new one whose `as:` is the identity
    of one that is gone. What others were recorded with of it, they are with its successor."""
    names = _successors(mesh, record)
    if not names:
        return record
    assignments = {}
    for id_, kept in record.assignments.items():
        name = names.get(id_, id_)
        kept = kept if name == id_ else _carried(id_, name, kept)
        assignments[name] = replace(
            kept, providers=_renamed(kept.providers, names), leaving=_renamed(kept.leaving, names)
        )
    orphans = {
        id_: replace(each, where=names.get(each.where, each.where)) for id_, each in record.orphans.items()
    }
    return replace(record, assignments=assignments, orphans=orphans, holders=_renamed(record.holders, names))


def _successors(mesh: Mesh, record: Record) -> dict[str, str]:
    new = {
        each.as_: id_
        for id_, each in mesh.assignments.items()
        if each.as_ is not None and id_ not in record.assignments
    }
    if not new:
        return {}
    gone = ((id_, kept.as_) for id_, kept in record.assignments.items() if id_ not in mesh.assignments)
    return {id_: new[as_] for id_, as_ in gone if as_ in new}


def _carried(old: str, new: str, kept: Recorded) -> Recorded:
    """What is kept of `old`, as `new` takes it over: its ports only on the same machine."""
    node = old.partition("@")[2]
    moving = {name: Origin(node, where) for name, where in kept.places.items()} | dict(kept.moving)
    same = new.partition("@")[2] == node
    return replace(kept, ports=kept.ports if same else {}, places={}, moving=moving, moved=False)


def _renamed(said: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {key: names.get(each, each) for key, each in said.items()}


def settled(assignment: Assignment, kept: Recorded, now: Recorded, confirmed: Confirmed) -> Recorded:
    """What is recorded `now`, with the providers that are being left and the directories being moved."""
    return replace(
        now,
        leaving=_leaving(assignment.id, kept, now, confirmed),
        moving={}
        if assignment.moved and not _again(assignment, kept, now)
        else _moving(assignment, kept, now),
        moved=assignment.moved,
    )


def _leaving(id_: str, kept: Recorded, now: Recorded, confirmed: Confirmed) -> dict[str, str]:
    """A provider is left once the consumer confirmed the new one, or is back (D9). Of two moves in a row the
    first one counts: nothing reads from the second provider yet."""
    left = {}
    for name in kept.resources:
        provider = kept.leaving.get(name, kept.providers.get(name))
        current = now.providers.get(name)
        if None not in (provider, current) and provider != current and (id_, name) not in confirmed:
            left[name] = str(provider)
    return left


def _moving(assignment: Assignment, kept: Recorded, now: Recorded) -> dict[str, Origin]:
    """Where the data of each directory still is, if that is not where the directory is now."""
    moving = {}
    for name, location in now.places.items():
        here = Origin(assignment.node, location)
        before = kept.places.get(name)
        origin = kept.moving.get(name, here if before is None else Origin(assignment.node, before))
        if origin != here:
            moving[name] = origin
    return moving


def _again(assignment: Assignment, kept: Recorded, now: Recorded) -> bool:
    """Whether a directory moves whose assignment says `moved` since an earlier move."""
    return kept.moved and any(now.places.get(name, where) != where for name, where in kept.places.items())


# --- what is refused -----------------------------------------------------------------------------------


def check_moves(
    mesh: Mesh, record: Record, now: Mapping[str, Recorded], unsaid: Mapping[str, Assignment]
) -> Iterator[Refusal]:
    """Refuse what would leave data behind unsaid. `now` has what is kept of the assignments that stand,
    `unsaid` is what `unsaid_moves` found."""
    for id_, fresh in now.items():
        kept = record.assignments.get(id_)
        if kept is not None and (kept.as_, kept.places, kept.resources) != (
            fresh.as_,
            fresh.places,
            fresh.resources,
        ):
            yield from _changed(mesh, mesh.assignments[id_], kept, fresh)
    for gone, like in unsaid.items():
        yield _move_unsaid(gone, record.of(gone), like)


def _changed(mesh: Mesh, each: Assignment, kept: Recorded, now: Recorded) -> Iterator[Refusal]:
    if kept.as_ != now.as_:
        yield _identity(each, kept.as_, now.as_)
        return
    yield from _reworded(mesh, each, kept, now)
    yield from _renamed_directories(mesh, each, kept, now)
    if each.moved and _again(each, kept, now):
        yield Refusal(
            Code.MOVED_LEFTOVER,
            each.id,
            "a directory moves, and `moved` speaks of an earlier move",
            each.at.child("moved"),
            answers=(Answer(f"remove `moved` from {each.at.file}, and say it again once the data is there"),),
        )


def _identity(each: Assignment, old: str, new: str) -> Refusal:
    keep = f"keep it: `as: {old}` in {each.at.file}"
    return Refusal(
        Code.IDENTITY_CHANGED,
        each.id,
        f"it is called `{old}` everywhere, and this commit would call it `{new}`; its data is `{old}`'s",
        each.at if each.as_ is None else each.at.child("as"),
        answers=(
            Answer(keep),
            Answer("begin anew: unassign it, and assign it again in a commit after that one"),
        ),
    )


def _reworded(mesh: Mesh, each: Assignment, kept: Recorded, now: Recorded) -> Iterator[Refusal]:
    """What a provider made for a requirement is found by the requirement's `as:` word."""
    gone = [had for name, had in kept.resources.items() if name not in now.resources]
    for name, made in now.resources.items():
        had = kept.resources.get(name)
        renamed = [other for other in gone if other.contract == made.contract] if had is None else [had]
        if renamed and made not in renamed and renamed[0].contract == made.contract:
            requirement = mesh.modules[each.module].requires[name]
            old, new = renamed[0].as_, made.as_
            yield Refusal(
                Code.IDENTITY_CHANGED,
                f"{each.id}.{name}",
                f"what was made for it is called `{old}`, and this commit would have `{new}` made, empty",
                each.at,
                related=(Related(requirement.at, "required here"),),
                answers=(Answer("give the requirement the `as:` that it had"),),
            )


def _renamed_directories(mesh: Mesh, each: Assignment, kept: Recorded, now: Recorded) -> Iterator[Refusal]:
    gone = [where for name, where in kept.places.items() if name not in now.places]
    for name, where in now.places.items():
        if gone and name not in kept.places and name not in each.place and where not in gone:
            requirement = mesh.modules[each.module].requires[name]
            yield Refusal(
                Code.MOVE_UNSAID,
                f"{each.id}.{name}",
                f"this directory is new, and the one at {gone[0]} would be left behind",
                each.at,
                f"no place for `{name}`",
                related=(Related(requirement.at, "required here"),),
                answers=(
                    Answer("it is the same one", f"gitmesh place {each.id} {name} {gone[0]}"),
                    Answer("it is another, and begins empty", f"gitmesh place {each.id} {name} {where}"),
                ),
            )


def unsaid_moves(mesh: Mesh, record: Record, now: Collection[str]) -> dict[str, Assignment]:
    """By who is gone, a new one of `now` that looks like it: moved to another node, or its module renamed."""
    new = [each for each in map(mesh.assignments.__getitem__, now) if _begins(each, record)]
    found = {}
    for id_, kept in sorted(record.assignments.items()) if new else ():
        if id_ not in mesh.assignments and (kept.places or kept.resources):
            like = next((each for each in new if _looks_like(mesh, each, id_)), None)
            if like is not None:
                found[id_] = like
    return found


def _begins(each: Assignment, record: Record) -> bool:
    said = each.fresh or each.as_ is not None or each.spread is not None
    return not said and each.id not in record.assignments


def _looks_like(mesh: Mesh, each: Assignment, gone: str) -> bool:
    module, _, node = gone.partition("@")
    return each.module == module or (each.node == node and module not in mesh.modules)


def _move_unsaid(gone: str, kept: Recorded, like: Assignment) -> Refusal:
    same = gone.partition("@")[0] == like.module
    move = Answer(
        f"it is the same one: `as: {kept.as_}` in {like.at.file}; what was made for it stays its own",
        f"gitmesh move {gone} {like.node}" if same else None,
    )
    return Refusal(
        Code.MOVE_UNSAID,
        like.id,
        f"{gone} is gone and {like.id} is new: the data of the one would be left, and the other begin empty",
        like.at,
        answers=(move, Answer(f"it is another one: `fresh: true` in {like.at.file}")),
    )
