"""Which shared file of a commit touches which assignments, and why (G4). Pure.

It compares the nouns that two commits read as, so that a comment, another order or a default written out
is no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from gitmesh.core.declaration import registry_of
from gitmesh.core.model import Assignment, Json, Kind, Layers, Mesh, Requirement
from gitmesh.core.resolve import Resolution, used


@dataclass(frozen=True, slots=True)
class Touched:
    """An assignment that stands on a changed file; `why` is how."""

    assignment: str
    why: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A shared file that changed (of mesh.yaml: a key of it) and every assignment that stands on it, on any
    node."""

    file: str
    touches: tuple[Touched, ...]


_Noun = TypeVar("_Noun")


def causes(old: Resolution, new: Resolution) -> tuple[Cause, ...]:
    """What changed in modules, contracts, values, spreads, handed values, catalogues and mesh.yaml."""
    found = [*_modules(old, new), *_contracts(old.mesh, new.mesh), *_values(old.mesh, new.mesh)]
    found += [*_handed(old, new), *_spreads(old.mesh, new.mesh), *_mesh(old.mesh, new.mesh)]
    return tuple(sorted([*found, *_catalogues(found)], key=lambda each: each.file))


def _cause(file: str, touched: Iterable[Touched]) -> Cause:
    """The cause, with each assignment once."""
    by_id: dict[str, Touched] = {}
    for each in touched:
        by_id.setdefault(each.assignment, each)
    return Cause(file, tuple(by_id[each] for each in sorted(by_id)))


def _changed(old: Mapping[str, _Noun], new: Mapping[str, _Noun]) -> list[str]:
    return sorted(each for each in old.keys() | new.keys() if old.get(each) != new.get(each))


def _assignments(old: Mesh, new: Mesh) -> Iterator[tuple[Mesh, Assignment]]:
    """Every assignment of the new commit, and of the old one what left."""
    for each in new.assignments.values():
        yield new, each
    for id_, each in old.assignments.items():
        if id_ not in new.assignments:
            yield old, each


def _asks_for(contract: str) -> Callable[[Requirement], bool]:
    return lambda each: each.kind is Kind.MODULE and each.contract == contract


def _names(seat: str) -> Callable[[Requirement], bool]:
    return lambda each: each.seat == seat


def _requiring(
    old: Mesh, new: Mesh, wanted: Callable[[Requirement], bool], why: Callable[[Requirement], str]
) -> Iterator[Touched]:
    """The assignments that use a requirement which is `wanted`."""
    for mesh, each in _assignments(old, new):
        for requirement in used(mesh, each):
            if wanted(requirement):
                yield Touched(each.id, why(requirement))


# --- the kinds of file ---------------------------------------------------------------------------------


def _modules(old: Resolution, new: Resolution) -> Iterator[Cause]:
    before, after = old.mesh.modules, new.mesh.modules
    for name in _changed(before, after):
        module = after.get(name) or before[name]
        own = [
            Touched(each.id, "is of this module")
            for _, each in _assignments(old.mesh, new.mesh)
            if each.module == name
        ]
        served = before.get(name, module).provides != after.get(name, module).provides
        yield _cause(module.at.file, [*own, *(_served(old, new, name) if served else ())])


def _served(old: Resolution, new: Resolution, module: str) -> Iterator[Touched]:
    """Who reads what assignments of `module` provide."""
    for resolution in (new, old):
        for (consumer, name), answered in resolution.answers.items():
            if answered.requirement.kind is Kind.MODULE and answered.by.partition("@")[0] == module:
                yield Touched(consumer, f"{answered.by} answers its {name}")


def _contracts(old: Mesh, new: Mesh) -> Iterator[Cause]:
    for name in _changed(old.contracts, new.contracts):
        contract = new.contracts.get(name) or old.contracts[name]
        provides = [
            Touched(each.id, "provides it")
            for mesh, each in _assignments(old, new)
            if name in mesh.modules[each.module].provides
        ]
        requires = _requiring(
            old,
            new,
            _asks_for(name),
            lambda each: f"requires it as {each.name}",
        )
        yield _cause(contract.at.file, [*requires, *provides])


