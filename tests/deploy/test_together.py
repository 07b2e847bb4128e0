"""Two pull requests that resolve alone and not together: both are merged, and nothing that runs changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gitmesh.cli.genesis import CONTROLLER_KEY
from gitmesh.cli.main import cli
from gitmesh.core.refusal import Code
from gitmesh.trust.envelope import Kind, read_unverified
from tests.world import DAY, NODES, World, git

NAMED = "pins: {database: postgres@sparta}\nvalues: {web.name: two.example.org}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A mesh that runs."""
    world = World.begin(tmp_path)
    world.deploy()
    world.round()
    git(world.mesh, "fetch", "-q", "origin")
    return world


def run(world: World, *arguments: str) -> Result:
    """A command in the operator's clone."""
    return CliRunner().invoke(cli, [*arguments, "--repo", str(world.mesh)])


def propose(world: World, branch: str, node: str) -> None:
    """A pull request: a feed reader on `node`, under a name that nobody has on main."""
    git(world.mesh, "checkout", "-q", "-b", branch, "main")
    world.write(f"assignments/{node}/miniflux.yaml", NAMED)
    git(world.mesh, "add", "-A")
    git(world.mesh, "commit", "-q", "-m", f"miniflux on {node}")
    git(world.mesh, "checkout", "-q", "main")


def trees(world: World) -> dict[str, dict[str, bytes]]:
    """By node every file of what it runs."""
    return {
        node: {
            str(each.relative_to(world.root(node))): each.read_bytes()
            for folder in ("var/lib/gitmesh/files", "run/gitmesh/secrets")
            for each in sorted((world.root(node) / folder).rglob("*"))
            if each.is_file()
        }
        for node in NODES
    }


@pytest.mark.rule("G5")
def test_alone_each_resolves_and_together_nothing_that_runs_changes(world: World) -> None:
    approved, runs = world.deployed(), trees(world)
    for branch, node in (("one", "sparta"), ("two", "delphi")):
        propose(world, branch, node)
        assert run(world, "check", "--revision", branch).exit_code == 0
        planned = run(world, "plan", "main", branch, "--format", "markdown")
        assert planned.exit_code == 0 and f"miniflux@{node}: new" in planned.output
    git(world.mesh, "merge", "-q", "one", "-m", "one")
    git(world.mesh, "merge", "-q", "two", "-m", "two")
    world.commit_push("both are merged")

    done = world.deploy(world.pass_time(DAY))
    assert [each.code for each in done.refusals] == [Code.NAME_HELD]
    assert done.seq == 2, "the last approval is renewed"
    now = world.deployed()
    assert {path for path in now if now[path] != approved.get(path)} == {"approval.json", "deploy.json"}
    pulled = world.round()
    assert all(each.seq == 2 for each in pulled.values())
    changed = [each for one in pulled.values() for each in one.outcomes if each.started or each.stopped]
    assert not changed and trees(world) == runs

    reported = CliRunner().invoke(cli, [
        "deploy", "--origin", world.origin, "--key", str(world.root("delphi") / CONTROLLER_KEY),
        "--cache", str(world.folder / "controller.git"),
    ])  # fmt: skip
    assert reported.exit_code == 3 and "refused[name-held]" in reported.output

    (world.mesh / "assignments/delphi/miniflux.yaml").unlink()
    git(world.mesh, "fetch", "-q", "origin")
    assert run(world, "plan", "main").exit_code == 3, "what does not resolve is no base"
    mended = run(world, "plan")
    assert mended.exit_code == 0 and "miniflux@sparta: new" in mended.output


@pytest.mark.rule("G2")
def test_a_plan_without_a_base_is_against_what_was_deployed(world: World) -> None:
    source = read_unverified(world.deployed()["approval.json"], Kind.APPROVAL).payload["source"]["commit"]
    propose(world, "one", "sparta")
    git(world.mesh, "merge", "-q", "one", "-m", "one")
    world.commit_push("merged, and not deployed")
    git(world.mesh, "fetch", "-q", "origin")
    planned = run(world, "plan")
    assert "miniflux@sparta: new" in planned.output and "record: origin/deploy at " in planned.output
    assert f'"base": "{source}"' in run(world, "plan", "--format", "json").output
    world.deploy(world.pass_time(DAY))
    git(world.mesh, "fetch", "-q", "origin")
    assert run(world, "plan").output.startswith("nothing changes\n")


@pytest.mark.rule("G2")
def test_a_deploy_branch_without_an_approval_names_no_base(world: World) -> None:
    for blob in (
        {"record.json": world.deployed()["record.json"]},
        {**world.deployed(), "approval.json": b"{}"},
    ):
        world.send("refs/heads/deploy", blob)
        git(world.mesh, "fetch", "-q", "-f", "origin")
        assert run(world, "plan").output.startswith("nothing changes\n"), (
            "origin/main is what it compares with"
        )
