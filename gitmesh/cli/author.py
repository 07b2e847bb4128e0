"""What who writes a mesh repo's files asks: what each file may say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gitmesh.cli.draft import known_module, known_node
from gitmesh.cli.main import Failure, Misused, nearest
from gitmesh.cli.opened import open_mesh
from gitmesh.cli.options import repo_option
from gitmesh.core.json_schema import contract_schema
from gitmesh.core.model import Json, Mesh
from gitmesh.fsops import Root
from gitmesh.repo import editor
from gitmesh.repo import schema as schemas


def _whats(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    kinds = [each for each in schemas.KINDS if each.startswith(incomplete)]
    try:
        mesh = open_mesh(ctx.params.get("repo")).mesh
    except Exception:  # a mesh repo that does not load offers nothing: Tab is no place for an error
        return [CompletionItem(each) for each in kinds]
    return [CompletionItem(each) for each in (*kinds, *mesh.assignments) if each.startswith(incomplete)]


@click.command(epilog="Example: gitmesh schema gitea@athens")
@click.argument("what", required=False, metavar="[KIND|ASSIGNMENT|FILE]", shell_complete=_whats)
@click.argument("name", required=False, metavar="[CONTRACT]")
@click.option("--write", is_flag=True, help="Write every schema of the mesh for an editor.")
@repo_option
def schema(what: str | None, name: str | None, write: bool, repo: Path | None) -> None:
    """Print the JSON Schema of a kind of file, or of one file; without any, list the kinds.

    An ASSIGNMENT, module@node, and a FILE of the mesh repo have the types, providers and names of this mesh.
    `contract CONTRACT` is what one contract asks and answers.
    """
    if write:
        if what is not None:
            raise Misused("--write writes every schema; name none beside it", "gitmesh schema --write")
        _write(repo)
    elif what is None:
        _list()
    else:
        click.echo(json.dumps(_named(repo, what, name), indent=2, ensure_ascii=False))


def _list() -> None:
    width = max(map(len, schemas.KINDS))
    for each in schemas.KINDS:
        click.echo(f"{each:<{width}}  {schemas.schema(each)['title']}")


def _named(repo: Path | None, what: str, name: str | None) -> Mapping[str, Json]:
    if name is not None:
        if what != "contract":
            raise Misused("only `contract` is followed by a name", "gitmesh schema contract NAME")
        return _contract(open_mesh(repo).mesh, name)
    if what in schemas.KINDS:
        return schemas.schema(what)
    if "@" in what:
        return _assignment(open_mesh(repo).mesh, what)
    if "/" in what or what.endswith(".yaml"):
        found = editor.schema_of_file(open_mesh(repo).mesh, what)
        if found is None:
            raise Misused(f"gitmesh reads no file called `{what}`", "gitmesh schema")
        return found
    said = f"no kind of file is called `{what}`{nearest(what, schemas.KINDS)}"
    raise Misused(said, "gitmesh schema")


def _contract(mesh: Mesh, name: str) -> Mapping[str, Json]:
    if name in mesh.contracts:
        return contract_schema(mesh.contracts[name])
    if f"contracts/{name}" in mesh.broken:
        raise Failure(f"contract `{name}` is refused itself", "gitmesh check")
    raise Misused(f"no contract is called `{name}`{nearest(name, list(mesh.contracts))}")


def _assignment(mesh: Mesh, id_: str) -> Mapping[str, Json]:
    module, _, node = id_.partition("@")
    known_module(mesh, module)
    known_node(mesh, node)
    return editor.schema_of_assignment(mesh, module, node)


def _write(repo: Path | None) -> None:
    """Write what has changed, and remove the schemas of modules that are no more."""
    opened = open_mesh(repo)
    made = editor.editor_schemas(opened.mesh)
    with Root(opened.folder) as root:
        for each in made:
            root.write(each.path, each.blob)
        for path in _written(root) - {each.path for each in made}:
            root.remove(path)
        click.echo(f"wrote {len(made)} schemas to {editor.FOLDER}/")
        _settle(root, made)


def _written(root: Root) -> set[str]:
    folders = [editor.FOLDER, f"{editor.FOLDER}/assignment", f"{editor.FOLDER}/values"]
    names = {f"{folder}/{name}" for folder in folders for name in root.entries(folder)}
    return {each for each in names if each.endswith(".json")}


def _settle(root: Root, made: list[editor.EditorSchema]) -> None:
    """Let the workspace's settings name the schemas; those with comments are a person's to edit."""
    before = root.read(editor.SETTINGS) if root.exists(editor.SETTINGS) else None
    after = editor.with_schemas(before, made)
    if after is None:
        click.echo(f"{editor.SETTINGS} is no plain JSON and stays as it is; let it say:")
        click.echo(json.dumps({"yaml.schemas": {each.path: each.files for each in made}}, indent=2))
    elif after != before:
        root.write(editor.SETTINGS, after)
        click.echo(f"wrote {editor.SETTINGS}")
