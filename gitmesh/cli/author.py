"""What who writes a mesh repo's files asks: what each kind of file may say."""

from __future__ import annotations

import json

import click
from click.shell_completion import CompletionItem

from gitmesh.cli.main import Misused, nearest


def _kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gitmesh.repo.schema import KINDS

    return [CompletionItem(kind) for kind in KINDS if kind.startswith(incomplete)]


@click.command(epilog="Example: gitmesh schema module > module.schema.json")
@click.argument("kind", required=False, shell_complete=_kinds)
def schema(kind: str | None) -> None:
    """Print the JSON Schema of a KIND of file, for an editor or another validator; without one, list them."""
    from gitmesh.repo import schema as schemas

    if kind is None:
        width = max(map(len, schemas.KINDS))
        for each in schemas.KINDS:
            click.echo(f"{each:<{width}}  {schemas.schema(each)['title']}")
        return
    if kind not in schemas.KINDS:
        said = f"no kind of file is called `{kind}`{nearest(kind, schemas.KINDS)}"
        raise Misused(said, "gitmesh schema")
    click.echo(json.dumps(schemas.schema(kind), indent=2, ensure_ascii=False))
