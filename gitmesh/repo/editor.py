"""What an editor is given: the schemas of one mesh as files, and which of its files each is for.

A YAML language server maps schemas to files by patterns of names and knows nothing of a mesh, so that each
module has a schema of its own for its assignments (docs/editor.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from gitmesh.core.assignment_schema import assignment_schema, spread_schema, values_schema
from gitmesh.core.model import Assignment, Json, Mesh, Module
from gitmesh.core.refusal import At
from gitmesh.repo.schema import schema

FOLDER = ".gitmesh/schemas"
"""Where they are written; git ignores it."""
SETTINGS = ".vscode/settings.json"
_KEY = "yaml.schemas"

_PLAIN = {
    "mesh": "mesh.yaml",
    "contract": "contracts/*.yaml",
    "module": "modules/*/module.yaml",
    "node": "nodes/*.yaml",
    "rotations": "rotations.yaml",
    "purges": "purges.yaml",
    "reveals": "reveals.yaml",
    "catalogue": "catalogue.yaml",
    "seats": "seats.yaml",
    "ratchet": "catalogue-ratchet.yaml",
}
"""The kinds of file that say the same in every mesh, and which files they are."""


@dataclass(frozen=True, slots=True)
class EditorSchema:
    """A schema, where it is written, and the files that it is for (a pattern of their names)."""

    path: str
    files: str
    schema: Mapping[str, Json]

    @property
    def blob(self) -> bytes:
        """The file's bytes."""
        return (json.dumps(self.schema, indent=2, ensure_ascii=False) + "\n").encode()


def editor_schemas(mesh: Mesh) -> list[EditorSchema]:
    """Every schema of a mesh. What a refused module lets its assignments say is open until it is mended."""
    made = [EditorSchema(f"{FOLDER}/{kind}.json", files, schema(kind)) for kind, files in _PLAIN.items()]
    made.append(
        EditorSchema(f"{FOLDER}/spread.json", "spreads/*.yaml", spread_schema(schema("spread"), mesh))
    )
    for name in _modules(mesh):
        module = mesh.modules.get(name)
        for kind, files, of_module in _BY_MODULE:
            general = schema(kind)
            made.append(
                EditorSchema(
                    f"{FOLDER}/{kind}/{name}.json",
                    files.format(name),
                    general if module is None else of_module(general, mesh, module),
                )
            )
    return made


_BY_MODULE: tuple[tuple[str, str, Callable[[Mapping[str, Json], Mesh, Module], Mapping[str, Json]]], ...] = (
    ("assignment", "assignments/*/{}.yaml", assignment_schema),
    ("values", "values/{}.yaml", values_schema),
)


def _modules(mesh: Mesh) -> list[str]:
    broken = {each.removeprefix("modules/") for each in mesh.broken if each.startswith("modules/")}
    return sorted(mesh.modules.keys() | broken)


def schema_of_file(mesh: Mesh, path: str) -> Mapping[str, Json] | None:
    """What the file at `path` of a mesh repo may say; None where gitmesh reads no such file."""
    match PurePosixPath(path).parts:
        case ["assignments", node, name] if name.removesuffix(".yaml") in mesh.modules:
            return schema_of_assignment(mesh, name.removesuffix(".yaml"), node)
        case ["catalogue", _, *inside] if inside:
            path = "/".join(inside)
    return next((each.schema for each in editor_schemas(mesh) if _is_one_of(path, each.files)), None)


def _is_one_of(path: str, files: str) -> bool:
    return path.count("/") == files.count("/") and PurePosixPath(path).match(files)


def schema_of_assignment(mesh: Mesh, module: str, node: str) -> Mapping[str, Json]:
    """What the assignment of a known module to `node` may say, whether it stands there already or not."""
    new = Assignment(module, node, At(f"assignments/{node}/{module}.yaml"))
    standing = mesh.assignments.get(new.id, new)
    return assignment_schema(schema("assignment"), mesh, mesh.modules[module], standing)


def with_schemas(settings: bytes | None, schemas: Iterable[EditorSchema]) -> bytes | None:
    """The workspace's settings for VS Code with `yaml.schemas` naming these, and all else as it was; the
    same bytes where that says so already. None where they are no plain JSON map: their comments are a
    person's, and would be lost."""
    try:
        said = {} if settings is None else json.loads(settings)
    except ValueError:
        return None
    if not isinstance(said, dict) or not isinstance(said.get(_KEY, {}), dict):
        return None
    others = {path: files for path, files in said.get(_KEY, {}).items() if not path.startswith(FOLDER)}
    wanted = {**said, _KEY: {**{each.path: each.files for each in schemas}, **others}}
    if settings is not None and wanted == said:
        return settings
    return (json.dumps(wanted, indent=2, ensure_ascii=False) + "\n").encode()
