"""`gitmesh graph`: the mesh as a picture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click

from gitmesh.cli.complete import assignments
from gitmesh.cli.main import Failure, Misused, colourful, nearest
from gitmesh.cli.options import formats, repo_option


@click.command(epilog="Example: gitmesh graph gitea@athens --format dot > gitea.dot")
@click.argument("assignment", required=False, shell_complete=assignments)
@repo_option
@formats("mermaid", "dot", "svg", "json", told="The language of the graph; svg is drawn by Graphviz.")
def graph(assignment: str | None, repo: Path | None, form: str) -> None:
    """Draw who requires what of whom: the whole mesh, or one ASSIGNMENT with its neighbours.

    Dashed is what comes with a credential or waits for an answer. Exit code 3: the mesh is refused, which
    is said instead.
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
    match form:
        case "json":
            text = json.dumps(drawn.as_json(shown)) + "\n"
        case "dot":
            text = drawn.as_dot(shown)
        case "svg":
            text = _svg(drawn.as_dot(shown))
        case _:
            text = drawn.as_mermaid(shown)
    click.echo(text, nl=False)


def _svg(graph: str) -> str:
    """A graph in DOT as Graphviz draws it. Its text stays text, and is that of the names of a mesh."""
    try:
        done = subprocess.run(["dot", "-Tsvg"], input=graph, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise Failure(
            "an SVG is drawn by Graphviz, and there is no `dot` on PATH", "apt-get install graphviz"
        ) from missing
    if done.returncode:
        raise Failure(f"Graphviz could not draw the graph: {done.stderr.strip()}")
    return done.stdout
