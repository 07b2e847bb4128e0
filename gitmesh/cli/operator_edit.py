"""Commands that edit a mesh repo's files and keep their comments. Each writes everything or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from gitmesh.cli import complete
from gitmesh.cli.draft import (
    Draft,
    check_grant,
    check_key,
    check_pin,
    check_provider,
    check_seat,
    is_pinnable,
    known_assignment,
    known_module,
    known_node,
    known_requirement,
    typed_value,
)
from gitmesh.cli.main import Failure, Misused, colourful, nearest
from gitmesh.cli.opened import Opened, open_mesh
from gitmesh.cli.options import repo_option
from gitmesh.core.model import Mesh, Module
from gitmesh.core.refusal import Code, Refusal
from gitmesh.fsops import Root
from gitmesh.report.terminal import render


@click.command(epilog="Example: gitmesh assign gitea athens --use smtp --set web.name=git.example.org")
@click.argument("module", shell_complete=complete.modules)
@click.argument("node", shell_complete=complete.nodes)
@click.option("--pin", "pins", multiple=True, metavar="REQUIREMENT=PROVIDER", help="Choose who answers.")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="Give an operator's value.")
@click.option("--use", "uses", multiple=True, metavar="REQUIREMENT", help="Use an optional requirement.")
@click.option("--hold", "seats", multiple=True, metavar="SEAT", help="Let it hold a seat.")
@click.option("--grant", "grants", multiple=True, metavar="GRANT", help="Let it reach beyond its containers.")
@repo_option
def assign(
    module: str,
    node: str,
    pins: tuple[str, ...],
    values: tuple[str, ...],
    uses: tuple[str, ...],
    seats: tuple[str, ...],
    grants: tuple[str, ...],
    repo: Path | None,
) -> None:
    """Assign MODULE to NODE, or add to what its assignment says.

    Where several providers could answer a requirement, a terminal is asked; without a terminal it is refused
    (exit code 3) with the options that would choose. Who answers is written as a pin, also where there was
    nothing to choose, so that another provider, added later, asks nobody again.
    """
    opened = open_mesh(repo)
    definition = known_module(opened.mesh, module)
    known_node(opened.mesh, node)
    draft = Draft.of(opened, module, node)
    for use in uses:
        _check_optional(definition, use)
        draft.add("uses", use)
    for seat in seats:
        check_seat(opened.mesh, definition, seat)
        draft.add("holds", seat)
    for grant in grants:
        check_grant(definition, grant)
        draft.add("grants", grant)
    _put_pairs(draft, opened.mesh, definition, pins, values)
    _choose_all(draft, f"{module}@{node}")
    _pin_all(draft, f"{module}@{node}")
    _finish(draft, f"{module}@{node}")


def _check_optional(module: Module, name: str) -> None:
    if not known_requirement(module, name).optional:
        raise Misused(f"`{name}` is not optional: `{module.name}` always uses it")


def _put_pairs(draft: Draft, mesh: Mesh, module: Module, pins: Sequence[str], values: Sequence[str]) -> None:
    for each in pins:
        requirement, provider = _pair(each, "--pin", "REQUIREMENT=PROVIDER")
        check_pin(mesh, module, requirement, provider)
        draft.put(["pins", requirement], provider)
    for each in values:
        key, text = _pair(each, "--set", "KEY=VALUE")
        draft.put(["values", key], typed_value(mesh, module, key, text))


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not (left and equals and right):
        raise Misused(f"{option} takes {form}")
    return left, right


def _choose_all(draft: Draft, id_: str) -> None:
    """Ask for every choice that is a person's, and write each as a pin (B4). Refused without a terminal."""
    _, refusals = draft.after().resolve()
    open_choices = {
        each.subject.removeprefix(f"{id_}."): _candidates(each)
        for each in refusals
        if each.code is Code.AMBIGUOUS_PROVIDER and each.subject.startswith(f"{id_}.")
    }
    if open_choices and not interactive():
        _refuse_choices(id_, open_choices)
    for requirement, candidates in open_choices.items():
        draft.put(["pins", requirement], _ask(requirement, candidates))


