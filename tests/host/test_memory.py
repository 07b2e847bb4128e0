"""A pull's memory stays its own: no core dump, whatever ends it (S54)."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real import PROJECT

CRASH = """
import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
if sys.argv[1] == "private":
    from gitmesh.host.memory import keep_private
    keep_private()
secret = "GMCANARY" + "x" * 35
print(resource.getrlimit(resource.RLIMIT_CORE)[0], flush=True)
import ctypes
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.rule("S54")
def test_no_core_is_dumped_after_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH, "private"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["0", "0"] and done.returncode == -11, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("S54")
def test_the_pull_command_begins_with_it(tmp_path: Path) -> None:
    script = (
        "import sys, resource\n"
        "from gitmesh.host import pull, installed\n"
        "def look(*_):\n"
        "    print('core', resource.getrlimit(resource.RLIMIT_CORE)[0], flush=True)\n"
        "    raise installed.NotInstalled('looked')\n"
        "installed.read_installed = look\n"
        "from gitmesh.cli.main import main\n"
        f"main(['pull', '--root', {str(tmp_path)!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_may_dump,
    )
    assert done.stdout == "core 0\n" and "looked" in done.stderr


def _may_dump() -> None:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
