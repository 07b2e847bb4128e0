"""`gitmesh check`: resolved, refused or failed, and by which record."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh.assets import asset
from gitmesh.cli.main import cli
from gitmesh.core.record import EMPTY
from gitmesh.repo.record import last_record
from gitmesh.repo.transport import RepoError
from tests.cli.small_mesh import FILES, SECOND, commit, deployed, git, make

MESH = "7f0c2b9e41d84a6fb3a1c05d9e2f6a10"
RECORD = {
    "v": 1,
    "mesh": MESH,
    "assignments": {
        "gitea@athens": {
            "as": "gitea_athens",
            "providers": {"database": "postgres@delphi", "web": "caddy@delphi"},
        },
    },
}


def check(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["check", "--repo", str(folder), *options])


def test_a_mesh_that_resolves(tmp_path: Path) -> None:
    done = check(make(tmp_path))
    assert done.output == (
        "resolved: 4 assignments on 3 nodes, 10 requirements, 3 secrets\n"
        f"record: empty, since {tmp_path} is no git repository\n"
    )
    assert done.exit_code == 0


@pytest.mark.rule("B10")
def test_a_refused_mesh_says_everything_at_once(tmp_path: Path) -> None:
    make(tmp_path, FILES | SECOND, assignments__athens__gitea="")
    (tmp_path / "assignments/delphi/gitmesh-vault.yaml").write_text("")
    done = check(tmp_path)
    assert done.exit_code == 3
    for code in ("ambiguous-provider", "value-missing", "seat-unheld"):
        assert done.output.count(f"refused[{code}]: ") == 1, code
    assert "(holds `mesh-store`): gitmesh pin gitea@athens database postgres@sparta\n" in done.output
    assert "= answer: give one for this assignment: gitmesh set gitea@athens web.name VALUE\n" in done.output
    assert "gitmesh assign gitmesh-vault delphi --hold mesh-vault\n" in done.output
    assert "\n3 refusals in 1 file; nothing is deployed until they are answered\n" in done.output
    assert "\x1b" not in done.output, "no colour in a pipe"


@pytest.mark.rule("F5")
def test_a_commit_is_checked_as_it_is_and_not_as_the_files_lie(tmp_path: Path) -> None:
    good = commit(make(tmp_path))
    (tmp_path / "nodes/athens.yaml").write_text("adress: 10.7.0.11\n")
    assert check(tmp_path).exit_code == 3
    done = check(tmp_path, "--revision", good, "--format", "json")
    assert done.exit_code == 0
    assert json.loads(done.output)["commit"] == good


@pytest.mark.rule("F5")
def test_a_bare_repo_is_checked_where_it_is(tmp_path: Path) -> None:
    commit(make(tmp_path / "work"))
    git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
    assert check(tmp_path / "bare.git", "--revision", "main").exit_code == 0
    deployed(tmp_path / "bare.git", RECORD, "refs/heads/deploy")
    done = check(tmp_path / "bare.git", "--revision", "main")
    assert "record: deploy at " in done.output


def test_json_keeps_to_its_schema(tmp_path: Path) -> None:
    schema = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "refusals.json").read_text()))
    make(tmp_path)
    resolved = json.loads(check(tmp_path, "--format", "json").output)
    assert resolved["counts"] == {"assignments": 4, "nodes": 3, "requirements": 10, "secrets": 3}
    make(tmp_path, FILES | SECOND)
    refused_ = json.loads(check(tmp_path, "--format", "json").output)
    assert [each["code"] for each in refused_["refusals"]] == ["ambiguous-provider"]
    assert refused_["record"].startswith("empty, since ")
    failed = check(tmp_path, "--format", "json", "--revision", "main")
    assert failed.exit_code == 1
    for outcome in (resolved, refused_, json.loads(failed.output)):
        schema.validate(outcome)


def test_the_mesh_around_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path / "assignments/athens")
    assert CliRunner().invoke(cli, ["check"]).exit_code == 0


def test_no_mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    done = check(tmp_path / "nodes")
    assert done.exit_code == 1
    assert done.output.startswith(f"error: no mesh.yaml in {tmp_path}/nodes\n  try: "), (
        "it is where it is said"
    )
    (tmp_path / "mesh.yaml").unlink()
    monkeypatch.chdir(tmp_path / "nodes")
    done = CliRunner().invoke(cli, ["check"])
    assert done.output.startswith(f"error: no mesh.yaml in {tmp_path}/nodes or above it\n  try: ")


def test_a_commit_without_a_mesh_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("nothing yet\n")
    commit(tmp_path)
    done = check(tmp_path, "--revision", "HEAD")
    assert done.exit_code == 3
    assert "refused[file-missing]" in done.output


def test_the_faces_of_a_pull_request(tmp_path: Path) -> None:
    make(tmp_path, FILES | SECOND)
    done = check(tmp_path, "--format", "github")
    assert done.output.startswith("::error file=assignments/athens/gitea.yaml,line=2,endLine=2,")
    assert done.exit_code == 3
    done = check(tmp_path, "--format", "markdown")
    assert done.output.startswith("**gitmesh:** 1 refusal in 1 file; ")
    assert done.output.endswith(f"\nRecord: `empty, since {tmp_path} is no git repository`\n")
    assert done.exit_code == 3
    done = check(tmp_path, "--format", "sarif")
    assert done.exit_code == 3
    assert [each["ruleId"] for each in json.loads(done.output)["runs"][0]["results"]] == [
        "ambiguous-provider"
    ]
    done = check(make(tmp_path / "sarif"), "--format", "sarif")
    assert done.exit_code == 0
    assert json.loads(done.output)["runs"][0]["results"] == []
    for form in ("github", "markdown"):
        assert check(make(tmp_path / form), "--format", form).output.startswith("resolved: 4 assignments")


def test_a_jobs_summary_has_the_comment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    mesh = make(tmp_path / "mesh", FILES | SECOND)
    comment = check(mesh, "--format", "markdown").output
    assert summary.read_text() == "before\n", "only annotations come with a summary"
    assert check(mesh, "--format", "github").exit_code == 3
    assert summary.read_text() == "before\n" + comment


# --- the record ----------------------------------------------------------------------------------------


@pytest.mark.rule("G1")
def test_what_was_deployed_stands(tmp_path: Path) -> None:
    commit(make(tmp_path, FILES | SECOND))
    assert check(tmp_path).exit_code == 3
    tip = deployed(tmp_path, RECORD)
    done = check(tmp_path)
    assert done.exit_code == 0, done.output
    assert f"record: origin/deploy at {tip[:12]}, as last fetched\n" in done.output


@pytest.mark.rule("B21")
def test_a_provider_that_is_still_used_can_not_go(tmp_path: Path) -> None:
    commit(make(tmp_path))
    deployed(tmp_path, RECORD)
    done = check(tmp_path)
    assert done.exit_code == 3
    assert "refused[provider-in-use]: postgres@delphi" in done.output


def test_the_branch_of_mesh_yaml_is_read(tmp_path: Path) -> None:
    commit(make(tmp_path, mesh=FILES["mesh.yaml"] + "deploy: {branch: live}\n"))
    tip = deployed(tmp_path, RECORD | {"assignments": {}}, "refs/remotes/origin/live")
    assert f"record: origin/live at {tip[:12]}" in check(tmp_path).output


def test_without_a_deploy_branch_it_is_empty_and_says_so(tmp_path: Path) -> None:
    commit(make(tmp_path))
    deployed(tmp_path, RECORD, "refs/heads/deploy")
    assert last_record(tmp_path) == (EMPTY, "empty, since no branch `deploy` of origin was fetched")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("{", "is no record of gitmesh"),
        ("[" * 100_000, "is no record of gitmesh"),
        ({"v": 2}, "is no record of gitmesh"),
        (RECORD | {"mesh": "another"}, "is of another mesh"),
        (RECORD | {"assignments": {"a@b": {"as": 3}}}, "is no record of gitmesh"),
    ],
)
def test_a_record_that_is_none_fails(record: object, said: str, tmp_path: Path) -> None:
    commit(make(tmp_path))
    deployed(tmp_path, record)
    with pytest.raises(RepoError, match=said):
        last_record(tmp_path, "deploy", MESH)
    assert check(tmp_path).exit_code == 1


def test_a_branch_without_a_record_fails(tmp_path: Path) -> None:
    tip = commit(make(tmp_path))
    git(tmp_path, "update-ref", "refs/remotes/origin/deploy", tip)
    with pytest.raises(RepoError, match=r"has no record\.json"):
        last_record(tmp_path)


def test_the_example_mesh_resolves(example_mesh: Path) -> None:
    done = check(example_mesh)
    assert done.output.startswith("resolved: 23 assignments on 3 nodes, "), done.output
    assert ", 38 secrets\n" in done.output
