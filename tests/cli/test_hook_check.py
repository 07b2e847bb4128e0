"""The bare repo's hook with the real check behind it: a main that does not resolve can't be pushed (F5)."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitmesh.assets import asset


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a guarded bare repo, with the template mesh in it, not committed yet."""
    bare, clone = tmp_path / "origin.git", tmp_path / "mesh"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True)
    shutil.copy(asset("hooks") / "pre-receive", bare / "hooks" / "pre-receive")
    (bare / "hooks" / "pre-receive").chmod(0o755)
    program = tmp_path / "gitmesh"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gitmesh "$@"\n')
    program.chmod(0o755)
    git(bare, "config", "gitmesh.program", str(program))
    shutil.copytree(asset("mesh-repo-template"), clone)
    git(clone, "init", "-q", "-b", "main")
    git(clone, "remote", "add", "origin", bare.as_uri())
    return clone


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)


def commit_and_push(clone: Path) -> subprocess.CompletedProcess[str]:
    git(clone, "add", "-A")
    assert git(clone, "commit", "-q", "-m", "a change").returncode == 0
    return git(clone, "push", "origin", "main")


@pytest.mark.rule("F5")
def test_a_commit_that_does_not_resolve_cannot_reach_main(clone: Path) -> None:
    assert commit_and_push(clone).returncode == 0, "the template resolves"
    before = git(clone, "ls-remote", "origin", "main").stdout
    (clone / "assignments" / "delphi" / "postgres.yaml").write_text("")
    (clone / "mesh.yaml").write_text(
        "\n".join(line for line in (clone / "mesh.yaml").read_text().split("\n") if "choose" not in line)
    )
    done = commit_and_push(clone)
    assert done.returncode != 0
    assert "refused[ambiguous-provider]" in done.stderr
    assert "gitmesh pin" in done.stderr, "the push itself says what would answer it"
    assert git(clone, "ls-remote", "origin", "main").stdout == before
