"""`gitmesh plan`: what a change does to every node, in its three faces."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh.assets import asset
from gitmesh.cli.main import cli
from gitmesh.core.plan import AssignmentPlan, Step, Verb
from gitmesh.report.plan import as_markdown
from tests.cli.small_mesh import FILES, commit, make

GITEA = "modules/gitea/module.yaml"


def plan(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["plan", "--repo", str(folder), "--base", "HEAD", *options])


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    commit(make(tmp_path))
    return tmp_path


@pytest.mark.rule("G2")
def test_a_default_written_out_and_a_comment_change_nothing(mesh: Path) -> None:
    file = mesh / "assignments/athens/gitea.yaml"
    file.write_text("# moved\nvalues: {workers: 2, web.name: git.example.org}\n")
    done = plan(mesh)
    assert done.exit_code == 0
    assert done.output.startswith("nothing changes\nrecord: empty, ")
    file.write_text("values: {workers: 3, web.name: git.example.org}\n")
    assert "    recreate gitea (env WORKERS)\n" in plan(mesh).output


@pytest.mark.rule("G4")
def test_a_changed_module_lists_each_assignment_of_it(mesh: Path) -> None:
    make(mesh, assignments__sparta__gitea="values: {web.name: two.example.org}\n")
    commit(mesh)
    (mesh / GITEA).write_text(FILES[GITEA].replace("1.24.6", "1.24.7"))
    nodes = json.loads(plan(mesh, "--format", "json").output)["nodes"]
    assert {node: [each["assignment"] for each in planned] for node, planned in nodes.items()} == {
        "athens": ["gitea@athens"], "sparta": ["gitea@sparta"],
    }  # fmt: skip
    assert nodes["athens"][0]["steps"] == [{"do": "recreate", "subject": "gitea", "why": ["image"]}]


@pytest.mark.rule("G2")
def test_a_new_consumer_in_all_faces(mesh: Path) -> None:
    make(mesh, assignments__delphi__gitea="values: {web.name: two.example.org}\n")
    text = plan(mesh).output
    assert "delphi\n  caddy@delphi: changed\n    ensure-login gitea@delphi.web\n" in text
    assert "  gitea@delphi: new\n    make-secret gitea@delphi.database\n" in text
    assert "  postgres@sparta: changed\n    ensure-login gitea@delphi.database\n" in text
    assert "    wait gitea@delphi.database (on postgres@sparta)\n" in text
    said = json.loads(plan(mesh, "--format", "json").output)
    jsonschema.validate(said, json.loads((asset("schemas") / "plan.json").read_text()))
    assert plan(mesh, "--format", "markdown").output.count("```") == 2


def test_a_head_that_does_not_resolve_is_refused(mesh: Path) -> None:
    (mesh / "assignments/athens/gitea.yaml").write_text("")
    done = plan(mesh)
    assert done.exit_code == 3 and "refused[value-missing]" in done.output


@pytest.mark.rule("G2")
@pytest.mark.parametrize("form", ["terminal", "json", "markdown"])
def test_a_plan_names_keys_and_shows_no_value(mesh: Path, form: str) -> None:
    module = FILES[GITEA].replace("image: docker.io/gitea", "image: docker.io/GMCANARYgitea")
    (mesh / GITEA).write_text(module)
    (mesh / "assignments/athens/gitea.yaml").write_text(
        "values: {web.name: git.example.org, title: GMCANARYtitle}\n"
    )
    done = plan(mesh, "--format", form)
    assert done.exit_code == 0 and "env TITLE" in done.output
    assert "GMCANARY" not in done.output


@pytest.mark.rule("G2")
def test_a_comment_is_bounded_and_nothing_closes_its_block() -> None:
    steps = tuple(Step(Verb.RECREATE, f"c{number}", ("files /a```b",)) for number in range(4000))
    said = as_markdown({"athens": (AssignmentPlan("a@athens", "changed", steps),)}, "empty")
    assert said.startswith("**gitmesh plan:** 1 change on 1 node\n\n````text\n")
    assert len(said) < 65_536 and " lines more: run gitmesh plan\n````\n" in said
