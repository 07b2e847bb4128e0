"""`gitmesh explain gitea@athens.database`: why a requirement has its answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from gitmesh.cli.main import Failure, Misused, nearest
from gitmesh.cli.opened import open_mesh
from gitmesh.core.explained import Explained, explained
from gitmesh.core.model import Mesh
from gitmesh.report import explained as face


def explain_answer(subject: str, repo: Path | None, form: str) -> None:
    """Print the answers that `subject`, `module@node[.requirement[.field]]`, names.

    Raises `Misused` for a name that is not there, `Failure` where the module itself is refused.
    """
    opened = open_mesh(repo)
    assignment, requirement, field = _named(opened.mesh, subject)
    resolution, refusals = opened.resolve()
    found = explained(resolution, opened.record, assignment, requirement)
    if field is not None:
        found = (_only(found[0], field),)
    ids = {assignment, *(each.id for each in found)}
    about = [each for each in refusals if each.subject in ids]
    if form == "json":
        click.echo(json.dumps(face.as_json(found, about, opened.where)))
    else:
        click.echo(face.as_text(found, about, opened.where), nl=False)


def _named(mesh: Mesh, subject: str) -> tuple[str, str | None, str | None]:
    """The assignment, requirement and field that `subject` names; the last two may be left out."""
    assignment, _, rest = subject.partition(".")
    requirement, _, field = rest.partition(".")
    held = mesh.assignments.get(assignment)
    if held is None:
        raise Misused(f"no assignment is called `{assignment}`{nearest(assignment, list(mesh.assignments))}")
    module = mesh.modules.get(held.module)
    if module is None:
        raise Failure(f"the module `{held.module}` can't be read", "gitmesh check")
    if requirement and requirement not in module.requires:
        hint = nearest(requirement, list(module.requires))
        raise Misused(
            f"`{held.module}` has no requirement `{requirement}`{hint}", f"gitmesh explain {assignment}"
        )
    return assignment, requirement or None, field or None


def _only(row: Explained, field: str) -> Explained:
    """The same with one field. Raises `Misused` for another."""
    names = [each.name for each in row.parts]
    if field not in names:
        said = nearest(field, names) if names else "; it is not answered"
        raise Misused(f"`{row.id}` has no field `{field}`{said}", f"gitmesh explain {row.id}")
    parts = tuple(each for each in row.parts if each.name == field)
    return replace(row, parts=parts)
