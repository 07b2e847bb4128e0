"""Every refused case in every face: what holds of a face holds for each refusal there is."""

from __future__ import annotations

import json

import jsonschema
import pytest

from gitmesh.assets import asset
from gitmesh.core.refusal import Refusal
from gitmesh.report import github, markdown, sarif
from gitmesh.report import json as as_json
from gitmesh.report.terminal import render
from tests.cases.test_cases import HERE, REFUSED, refusals_of
from tests.real import PROJECT

SCHEMA = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "refusals.json").read_text()))
SARIF = jsonschema.Draft202012Validator(
    json.loads((PROJECT / "tests/report/vendored/sarif-2.1.0.json").read_text())
)

Found = tuple[dict[str, bytes], tuple[Refusal, ...]]


@pytest.fixture(params=REFUSED)
def found(request: pytest.FixtureRequest) -> Found:
    return refusals_of(HERE / "refused" / request.param)


@pytest.mark.rule("B10")
def test_every_face_says_each_refusal_at_its_place(found: Found) -> None:
    files, refusals = found
    rows = as_json.refused(refusals, files)
    SCHEMA.validate(json.loads(as_json.dump({**rows, "commit": None})))
    text = render(refusals, files, colour=False)
    annotations = github.render(refusals, files).splitlines()
    log = json.loads(sarif.render(refusals, files))
    SARIF.validate(log)
    results = log["runs"][0]["results"]
    assert len(annotations) == len(results) == len(refusals)
    for row, annotation, result in zip(rows["refusals"], annotations, results, strict=True):
        at = row["at"]
        assert f"refused[{row['code']}]: {row['subject']}: " in text
        assert f"title={row['code']}::" in annotation
        assert result["ruleId"] == row["code"]
        if at is not None and "line" in at:
            assert f"--> {at['file']}:{at['line']}:{at['column']}" in text
            assert f"file={at['file']},line={at['line']}," in annotation
            region = result["locations"][0]["physicalLocation"]["region"]
            assert (region["startLine"], region["startColumn"]) == (at["line"], at["column"])


@pytest.mark.rule("B10")
def test_every_refusal_says_a_way_out(found: Found) -> None:
    # A value of the wrong shape says in its message which one was expected.
    assert all(each.answers or "expected" in each.message for each in found[1])


def test_a_comment_has_the_terminals_text(found: Found) -> None:
    files, refusals = found
    assert render(refusals, files, colour=False).rpartition("\n\n")[0] in markdown.render(refusals, files)
