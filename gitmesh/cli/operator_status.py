"""`gitmesh status`: what the nodes say of themselves, verified against the mesh's root (G10)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gitmesh.cli.main import Failure
from gitmesh.cli.options import format_option, repo_option

if TYPE_CHECKING:
    from gitmesh.core.model import Node
    from gitmesh.report.status import MeshStatus, NodeStatus
    from gitmesh.trust.documents import Report, Slice
    from gitmesh.trust.verify import Head

Files = Mapping[str, bytes]


@click.command(epilog="Example: gitmesh status --repo ~/hellas --format json")
@repo_option
@format_option
def status(repo: Path | None, form: str) -> None:
    """Who runs, who waits on whom, and what failed, from the nodes' own signed reports.

    Run it in a clone that can reach origin. Exit code 0: nothing failed, though something may wait; 1:
    something failed, or origin can't be read; 75: what stands on origin has expired or does not count.
    """
    from gitmesh.repo.transport import RepoError
    from gitmesh.report.status import as_json, render
    from gitmesh.trust.refused import Refused

    try:
        found = _look(repo)
    except Failure as wrong:
        _fail(wrong, form)
    except RepoError as wrong:
        _fail(Failure(wrong.message, wrong.command), form)
    except Refused as wrong:
        _fail(Stale(f"stale: {wrong}; the nodes keep running what they accepted", "gitmesh deploy"), form)
    click.echo(json.dumps(as_json(found)) if form == "json" else render(found), nl=form == "json")
    if found.failed:
        sys.exit(1)


class Stale(Failure):
    """What stands on origin does not count, or counts no more."""

    exit_code = 75


def _fail(failure: Failure, form: str) -> NoReturn:
    """End with the failure's exit code; for programs the reason is on standard output."""
    if form != "json":
        raise failure
    error = {"message": failure.message, "command": failure.command}
    click.echo(json.dumps({"v": 1, "error": error}))
    sys.exit(failure.exit_code)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The deploy branch's files, and what stands in the mailbox, by its ref without `refs/gitmesh/`."""

    branch: Files
    mail: Mapping[str, Files]

    def slice(self, node: str, head: Head) -> Slice | None:
        """The node's approved slice; None where nothing is approved for it."""
        from gitmesh.trust.documents import shard_of
        from gitmesh.trust.refused import Refused
        from gitmesh.trust.verify import open_slice

        shard = self.branch.get(f"shards/{shard_of(node, len(head.approval.shards))}.json")
        try:
            return open_slice(head.approval, node, shard, self.branch.get(f"nodes/{node}/slice.json"))
        except Refused:
            return None

    def nodes(self) -> set[str]:
        """Every node that the deploy branch has a declaration for."""
        return {path.split("/")[1] for path in self.branch if path.startswith("nodes/")}

    def answers(self, node: str) -> dict[str, bytes]:
        """What each providing node answers `node`."""
        suffix = f"/{node}"
        return {
            ref.split("/")[1]: files.get("answers.json", b"")
            for ref, files in self.mail.items()
            if ref.startswith("answers/") and ref.endswith(suffix)
        }


def _look(repo: Path | None) -> MeshStatus:
    from gitmesh.cli.opened import open_mesh
    from gitmesh.deploy.run import newest_root
    from gitmesh.report.status import MeshStatus
    from gitmesh.trust.counters import Counters
    from gitmesh.trust.verify import Bundle, verify_head

    opened = open_mesh(repo)
    mesh = opened.mesh
    if not mesh.id:
        raise Failure("mesh.yaml is refused itself, so it says neither origin nor mailbox", "gitmesh check")
    trusted = newest_root(opened.files)
    origin = _origin(opened.folder) or mesh.origin
    fetched = _fetch(origin, origin if mesh.mailbox == mesh.origin else mesh.mailbox, mesh.branch)
    now = int(time.time())
    counters = Counters(root_version=trusted.root.version)
    head = verify_head(Bundle.from_files(fetched.branch), trusted, counters, now)
    names = sorted({*mesh.nodes, *fetched.nodes()})
    nodes = [_node(name, mesh.nodes.get(name), fetched, head, now) for name in names]
    return MeshStatus(mesh.name, head.deploy.seq, head.approval.source.commit, nodes)


