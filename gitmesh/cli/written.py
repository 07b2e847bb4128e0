"""How every editing command ends: it writes all of its files, then says what it did and what is left."""

from __future__ import annotations

import signal
import stat
import sys
from collections.abc import Mapping, Sequence

import click

from gitmesh.cli.main import colourful
from gitmesh.cli.opened import Opened
from gitmesh.core.refusal import Refusal
from gitmesh.fsops import Root
from gitmesh.report import json as as_json
from gitmesh.report.edited import edited
from gitmesh.report.terminal import render

Changes = Mapping[str, bytes | None]
"""What each file will hold; None: it will be gone."""


def finish(
    opened: Opened,
    changes: Changes,
    about: Sequence[str],
    form: str,
    notes: Sequence[str] = (),
) -> None:
    """Write `changes`, say so, and say what the assignments `about` are still refused for.

    `notes` are what a person should know besides. Raises OSError.
    """
    said = [(path, _action(opened, path, blob)) for path, blob in changes.items()]
    real = {path: changes[path] for path, action in said if action != "unchanged"}
    after = opened.with_files(real) if real else opened
    write(opened, real)
    rest = [each for each in after.resolve()[1] if _is_about(each, set(changes), about)]
    if form == "json":
        click.echo(as_json.dump(edited(said, rest, after.files)))
        return
    for path, action in said:
        click.echo(_line(path, action))
    if not real:
        return
    for note in notes:
        click.echo(f"  {note}")
    if rest:
        click.echo("\nstill to answer:\n")
        click.echo(render(rest, after.files, colour=colourful(sys.stdout)))
    click.echo("next: git diff, gitmesh check")


def _action(opened: Opened, path: str, blob: bytes | None) -> str:
    before = opened.files.get(path)
    if blob is None:
        return "unchanged" if before is None else "removed"
    if before is None:
        return "added"
    return "unchanged" if before == blob else "changed"


def _line(path: str, action: str) -> str:
    if action == "unchanged":
        return f"{path} says so already; nothing was written"
    return f"{'removed' if action == 'removed' else 'wrote'} {path}"


def write(opened: Opened, changes: Changes) -> None:
    """Write the files that stay, then remove those that go: at no moment is less said than before.

    Ctrl-C waits for the few files to be there, so that an edit is whole or was never begun. Raises OSError.
    """
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        with Root(opened.folder) as root:
            for path, blob in changes.items():
                if blob is not None:
                    found = root.stat(path)
                    root.write(path, blob, 0o644 if found is None else stat.S_IMODE(found.st_mode))
            for path, blob in changes.items():
                if blob is None:
                    root.remove(path)
                    root.remove_directory(path.rpartition("/")[0])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)


def _is_about(refusal: Refusal, paths: set[str], about: Sequence[str]) -> bool:
    subject = refusal.subject
    return refusal.at.file in paths or any(subject == id_ or subject.startswith(f"{id_}.") for id_ in about)
