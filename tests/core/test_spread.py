"""A spread's mistakes: said once, however many nodes it reaches (B10)."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from tests.core.test_resolve import resolved

AGENT = """
module: agent
requires:
  server: {operator: {type: string, minLength: 1}}
  api:    {host: port, listens: 80, number: 31000}
containers:
  agent:
    image: docker.io/library/agent:1.0@sha256:0000000000000000000000000000000000000000000000000000000000000000
    env: {SERVER: '${server:value}'}
    publish: [api]
"""


def files(said: str, nodes: int = 0) -> dict[str, str | None]:
    """The base with an agent on every node, and more nodes."""
    more: dict[str, str | None] = {
        f"nodes/n{each}.yaml": f"address: 10.7.1.{each}\n" for each in range(nodes)
    }
    return {"modules/agent/module.yaml": AGENT, "spreads/agents.yaml": f"module: agent\n{said}", **more}


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (0, "the same on 2 more nodes of the spread `agents`"),
        (40, "the same on 42 more nodes of the spread"),
    ],
)
@pytest.mark.rule("B10", "B5")
def test_a_value_that_is_missing_on_many_nodes_is_missed_once(nodes: int, says: str) -> None:
    _, refusals = resolved(files("every: true\nplace: {api: 40000}\n", nodes))
    (refusal,) = refusals
    assert (refusal.code, refusal.subject) == (Code.VALUE_MISSING, "agent@athens.server")
    assert says in refusal.message
    assert refusal.at.file == "spreads/agents.yaml"


@pytest.mark.rule("B10")
def test_an_assignments_own_file_misses_its_own() -> None:
    own: dict[str, str | None] = {"assignments/athens/agent.yaml": "place: {api: 40000}\n"}
    _, refusals = resolved(files("every: true\nplace: {api: 40000}\n") | own)
    assert [(each.at.file, each.subject) for each in refusals] == [
        ("assignments/athens/agent.yaml", "agent@athens.server"),
        ("spreads/agents.yaml", "agent@delphi.server"),
    ]
    assert "the same on 1 more node of" in refusals[1].message


@pytest.mark.rule("B10", "B17")
def test_what_differs_by_node_stays_apart() -> None:
    """Two nodes on which different assignments hold the port: two mistakes, with two ways out."""
    _, refusals = resolved(
        files("every: true\nvalues: {server: x}\n")
        | {
            "assignments/athens/app.yaml": "values: {web.name: app.example.org}\nplace: {http: 31000}\n",
            "assignments/sparta/postgres.yaml": "holds: [mesh-store]\nplace: {sql: 31000}\n",
        }
    )
    held = [each for each in refusals if each.code is Code.PORT_HELD]
    assert len({each.related for each in held}) == len(held) == 2
    assert not any("the same on" in each.message for each in held)