def _origin(folder: Path) -> str | None:
    """The clone's own `origin`, which is how this person reaches the mesh repo."""
    from gitmesh.repo.transport import environment

    done = subprocess.run(
        ["git", "-C", str(folder), "remote", "get-url", "origin"],
        env=environment(None),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


def _fetch(origin: str, mailbox: str, branch: str) -> Fetched:
    """Everything that status reads. Raises RepoError, and Failure before the first deploy."""
    from gitmesh.repo.objects import read_files
    from gitmesh.repo.transport import fetch, init_bare, without_credentials

    with tempfile.TemporaryDirectory(prefix="gitmesh-status-") as folder:
        cache = Path(folder) / "git"
        init_bare(cache)
        ref = f"refs/heads/{branch}"
        tip = fetch(cache, origin, [ref]).get(ref)
        if tip is None:
            shown = without_credentials(origin)
            raise Failure(f"{shown} has no branch `{branch}`: nothing was deployed yet", "gitmesh deploy")
        kinds = [f"refs/gitmesh/{kind}/*" for kind in ("report", "sealed", "answers")]
        refs = fetch(cache, mailbox, kinds)
        mail = {name.removeprefix("refs/gitmesh/"): _read(cache, commit) for name, commit in refs.items()}
        return Fetched(read_files(cache, tip), mail)


def _read(cache: Path, commit: str) -> Files:
    """The files of one node's ref; none where it is not what a node of gitmesh writes."""
    from gitmesh.repo.objects import Malformed, read_files

    try:
        return read_files(cache, commit)
    except Malformed:
        return {}


def _node(name: str, known: Node | None, fetched: Fetched, head: Head, now: int) -> NodeStatus:
    from gitmesh.report.status import UNKNOWN, NodeStatus
    from gitmesh.trust.refused import Refused
    from gitmesh.trust.verify import verify_report

    slice_ = fetched.slice(name, head)
    if slice_ is None:
        enrolled = known is not None and known.keys is not None
        return NodeStatus(name, note="not deployed yet" if enrolled else "has not enrolled")
    waits, wrong, assignments = _expected(name, slice_, fetched, head)
    unknown = NodeStatus(name, assignments=dict.fromkeys(assignments, UNKNOWN), why=waits, notes=wrong)
    blob = fetched.mail.get(f"report/{name}", {}).get("report.json")
    if not blob:
        return replace(unknown, note="has not reported yet")
    try:
        report, _ = verify_report(blob, slice_, head.trusted.root.mesh)
    except Refused as refused:
        return replace(unknown, note=f"its report does not count: {refused.message}")
    return _reported(report, slice_, head, unknown, now)


def _expected(
    name: str, slice_: Slice, fetched: Fetched, head: Head
) -> tuple[dict[str, list[str]], tuple[str, ...], list[str]]:
    """What a node that runs its declaration still waits for, what was sent that does not count, and its
    assignments."""
    from gitmesh.cli.arrived import still_waiting
    from gitmesh.host.take import read_declaration
    from gitmesh.trust import canonical
    from gitmesh.trust.refused import Refused

    blob = fetched.branch.get(f"nodes/{name}/declaration.json", b"")
    try:
        if canonical.digest(blob) != slice_.declaration_sha256:
            return {}, ("its declaration on the deploy branch is not the approved one",), []
        declaration = read_declaration(blob)
    except Refused as refused:
        return {}, (refused.message,), []
    sealed = fetched.mail.get(f"sealed/{name}", {})
    waits, wrong = still_waiting(declaration, slice_, head, sealed, fetched.answers(name))
    why: dict[str, list[str]] = {}
    for wait in waits:
        text = _wait(wait.assignment, wait.on, wait.requirement)
        why.setdefault(wait.assignment, []).append(f"would wait {text}")
    return why, wrong, sorted(declaration.assignments)


def _wait(assignment: str, on: str, requirement: str) -> str:
    return f"on {on} for {requirement.removeprefix(f'{assignment}.')}"


def _reported(report: Report, slice_: Slice, head: Head, unknown: NodeStatus, now: int) -> NodeStatus:
    from gitmesh.report.status import APPLIED, BEHIND, FAILED, WAITING, NodeStatus, by_assignment, in_utc

    runs = report.applied is not None and report.applied.sha256 == slice_.declaration_sha256
    states = dict.fromkeys(unknown.assignments, APPLIED if runs else BEHIND)
    why: dict[str, list[str]] = {}
    for wait in report.waiting:
        if wait.assignment in states:
            states[wait.assignment] = WAITING
        since = "" if wait.since is None else f" since {in_utc(wait.since)}"
        said = _wait(wait.assignment, wait.on, wait.requirement)
        why.setdefault(wait.assignment, []).append(f"{said}{since}")
    remarks = [*(report.remarks or ()), *unknown.notes]
    for failed in report.failed:
        subject = failed.subject if failed.subject in states else failed.subject.partition(".")[0]
        if subject in states:
            if states[subject] != FAILED:
                why[subject] = []
            states[subject] = FAILED
            why[subject].append(failed.message)
        else:
            remarks.append(f"{failed.subject}: failed: {failed.message}")
    remarks += [f"drifted, and repaired: {each}" for each in report.drift]
    remarks += [f"kept, and nobody's: {each}" for each in report.orphans]
    told, notes = by_assignment(remarks, states)
    age = max(0, now - report.issued)
    alarm = _alarm(report, head)
    return NodeStatus(report.node, report.deploy_seq, age, "", alarm, states, why, told, notes)


def _alarm(report: Report, head: Head) -> str:
    """What a node saw that this clone was not shown (S10)."""
    seen, shown = report.deploy_seq, head.deploy.seq
    if seen == shown and report.deploy_sha256 != head.deploy_sha256:
        return f"it took another deploy {seen} than the one shown here: somebody shows two worlds"
    if seen > shown:
        return f"it took deploy {seen}, and origin shows only {shown}: somebody shows an old one"
    return ""
