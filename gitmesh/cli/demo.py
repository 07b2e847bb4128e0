"""`gitmesh demo`: a whole mesh on this machine, from a refused change to a running login.

It runs the same commands that an operator, a controller and three nodes would run, each in a process of
its own, and shows what they print. The only part that it plays is sparta's container: it starts
PostgreSQL from the distribution's package where gitmesh says that the container listens.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from gitmesh.assets import asset
from gitmesh.cli.demo_postgres import PostgresFailed, PostgresServer, find_postgres
from gitmesh.cli.main import Failure
from gitmesh.repo.edit import put
from gitmesh.repo.transport import environment

NODES = ("delphi", "sparta", "athens")


@click.command(epilog="Example: gitmesh demo --keep hellas")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Make the mesh in this new folder, and leave it there."
)
def demo(keep: Path | None) -> None:
    """Show gitmesh at work: three nodes, one git repo and a real PostgreSQL on this machine.

    It takes half a minute, needs neither root nor a network, and stops what it started.
    """
    if keep is not None and keep.exists():
        raise Failure(f"{keep} exists already", f"gitmesh demo --keep {keep}-2")
    folder = Path(tempfile.mkdtemp(prefix="gitmesh-demo-")) if keep is None else keep.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    # PostgreSQL does not run as root: as root it runs as `postgres`, which has to reach its folder.
    folder.chmod(0o755)
    story = Story(folder)
    try:
        with _signals_end_it():
            story.tell()
    finally:
        story.end()
        click.echo(f"\nEverything is in {folder}: the clone in mesh, the nodes' files in nodes.")


@contextlib.contextmanager
def _signals_end_it() -> Iterator[None]:
    """Ended by a signal, the demo still stops PostgreSQL, as it does after Ctrl-C."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@dataclass
