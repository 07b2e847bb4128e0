"""Whether every ask and every served field can be read, so that what can't is refused here and not later."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from gitmesh.core.answer import Answered
from gitmesh.core.model import Kind
from gitmesh.core.read import Reader, Unread, has_references
from gitmesh.core.refusal import Refusal


def check_readable(reader: Reader, answers: Mapping[tuple[str, str], Answered]) -> list[Refusal]:
    """What the asks and fields of all requirements are refused for (A4, A9, B5).

    Most parts read alike for all assignments of a module that one provider answers, and are read for the
    first of them: in a large mesh that is a tenth of all reading.
    """
    refusals: list[Refusal] = []
    left: dict[tuple[str, str, str, bool], list[str]] = {}
    for (assignment, name), answered in sorted(answers.items(), key=itemgetter(0)):
        if answered.requirement.kind is not Kind.MODULE:
            continue
        consumer = answered.consumer
        own_node = answered.by.endswith(f"@{consumer.node}")
        alike = (consumer.module, name, answered.by, own_node)
        known = alike in left
        parts = left[alike] if known else _parts(answered)
        unread = [each for each in parts if not _reads(reader, assignment, name, each, refusals)]
        if not known:
            left[alike] = [each for each in parts if each in unread or not _reads_alike(answered, each)]
    return refusals


def _parts(answered: Answered) -> list[str]:
    """The asks and fields of a contract; what a derived field is made of is read by itself."""
    fields = answered.contract.fields.items()
    return [*answered.contract.asks, *(each for each, declared in fields if declared.derived is None)]


def _reads(reader: Reader, assignment: str, requirement: str, part: str, refusals: list[Refusal]) -> bool:
    """Whether one part can be read; why not goes to `refusals`, unless it was said already."""
    try:
        reader.field(assignment, requirement, part)
    except Unread as unread:
        if unread.refusal is not None:
            refusals.append(unread.refusal)
        return False
    return True


def _reads_alike(answered: Answered, part: str) -> bool:
    """Whether a part that reads well here does for every assignment of this module: an ask that neither an
    operator nor another answer says, and any field (of its consumer a provider may say the name alone)."""
    ask = answered.contract.asks.get(part)
    said = answered.requirement.asks.get(part)
    return ask is None or not (ask.from_operator or has_references(said))
