"""The workflows of the template and of this project: by three linters, and run for real by `act`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.gates.installed import wheel
from tests.real import PROJECT, require
from tests.world import World, git

TEMPLATE = PROJECT / "mesh-repo-template/.github/workflows"
OURS = PROJECT / ".github/workflows"
WORKFLOWS = [*sorted(TEMPLATE.glob("*.yml")), *sorted(OURS.glob("*.yml"))]
PINNED = re.compile(r"actions/(?:checkout|upload-artifact|setup-python)@[0-9a-f]{40}")
KEEP = """\
name: keeps a file
description: stands for the upload, which asks GitHub
inputs:
  name: {required: true, description: its name}
  path: {required: true, description: what to keep}
  if-no-files-found: {description: what else}
  retention-days: {description: how long}
runs:
  using: composite
  steps:
    - {shell: bash, run: 'cp "${{ inputs.path }}" "$KEPT"'}
"""


def tool(name: str) -> str:
    """A program of the development tools; the test skips or fails where it is missing."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    require(found, f"{name} is not installed; ./dev installs it")
    assert found
    return found


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=240
    )


@pytest.mark.parametrize(
    "linter",
    [
        ("actionlint", "-no-color", "-shellcheck="),
        ("zizmor", "--offline", "--no-progress", "--color=never"),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    ],
    ids=lambda linter: linter[0],
)
def test_a_linter_finds_nothing(linter: tuple[str, ...], tmp_path: Path) -> None:
    assert len(WORKFLOWS) >= 4
    name, *arguments = linter
    done = run(tool(name), *arguments, *WORKFLOWS)
    assert done.returncode == 0, done.stdout
    bad = tmp_path / ".github/workflows/bad.yml"
    bad.parent.mkdir(parents=True)
    bad.write_text(
        "on: pull_request_target\njobs: {a: {runs-on: ubuntu-latest, nope: 1, steps: [{uses: a/b@main}]}}\n"
    )
    assert run(tool(name), *arguments, bad).returncode != 0, "the linter can find something"


@pytest.mark.rule("F5", "S62")
def test_what_runs_for_a_pull_request_holds_no_secret_and_no_right_to_write() -> None:
    for file in TEMPLATE.glob("*.yml"):
        said = YAML(typ="safe").load(file.read_text())
        text = file.read_text()
        assert said["permissions"] == {}, "nothing by default"
        assert "pull_request_target" not in text
        uses = [step["uses"] for job in said["jobs"].values() for step in job["steps"] if "uses" in step]
        assert all(PINNED.fullmatch(each) for each in uses)
        if "pull_request" in said["on"]:
            assert "secrets." not in text and "github.token" not in text
            assert all(job["permissions"] == {"contents": "read"} for job in said["jobs"].values())
            assert {"pull_request", "merge_group"} <= said["on"].keys()
        if "workflow_run" in said["on"]:
            assert not uses, "nothing of a pull request is checked out beside a token"
            assert "gitmesh" not in re.sub(r"#.*|GITMESH\w*", "", text)


@pytest.mark.rule("F5")
def test_the_deploy_is_mains_one_at_a_time_and_daily() -> None:
    said = YAML(typ="safe").load((TEMPLATE / "deploy.yml").read_text())
    assert said["on"]["push"] == {"branches": ["main"]}
    assert len(said["on"]["schedule"]) == 1
    assert said["concurrency"] == {"group": "deploy", "cancel-in-progress": False}
    job = said["jobs"]["deploy"]
    assert (job["environment"], job["if"]) == ("deploy", "github.ref == 'refs/heads/main'")
    (deploy,) = [step for step in job["steps"] if "KEY" in step.get("env", {})]
    assert "${{" not in deploy["run"], "a secret enters by the environment of one shell"


# --- run by act ----------------------------------------------------------------------------------------


