"""A node that is revoked: no deploy is blocked, nothing moves, and what it says counts no more (G14)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gitmesh.core.compose import compose
from gitmesh.core.model import Json
from gitmesh.core.record import Record
from gitmesh.core.refusal import ordered
from gitmesh.core.resolve import resolve
from gitmesh.deploy.slices import declaration_blob, slices
from gitmesh.repo.load import load


def deployed(files: Mapping[str, bytes], record: Record) -> tuple[Record, dict[str, bytes], dict[str, Json]]:
    """The record, the declarations' bytes and the slices that a commit gives; it is not refused."""
    mesh, refusals = load(files)
    resolution = resolve(mesh, record)
    assert ordered([*refusals, *resolution.refusals]) == ()
    declarations = compose(resolution)
    blobs = {node: declaration_blob(each) for node, each in declarations.items()}
    return resolution.record, blobs, slices(resolution, declarations, blobs)


def files_of(folder: Path) -> dict[str, bytes]:
    """The example mesh, with an application on sparta that umami on athens answers."""
    files = {
        str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*.*") if each.is_file()
    }
    gitea = files["assignments/athens/gitea.yaml"]
    files["assignments/delphi/gitea.yaml"] = gitea.replace(b"git.example.org", b"code.example.org")
    return files


@pytest.mark.parametrize("node", ["athens", "sparta"])
@pytest.mark.rule("G14", "B17")
def test_revoking_is_never_refused_and_moves_nothing(example_mesh: Path, node: str) -> None:
    files = files_of(example_mesh)
    record, declared, approved = deployed(files, Record())
    files[f"nodes/{node}.yaml"] += b"state: revoked\n"
    again, after, told = deployed(files, record)
    assert again == record, "its assignments stand, and so do providers, ports and identities"
    assert after == declared, "nothing is recreated anywhere"
    assert told[node]["state"] == "revoked"
    assert told[node]["secrets"] == approved[node]["secrets"], "what it received stays listed"


@pytest.mark.rule("G14", "F4")
def test_nobody_takes_the_answers_of_a_revoked_node(example_mesh: Path) -> None:
    files = files_of(example_mesh)
    _, _, approved = deployed(files, Record())
    assert "athens" in approved["delphi"]["answers_from"]
    files["nodes/athens.yaml"] += b"state: revoked\n"
    _, _, told = deployed(files, Record())
    assert "athens" not in told["delphi"]["answers_from"]
    assert approved["delphi"]["answers_from"].keys() - told["delphi"]["answers_from"].keys() == {"athens"}


@pytest.mark.rule("G7", "B22")
def test_a_paused_node_changes_its_slice_alone(example_mesh: Path) -> None:
    files = files_of(example_mesh)
    record, declared, approved = deployed(files, Record())
    files["nodes/athens.yaml"] += b"state: {paused: {reason: a new disk, until: '2027-01-31'}}\n"
    again, after, told = deployed(files, record)
    assert (again, after) == (record, declared)
    assert [each for each in told if told[each] != approved[each]] == ["athens"]
