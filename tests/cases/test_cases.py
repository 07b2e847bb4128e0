"""Small meshes in, exact refusals or declarations out.

A case folder under `refused` or `resolved` lies over `base`: its files replace or join the base's, and
those named in its `removed` file are gone. What comes out stands in `expected.txt` or `expected.json`;
GITMESH_BLESS=1 writes it anew, to be read in the diff. The rule of a refused case is the one that its
code's page names; what a case proves besides stands in `proves.toml`.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from gitmesh.core.codec import encode
from gitmesh.core.compose import compose
from gitmesh.core.record import Record, from_json
from gitmesh.core.refusal import Code, Refusal, ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from gitmesh.report.terminal import render

HERE = Path(__file__).parent
REFUSED = sorted(each.name for each in (HERE / "refused").iterdir())
RESOLVED = sorted(each.name for each in (HERE / "resolved").iterdir())
NOT_MESH = {"expected.txt", "expected.json", "removed", "record.json"}


def mesh_files(case: Path) -> dict[str, bytes]:
    """The base with the case's files over it."""
    files = _files(HERE / "base") | {
        name: blob for name, blob in _files(case).items() if name not in NOT_MESH
    }
    removed = case / "removed"
    for name in removed.read_text().split() if removed.exists() else []:
        del files[name]
    return files


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def record_of(case: Path) -> Record:
    """The case's record, or an empty one."""
    kept = case / "record.json"
    return from_json(json.loads(kept.read_text())) if kept.exists() else Record()


def refusals_of(case: Path) -> tuple[dict[str, bytes], tuple[Refusal, ...]]:
    """The case's files, and everything it is refused for."""
    files = mesh_files(case)
    mesh, refusals = load(files)
    resolution = resolve(mesh, record_of(case))
    return files, ordered([*refusals, *resolution.refusals])


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.rule("B10")
def test_refused(name: str) -> None:
    case = HERE / "refused" / name
    files, refusals = refusals_of(case)
    assert refusals, "the case is refused"
    code = name.partition("--")[0]
    assert {each.code.value for each in refusals} == {code}, "one mistake, one code"
    _compare(case / "expected.txt", render(refusals, files, colour=False))


@pytest.mark.parametrize("name", RESOLVED)
@pytest.mark.rule("B22")
def test_resolved(name: str) -> None:
    case = HERE / "resolved" / name
    _, refusals = refusals_of(case)
    assert not refusals
    mesh, _ = load(mesh_files(case))
    resolution = resolve(mesh, record_of(case))
    again = resolve(mesh, resolution.record)
    assert again.record == resolution.record, "the record is a fixed point"
    declarations = {node: encode(each) for node, each in compose(resolution).items()}
    _compare(case / "expected.json", json.dumps(declarations, indent=1, sort_keys=True) + "\n")


def test_every_resolved_case_says_what_it_proves() -> None:
    said = tomllib.loads((HERE / "proves.toml").read_text())
    assert sorted(said["resolved"]) == RESOLVED
    assert set(said["refused"]) <= set(REFUSED)


def test_every_code_has_a_case() -> None:
    covered = {name.partition("--")[0] for name in REFUSED}
    elsewhere = {
        # What can't stand in a case folder, since git or the editor would not keep it: proven in tests/repo.
        Code.FILE_KIND.value,
        Code.FILE_NAME.value,
        Code.FILE_TOO_LARGE.value,
        # What a check takes and a lint refuses: proven in tests/catalogue.
        Code.NAME_WRITTEN_OUT.value,
        Code.PATH_WRITTEN_OUT.value,
        Code.RATCHET_GROWN.value,
    }
    assert {code.value for code in Code} - covered - elsewhere == set()
    assert covered <= {code.value for code in Code}


def _compare(expected: Path, found: str) -> None:
    if os.environ.get("GITMESH_BLESS") == "1":
        expected.write_text(found)
    assert expected.exists(), f"no {expected.name}: run with GITMESH_BLESS=1 and read what it writes"
    assert found == expected.read_text()
