"""The provider choice, step by step and against a naive oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.choose import Candidates, Choice, Unsaid, choose
from gitmesh.core.model import Assignment, Kind, Mesh, Module, Node, Provision, Requirement
from gitmesh.core.refusal import At, Code, Refusal

PROVIDERS = ("p@n1", "p@n2", "q@n1", "q@n3")
AT = At("file.yaml")


def _mesh(choice: str | None = None) -> Mesh:
    assignments = {
        each: Assignment(each[0], each[2:], At(f"assignments/{each}")) for each in (*PROVIDERS, "c@n1")
    }
    return Mesh(
        "m",
        "0" * 32,
        AT,
        seats={"store": "db"},
        choose={} if choice is None else {"db": choice},
        modules={
            name: Module(name, AT, seats=("store",), provides={"db": Provision("db", AT)}) for name in "pq"
        },
        nodes={name: Node(name, AT, "10.0.0.1") for name in ("n1", "n2", "n3")},
        assignments=assignments,
    )


def _oracle(
    seat: str | None, holder: str | None, pin: str | None, able: set[str], chosen: str | None, old: str | None
) -> str:
    """The rules as their sentence says them, with no thought for messages."""
    if seat:
        if holder is None:
            return Code.SEAT_UNHELD
        if holder not in able:
            return Code.NO_PROVIDER
        return holder if old in (None, holder) or chosen == holder else Code.PROVIDER_CHANGED
    if pin:
        return pin if pin in able else Code.PIN_BAD
    own = [each for each in able if each.endswith("@n1")]
    if len(own) == 1:
        ruled, said = own[0], False
    elif len(able) == 1:
        ruled, said = next(iter(able)), False
    elif chosen in able:
        ruled, said = str(chosen), True
    else:
        ruled, said = "", False
    if old and ruled and ruled != old and not said:
        return Code.PROVIDER_CHANGED
    if old in able:
        return ruled or str(old)
    return ruled or (Code.AMBIGUOUS_PROVIDER if able else Code.NO_PROVIDER)


@given(
    seat=st.sampled_from((None, "store")),
    holder=st.sampled_from((None, *PROVIDERS)),
    pin=st.sampled_from((None, *PROVIDERS)),
    able=st.sets(st.sampled_from(PROVIDERS)),
    chosen=st.sampled_from((None, *PROVIDERS)),
    old=st.sampled_from((None, *PROVIDERS)),
)
@pytest.mark.rule("B1")
@pytest.mark.rule("B2")
@pytest.mark.rule("B3")
@pytest.mark.rule("B4")
@pytest.mark.rule("G1")
def test_the_oracle_agrees(
    seat: str | None, holder: str | None, pin: str | None, able: set[str], chosen: str | None, old: str | None
) -> None:
    consumer = Assignment("c", "n1", At("assignments/n1/c.yaml"), pins={"database": pin} if pin else {})
    requirement = Requirement("database", Kind.MODULE, "db", AT, seat=seat)
    holders = {"store": holder} if holder else {}
    found = choose(_mesh(chosen), holders, consumer, requirement, Candidates(tuple(sorted(able)), {}), old)
    expected = _oracle(seat, holder, pin, able, chosen, old)
    if isinstance(found, Unsaid):
        assert expected == Code.PROVIDER_CHANGED
        assert found.able is (old in able)
    else:
        assert (found.provider if isinstance(found, Choice) else found.code) == expected


@pytest.mark.rule("B4")
def test_the_holder_of_a_seat_is_suggested_first() -> None:
    consumer = Assignment("c", "n2", At("assignments/n2/c.yaml"))
    requirement = Requirement("database", Kind.MODULE, "db", AT)
    found = choose(
        _mesh(), {"store": "q@n3"}, consumer, requirement, Candidates(("p@n1", "q@n1", "q@n3"), {}), None
    )
    assert isinstance(found, Refusal)
    assert [each.command for each in found.answers] == [
        "gitmesh pin c@n2 database q@n3",
        "gitmesh pin c@n2 database p@n1",
        "gitmesh pin c@n2 database q@n1",
        "gitmesh choose db q@n3",
    ]
