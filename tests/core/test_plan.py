"""The comparison of two declarations: empty for equals, and each step with the keys that say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitmesh.core.plan import Step, Verb, plan
from tests.host.declared import DECLARATION, with_container


@pytest.mark.rule("G2")
def test_equal_declarations_give_nothing() -> None:
    assert plan(DECLARATION, DECLARATION) == plan(None, None) == ()


@pytest.mark.rule("G2")
def test_providers_come_first_and_data_is_kept() -> None:
    assert [each.assignment for each in plan(None, DECLARATION)] == [
        "site@athens", "store@athens", "app@athens",
    ]  # fmt: skip
    left = {each.assignment: each for each in plan(DECLARATION, None)}["app@athens"]
    assert left.change == "left"
    assert Step(Verb.KEEP_DIRECTORY, "data") in left.steps and Step(Verb.STOP, "web") in left.steps


def test_only_files_changed_is_a_reload_where_the_module_says_so() -> None:
    old = with_container(DECLARATION, "app@athens", "web", plain={"reload": {"signal": "HUP"}})
    files = old.assignments["app@athens"].containers["web"].files
    script = replace(files["/opt/run.sh"], content="eA==")
    new = with_container(old, "app@athens", "web", files={**files, "/opt/run.sh": script})
    assert plan(old, new)[0].steps == (Step(Verb.RELOAD, "web", ("files /opt/run.sh",)),)
    new = with_container(new, "app@athens", "web", command=("x",))
    assert plan(old, new)[0].steps[0].verb is Verb.RECREATE
