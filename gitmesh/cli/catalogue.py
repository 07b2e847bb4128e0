"""What who writes or vendors definitions asks: does a catalogue keep the rules, and where is it from."""

from __future__ import annotations

import re
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gitmesh.cli.main import Failure, Misused, colourful, nearest
from gitmesh.cli.options import formats, repo_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmesh.catalogue.lint import Counted
    from gitmesh.catalogue.ratchet import Ratchet
    from gitmesh.catalogue.vendor import Fetched, Pin
    from gitmesh.cli.opened import Opened
    from gitmesh.core.refusal import Refusal
    from gitmesh.report.vendored import Vendored

_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_yes_option = click.option("--yes", is_flag=True, help="Ask nothing; without a terminal this is needed.")
_form_option = formats(
    "text", "json", "markdown", told="How to print what changes; markdown: for a pull request."
)


@click.group(epilog="Example: gitmesh catalogue lint")
def catalogue() -> None:
    """Hold all definitions against the rules, and vendor those of others."""


@catalogue.command(epilog="Example: gitmesh catalogue lint --format github")
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--staged", is_flag=True, help="What `git commit` would take, as a pre-commit hook asks.")
@click.option("--retired", is_flag=True, help="Only list retired forms, in definitions that need not load.")
@click.option("--update-ratchet", is_flag=True, help="Lower what catalogue-ratchet.yaml allows.")
@formats("text", "json", "github")
def lint(folder: Path | None, staged: bool, retired: bool, update_ratchet: bool, form: str) -> None:
    """Hold every definition in FOLDER against the rules, assigned or not.

    FOLDER is a mesh repo, or one that holds nothing but modules and contracts; the current one, if none is
    said. Names and paths written out are refused unless listed with a reason; what is listed, and what takes
    a secret in an env-file, is counted. More than catalogue-ratchet.yaml allows is refused. Exit code 0:
    clean, 3: refused.
    """
    from gitmesh.catalogue.lint import DEFINITIONS, Findings, lint
    from gitmesh.catalogue.ratchet import Ratchet, counts_of, grown
    from gitmesh.catalogue.retired import retired_uses
    from gitmesh.repo.tree import open_staged, open_tree

    if staged and update_ratchet:
        raise Misused("--staged only reads, so that --update-ratchet can't be given as well")
    top = folder or Path()
    tree = open_staged(top) if staged else open_tree(top)
    named = (*tree.files, *(each.at.file for each in tree.refusals))
    if not any(each.startswith(DEFINITIONS) for each in named):
        raise Misused(f"{top} has no modules/ and no contracts/", "gitmesh catalogue lint FOLDER")
    kinds = ("retired",) if retired else ("exceptions", "env-files")
    found = Findings((), retired_uses(tree.files), whole=True) if retired else lint(tree.files, tree.refusals)
    ratchet = Ratchet.of(tree.files)
    counts = counts_of(found.counted, kinds)
    if update_ratchet and found.whole and not ratchet.refusals:
        ratchet = _lower(top, ratchet, counts)
    refusals = [*ratchet.refusals, *found.refusals]
    if found.whole and not ratchet.refusals:
        refusals += grown(ratchet, found.counted, kinds)
    click.echo(_said(form, refusals, found.counted, ratchet, counts, tree.files), nl=False)
    if refusals:
        sys.exit(3)


def _lower(top: Path, ratchet: Ratchet, counts: Mapping[str, int]) -> Ratchet:
    """The ratchet with the counts that went down, written."""
    from gitmesh.catalogue.ratchet import FILE, Ratchet
    from gitmesh.fsops import Root
    from gitmesh.repo.edit import Uneditable

    try:
        blob = ratchet.lowered(counts)
    except Uneditable as error:
        raise Failure(f"{FILE}: {error}") from error
    if blob != ratchet.blob:
        with Root(top) as root:
            root.write(FILE, blob)
    return Ratchet.of({FILE: blob})


