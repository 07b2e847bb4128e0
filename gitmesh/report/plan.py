"""A plan for a terminal, for a pull request's comment, and for programs (G2, G4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO

from gitmesh.core.model import Json
from gitmesh.core.plan_mesh import MeshPlan, SecretPlan
from gitmesh.core.steps import Step
from gitmesh.report.located import safe

LONGEST = 60_000
"""Characters of a comment: GitHub takes 65,536."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A line, and those that belong to it."""

    line: str
    below: tuple[Branch, ...] = ()


def outline(plan: MeshPlan) -> tuple[Branch, ...]:
    """The plan as lines: nodes, what every node does, secrets, what caused it, what is dropped, and what only
    holds if nothing merges before."""
    found = [Branch(node, tuple(_planned(plan, node))) for node in plan.nodes]
    found += _section("every node", (Branch(_step(each)) for each in plan.everywhere))
    found += _section("secrets", (Branch(_secret(each)) for each in plan.secrets))
    found += _section("data", (Branch(_step(each)) for each in plan.kept))
    found += _section("because of", _causes(plan))
    found += _section("moved", (Branch(f"{old} to {new}") for old, new in plan.moved.items()))
    found += _section("dropped from the record", (Branch(each) for each in plan.dropped))
    if not found:
        return (Branch("nothing changes"),)
    found += _section("if nothing merges before", (Branch(each) for each in plan.tentative))
    return tuple(found)


def _section(title: str, lines: Iterator[Branch]) -> list[Branch]:
    below = tuple(lines)
    return [Branch(title, below)] if below else []


def _planned(plan: MeshPlan, node: str) -> Iterator[Branch]:
    for each in plan.nodes[node]:
        yield Branch(f"{each.assignment}: {each.change}", tuple(Branch(_step(step)) for step in each.steps))


def _step(step: Step) -> str:
    why = f" ({', '.join(step.why)})" if step.why else ""
    return f"{step.verb.value} {step.subject}{why}"


def _secret(secret: SecretPlan) -> str:
    said = [_step(secret.step)]
    if secret.applier is not None:
        said.append(f"set by {secret.applier}")
    if secret.readers:
        said.append(f"read by {', '.join(secret.readers)}")
    if secret.restarts:
        said.append(f"restarts {', '.join(secret.restarts)}")
    return "; ".join(said)


def _causes(plan: MeshPlan) -> Iterator[Branch]:
    changed = plan.changed
    for cause in plan.causes:
        count = f"touches {_count(len(cause.touches), 'assignment')}"
        below = (
            Branch(f"{each.assignment} {each.why}{'' if each.assignment in changed else ': nothing changes'}")
            for each in cause.touches
        )
        yield Branch(f"{cause.file} {count}", tuple(below))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# --- faces ---------------------------------------------------------------------------------------------


def as_text(plan: MeshPlan, record: str) -> str:
    """The plan as indented lines, and the record it was made with."""
    lines = [line for each in outline(plan) for line in _indented(each, 0)]
    return "\n".join([*lines, f"record: {safe(record)}"]) + "\n"


def _indented(branch: Branch, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{safe(branch.line)}"
    for each in branch.below:
        yield from _indented(each, depth + 1)


def as_tree(plan: MeshPlan, record: str, width: int) -> str:
    """The same as a coloured tree for a terminal of so many columns."""
    from rich.console import Console  # here, since a pipe needs none of it
    from rich.text import Text
    from rich.tree import Tree

    def grow(tree: Tree, branch: Branch, style: str) -> None:
        below = tree.add(Text(safe(branch.line), style))
        for each in branch.below:
            grow(below, each, _style(each.line))

    paper = StringIO()
    console = Console(file=paper, force_terminal=True, color_system="standard", width=width)
    for each in outline(plan):
        tree = Tree(Text(safe(each.line), "bold"), guide_style="dim")
        for branch in each.below:
            grow(tree, branch, _style(branch.line))
        console.print(tree)
    console.print(Text(f"record: {safe(record)}", "dim"))
    return paper.getvalue()


_STYLES = {
    "green": ("make-", "start ", "open-", "ensure-", "add-", "learn-", "take-"),
    "yellow": ("recreate ", "reload ", "change-", "move-", "rotate-", "wait "),
    "red": ("drop-", "purge-", "stop ", "close-", "retire-", "forget-"),
    "cyan": ("keep-", "pull-", "leave-"),
}


def _style(line: str) -> str:
    return next((style for style, verbs in _STYLES.items() if line.startswith(verbs)), "")


def as_markdown(plan: MeshPlan, record: str) -> str:
    """The text in a block that nothing in it can close, cut at a line to what GitHub takes (F6)."""
    text = as_text(plan, record)
    kept = text
    if len(text) > LONGEST:
        kept = text[: text.rindex("\n", 0, LONGEST) + 1]
        kept += f"and {text.count(chr(10)) - kept.count(chr(10))} lines more: run gitmesh plan\n"
    fence = "`" * max(3, max(map(len, re.findall("`+", kept)), default=0) + 1)
    return f"**gitmesh plan:** {heading(plan)}\n\n{fence}text\n{kept}{fence}\n"


def heading(plan: MeshPlan) -> str:
    """How much changes, in a line."""
    changes = sum(map(len, plan.nodes.values()))
    if not changes:
        return "nothing changes" if outline(plan)[0].line == "nothing changes" else "no container changes"
    dropped = f", {_count(len(plan.dropped), 'assignment')} dropped" if plan.dropped else ""
    return f"{_count(changes, 'change')} on {_count(len(plan.nodes), 'node')}{dropped}"


def as_json(plan: MeshPlan, base: str | None, head: str | None, record: str) -> Json:
    """Version 1 of schemas/plan.json, for a plan between two commits (None: a working tree)."""
    changed = plan.changed
    return {
        "v": 1,
        "result": "planned",
        "base": base,
        "head": head,
        "record": record,
        "nodes": {
            node: [
                {
                    "assignment": each.assignment,
                    "change": each.change,
                    "steps": [_step_json(step) for step in each.steps],
                }
                for each in planned
            ]
            for node, planned in plan.nodes.items()
        },
        "everywhere": [_step_json(each) for each in plan.everywhere],
        "secrets": [
            {
                **_step_json(each.step),
                "applier": each.applier,
                "readers": list(each.readers),
                "restarts": list(each.restarts),
            }
            for each in plan.secrets
        ],
        "data": [_step_json(each) for each in plan.kept],
        "causes": [
            {
                "file": cause.file,
                "touches": [
                    {
                        "assignment": each.assignment,
                        "why": each.why,
                        "changes": each.assignment in changed,
                    }
                    for each in cause.touches
                ],
            }
            for cause in plan.causes
        ],
        "moved": dict(plan.moved),
        "dropped": list(plan.dropped),
        "tentative": list(plan.tentative),
    }


def _step_json(step: Step) -> dict[str, Json]:
    return {"do": step.verb.value, "subject": step.subject, "why": list(step.why)}


def not_planned(outcome: Mapping[str, Json], side: str | None) -> Json:
    """The outcome of a check, which says why there is no plan; `side` is base or head, where one was."""
    return {**outcome, "side": side}
