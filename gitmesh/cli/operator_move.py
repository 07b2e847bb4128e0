"""Where things are: `place` says it for a directory or a port, `move` for an assignment as a whole."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import click

from gitmesh.cli import complete
from gitmesh.cli.draft import (
    Draft,
    is_pinnable,
    known_assignment,
    known_module,
    known_node,
    known_requirement,
)
from gitmesh.cli.main import Failure, Misused
from gitmesh.cli.opened import Opened, open_mesh
from gitmesh.cli.options import format_option, repo_option
from gitmesh.cli.told import told_as
from gitmesh.cli.written import finish
from gitmesh.core.identity import identity_of
from gitmesh.core.model import Assignment, Json, Kind, Mesh, Requirement
from gitmesh.core.resolve import Resolution
from gitmesh.repo.edit import Uneditable, drop, put
from gitmesh.repo.load_assignments import PLACED


@click.command(epilog="Example: gitmesh place gitea@athens data /mnt/disk2/gitea")
@click.argument("assignment", shell_complete=complete.assignments)
@click.argument("requirement", shell_complete=complete.placeable)
@click.argument("where", metavar="PATH|NUMBER", required=False)
@click.option("--unset", is_flag=True, help="Back to where the node itself puts it.")
@repo_option
@format_option
def place(
    assignment: str, requirement: str, where: str | None, unset: bool, repo: Path | None, form: str
) -> None:
    """Say where a REQUIREMENT of an ASSIGNMENT is on its node: a directory's PATH, or a port's NUMBER.

    Nothing is moved: a directory that holds data is taken from its new place once the data is there.
    """
    with told_as(form):
        if unset is (where is not None):
            raise Misused("give a PATH, a NUMBER or --unset, one of them")
        opened = open_mesh(repo)
        standing = known_assignment(opened.mesh, assignment)
        module = known_module(opened.mesh, standing.module)
        wanted = known_requirement(module, requirement)
        if wanted.kind is not Kind.HOST or wanted.contract not in PLACED:
            able = [each.name for each in module.requires.values() if each.contract in PLACED]
            listed = ", ".join(f"`{each}`" for each in able) or "nothing"
            raise Misused(f"`{requirement}` is nothing that is placed; `{module.name}` can place {listed}")
        draft = Draft.of(opened, standing.module, standing.node)
        if where is None:
            draft.drop(["place", requirement])
        else:
            draft.put(["place", requirement], _where(wanted, where))
        finish(opened, {draft.path: draft.blob}, [assignment], form)


def _where(requirement: Requirement, text: str) -> Json:
    """The place that `text` says. Raises Misused."""
    if requirement.contract == "port":
        if text.isascii() and text.isdigit() and 1 <= int(text) <= 65535:
            return int(text)
        raise Misused(f"`{requirement.name}` is a port, and is placed at a number from 1 to 65535")
    path = PurePosixPath(text)
    if path.is_absolute() and ".." not in path.parts and str(path) == text:
        return text
    raise Misused(f"`{requirement.name}` is placed at an absolute path, such as /mnt/disk2/data")


@click.command(epilog="Example: gitmesh move gitea@athens delphi")
@click.argument("assignment", shell_complete=complete.assignments)
@click.argument("node", shell_complete=complete.nodes)
@repo_option
@format_option
def move(assignment: str, node: str, repo: Path | None, form: str) -> None:
    """Move an ASSIGNMENT to NODE, with its identity, its values and its consumers.

    Its database and its logins stay what they are, since it keeps its name there. Its directories have to be
    copied: on the new node it waits until they are there. All of it is one commit.
    """
    with told_as(form):
        opened = open_mesh(repo)
        standing = known_assignment(opened.mesh, assignment)
        known_node(opened.mesh, node)
        path = _own_file(opened, standing, node)
        new = f"{standing.module}@{node}"
        resolution, _ = opened.resolve()
        changes: dict[str, bytes | None] = {path: None}
        changes[f"assignments/{node}/{standing.module}.yaml"] = _moved(opened, resolution, standing, path)
        changes |= _renamed(opened, resolution, standing.id, new)
        finish(opened, changes, [new], form, _to_do(opened.mesh, standing, new))


def _own_file(opened: Opened, standing: Assignment, node: str) -> str:
    """The file that the assignment stands in. Raises Misused where it has none, or can't go to `node`."""
    if node == standing.node:
        raise Misused(f"{standing.id} is on `{node}` already")
    if f"{standing.module}@{node}" in opened.mesh.assignments:
        raise Misused(f"`{standing.module}` is assigned to `{node}` already, and is at most once on a node")
    path = f"assignments/{standing.node}/{standing.module}.yaml"
    if path not in opened.files:
        raise Failure(f"{standing.id} comes from {standing.at.file}; edit that, or the nodes' labels")
    return path