class Story:
    """The mesh of the demo, in `folder`: origin.git, a clone `mesh`, and a folder for each node."""

    folder: Path
    server: PostgresServer | None = None

    @property
    def mesh(self) -> Path:
        """The operator's clone."""
        return self.folder / "mesh"

    @property
    def origin(self) -> str:
        """The bare repo that is origin and mailbox."""
        return (self.folder / "origin.git").as_uri()

    def node(self, name: str) -> Path:
        """The root of a node's files."""
        return self.folder / "nodes" / name

    def tell(self) -> None:
        """Every step in order; one that goes wrong ends the story with its output."""
        self.begin()
        self.refuse()
        self.answer()
        self.deploy()
        self.pull()
        self.show()
        self.repeat()

    def end(self) -> None:
        """Stop what the demo started."""
        if self.server is not None:
            self.server.stop()

    # --- the steps -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A mesh repo from the template, with three things left out."""
        shutil.copytree(asset("mesh-repo-template"), self.mesh)
        _git(self.folder, "init", "-q", "--bare", "-b", "main", "origin.git")
        self._edit("mesh.yaml", ["origin"], self.origin)
        self._edit("mesh.yaml", ["mailbox"], self.origin)
        for each in sorted((self.mesh / "assignments").glob("*/*.yaml")):
            if f"{each.parent.name}/{each.stem}" not in {
                "athens/gitea",
                "sparta/postgres",
                "delphi/caddy",
                "delphi/gitmesh-vault",
            }:
                each.unlink()
        (self.mesh / "assignments/delphi/gitmesh-vault.yaml").write_text("")
        (self.mesh / "assignments/delphi/postgres.yaml").write_text("")
        (self.mesh / "assignments/athens/gitea.yaml").write_text(
            "# the team's forge; ask Ada before moving it\n"
        )
        _git(self.mesh, "init", "-q", "-b", "main")
        _git(self.mesh, "remote", "add", "origin", self.origin)

    def refuse(self) -> None:
        """Step 1."""
        _say(
            1,
            "Gitea is assigned to athens. Two PostgreSQL servers could serve it, its public name is missing, "
            "and nobody holds the vault. Everything is said at once:",
        )
        self._run("check", expect=3)

    def answer(self) -> None:
        """Step 2."""
        _say(2, "Each refusal says what answers it. Run those commands; comments in the files stay:")
        self._run("pin", "gitea@athens", "database", "postgres@sparta", lines=1)
        self._run("set", "gitea@athens", "web.name", "git.example.org", lines=1)
        self._run("assign", "gitmesh-vault", "delphi", "--hold", "mesh-vault")
        click.echo("\nKeys are made where they are used. Genesis, on the node that is to hold the vault:")
        self._run("genesis", "--root", str(self.node("delphi")))
        root = self._root_digest()
        for name in NODES:
            self._run(
                "enrol", name, "--root", str(self.node(name)), "--origin", self.origin, "--root-sha256", root,
                "--repo", str(self.mesh), quiet=name != "athens",
            )  # fmt: skip
        click.echo("(and the same on sparta and delphi)")
        self._run("check")

    def deploy(self) -> None:
        """Step 3."""
        _say(3, "The change is merged, and the controller deploys it:")
        _git(self.mesh, "add", "-A")
        _git(self.mesh, "commit", "-q", "-m", "gitea on athens")
        _git(self.mesh, "push", "-q", "origin", "main")
        self._deploy()

    def pull(self) -> None:
        """Step 4."""
        _say(4, "Each node pulls by itself. The vault on delphi makes what is asked for and seals it:")
        click.echo()
        self._round()
        self._run("status", expect=None)
        if self._start_postgres():
            click.echo("\nSparta's files are there, so its PostgreSQL starts (the demo plays the container).")
        click.echo("\nThe nodes pull on until nothing changes:")
        for _ in range(6):
            if not self._round():
                break
        self._run("status", expect=None)

    def show(self) -> None:
        """Step 5."""
        _say(5, "What gitea was given on athens, secrets as files of mode 0400 and nowhere else:")
        described = self._described("athens", "gitea@athens")
        for name in ("GITEA__database__HOST", "GITEA__database__NAME", "GITEA__database__USER",
                     "GITEA__database__PASSWD__FILE", "GITEA__server__ROOT_URL"):  # fmt: skip
            click.echo(f"  {name}={described.get(name, '(waiting)')}")
        secrets = self.node("athens") / "run/gitmesh/secrets/gitea@athens"
        for each in sorted(secrets.rglob("*")):
            if each.is_file():
                found = each.stat()
                shown = each.relative_to(secrets / "gitea")
                click.echo(f"  {found.st_mode & 0o777:04o} /{shown}  ******** ({found.st_size} bytes)")
        if self.server is not None:
            self._log_in(described)
        else:
            click.echo("\nThere is no server to log in to: apt-get install postgresql, and try again.")

    def repeat(self) -> None:
        """Step 6."""
        _say(6, "Deploy and pull once more. Nothing is new, so nothing changes:")
        self._deploy()
        click.echo()
        self._round()
        click.echo(
            textwrap.dedent(
                """
                What to look at, and to try next:
                  cd FOLDER/mesh, below; then
                  git fetch && git log -p origin/deploy   what was approved, deploy by deploy
                  gitmesh status                          who runs, who waits on whom, what failed
                  gitmesh set gitea@athens web.name code.example.org && git diff
                  gitmesh explain ambiguous-provider      what a refusal means, and the ways out"""
            )
        )

    # --- what the steps do -----------------------------------------------------------------------------

    def _run(
        self, *arguments: str, expect: int | None = 0, quiet: bool = False, lines: int | None = None
    ) -> str:
        """One command in the clone, as an operator types it; the first `lines` it prints are shown, unless
        `quiet`."""
        if not quiet:
            click.secho(f"\n$ gitmesh {' '.join(_short(each, self.folder) for each in arguments)}", bold=True)
        done = _gitmesh(self.mesh, *arguments)
        if not quiet or done.returncode not in (0, expect):
            shown = _short(done.stdout, self.folder).rstrip().splitlines()
            click.echo("\n".join(shown[:lines]))
        if expect is not None and done.returncode != expect:
            raise Failure(f"`gitmesh {arguments[0]}` ended with {done.returncode}, and {expect} was expected")
        return done.stdout

    def _deploy(self) -> None:
        self._run("deploy", "--root", str(self.node("delphi")))

    def _round(self) -> bool:
        """One pull on each node, as their timers would; whether anything changed."""
        changed = False
        quiet = []
        for name in NODES:
            done = _gitmesh(self.folder, "pull", "--root", str(self.node(name)), "--format", "json")
            if done.returncode not in (0, 75):
                raise Failure(f"the pull of {name} failed:\n{done.stdout}")
            pulled = json.loads(done.stdout)
            changed = changed or pulled["changed"]
            if pulled["summary"] == "nothing new":
                quiet.append(name)
            else:
                click.echo(f"  {name}: {pulled['summary']}")
        if quiet:
            click.echo(f"  {', '.join(quiet)}: nothing new")
        return changed

    def _start_postgres(self) -> bool:
        """Play sparta's container: initdb with the superuser's file, and listen where the mesh says."""
        secret = next(
            self.node("sparta").glob("run/gitmesh/secrets/postgres@sparta/**/postgres_password_file"), None
        )
        if secret is None:
            raise Failure("sparta has not received its superuser's password")
        binaries = find_postgres()
        if binaries is None:
            click.echo(
                "\nNo PostgreSQL is installed here, so sparta keeps waiting: apt-get install postgresql"
            )
            return False
        publish = self._container("sparta", "postgres@sparta")["publish"][0]
        self.server = PostgresServer(
            binaries,
            self.folder / "postgres",
            secret,
            str(publish["address"]),
            int(publish["port"]),
            log=self.folder / "postgres.log",
        )
        try:
            self.server.start()
        except (PostgresFailed, OSError) as wrong:
            self.server = None
            click.echo(f"\nPostgreSQL does not start here, so sparta keeps waiting: {wrong}")
            if os.geteuid() == 0 and not _open_to_all(self.folder):
                click.echo(f"The user `postgres` can't reach {self.folder}; take another folder for --keep.")
            return False
        return True

    def _container(self, node: str, assignment: str) -> dict[str, list[dict[str, str]]]:
        found = next(self.node(node).glob(f"var/lib/gitmesh/files/{assignment}/*.json"))
        described: dict[str, list[dict[str, str]]] = json.loads(found.read_text())
        return described

    def _described(self, node: str, assignment: str) -> dict[str, str]:
        """The filled environment of a node's container."""
        found = next(self.node(node).glob(f"var/lib/gitmesh/files/{assignment}/*.environment"), None)
        lines = [] if found is None else found.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def _log_in(self, environment: dict[str, str]) -> None:
        """Log in as gitea would: with the filled environment, and the password from its file."""
        import pg8000.native

        host, _, port = environment["GITEA__database__HOST"].rpartition(":")
        name = environment["GITEA__database__PASSWD__FILE"].rpartition("/")[2]
        password = next(self.node("athens").glob(f"run/gitmesh/secrets/gitea@athens/**/{name}")).read_text()
        address = self._hosts("athens")[host]
        user, database = environment["GITEA__database__USER"], environment["GITEA__database__NAME"]
        with pg8000.native.Connection(user, address, database, int(port), password) as connection:
            row = connection.run("select session_user, current_user, current_database()")
        click.echo(
            f"\nLogged in to {host}:{port} as {row[0][0]}, acting as {row[0][1]}, in database {row[0][2]}."
        )

    def _hosts(self, node: str) -> dict[str, str]:
        """The mesh's names, as the node's accepted declaration says them."""
        found = next(self.node(node).glob("var/lib/gitmesh/accepted/*/declaration.json"))
        hosts: dict[str, str] = json.loads(found.read_text())["hosts"]
        return hosts

    def _root_digest(self) -> str:
        return self._run("genesis", "--show", quiet=True).strip()

    def _edit(self, file: str, keys: list[str], value: str) -> None:
        path = self.mesh / file
        path.write_bytes(put(path.read_bytes(), keys, value))


def _gitmesh(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gitmesh", *arguments],
        cwd=where,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _git(where: Path, *arguments: str) -> None:
    names = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    # Without the person's own settings: a commit here is signed by nobody and runs no hook.
    subprocess.run(["git", *arguments], cwd=where, check=True, env={**environment(), **names})


def _open_to_all(folder: Path) -> bool:
    """Whether every folder on the way can be passed by anyone."""
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents))


def _short(text: str, folder: Path) -> str:
    """Without the temporary folder's name, which says nothing."""
    return text.replace(folder.as_uri() + "/", "").replace(f"{folder}/", "").replace(str(folder), ".")


def _say(step: int, text: str) -> None:
    click.secho(f"\n[{step}] " + "\n    ".join(textwrap.wrap(text, 100)), fg="cyan", bold=True)
