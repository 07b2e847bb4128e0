"""The frame: what every command shares, and how anything ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gitmesh import __version__
from gitmesh.cli import main as frame
from gitmesh.cli.main import COMMANDS, Failure, Misused, cli, colourful, main
from gitmesh.repo.transport import RepoError

NAMES = [name for commands in COMMANDS.values() for name in commands]


def run(*arguments: str, **kept: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], **kept}
    command = [sys.executable, "-m", "gitmesh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example(name: str) -> None:
    for option in ("-h", "--help"):
        done = CliRunner().invoke(cli, [name, option])
        assert done.exit_code == 0
        assert f"Example: gitmesh {name} " in done.output


def test_the_help_lists_every_command() -> None:
    done = CliRunner().invoke(cli, ["--help"])
    assert done.exit_code == 0
    for title, commands in COMMANDS.items():
        assert f"{title}:" in done.output
        assert all(f"\n  {name} " in done.output for name in commands)
    assert "75 stale" in done.output


def test_the_version() -> None:
    assert CliRunner().invoke(cli, ["--version"]).output == f"gitmesh {__version__}\n"


def test_an_unknown_command_names_the_nearest() -> None:
    done = run("chekc")
    assert done.returncode == 2
    assert done.stderr == ("error: no command is called `chekc`; did you mean `check`?\n  try: gitmesh -h\n")


def test_starting_imports_little() -> None:
    code = "import sys, gitmesh.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pygit2", "ruamel.yaml", "ryaml", "jsonschema", "nacl", "rich", "sopsy", "gitmesh.core.model"}
    assert heavy.isdisjoint(done.stdout.split())


def test_explain_imports_no_parser() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom gitmesh.cli.main import cli\n"
        "assert CliRunner().invoke(cli, ['explain', 'cycle']).exit_code == 0\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pygit2", "ruamel.yaml", "ryaml", "jsonschema", "nacl"}.isdisjoint(done.stdout.split())


@pytest.fixture
def ending(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs a command that raises, and gives the exit code and what stands on standard error."""

    def end(error: BaseException) -> tuple[int, str]:
        @click.command()
        def fails() -> None:
            raise error

        monkeypatch.setattr(frame, "cli", fails)
        with pytest.raises(SystemExit) as exited:
            main([])
        assert isinstance(exited.value.code, int)
        return exited.value.code, capsys.readouterr().err

    return end


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Failure("it broke"), 1, "error: it broke\n"),
        (Failure("it broke", "mend it"), 1, "error: it broke\n  try: mend it\n"),
        (Misused("no such thing"), 2, "error: no such thing\n"),
        (RepoError("x is not a git repository", "git init x"), 1,
         "error: x is not a git repository\n  try: git init x\n"),
        (PermissionError(13, "Permission denied", "mesh.yaml"), 1, "error: mesh.yaml: Permission denied\n"),
        (OSError("disk"), 1, "error: disk\n"),
    ],
)  # fmt: skip
def test_expected_errors_end_in_a_line(
    error: BaseException, code: int, said: str, ending: Callable[..., tuple[int, str]]
) -> None:
    assert ending(error) == (code, said)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_ends_in_a_line(error: BaseException, ending: Callable[..., tuple[int, str]]) -> None:
    code, said = ending(error)
    assert code == 130
    assert said.strip() == "interrupted"


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fails() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(frame, "cli", fails)
    with pytest.raises(ZeroDivisionError):
        main([])


def test_a_signal_ends_in_a_line() -> None:
    code = (
        "import os, signal, click\nimport gitmesh.cli.main as frame\n"
        "@click.command()\ndef waits():\n    os.kill(os.getpid(), signal.SIGINT)\n    click.pause()\n"
        "frame.cli = waits\nframe.main([])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130, signal.Signals(2)
    assert done.stderr.strip() == "interrupted"


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m gitmesh explain; echo $? >&2"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["sh", "-c", command], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.stderr == "1\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell])
    assert done.exit_code == 0
    assert "_GITMESH_COMPLETE" in done.output


def test_completion_completes() -> None:
    done = run("x", _GITMESH_COMPLETE="bash_complete", COMP_WORDS="gitmesh as", COMP_CWORD="1")
    assert done.stdout == "plain,assign\n"


class _Stream:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_who_wants_no_colour_gets_none(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colourful(_Stream()) is coloured  # type: ignore[arg-type]  # a stream as far as it is asked
    with (tmp_path / "pipe").open("w") as file:
        assert not colourful(file)