def _pin_all(draft: Draft, id_: str) -> None:
    """Write who answers each requirement as a pin (B4), but where a named seat or the mesh's `choose` says
    it: those are said once, for everybody, and a pin would take this assignment out of them."""
    resolution, _ = draft.after().resolve()
    for (consumer, name), answered in resolution.answers.items():
        if consumer == id_ and is_pinnable(answered.requirement) and answered.rule != "chosen for the mesh":
            draft.put(["pins", name], answered.by)


def _candidates(refusal: Refusal) -> dict[str, str]:
    """Who could answer, the holder of a fitting seat first, with the words of the refusal's own answer."""
    return {
        answer.command.split()[-1]: answer.text.removeprefix("pin ")
        for answer in refusal.answers
        if answer.command is not None and answer.command.startswith("gitmesh pin ")
    }


def interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _refuse_choices(id_: str, open_choices: dict[str, dict[str, str]]) -> None:
    for requirement, candidates in open_choices.items():
        click.echo(f"{id_}.{requirement}: {len(candidates)} providers and no choice made; choose with one of")
        for provider, said in candidates.items():
            click.echo(f"  --pin {requirement}={provider}    {said}")
    click.echo("nothing was written")
    sys.exit(3)


def _ask(requirement: str, candidates: dict[str, str]) -> str:
    click.echo(f"Who answers `{requirement}`?")
    for number, said in enumerate(candidates.values(), 1):
        click.echo(f"  {number}  {said}")
    chosen = click.prompt("Number", type=click.IntRange(1, len(candidates)))
    return list(candidates)[chosen - 1]


@click.command(epilog="Example: gitmesh unassign gitea athens")
@click.argument("module", shell_complete=complete.assigned_modules)
@click.argument("node", shell_complete=complete.assigned_nodes)
@click.option("--yes", is_flag=True, help="Ask nothing.")
@repo_option
def unassign(module: str, node: str, yes: bool, repo: Path | None) -> None:
    """Remove MODULE from NODE. Its data stays on the node until it is purged.

    A terminal is asked first. What others still use is refused (exit code 3), naming them.
    """
    opened = open_mesh(repo)
    path = f"assignments/{node}/{module}.yaml"
    if path not in opened.files:
        assignment = known_assignment(opened.mesh, f"{module}@{node}")
        raise Failure(f"{assignment.id} comes from {assignment.at.file}; edit that, or the node's labels")
    consumers = _consumers(opened, f"{module}@{node}")
    if consumers:
        click.echo(f"{module}@{node} is still used:")
        for id_, requirement in consumers:
            click.echo(f"  {id_}.{requirement}    gitmesh pin {id_} {requirement} PROVIDER")
        click.echo("nothing was written; pin them to another provider or unassign them first")
        sys.exit(3)
    if interactive() and not yes:
        click.confirm(f"Remove {path}?", abort=True)
    with Root(opened.folder) as root:
        root.remove(path)
        root.remove_directory(f"assignments/{node}")
    click.echo(f"removed {path}; the data of {module}@{node} stays on {node}")
    _next()


def _consumers(opened: Opened, id_: str) -> list[tuple[str, str]]:
    """Whose requirements the assignment answers, its own aside (B21)."""
    resolution, _ = opened.resolve()
    return sorted(key for key, answered in resolution.answers.items() if answered.by == id_ and key[0] != id_)


@click.command(epilog="Example: gitmesh pin gitea@athens database postgres@sparta")
@click.argument("assignment", shell_complete=complete.assignments)
@click.argument("requirement", shell_complete=complete.pinnable)
@click.argument("provider", shell_complete=complete.providers)
@repo_option
def pin(assignment: str, requirement: str, provider: str, repo: Path | None) -> None:
    """Choose who answers a REQUIREMENT of an ASSIGNMENT.

    ASSIGNMENT and PROVIDER are called module@node.
    """

    def edit(draft: Draft, mesh: Mesh, module: Module) -> None:
        check_pin(mesh, module, requirement, provider)
        draft.put(["pins", requirement], provider)

    _edit(repo, assignment, edit)


