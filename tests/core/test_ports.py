"""Ports: what is given does not move, and what is fixed does not meet (B17)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.model import Assignment, Json, Kind, Mesh, Node, Requirement
from gitmesh.core.ports import Wanted, give
from gitmesh.core.record import EMPTY, Record, Recorded
from gitmesh.core.refusal import NOWHERE, Code
from tests.core.test_resolve import declarations

ATHENS = Node("athens", NOWHERE, "10.7.0.11", first=31000, last=31009, reserved=frozenset({31002}))
MESH = Mesh("hellas", "x", NOWHERE, nodes={"athens": ATHENS})


def wanted(module: str, place: int | None = None, **asks: Json) -> Wanted:
    """A port requirement `p` of `module` on athens."""
    requirement = Requirement("p", Kind.HOST, "port", NOWHERE, {"listens": 80, **asks})
    return Wanted(Assignment(module, "athens", NOWHERE, place={"p": place} if place else {}), requirement)


def given_to(each: Iterable[Wanted], record: Record = EMPTY) -> tuple[dict[str, int], list[str]]:
    """By module, its port; and the subjects of what is refused."""
    ports, refusals = give(MESH, record, sorted(each, key=lambda one: one.key))
    assert {each.code for each in refusals} <= {Code.PORT_HELD}
    return {id_.partition("@")[0]: port for (id_, _), port in ports.items()}, [x.subject for x in refusals]


def recorded(ports: dict[str, int]) -> Record:
    """The record of those ports."""
    return Record({f"{name}@athens": Recorded(name, {"p": port}) for name, port in ports.items()})


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ({"protocol": "tcp"}, {"protocol": "udp"}, False),
        ({"protocol": "tcp"}, {"protocol": "tcp+udp"}, True),
        ({"protocol": "udp"}, {"protocol": "tcp+udp"}, True),
        ({"reach": "local"}, {"reach": "mesh"}, False),
        ({"reach": "public"}, {"reach": "local"}, True),
        ({"reach": "public"}, {"reach": "mesh"}, True),
        ({"reach": "mesh"}, {"reach": "mesh"}, True),
        ({"reach": "public", "protocol": "udp"}, {"reach": "local", "protocol": "tcp"}, False),
    ],
)
@pytest.mark.rule("B17")
def test_c95_a_port_is_held_by_address_protocol_and_number(
    one: dict[str, str], other: dict[str, str], meet: bool
) -> None:
    for first, second in ((one, other), (other, one)):
        ports, refused = given_to(
            [wanted("a", None, number=53, **first), wanted("b", None, number=53, **second)]
        )
        assert refused == (["b@athens.p"] if meet else [])
        assert ports == ({"a": 53} if meet else {"a": 53, "b": 53})


@pytest.mark.rule("B17")
def test_what_binds_by_itself_may_bind_everywhere() -> None:
    binds = Requirement("p", Kind.HOST, "port", NOWHERE, {"number": 53, "reach": "local"})
    ports, refused = give(
        MESH, Record(), [wanted("a", number=53), Wanted(Assignment("b", "athens", NOWHERE), binds)]
    )
    assert len(ports) == 1 and [each.code for each in refused] == [Code.PORT_HELD]


@pytest.mark.rule("B10", "B17")
def test_c95_every_conflict_is_in_one_report() -> None:
    """A range of ports, the third part of C95, does not fit: a port requirement is one number, and a module
    that listens on many runs on the host's network with a grant."""
    _, refused = given_to(
        [wanted("a", number=53), wanted("b", number=53), wanted("c", number=80), wanted("d", place=80)]
    )
    assert refused == ["b@athens.p", "d@athens.p"]


@pytest.mark.rule("B17")
def test_what_the_record_gives_is_not_taken_by_a_placement() -> None:
    ports, refused = given_to([wanted("a", place=31000), wanted("b")], recorded({"b": 31000}))
    assert ports == {"b": 31000} and refused == ["a@athens.p"]


@pytest.mark.rule("B17")
def test_a_port_that_was_placed_and_is_no_more_stays() -> None:
    ports, _ = given_to([wanted("a")], recorded({"a": 31007}))
    assert ports == {"a": 31007}


@pytest.mark.parametrize(
    "node",
    [replace(ATHENS, first=32000, last=32009), replace(ATHENS, reserved=frozenset({31007}))],
    ids=["another range", "reserved since"],
)
@pytest.mark.rule("B17")
def test_a_port_stands_whatever_its_node_gives_out_since(node: Node) -> None:
    mesh = Mesh("hellas", "1", NOWHERE, nodes={"athens": node})
    ports, refused = give(mesh, recorded({"a": 31007}), [wanted("a"), wanted("b")])
    assert refused == []
    assert ports == {("a@athens", "p"): 31007, ("b@athens", "p"): node.first}


MODULES = st.sets(st.sampled_from("abcdefgh"), max_size=8)


@given(st.lists(MODULES, min_size=1, max_size=6))
@pytest.mark.rule("B17", "B22")
def test_ports_stand_while_others_come_and_go(commits: list[set[str]]) -> None:
    record = Record()
    before: dict[str, int] = {}
    for modules in commits:
        ports, refused = given_to((wanted(each) for each in modules), record)
        assert refused == [] and ports.keys() == modules
        assert len(set(ports.values())) == len(ports), "each has its own"
        assert all(31000 <= each <= 31009 and each != 31002 for each in ports.values())
        for each in modules & before.keys():
            assert ports[each] == before[each], "what stood has not moved"
        new = sorted(ports[each] for each in modules - before.keys())
        free = (each for each in range(31000, 31010) if each != 31002)
        kept = {before[each] for each in modules & before.keys()}
        assert new == [each for each in free if each not in kept][: len(new)], "the lowest free ones"
        before, record = ports, recorded(ports)


@pytest.mark.rule("B17", "B20")
def test_c97_the_port_is_in_the_declaration_and_the_route_names_it() -> None:
    """No engine chooses a port at a start: it is written down, so that a reboot changes nothing."""
    found = declarations()
    (publish,) = found["athens"].assignments["app@athens"].containers["app"].publish
    (route,) = found["delphi"].assignments["edge@delphi"].provides["route"].consumers
    assert route.asks["upstream"] == f"athens.hellas.internal:{publish.port}"
