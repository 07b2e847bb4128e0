"""The same refusals in the same bytes under any hash seed, in every face."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.small_mesh import FILES, SECOND, make

BROKEN = {
    "modules/postgres/module.yaml": FILES["modules/postgres/module.yaml"]
    .replace("listens: 5432", "listen: 5432, to: 1, from: 2")
    .replace("admin: superuser", "admin: superuser, mode: x, level: y"),
    "assignments/athens/gitea.yaml": "pins: {databse: x@y}\n"
    "values: {title: 1, worker: 2, web.nam: x}\nuses: [spar, rely]\n",
    "assignments/delphi/other.yaml": "",
    "assignments/corinth/caddy.yaml": "holds: [mesh-edge, mesh-stor]\n",
    "nodes/thebes.yaml": "address: 10.7.0.11\n",
}
FACES = ("text", "json", "github", "sarif", "markdown")


def said(folder: Path, face: str, seed: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "gitmesh", "check", "--repo", str(folder), "--format", face],
        env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    return done.stdout


@pytest.mark.rule("B10")
@pytest.mark.rule("B22")
@pytest.mark.parametrize("face", FACES)
def test_another_hash_seed_says_the_same(face: str, tmp_path: Path) -> None:
    make(tmp_path, FILES | SECOND | BROKEN)
    first, *others = (said(tmp_path, face, seed) for seed in ("0", "1", "4711"))
    assert first.count(b"gitea") >= 3, "more than a few refusals"
    assert all(each == first for each in others)
