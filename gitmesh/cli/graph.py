"""`gitmesh graph`: the mesh as a picture."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gitmesh.cli.complete import assignments
from gitmesh.cli.main import Misused, colourful, nearest
from gitmesh.cli.options import repo_option


@click.command(epilog="Example: gitmesh graph gitea@athens --format dot > gitea.dot")
@click.argument("assignment", required=False, shell_complete=assignments)
@repo_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "dot", "json"]),
    default="mermaid",
    show_default=True,
    help="The language of the graph.",
)
def graph(assignment: str | None, repo: Path | None, form: str) -> None:
    """Draw who requires what of whom: the whole mesh, or one ASSIGNMENT with its neighbours.

    Dashed is what comes with a credential. Exit code 3: the mesh is refused, which is said instead.
    """
    from gitmesh.cli.opened import open_mesh
    from gitmesh.report import graph as drawn
    from gitmesh.report import terminal

    opened = open_mesh(repo)
    known = opened.mesh.assignments
    if assignment is not None and assignment not in known:
        raise Misused(f"no assignment is called `{assignment}`{nearest(assignment, list(known))}")
    resolution, refusals = opened.resolve()
    if refusals:
        click.echo(terminal.render(refusals, opened.files, colour=colourful(sys.stderr)), nl=False, err=True)
        sys.exit(3)
    shown = drawn.graph(resolution, assignment)
    if form == "json":
        click.echo(json.dumps(drawn.as_json(shown)))
    else:
        click.echo(drawn.as_dot(shown) if form == "dot" else drawn.as_mermaid(shown), nl=False)
