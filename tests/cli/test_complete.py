"""What a shell completes: names of the mesh repo around the current folder, and nothing where it has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from gitmesh.cli.main import cli
from tests.cli.small_mesh import FILES, SECOND, make


def completed(line: str) -> list[str]:
    """What stands for the last word of `line`."""
    *words, last = line.split(" ")
    shell = BashComplete(cli, {}, "gitmesh", "_GITMESH_COMPLETE")
    return [item.value for item in shell.get_completions(words, last)]


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small mesh with two providers of a database, as the current folder."""
    make(tmp_path, FILES | SECOND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("mesh")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (
            "pin ",
            ["caddy@delphi", "gitea@athens", "gitmesh-vault@delphi", "postgres@delphi", "postgres@sparta"],
        ),
        ("pin gite", ["gitea@athens"]),
        ("pin gitea@athens ", ["database", "spare", "web"]),
        ("pin gitea@athens database ", ["postgres@delphi", "postgres@sparta"]),
        ("pin gitea@athens database postgres@s", ["postgres@sparta"]),
        ("pin gitea@athens web ", ["caddy@delphi"]),
        ("pin nobody@athens ", []),
        ("pin gitea@athens nothing ", []),
        ("set gitea@athens ", ["title", "web.name", "workers"]),
        ("set gitea@athens w", ["web.name", "workers"]),
        ("assign ", ["caddy", "gitea", "gitmesh-vault", "postgres"]),
        ("assign gitea ", ["athens", "delphi", "sparta"]),
        ("unassign p", ["postgres"]),
        ("unassign postgres ", ["delphi", "sparta"]),
        ("unassign caddy ", ["delphi"]),
        ("explain pin-b", ["pin-bad", "pin-beside-seat"]),
        ("explain git", ["gitea@athens", "gitmesh-vault@delphi"]),
        ("explain gitea@athens.w", ["gitea@athens.web", "gitea@athens.workers"]),
        ("explain gitea@athens.database.p", ["gitea@athens.database.password", "gitea@athens.database.port"]),
        ("explain gitea@athens.http.a", ["gitea@athens.http.address"]),
    ],
)
def test_names_of_the_mesh_are_offered(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_another_repo_is_read_where_it_is_named(mesh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert completed(f"pin --repo {mesh} gite") == ["gitea@athens"]


@pytest.mark.parametrize("text", ["mesh: [", "\x00", ""])
def test_a_broken_repo_offers_nothing_and_says_nothing(mesh: Path, text: str) -> None:
    for path in ("mesh.yaml", "modules/gitea/module.yaml", "assignments/athens/gitea.yaml"):
        (mesh / path).write_text(text)
    assert completed("pin gitea@athens ") == []


def test_in_a_real_process_outside_a_repo_it_is_silent(tmp_path: Path) -> None:
    words = {"COMP_WORDS": "gitmesh pin gi", "COMP_CWORD": "2", "_GITMESH_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "gitmesh"],
        cwd=tmp_path, env={**os.environ, **words}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("", "")
