"""The documents against their shape, and against `schemas/published`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest

from gitmesh.assets import asset
from gitmesh.core.model import Json
from gitmesh.trust import canonical, shape
from gitmesh.trust.documents import (
    Answers,
    Applied,
    Approval,
    Confirms,
    Deploy,
    Enrol,
    Failed,
    Report,
    ReportedWait,
    Root,
    VaultIndex,
    from_payload,
    payload_of,
    plain,
    read_shard,
    read_slice,
    shard_of,
)
from gitmesh.trust.envelope import Kind
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.seal import open_sealed
from tests.trust import world
from tests.trust.world import MESH, NOW, World


def _payload(blob: bytes) -> dict[str, Json]:
    found: dict[str, Json] = canonical.decode(canonical.from_base64(canonical.decode(blob)["payload"]))
    return found


_BUNDLE = World().bundle()
_ENROL = Enrol(MESH, NOW, "athens", 1, world.SIGN["athens"].public_text, world.SEAL["athens"].public_text)
_REPORT = world.report(
    applied=Applied("a" * 64, "healthy"),
    waiting=(ReportedWait("app@athens", "mesh-vault", "app@athens.cookie"),),
    failed=(Failed("app@athens/app", "its image could not be pulled"),),
    drift=("app@athens/app",),
    orphans=("old_athens",),
)
_SIGNED: dict[str, tuple[type[Any], dict[str, Json]]] = {
    "root": (Root, payload_of(world.root())),
    "approval": (Approval, _payload(_BUNDLE.approval or b"")),
    "deploy": (Deploy, _payload(_BUNDLE.deploy or b"")),
    "vault-index": (VaultIndex, _payload(world.index())),
    "answers": (Answers, _payload(world.answers())),
    "confirms": (Confirms, _payload(world.confirms())),
    "report": (Report, _payload(_REPORT)),
    "enrol": (Enrol, payload_of(_ENROL)),
}


def _reads_plain(read: Callable[[bytes], object]) -> Callable[[Json], object]:
    return lambda value: read(canonical.encode(value))


def _reads_signed(kind: type[Any]) -> Callable[[Json], object]:
    return lambda value: from_payload(kind, value)


SAMPLES: dict[str, tuple[Json, Callable[[Json], object]]] = {
    name: (payload, _reads_signed(kind)) for name, (kind, payload) in _SIGNED.items()
}
SAMPLES["slice"] = (canonical.decode(plain(world.slice_of("sparta"))), _reads_plain(read_slice))
SAMPLES["shard"] = (canonical.decode(World().shards()["0"]), _reads_plain(read_shard))


def _schema(name: str) -> jsonschema_rs.Draft202012Validator:
    text = (asset("schemas") / "published" / f"{name}.json").read_text()
    return jsonschema_rs.Draft202012Validator(json.loads(text))


def _accepts(read: Callable[[Json], object], value: Json) -> bool:
    try:
        read(value)
    except Refused as refusal:
        assert refusal.why in (Why.MALFORMED, Why.VERSION)
        return False
    return True


def test_there_is_a_schema_for_each_kind() -> None:
    there = {path.stem for path in (asset("schemas") / "published").glob("*.json")}
    assert there == {*SAMPLES, "sealed"}
    assert {*map(str, Kind)} == there - {"slice", "shard"}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read_and_written_the_same(name: str) -> None:
    value, read = SAMPLES[name]
    _schema(name).validate(value)
    found = read(value)
    again = payload_of(found) if name in _SIGNED else shape.to_json(found)  # type: ignore[arg-type]  # a document
    assert again == value


def _places(value: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield at
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, each in entries:
        if key != "schema":  # any JSON may stand there
            yield from _places(each, (*at, key))


def _changed(value: Json, at: tuple[str | int, ...], change: Callable[[Any, Any], None]) -> Json:
    whole = copy.deepcopy(value)
    parent = whole
    for key in at[:-1]:
        parent = parent[key]
    change(parent, at[-1])
    return whole


_SPOILS: dict[str, Callable[[Any, Any], None]] = {
    "null": lambda parent, key: parent.__setitem__(key, None),
    "a negative number": lambda parent, key: parent.__setitem__(key, -1),
    "text": lambda parent, key: parent.__setitem__(key, "é\n"),
    "an object": lambda parent, key: parent.__setitem__(key, {"x-é": 1}),
    "a list": lambda parent, key: parent.__setitem__(key, [[]]),
    "true": lambda parent, key: parent.__setitem__(key, True),
    "gone": lambda parent, key: parent.__delitem__(key),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("spoil", _SPOILS)
def test_reader_and_schema_agree_on_what_is_spoilt(name: str, spoil: str) -> None:
    value, read = SAMPLES[name]
    schema = _schema(name)
    refused = 0
    for at in _places(value):
        if at:
            spoilt = _changed(value, at, _SPOILS[spoil])
            read_accepts = _accepts(read, spoilt)
            assert read_accepts == schema.is_valid(spoilt), (at, spoil)
            refused += not read_accepts
    assert refused > 0 or (name, spoil) in {("shard", "gone")}


@pytest.mark.parametrize("name", SAMPLES)
def test_an_unknown_key_is_refused_by_both(name: str) -> None:
    value, read = SAMPLES[name]
    more = {**value, "Unknown key": 1}
    assert not _accepts(read, more)
    assert not _schema(name).is_valid(more)


def test_the_schema_of_a_sealed_value() -> None:
    payload = _payload(world.sealed(world.header()))
    schema = _schema("sealed")
    schema.validate(payload)
    assert open_sealed(world.sealed(world.header()), world.header(), world.SEAL["athens"], world.VAULT.public)
    for key in payload:
        assert not schema.is_valid({name: each for name, each in payload.items() if name != key})
        assert not schema.is_valid({**payload, key: None})


def test_what_is_absent_is_not_written() -> None:
    assert "applied" not in _payload(world.report())
    assert "for" in _SIGNED["answers"][1]


def test_a_refusal_names_the_place_and_quotes_nothing() -> None:
    value = {**_SIGNED["deploy"][1], "approval_sha256": "GMCANARY"}
    with pytest.raises(Refused) as caught:
        from_payload(Deploy, value)
    assert caught.value.message == "deploy.approval_sha256: expected a sha256 in lower-case hex"


def test_a_shard_is_found_by_the_nodes_name() -> None:
    # sha256("athens") mod 8, by hand: the last three bits of its last hex digit.
    assert shard_of("athens", 1) == "0"
    assert shard_of("athens", 8) == str(int(canonical.digest(b"athens")[-1], 16) % 8)
