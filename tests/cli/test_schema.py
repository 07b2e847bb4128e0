"""`gitmesh schema`: what each kind of file may say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from gitmesh.assets import asset
from gitmesh.cli.author import schema
from gitmesh.cli.main import Failure, Misused
from gitmesh.repo.editor import FOLDER, SETTINGS
from gitmesh.repo.schema import KINDS
from gitmesh.repo.schema import schema as schema_of


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_listed_and_printed(kind: str) -> None:
    listed = CliRunner().invoke(schema, []).output
    assert f"{schema_of(kind)['title']}\n" in listed
    assert kind in [line.split()[0] for line in listed.splitlines()]
    assert json.loads(CliRunner().invoke(schema, [kind]).output) == schema_of(kind)


def test_a_misspelt_kind_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(schema, ["modul"], standalone_mode=False)
    assert isinstance(result.exception, Misused)
    assert result.exception.message.endswith("did you mean `module`?")


# --- of one mesh ---------------------------------------------------------------------------------------


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """The template, as a mesh repo."""
    return Path(shutil.copytree(asset("mesh-repo-template"), tmp_path / "mesh"))


def said(mesh: Path, *arguments: str) -> str:
    """What `gitmesh schema` prints of a mesh."""
    result = CliRunner().invoke(schema, ["--repo", str(mesh), *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("what", ["gitea@athens", "assignments/athens/gitea.yaml"])
def test_an_assignment_s_schema_has_its_module_s_types(mesh: Path, what: str) -> None:
    found = json.loads(said(mesh, what))
    assert found["title"] == "assignments/athens/gitea.yaml"
    assert found["properties"]["values"]["properties"]["web.name"] == {"type": "string", "format": "hostname"}
    assert found["properties"]["pins"]["properties"]["database"]["enum"] == ["postgres@sparta"]


def test_an_assignment_that_is_not_there_yet_has_one_too(mesh: Path) -> None:
    assert json.loads(said(mesh, "gitea@sparta"))["required"] == ["values"]


def test_a_contract_s_asks_and_fields(mesh: Path) -> None:
    found = json.loads(said(mesh, "contract", "route"))["properties"]
    assert "name" in found["asks"]["properties"]
    assert "url" in found["fields"]["properties"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gitae@athens",), "no module is called `gitae`; did you mean `gitea`?"),
        (("gitea@athen",), "no node is called `athen`; did you mean `athens`?"),
        (("contract", "rout"), "no contract is called `rout`; did you mean `route`?"),
        (("module", "gitea"), "only `contract` is followed by a name"),
        (("modules/gitea/other.yaml",), "gitmesh reads no file called `modules/gitea/other.yaml`"),
        (("module", "--write"), "--write writes every schema; name none beside it"),
    ],
)
def test_what_is_not_there_is_named(mesh: Path, arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(schema, ["--repo", str(mesh), *arguments], standalone_mode=False)
    assert isinstance(result.exception, Misused)
    assert result.exception.message == message


def test_a_refused_contract_is_mended_first(mesh: Path) -> None:
    (mesh / "contracts/route.yaml").write_text("contract: route\n")
    result = CliRunner().invoke(schema, ["--repo", str(mesh), "contract", "route"], standalone_mode=False)
    assert isinstance(result.exception, Failure)
    assert result.exception.command == "gitmesh check"


def test_write_writes_every_schema_and_takes_away_what_is_no_more(mesh: Path) -> None:
    stale = mesh / FOLDER / "assignment/gone.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    assert said(mesh, "--write") == f"wrote 29 schemas to {FOLDER}/\n"
    assert not stale.exists()
    for path, files in json.loads((mesh / SETTINGS).read_bytes())["yaml.schemas"].items():
        assert json.loads((mesh / path).read_bytes())["title"], files
    own = json.loads((mesh / FOLDER / "assignment/gitea.json").read_bytes())
    assert own["required"] == ["values"]


def test_write_adds_a_new_module_to_the_settings(mesh: Path) -> None:
    shutil.copytree(mesh / "modules/redis", mesh / "modules/cache")
    module = mesh / "modules/cache/module.yaml"
    module.write_text(module.read_text().replace("module: redis", "module: cache", 1))
    assert said(mesh, "--write").endswith(f"wrote {SETTINGS}\n")
    assert "assignments/*/cache.yaml" in (mesh / SETTINGS).read_text()


def test_settings_with_comments_are_left_and_said(mesh: Path) -> None:
    (mesh / SETTINGS).write_text("// mine\n{}\n")
    assert "it say:\n{" in said(mesh, "--write")
    assert (mesh / SETTINGS).read_text() == "// mine\n{}\n"
