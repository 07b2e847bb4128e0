"""`gitmesh demo`: with a real PostgreSQL, without one, and ended in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gitmesh.cli import demo
from gitmesh.cli.demo import Story
from gitmesh.cli.demo_postgres import PostgresFailed, PostgresServer, find_postgres
from gitmesh.cli.main import cli
from tests.real import require

STEPS = [f"[{number}] " for number in range(1, 7)]
SECRETS = "run/gitmesh/secrets"


class FakeServer:
    """A server that was started and may be stopped."""

    stopped = False

    def stop(self) -> None:
        """Note it."""
        self.stopped = True


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that the user `postgres` can reach, which pytest's own is not."""
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_uid == os.geteuid() and not each.stat().st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o011)
    yield tmp_path


@pytest.mark.rule("B11", "C10")
def test_without_postgresql_it_shows_everything_up_to_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_postgres", lambda: None)
    done = CliRunner().invoke(cli, ["demo", "--keep", str(tmp_path / "hellas")])
    assert done.exit_code == 0, done.output
    for step in STEPS:
        assert f"\n{step}" in done.output
    assert (
        "No PostgreSQL is installed here, so sparta keeps waiting: apt-get install postgresql" in done.output
    )
    assert "GITEA__database__HOST=(waiting)" in done.output
    assert "There is no server to log in to: apt-get install postgresql" in done.output
    assert "Logged in" not in done.output
    assert done.output.count("gitea@athens  waiting on postgres@sparta for database") == 2
    assert "deploy 1 stands; nothing is new" in done.output


@pytest.mark.parametrize("wrong", [PostgresFailed("no room"), OSError("no such program")])
def test_a_postgresql_that_does_not_start_ends_no_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: Exception
) -> None:
    story = Story(tmp_path)
    secret = story.node("sparta") / SECRETS / "postgres@sparta/postgres/run/secrets/postgres_password_file"
    secret.parent.mkdir(parents=True)
    secret.write_text("GMCANARY")
    described = story.node("sparta") / "var/lib/gitmesh/files/postgres@sparta/postgres.json"
    described.parent.mkdir(parents=True)
    described.write_text('{"publish": [{"address": "127.0.0.12", "port": "31000"}]}')

    def start(_: object) -> None:
        raise wrong

    monkeypatch.setattr(demo, "find_postgres", lambda: tmp_path)
    monkeypatch.setattr(PostgresServer, "start", start)
    assert not story._start_postgres()
    assert story.server is None
    said = capsys.readouterr().out
    assert f"PostgreSQL does not start here, so sparta keeps waiting: {wrong}" in said
    assert "GMCANARY" not in said


@pytest.mark.parametrize(
    "ending", [KeyboardInterrupt(), signal.SIGTERM, signal.SIGHUP, ValueError("a mistake")]
)
def test_however_it_ends_it_stops_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: BaseException | signal.Signals
) -> None:
    server = FakeServer()

    def tell(story: Story) -> None:
        monkeypatch.setattr(story, "server", server)
        if isinstance(ending, BaseException):
            raise ending
        signal.raise_signal(ending)

    monkeypatch.setattr(Story, "tell", tell)
    before = signal.getsignal(signal.SIGTERM)
    done = CliRunner().invoke(cli, ["demo", "--keep", str(tmp_path / "hellas")])
    assert done.exit_code != 0
    assert server.stopped
    assert f"Everything is in {tmp_path / 'hellas'}" in done.output
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.real
def test_ctrl_c_stops_the_real_server(open_folder: Path) -> None:
    require(find_postgres(), "no PostgreSQL is installed")
    folder = open_folder / "hellas"
    running = subprocess.Popen(
        [sys.executable, "-m", "gitmesh", "demo", "--keep", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    pid = folder / "postgres/postmaster.pid"
    until = time.monotonic() + 60
    while not pid.exists() and running.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert pid.exists(), running.communicate()[0]
    os.killpg(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert not _lives(pid)


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    done = CliRunner().invoke(cli, ["demo", "--keep", str(tmp_path)])
    assert done.exit_code == 1
    assert done.output == f"error: {tmp_path} exists already\n  try: gitmesh demo --keep {tmp_path}-2\n"
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def _lives(pid: Path) -> bool:
    """Whether the server of a pid file runs. A first start that was killed leaves the file behind."""
    try:
        os.kill(int(pid.read_text().split()[0]), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True
