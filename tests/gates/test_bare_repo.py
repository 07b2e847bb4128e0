"""A bare repository under both hooks: what a push may bring, and that it is deployed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmesh.cli.genesis import CONTROLLER_KEY
from tests.gates.installed import program
from tests.real import PROJECT
from tests.repo.sshd import serve
from tests.world import World

GITEA = "assignments/athens/gitea.yaml"


def git(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, **more}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=own, capture_output=True, text=True, check=False
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A mesh after genesis, whose bare repo is guarded and deploys by itself."""
    (tmp_path / "world").mkdir()
    world = World.begin(tmp_path / "world", now=int(time.time()))
    for key, value in {
        "core.hooksPath": str(PROJECT / "hooks"),
        "gitmesh.program": str(program(tmp_path)),
        "gitmesh.key": str(world.root("delphi") / CONTROLLER_KEY),
    }.items():
        git(world.bare, "config", key, value)
    return world


def until(true: Callable[[], object]) -> None:
    """Wait for what happens outside of this process."""
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen within a minute")


def log(world: World) -> str:
    file = world.bare / "gitmesh/deploy.log"
    return file.read_text() if file.exists() else ""


def commit(world: World, name: str | None = None, message: str = "a change") -> str:
    """A commit that gives gitea another public name, or, without one, does not resolve."""
    if name is None:
        (world.mesh / GITEA).write_text("values: {}\n")
    else:
        world.edit(GITEA, ["values", "web.name"], name)
    git(world.mesh, "add", "-A")
    assert git(world.mesh, "commit", "-q", "-m", message).returncode == 0
    return git(world.mesh, "rev-parse", "HEAD").stdout.strip()


def push(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    return git(world.mesh, "push", "origin", *arguments)


# --- before: what may come in --------------------------------------------------------------------------


@pytest.mark.rule("F5")
def test_a_refused_push_says_why_and_leaves_nothing(world: World) -> None:
    before = world.refs(), git(world.bare, "count-objects", "-v").stdout
    bad = commit(world)
    done = push(world, "main")
    assert done.returncode != 0
    assert "refused[value-missing]: gitea@athens.web.name" in done.stderr, done.stderr
    assert f"--> {GITEA}" in done.stderr and "= answer:" in done.stderr
    assert (world.refs(), git(world.bare, "count-objects", "-v").stdout) == before
    assert git(world.bare, "cat-file", "-e", bad).returncode != 0, "no object of it stays"
    assert not (world.bare / "gitmesh").exists(), "and nothing is deployed"


@pytest.mark.rule("F5")
@pytest.mark.parametrize("atomic", [(), ("--atomic",)])
def test_one_bad_ref_of_several_refuses_them_all(world: World, atomic: tuple[str, ...]) -> None:
    git(world.mesh, "branch", "fine")
    git(world.mesh, "tag", "v1")
    commit(world)
    before = world.refs()
    assert push(world, *atomic, "main", "fine", "v1", "main:another").returncode != 0
    assert world.refs() == before
    assert push(world, *atomic, "fine", "v1", "main:another").returncode == 0, "a draft may be anything"
    assert world.refs().keys() - before.keys() == {"refs/heads/fine", "refs/tags/v1", "refs/heads/another"}
    assert not (world.bare / "gitmesh").exists()


@pytest.mark.rule("F5")
def test_main_is_neither_deleted_nor_rewritten(world: World) -> None:
    before = world.refs()
    git(world.bare, "config", "receive.denyDeleteCurrent", "ignore")
    done = push(world, ":main")
    assert done.returncode != 0 and "main is not deleted" in done.stderr
    git(world.mesh, "commit", "-q", "--amend", "-m", "another history")
    done = push(world, "--force", "main")
    assert done.returncode != 0 and "main is not rewritten" in done.stderr and "git revert" in done.stderr
    assert world.refs() == before
    git(world.bare, "config", "gitmesh.rewrite", "on")
    assert push(world, "--force", "main").returncode == 0


@pytest.mark.rule("F5")
def test_a_push_from_a_shallow_clone(world: World) -> None:
    git(world.folder, "clone", "-q", "--depth=1", world.origin, "shallow")
    shallow = world.folder / "shallow"
    (shallow / "README.md").write_text("# another\n")
    git(shallow, "commit", "-qam", "from a shallow clone")
    assert git(shallow, "push", "origin", "main").returncode == 0
    (shallow / GITEA).write_text("values: {}\n")
    git(shallow, "commit", "-qam", "from a shallow clone")
    assert "refused[value-missing]" in git(shallow, "push", "origin", "main").stderr


@pytest.mark.rule("F6")
def test_a_push_larger_than_the_limit_is_refused_by_git(world: World) -> None:
    git(world.bare, "config", "receive.maxInputSize", "1m")
    (world.mesh / "large").write_bytes(os.urandom(2 << 20))
    before = world.refs()
    commit(world, "code.example.org")
    done = push(world, "main")
    assert done.returncode != 0 and "exceeds maximum allowed size" in done.stderr
    assert world.refs() == before


# --- after: it is deployed -----------------------------------------------------------------------------


@pytest.mark.rule("F5")
def test_the_push_returns_while_the_deploy_runs(world: World, tmp_path: Path) -> None:
    slow, go = tmp_path / "slow", tmp_path / "go"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = deploy ] && until [ -e {go} ]; do sleep 0.05; done\n'
        f'exec {tmp_path}/gitmesh "$@"\n'
    )
    slow.chmod(0o755)
    git(world.bare, "config", "gitmesh.program", str(slow))
    commit(world, "code.example.org")
    done = push(world, "main")
    assert done.returncode == 0, done.stderr
    assert "gitmesh: deploying" in done.stderr
    assert "refs/heads/deploy" not in world.refs(), "it is not deployed yet"
    go.touch()
    until(lambda: "refs/heads/deploy" in world.refs())
    assert b"code.example.org" in world.deployed()["nodes/athens/declaration.json"]
    until(lambda: "deploy 1: for athens, delphi, sparta" in log(world))
    assert (world.bare / "gitmesh").stat().st_mode & 0o077 == 0


