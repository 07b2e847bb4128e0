"""Reading what can't differ only once refuses what reading everything would."""

from __future__ import annotations

import pytest

from gitmesh.core.model import Kind
from gitmesh.core.read import Unread
from gitmesh.core.readable import check_readable
from gitmesh.core.refusal import Refusal
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, REFUSED, RESOLVED, mesh_files, record_of

CASES = [*(f"refused/{name}" for name in REFUSED), *(f"resolved/{name}" for name in RESOLVED)]
SERVED = """\
module: far
provides:
  store: {serves: {place: '${here:address}', who: '${consumer:as}'}}
requires:
  here: {host: port, reach: local}
containers:
  far: {image: 'docker.io/library/far:1@sha256:…', publish: [here]}
"""
USES = """\
module: near
requires:
  store: {module: store}
containers:
  near:
    image: docker.io/library/near:1@sha256:…
    env: {PLACE: '${store:place}', WHO: '${store:who}'}
"""


def everything(resolution: Resolution) -> list[Refusal]:
    """What each part of each answer is refused for, read one by one."""
    refusals = []
    for (assignment, name), answered in sorted(resolution.answers.items(), key=lambda item: item[0]):
        if answered.requirement.kind is not Kind.MODULE:
            continue
        fields = answered.contract.fields.items()
        parts = [
            *answered.contract.asks,
            *(part for part, declared in fields if declared.derived is None),
        ]
        for part in parts:
            try:
                resolution.reader.field(assignment, name, part)
            except Unread as unread:
                refusals += [unread.refusal] if unread.refusal is not None else []
    return refusals


@pytest.mark.parametrize("case", CASES)
@pytest.mark.rule("B10")
def test_as_if_everything_were_read(case: str) -> None:
    mesh, _ = load(mesh_files(HERE / case))
    resolution = resolve(mesh, record_of(HERE / case))
    assert check_readable(resolution.reader, resolution.answers) == everything(resolution)


@pytest.mark.rule("B10")
def test_each_consumer_is_refused_for_where_it_is_and_for_what_was_said_of_it() -> None:
    files = {
        "mesh.yaml": "mesh: hellas\nid: 7f0c2b9e41d84a6fb3a1c05d9e2f6a10\n"
        "origin: ssh://git@git.example.org/hellas.git\nmailbox: ssh://git@git.example.org/mail.git\n",
        "contracts/store.yaml": "contract: store\nabout: A place.\n"
        "asks:\n  name: {type: string, maxLength: 5, from: operator}\nfields:\n"
        "  place: {type: string}\n  who: {type: string}\n",
        "modules/far/module.yaml": SERVED,
        "assignments/athens/far.yaml": "",
        "modules/near/module.yaml": USES,
    }
    for number, node in enumerate(("athens", "delphi", "sparta")):
        files[f"nodes/{node}.yaml"] = f"address: 10.7.0.{number + 1}\n"
        name = "far too long" if node == "sparta" else "short"
        files[f"assignments/{node}/near.yaml"] = f"values: {{store.name: {name}}}\n"
    mesh, refusals = load({name: text.encode() for name, text in files.items()})
    assert refusals == []
    resolution = resolve(mesh, record_of(HERE))
    found = check_readable(resolution.reader, resolution.answers)
    assert found == everything(resolution)
    assert [each.subject for each in found] == [
        "near@delphi.store",  # a local port leaves
        "near@sparta.store.name",  # too long, as it is asked
        "near@sparta.store",
    ]
