"""What a shell completes in the editing commands: names of the mesh repo that the command would edit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable

import click

from gitmesh.core.contract_builtin import contract_of
from gitmesh.core.model import Kind, Mesh, Module
from gitmesh.core.refusal import Code
from gitmesh.repo.load_assignments import PLACED

Names = Callable[[Mesh, click.Context], Iterable[str]]
Completes = Callable[[click.Context, click.Parameter, str], list[str]]


def _completing(names: Names) -> Completes:
    """A callback for click that offers the `names` of the working tree beginning with what was typed."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            from gitmesh.cli.opened import open_mesh

            mesh = open_mesh(ctx.params.get("repo")).mesh
            return sorted({name for name in names(mesh, ctx) if name.startswith(incomplete)})
        except Exception:  # a mesh repo that does not load offers nothing: Tab is no place for an error
            return []

    return complete


def _module(mesh: Mesh, ctx: click.Context) -> Module:
    """The module that the command line speaks of so far."""
    name = ctx.params.get("module") or ctx.params["assignment"].partition("@")[0]
    return mesh.modules[name]


def _modules(mesh: Mesh, _: click.Context) -> Iterable[str]:
    return mesh.modules


def _nodes(mesh: Mesh, _: click.Context) -> Iterable[str]:
    return mesh.nodes


def _assigned_modules(mesh: Mesh, _: click.Context) -> Iterable[str]:
    return (each.module for each in mesh.assignments.values())


def _assigned_nodes(mesh: Mesh, ctx: click.Context) -> Iterable[str]:
    return (each.node for each in mesh.assignments.values() if each.module == ctx.params["module"])


def _assignments(mesh: Mesh, _: click.Context) -> Iterable[str]:
    return mesh.assignments


def _assignments_and_modules(mesh: Mesh, _: click.Context) -> Iterable[str]:
    return (*mesh.assignments, *mesh.modules)


def _placeable(mesh: Mesh, ctx: click.Context) -> Iterable[str]:
    """Host requirements that an assignment may place."""
    requires = _module(mesh, ctx).requires
    return (name for name, each in requires.items() if each.kind is Kind.HOST and each.contract in PLACED)


def _pinnable(mesh: Mesh, ctx: click.Context) -> Iterable[str]:
    """Requirements that a provider of the mesh answers; a shared secret is the vault's, and takes no pin."""
    requires = _module(mesh, ctx).requires
    return (name for name, each in requires.items() if each.kind is Kind.MODULE and each.contract != "secret")


def _providers(mesh: Mesh, ctx: click.Context) -> Iterable[str]:
    """Assignments of modules that provide what the requirement asks."""
    return _providing(mesh, _module(mesh, ctx).requires[ctx.params["requirement"]].contract)


def _contracts(mesh: Mesh, _: click.Context) -> Iterable[str]:
    """Contracts that some module of the mesh provides."""
    return (name for module in mesh.modules.values() for name in module.provides if name != "secret")


def _contract_providers(mesh: Mesh, ctx: click.Context) -> Iterable[str]:
    return _providing(mesh, ctx.params["contract"])


def _providing(mesh: Mesh, contract: str) -> Iterable[str]:
    return (
        each.id
        for each in mesh.assignments.values()
        if each.module in mesh.modules and contract in mesh.modules[each.module].provides
    )


def _keys(mesh: Mesh, ctx: click.Context) -> Iterable[str]:
    """Operator requirements, and the asks that an operator answers."""
    for name, each in _module(mesh, ctx).requires.items():
        if each.kind is Kind.OPERATOR:
            yield name
        elif each.contract in mesh.contracts:
            asks = mesh.contracts[each.contract].asks
            yield from (f"{name}.{ask}" for ask, asked in asks.items() if asked.from_operator)


def _requirements(mesh: Mesh, _: click.Context) -> Iterable[str]:
    """Each requirement of each assignment, as `explain` takes it."""
    for each in mesh.assignments.values():
        module = mesh.modules.get(each.module)
        yield from (f"{each.id}.{name}" for name in (module.requires if module is not None else ()))


def _fields(mesh: Mesh, _: click.Context) -> Iterable[str]:
    """Each field of each requirement of each assignment."""
    for each in mesh.assignments.values():
        module = mesh.modules.get(each.module)
        for requirement in module.requires.values() if module is not None else ():
            contract = contract_of(requirement, mesh.contracts)
            yield from (
                f"{each.id}.{requirement.name}.{name}" for name in (contract.fields if contract else ())
            )


def explained(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Codes of refusals; assignments, and after a dot their requirements, and after another the fields."""
    parts = (_assignments, _requirements, _fields)
    named = _completing(parts[min(incomplete.count("."), 2)])(ctx, param, incomplete)
    return [code.value for code in Code if code.value.startswith(incomplete)] + named


def revisions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Branches, tags and HEAD of the mesh repo."""
    from gitmesh.repo.git import environment

    folder = ctx.params.get("repo") or "."
    asked = ("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
    done = subprocess.run(
        ["git", "-C", str(folder), *asked], env=environment(None), capture_output=True, text=True, check=False
    )
    return [name for name in ("HEAD", *done.stdout.split()) if name.startswith(incomplete)]


modules = _completing(_modules)
nodes = _completing(_nodes)
assigned_modules = _completing(_assigned_modules)
assigned_nodes = _completing(_assigned_nodes)
assignments = _completing(_assignments)
assignments_and_modules = _completing(_assignments_and_modules)
placeable = _completing(_placeable)
pinnable = _completing(_pinnable)
providers = _completing(_providers)
keys = _completing(_keys)
contracts = _completing(_contracts)
contract_providers = _completing(_contract_providers)
