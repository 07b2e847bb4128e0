"""What a plan says of containers is what an apply of the same two declarations does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gitmesh.core.declaration import Declaration, MountSpec
from gitmesh.core.plan import AssignmentPlan, Version, plan
from gitmesh.core.steps import Verb
from tests.host.declared import ADMIN, DATABASE, DECLARATION, rotated, with_container
from tests.host.test_apply import Node

RELOADS = with_container(DECLARATION, "app@athens", "web", plain={"reload": {"signal": "HUP"}})
_FILES = RELOADS.assignments["app@athens"].containers["web"].files
_SCRIPT = {**_FILES, "/opt/run.sh": replace(_FILES["/opt/run.sh"], content="eA==")}
PAIRS = {
    "nothing": (DECLARATION, DECLARATION),
    "everything new": (replace(DECLARATION, assignments={}), DECLARATION),
    "everything left": (DECLARATION, replace(DECLARATION, assignments={})),
    "image": (DECLARATION, with_container(DECLARATION, "store@athens", "db", image="x")),
    "mount": (
        DECLARATION,
        with_container(DECLARATION, "app@athens", "web", mounts={"/d": MountSpec("volume:a")}),
    ),
    "content": (DECLARATION, with_container(DECLARATION, "app@athens", "web", files=_SCRIPT)),
    "content, reloaded": (RELOADS, with_container(RELOADS, "app@athens", "web", files=_SCRIPT)),
}


@pytest.mark.rule("E8")
@pytest.mark.rule("G2")
@pytest.mark.parametrize("name", PAIRS)
def test_the_plan_is_what_the_host_does(name: str, tmp_path: Path) -> None:
    old, new = PAIRS[name]
    node = Node(tmp_path)
    node.apply(old)
    node.runtime.take()
    outcomes = node.apply(new)
    assert sorted(node.runtime.take()) == sorted(_asked(old, new))
    assert {(each.assignment, *said) for each in outcomes.values() for said in each.why.items()} == _why(
        plan(old, new)
    )
    node.root.close()


@pytest.mark.rule("E8")
@pytest.mark.rule("G2")
@pytest.mark.parametrize("secret", [DATABASE, ADMIN])
def test_a_rotation_is_planned_as_it_is_done(secret: str, tmp_path: Path) -> None:
    planned = plan(DECLARATION, DECLARATION, after={secret: Version(1)})
    node = Node(tmp_path)
    node.apply(DECLARATION)
    outcomes = node.apply(DECLARATION, rotated(secret, "GMCANARYnew value"))
    assert {(each.assignment, *said) for each in outcomes.values() for said in each.why.items()} == _why(
        planned
    )
    node.root.close()


def _why(planned: tuple[AssignmentPlan, ...]) -> set[tuple[str, str, tuple[str, ...]]]:
    """What the plan recreates or reloads, and why."""
    verbs = (Verb.RECREATE, Verb.RELOAD)
    return {
        (each.assignment, step.subject, step.why)
        for each in planned
        for step in each.steps
        if step.verb in verbs
    }


def _asked(old: Declaration, new: Declaration) -> list[str]:
    """What a runtime is asked for by the plan."""
    asked = []
    for each in plan(old, new):
        for step in each.steps:
            if step.verb in (Verb.STOP, Verb.RECREATE):
                asked.append(f"stop {step.subject}")
            if step.verb in (Verb.START, Verb.RECREATE):
                asked.append(f"start {step.subject}")
            if step.verb is Verb.RELOAD:
                asked.append(f"reload {step.subject} HUP")
    return asked


@pytest.mark.rule("E3")
def test_where_somebody_edited_another_file_a_reload_is_not_enough(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.apply(RELOADS)
    (tmp_path / "run/gitmesh/secrets/app@athens/web/etc/app.json").write_text("edited")
    new = with_container(RELOADS, "app@athens", "web", files=_SCRIPT)
    outcome = node.apply(new)["app@athens"]
    assert outcome.started == ("web",) and outcome.why == {"web": ("drifted", "content /opt/run.sh")}
    node.root.close()
