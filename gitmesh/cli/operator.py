"""What an operator asks of a mesh repo."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitmesh import explain as pages
from gitmesh.cli.complete import explained
from gitmesh.cli.main import Misused, cli, colourful, nearest
from gitmesh.cli.options import format_option, formats, repo_option
from gitmesh.cli.told import told_as
from gitmesh.core.refusal import Code, Refusal
from gitmesh.report import page

if TYPE_CHECKING:
    from gitmesh.cli.opened import Opened
    from gitmesh.core.resolve import Resolution


@click.command(epilog="Example: gitmesh check --revision HEAD --format json")
@repo_option
@click.option("--revision", metavar="REV", help="A commit, branch or tag; else the files as they lie there.")
@click.option("--staged", is_flag=True, help="What `git commit` would take, as a pre-commit hook asks.")
@formats(
    "text",
    "json",
    "github",
    "sarif",
    "markdown",
    told="How to print the result; github: as annotations of a workflow, and its job's summary.",
)
def check(repo: Path | None, revision: str | None, staged: bool, form: str) -> None:
    """Resolve the mesh, or refuse it and say everything at once.

    It needs no key and no secret. Ports, providers and identities that were given stay: they are taken
    from origin's deploy branch as last fetched. Exit code 0: resolved, 3: refused, 1: it could not be read.
    """
    from gitmesh.cli.opened import open_mesh

    if staged and revision is not None:
        raise Misused(
            "--staged is no commit, so that --revision can't be given as well", "gitmesh check --staged"
        )
    with told_as(form):
        opened = open_mesh(repo, revision, staged=staged)
    resolution, refusals = opened.resolve()
    if refusals:
        click.echo(_refused(opened, refusals, form), nl=False)
        sys.exit(3)
    click.echo(_resolved(opened, resolution, form), nl=False)


def _refused(opened: Opened, refusals: tuple[Refusal, ...], form: str) -> str:
    from gitmesh.cli.summarized import summarize
    from gitmesh.report import github, sarif, terminal
    from gitmesh.report import json as as_json

    match form:
        case "json":
            result = as_json.refused(refusals, opened.files, opened.commit, opened.where)
            return as_json.dump(result) + "\n"
        case "github":
            summarize(_comment(opened, refusals))
            return github.render(refusals, opened.files)
        case "sarif":
            return sarif.render(refusals, opened.files)
        case "markdown":
            return _comment(opened, refusals)
        case _:
            text = terminal.render(refusals, opened.files, colour=colourful(sys.stdout))
            return f"{text}record: {opened.where}\n"


def _comment(opened: Opened, refusals: tuple[Refusal, ...]) -> str:
    from gitmesh.report import markdown

    return f"{markdown.render(refusals, opened.files)}\nRecord: {markdown.code(opened.where)}\n"


def _resolved(opened: Opened, resolution: Resolution, form: str) -> str:
    from gitmesh.report import json as as_json
    from gitmesh.report import sarif

    counts = {
        "assignments": len(resolution.mesh.assignments),
        "nodes": len(resolution.mesh.nodes),
        "requirements": len(resolution.answers),
        "secrets": len(resolution.secrets),
    }
    if form == "json":
        return as_json.dump(as_json.resolved(counts, opened.where, opened.commit)) + "\n"
    if form == "sarif":
        return sarif.render((), opened.files)
    said = {name: f"{number} {name if number != 1 else name[:-1]}" for name, number in counts.items()}
    line = f"{said['assignments']} on {said['nodes']}, {said['requirements']}, {said['secrets']}"
    return f"resolved: {line}\nrecord: {opened.where}\n"


@click.command(epilog="Example: gitmesh explain gitea@athens.database.password")
@click.argument(
    "code", metavar="[CODE|ASSIGNMENT[.REQUIREMENT[.FIELD]]]", required=False, shell_complete=explained
)
@repo_option
@format_option
def explain(code: str | None, repo: Path | None, form: str) -> None:
    """Say what the CODE of a refusal means, or why an ASSIGNMENT's requirement has its answer.

    Of a code: what it means and what the ways out are; without one, list them all. Of a requirement: who
    answers, by which rule, who else could have, and what is recorded. A secret is never shown.
    """
    if code is None:
        _list(form)
        return
    if "@" in code:
        from gitmesh.cli.explained import explain_answer

        explain_answer(code.strip(), repo, form)
        return
    code = code.strip().removeprefix("refused[").removesuffix("]").lower().replace("_", "-")
    known = [each.value for each in Code]
    if code not in known:
        words = [each for each in known if code and code in each.split("-")]
        hint = nearest(code, known) or (
            f"; there is {', '.join(f'`{each}`' for each in words)}" if words else ""
        )
        raise Misused(f"no refusal has the code `{code}`{hint}", "gitmesh explain")
    if form == "json":
        click.echo(json.dumps({"v": 1, **_row(code), "page": pages.page(code)}))
    elif colourful(sys.stdout):
        page.show(pages.page(code), sys.stdout)
    else:
        click.echo(pages.page(code), nl=False)


def _list(form: str) -> None:
    if form == "json":
        click.echo(json.dumps({"v": 1, "codes": [_row(each.value) for each in Code]}))
        return
    width = max(len(each.value) for each in Code)
    for each in Code:
        click.echo(f"{each.value:<{width}}  {pages.summary(each.value)}")


def _row(code: str) -> dict[str, str]:
    return {"code": code, "rule": pages.rule(code), "summary": pages.summary(code)}


@click.command(epilog="Example: gitmesh completion bash > ~/.local/share/bash-completion/completions/gitmesh")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes gitmesh in a SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "gitmesh", "_GITMESH_COMPLETE").source())