def _moved(opened: Opened, resolution: Resolution, standing: Assignment, path: str) -> bytes:
    """The assignment's file as it is on its new node: it keeps its identity, and says so (B14, G8)."""
    identity = opened.record.of(standing.id).as_ or identity_of(standing, None)
    blob = _edited(path, opened.files[path], ["as"], identity)
    # What was said of the move before this one is no longer so.
    blob = drop(blob, ["moved"])
    for secret in resolution.secrets.values():
        name = secret.id.rpartition(".")[2]
        # A handed value is encrypted under its name, which the new assignment goes on reading.
        if secret.assignment == standing.id and secret.handed == secret.id and name not in standing.values:
            blob = _edited(path, blob, ["values", name], secret.handed)
    return blob


def _renamed(opened: Opened, resolution: Resolution, old: str, new: str) -> dict[str, bytes | None]:
    """The other files that name the assignment: its consumers' pins, the mesh's choices, acts on secrets."""
    changed: dict[str, bytes] = {}

    def edit(path: str, keys: list[str], value: Json) -> None:
        changed[path] = _edited(path, changed.get(path, opened.files[path]), keys, value)

    for (consumer, name), answered in sorted(resolution.answers.items(), key=lambda item: item[0]):
        each = opened.mesh.assignments[consumer]
        if answered.by == old and consumer != old and is_pinnable(answered.requirement):
            # A consumer without a pin has to say that it follows: its recorded provider would be gone.
            edit(each.at.file, ["pins", name], new)
    for contract, chosen in opened.mesh.choose.items():
        if chosen == old:
            edit("mesh.yaml", ["choose", contract], new)
    for path, acts in (("rotations.yaml", opened.mesh.rotations), ("reveals.yaml", opened.mesh.reveals)):
        for secret, act in acts.items():
            if secret.rpartition(".")[0] == old:
                edit(path, [f"{new}.{secret.rpartition('.')[2]}"], act)
                changed[path] = drop(changed[path], [secret])
    return dict(changed)


def _edited(path: str, blob: bytes, keys: list[str], value: Json) -> bytes:
    try:
        return put(blob, keys, value)
    except Uneditable as error:
        raise Failure(f"{path}: {error}", "gitmesh check") from error


def _to_do(mesh: Mesh, standing: Assignment, new: str) -> list[str]:
    """What is left for a person: the data that no commit moves."""
    requires = mesh.modules[standing.module].requires.values()
    directories = [each.name for each in requires if each.kind is Kind.HOST and each.contract == "directory"]
    notes = ["it keeps its identity there, so that its databases and logins stay"]
    if directories:
        listed = ", ".join(directories)
        notes.append(f"its directories stay on {standing.node}: {listed}; copy them while it is stopped,")
        notes.append(f"then write `moved: {{data: true}}` in the file of {new}; until then it waits there")
    if standing.place:
        notes.append(f"see whether its placements are right for the new node: {', '.join(standing.place)}")
    return notes
