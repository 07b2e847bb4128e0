"""Refusals in order, and as one where they come of one mistake."""

from __future__ import annotations

from itertools import permutations

import pytest

from gitmesh.core.refusal import At, Code, Refusal, ordered


def refusal(key: str, code: Code = Code.REFERENCE_UNKNOWN, root: str = "", said: str = "wrong") -> Refusal:
    return Refusal(code, "app", said, At("a.yaml", (key,)), root=root)


@pytest.mark.rule("B10")
def test_one_root_is_one_refusal_with_the_other_places() -> None:
    (found,) = ordered([refusal(key, root="app requires sql") for key in "cab"])
    assert found.at.keys == ("a",)
    assert [(each.at.keys, each.label) for each in found.related] == [
        (("b",), "here as well"),
        (("c",), "here as well"),
    ]


@pytest.mark.rule("B10")
def test_the_unknown_name_stands_for_what_follows_from_it() -> None:
    unheld = refusal("a", Code.SEAT_UNHELD, "seat x", "nobody holds it")
    (found,) = ordered([unheld, refusal("b", Code.SEAT_UNKNOWN, "seat x")])
    assert found.code is Code.SEAT_UNKNOWN
    assert [each.label for each in found.related] == ["nobody holds it"]


def test_hundreds_of_places_are_counted() -> None:
    (found,) = ordered([refusal(f"{number:03}", root="contract x") for number in range(300)])
    assert len(found.related) == 8
    assert found.related[-1].label == "and in 291 more places"


@pytest.mark.rule("B22")
def test_the_order_does_not_depend_on_the_order_of_finding() -> None:
    found = [refusal("a"), refusal("a", said="worse"), refusal("a", Code.CYCLE), refusal("b"), refusal("a")]
    assert len({ordered(list(each)) for each in permutations(found)}) == 1
    assert len(ordered(found)) == 4