@click.command(
    "set",
    context_settings={"ignore_unknown_options": True},
    epilog="Example: gitmesh set gitea@athens web.name git.example.org",
)
@click.argument("assignment", shell_complete=complete.assignments)
@click.argument("key", shell_complete=complete.keys)
@click.argument("value", type=click.UNPROCESSED, required=False)
@click.option("--unset", is_flag=True, help="Take the assignment's own value away.")
@repo_option
def set_value(assignment: str, key: str, value: str | None, unset: bool, repo: Path | None) -> None:
    """Give an ASSIGNMENT an operator's VALUE, or take it away with --unset.

    KEY is a requirement, `workers`, or one of its asks, `web.name`; ASSIGNMENT is module@node. VALUE is read
    as YAML, so that 4 is a number and true a boolean; where text is wanted, it is text.
    """

    if unset is (value is not None):
        raise Misused("give a VALUE or --unset, one of them")

    def edit(draft: Draft, mesh: Mesh, module: Module) -> None:
        if value is None:
            check_key(mesh, module, key)
            draft.drop(["values", key])
        else:
            draft.put(["values", key], typed_value(mesh, module, key, value))

    _edit(repo, assignment, edit)


def _edit(repo: Path | None, id_: str, edit: Callable[[Draft, Mesh, Module], None]) -> None:
    opened = open_mesh(repo)
    assignment = known_assignment(opened.mesh, id_)
    module = known_module(opened.mesh, assignment.module)
    draft = Draft.of(opened, assignment.module, assignment.node)
    edit(draft, opened.mesh, module)
    _finish(draft, id_)


@click.command(epilog="Example: gitmesh choose postgres-database postgres@sparta")
@click.argument("contract", shell_complete=complete.contracts)
@click.argument("provider", shell_complete=complete.contract_providers)
@repo_option
def choose(contract: str, provider: str, repo: Path | None) -> None:
    """Choose who answers a CONTRACT for the whole mesh.

    PROVIDER is called module@node and counts where the rules leave a choice: pins, and a provider on the
    consumer's own node, come first. It is written to mesh.yaml.
    """
    opened = open_mesh(repo)
    mesh = opened.mesh
    if contract not in mesh.contracts:
        raise Misused(f"no contract is called `{contract}`{nearest(contract, list(mesh.contracts))}")
    check_provider(mesh, contract, provider)
    if "mesh.yaml" not in opened.files:
        raise Failure("mesh.yaml is refused itself", "gitmesh check")
    draft = Draft(opened, "mesh.yaml", opened.files["mesh.yaml"])
    draft.put(["choose", contract], provider)
    _finish(draft, None)


def _finish(draft: Draft, id_: str | None) -> None:
    """Write, say so, and say what the assignment is still refused for."""
    if not draft.changed:
        click.echo(f"{draft.path} says so already; nothing was written")
        return
    after = draft.after()
    draft.save()
    click.echo(f"wrote {draft.path}")
    if draft.spread is not None:
        click.echo(f"  it takes the place of {draft.spread} for {id_}, and begins with what that said")
    rest = [each for each in after.resolve()[1] if _is_about(each, draft.path, id_)]
    if rest:
        click.echo("\nstill to answer:\n")
        click.echo(render(rest, after.files, colour=colourful(sys.stdout)))
    _next()


def _is_about(refusal: Refusal, path: str, id_: str | None) -> bool:
    if id_ is None:
        return refusal.at.file == path
    return refusal.at.file == path or refusal.subject == id_ or refusal.subject.startswith(f"{id_}.")


def _next() -> None:
    click.echo("next: git diff, gitmesh check")
