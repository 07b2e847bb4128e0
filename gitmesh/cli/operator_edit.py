"""Commands that edit a mesh repo's files and keep their comments. Each writes everything or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

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
from gitmesh.cli.main import Failure, Misused, Refused, nearest
from gitmesh.cli.opened import Opened, open_mesh
from gitmesh.cli.options import format_option, repo_option
from gitmesh.cli.told import told_as
from gitmesh.cli.written import finish
from gitmesh.core.assignment_schema import value_schemas
from gitmesh.core.choose import FOR_MESH
from gitmesh.core.model import Mesh, Module
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.document import read


@click.command(epilog="Example: gitmesh assign gitea athens --use smtp --set web.name=git.example.org")
@click.argument("module", shell_complete=complete.modules)
@click.argument("node", shell_complete=complete.nodes)
@click.option("--pin", "pins", multiple=True, metavar="REQUIREMENT=PROVIDER", help="Choose who answers.")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="Give an operator's value.")
@click.option("--use", "uses", multiple=True, metavar="REQUIREMENT", help="Use an optional requirement.")
@click.option("--hold", "seats", multiple=True, metavar="SEAT", help="Let it hold a seat.")
@click.option("--grant", "grants", multiple=True, metavar="GRANT", help="Let it reach beyond its containers.")
@repo_option
@format_option
def assign(
    module: str,
    node: str,
    pins: tuple[str, ...],
    values: tuple[str, ...],
    uses: tuple[str, ...],
    seats: tuple[str, ...],
    grants: tuple[str, ...],
    repo: Path | None,
    form: str,
) -> None:
    """Assign MODULE to NODE, or add to what its assignment says.

    Where several providers could answer a requirement, or a value is missing, a terminal is asked; without
    a terminal an open choice is refused (exit code 3) with the options that would answer. Who answers is
    written as a pin, also where there was nothing to choose, so that another provider, added later, asks
    nobody again.
    """
    with told_as(form):
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
        asked = interactive() and form == "text"
        _choose_all(draft, f"{module}@{node}", asked)
        if asked:
            _ask_values(draft, definition, f"{module}@{node}")
        _pin_all(draft, f"{module}@{node}")
        _finish(draft, f"{module}@{node}", form)


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


def _choose_all(draft: Draft, id_: str, asked: bool) -> None:
    """Ask for every choice that is a person's, and pin each (B4). Raises Refused if nobody is `asked`."""
    _, refusals = draft.after().resolve()
    mine = [each for each in refusals if each.subject == id_ or each.subject.startswith(f"{id_}.")]
    open_choices = {
        each.subject.removeprefix(f"{id_}."): _candidates(each)
        for each in mine
        if each.code is Code.AMBIGUOUS_PROVIDER
    }
    if open_choices and not asked:
        _refuse_choices(id_, open_choices, _open_values(mine, id_))
    for requirement, candidates in open_choices.items():
        draft.put(["pins", requirement], _ask(requirement, candidates))


def _open_values(refusals: Iterable[Refusal], id_: str) -> list[str]:
    """The keys that the assignment gives no value for."""
    return [each.subject.removeprefix(f"{id_}.") for each in refusals if each.code is Code.VALUE_MISSING]


def _ask_values(draft: Draft, module: Module, id_: str) -> None:
    """Ask for each value that is missing; an empty answer leaves it, to be said as still to answer (B5)."""
    after = draft.after()
    known = value_schemas(after.mesh, module)
    mine = [each for each in after.resolve()[1] if each.subject.startswith(f"{id_}.")]
    for key in _open_values(mine, id_):
        while key in known:
            text = click.prompt(f"Value of `{key}` (empty: not now)", default="", show_default=False)
            if not text:
                break
            try:
                draft.put(["values", key], typed_value(after.mesh, module, key, text))
                break
            except Misused as wrong:
                wrong.show()


def _pin_all(draft: Draft, id_: str) -> None:
    """Write who answers each requirement as a pin (B4), but where a named seat or the mesh's `choose` says
    it: those are said once, for everybody, and a pin would take this assignment out of them."""
    resolution, _ = draft.after().resolve()
    for (consumer, name), answered in resolution.answers.items():
        if consumer == id_ and is_pinnable(answered.requirement) and answered.rule != FOR_MESH:
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


