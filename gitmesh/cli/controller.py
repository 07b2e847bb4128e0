"""What the controller runs: CI after a merge, a git hook, or a timer."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from gitmesh.cli.main import Failure, Misused, colourful
from gitmesh.cli.node import root_option
from gitmesh.cli.options import format_option


@click.command(
    epilog="Example: gitmesh deploy --origin ssh://git@git.example.org/hellas.git --key deploy.key"
)
@root_option
@click.option("--origin", help="The mesh repo; else the one that this node was enrolled with.")
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The controller's key; else the one that genesis made.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="The controller's own copy of the repo, made where it is missing.",
)
@click.option(
    "--credentials",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of git's store of credentials, for an origin over https.",
)
@format_option
def deploy(
    root: Path, origin: str | None, key: Path | None, cache: Path | None, credentials: Path | None, form: str
) -> None:
    """Resolve main and publish what each node is to be.

    With nothing new it changes nothing until a renewal is due, a day after the last deploy. A main that does
    not resolve renews what was approved last, and exits with 3.
    """
    from gitmesh.cli.genesis import CONTROLLER_KEY
    from gitmesh.deploy.run import Controller
    from gitmesh.host.installed import NotInstalled, read_installed
    from gitmesh.repo.transport import Access, Rejected, RepoError, without_credentials
    from gitmesh.report import terminal
    from gitmesh.trust.keys import KeyRefused, SigningKey, read_key
    from gitmesh.trust.refused import Refused

    key = key or root / CONTROLLER_KEY
    try:
        url = read_installed(root).origin if origin is None else origin
        signing = read_key(key, SigningKey)
    except NotInstalled as wrong:
        raise Failure(f"no --origin, and {wrong}", "gitmesh deploy --origin URL --key FILE") from None
    except KeyRefused as wrong:
        raise Failure(wrong.message, wrong.fix) from None
    except FileNotFoundError:
        raise Failure(
            f"{key} is not there: genesis made the controller's key on the node that holds `mesh-vault`",
            "gitmesh deploy --key FILE",
        ) from None
    if not url:
        raise Misused("--origin is empty", "gitmesh deploy --origin URL")
    cache = cache or root / "var/lib/gitmesh/controller.git"
    try:
        access = Access(credentials=credentials and credentials.absolute())
        done = Controller(cache, url, signing, int(time.time()), access).deploy()
    except Rejected:
        raise Failure("others deployed first, each time it was tried", "gitmesh deploy") from None
    except Refused as wrong:
        raise Failure(f"what stands on {without_credentials(url)} is not this mesh's: {wrong}") from None
    except RepoError as wrong:
        raise Failure(wrong.message, wrong.command) from None
    if form == "json":
        said = {
            "v": 1,
            "deploy": done.seq,
            "commit": done.commit,
            "pushed": list(done.pushed),
            "not-enrolled": list(done.absent),
            "refused": [each.code.value for each in done.refusals],
        }
        click.echo(json.dumps(said))
    else:
        if done.refusals:
            click.echo(terminal.render(done.refusals, done.files, colour=colourful(sys.stdout)), nl=False)
        click.echo(_said(done.seq, done.pushed, bool(done.refusals)))
        for node in done.absent:
            click.echo(f"  {node} has not enrolled: gitmesh enrol {node} --origin URL --root-sha256 HEX")
    if done.refusals:
        sys.exit(3)


def _said(seq: int, pushed: tuple[str, ...], refused: bool) -> str:
    if refused and not seq:
        return "nothing was deployed yet, and main does not resolve"
    kept = "main does not resolve; " if refused else ""
    nodes = sorted(ref.rpartition("/")[2] for ref in pushed if ref.startswith("refs/gitmesh/node/"))
    if not pushed:
        return f"{kept}deploy {seq} stands; nothing is new"
    changed = f"for {', '.join(nodes)}" if nodes else "the same for every node"
    return f"{kept}deploy {seq}: {changed}"
