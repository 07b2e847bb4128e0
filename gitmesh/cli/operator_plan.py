"""`gitmesh plan`: what a change of the mesh repo will do to every node, and why (G2, G4)."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitmesh.cli.complete import revisions
from gitmesh.cli.main import Failure, Misused, colourful
from gitmesh.cli.options import formats, repo_option
from gitmesh.core.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from gitmesh.cli.opened import Opened
    from gitmesh.core.plan_mesh import MeshPlan


class _Refused(Exception):
    """One of the two commits does not resolve."""

    def __init__(self, side: str, opened: Opened, refusals: tuple[Refusal, ...]) -> None:
        super().__init__(side)
        self.side, self.opened, self.refusals = side, opened, refusals


@click.command(epilog="Example: gitmesh plan origin/main HEAD --format markdown")
@click.argument("before", metavar="[BASE", required=False, shell_complete=revisions)
@click.argument("after", metavar="[HEAD]]", required=False, shell_complete=revisions)
@repo_option
@click.option("--base", metavar="REV", shell_complete=revisions, help="The same as BASE.")
@click.option("--head", metavar="REV", shell_complete=revisions, help="The same as HEAD.")
@formats("text", "json", "markdown")
def plan(
    before: str | None, after: str | None, repo: Path | None, base: str | None, head: str | None, form: str
) -> None:
    """Say what every node will do once HEAD is deployed over BASE.

    BASE is what the nodes run: the commit that origin's deploy branch names as last fetched, else
    origin/main. HEAD is the files as they lie there. It needs no key and no secret. Exit code 0: planned,
    3: one of the two is refused, 1: one could not be read.
    """
    from gitmesh.cli.working import working
    from gitmesh.repo.transport import RepoError
    from gitmesh.report import json as refusal_json
    from gitmesh.report import plan as faces

    if (before and base) or (after and head):
        raise Misused("BASE and HEAD are given twice", "gitmesh plan BASE HEAD")
    try:
        with working() as say:
            old, new, planned = _planned(repo, before or base, after or head, say)
    except (RepoError, Failure) as error:
        if form != "json":
            raise
        failed = refusal_json.failed(error.message, error.command)
        click.echo(refusal_json.dump(faces.not_planned(failed, None)))
        sys.exit(1)
    except _Refused as refused:
        click.echo(_refused(refused, form), nl=False)
        which = refused.opened.commit or "the working tree"
        click.echo(f"error: {refused.side} ({which}) does not resolve", err=True)
        sys.exit(3)
    match form:
        case "json":
            click.echo(json.dumps(faces.as_json(planned, old.commit, new.commit, old.where)))
        case "markdown":
            click.echo(faces.as_markdown(planned, old.where), nl=False)
        case _ if colourful(sys.stdout):
            click.echo(faces.as_tree(planned, old.where, shutil.get_terminal_size().columns), nl=False)
        case _:
            click.echo(faces.as_text(planned, old.where), nl=False)


def _planned(
    repo: Path | None, base: str | None, head: str | None, say: Callable[[str], None]
) -> tuple[Opened, Opened, MeshPlan]:
    """Both sides, and what lies between them. Raises `_Refused`, Failure and RepoError."""
    from gitmesh.cli.opened import open_mesh
    from gitmesh.core.plan_mesh import plan_mesh
    from gitmesh.repo.approved import approved_commit

    say("reading head")
    new = open_mesh(repo, head)
    base = base or approved_commit(new.folder, new.mesh.branch) or "origin/main"
    say("reading base")
    old = open_mesh(repo, base)
    say("resolving base")
    was, refusals = old.resolve()
    if refusals:
        raise _Refused("base", old, refusals)
    # What base is given would stand when head comes: else head could be given the same port anew.
    new = replace(new, record=was.record)
    say("resolving head")
    now, refusals = new.resolve()
    if refusals:
        raise _Refused("head", new, refusals)
    say("comparing")
    return old, new, plan_mesh(was, now)


def _refused(refused: _Refused, form: str) -> str:
    from gitmesh.report import json as refusal_json
    from gitmesh.report import markdown, terminal
    from gitmesh.report import plan as faces

    opened, refusals = refused.opened, refused.refusals
    match form:
        case "json":
            said = refusal_json.refused(refusals, opened.files, opened.commit, opened.where)
            return refusal_json.dump(faces.not_planned(said, refused.side)) + "\n"
        case "markdown":
            return markdown.render(refusals, opened.files)
        case _:
            return terminal.render(refusals, opened.files, colour=colourful(sys.stdout))
