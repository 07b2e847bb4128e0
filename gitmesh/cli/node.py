"""What is run on a node: genesis on the vault's, enrolment and pulls on each."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitmesh.cli.main import Failure, Misused
from gitmesh.cli.options import format_option, repo_option

if TYPE_CHECKING:
    from gitmesh.host.pull import Pulled

root_option = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/"),
    show_default=True,
    help="The folder that stands for the machine's root.",
)
STALE = 75
_NAME = r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"


@click.command(epilog="Example: gitmesh genesis --repo ~/hellas")
@repo_option
@root_option
@click.option(
    "--root-key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of the root's key, if there is one already; else one is made.",
)
@click.option("--show", is_flag=True, help="Only print the sha256 of the mesh's first root.")
def genesis(repo: Path | None, root: Path, root_key: Path | None, show: bool) -> None:
    """Make the mesh's first keys and its root, on the node that is to hold the vault.

    Keys are made where they are used: the vault's and the controller's stay here. The root's key and the
    recovery key are to be taken off this machine and kept safe. Nothing that is there is written over.
    """
    from gitmesh.cli.genesis import begin, root_digest
    from gitmesh.cli.opened import open_mesh

    opened = open_mesh(repo)
    if show:
        click.echo(root_digest(opened.folder))
        return
    try:
        begun = begin(opened, root, root_key, int(time.time()))
    except PermissionError as wrong:
        raise _not_root(wrong, "gitmesh genesis") from None
    click.echo(f"made, on node {begun.node}:")
    for path, what in begun.files.items():
        click.echo(f"  {path}  {what}{' (it was there already)' if path in begun.kept else ''}")
    click.echo(f"the first root's sha256, which each node is enrolled with:\n  {begun.sha256}")
    away = "the recovery key" if root_key else "the root's key and the recovery key"
    click.echo(f"Take {away} off this machine now. Then commit trust/1.root.json.")


def _not_root(wrong: PermissionError, command: str) -> Failure:
    return Failure(f"{wrong.filename}: {wrong.strerror}; it is root's, or choose --root", f"sudo {command}")


@click.command(
    epilog="Example: gitmesh enrol athens --origin ssh://git@git.example.org/hellas.git --root-sha256 $SHA256"
)
@click.argument("node")
@root_option
@click.option("--origin", required=True, help="The URL of the git repo that the node reads.")
@click.option("--mailbox", help="The URL of the one it writes to; the same, if not given.")
@click.option("--root-sha256", required=True, metavar="HEX", help="As `gitmesh genesis --show` says it.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A clone on this machine, to write the keys into; else they are only printed.",
)
def enrol(
    node: str, root: Path, origin: str, mailbox: str | None, root_sha256: str, repo: Path | None
) -> None:
    """Make this machine the node NODE: make its keys, which never leave it, and print their public halves.

    Run again, it makes no new keys: it prints those that are there.
    """
    import re

    from gitmesh.cli.genesis import install, known_node, publish_keys, unclaimed
    from gitmesh.cli.opened import open_mesh

    root_sha256 = root_sha256.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", root_sha256, re.ASCII):
        raise Misused("--root-sha256 is 64 hex digits", "gitmesh genesis --show")
    if not re.fullmatch(_NAME, node, re.ASCII):
        raise Misused("NODE is a node's name: a-z, 0-9 and - inside, at most 63 characters")
    path = None
    if repo is not None:
        opened = open_mesh(repo)
        path = known_node(opened, node)
        unclaimed(opened, node, root)
    try:
        keys = install(node, root, origin, mailbox or origin, root_sha256)
    except PermissionError as wrong:
        raise _not_root(wrong, f"gitmesh enrol {node} …") from None
    line = f"keys: {{sign: '{keys.sign}', seal: '{keys.seal}', epoch: {keys.epoch}}}"
    if path is None:
        click.echo(f"put this line into nodes/{node}.yaml, and commit it:\n{line}")
        return
    publish_keys(path, keys)
    click.echo(f"{path}: {line}\nnext: commit it, and let a deploy approve it")


@click.command(epilog="Example: gitmesh pull --format json")
@root_option
@format_option
def pull(root: Path, form: str) -> None:
    """Fetch what is approved for this node, and make the node so.

    A document that does not count changes nothing: what runs keeps running, and the exit code is 75.
    """
    from gitmesh.host.installed import NotInstalled, read_installed
    from gitmesh.host.memory import keep_private
    from gitmesh.host.pull import Busy
    from gitmesh.host.pull import pull as pull_once
    from gitmesh.host.state import StateDamaged
    from gitmesh.repo.transport import RepoError
    from gitmesh.trust.keys import KeyRefused
    from gitmesh.trust.refused import Refused
    from gitmesh.vault.sops import SopsFailed, Unreadable

    keep_private()
    try:
        pulled = pull_once(read_installed(root), int(time.time()))
    except NotInstalled as wrong:
        raise Failure(str(wrong), "gitmesh enrol NODE --origin URL --root-sha256 HEX") from None
    except KeyRefused as wrong:
        raise Failure(wrong.message, wrong.fix) from None
    except StateDamaged as wrong:
        raise Failure(f"{wrong}; {wrong.way_out}") from None
    except Busy as wrong:
        raise Failure(str(wrong)) from None
    except (Unreadable, SopsFailed) as wrong:
        raise Failure(f"the vault's store: {wrong}") from None
    except PermissionError as wrong:
        raise _not_root(wrong, "gitmesh pull") from None
    except OSError as wrong:
        raise Failure(f"{wrong.filename or root}: {wrong.strerror}") from None
    except (Refused, RepoError) as wrong:
        _show_refused(str(wrong), form)
        sys.exit(STALE)
    click.echo(_as_json(pulled) if form == "json" else _as_text(pulled))
    if pulled.stale:
        sys.exit(STALE)
    if pulled.failed:
        sys.exit(1)


def _show_refused(why: str, form: str) -> None:
    if form == "json":
        said = {"v": 1, "changed": False, "summary": f"refused: {why}", "deploy": 0, "stale": why}
        click.echo(json.dumps(said))
    else:
        from gitmesh.report.located import safe

        click.echo(safe(f"refused: {why}; nothing was accepted before, so nothing runs"), err=True)


def summary(pulled: Pulled) -> str:
    """The pull in one line."""
    if pulled.stale:
        return f"keeps running deploy {pulled.seq}: {pulled.stale}"
    parts = [*pulled.new[:3], *([f"and {len(pulled.new) - 3} more"] if len(pulled.new) > 3 else [])]
    waits = sorted({f"{each.assignment} on {each.on}" for each in pulled.waiting})
    said = "; ".join(parts) or "nothing new"
    return said + (f"; waiting: {', '.join(waits)}" if waits else "")


def _heading(pulled: Pulled) -> str:
    """The first line of the text: how much follows it."""
    if pulled.stale:
        return summary(pulled)
    counts = {"new": len(pulled.new), "waiting": len(pulled.waiting), "failed": len(pulled.failed)}
    said = [f"{count} {what}" for what, count in counts.items() if count]
    return f"deploy {pulled.seq}: {', '.join(said) or 'nothing new'}"


def _as_json(pulled: Pulled) -> str:
    return json.dumps(
        {
            "v": 1,
            "node": pulled.node,
            "deploy": pulled.seq,
            "changed": pulled.changed,
            "summary": summary(pulled),
            "stale": pulled.stale,
            "new": pulled.new,
            "waiting": [
                {
                    "assignment": each.assignment,
                    "on": each.on,
                    "requirement": each.requirement,
                    "since": each.since,
                }
                for each in pulled.waiting
            ],
            "failed": [{"subject": each.subject, "message": each.message} for each in pulled.failed],
            "remarks": pulled.remarks,
        }
    )


def _as_text(pulled: Pulled) -> str:
    from gitmesh.report.located import safe

    lines = [f"{pulled.node}: {_heading(pulled)}"]
    lines += [f"  new: {each}" for each in pulled.new]
    lines += [f"  waiting: {each.assignment} on {each.on} for {each.requirement}" for each in pulled.waiting]
    lines += [f"  failed: {each.subject}: {each.message}" for each in pulled.failed]
    lines += [f"  note: {each}" for each in pulled.remarks]
    # What a backend or the vault's node says of a failure is theirs: no terminal is to obey it (F6).
    return "\n".join(map(safe, lines))
