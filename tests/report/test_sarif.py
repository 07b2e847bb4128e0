"""Refusals as SARIF 2.1.0: the shape that the standard asks for, held key by key."""

from __future__ import annotations

import json
import re

import pytest

from gitmesh import explain
from gitmesh.core.model import Json
from gitmesh.core.refusal import NOWHERE, Answer, At, Code, Refusal, Related
from gitmesh.report import sarif
from gitmesh.report.json import refused

FILES = {"a b.yaml": "é: 1\ntwo: 2\n".encode(), "b.yaml": b"x: 1\n"}


def refusal(code: Code = Code.SCHEMA, at: At = NOWHERE, text: str = "wrong") -> Refusal:
    return Refusal(
        code, "a.yaml", text, at, "here", (Related(At("b.yaml"), "there"),), (Answer("mend", "go"),)
    )


def results(*refusals: Refusal, files: dict[str, bytes] = FILES) -> list[Json]:
    found: list[Json] = sarif.log(refusals, files)["runs"][0]["results"]
    return found


def test_a_result_stands_at_its_place() -> None:
    (found,) = results(refusal(at=At("a b.yaml", ("two",))))
    assert found["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "a%20b.yaml"},
                "region": {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 4},
            },
            "message": {"text": "here"},
        }
    ]
    (related,) = found["relatedLocations"]
    assert related["id"] == 1 and related["message"] == {"text": "there"}
    assert found["message"]["text"] == "a.yaml: wrong\nmend: go"


def test_what_stands_nowhere_has_no_location() -> None:
    assert "locations" not in results(refusal())[0]
    (missing,) = results(refusal(at=At("no.yaml")))
    assert "region" not in missing["locations"][0]["physicalLocation"]


def test_each_code_is_a_rule_with_its_page() -> None:
    (run,) = sarif.log([refusal(code) for code in reversed(Code)], FILES)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == sorted(code.value for code in Code)
    assert all(each["help"]["text"] == explain.page(each["id"]) for each in rules)
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])


def test_a_fingerprint_stays_when_lines_are_added_above() -> None:
    before, below = FILES, {**FILES, "a b.yaml": b"# more\n\n" + FILES["a b.yaml"]}
    each = refusal(at=At("a b.yaml", ("two",)))
    (first,), (second,) = results(each, files=before), results(each, files=below)
    assert first["partialFingerprints"] == second["partialFingerprints"]
    assert first["locations"] != second["locations"]


def test_no_two_results_have_one_fingerprint() -> None:
    found = results(refusal(), refusal(text="worse"), refusal(Code.CYCLE), refusal(at=At("b.yaml")))
    prints = [each["partialFingerprints"]["gitmesh/v1"] for each in found]
    assert len(set(prints)) == 4
    assert prints[0].endswith(":1") and prints[1] == prints[0].removesuffix(":1") + ":2"


@pytest.mark.rule("F6")
def test_a_message_has_no_placeholder_and_no_link() -> None:
    (found,) = results(refusal(text="{0} [x](https://evil.example) \x1b[2J"))
    text = found["message"]["text"].partition("\n")[0]
    assert text == r"a.yaml: {{0}} [x\](https://evil.example) \x1b[2J"
    assert not re.search(r"(?<!\\)\]\(", text)
    assert sarif.render([refusal(text="\u202e")], {}).isascii()


def test_it_says_as_much_as_json() -> None:
    found = [refusal(code, At("b.yaml", ("x",))) for code in Code]
    codes = [each["code"] for each in refused(found, FILES)["refusals"]]
    assert [each["ruleId"] for each in results(*found)] == codes


def test_a_mesh_that_resolves_is_a_run_without_results() -> None:
    log = json.loads(sarif.render([], {}))
    assert log["version"] == "2.1.0" and log["runs"][0]["results"] == []
