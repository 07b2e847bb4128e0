"""What a plan says of containers is what an apply of the same two declarations does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gitmesh.core.declaration import Declaration, MountSpec
from gitmesh.core.plan import Verb, plan
from tests.host.declared import DECLARATION, with_container
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
    node.apply(new)
    assert sorted(node.runtime.take()) == sorted(_asked(old, new))
    node.root.close()


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
