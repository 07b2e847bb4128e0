"""Who holds a seat: one assignment, wherever else its module runs (B8)."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from tests.core.test_resolve import resolved

SECOND = "assignments/delphi/postgres.yaml"


@pytest.mark.rule("B8")
def test_a_module_runs_on_many_nodes_and_one_of_them_holds_the_seat() -> None:
    resolution, refusals = resolved({SECOND: "uses: []\n", "assignments/athens/app.yaml": None})
    assert refusals == ()
    assert resolution.holders["mesh-store"] == "postgres@sparta"
    assert resolution.record.holders["mesh-store"] == "postgres@sparta"


@pytest.mark.rule("B8")
def test_a_second_holder_is_refused_naming_the_first_and_holds_nothing() -> None:
    third = "assignments/athens/postgres.yaml"
    holds = "holds: [mesh-store]\n"
    resolution, refusals = resolved({SECOND: holds, third: holds, "assignments/athens/app.yaml": None})
    assert [(each.code, each.subject) for each in refusals] == [
        (Code.SEAT_TWICE, "postgres@delphi"),
        (Code.SEAT_TWICE, "postgres@sparta"),
    ]
    assert all("postgres@athens" in each.message for each in refusals)
    assert resolution.holders["mesh-store"] == "postgres@athens"