def _said(
    form: str,
    refusals: Sequence[Refusal],
    counted: Sequence[Counted],
    ratchet: Ratchet,
    counts: Mapping[str, int],
    files: Mapping[str, bytes],
) -> str:
    from gitmesh.report import github, linted

    match form:
        case "json":
            return linted.as_json(refusals, counted, ratchet.allowed, counts, files)
        case "github":
            return github.render(refusals, files)
        case _:
            return linted.as_text(
                refusals, counted, ratchet.allowed, counts, files, colour=colourful(sys.stdout)
            )


@catalogue.command(epilog="Example: gitmesh catalogue vendor shop https://git.example.org/shop.git@v1.4")
@click.argument("name")
@click.argument("remote", metavar="REMOTE[@COMMIT]")
@_yes_option
@_form_option
@repo_option
def vendor(name: str, remote: str, yes: bool, form: str, repo: Path | None) -> None:
    """Take the modules, contracts and seats of another git repository into catalogue/NAME/.

    COMMIT is a commit's full id, a tag or a branch; else the remote's branch main. What comes is shown, and a
    terminal is asked. catalogue.yaml then pins the commit and the digest of what was taken.
    """
    from gitmesh.catalogue.vendor import split

    with _told_as(form):
        opened, pins = _opened(repo)
        if name in pins:
            raise Misused(f"there is a catalogue `{name}` already", f"gitmesh catalogue update {name}")
        if not _NAME.fullmatch(name):
            raise Misused(f"`{name}` is no name: a-z, 0-9 and - inside, beginning with a letter")
        url, commit = split(remote)
        _take(opened, name, None, url, commit, yes, form)


@catalogue.command(epilog="Example: gitmesh catalogue update shop --commit v1.5 --yes --format markdown")
@click.argument("name", required=False)
@click.option("--commit", help="A commit's full id, a tag or a branch; else the remote's branch main.")
@click.option("--pinned", is_flag=True, help="The commit that is pinned: have back what was vendored.")
@_yes_option
@_form_option
@repo_option
def update(
    name: str | None, commit: str | None, pinned: bool, yes: bool, form: str, repo: Path | None
) -> None:
    """Move the vendored catalogue NAME to another COMMIT; without NAME, the only one there is.

    The difference is shown, and a terminal is asked. Exit code 3: what the remote holds is refused.
    """
    with _told_as(form):
        opened, pins = _opened(repo)
        if name is None:
            if len(pins) != 1:
                raise Misused(f"say which catalogue; there are {', '.join(pins) or 'none'}")
            name = next(iter(pins))
        if name not in pins:
            raise Misused(f"no catalogue is called `{name}`{nearest(name, list(pins))}")
        if pinned and commit is not None:
            raise Misused("--pinned is a commit itself, so that --commit can't be given as well")
        was = pins[name]
        _take(opened, name, was, was.remote, was.commit if pinned else commit, yes, form)


def _told_as(form: str) -> AbstractContextManager[None]:
    from gitmesh.cli.told import told_as

    return told_as(form)


def _opened(repo: Path | None) -> tuple[Opened, dict[str, Pin]]:
    """The mesh repo, and its pins by catalogue. Raises Failure where catalogue.yaml is refused itself."""
    from gitmesh.catalogue.vendor import Pin
    from gitmesh.cli.opened import open_mesh
    from gitmesh.repo import document
    from gitmesh.repo.load_catalogue import FILE

    opened = open_mesh(repo)
    value, refused = document.read(FILE, opened.files.get(FILE, b""))
    if refused or document.check("catalogue", FILE, value):
        raise Failure(f"{FILE} is refused itself", "gitmesh check")
    pins = {name: Pin(each["from"], each["commit"], each["sha256"]) for name, each in (value or {}).items()}
    return opened, pins


