"""What an editor is given: each file has the schema of its own, and finds it by its name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from gitmesh.assets import asset
from gitmesh.core.model import Mesh
from gitmesh.repo.document import read
from gitmesh.repo.editor import FOLDER, SETTINGS, editor_schemas, schema_of_file, with_schemas
from gitmesh.repo.load import load
from gitmesh.repo.schema import KINDS
from tests.core.test_assignment_schema import files_of, meshes

TEMPLATE = asset("mesh-repo-template")
DOCUMENTS = sorted(name for name in files_of(TEMPLATE) if name.endswith(".yaml"))


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return load(files_of(TEMPLATE))[0]


def globbed(path: str, files: str) -> bool:
    """Whether a pattern of `yaml.schemas` covers a path, as the language server reads it."""
    pattern = "[^/]*".join(map(re.escape, files.split("*")))
    return re.fullmatch(f"(.*/)?{pattern}", path) is not None


def mapped(mesh: Mesh, path: str) -> dict[str, Any]:
    """The one schema that the template's settings map a file to."""
    settings = json.loads((TEMPLATE / SETTINGS).read_bytes())["yaml.schemas"]
    [found] = [each for each, files in settings.items() if globbed(path, files)]
    return {each.path: dict(each.schema) for each in editor_schemas(mesh)}[found]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_file_of_the_template_fits_the_schema_that_its_editor_takes(mesh: Mesh, name: str) -> None:
    value, _ = read(name, (TEMPLATE / name).read_bytes())
    for dialect in (Draft202012Validator, Draft7Validator):
        wanted = dialect(mapped(mesh, name))
        assert [each.message for each in wanted.iter_errors(value or {})] == []
        assert not wanted.is_valid({**(value or {}), "misspelt": 1})


def test_the_template_s_settings_are_those_that_schema_write_makes(mesh: Mesh) -> None:
    settings = (TEMPLATE / SETTINGS).read_bytes()
    assert with_schemas(settings, editor_schemas(mesh)) == settings
    assert f"{FOLDER.partition('/')[0]}/" in (TEMPLATE / ".gitignore").read_text().splitlines()
    for name in ("extensions", "tasks"):
        assert json.loads((TEMPLATE / f".vscode/{name}.json").read_bytes())


def test_every_kind_of_file_has_its_schema(mesh: Mesh) -> None:
    assert {
        Path(each.path.removeprefix(f"{FOLDER}/")).parts[0].removesuffix(".json")
        for each in editor_schemas(mesh)
    } == set(KINDS)


READ = re.compile(
    r"mesh\.yaml|(contracts|nodes|spreads|values)/[^/]+\.yaml|modules/[^/]+/module\.yaml|assignments/.+\.yaml"
)


def test_every_file_of_a_mesh_is_found_by_its_path() -> None:
    for files in meshes():
        mesh, _ = load(files)
        for name in filter(READ.fullmatch, files):
            wanted = schema_of_file(mesh, name)
            assert wanted is not None, name
            assert Draft202012Validator(wanted).is_valid(read(name, files[name])[0] or {}), name


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("mesh.yaml", "mesh.yaml"),
        ("catalogue/web/modules/x/module.yaml", "modules/<name>/module.yaml"),
        ("catalogue/web/contracts/x.yaml", "contracts/<name>.yaml"),
        ("assignments/sparta/gitea.yaml", "assignments/sparta/gitea.yaml"),
        ("values/gitea.yaml", "values/gitea.yaml"),
        ("spreads/x.yaml", "spreads/<name>.yaml"),
    ],
)
def test_a_file_that_is_not_there_yet_has_its_schema_too(mesh: Mesh, path: str, title: str) -> None:
    found = schema_of_file(mesh, path)
    assert found is not None
    assert found["title"] == title


@pytest.mark.parametrize(
    "path", ["README.md", "other.yaml", "assignments/athens/nothing.yaml", "a/mesh.yaml", "handed/x.yaml"]
)
def test_a_file_that_gitmesh_does_not_read_has_none(mesh: Mesh, path: str) -> None:
    assert schema_of_file(mesh, path) is None


def test_an_assignment_of_a_refused_module_may_say_anything_an_assignment_could() -> None:
    files = {**files_of(TEMPLATE), "modules/gitea/module.yaml": b"module: gitea\nrequires: [\n"}
    mesh, refusals = load(files)
    assert refusals
    [found] = [each for each in editor_schemas(mesh) if each.files == "assignments/*/gitea.yaml"]
    assert Draft202012Validator(found.schema).is_valid({"values": {"anything": 1}})
    assert not Draft202012Validator(found.schema).is_valid({"value": {}})


# --- the workspace's settings --------------------------------------------------------------------------


def test_settings_keep_what_is_a_person_s(mesh: Mesh) -> None:
    schemas = editor_schemas(mesh)
    old = {
        "editor.rulers": [110],
        "yaml.schemas": {"own.json": "own/*.yaml", f"{FOLDER}/assignment/gone.json": "x"},
    }
    after = with_schemas(json.dumps(old).encode(), schemas)
    assert after is not None
    said = json.loads(after)
    assert said["editor.rulers"] == [110]
    assert said["yaml.schemas"] == {**{each.path: each.files for each in schemas}, "own.json": "own/*.yaml"}
    assert with_schemas(after, schemas) is after


@pytest.mark.parametrize("settings", [b"// mine\n{}\n", b"[]", b'{"yaml.schemas": []}', b"\xff", b""])
def test_settings_that_can_t_be_kept_are_left_alone(mesh: Mesh, settings: bytes) -> None:
    assert with_schemas(settings, editor_schemas(mesh)) is None
