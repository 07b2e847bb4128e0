"""`gitmesh plan`: what a change of the mesh repo will do to every node, and why (G2, G4)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gitmesh.cli.options import repo_option


@click.command(epilog="Example: gitmesh plan --base origin/main --format markdown")
@repo_option
@click.option(
    "--base", default="origin/main", show_default=True, metavar="REV", help="What the nodes run now."
)
@click.option("--head", metavar="REV", help="A commit, branch or tag; else the files as they lie there.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json", "markdown"]),
    default="terminal",
    show_default=True,
    help="How to print the result.",
)
def plan(repo: Path | None, base: str, head: str | None, form: str) -> None:
    """Say what every node will do once HEAD is deployed over BASE.

    It needs no key and no secret. Exit code 0: planned, 3: one of the two is refused, 1: one could not be
    read.
    """
    from gitmesh.cli.opened import open_mesh
    from gitmesh.core.compose import compose
    from gitmesh.core.plan import plan as compare
    from gitmesh.report import json as refusal_json
    from gitmesh.report import markdown, terminal
    from gitmesh.report import plan as faces

    composed = []
    for revision in (base, head):
        opened = open_mesh(repo, revision)
        resolution, refusals = opened.resolve()
        if refusals and form == "json":
            said = refusal_json.refused(refusals, opened.files, opened.commit, opened.where)
            click.echo(refusal_json.dump(said))
        elif refusals and form == "markdown":
            click.echo(markdown.render(refusals, opened.files), nl=False)
        elif refusals:
            click.echo(terminal.render(refusals, opened.files, colour=False), nl=False)
        if refusals:
            click.echo(f"error: {revision or 'the working tree'} does not resolve", err=True)
            sys.exit(3)
        composed.append(compose(resolution))
    old, new = composed
    plans = {node: compare(old.get(node), new.get(node)) for node in sorted(old.keys() | new.keys())}
    plans = {node: each for node, each in plans.items() if each}
    match form:
        case "json":
            click.echo(json.dumps(faces.as_json(plans, opened.where)))
        case "markdown":
            click.echo(faces.as_markdown(plans, opened.where), nl=False)
        case _:
            click.echo(faces.as_text(plans, opened.where), nl=False)
