"""Each page's mesh shows what the page is about: laid over `pages`, it is refused with that code alone.

A page writes a file as a fenced block whose first line, a comment, is the file's path; what the commit was
resolved with before is a block `# record.json`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gitmesh import explain
from gitmesh.core.record import Record, from_json
from gitmesh.core.refusal import Code, Refusal, ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from gitmesh.repo.tree import open_tree
from tests.cases.test_cases import HERE

_LINTED = "a check takes it; tests/catalogue/test_lint.py lints the page's mesh"
NOT_RUN = {
    Code.FILE_TOO_LARGE: "a page of more than 256 KiB is none; tests/repo/test_tree.py has the file",
    Code.NAME_WRITTEN_OUT: _LINTED,
    Code.PATH_WRITTEN_OUT: _LINTED,
    Code.RATCHET_GROWN: _LINTED,
}

BLOCK = re.compile(r"^```(yaml|json)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> dict[str, str]:
    """The page's files by path."""
    return {path: text for _, path, text in BLOCK.findall(page)}


def refused(folder: Path, record: Record) -> tuple[Refusal, ...]:
    tree = open_tree(folder)
    mesh, refusals = load(tree.files)
    return ordered([*tree.refusals, *refusals, *resolve(mesh, record).refusals])


def lay(folder: Path, files: dict[str, str]) -> None:
    base = {
        str(each.relative_to(HERE / "pages")): each.read_text()
        for each in sorted((HERE / "pages").rglob("*"))
        if each.is_file()
    }
    for path, text in {**base, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def test_the_mesh_below_the_pages_resolves(tmp_path: Path) -> None:
    lay(tmp_path, {})
    assert refused(tmp_path, Record()) == ()


@pytest.mark.rule("B10")
@pytest.mark.parametrize("code", [each for each in Code if each not in NOT_RUN])
def test_a_pages_mesh_is_refused_with_its_code_alone(code: Code, tmp_path: Path) -> None:
    files = blocks(explain.page(code.value))
    assert len(files) == len(re.findall(r"^```\w", explain.page(code.value), re.MULTILINE))
    kept = files.pop("record.json", None)
    lay(tmp_path, files)
    refusals = refused(tmp_path, Record() if kept is None else from_json(json.loads(kept)))
    assert [each.code for each in refusals] == [code], [each.message for each in refusals]
