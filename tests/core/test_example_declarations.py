"""Every module of the example mesh composes to what its declarations by hand show; each difference is named.

Those were written before the formats were: a login was a part of a secret there, and an answer named its
consumer otherwise. So both sides are read as text, in which a hole is its kind and whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmesh.core.codec import encode
from gitmesh.core.compose import compose
from gitmesh.core.model import Json
from gitmesh.core.record import Record
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load

NODES = ("athens", "sparta", "delphi")


@pytest.fixture(scope="module")
def composed(example_mesh: Path) -> dict[str, Json]:
    files = {
        str(each.relative_to(example_mesh)): each.read_bytes()
        for each in sorted(example_mesh.rglob("*"))
        if each.is_file() and each.suffix != ".md" and "declarations" not in each.parts
    }
    mesh, refusals = load(files)
    assert refusals == []
    return {node: encode(each) for node, each in compose(resolve(mesh, Record())).items()}


def text_of(value: Json) -> str:
    """Text with holes, of either side."""
    match value:
        case list():
            return "".join(map(text_of, value))
        case {"text": text}:
            return text_of(text)
        case {"secret": str(id_), "part": "login"} | {"login": str(id_)}:
            return f"<login {id_}>"
        case {"secret": str(id_)}:
            return f"<{id_}>"
        case {"answer": {"by": by, "field": field}}:
            return f"<{by} {field}>"
        case str():
            return value
    return json.dumps(value)


def tree_of(value: Json, holes: Json = None, at: str = "") -> Json:
    """A structured file's content, its texts as `text_of` has them."""
    if at in (holes or {}):
        return text_of(holes[at])
    match value:
        case dict() if not value.keys() & {"secret", "login", "answer", "text"}:
            keys = {key: key.replace("~", "~0").replace("/", "~1") for key in value}
            return {key: tree_of(each, holes, f"{at}/{keys[key]}") for key, each in value.items()}
        case list() if not any(
            isinstance(each, dict) and each.keys() & {"secret", "login", "answer"} for each in value
        ):
            return [tree_of(each, holes, f"{at}/{number}") for number, each in enumerate(value)]
    return text_of(value)


def file_of(spec: Json) -> Json:
    """What is in a file: its text or its tree; of one that is copied, that it is."""
    if "from" in spec or "content" in spec:
        return "copied"
    if "format" in spec and spec["format"] != "text":
        return tree_of(spec["tree"], spec.get("holes"))
    structured = [spec[each] for each in ("yaml", "json", "properties", "ini", "env", "toml") if each in spec]
    return tree_of(structured[0]) if structured else text_of(spec["text"])


def container_of(spec: Json) -> dict[str, Json]:
    """What both sides say of a container, in one spelling."""
    return {
        "image": spec["image"],
        "user": spec.get("user"),
        "reads-as": spec.get("reads-as", spec.get("user", "0:0")),
        "command": [text_of(each) for each in spec.get("command", ())],
        "env": {key: text_of(each) for key, each in spec.get("env", {}).items()},
        "env-file": {key: text_of(each) for key, each in _env_file(spec).items()},
        "files": {path: file_of(each) for path, each in spec.get("files", {}).items()},
        "mounts": dict(_mounts(spec)),
        "publish": sorted(
            [
                each.get("node", each.get("port")),
                each.get("container", each.get("listens")),
                each["protocol"],
                each["reach"],
            ]
            for each in spec.get("publish", ())
        ),
    }


def _env_file(spec: Json) -> dict[str, Json]:
    said: dict[str, Json] = spec.get("env-file", {})
    return said["env"] if "reason" in said else said


def consumers_of(spec: Json) -> dict[str, Json]:
    """By provision and consumer, what an assignment serves there."""
    return {
        f"{contract} for {each.get('for', each.get('to'))}": {
            "as": each["as"],
            "serves": {key: text_of(value) for key, value in each.get("serves", {}).items()},
        }
        for contract, provision in spec.get("provides", {}).items()
        for each in provision.get("consumers", ())
    }


def _mounts(spec: Json) -> Iterator[tuple[str, str]]:
    for path, each in spec.get("mounts", {}).items():
        location = each if isinstance(each, str) else each.get("location", each.get("from"))
        # By hand a volume is named for its module alone, so that two of one machine would share it.
        yield path, location.replace("volume:immich_athens-", "volume:immich-")


@pytest.mark.parametrize("node", NODES)
@pytest.mark.rule("B15", "B17", "B20", "A5", "A13")
def test_each_assignment_is_composed_as_by_hand(
    composed: dict[str, Json], example_mesh: Path, node: str
) -> None:
    by_hand = json.loads((example_mesh / f"declarations/decl-{node}.json").read_text())
    found = composed[node]
    assert found["hosts"] == by_hand["hosts"]
    assert found["assignments"].keys() == by_hand["assignments"].keys()
    for id_, expected in by_hand["assignments"].items():
        spec = found["assignments"][id_]
        assert spec["as"] == expected["as"]
        directories = {
            each["location"]: {"owner": each["owner"], "mode": each["mode"]}
            for each in spec.get("directories", {}).values()
        }
        assert directories == expected.get("directories", {}), id_
        containers = {name: container_of(each) for name, each in spec.get("containers", {}).items()}
        assert containers == {
            name: container_of(each) for name, each in expected.get("containers", {}).items()
        }, id_
        served = consumers_of(spec)
        for to, consumer in consumers_of(expected).items():
            assert served[to] == consumer, to


def test_every_module_of_the_example_is_in_it(composed: dict[str, Json], example_mesh: Path) -> None:
    modules = {each.name for each in (example_mesh / "modules").iterdir()}
    assigned = {id_.partition("@")[0] for each in composed.values() for id_ in each["assignments"]}
    assert len(modules) == 21
    assert assigned == modules
