"""The mesh as a graph: assignments in their nodes, and an edge from each consumer to each provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gitmesh.core.model import Json, Kind
from gitmesh.core.resolve import Resolution, waits


@dataclass(frozen=True, slots=True)
class Edge:
    """`consumer` requires `requirement` of `provider`; `waits` where that comes with a credential or an
    answer of the running backend."""

    consumer: str
    requirement: str
    provider: str
    waits: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """Assignments by node, the seats that each holds, and the edges; all in order."""

    nodes: dict[str, list[str]]
    seats: dict[str, list[str]]
    edges: tuple[Edge, ...]


def graph(resolution: Resolution, around: str | None = None) -> Graph:
    """The whole mesh, or one assignment with its providers and its consumers."""
    edges = tuple(
        Edge(
            consumer,
            requirement,
            answered.by,
            answered.contract.credential is not None or waits(resolution.mesh, answered),
        )
        for (consumer, requirement), answered in sorted(resolution.answers.items(), key=lambda item: item[0])
        if answered.requirement.kind is Kind.MODULE and around in (None, consumer, answered.by)
    )
    near = {name for each in edges for name in (each.consumer, each.provider)} | {around}
    nodes: dict[str, list[str]] = {}
    for id_, each in sorted(resolution.mesh.assignments.items()):
        if around is None or id_ in near:
            nodes.setdefault(each.node, []).append(id_)
    seats: dict[str, list[str]] = {}
    for seat, holder in sorted(resolution.holders.items()):
        seats.setdefault(holder, []).append(seat)
    return Graph(nodes, seats, edges)


def as_mermaid(shown: Graph) -> str:
    """A flowchart, as forges show it in Markdown. An edge that waits is dashed."""
    numbers = _numbers(shown)
    lines = ["flowchart LR"]
    for number, (node, assignments) in enumerate(sorted(shown.nodes.items())):
        lines.append(f"  subgraph n{number}[{_quoted(node)}]")
        lines += [f"    {numbers[each]}[{_quoted(_label(shown, each))}]" for each in assignments]
        lines.append("  end")
    for each in shown.edges:
        arrow = "-.->" if each.waits else "-->"
        ends = numbers[each.consumer], numbers[each.provider]
        lines.append(f"  {ends[0]} {arrow}|{_quoted(each.requirement)}| {ends[1]}")
    return "\n".join(lines) + "\n"


def as_dot(shown: Graph) -> str:
    """A digraph for Graphviz: `gitmesh graph --format dot | dot -Tsvg`. An edge that waits is dashed."""
    numbers = _numbers(shown)
    lines = ["digraph mesh {", "  rankdir=LR;", "  node [shape=box];"]
    for number, (node, assignments) in enumerate(sorted(shown.nodes.items())):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(node)};"]
        lines += [f"    {numbers[each]} [label={_quoted(_label(shown, each))}];" for each in assignments]
        lines.append("  }")
    for each in shown.edges:
        style = ", style=dashed" if each.waits else ""
        ends = f"{numbers[each.consumer]} -> {numbers[each.provider]}"
        lines.append(f"  {ends} [label={_quoted(each.requirement)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def as_json(shown: Graph) -> dict[str, Json]:
    """Version 1 of `gitmesh graph --format json`; keys may join it, none goes away."""
    return {
        "v": 1,
        "nodes": [{"name": node, "assignments": ids} for node, ids in sorted(shown.nodes.items())],
        "seats": [{"seat": seat, "holder": who} for who, held in shown.seats.items() for seat in held],
        "edges": [
            {"from": e.consumer, "requirement": e.requirement, "to": e.provider, "waits": e.waits}
            for e in shown.edges
        ],
    }


def _numbers(shown: Graph) -> dict[str, str]:
    """A name for each assignment that is no word of either language."""
    ids = sorted(_assignments(shown))
    return {each: f"a{number}" for number, each in enumerate(ids)}


def _assignments(shown: Graph) -> Iterator[str]:
    for each in shown.nodes.values():
        yield from each


def _label(shown: Graph, assignment: str) -> str:
    held = shown.seats.get(assignment)
    return f"{assignment} ({', '.join(held)})" if held else assignment


def _quoted(text: str) -> str:
    """A name of the mesh has no quote and no backslash (FORMATS); a mesh that is refused is not drawn."""
    assert text.isprintable() and not set(text) & set('"\\<>'), text
    return f'"{text}"'
