"""What an editing command did, against its frozen schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from gitmesh.assets import asset
from gitmesh.core.refusal import At, Code, Refusal
from gitmesh.report.edited import ACTIONS, edited

SCHEMA = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "edited.json").read_text()))


@pytest.mark.parametrize("action", ACTIONS)
def test_an_edit_that_resolves(action: str) -> None:
    found = edited([("assignments/athens/gitea.yaml", action)], [], {})
    SCHEMA.validate(found)
    assert found == {
        "v": 1,
        "changes": [{"file": "assignments/athens/gitea.yaml", "action": action}],
        "result": "resolved",
        "refusals": [],
    }


@pytest.mark.rule("B10")
def test_an_edit_says_what_is_still_refused() -> None:
    refusals = [Refusal(Code.SCHEMA, each, "wrong", At("a.yaml", (each,))) for each in ("one", "two")]
    found = edited([("a.yaml", "changed")], refusals, {"a.yaml": b"one: 1\ntwo: 2\n"})
    SCHEMA.validate(found)
    assert found["result"] == "refused"
    assert [(each["subject"], each["at"]["line"]) for each in found["refusals"]] == [("one", 1), ("two", 2)]


def test_another_action_is_none() -> None:
    with pytest.raises(ValueError, match="added, changed, removed, unchanged"):
        edited([("a.yaml", "edited")], [], {})


def test_the_schema_refuses_a_result_that_its_refusals_deny() -> None:
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(edited([], [], {}) | {"result": "refused"})
