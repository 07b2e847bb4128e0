"""What a node says of itself, and its documents: answers, confirms and its report (SECURITY §1.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitmesh import __version__
from gitmesh.core.codec import Malformed, decode, encode
from gitmesh.core.declaration import Declaration
from gitmesh.core.model import Json
from gitmesh.host.mailbox import Outbox, Sent
from gitmesh.host.provide import Provided
from gitmesh.host.state import APPLIED, FAILED
from gitmesh.host.take import Taken
from gitmesh.trust.documents import Answers, Applied, Confirm, Failed, Report, ReportedWait, signed
from gitmesh.trust.keys import SigningKey, raw_seal
from gitmesh.trust.seal import seal_confirms
from gitmesh.trust.verify import Verified

if TYPE_CHECKING:
    from gitmesh.host.pull import Pulled


def ref_of(kind: str, node: str) -> str:
    """A ref of the node's own in the mailbox."""
    return f"refs/gitmesh/{kind}/{node}"


def said_confirms(outbox: Outbox, node: str) -> dict[str, Confirm]:
    """What this node confirmed last."""
    said = outbox.of(ref_of("confirms", node)).said or {}
    try:
        return {secret: decode(Confirm, each) for secret, each in said.items()}
    except Malformed:
        return {}


def said_waits(outbox: Outbox, node: str) -> dict[tuple[str, str, str], int]:
    """Since when each wait stands that this node reported last: (assignment, on, requirement) to seconds."""
    said = outbox.of(ref_of("report", node)).said or {}
    try:
        waits = [decode(ReportedWait, each) for each in said.get("waiting", ())]
    except Malformed:
        return {}
    return {(each.assignment, each.on, each.requirement): each.since for each in waits if each.since}


def said_now(
    newest: Verified, taken: Taken | None, pulled: Pulled, provided: Provided, outbox: Outbox
) -> Mapping[str, Json]:
    """By ref, everything that the node has to say; `newest` is the deploy it saw, `taken` what it runs."""
    node = newest.slice.node
    if taken is None:
        return {ref_of("report", node): _report(newest, None, pulled)}
    said: dict[str, Json] = {ref_of("confirms", node): {k: encode(v) for k, v in provided.confirms.items()}}
    for to, answers in answers_by_node(node, taken.declaration, provided, outbox).items():
        said[f"{ref_of('answers', node)}/{to}"] = answers
    said[ref_of("report", node)] = _report(newest, taken, pulled)
    return said


def _report(newest: Verified, taken: Taken | None, pulled: Pulled) -> Json:
    failed = any(each.result == FAILED for each in pulled.outcomes)
    return {
        "deploy_seq": newest.deploy.seq,
        "deploy_sha256": newest.deploy_sha256,
        "waiting": [encode(each) for each in pulled.waiting],
        "failed": [encode(each) for each in pulled.failed],
        "drift": [path for each in pulled.outcomes for path in each.drifted],
        "orphans": [path for each in pulled.outcomes for path in each.kept],
        "applied": None
        if taken is None
        else {
            "sha256": taken.verified.slice.declaration_sha256,
            "result": FAILED if failed else APPLIED,
        },
        "remarks": list(pulled.remarks),
    }


def answers_by_node(
    node: str, declaration: Declaration, provided: Provided, outbox: Outbox
) -> dict[str, dict[str, dict[str, Json]]]:
    """What providers on `node` answer, by the consumer's node, then assignment, then requirement.

    A consumer that was not served anew keeps what it was answered last, while it is one.
    """
    found: dict[str, dict[str, dict[str, Json]]] = {}
    for spec in declaration.assignments.values():
        for provision in spec.provides.values():
            for consumer in provision.consumers:
                assignment, _, requirement = consumer.to.rpartition(".")
                said = outbox.of(f"{ref_of('answers', node)}/{consumer.node}").said or {}
                last = said.get(assignment, {}).get(requirement)
                answered = provided.answers.get(consumer.to, last)
                if answered is not None:
                    found.setdefault(consumer.node, {}).setdefault(assignment, {})[requirement] = answered
    return found


def document(ref: str, sent: Sent, verified: Verified, sign: SigningKey) -> dict[str, bytes]:
    """The files of `ref` that say what `sent` says, signed at its time."""
    node, mesh, epoch, said = verified.slice.node, verified.mesh, verified.slice.epoch, sent.said
    if ref == ref_of("confirms", node):
        vault = raw_seal(verified.trusted.root.roles.vault.seal)
        confirms = {secret: decode(Confirm, each) for secret, each in said.items()}
        return {"confirms.json": seal_confirms(confirms, mesh, sent.when, node, epoch, sent.seq, sign, vault)}
    if ref == ref_of("report", node):
        applied = None if said["applied"] is None else decode(Applied, said["applied"])
        report = Report(
            mesh, sent.when, node, epoch, sent.seq, said["deploy_seq"], said["deploy_sha256"],
            tuple(decode(ReportedWait, each) for each in said["waiting"]),
            tuple(decode(Failed, each) for each in said["failed"]),
            tuple(said["drift"]), tuple(said["orphans"]), __version__,
            applied=applied, remarks=tuple(said["remarks"]),
        )  # fmt: skip
        return {"report.json": signed(report, [sign])}
    to = ref.rpartition("/")[2]
    answers = Answers(mesh, sent.when, node, epoch, sent.seq, verified.approval.seq, to, said)
    return {"answers.json": signed(answers, [sign])}