def _take(
    opened: Opened, name: str, was: Pin | None, remote: str, commit: str | None, yes: bool, form: str
) -> None:
    """Fetch, show, ask, write, and say what a check says then."""
    from gitmesh.catalogue.vendor import fetch_catalogue
    from gitmesh.cli.written import write
    from gitmesh.core.refusal import At
    from gitmesh.repo.load_catalogue import FILE
    from gitmesh.repo.load_mesh import check_remote
    from gitmesh.repo.transport import RepoError

    for wrong in check_remote(remote, At(FILE)):
        raise Misused(f"{wrong.message}; {wrong.answers[0].text}")
    try:
        fetched = fetch_catalogue(remote, commit)
    except RepoError as error:
        raise Failure(error.message, error.command) from error
    if fetched.refusals:
        _refuse(fetched, form)
    changed, moved = _moved(opened, name, was, remote, fetched)
    if changed:
        if form == "text":
            _show(moved)
        _agree(name, yes, form)
        write(opened, changed)
    _tell(opened.with_files(changed), moved, len(changed), form)


def _moved(
    opened: Opened, name: str, was: Pin | None, remote: str, fetched: Fetched
) -> tuple[dict[str, bytes | None], Vendored]:
    """What each file will hold (None: it will be gone), and what is said of it."""
    from gitmesh.catalogue.vendor import changes, diff, pin_of, pinned, standing
    from gitmesh.repo.edit import Uneditable
    from gitmesh.repo.load_catalogue import FILE
    from gitmesh.report.vendored import Vendored

    before, pin = standing(opened.files, name), pin_of(remote, fetched)
    differing = [
        (path, f"catalogue/{name}/{path}", action) for path, action in changes(before, fetched.files)
    ]
    changed: dict[str, bytes | None] = {path: fetched.files.get(inside) for inside, path, _ in differing}
    if pin != was:
        try:
            changed[FILE] = pinned(opened.files.get(FILE, b""), name, pin)
        except Uneditable as error:
            raise Failure(f"{FILE}: {error}", "gitmesh check") from error
    lines, left = diff(before, fetched.files, name)
    files = [(path, action) for _, path, action in differing]
    commit = was.commit if was else None
    return changed, Vendored(name, remote, commit, pin.commit, pin.sha256, files, lines, left)


def _refuse(fetched: Fetched, form: str) -> NoReturn:
    """Say what of the remote's files is none that a mesh repo may hold."""
    from gitmesh.report import json, terminal

    if form == "json":
        click.echo(json.dump(json.refused(fetched.refusals, fetched.files, fetched.commit)))
    else:
        held = "nothing is vendored"
        said = terminal.render(fetched.refusals, fetched.files, colour=colourful(sys.stdout), held=held)
        click.echo(said, nl=False)
    sys.exit(3)


def _show(moved: Vendored) -> None:
    from gitmesh.report.vendored import as_text

    click.echo(as_text(moved), nl=False)


def _agree(name: str, yes: bool, form: str) -> None:
    """Ask a terminal. Raises Misused where nobody can be asked and nothing was said beforehand."""
    if yes:
        return
    if form != "text" or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Misused("nothing was written, since nobody can be asked here; --yes takes it")
    click.confirm(f"Write this to catalogue/{name}?", abort=True)


def _tell(after: Opened, moved: Vendored, written: int, form: str) -> None:
    """What was written, and what of it a check refuses now."""
    from gitmesh.repo.load_catalogue import FILE
    from gitmesh.report import terminal, vendored

    mine = (f"catalogue/{moved.name}/", FILE)
    refusals = [each for each in after.resolve()[1] if each.at.file.startswith(mine)]
    match form:
        case "json":
            click.echo(vendored.as_json(moved, refusals, after.files), nl=False)
        case "markdown":
            click.echo(vendored.as_markdown(moved, refusals, after.files), nl=False)
        case _:
            same = f"catalogue/{moved.name} holds {moved.commit[:12]} already; nothing was written"
            click.echo(f"wrote {written} {'file' if written == 1 else 'files'}" if written else same)
            if refusals:
                click.echo("\nstill to answer:\n")
                click.echo(terminal.render(refusals, after.files, colour=colourful(sys.stdout)), nl=False)
