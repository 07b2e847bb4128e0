"""One mistake gives one refusal: what depends on something refused is silent."""

from __future__ import annotations

import pytest

from gitmesh.core.record import Record
from gitmesh.core.refusal import Code, Refusal, ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from gitmesh.repo.tree import open_tree
from tests.cases.mutations import mistakes
from tests.cases.test_cases import HERE, mesh_files
from tests.real import PROJECT

BASE = mesh_files(HERE / "resolved" / "the-base")
TEMPLATE = dict(open_tree(PROJECT / "mesh-repo-template").files)
EVERY = 30
"""Of the template's mistakes, one in so many; each resolves nine modules on three nodes."""


def refused(files: dict[str, bytes]) -> tuple[Refusal, ...]:
    mesh, refusals = load(files)
    return ordered([*refusals, *resolve(mesh, Record()).refusals])


def several(files: dict[str, bytes], file: str, every: int = 1) -> dict[str, list[str]]:
    """The mistakes in `file` that are refused more than once."""
    found = {}
    for said, text in list(mistakes(files[file].decode()))[::every]:
        refusals = refused({**files, file: text.encode()})
        if len(refusals) > 1:
            found[said] = [f"{each.code}: {each.message}" for each in refusals]
    return found


@pytest.mark.parametrize("files", [BASE, TEMPLATE], ids=["base", "template"])
def test_neither_has_a_mistake(files: dict[str, bytes]) -> None:
    assert refused(files) == ()


@pytest.mark.rule("B10")
@pytest.mark.parametrize("file", BASE)
def test_a_file_that_is_gone(file: str) -> None:
    assert len(refused({name: blob for name, blob in BASE.items() if name != file})) <= 1


@pytest.mark.rule("B10")
@pytest.mark.parametrize("file", BASE)
def test_every_mistake_in_the_base(file: str) -> None:
    assert several(BASE, file) == {}


@pytest.mark.rule("B10")
@pytest.mark.parametrize("file", [each for each in TEMPLATE if each.endswith(".yaml")])
def test_some_mistakes_in_the_template(file: str) -> None:
    assert several(TEMPLATE, file, EVERY) == {}


@pytest.mark.rule("B10")
def test_a_requirement_that_is_gone_is_one_refusal_with_every_place() -> None:
    module = BASE["modules/postgres/module.yaml"].decode()
    gone = "".join(line for line in module.splitlines(keepends=True) if not line.startswith("  sql:"))
    (refusal,) = refused({**BASE, "modules/postgres/module.yaml": gone.encode()})
    assert refusal.code is Code.REFERENCE_UNKNOWN
    places = {str(each.at.keys[-1]) for each in refusal.related} | {str(refusal.at.keys[-1])}
    assert places == {"0", "at", "host", "port"}, "publish, the provisioner, and two served fields"


@pytest.mark.rule("B10")
def test_two_mistakes_are_two_refusals() -> None:
    module = BASE["modules/app/module.yaml"].decode()
    twice = module.replace("${key:value}", "${kex:value}").replace("${web:url}", "${web:urx}")
    refusals = refused({**BASE, "modules/app/module.yaml": twice.encode()})
    assert [each.code for each in refusals] == [Code.REFERENCE_UNKNOWN] * 2


@pytest.mark.rule("B22")
def test_the_order_of_the_files_changes_nothing() -> None:
    broken = {**BASE, "modules/app/module.yaml": b"module: [\n", "nodes/delphi.yaml": b"adress: 10.7.0.13\n"}
    found = [load(files)[1] for files in (broken, dict(reversed(broken.items())))]
    assert len(found[0]) >= 2
    assert ordered(found[0]) == ordered(found[1])
