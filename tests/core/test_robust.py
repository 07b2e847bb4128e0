"""Whatever a commit says, load and resolve end with refusals or a resolution, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.compose import compose
from gitmesh.core.record import Record
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from gitmesh.report.terminal import render
from tests.cases.test_cases import HERE, mesh_files

BASE = mesh_files(HERE / "resolved" / "the-base")
LINES = [(path, number) for path, blob in sorted(BASE.items()) for number in range(blob.count(b"\n"))]


def changed(edits: list[tuple[tuple[str, int], str]]) -> dict[str, bytes]:
    """The base with lines dropped, repeated, cut short or exchanged for another file's."""
    lines = {path: blob.decode().split("\n") for path, blob in BASE.items()}
    for (path, number), how in edits:
        of_file = lines[path]
        number %= max(len(of_file), 1)
        line = of_file[number] if of_file else ""
        replacements = {
            "drop": [],
            "repeat": [line, line],
            "cut": [line[: len(line) // 2]],
            "upper": [line.upper()],
            "blank": [""],
            "at": [line.replace("@", ":")],
            "brace": [line.replace("{", "[").replace("}", "]")],
            "rename": [line.replace("a", "b")],
        }
        of_file[number : number + 1] = replacements[how]
    return {path: "\n".join(of_file).encode() for path, of_file in lines.items()}


HOWS = st.sampled_from(["drop", "repeat", "cut", "upper", "blank", "at", "brace", "rename"])


@given(
    st.lists(st.tuples(st.sampled_from(LINES), HOWS), min_size=1, max_size=3),
    st.sets(st.sampled_from(sorted(BASE)), max_size=2),
)
@pytest.mark.rule("F6")
def test_no_mistake_is_a_crash(edits: list[tuple[tuple[str, int], str]], gone: set[str]) -> None:
    files = {path: blob for path, blob in changed(edits).items() if path not in gone}
    mesh, refusals = load(files)
    resolution = resolve(mesh, Record())
    found = (*refusals, *resolution.refusals)
    if found:
        assert "refused[" in render(found, files, colour=False)
    else:
        assert compose(resolution).keys() == mesh.nodes.keys()
