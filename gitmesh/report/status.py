"""Who runs, who waits on whom, and what failed, from the nodes' own reports (G10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gitmesh.core.model import Json
from gitmesh.report.located import safe

APPLIED = "applied"
WAITING = "waiting"
FAILED = "failed"
BEHIND = "behind"
UNKNOWN = "unknown"
STATES = (APPLIED, WAITING, FAILED, BEHIND, UNKNOWN)
"""Behind: the node runs an older declaration. Unknown: it has not reported yet."""


_LAST = 253402300799
"""The last second that a date can say; a node may have signed any number."""


def in_utc(seconds: int) -> str:
    """A time as people read it."""
    return f"{datetime.fromtimestamp(min(seconds, _LAST), UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is known of one node. `note` says why there is no report; `alarm` what someone has to look into.

    `assignments` by id: one of `STATES`; `why` and `remarks` beside it. `notes` are the node's other remarks.
    """

    node: str
    seq: int | None = None
    age: int | None = None
    """seconds since the report was made"""
    note: str = ""
    alarm: str = ""
    assignments: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MeshStatus:
    """The mesh as its nodes report it; `seq` is the deploy that stands on origin."""

    mesh: str
    seq: int
    commit: str
    nodes: Sequence[NodeStatus]

    @property
    def settled(self) -> bool:
        """Whether every node runs this deploy, with nothing waiting and nothing failed."""
        return all(
            node.seq == self.seq
            and not node.note
            and not node.alarm
            and set(node.assignments.values()) <= {APPLIED}
            for node in self.nodes
        )

    @property
    def failed(self) -> bool:
        """Whether something failed, or someone has to look into an alarm."""
        return any(node.alarm or FAILED in node.assignments.values() for node in self.nodes)


def by_assignment(
    remarks: Sequence[str], assignments: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Remarks under the assignment that each begins with, said once; and those of no assignment."""
    found: dict[str, list[str]] = {}
    rest: list[str] = []
    for remark in dict.fromkeys(remarks):
        subject, colon, text = remark.partition(": ")
        if colon and subject in assignments:
            found.setdefault(subject, []).append(text)
        else:
            rest.append(remark)
    return {subject: _once(texts) for subject, texts in found.items()}, rest


def _once(texts: Sequence[str]) -> list[str]:
    """Without what another one says at its end: `not run here: a job` and `a job` are one remark."""
    return [
        text
        for text in dict.fromkeys(texts)
        if not any(other != text and other.endswith(f": {text}") for other in texts)
    ]


def render(status: MeshStatus) -> str:
    """The status as plain text, a node at a time; nothing in it that a terminal would obey (F6)."""
    lines = [f"{status.mesh}: deploy {status.seq} of commit {status.commit[:12]}{_counted(status)}"]
    for node in status.nodes:
        lines.append(f"{node.node}: {_heading(status, node)}")
        if node.alarm:
            lines.append(f"  alarm: {node.alarm}")
        lines += _assignments(node)
        lines += [f"  {note}" for note in _few(node.notes)]
    return "\n".join(map(safe, lines)) + "\n"


def _counted(status: MeshStatus) -> str:
    counts = Counter(state for node in status.nodes for state in node.assignments.values())
    said = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    return f": {', '.join(said)}" if said else ""


def _assignments(node: NodeStatus) -> Iterator[str]:
    width = max(map(len, node.assignments), default=0)
    for assignment, state in node.assignments.items():
        first, *more = _together(node.why.get(assignment, ())) or ("",)
        yield f"  {assignment:<{width}}  {state} {first}".rstrip()
        yield from (f"  {assignment:<{width}}  {state} {why}" for why in more)
        yield from (f"      {remark}" for remark in _few(node.remarks.get(assignment, ())))


def _together(why: Sequence[str]) -> list[str]:
    """Waits on one provider (`on postgres@sparta for …`) as one line; the JSON has them all."""
    by: dict[str, list[str]] = {}
    for each in why:
        by.setdefault(each.rpartition(" for ")[0] or each, []).append(each)
    return [alike[0] if len(alike) == 1 else f"{alike[0]} and {len(alike) - 1} more" for alike in by.values()]


def _few(remarks: Sequence[str]) -> list[str]:
    """Remarks of one kind (`owner not set: …`) as one line from the third on; the JSON has them all."""
    kinds: dict[str, list[str]] = {}
    for remark in remarks:
        kinds.setdefault(remark.partition(": ")[0], []).append(remark)
    said: list[str] = []
    for alike in kinds.values():
        said += alike if len(alike) < 3 else [f"{alike[0]}, and {len(alike) - 1} more"]
    return said


def _heading(status: MeshStatus, node: NodeStatus) -> str:
    if node.note:
        return node.note
    behind = "" if node.seq == status.seq else f", still at deploy {node.seq}"
    return f"reported {_ago(node.age or 0)} ago{behind}"


def _ago(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def as_json(status: MeshStatus) -> Json:
    """The same for programs: version 1 of schemas/status.json."""
    return {
        "v": 1,
        "mesh": status.mesh,
        "deploy": status.seq,
        "commit": status.commit,
        "settled": status.settled,
        "nodes": [
            {
                "node": node.node,
                "deploy": node.seq,
                "age": node.age,
                "note": node.note,
                "alarm": node.alarm,
                "assignments": {
                    assignment: {
                        "state": state,
                        "why": list(node.why.get(assignment, ())),
                        "remarks": list(node.remarks.get(assignment, ())),
                    }
                    for assignment, state in node.assignments.items()
                },
                "notes": list(node.notes),
            }
            for node in status.nodes
        ],
    }