def _values(old: Mesh, new: Mesh) -> Iterator[Cause]:
    for module in _changed(old.values, new.values):
        before, after = old.values.get(module), new.values.get(module)
        given = after or before
        assert given is not None
        nothing = Layers(given.at)
        before, after = before or nothing, after or nothing
        labels = set(_changed(before.labels, after.labels))
        touched = []
        for mesh, each in _assignments(old, new):
            mine = sorted(labels.intersection(mesh.nodes[each.node].labels))
            if each.module == module and before.mesh != after.mesh:
                touched.append(Touched(each.id, "is of this module"))
            elif each.module == module and mine:
                touched.append(Touched(each.id, f"its node has the label {mine[0]}"))
        yield _cause(given.at.file, touched)


def _handed(old: Resolution, new: Resolution) -> Iterator[Cause]:
    for name in _changed(old.mesh.handed, new.mesh.handed):
        yield _cause(
            f"handed/{name}.yaml",
            (
                Touched(secret.assignment, f"reads it as {secret.id.rpartition('.')[2]}")
                for resolution in (new, old)
                for secret in resolution.secrets.values()
                if secret.handed == name
            ),
        )


def _spreads(old: Mesh, new: Mesh) -> Iterator[Cause]:
    """A spread is known by the assignments that it gives."""
    touched: dict[str, list[Touched]] = {}
    for id_ in _changed(old.assignments, new.assignments):
        for each in (new.assignments.get(id_), old.assignments.get(id_)):
            if each is not None and each.spread is not None:
                touched.setdefault(each.spread, []).append(Touched(id_, "is given by it"))
    for name, given in touched.items():
        yield _cause(f"spreads/{name}.yaml", given)


def _catalogues(found: Iterable[Cause]) -> Iterator[Cause]:
    """A moved pin touches what the changed files of its catalogue touch."""
    by_name: dict[str, list[Touched]] = {}
    for each in found:
        folder, _, rest = each.file.partition("/")
        if folder == "catalogue":
            by_name.setdefault(rest.partition("/")[0], []).extend(each.touches)
    for name, touched in by_name.items():
        yield _cause(f"catalogue.yaml {name}", touched)


# --- mesh.yaml -----------------------------------------------------------------------------------------


def _mesh(old: Mesh, new: Mesh) -> Iterator[Cause]:
    """One cause for each key that changed."""
    everyone = [Touched(each.id, "every private name changes") for _, each in _assignments(old, new)]
    if old.name != new.name:
        yield _cause("mesh.yaml mesh", everyone)
    for key, before, after in _facts(old, new):
        if before != after:
            facts = _requiring(old, new, _is_facts, lambda each: f"reads it in {each.name}")
            yield _cause(f"mesh.yaml {key}", facts)
    for key in _OF_NO_ASSIGNMENT:
        if getattr(old, key) != getattr(new, key):
            yield Cause(f"mesh.yaml {'deploy' if key == 'branch' else key}", ())
    for contract in _changed(old.choose, new.choose):
        asked = _requiring(
            old,
            new,
            _asks_for(contract),
            lambda each: f"asks for it as {each.name}",
        )
        yield _cause(f"mesh.yaml choose.{contract}", asked)
    for host in _changed(old.registries, new.registries):
        yield _cause(f"mesh.yaml registries.{host}", _pulling(old, new, host))
    for seat in _changed(old.seats, new.seats):
        named = _requiring(
            old,
            new,
            _names(seat),
            lambda each: f"names it in {each.name}",
        )
        yield _cause(f"mesh.yaml seats.{seat}", named)


_OF_NO_ASSIGNMENT = ("origin", "mailbox", "branch", "rollout", "notify", "gitmesh")
"""Keys that no assignment stands on, and that are named all the same."""


def _facts(old: Mesh, new: Mesh) -> tuple[tuple[str, Json, Json], ...]:
    return (("domain", old.domain, new.domain), ("timezone", old.timezone, new.timezone))


def _is_facts(requirement: Requirement) -> bool:
    return requirement.kind is Kind.MESH and requirement.contract == "facts"


def _pulling(old: Mesh, new: Mesh, host: str) -> Iterator[Touched]:
    for mesh, each in _assignments(old, new):
        module = mesh.modules[each.module]
        containers = (*module.containers.values(), *(job.spec for job in module.jobs.values()))
        if any(one.image and registry_of(one.image) == host for one in containers):
            yield Touched(each.id, "pulls images from it")
