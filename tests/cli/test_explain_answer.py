"""Why a requirement has its answer, as `gitmesh explain gitea@athens` says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh.assets import asset
from gitmesh.cli.main import cli
from tests.cases.test_cases import HERE, mesh_files
from tests.cli.small_mesh import FILES, make

SCHEMA = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "explained.json").read_text()))


def explain(folder: Path, subject: str, *options: str) -> Result:
    return CliRunner().invoke(cli, ["explain", subject, "--repo", str(folder), *options])


def row(folder: Path, subject: str) -> dict[str, Any]:
    done = explain(folder, subject, "--format", "json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.output)["requirements"]
    assert isinstance(found, dict)
    return found


@pytest.mark.rule("B1")
def test_who_answers_and_who_else_could_have(example_mesh: Path) -> None:
    database = row(example_mesh, "gitea@athens.database")
    assert (database["by"], database["rule"]) == ("postgres@sparta", "chosen for the mesh")
    assert database["others"] == [
        {"assignment": "postgres-vector@sparta", "reason": "is not the one chosen for the mesh"}
    ]


@pytest.mark.rule("C10")
def test_a_secret_is_a_hole(example_mesh: Path) -> None:
    fields = {each["name"]: each for each in row(example_mesh, "gitea@athens.database")["fields"]}
    for name, hole in (("password", "secret"), ("user", "login"), ("url", "secret")):
        assert (fields[name]["value"], fields[name]["hole"]) == (None, hole)
        assert fields[name]["waits_on"] == "postgres@sparta"
    assert fields["database"]["value"] == "gitea_athens"


def test_an_answer_waits_on_its_provider(example_mesh: Path) -> None:
    done = explain(example_mesh, "gitea@athens.stats.site")
    assert "  site = <answer: filled on the node; waits on umami@athens until it is there>\n" in done.output
    assert "script" not in done.output, "only the field that was asked for"


@pytest.mark.rule("B4")
def test_what_is_not_answered_says_who_could(tmp_path: Path) -> None:
    case = HERE / "refused" / "ambiguous-provider--two-elsewhere"
    for name, blob in mesh_files(case).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(blob)
    text = explain(tmp_path, "app@athens.database").output
    assert "  not answered\n" in text and ": it could answer\n" in text
    assert "refused[ambiguous-provider]: app@athens.database: " in text
    found = row(tmp_path, "app@athens.database")
    assert found["by"] is None and len(found["others"]) == 2 and found["fields"] == []


def test_all_requirements_of_an_assignment_in_the_modules_order(tmp_path: Path) -> None:
    make(tmp_path)
    done = explain(tmp_path, "gitea@athens", "--format", "json")
    ids = [each["id"] for each in json.loads(done.output)["requirements"]]
    names = ["database", "web", "key", "relay", "http", "spare", "workers", "title"]
    assert ids == [f"gitea@athens.{each}" for each in names]
    assert "gitea@athens.spare: postgres-database\n  not used: " in explain(tmp_path, "gitea@athens").output


@pytest.mark.rule("C10")
def test_its_json_is_as_its_schema_says(tmp_path: Path) -> None:
    for folder, files in (("good", FILES), ("refused", FILES | {"assignments/delphi/caddy.yaml": None})):
        make(tmp_path / folder, {name: text for name, text in files.items() if text is not None})
        printed = json.loads(explain(tmp_path / folder, "gitea@athens", "--format", "json").output)
        SCHEMA.validate(printed)
    assert printed["refusals"] and any(each["by"] is None for each in printed["requirements"])
    printed["requirements"][0]["fields"][0] |= {"hole": "secret", "value": "GMCANARY"}
    assert not SCHEMA.is_valid(printed)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("gitea@athns", "gitea@athens"),
        ("gitea@athens.databse", "database"),
        ("gitea@athens.database.pasword", "password"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(given: str, meant: str, tmp_path: Path) -> None:
    make(tmp_path)
    done = explain(tmp_path, given)
    assert done.exit_code == 2
    assert f"did you mean `{meant}`?" in done.output


def test_a_refused_module_is_said(tmp_path: Path) -> None:
    make(tmp_path, FILES | {"modules/gitea/module.yaml": "module: [\n"})
    done = explain(tmp_path, "gitea@athens")
    assert done.exit_code == 1
    assert "try: gitmesh check" in done.output
