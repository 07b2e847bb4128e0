"""docs/gates.md: each command in it runs as it is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gates.installed import program
from tests.real import PROJECT, require
from tests.world import World

TEXT = (PROJECT / "docs/gates.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.rule("F5")
def test_each_command_runs_as_it_is_written(tmp_path: Path) -> None:
    require((Path(sys.executable).parent / "pre-commit").exists(), "pre-commit is not installed")
    world = World.begin(tmp_path)
    shutil.move(world.bare, tmp_path / "hellas.git")
    shutil.move(world.root("delphi"), tmp_path / "delphi")
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin")
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
        "CHECKOUT": str(PROJECT),
    }
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        folder = world.mesh if "pre-commit" in block else tmp_path
        done = subprocess.run(
            ["bash", "-euc", block], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    assert "deploy 1: for athens, delphi, sparta" in done.stdout
    pushed = subprocess.run(
        "git commit -q --allow-empty -m x && git push ../hellas.git main && "
        "git rm -q assignments/delphi/gitmesh-vault.yaml && git commit -q --no-verify -m y && "
        "! git push ../hellas.git main",
        shell=True, cwd=world.mesh, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert pushed.returncode == 0, pushed.stderr
    assert "gitmesh: deploying" in pushed.stderr and "refused[seat-unheld]" in pushed.stderr


def test_the_forced_commands_are_those_that_the_hook_reads() -> None:
    hook = (PROJECT / "hooks/pre-receive").read_text()
    for name in ("GITMESH_NODE", "GITMESH_VAULT"):
        assert name in hook and f"{name}=" in TEXT
    for key in re.findall(r"config (gitmesh\.\w+)", TEXT):
        assert key in hook + (PROJECT / "hooks/post-receive").read_text()


def test_the_hook_that_pre_commit_finds_is_the_one_shown() -> None:
    shown = re.search(r"- id: (\S+)", TEXT)
    assert shown and f"- id: {shown[1]}\n" in (PROJECT / ".pre-commit-hooks.yaml").read_text()
