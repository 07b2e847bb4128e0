"""Signed envelopes: who signed, what kind, and any bit flipped."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import nacl.exceptions
import nacl.signing
import pytest

from gitmesh.trust import canonical, envelope
from gitmesh.trust.documents import read_shard, read_slice
from gitmesh.trust.envelope import Kind, open_envelope, pae, sign
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import next_root, open_root, sign_root
from gitmesh.trust.seal import open_confirms, open_sealed
from gitmesh.trust.verify import Bundle, verify_answers, verify_index, verify_report
from tests.real import shared
from tests.trust import world
from tests.trust.world import CONTROLLER, FRESH, STRANGER, World, pull, signing

PAYLOAD = {"v": 1, "text": "hello"}


def test_what_is_signed_is_what_dsse_says() -> None:
    # The example of DSSE's protocol.md.
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_an_envelope_opens_with_its_key_and_is_the_same_each_time() -> None:
    blob = sign(Kind.DEPLOY, PAYLOAD, [CONTROLLER, STRANGER])
    assert blob == sign(Kind.DEPLOY, PAYLOAD, [STRANGER, CONTROLLER])
    found = open_envelope(blob, Kind.DEPLOY, [CONTROLLER.public])
    assert found.payload == PAYLOAD
    assert found.digest == canonical.digest(canonical.encode(PAYLOAD))
    assert open_envelope(blob, Kind.DEPLOY, [CONTROLLER.public, STRANGER.public], 2) == found


@pytest.mark.rule("S13")
def test_a_key_named_twice_counts_once() -> None:
    blob = sign(Kind.APPROVAL, PAYLOAD, [CONTROLLER])
    with pytest.raises(Refused) as caught:
        open_envelope(blob, Kind.APPROVAL, [CONTROLLER.public, CONTROLLER.public], 2)
    assert caught.value.why is Why.THRESHOLD


def test_a_threshold_below_one_is_never_met() -> None:
    blob = sign(Kind.APPROVAL, PAYLOAD, [CONTROLLER])
    with pytest.raises(Refused) as caught:
        open_envelope(blob, Kind.APPROVAL, [CONTROLLER.public], 0)
    assert caught.value.why is Why.THRESHOLD


def test_a_keyid_is_a_hint_and_nothing_more() -> None:
    value = canonical.decode(sign(Kind.DEPLOY, PAYLOAD, [CONTROLLER]))
    value["signatures"][0]["keyid"] = "another"
    assert open_envelope(canonical.encode(value), Kind.DEPLOY, [CONTROLLER.public]).payload == PAYLOAD


def _spoilt() -> dict[str, bytes]:
    value = canonical.decode(sign(Kind.DEPLOY, PAYLOAD, [CONTROLLER]))
    (entry,) = value["signatures"]
    listed = sign(Kind.DEPLOY, PAYLOAD, [CONTROLLER])
    return {
        "empty": b"",
        "no object": b"[]",
        "an unknown key": canonical.encode({**value, "x": 1}),
        "no payload": canonical.encode({key: each for key, each in value.items() if key != "payload"}),
        "payload not base64": canonical.encode({**value, "payload": "!"}),
        "too many signatures": canonical.encode({**value, "signatures": [entry] * 33}),
        "a signature that is text": canonical.encode({**value, "signatures": ["x"]}),
        "a signature with another key": canonical.encode({**value, "signatures": [{**entry, "x": "y"}]}),
        "not canonical": json.dumps(value).encode(),
        "a byte more": listed + b"\n",
    }


@pytest.mark.parametrize("name", _spoilt())
def test_what_is_no_envelope(name: str) -> None:
    with pytest.raises(Refused) as caught:
        open_envelope(_spoilt()[name], Kind.DEPLOY, [CONTROLLER.public])
    assert caught.value.why is Why.MALFORMED


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"a": 1}', b'{"a":1.5}'])
def test_a_signed_payload_that_is_no_canonical_object(body: bytes) -> None:
    signature = canonical.to_base64(CONTROLLER.sign(pae(Kind.DEPLOY.type, body)))
    value = {
        "payload": canonical.to_base64(body),
        "payloadType": Kind.DEPLOY.type,
        "signatures": [{"keyid": "", "sig": signature}],
    }
    with pytest.raises(Refused) as caught:
        open_envelope(canonical.encode(value), Kind.DEPLOY, [CONTROLLER.public])
    assert caught.value.why is Why.MALFORMED


@pytest.mark.parametrize("signature", [b"", b"x", bytes(64), bytes(65)])
def test_signatures_of_any_length_count_for_nothing(signature: bytes) -> None:
    value = canonical.decode(sign(Kind.DEPLOY, PAYLOAD, [CONTROLLER]))
    value["signatures"] = [{"keyid": "", "sig": canonical.to_base64(signature)}]
    with pytest.raises(Refused) as caught:
        open_envelope(canonical.encode(value), Kind.DEPLOY, [CONTROLLER.public])
    assert caught.value.why is Why.SIGNATURE


@pytest.mark.rule("S67")
def test_edge_signatures_of_cctv() -> None:
    """43 of the 914 verify, none with a low-order or non-canonical point (SECURITY §2)."""
    vectors = json.loads((shared("vectors/ed25519") / "ed25519vectors.json").read_text())
    accepted = []
    for each in vectors:
        key, signature = bytes.fromhex(each["key"]), bytes.fromhex(each["sig"])
        if envelope._verifies(key, each["msg"].encode(), signature):
            accepted.append(set(each["flags"] or ()))
    assert (len(vectors), len(accepted)) == (914, 43)
    strict = {"low_order_R", "low_order_A", "non_canonical_R", "non_canonical_A"}
    assert not any(flags & strict for flags in accepted)


# --- any bit flipped -----------------------------------------------------------------------------------

_VERIFIED = pull(World().bundle())
_SECOND = sign_root(world.root(version=2), [CONTROLLER])
_OPENERS: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "root": (_SECOND, lambda blob: next_root(world.trusted(), blob)),
    "first root": (world.trusted().blob, open_root),
    "index": (world.index(), lambda blob: verify_index(blob, _VERIFIED, FRESH)),
    "answers": (world.answers(), lambda blob: verify_answers(blob, _VERIFIED, "sparta", FRESH)),
    "report": (world.report(), lambda blob: verify_report(blob, world.slice_of("athens"), world.MESH)),
    "confirms": (
        world.confirms(),
        lambda blob: open_confirms(blob, world.slice_of("athens"), world.MESH, world.VAULT_SEAL),
    ),
    "sealed": (
        world.sealed(world.header()),
        lambda blob: open_sealed(blob, world.header(), world.SEAL["athens"], world.VAULT.public),
    ),
}


def _pull_with(name: str) -> tuple[bytes, Callable[[bytes], object]]:
    files = World().bundle().files()
    return files[name], lambda blob: pull(Bundle.from_files({**files, name: blob}))


for _name in World().bundle().files():
    _OPENERS[_name] = _pull_with(_name)


def _without_keyids(blob: bytes) -> object:
    value = json.loads(blob)
    for each in value["signatures"]:
        each["keyid"] = ""
    return value


@pytest.mark.rule("S28")
@pytest.mark.parametrize("name", _OPENERS)
def test_a_flipped_bit_is_refused_or_in_the_keyid_hint(name: str) -> None:
    blob, opens = _OPENERS[name]
    assert opens(blob)
    chance = random.Random(28)
    for _ in range(150):
        bit = chance.randrange(8 * len(blob))
        flipped = bytearray(blob)
        flipped[bit // 8] ^= 1 << (bit % 8)
        try:
            opens(bytes(flipped))
        except Refused:
            continue
        assert _without_keyids(bytes(flipped)) == _without_keyids(blob)


@pytest.mark.rule("S28")
@pytest.mark.parametrize("name", ["deploy.json", "root"])
def test_every_bit_of_a_signature_counts(name: str) -> None:
    """The last character of its base64 has four bits that mean nothing; they may not be set either."""
    blob, opens = _OPENERS[name]
    value = json.loads(blob)
    at = blob.index(value["signatures"][0]["sig"].encode())
    for offset in range(at, at + len(value["signatures"][0]["sig"])):
        flipped = bytearray(blob)
        flipped[offset] ^= 1
        with pytest.raises(Refused):
            opens(bytes(flipped))


@pytest.mark.parametrize("cut", range(0, 700, 53))
def test_a_truncated_document(cut: int) -> None:
    files = World().bundle().files()
    for name in files:
        with pytest.raises(Refused):
            pull(Bundle.from_files({**files, name: files[name][:cut][:-1]}))


def test_plain_documents_are_held_against_their_shape() -> None:
    with pytest.raises(Refused):
        read_shard(b'{"athens":"x"}')
    with pytest.raises(Refused):
        read_shard(b"[]")
    with pytest.raises(Refused):
        read_slice(b"{}")


def test_a_verifier_of_our_own_agrees_with_nacl() -> None:
    key = signing("any")
    message, signature = b"message", key.sign(b"message")
    assert envelope._verifies(key.public, message, signature)
    assert not envelope._verifies(key.public, b"another", signature)
    with pytest.raises(nacl.exceptions.BadSignatureError):
        nacl.signing.VerifyKey(key.public).verify(b"another", signature)
