"""Three cases in each face for programs, held byte for byte: what a workflow or an editor was built on.

GITMESH_BLESS=1 writes the files anew, to be read in the diff.
"""

from __future__ import annotations

import json
import os

import pytest

from gitmesh.report import github, markdown, sarif
from gitmesh.report import json as as_json
from tests.cases.test_cases import HERE as CASES
from tests.cases.test_cases import refusals_of
from tests.real import PROJECT

GOLDEN = PROJECT / "tests/report/golden"
KEPT = ["name-held--by-another-app", "secret-exposed--in-a-remotes-url", "yaml-syntax--a-bracket-left-open"]


@pytest.mark.rule("B10")
@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("face", ["json", "sarif.json", "md", "github.txt"])
def test_a_face_is_what_it_was(name: str, face: str) -> None:
    files, refusals = refusals_of(CASES / "refused" / name)
    match face:
        case "json":
            found = json.dumps(as_json.refused(refusals, files), indent=1) + "\n"
        case "sarif.json":
            log = sarif.log(refusals, files)
            # The version, and the pages that it holds as help, change for reasons of their own.
            driver = log["runs"][0]["tool"]["driver"]
            del driver["semanticVersion"]
            for rule in driver["rules"]:
                del rule["help"], rule["shortDescription"]
            found = json.dumps(log, indent=1) + "\n"
        case "md":
            found = markdown.render(refusals, files)
        case _:
            found = github.render(refusals, files)
    kept = GOLDEN / f"{name}.{face}"
    if os.environ.get("GITMESH_BLESS") == "1":
        kept.write_text(found)
    assert found == kept.read_text()
