"""Who runs, who waits on whom, and what failed, from the nodes' own reports (G10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gitmesh.core.model import Json


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is known of one node. `note` says why there is no report, or why it counts little.

    `assignments` by id: applied, waiting, failed or not yet there; `why` beside it.
    """

    node: str
    seq: int | None = None
    age: int | None = None
    """seconds since the report was made"""
    note: str = ""
    assignments: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remarks: Sequence[str] = ()


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
            node.seq == self.seq and not node.note and set(node.assignments.values()) <= {"applied"}
            for node in self.nodes
        )


def render(status: MeshStatus) -> str:
    """The status as plain text, a node at a time."""
    lines = [f"{status.mesh}: deploy {status.seq} of commit {status.commit[:12]}"]
    for node in status.nodes:
        lines.append(f"{node.node}{_heading(status, node)}")
        width = max((len(each) for each in node.assignments), default=0)
        for assignment, state in node.assignments.items():
            why = "; ".join(node.why.get(assignment, ()))
            lines.append(f"  {assignment:<{width}}  {state:<8}{'  ' + why if why else ''}".rstrip())
        lines += [f"  {remark}" for remark in node.remarks]
    return "\n".join(lines) + "\n"


def _heading(status: MeshStatus, node: NodeStatus) -> str:
    if node.note:
        return f": {node.note}"
    behind = "" if node.seq == status.seq else f", still at deploy {node.seq}"
    return f": reported {_ago(node.age or 0)} ago{behind}"


def _ago(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def as_json(status: MeshStatus) -> Json:
    """The same for programs: version 1 of the status format."""
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
                "assignments": {
                    assignment: {"state": state, "why": list(node.why.get(assignment, ()))}
                    for assignment, state in node.assignments.items()
                },
                "remarks": list(node.remarks),
            }
            for node in status.nodes
        ],
    }
