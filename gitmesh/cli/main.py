"""The command `gitmesh`: one group whose commands are imported when they are used.

A node runs `gitmesh pull` every minute, so that starting must cost little: nothing but click is imported
here, and each command's module imports what it needs.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import IO, Any, NoReturn

import click

from gitmesh import __version__

COMMANDS = {
    "For operators": {
        "check": "gitmesh.cli.operator:check",
        "plan": "gitmesh.cli.operator_plan:plan",
        "explain": "gitmesh.cli.operator:explain",
        "assign": "gitmesh.cli.operator_edit:assign",
        "unassign": "gitmesh.cli.operator_edit:unassign",
        "pin": "gitmesh.cli.operator_edit:pin",
        "choose": "gitmesh.cli.operator_edit:choose",
        "set": "gitmesh.cli.operator_edit:set_value",
        "place": "gitmesh.cli.operator_move:place",
        "move": "gitmesh.cli.operator_move:move",
        "status": "gitmesh.cli.operator_status:status",
        "graph": "gitmesh.cli.graph:graph",
    },
    "On a node": {
        "genesis": "gitmesh.cli.node:genesis",
        "enrol": "gitmesh.cli.node:enrol",
        "pull": "gitmesh.cli.node:pull",
    },
    "For the controller": {
        "deploy": "gitmesh.cli.controller:deploy",
    },
    "For everyone": {
        "schema": "gitmesh.cli.author:schema",
        "catalogue": "gitmesh.cli.catalogue:catalogue",
        "demo": "gitmesh.cli.demo:demo",
        "completion": "gitmesh.cli.operator:completion",
    },
}
"""What there is, by kind of user: the command's name, and where it is."""

_WHERE = {name: where for commands in COMMANDS.values() for name, where in commands.items()}


class Failure(click.ClickException):
    """What a person has to know and a program ends for: `message`, and the command that may mend it."""

    exit_code = 1
    word = "error"

    def __init__(self, message: str, command: str | None = None) -> None:
        super().__init__(message)
        self.command = command

    def show(self, file: IO[Any] | None = None) -> None:
        """Say it on standard error. A remote, a file's name or a backend may have worded part of it, so
        nothing of it is left that a terminal would obey (F6)."""
        from gitmesh.report.located import safe  # here, since most commands end well

        attempt = [] if self.command is None else [f"  try: {self.command}"]
        lines = [f"{self.word}: {self.message}", *attempt]
        for line in "\n".join(lines).split("\n"):
            click.echo(safe(line), file=file, err=file is None)


class Misused(Failure):
    """A command that was called with what is not there; nothing was done."""

    exit_code = 2


class Refused(Failure):
    """What the mesh's rules forbid; nothing was written."""

    exit_code = 3
    word = "refused"


def nearest(word: str, known: Sequence[str]) -> str:
    """What `word` may have been meant to be, as the end of a message; empty where nothing is near."""
    from difflib import get_close_matches

    found = get_close_matches(word, known, 1, 0.6)
    return f"; did you mean `{found[0]}`?" if found else ""


class Commands(click.Group):
    """The group of all commands; a command's module is imported when it is used, or for the whole help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command's name, in the order of the help."""
        return list(_WHERE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        if cmd_name not in _WHERE:
            return None
        module, _, attribute = _WHERE[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest name where there is no such command."""
        name = args[0]
        if name not in _WHERE and not ctx.resilient_parsing and not name.startswith("-"):
            raise Misused(f"no command is called `{name}`{nearest(name, list(_WHERE))}", "gitmesh -h")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by kind of user."""
        for title, commands in COMMANDS.items():
            rows = []
            for name in commands:
                command = self.get_command(ctx, name)
                rows.append((name, command.get_short_help_str(formatter.width - 16) if command else ""))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: gitmesh check && git push",
)
@click.version_option(__version__, "--version", prog_name="gitmesh", message="%(prog)s %(version)s")
def cli() -> None:
    """A module requires, and the mesh resolves: services on plain Linux machines, wired from a git repo.

    Exit codes: 0 resolved or done, 1 failed, 2 wrong usage, 3 refused, 75 stale or refused by the host.
    """


def colourful(stream: IO[Any]) -> bool:
    """Whether `stream` is a terminal that is to be coloured (NO_COLOR, TERM=dumb)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit. What can be expected to go wrong ends in a line, never in a traceback."""
    # A command lives for a second or two and holds what it reads to its end: looking for cycles to free
    # takes a third of a large check and finds none.
    gc.disable()
    try:
        code = cli.main(arguments, prog_name="gitmesh", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as failure:
        failure.show()
        sys.exit(failure.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away. Python would flush into the broken pipe once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # RepoError: importing its module would slow every command that needs none
        known = _known(error)
        if known is None:
            raise
        known.show()
        sys.exit(known.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _known(error: Exception) -> Failure | None:
    """An expected error as a failure; None for any other, which is a mistake of gitmesh's own."""
    from gitmesh.repo.transport import RepoError

    if isinstance(error, RepoError):
        return Failure(error.message, error.command)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return Failure(f"{where}{error.strerror or error}")
    return None
