"""A private PostgreSQL from this machine's packages, for where no container can run: the demo, the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

from gitmesh import fsops
from gitmesh.host.adapters.postgres_session import verifier
from gitmesh.trust.secret import Secret

_DEBIAN = Path("/usr/lib/postgresql")
_PATIENCE = 30.0
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_RULES = b"local all all reject\nhost all all all scram-sha-256\n"


class PostgresFailed(Exception):
    """The server did not start; the text is the end of what it said."""


def find_postgres() -> Path | None:
    """The folder with `initdb` and `postgres`, of the newest version that is installed; None without one."""
    versions = sorted(
        (each for each in _DEBIAN.glob("*/bin") if (each / "initdb").exists()),
        key=lambda each: [int(part) for part in each.parent.name.split(".") if part.isdigit()],
    )
    if versions:
        return versions[-1]
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).resolve().parent


class PostgresServer:
    """A server with its superuser `postgres`, on one address and port. Use it in a `with` statement.

    `data` is its own directory, made where it is missing; as root the server runs as the user `postgres`, who
    must be able to reach it. `password_file` is read when the directory is first initialised, and gives the
    superuser's password without a trailing newline. `settings` are added to the server's own; it writes its
    log to `log`.
    """

    def __init__(
        self,
        binaries: Path,
        data: Path,
        password_file: Path,
        address: str,
        port: int,
        *,
        log: Path,
        settings: tuple[str, ...] = (),
    ) -> None:
        self.address = address
        self.port = port
        self.log = log
        self._binaries = binaries
        self._data = data
        self._password_file = password_file
        self._settings = settings
        self._running: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Initialise what is new, start, and wait until it accepts sessions. Raises `PostgresFailed`."""
        if not (self._data / "PG_VERSION").exists():
            self._initialise()
        options = (
            f"listen_addresses={self.address}",
            f"port={self.port}",
            "unix_socket_directories=",
            *self._settings,
        )
        command = [str(self._binaries / "postgres"), "-D", str(self._data)]
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                [*command, *(part for option in options for part in ("-c", option))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_ENVIRONMENT,
                user=_user(),
                group=_group(),
                extra_groups=None if _user() is None else [],
            )
        self._wait(self._running)

    def stop(self) -> None:
        """End the sessions and the server; nothing where it does not run."""
        if self._running is not None:
            self._running.send_signal(signal.SIGINT)
            self._running.wait(_PATIENCE)
            self._running = None

    def _wait(self, running: subprocess.Popen[bytes]) -> None:
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", self.address, "-p", str(self.port)]
        until = time.monotonic() + _PATIENCE
        while subprocess.run(ready, env=_ENVIRONMENT, check=False).returncode != 0:
            if running.poll() is not None or time.monotonic() > until:
                self.stop()
                raise PostgresFailed(f"PostgreSQL did not start: {self._end_of_log()}")
            time.sleep(0.05)

    def _initialise(self) -> None:
        """The cluster, then its password over standard input: no argument and no file holds it."""
        owner = None if _user() is None else (_user() or 0, _group() or 0)
        fsops.make_directory(self._data, 0o700, owner)
        self._run(
            [
                "initdb",
                "--no-sync",
                "--encoding=UTF8",
                "--auth=reject",
                "--username=postgres",
                "-D",
                str(self._data),
            ]
        )
        password = Secret(self._password_file.read_bytes().rstrip(b"\n"))
        said = f"ALTER ROLE postgres PASSWORD '{verifier(password).text()}'\n"
        self._run(["postgres", "--single", "-D", str(self._data), "postgres"], said.encode())
        fsops.write(self._data / "pg_hba.conf", _RULES, 0o600, owner)

    def _run(self, command: list[str], said: bytes = b"") -> None:
        done = subprocess.run(
            [str(self._binaries / command[0]), *command[1:]],
            input=said,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=_ENVIRONMENT,
            user=_user(),
            group=_group(),
            extra_groups=None if _user() is None else [],
            check=False,
        )
        if done.returncode != 0:
            raise PostgresFailed(f"{command[0]} failed: {done.stdout.decode(errors='replace')[-500:]}")

    def _end_of_log(self) -> str:
        return self.log.read_bytes().decode(errors="replace")[-500:]


def _user() -> int | None:
    """Whom the server runs as: PostgreSQL refuses to run as root."""
    return _postgres().pw_uid if os.geteuid() == 0 else None


def _group() -> int | None:
    return _postgres().pw_gid if os.geteuid() == 0 else None


def _postgres() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise PostgresFailed("it refuses to run as root, and there is no user `postgres` here") from None
