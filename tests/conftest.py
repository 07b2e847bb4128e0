"""Every test runs with git settings of its own, whoever runs it and wherever."""

from __future__ import annotations

import os
import shutil
import signal
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import shared

GITCONFIG = """\
[user]
    name = Ada
    email = ada@example.org
[init]
    defaultBranch = main
[commit]
    gpgSign = false
[gc]
    auto = 0
[maintenance]
    auto = false
[advice]
    detachedHead = false
"""


def pytest_configure() -> None:
    """A shell starts what it puts into the background deaf to Ctrl-C, and every program below inherits that;
    some tests interrupt such programs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty HOME, a git identity and fixed commit times; nothing that git or gitmesh reads from outside.

    For the whole session, so that fixtures of any scope and the programs that tests start see it too.
    """
    home = tmp_path_factory.mktemp("home")
    settings = home / ".gitconfig"
    settings.write_text(GITCONFIG)
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in os.environ if _reaches_in(each)]:
            patch.delenv(name)
        for name, value in _settings(home, settings).items():
            patch.setenv(name, value)
        yield


def _reaches_in(name: str) -> bool:
    """Whether a variable would carry something of the machine into a test."""
    if name in ("GITMESH_REQUIRE_REAL", "GITMESH_SHARED", "GITMESH_BLESS"):
        return False
    return name.startswith(("GIT_", "GITMESH_", "SOPS_", "XDG_", "SSH_", "PG")) or name == "NO_COLOR"


def _settings(home: Path, settings: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }


@pytest.fixture(scope="session")
def example_mesh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the reference folder's example mesh. By hand the nodes' keys are elided, as `ed25519:…`."""
    copy = tmp_path_factory.mktemp("example") / "mesh"
    shutil.copytree(shared("example-mesh"), copy)
    for number, file in enumerate(sorted((copy / "nodes").iterdir())):
        key = b64encode(bytes([number] * 32)).decode()
        file.write_text(file.read_text().replace("…", key))
    return copy
