"""The real pre-commit: what a commit would hold is checked, whatever else lies in the folder (F5)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gitmesh.assets import asset
from tests.gates.installed import program
from tests.real import PROJECT, require

PRE_COMMIT = Path(sys.executable).parent / "pre-commit"
BAD = "values: {web.nam: git.example.org}\n"
GITEA = "assignments/athens/gitea.yaml"


def run(folder: Path, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, **more}
    return subprocess.run(
        command, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=200
    )


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "git", *arguments)


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The template as a repository with pre-commit's hook, one commit in it."""
    require(PRE_COMMIT.exists(), "pre-commit is not installed; ./dev installs it")
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    folder = tmp_path / "mesh"
    shutil.copytree(asset("mesh-repo-template"), folder)
    git(folder, "init", "-q", "-b", "main")
    assert run(folder, PRE_COMMIT, "install").returncode == 0
    git(folder, "add", "-A")
    first = git(folder, "commit", "-q", "-m", "a mesh")
    assert first.returncode == 0, first.stdout + first.stderr
    return folder


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").stdout


def refused(folder: Path, *arguments: str) -> str:
    """What is said where a commit is refused."""
    before = head(folder)
    done = git(folder, "commit", "-q", "-m", "a change", *arguments)
    assert done.returncode != 0 and head(folder) == before
    return done.stdout + done.stderr


def accepted(folder: Path, *arguments: str) -> None:
    done = git(folder, "commit", "-q", "-m", "a change", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.rule("F5")
def test_a_commit_that_does_not_resolve_is_refused_with_its_place(mesh: Path) -> None:
    (mesh / GITEA).write_text(BAD)
    git(mesh, "add", "-A")
    said = refused(mesh)
    assert "refused[key-unknown]" in said and GITEA in said


@pytest.mark.rule("F5")
def test_a_commit_that_only_removes_is_checked(mesh: Path) -> None:
    git(mesh, "rm", "-q", "assignments/delphi/gitmesh-vault.yaml")
    assert "refused[seat-unheld]" in refused(mesh)


@pytest.mark.rule("F5")
def test_only_what_is_staged_counts(mesh: Path) -> None:
    good = (mesh / GITEA).read_text()
    (mesh / GITEA).write_text(BAD)
    git(mesh, "add", "-A")
    (mesh / GITEA).write_text(good)
    assert "refused[key-unknown]" in refused(mesh), "a good file on disk does not help"
    git(mesh, "add", "-A")
    (mesh / GITEA).write_text(BAD)
    (mesh / "assignments/athens/untracked.yaml").write_text("holds: nonsense\n")
    (mesh / "README.md").write_text("# another\n")
    git(mesh, "add", "README.md")
    accepted(mesh)
    assert (mesh / GITEA).read_text() == BAD, "and a bad one does no harm and stays"


@pytest.mark.rule("F5")
def test_c73_a_commit_of_named_files_is_checked_by_the_index_that_git_made_for_it(mesh: Path) -> None:
    good = (mesh / GITEA).read_text()
    (mesh / GITEA).write_text(BAD)
    git(mesh, "add", "-A")
    (mesh / "README.md").write_text("# another\n")
    accepted(mesh, "README.md")
    (mesh / GITEA).write_text(good)
    git(mesh, "add", "-A")
    (mesh / GITEA).write_text(BAD)
    assert "refused[key-unknown]" in refused(mesh, GITEA)
    assert "refused[key-unknown]" in refused(mesh, "-a")


@pytest.mark.rule("F5")
def test_c74_it_checks_in_a_linked_worktree(mesh: Path) -> None:
    git(mesh, "worktree", "add", "-q", "../beside", "-b", "beside")
    beside = mesh.parent / "beside"
    (beside / GITEA).write_text(BAD)
    git(beside, "add", "-A")
    assert "refused[key-unknown]" in refused(beside)
    assert "refused[key-unknown]" in refused(beside, GITEA)
    assert git(mesh, "status", "--porcelain").stdout == ""


def test_a_merge_that_is_not_finished_is_named(mesh: Path) -> None:
    for branch, name in (("theirs", "code.example.org"), ("main", "git2.example.org")):
        git(mesh, "checkout", "-q", *(["-b"] if branch == "theirs" else []), branch)
        (mesh / GITEA).write_text(f"pins: {{database: postgres@sparta}}\nvalues: {{web.name: {name}}}\n")
        accepted(mesh, "-a")
    git(mesh, "merge", "theirs")
    done = run(mesh, "gitmesh", "check", "--staged")
    assert done.returncode == 1
    assert f"{GITEA} is in a merge that is not finished" in done.stderr and "git status" in done.stderr


def test_the_index_of_another_repository_is_not_read(mesh: Path, tmp_path: Path) -> None:
    """C73: in a hook of one repository, git's variables say nothing of another."""
    other = tmp_path / "other"
    shutil.copytree(mesh, other)
    (other / GITEA).write_text(BAD)
    git(other, "add", "-A")
    misled = {"GIT_DIR": str(mesh / ".git"), "GIT_INDEX_FILE": str(mesh / ".git/index")}
    done = run(other, "gitmesh", "check", "--staged", "--repo", ".", **misled)
    assert done.returncode == 3, done.stdout + done.stderr


@pytest.mark.real
@pytest.mark.rule("F5")
def test_pre_commit_installs_the_projects_own_hook(mesh: Path, tmp_path: Path) -> None:
    """`language: python` for real: pre-commit clones the project and installs it into a place of its own."""
    clone = tmp_path / "gitmesh"
    names = ("gitmesh", "schemas", "hooks", "mesh-repo-template", "pyproject.toml", "README.md", "LICENSE")
    clone.mkdir()
    for name in (*names, ".pre-commit-hooks.yaml"):
        copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
        copy(PROJECT / name, clone / name)
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", "-A")
    assert git(clone, "commit", "-q", "-m", "gitmesh").returncode == 0
    config = mesh / ".pre-commit-config.yaml"
    hooks = {"repos": [{"repo": str(clone), "rev": head(clone).strip(), "hooks": [{"id": "gitmesh-check"}]}]}
    with config.open("w") as file:
        YAML().dump(hooks, file)
    (tmp_path / "bin/gitmesh").unlink()
    git(mesh, "add", "-A")
    accepted(mesh)
    (mesh / GITEA).write_text(BAD)
    git(mesh, "add", "-A")
    assert "refused[key-unknown]" in refused(mesh)
