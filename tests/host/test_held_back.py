"""A changed answer to an unchanged requirement is held back until a commit accepts it (B12)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gitmesh.core.declaration import AnswersSpec
from gitmesh.core.model import Json
from gitmesh.fsops import Root
from gitmesh.host.fill import fill
from gitmesh.host.held_back import TakenAnswers, hold_back
from gitmesh.host.state import HOME, State, StateDamaged
from tests.host.declared import DECLARATION, STATS, VALUES

pytestmark = pytest.mark.rule("B12")

SPEC = DECLARATION.answers[STATS]
CANARY = 7003


def goes_by(
    site: int | None, before: TakenAnswers, spec: AnswersSpec = SPEC
) -> tuple[TakenAnswers, tuple[str, ...], Json]:
    """What is taken, what is remarked, and the id that the site is filled with; None while it waits."""
    answered = {} if site is None else {STATS: {"id": site}}
    taken, remarks = hold_back({STATS: spec}, answered, before)
    filled = fill(
        replace(DECLARATION, answers={STATS: spec}), replace(VALUES, answers=taken.answers(answered))
    )
    if "site@athens" not in filled.assignments:
        return taken, remarks, None
    blob = filled.assignments["site@athens"].containers["site"].files["/srv/site.yaml"].blob()
    return taken, remarks, json.loads(blob)["id"]


FIRST = hold_back({STATS: SPEC}, {STATS: {"id": 7}}, TakenAnswers())[0]


def test_a_first_answer_is_taken() -> None:
    assert goes_by(7, TakenAnswers()) == (FIRST, (), 7)


def test_a_changed_answer_is_held_back_and_never_shown() -> None:
    taken, remarks, site = goes_by(CANARY, FIRST)
    assert (taken, site) == (FIRST, 7)
    assert remarks == (
        "site@athens: held back: stats@sparta answers another id for stats; "
        "accept it with rotations.yaml: {site@athens.stats: 1}",
    )
    assert goes_by(7, taken) == (FIRST, (), 7), "the old answer again is nothing to accept"


def test_a_commit_accepts_it_and_the_one_after_is_held_back_again() -> None:
    accepting = replace(SPEC, generation=1)
    taken, remarks, site = goes_by(CANARY, FIRST, accepting)
    assert (remarks, site) == ((), CANARY)
    again, remarks, site = goes_by(9, taken, accepting)
    assert (again, site) == (taken, CANARY)
    assert "{site@athens.stats: 2}" in remarks[0] and str(CANARY) not in remarks[0]


@pytest.mark.parametrize(
    "spec", [replace(SPEC, by="stats@delphi"), replace(SPEC, fields={"id": {"type": "integer"}})]
)
def test_a_commit_that_changes_the_requirement_takes_its_answer(spec: AnswersSpec) -> None:
    taken, remarks, _ = goes_by(CANARY, FIRST, spec)
    assert remarks == () and taken.requirements[STATS].fields == {"id": CANARY}


def test_silence_is_no_way_to_another_answer() -> None:
    taken, remarks, site = goes_by(None, FIRST)
    assert (taken, remarks, site) == (FIRST, (), None)
    assert goes_by(CANARY, taken)[2] == 7


def test_what_is_not_declared_any_more_is_forgotten() -> None:
    assert hold_back({}, {}, FIRST) == (TakenAnswers(), ())


def test_it_is_kept_on_disk_and_lost_state_takes_the_answer(tmp_path: Path) -> None:
    with Root(tmp_path) as root:
        root.make_directory(HOME, 0o755)
        state, file = State(root), tmp_path / HOME / "answers.json"
        state.save_answers(TakenAnswers())
        assert not file.exists(), "a node without answers keeps nothing of them"
        state.save_answers(FIRST)
        assert State(root).answers() == FIRST and file.stat().st_mode & 0o777 == 0o600
        file.write_text("{")
        with pytest.raises(StateDamaged) as raised:
            state.answers()
        assert "answer now is then taken" in raised.value.way_out
        file.unlink()
        assert goes_by(CANARY, state.answers())[2] == CANARY
