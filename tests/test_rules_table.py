"""docs/rules.md says what the tests say, and the tests name only rules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules import GROUPS, TABLE, Proof, case_proofs, everything, proofs_in, rules, table, unknown


def test_every_mark_names_a_rule() -> None:
    assert not unknown(everything(), rules())


def test_the_table_is_not_stale() -> None:
    known = rules()
    found = [each for each in everything() if each.rule in known]
    assert TABLE.read_text() == table(known, found), "docs/rules.md is stale: ./dev rules"


def test_every_rule_has_a_group_and_a_sentence() -> None:
    for rule, sentence in rules().items():
        assert rule[0] in GROUPS
        assert rule[1:].isdecimal()
        assert sentence.endswith(".")


MARKED = """
import pytest
pytestmark = [pytest.mark.real, pytest.mark.rule("F1")]

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("S2"))])
@pytest.mark.rule("B4", "B5")
def test_one(x): ...

@pytest.mark.rule("E1")
class TestMany:
    @pytest.mark.rule("E2")
    def test_two(self): ...

@pytest.mark.rule("Z9")
def not_a_test(): ...
"""


def test_marks_are_found_wherever_they_stand() -> None:
    found = {(each.rule, each.test) for each in proofs_in(MARKED, "x/test_x.py")}
    one, two = "tests/x/test_x.py::test_one", "tests/x/test_x.py::TestMany::test_two"
    assert found == {
        ("F1", one),
        ("S2", one),
        ("B4", one),
        ("B5", one),
        ("F1", two),
        ("E1", two),
        ("E2", two),
    }


def test_a_mark_of_no_rule_is_named() -> None:
    said = unknown(
        [Proof("B99", "tests/test_x.py::test_y", 7), Proof("B1", "tests/test_x.py::test_z", 8)], rules()
    )
    assert said == ["tests/test_x.py::test_y (line 7) names B99"]


@pytest.mark.parametrize("rule", ["B4", "S70"])
def test_a_rule_moves_from_open_to_proven(rule: str) -> None:
    before, after = table(rules(), []), table(rules(), [Proof(rule, "tests/a/test_a.py::test_a", 1)])
    assert before.count("| – |") == after.count("| – |") + 1
    assert "0 of 159 rules have a test" in before
    assert "| `a/test_a.py::test_a` |" in after


def test_a_case_proves_the_rule_that_its_codes_page_names(tmp_path: Path) -> None:
    (tmp_path / "cases" / "cycle--two-that-wait").mkdir(parents=True)
    (tmp_path / "cases" / "pageless--x").mkdir()
    (tmp_path / "cycle.md").write_text("# cycle\n\nText of B1.\n\nRule: B21\n")
    found = case_proofs(tmp_path / "cases", tmp_path)
    assert found == [Proof("B21", "tests/cases/refused/cycle--two-that-wait", 0)]
