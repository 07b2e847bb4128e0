"""docs/authoring.md, and five modules that were written with nothing else: each is a mesh that resolves, or
is refused in the words that the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from gitmesh.catalogue.lint import lint
from gitmesh.catalogue.ratchet import counts_of
from gitmesh.core.codec import encode
from gitmesh.core.compose import compose
from gitmesh.core.record import Record
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from gitmesh.report.terminal import render
from tests.real import PROJECT
from tests.test_template import refusals_of, template

PAGE = (PROJECT / "docs/authoring.md").read_text()
HERE = Path(__file__).parent
APPLICATIONS = sorted(each.name for each in HERE.iterdir() if (each / "modules").is_dir())
_BLOCK = re.compile(r"^```(yaml|text)\n(?:# (\S+)\n)?(.*?)^```\n", re.MULTILINE | re.DOTALL)


def meshes(page: str) -> Iterator[tuple[dict[str, bytes], str]]:
    """Each mesh of the page, and the refusal that it shows for it (empty: it resolves).

    A section's files lie over the template and over each other. Those with no words between them are
    written together; a refusal is of the mesh before it.
    """
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        files = template()
        found = list(_BLOCK.finditer(section))
        for block, following in zip_longest(found, found[1:]):
            if block[1] == "text":
                yield dict(files), block[3]
                continue
            files[block[2]] = block[3].encode()
            between = "" if following is None else section[block.end() : following.start()]
            shows = following is not None and following[1] == "text"
            if not shows and (following is None or between.strip()):
                yield dict(files), ""


MESHES = list(meshes(PAGE))


def test_the_page_has_meshes_and_refusals() -> None:
    assert len([said for _, said in MESHES if not said]) >= 7
    assert len([said for _, said in MESHES if said]) >= 5
    assert len(re.findall(r"^```yaml", PAGE, re.MULTILINE)) == len(
        re.findall(r"^```yaml\n# \S+\n", PAGE, re.MULTILINE)
    )


@pytest.mark.rule("B10")
@pytest.mark.parametrize(("files", "said"), MESHES, ids=[str(number) for number in range(len(MESHES))])
def test_each_mesh_of_the_page_is_what_it_says(files: dict[str, bytes], said: str) -> None:
    shown = render(refusals_of(files), files, colour=False).rpartition("\n\n")[0]
    assert shown == said.rstrip("\n")


def mesh_of(application: str) -> dict[str, bytes]:
    """The template with an application's module, and an assignment of it."""
    folder = HERE / application
    own = {
        each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()
    }
    return template() | own


def test_there_are_five() -> None:
    assert APPLICATIONS == ["grafana", "hedgedoc", "outline", "rabbitmq", "zammad"]


@pytest.mark.parametrize("application", APPLICATIONS)
def test_it_resolves_and_composes(application: str) -> None:
    mesh, refusals = load(mesh_of(application))
    resolution = resolve(mesh, Record())
    assert [*refusals, *resolution.refusals] == []
    declared = {node: encode(each) for node, each in compose(resolution).items()}
    (node,) = [each.node for each in mesh.assignments.values() if each.module == application]
    assert f"{application}@{node}" in str(declared[node])


@pytest.mark.rule("A2", "A5")
@pytest.mark.parametrize("application", APPLICATIONS)
def test_it_is_linted(application: str) -> None:
    """Nothing is refused; one env-file more than the template's is counted where there is no other way."""
    found = lint(mesh_of(application))
    assert found.refusals == ()
    no_files = application in ("hedgedoc", "zammad")
    assert counts_of(found.counted, ("exceptions", "env-files")) == {
        "exceptions": 0,
        "env-files": 2 if no_files else 1,
    }
