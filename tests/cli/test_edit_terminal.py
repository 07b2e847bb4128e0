"""Editing commands at a real terminal: they ask, and write what was chosen."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.small_mesh import FILES, SECOND, make

GITEA = "assignments/athens/gitea.yaml"
SOURCE = str(Path(__file__).parents[2])


def at_terminal(folder: Path, *arguments: str, question: bytes, given: bytes) -> tuple[int, str]:
    """Run gitmesh on a terminal of its own, typing `given` when it asks `question`: exit code and output."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "gitmesh", *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": SOURCE},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said, typed = b"", False
    with suppress(OSError):  # the far end of a terminal that was closed
        while part := os.read(ours, 4096):
            said += part
            if question in said and not typed:
                typed = os.write(ours, given) > 0
    os.close(ours)
    assert typed, said.decode()
    return running.wait(timeout=30), said.decode()


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    return make(tmp_path, FILES | SECOND)


@pytest.mark.rule("B4")
def test_a_number_chooses(mesh: Path) -> None:
    code, said = at_terminal(mesh, "assign", "gitea", "athens", question=b"Number", given=b"2\n")
    assert code == 0, said
    assert "database: postgres@delphi" in (mesh / GITEA).read_text()
