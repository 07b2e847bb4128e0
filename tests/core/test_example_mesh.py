"""The example mesh of the reference folder, against its resolution by hand; each difference is named here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitmesh.core.compose import compose
from gitmesh.core.model import Kind
from gitmesh.core.record import Record
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.repo.load import load


@pytest.fixture(scope="module")
def resolution(example_mesh: Path) -> Resolution:
    files = {
        str(each.relative_to(example_mesh)): each.read_bytes()
        for each in sorted(example_mesh.rglob("*"))
        if each.is_file() and each.suffix != ".md" and "declarations" not in each.parts
    }
    mesh, refusals = load(files)
    assert refusals == []
    found = resolve(mesh, Record())
    assert found.refusals == ()
    return found


def _rows(folder: Path, heading: str) -> list[list[str]]:
    text = (folder / "RESOLUTION.md").read_text()
    block = text.partition(heading)[2].partition("```\n")[2].partition("```")[0]
    return [[cell.strip() for cell in line.split(" | ")] for line in block.strip().split("\n")]


@pytest.mark.rule("B1")
@pytest.mark.rule("B15")
@pytest.mark.rule("B17")
def test_who_answers_what(resolution: Resolution, example_mesh: Path) -> None:
    rows = _rows(example_mesh, "## Requirement")
    differences = {}
    seen = set()
    for assignment, requirement, contract, by, value in rows:
        seen.add((assignment, requirement))
        answered = resolution.answers.get((assignment, requirement))
        if answered is None:
            found = "optional, not used"
        elif answered.requirement.kind is Kind.MODULE:
            found = f"{answered.by}: {answered.rule}"
        elif contract == "port":
            found = f"{answered.fields['port']} ({answered.rule})"
        elif "location" in answered.fields:
            location = answered.fields["location"]
            found = f"{location} (placed)" if answered.rule == "placed" else str(location)
        else:
            found = "-"
        expected = _expected(contract, by, value)
        if found != expected:
            differences[f"{assignment}.{requirement}"] = (found, expected)
    assert seen == {
        *resolution.answers,
        ("immich@athens", "gpu"),
    }, "the same requirements, and the one that is optional and not used"
    assert differences == {}


def _expected(contract: str, by: str, value: str) -> str:
    if contract in ("port", "directory", "access"):
        return value
    if contract == "volume":
        return "volume:immich_athens-models"
    if contract in ("machine", "facts", "value"):
        return "-"
    if contract == "device":
        return value
    return f"{by}: {value.partition(';')[0]}"


@pytest.mark.rule("C2")
def test_which_secrets_there_are(resolution: Resolution, example_mesh: Path) -> None:
    rows = _rows(example_mesh, "## Secret")
    declarations = compose(resolution)
    differences = {}
    for id_, made, takes, recipients, rotation in rows:
        secret = resolution.secrets[id_]
        nodes = {node for node, each in declarations.items() if id_ in each.secrets}
        found = (secret.kind, secret.takes, nodes, secret.rotation)
        named = set(re.findall(r"(?:^|, )([a-z]+) \(", recipients))
        expected = (made.split()[0], takes, named, rotation)
        if found != expected:
            differences[id_] = (found, expected)
    assert {row[0] for row in rows} == resolution.secrets.keys()
    assert (
        differences
        == {
            # By hand it goes to the node whose host job reads it; so it does here, as a file of the job.
        }
    )


@pytest.mark.rule("B14")
def test_cut_identities_are_the_ones_by_hand(resolution: Resolution) -> None:
    kept = resolution.record.assignments
    assert kept["paperless-ngx@athens"].as_ == "paperless_ng_68608"
    assert kept["node-exporter@athens"].as_ == "node_exporte_387da"
    assert kept["gitea@athens"].as_ == "gitea_athens"


@pytest.mark.rule("B22")
def test_the_record_is_a_fixed_point(resolution: Resolution) -> None:
    again = resolve(resolution.mesh, resolution.record)
    assert again.refusals == ()
    assert again.record == resolution.record
    assert compose(again) == compose(resolution)