@dataclass
class Runner:
    """`act` on the clone of a world, with what a forge would set."""

    world: World
    folder: Path
    source: str

    def run(self, event: str, workflow: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one workflow for an event."""
        upload = "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02"
        return subprocess.run(
            [
                *(tool("act"), event, "-W", f".github/workflows/{workflow}", "--pull=false"),
                *("-P", "ubuntu-latest=-self-hosted"),
                *("--local-repository", f"{upload}={self.folder / 'keep'}"),
                *("--var", f"GITMESH_SOURCE={self.source}", "--var", f"GITMESH_ORIGIN={self.world.origin}"),
                *("--env", f"KEPT={self.folder / 'kept.md'}"),
                *arguments,
            ],
            cwd=self.world.mesh,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=240,
        )

    def kept(self) -> str:
        """What was kept for the comment."""
        return (self.folder / "kept.md").read_text()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    tool("act")
    (tmp_path / "world").mkdir()
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep/action.yml").write_text(KEEP)
    world = World.begin(tmp_path / "world")
    return Runner(world, tmp_path, wheel(tmp_path).as_uri())


def pull_request(runner: Runner) -> subprocess.CompletedProcess[str]:
    """What a forge runs for a change: the clone stands at the change merged into main."""
    event = runner.folder / "event.json"
    said = {"number": 7, "head": {"ref": "x"}, "base": {"ref": "main"}}
    event.write_text(json.dumps({"pull_request": said}))
    git(runner.world.mesh, "add", "-A")
    git(runner.world.mesh, "commit", "-q", "-m", "a change")
    return runner.run("pull_request", "check.yml", "-e", str(event))


@pytest.mark.real
@pytest.mark.rule("F5")
def test_main_is_checked(runner: Runner) -> None:
    done = runner.run("push", "check.yml")
    assert done.returncode == 0, done.stdout
    assert "resolved: 4 assignments on 3 nodes" in done.stdout


@pytest.mark.real
@pytest.mark.rule("F5")
def test_a_pull_request_that_does_not_resolve_fails_with_annotations_and_a_comment(runner: Runner) -> None:
    (runner.world.mesh / "assignments/sparta/postgres.yaml").unlink()
    done = pull_request(runner)
    assert done.returncode != 0
    assert "::error file=assignments/athens/gitea.yaml,line=1" in done.stdout, done.stdout
    assert "Failure - Main Does it resolve?" in done.stdout
    assert "refused[pin-bad]" in runner.kept()


@pytest.mark.real
@pytest.mark.rule("F5", "G2")
def test_a_pull_request_that_resolves_says_what_it_will_do(runner: Runner) -> None:
    runner.world.edit("assignments/athens/gitea.yaml", ["values", "web.name"], "code.example.org")
    done = pull_request(runner)
    assert done.returncode == 0, done.stdout
    assert "gitea@athens" in runner.kept()


@pytest.mark.real
@pytest.mark.rule("F5")
def test_main_is_deployed(runner: Runner) -> None:
    key = (runner.world.root("delphi") / "etc/gitmesh/controller/deploy.key").read_text().strip()
    secrets = runner.folder / "secrets"
    secrets.write_text(f"GITMESH_DEPLOY_KEY={key}\n")
    done = runner.run("push", "deploy.yml", "--secret-file", str(secrets))
    assert done.returncode == 0, done.stdout
    assert "deploy 1: for athens, delphi, sparta" in done.stdout
    assert key not in done.stdout and key.partition(":")[2] not in done.stdout
    assert "refs/heads/deploy" in runner.world.refs()
    again = runner.run("schedule", "deploy.yml", "--secret-file", str(secrets))
    assert "deploy 1 stands; nothing is new" in again.stdout, again.stdout


@pytest.mark.real
@pytest.mark.rule("G5")
def test_a_main_that_does_not_resolve_fails_the_deploy_and_changes_nothing(runner: Runner) -> None:
    runner.world.deploy()
    (runner.world.mesh / "assignments/sparta/postgres.yaml").unlink()
    runner.world.commit_push()
    before = runner.world.refs("refs/gitmesh/node/")
    secrets = runner.folder / "secrets"
    key = (runner.world.root("delphi") / "etc/gitmesh/controller/deploy.key").read_text().strip()
    secrets.write_text(f"GITMESH_DEPLOY_KEY={key}\n")
    done = runner.run("push", "deploy.yml", "--secret-file", str(secrets))
    assert done.returncode != 0
    assert "main does not resolve" in done.stdout
    assert runner.world.refs("refs/gitmesh/node/") == before


GH = """\
#!/bin/sh
printf '%s\\n' "$*" >>"$SAID"
case "$1 $2" in
    'api --method') printf '%s' "$FOUND" ;;
    'run download') mkdir said && printf 'a plan, and `$(touch sprung)`' >said/comment.md ;;
    'pr comment') cat comment.md >>"$SAID" ;;
esac
"""


@pytest.mark.real
@pytest.mark.rule("F5", "S62")
@pytest.mark.parametrize("found", ["7", ""])
def test_what_the_check_said_is_put_under_its_pull_request(
    runner: Runner, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, bin_ = runner.folder / "said.txt", runner.folder / "bin"
    bin_.mkdir()
    (bin_ / "gh").write_text(GH)
    (bin_ / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    hostile = "x$(touch sprung);`touch sprung`"
    fork = {"id": 9, "owner": {"login": "mallory"}}
    event: dict[str, object] = {
        "event": "pull_request",
        "id": 11,
        "head_sha": "c0ffee",
        "head_branch": hostile,
    }
    event["head_repository"] = fork
    (runner.folder / "event.json").write_text(json.dumps({"action": "completed", "workflow_run": event}))
    done = runner.run(
        "workflow_run", "comment.yml", "-e", str(runner.folder / "event.json"),
        "-s", "GITHUB_TOKEN=GMCANARY-token", "--env", f"SAID={said}", "--env", f"FOUND={found}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    text = said.read_text()
    assert f"head=mallory:{hostile}" in text, "the branch is one argument, whatever it is called"
    assert ("pr comment 7 --edit-last --create-if-none" in text) == bool(found)
    assert ("a plan, and" in text) == bool(found)
    assert not [*runner.folder.rglob("sprung"), *runner.world.mesh.rglob("sprung")]
    assert "GMCANARY" not in done.stdout + text