@pytest.mark.rule("F5")
def test_c71_of_pushes_in_a_row_the_last_one_stands(world: World) -> None:
    for number in range(4):
        commit(world, f"git{number}.example.org")
        assert push(world, "main").returncode == 0
    last = git(world.bare, "rev-parse", "main").stdout.strip()
    until(lambda: log(world).count("deploy ") == 4)
    assert b"git3.example.org" in world.deployed()["nodes/athens/declaration.json"]
    assert last in world.deployed()["approval.json"].decode() or world.deploy().pushed == ()
    assert "failed" not in log(world)


def test_a_deploy_that_fails_is_said_in_the_log_and_at_the_next_push(world: World, tmp_path: Path) -> None:
    key = world.root("delphi") / CONTROLLER_KEY
    key.rename(tmp_path / "elsewhere")
    commit(world, "code.example.org")
    assert push(world, "main").returncode == 0, "what is wrong with the deploy is not the pusher's"
    until(lambda: (world.bare / "gitmesh/failed").exists())
    assert "failed (exit 1)" in log(world) and "deploy.key" in log(world)
    (tmp_path / "elsewhere").rename(key)
    commit(world, "code2.example.org")
    done = push(world, "main")
    assert "the last deploy failed" in done.stderr
    until(lambda: "deploy 1" in log(world))
    until(lambda: not (world.bare / "gitmesh/failed").exists())


def test_without_a_key_another_machine_is_the_controller(world: World) -> None:
    git(world.bare, "config", "--unset", "gitmesh.key")
    commit(world, "code.example.org")
    done = push(world, "main")
    assert done.returncode == 0 and "deploying" not in done.stderr
    assert not (world.bare / "gitmesh").exists()


@pytest.mark.real
@pytest.mark.rule("F7", "F5")
def test_over_ssh_each_key_has_its_own_refs(world: World, tmp_path: Path) -> None:
    accounts = {"athens": "GITMESH_NODE=athens", "operator": ""}
    with serve(tmp_path / "sshd", accounts) as server:

        def attempt(account: str, *refs: str) -> subprocess.CompletedProcess[str]:
            ssh = " ".join(["ssh", "-o BatchMode=yes", *server.options(account)])
            return git(world.mesh, "push", "--force", server.url(world.bare), *refs, GIT_SSH_COMMAND=ssh)

        commit(world, "code.example.org")
        before = world.refs()
        both = attempt("athens", "HEAD:refs/gitmesh/report/athens", "main")
        assert both.returncode != 0 and "may not update refs/heads/main" in both.stderr
        assert world.refs() == before
        assert attempt("athens", "HEAD:refs/gitmesh/report/athens").returncode == 0
        assert attempt("operator", "main").returncode == 0
        until(lambda: "refs/heads/deploy" in world.refs())
        commit(world)
        assert "refused[value-missing]" in attempt("operator", "main").stderr


@pytest.mark.rule("S30")
def test_c73_neither_hook_nor_the_users_settings_reach_gitmeshs_own_git(world: World, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = tmp_path / "trap"
    (trap / "hooks").mkdir(parents=True)
    for name in ("reference-transaction", "post-commit", "pre-push", "post-checkout", "post-update"):
        for folder in (trap, trap / "hooks"):
            (folder / name).write_text(f"#!/bin/sh\necho {name} >>{sprung}\n")
            (folder / name).chmod(0o755)
    settings = Path(os.environ["GIT_CONFIG_GLOBAL"]).read_text()
    hostile = tmp_path / "gitconfig"
    hostile.write_text(
        f"{settings}[commit]\n gpgSign = true\n[gpg]\n program = false\n[tag]\n gpgSign = true\n"
        f"[push]\n gpgSign = true\n[init]\n templateDir = {trap}\n"
    )
    commit(world, "code.example.org")
    done = git(
        world.mesh, "-c", "push.gpgSign=false", "push", "origin", "main", GIT_CONFIG_GLOBAL=str(hostile)
    )
    assert done.returncode == 0, done.stderr
    until(lambda: "deploy 1" in log(world))
    assert not sprung.exists()
    assert not list((world.bare / "gitmesh/controller.git").glob("hooks/*"))
