"""`gitmesh status`: what the nodes say of themselves, verified against the mesh's root (G10)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitmesh.cli.main import Failure
from gitmesh.cli.options import format_option, repo_option

if TYPE_CHECKING:
    from gitmesh.report.status import MeshStatus, NodeStatus
    from gitmesh.trust.documents import Slice
    from gitmesh.trust.verify import Head


@click.command(epilog="Example: gitmesh status --repo ~/hellas --format json")
@repo_option
@format_option
def status(repo: Path | None, form: str) -> None:
    """Who runs, who waits on whom, and what failed, from the nodes' own signed reports.

    Exit code 0: every node runs the newest deploy with nothing waiting; 1: something failed; 75: what
    stands on origin has expired or does not count. Waiting is no failure.
    """
    from gitmesh.report.status import as_json, render
    from gitmesh.repo.transport import RepoError
    from gitmesh.trust.refused import Refused

    try:
        found = _look(repo)
    except RepoError as wrong:
        raise Failure(wrong.message, wrong.command) from None
    except Refused as wrong:
        click.echo(f"stale: {wrong}; the nodes keep running what they accepted", err=True)
        sys.exit(75)
    click.echo(json.dumps(as_json(found)) if form == "json" else render(found), nl=form == "json")
    if any("failed" in node.assignments.values() for node in found.nodes):
        sys.exit(1)


def _look(repo: Path | None) -> MeshStatus:
    from gitmesh.cli.opened import open_mesh
    from gitmesh.deploy.run import newest_root
    from gitmesh.repo.objects import read_files
    from gitmesh.repo.transport import fetch, init_bare
    from gitmesh.report.status import MeshStatus
    from gitmesh.trust.counters import Counters
    from gitmesh.trust.verify import Bundle, verify_head

    opened = open_mesh(repo)
    mesh = opened.mesh
    origin = _origin(opened.folder) or mesh.origin
    mailbox = origin if mesh.mailbox == mesh.origin else mesh.mailbox
    trusted = newest_root(opened.files)
    with tempfile.TemporaryDirectory(prefix="gitmesh-status-") as folder:
        cache = Path(folder) / "git"
        init_bare(cache)
        branch = f"refs/heads/{mesh.branch}"
        tip = fetch(cache, origin, [branch]).get(branch)
        if tip is None:
            raise Failure(
                f"{origin} has no branch `{mesh.branch}`: nothing was deployed yet", "gitmesh deploy"
            )
        files = read_files(cache, tip)
        now = int(time.time())
        counters = Counters(root_version=trusted.root.version)
        head = verify_head(Bundle.from_files(files), trusted, counters, now)
        names = sorted(f"refs/gitmesh/report/{node}" for node in mesh.nodes)
        reports = {
            ref.rpartition("/")[2]: read_files(cache, commit).get("report.json", b"")
            for ref, commit in fetch(cache, mailbox, names).items()
        }
    nodes = [_node(node, files, reports.get(node), head, now) for node in sorted(mesh.nodes)]
    return MeshStatus(mesh.name, head.deploy.seq, head.approval.source.commit, nodes)


def _origin(folder: Path) -> str | None:
    """The clone's own `origin`, which is how this person reaches the mesh repo."""
    done = subprocess.run(
        ["git", "-C", str(folder), "remote", "get-url", "origin"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def _slice(node: str, files: Mapping[str, bytes], head: Head) -> Slice | None:
    from gitmesh.trust.documents import shard_of
    from gitmesh.trust.refused import Refused
    from gitmesh.trust.verify import open_slice

    shard = files.get(f"shards/{shard_of(node, len(head.approval.shards))}.json")
    try:
        return open_slice(head.approval, node, shard, files.get(f"nodes/{node}/slice.json"))
    except Refused:
        return None


def _node(node: str, files: Mapping[str, bytes], blob: bytes | None, head: Head, now: int) -> NodeStatus:
    from gitmesh.report.status import NodeStatus
    from gitmesh.trust.refused import Refused
    from gitmesh.trust.verify import verify_report

    slice_ = _slice(node, files, head)
    if slice_ is None:
        return NodeStatus(node, note="has not enrolled, or is not approved yet")
    declared = _declared(files.get(f"nodes/{node}/declaration.json", b""))
    if not blob:
        return NodeStatus(node, note="no report yet", assignments=dict.fromkeys(declared, "unknown"))
    try:
        report, _ = verify_report(blob, slice_, head.trusted.root.mesh)
    except Refused as wrong:
        return NodeStatus(node, note=f"its report does not count: {wrong.message}")
    states = dict.fromkeys(declared, "applied" if report.deploy_seq == head.deploy.seq else "behind")
    why: dict[str, list[str]] = {}
    for wait in report.waiting:
        states[wait.assignment] = "waiting"
        why.setdefault(wait.assignment, []).append(f"on {wait.on} for {wait.requirement}")
    for failed in report.failed:
        subject = failed.subject if failed.subject in states else failed.subject.partition(".")[0]
        if subject in states:
            states[subject] = "failed"
        why.setdefault(subject, []).append(failed.message)
    remarks = [f"drifted, and repaired: {each}" for each in report.drift]
    remarks += [f"kept, and nobody's: {each}" for each in report.orphans]
    remarks += [f"{each.subject}: {each.message}" for each in report.failed if each.subject not in states]
    remarks += list(report.remarks or ())
    note = ""
    if report.deploy_seq == head.deploy.seq and report.deploy_sha256 != head.deploy_sha256:
        note = "saw another deploy under the same number: somebody shows two worlds"
    return NodeStatus(node, report.deploy_seq, max(0, now - report.issued), note, states, why, remarks)


def _declared(blob: bytes) -> list[str]:
    try:
        return sorted(json.loads(blob)["assignments"])
    except (ValueError, KeyError, TypeError):
        return []
