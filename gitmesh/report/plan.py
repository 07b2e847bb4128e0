"""A plan for a terminal, for a pull request's comment, and for programs (G2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gitmesh.core.model import Json
from gitmesh.core.plan import AssignmentPlan
from gitmesh.report.located import safe

Plans = Mapping[str, tuple[AssignmentPlan, ...]]
"""What changes, by node; nodes without a change are not in it."""

LONGEST = 60_000
"""Characters of a comment: GitHub takes 65,536."""


def as_text(plans: Plans, record: str) -> str:
    """The plan as a tree of lines, and the record it was made with."""
    lines = [] if plans else ["nothing changes"]
    for node, assignments in plans.items():
        lines.append(node)
        for each in assignments:
            lines.append(f"  {each.assignment}: {each.change}")
            for step in each.steps:
                why = f" ({', '.join(step.why)})" if step.why else ""
                lines.append(f"    {step.verb.value} {step.subject}{why}")
    if plans:
        lines.append("new ports hold if nothing merges before")
    return "\n".join(map(safe, [*lines, f"record: {record}"])) + "\n"


def as_markdown(plans: Plans, record: str) -> str:
    """The text in a block that nothing in it can close, cut at a line to what GitHub takes (F6)."""
    text = as_text(plans, record)
    kept = text
    if len(text) > LONGEST:
        kept = text[: text.rindex("\n", 0, LONGEST) + 1]
        kept += f"and {text.count(chr(10)) - kept.count(chr(10))} lines more: run gitmesh plan\n"
    fence = "`" * max(3, max(map(len, re.findall("`+", kept)), default=0) + 1)
    counted = sum(map(len, plans.values()))
    heading = f"{_count(counted, 'change')} on {_count(len(plans), 'node')}" if plans else "nothing changes"
    return f"**gitmesh plan:** {heading}\n\n{fence}text\n{kept}{fence}\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_json(plans: Plans, record: str) -> Json:
    """Version 1 of schemas/plan.json."""
    return {
        "v": 1,
        "record": record,
        "nodes": {
            node: [
                {
                    "assignment": each.assignment,
                    "change": each.change,
                    "steps": [
                        {"do": step.verb.value, "subject": step.subject, "why": list(step.why)}
                        for step in each.steps
                    ],
                }
                for each in assignments
            ]
            for node, assignments in plans.items()
        },
    }