def _refuse_choices(
    id_: str, open_choices: dict[str, dict[str, str]], open_values: Sequence[str]
) -> NoReturn:
    lines = []
    for requirement, candidates in open_choices.items():
        lines.append(
            f"{id_}.{requirement}: {len(candidates)} providers and no choice made; choose with one of"
        )
        lines += [f"  --pin {requirement}={provider}    {said}" for provider, said in candidates.items()]
    for key in open_values:
        lines += [f"{id_}.{key}: no value; give it with", f"  --set {key}=VALUE"]
    raise Refused("\n".join((*lines, "nothing was written")))


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
@format_option
def unassign(module: str, node: str, yes: bool, repo: Path | None, form: str) -> None:
    """Remove MODULE from NODE. Its data stays on the node until it is purged.

    A terminal is asked first. What others still use is refused (exit code 3), naming them.
    """
    with told_as(form):
        opened = open_mesh(repo)
        path = f"assignments/{node}/{module}.yaml"
        if path not in opened.files:
            assignment = known_assignment(opened.mesh, f"{module}@{node}")
            raise Failure(f"{assignment.id} comes from {assignment.at.file}; edit that, or the node's labels")
        _refuse_consumers(opened, f"{module}@{node}")
        if interactive() and form == "text" and not yes:
            click.confirm(f"Remove {path}?", abort=True)
        finish(opened, {path: None}, [], form, [f"the data of {module}@{node} stays on {node}"])


def _refuse_consumers(opened: Opened, id_: str) -> None:
    """Refuse to take away what answers others, naming them (B21)."""
    consumers = _consumers(opened, id_)
    if consumers:
        lines = [f"  {each}.{name}    gitmesh pin {each} {name} PROVIDER" for each, name in consumers]
        last = "nothing was written; pin them to another provider or unassign them first"
        raise Refused("\n".join((f"{id_} is still used:", *lines, last)))


def _consumers(opened: Opened, id_: str) -> list[tuple[str, str]]:
    """Whose requirements the assignment answers, its own aside (B21)."""
    resolution, _ = opened.resolve()
    return sorted(key for key, answered in resolution.answers.items() if answered.by == id_ and key[0] != id_)


@click.command(epilog="Example: gitmesh pin gitea@athens database postgres@sparta")
@click.argument("assignment", shell_complete=complete.assignments)
@click.argument("requirement", shell_complete=complete.pinnable)
@click.argument("provider", shell_complete=complete.providers)
@click.option("--also", multiple=True, metavar="ASSIGNMENT.REQUIREMENT", help="Pin this one to it as well.")
@repo_option
@format_option
def pin(
    assignment: str, requirement: str, provider: str, also: tuple[str, ...], repo: Path | None, form: str
) -> None:
    """Choose who answers a REQUIREMENT of an ASSIGNMENT.

    ASSIGNMENT and PROVIDER are called module@node. With --also several are pinned to it at once; all of them
    are written, or none.
    """
    with told_as(form):
        opened = open_mesh(repo)
        drafts: dict[str, Draft] = {}
        for id_, name in [(assignment, requirement), *map(_of_assignment, also)]:
            standing = known_assignment(opened.mesh, id_)
            check_pin(opened.mesh, known_module(opened.mesh, standing.module), name, provider)
            draft = drafts.get(id_) or Draft.of(opened, standing.module, standing.node)
            draft.put(["pins", name], provider)
            drafts[id_] = draft
        notes = [note for id_, draft in drafts.items() for note in _notes(draft, id_)]
        changes = {draft.path: draft.blob for draft in drafts.values()}
        finish(opened, changes, list(drafts), form, notes)


def _notes(draft: Draft, id_: str | None) -> list[str]:
    if draft.spread is None:
        return []
    return [f"it takes the place of {draft.spread} for {id_}, and begins with what that said"]


def _of_assignment(text: str) -> tuple[str, str]:
    id_, dot, name = text.partition(".")
    if not (id_ and dot and name):
        raise Misused("--also takes ASSIGNMENT.REQUIREMENT, such as gitea@athens.database")
    return id_, name


