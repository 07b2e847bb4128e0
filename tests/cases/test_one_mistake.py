"""One mistake gives refusals of one code: what depends on something refused is silent."""

from __future__ import annotations

import pytest

from gitmesh.core.record import Record
from gitmesh.core.refusal import ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, mesh_files

BASE = mesh_files(HERE / "resolved" / "the-base")
LINES = [(file, number) for file, blob in BASE.items() for number in range(blob.count(b"\n"))]


def codes(files: dict[str, bytes]) -> set[str]:
    mesh, refusals = load(files)
    resolution = resolve(mesh, Record())
    return {each.code.value for each in ordered([*refusals, *resolution.refusals])}


def test_the_base_has_no_mistake() -> None:
    assert codes(BASE) == set()


@pytest.mark.rule("B10")
@pytest.mark.parametrize("file", BASE)
def test_a_file_that_is_gone(file: str) -> None:
    assert len(codes({name: blob for name, blob in BASE.items() if name != file})) <= 1


@pytest.mark.rule("B10")
@pytest.mark.parametrize(("file", "number"), LINES)
def test_a_line_that_is_gone(file: str, number: int) -> None:
    lines = BASE[file].splitlines(keepends=True)
    del lines[number]
    assert len(codes({**BASE, file: b"".join(lines)})) <= 1


@pytest.mark.rule("B22")
def test_the_order_of_the_files_changes_nothing() -> None:
    broken = {**BASE, "modules/app/module.yaml": b"module: [\n", "nodes/delphi.yaml": b"adress: 10.7.0.13\n"}
    found = [load(files)[1] for files in (broken, dict(reversed(broken.items())))]
    assert len(found[0]) >= 2
    assert ordered(found[0]) == ordered(found[1])
