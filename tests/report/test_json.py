"""The JSON form of a check, against its frozen schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from gitmesh.assets import asset
from gitmesh.core.model import Json
from gitmesh.core.refusal import NOWHERE, Answer, At, Code, Refusal, Related, Span
from gitmesh.report import json as as_json

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    loaded = json.loads((asset("schemas") / "refusals.json").read_text())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def refusal(code: Code = Code.AMBIGUOUS_PROVIDER, at: At = NOWHERE) -> Refusal:
    return Refusal(
        code,
        "gitea@athens.database",
        "2 providers",
        at,
        "no pin",
        related=(Related(At("modules/gitea/module.yaml", ("requires",)), "required here"),),
        answers=(Answer("pin it", "gitmesh pin gitea@athens database postgres@sparta"), Answer("by hand")),
    )


def test_the_whole_form() -> None:
    files = {
        "assignments/athens/gitea.yaml": b"pins: {}\n",
        "modules/gitea/module.yaml": b"module: gitea\nrequires: {}\n",
    }
    found = as_json.refused([refusal(at=At("assignments/athens/gitea.yaml"))], files, COMMIT, "empty")
    assert found == {
        "v": 1,
        "result": "refused",
        "commit": COMMIT,
        "record": "empty",
        "refusals": [
            {
                "code": "ambiguous-provider",
                "rule": "B4",
                "subject": "gitea@athens.database",
                "message": "2 providers",
                "at": {
                    "file": "assignments/athens/gitea.yaml",
                    "line": 1,
                    "column": 1,
                    "end_line": 1,
                    "end_column": 2,
                },
                "label": "no pin",
                "related": [
                    {
                        "at": {
                            "file": "modules/gitea/module.yaml",
                            "line": 2,
                            "column": 1,
                            "end_line": 2,
                            "end_column": 9,
                        },
                        "label": "required here",
                    }
                ],
                "answers": [
                    {"text": "pin it", "command": "gitmesh pin gitea@athens database postgres@sparta"},
                    {"text": "by hand", "command": None},
                ],
            }
        ],
    }


@pytest.mark.parametrize("code", list(Code))
def test_every_code_keeps_to_the_schema(code: Code, schema: jsonschema.Draft202012Validator) -> None:
    places = [NOWHERE, At("no/such/file.yaml"), At("x.yaml", span=Span(2, 3, 2, 9))]
    found = as_json.refused([refusal(code, at) for at in places], {"x.yaml": b"a: 1\nb: 2\n"}, None)
    schema.validate(json.loads(as_json.dump(found)))
    assert [each["at"] for each in found["refusals"]] == [
        None,
        {"file": "no/such/file.yaml"},
        {"file": "x.yaml", "line": 2, "column": 3, "end_line": 2, "end_column": 9},
    ]


@pytest.mark.parametrize(
    "outcome",
    [
        as_json.resolved({"assignments": 9, "nodes": 3}, "origin/deploy at 0123", COMMIT),
        as_json.failed("no mesh.yaml"),
        as_json.failed("no commit yet", "git commit"),
    ],
)
def test_the_other_outcomes_keep_to_the_schema(
    outcome: dict[str, Json], schema: jsonschema.Draft202012Validator
) -> None:
    schema.validate(json.loads(as_json.dump(outcome)))


@pytest.mark.parametrize(
    "wrong",
    [
        {
            "v": 2,
            "result": "failed",
            "commit": None,
            "refusals": [],
            "error": {"message": "", "command": None},
        },
        {"v": 1, "result": "refused", "commit": None, "refusals": []},
        {"v": 1, "result": "resolved", "commit": None, "refusals": []},
        {"v": 1, "result": "failed", "commit": None, "refusals": []},
    ],
)
def test_the_schema_refuses(wrong: dict[str, Json], schema: jsonschema.Draft202012Validator) -> None:
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(wrong)


@pytest.mark.rule("F6")
def test_what_is_printed_is_ascii() -> None:
    hostile = Refusal(Code.SCHEMA, "\x1b[2J", "\u202e", At("\x1b.yaml"))
    printed = as_json.dump(as_json.refused([hostile], {}))
    assert printed.isascii() and printed.isprintable()