@click.command(
    "set",
    context_settings={"ignore_unknown_options": True},
    epilog="Example: gitmesh set gitea@athens web.name git.example.org",
)
@click.argument("assignment", metavar="ASSIGNMENT|MODULE", shell_complete=complete.assignments_and_modules)
@click.argument("key", shell_complete=complete.keys)
@click.argument("value", type=click.UNPROCESSED, required=False)
@click.option("--unset", is_flag=True, help="Take the value away from where it would be written.")
@click.option("--mesh", "for_mesh", is_flag=True, help="For every assignment of MODULE.")
@click.option("--label", metavar="LABEL", help="For the assignments of MODULE on nodes with this label.")
@repo_option
@format_option
def set_value(
    assignment: str,
    key: str,
    value: str | None,
    unset: bool,
    for_mesh: bool,
    label: str | None,
    repo: Path | None,
    form: str,
) -> None:
    """Give an ASSIGNMENT an operator's VALUE, or take it away with --unset.

    KEY is a requirement, `workers`, or one of its asks, `web.name`; ASSIGNMENT is module@node. VALUE is read
    as YAML, so that 4 is a number and true a boolean; where text is wanted, it is text.

    With --mesh or --label a MODULE is named, and the value is written once for many (values/MODULE.yaml); an
    assignment's own value comes first, then its label's, then the mesh's.
    """
    with told_as(form):
        if unset is (value is not None):
            raise Misused("give a VALUE or --unset, one of them")
        if for_mesh and label is not None:
            raise Misused("give --mesh or --label, one of them")
        if for_mesh or label is not None:
            _set_shared(repo, assignment, key, value, label, form)
            return

    def edit(draft: Draft, mesh: Mesh, module: Module) -> None:
        if value is None:
            check_key(mesh, module, key)
            draft.drop(["values", key])
        else:
            draft.put(["values", key], typed_value(mesh, module, key, value))

    _edit(repo, assignment, edit, form)


def _set_shared(
    repo: Path | None, module: str, key: str, value: str | None, label: str | None, form: str
) -> None:
    """Write a value once for the mesh, or for a label (B5, G17)."""
    opened = open_mesh(repo)
    mesh = opened.mesh
    definition = known_module(mesh, module)
    labels = sorted({each for node in mesh.nodes.values() for each in node.labels})
    if label is not None and label not in labels:
        raise Misused(f"no node has the label `{label}`{nearest(label, labels)}")
    if "." in key:
        raise Misused(f"`{key}` is each assignment's own to say", f"gitmesh set {module}@NODE {key} VALUE")
    path = f"values/{module}.yaml"
    draft = Draft(opened, path, opened.files.get(path, b""))
    keys = ["mesh", key] if label is None else ["labels", label, key]
    if value is None:
        check_key(mesh, definition, key)
        draft.drop(keys)
    else:
        draft.put(keys, typed_value(mesh, definition, key, value))
    touched = [each.id for each in mesh.assignments.values() if each.module == module]
    # A file that says nothing more is gone: an empty one is no layer.
    blob = draft.blob if value is not None or read(path, draft.blob)[0] else None
    finish(opened, {path: blob}, touched, form)


def _edit(repo: Path | None, id_: str, edit: Callable[[Draft, Mesh, Module], None], form: str) -> None:
    with told_as(form):
        opened = open_mesh(repo)
        assignment = known_assignment(opened.mesh, id_)
        module = known_module(opened.mesh, assignment.module)
        draft = Draft.of(opened, assignment.module, assignment.node)
        edit(draft, opened.mesh, module)
        _finish(draft, id_, form)


@click.command(epilog="Example: gitmesh choose postgres-database postgres@sparta")
@click.argument("contract", shell_complete=complete.contracts)
@click.argument("provider", shell_complete=complete.contract_providers)
@repo_option
@format_option
def choose(contract: str, provider: str, repo: Path | None, form: str) -> None:
    """Choose who answers a CONTRACT for the whole mesh.

    PROVIDER is called module@node and counts where the rules leave a choice: pins, and a provider on the
    consumer's own node, come first. It is written to mesh.yaml.
    """
    with told_as(form):
        opened = open_mesh(repo)
        mesh = opened.mesh
        if contract not in mesh.contracts:
            raise Misused(f"no contract is called `{contract}`{nearest(contract, list(mesh.contracts))}")
        check_provider(mesh, contract, provider)
        if "mesh.yaml" not in opened.files:
            raise Failure("mesh.yaml is refused itself", "gitmesh check")
        draft = Draft(opened, "mesh.yaml", opened.files["mesh.yaml"])
        draft.put(["choose", contract], provider)
        _finish(draft, None, form)


def _finish(draft: Draft, id_: str | None, form: str) -> None:
    finish(draft.opened, {draft.path: draft.blob}, [id_] if id_ else [], form, _notes(draft, id_))
