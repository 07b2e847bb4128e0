"""What `dev` decides before it runs anything: whether the environment is right, and what may be installed."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.real import PROJECT


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script as a module, about a project in an empty folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("dev_script", str(PROJECT / "dev"))
    spec = importlib.util.spec_from_loader("dev_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    (tmp_path / "pyproject.toml").write_bytes((PROJECT / "pyproject.toml").read_bytes())
    for name, path in {
        "PROJECT": "",
        "VENV": ".venv",
        "PYTHON": ".venv/bin/python",
        "STAMP": ".venv/stamp",
    }.items():
        monkeypatch.setattr(module, name, tmp_path / path)
    monkeypatch.setattr(module, "POLICY", tmp_path / "policy-rc.d")
    return module


def fake_python(dev: ModuleType, says: str) -> None:
    """An environment whose Python answers every question with one line."""
    dev.PYTHON.parent.mkdir(parents=True)
    dev.PYTHON.write_text(f"#!/bin/sh\necho {says}\n")
    dev.PYTHON.chmod(0o755)


def test_a_second_call_runs_nothing(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_python(dev, dev.version())
    dev.STAMP.write_text(dev.fingerprint())
    monkeypatch.setattr(dev, "make_venv", lambda: pytest.fail("it made an environment"))
    monkeypatch.setattr(dev, "fail", lambda text: pytest.fail(text))
    dev.make_environment()


def test_a_changed_description_installs_again(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    fake_python(dev, dev.version())
    dev.STAMP.write_text(dev.fingerprint())
    with (dev.PROJECT / "pyproject.toml").open("a") as description:
        description.write("# changed\n")
    dev.make_environment()
    assert "installing gitmesh" in capsys.readouterr().out
    assert dev.STAMP.read_text() == dev.fingerprint()


@pytest.mark.parametrize("says", ["3.9", "nonsense"])
def test_an_environment_of_another_python_is_made_again(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: str
) -> None:
    fake_python(dev, says)
    dev.STAMP.write_text(dev.fingerprint())
    monkeypatch.setattr(dev, "make_venv", lambda: fake_python(dev, dev.version()))
    dev.make_environment()
    assert "of another Python or broken" in capsys.readouterr().out
    assert dev.usable()


def test_without_root_it_says_what_is_left_out(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = dev.Software("postgresql", lambda: False, "a real server")
    monkeypatch.setattr(dev, "WANTED", {"test": (missing,)})
    monkeypatch.setattr(dev, "may_install", lambda: False)
    monkeypatch.setattr(dev, "apt", lambda *_: pytest.fail("it ran apt-get"))
    dev.provide("test")
    assert "left out: a real server" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="sudo apt-get install python3-venv"):
        dev.get_ensurepip("/usr/bin/python3")


def test_as_root_it_installs_what_is_missing_and_starts_nothing(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[str, ...]] = []

    def apt(*arguments: str) -> bool:
        assert dev.POLICY.read_text().endswith("exit 101\n")
        ran.append(arguments)
        return True

    here, missing = [
        dev.Software(name, found, name) for name, found in [("a", lambda: True), ("b", lambda: bool(ran))]
    ]
    monkeypatch.setattr(dev, "WANTED", {"test": (here, missing)})
    monkeypatch.setattr(dev, "may_install", lambda: True)
    monkeypatch.setattr(dev, "apt", apt)
    dev.provide("test")
    dev.provide("demo")
    assert ran == [("update",), ("install", "-y", "--no-install-recommends", "b")]
    assert not dev.POLICY.exists()
    assert "installing b from Debian's packages" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--help"], 0), (["nope"], 2)])
def test_it_says_how_it_is_used(arguments: list[str], status: int) -> None:
    done = subprocess.run(
        [sys.executable, PROJECT / "dev", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert "usage: ./dev COMMAND" in done.stdout + done.stderr
