"""What has arrived for a node, from the refs of the vault and the providers: whom it still waits for (B11).

Status asks this beside the node's own report, so that it also knows of a node that has not reported.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.core.declaration import Declaration
from gitmesh.core.rotation import Phase
from gitmesh.core.waiting import Waiting, waiting
from gitmesh.trust.documents import Answers, Slice, VaultIndex, read_signed, sealed_name
from gitmesh.trust.keys import raw_sign
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.verify import Head, take_answers

INDEX = "index.json"


def still_waiting(
    declaration: Declaration,
    of: Slice,
    head: Head,
    sealed: Mapping[str, bytes],
    answers: Mapping[str, bytes],
) -> tuple[tuple[Waiting, ...], tuple[str, ...]]:
    """Whom the node of the approved slice `of` waits for, and what was sent to it that does not count.

    `sealed` are the files of its `sealed` ref, `answers` the file of each providing node for it.
    """
    wrong: list[str] = []
    secrets: set[str] = set()
    try:
        secrets = _secrets(of, head, sealed)
    except Refused as refused:
        wrong.append(f"vault: {refused.message}")
    fields: dict[str, Mapping[str, object]] = {}
    for node, blob in sorted(answers.items()):
        try:
            said = _answers(of, head, node, blob)
        except Refused as refused:
            wrong.append(f"{node}: {refused.message}")
            continue
        mine = {to: spec for to, spec in declaration.answers.items() if spec.node == node}
        taken, refusals = take_answers(said, mine)
        fields |= taken
        wrong += [f"{node}: {each.message}" for each in refusals]
    return waiting(declaration, secrets, fields), tuple(wrong)


def _secrets(of: Slice, head: Head, sealed: Mapping[str, bytes]) -> set[str]:
    """The secrets that a reader on the node may have now. Raises `Refused`."""
    if INDEX not in sealed:
        return set()
    root = head.trusted.root
    vault = root.roles.vault
    index, _ = read_signed(VaultIndex, sealed[INDEX], root.mesh, [raw_sign(vault.sign)])
    if (index.node, index.epoch) != (of.node, vault.epoch):
        raise Refused(Why.NOT_IN_MESH, "its index is another node's, or of another epoch")
    return {
        secret
        for secret, value in index.secrets.items()
        if value.phase == Phase.CURRENT and sealed_name(secret, value.slot) in sealed
    }


def _answers(of: Slice, head: Head, node: str, blob: bytes) -> Answers:
    source = of.answers_from.get(node)
    if source is None:
        raise Refused(Why.NOT_IN_MESH, "nothing approved asks it anything")
    said, _ = read_signed(Answers, blob, head.trusted.root.mesh, [raw_sign(source.sign)])
    if (said.node, said.for_, said.epoch) != (node, of.node, source.epoch):
        raise Refused(Why.EPOCH, "its answers are another node's, or of another epoch")
    return said
