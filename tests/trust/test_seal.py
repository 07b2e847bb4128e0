"""Sealed values and confirms: bound to their place, signed by their sender."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import sodium_pad
from nacl.public import PublicKey, SealedBox

from gitmesh.trust import canonical, seal
from gitmesh.trust.documents import IndexSecret, NextValue, SealedHeader, State, sealed_name
from gitmesh.trust.envelope import Kind, sign
from gitmesh.trust.keys import KeyRefused, SealingKey
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.seal import open_confirms, open_sealed
from gitmesh.trust.secret import Secret
from gitmesh.trust.verify import expected_header, verify_index
from tests.real import shared
from tests.trust import world
from tests.trust.world import CONTROLLER, COOKIE, FRESH, MESH, PASSWORD, STRANGER, VAULT, World, header, pull

ATHENS = world.SEAL["athens"]


def refused(why: Why, attempt: Callable[[], object]) -> Refused:
    """The refusal of `attempt`, which must be for `why` and show no secret."""
    with pytest.raises(Refused) as caught:
        attempt()
    assert caught.value.why is why
    assert "GMCANARY" not in str(caught.value)
    return caught.value


def opened(blob: bytes, expected: SealedHeader | None = None, key: SealingKey = ATHENS) -> Secret:
    return open_sealed(blob, expected or header(), key, VAULT.public)


@given(st.binary(max_size=600) | st.text(max_size=300))
def test_any_value_comes_back_the_same(value: bytes | str) -> None:
    secret = Secret(value)
    assert opened(seal.seal(header(), secret, ATHENS.public, VAULT)) == secret


@pytest.mark.parametrize("value", [b"", b"\0" * 1000, b"\xff" * seal.LARGEST, b"\n" * seal.LARGEST])
def test_the_edges_of_a_value(value: bytes) -> None:
    secret = Secret(value)
    assert opened(seal.seal(header(), secret, ATHENS.public, VAULT)) == secret


def test_a_value_too_long_is_not_sealed() -> None:
    with pytest.raises(ValueError, match="longer"):
        seal.seal(header(), Secret(b"x" * (seal.LARGEST + 1)), ATHENS.public, VAULT)


def test_nothing_is_sealed_to_a_key_of_low_order() -> None:
    with pytest.raises(ValueError, match="nothing can be sealed"):
        seal.seal(header(), Secret("GMCANARY"), bytes(32), VAULT)


def test_lengths_do_not_show() -> None:
    def size(value: str) -> int:
        return len(world.sealed(header(), value))

    assert size("GMCANARY") == size("GMCANARY" * 8)


_PLACES: list[SealedHeader] = [
    header(),
    header(COOKIE),
    header(mesh="0" * 32),
    header(node="sparta"),
    header(node_epoch=2),
    header(vault_epoch=2),
    header(secret="other@athens.database"),
    header(assignment="other@athens"),
    header(field="url"),
    header(slot="b"),
    header(version=2),
]


@pytest.mark.rule("S16")
@pytest.mark.rule("F2")
def test_no_value_opens_in_another_place() -> None:
    blobs = {place: world.sealed(place) for place in _PLACES}
    for sealed_for, wanted in itertools.product(_PLACES, _PLACES):
        if sealed_for == wanted:
            assert opened(blobs[sealed_for], wanted).text() == world.VALUES[PASSWORD]
        else:
            refused(Why.SEALED_HEADER, partial(opened, blobs[sealed_for], wanted))


@pytest.mark.rule("S16")
def test_the_refusal_names_what_differs() -> None:
    told = refused(Why.SEALED_HEADER, lambda: opened(world.sealed(header(slot="b", version=2))))
    assert told.message == f"{PASSWORD} for athens: sealed with another slot, version"


@pytest.mark.rule("S17")
@pytest.mark.rule("F2")
def test_a_ciphertext_under_another_header_of_the_vault() -> None:
    other = canonical.decode(world.sealed(header(COOKIE), world.VALUES[COOKIE]))
    ct = canonical.decode(canonical.from_base64(other["payload"]))["ct"]
    transplanted = sign(Kind.SEALED, {**seal._bound(header()), "ct": ct}, [VAULT])
    refused(Why.BINDING, lambda: opened(transplanted))


@pytest.mark.rule("S18")
def test_anyone_can_seal_and_only_the_vault_signs() -> None:
    for signer in (STRANGER, CONTROLLER, world.SIGN["athens"]):
        blob = world.sealed(header(), "GMCANARYforged", signer=signer)
        refused(Why.SIGNATURE, partial(opened, blob))


def test_a_value_sealed_to_another_key() -> None:
    refused(Why.UNSEAL, lambda: opened(world.sealed(header(), to="sparta")))
    refused(Why.UNSEAL, lambda: opened(world.sealed(header()), key=world.SEAL["sparta"]))


def test_another_algorithm_or_key_in_the_header() -> None:
    bound = {**seal._bound(header()), "ct": "QQ=="}
    refused(Why.SEALED_HEADER, lambda: opened(sign(Kind.SEALED, {**bound, "alg": "rot13"}, [VAULT])))
    told = refused(Why.SEALED_HEADER, lambda: opened(sign(Kind.SEALED, {**bound, "more": 1}, [VAULT])))
    assert "header" in told.message
    refused(Why.VERSION, lambda: opened(sign(Kind.SEALED, {**bound, "v": 2}, [VAULT])))
    refused(Why.UNSEAL, lambda: opened(sign(Kind.SEALED, bound, [VAULT])))
    del bound["ct"]
    refused(Why.UNSEAL, lambda: opened(sign(Kind.SEALED, bound, [VAULT])))


def _with_plaintext(padded: bytes) -> bytes:
    ct = SealedBox(PublicKey(ATHENS.public)).encrypt(padded)
    return sign(Kind.SEALED, {**seal._bound(header()), "ct": canonical.to_base64(ct)}, [VAULT])


def _inner(**changes: object) -> bytes:
    return canonical.encode({"ctx": seal._binding(seal._bound(header())), "value": "x", **changes})


def test_the_plaintext_of_the_cases_below_opens_when_it_is_right() -> None:
    assert opened(_with_plaintext(sodium_pad(_inner(), 256))) == Secret("x")
    assert opened(_with_plaintext(sodium_pad(_inner(value={"b64": "eA=="}), 256))) == Secret("x")


@pytest.mark.rule("S68")
@pytest.mark.parametrize(
    "padded",
    [
        b"",
        b"\0" * 256,
        _inner(),
        sodium_pad(_inner(), 16),
        sodium_pad(_inner(value="x" * 300), 16),
        sodium_pad(_inner(), 256)[:-1],
        sodium_pad(_inner(), 256)[:-1] + b"x",
        sodium_pad(_inner() + b" ", 256),
        sodium_pad(b" " + _inner(), 256),
        sodium_pad(b"[]", 256),
        sodium_pad(_inner(more=1), 256),
        sodium_pad(_inner(value=5), 256),
        sodium_pad(_inner(value={"b64": "!"}), 256),
        sodium_pad(_inner(value={"b64": "eA==", "more": 1}), 256),
        sodium_pad(_inner(value="x" * (seal.LARGEST + 1)), 256),
        sodium_pad(b"[" * 100_000, 256),
    ],
)
def test_a_plaintext_that_is_not_of_the_form(padded: bytes) -> None:
    refused(Why.UNSEAL, lambda: opened(_with_plaintext(padded)))


@pytest.mark.rule("S68")
@given(st.binary(max_size=600))
def test_any_other_plaintext_is_refused(padded: bytes) -> None:
    refused(Why.UNSEAL, lambda: opened(_with_plaintext(padded)))


@pytest.mark.rule("S68")
def test_a_file_too_large_is_refused_unread() -> None:
    refused(Why.MALFORMED, lambda: opened(b"[" * (8 * seal.LARGEST + 1)))


def test_vectors_of_pynacl() -> None:
    lines = (shared("vectors/sealedbox") / "tests/data/sealed_box_ref.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert rows
    for private, public, plain, sealed in (row[:4] for row in rows):
        key = SealingKey(bytes.fromhex(private))
        assert key.public == bytes.fromhex(public)
        ciphertext = bytes.fromhex(sealed.partition(":")[2])
        assert key.open(ciphertext) == bytes.fromhex(plain.partition(":")[2])
        with pytest.raises(KeyRefused):
            key.open(ciphertext[:-1])


# --- the header that a node computes itself ------------------------------------------------------------


@pytest.mark.rule("F2")
def test_a_node_computes_where_its_value_was_sealed_to() -> None:
    verified = pull(World().bundle())
    index, _ = verify_index(world.index(), verified, FRESH)
    assert expected_header(verified, index, PASSWORD) == header()
    assert expected_header(verified, index, COOKIE) == header(COOKIE)
    assert opened(world.sealed(header()), expected_header(verified, index, PASSWORD))
    assert sealed_name(PASSWORD, "a") == "sealed/app@athens.database.a.json"


def test_the_value_that_a_rotation_moves_to() -> None:
    verified = pull(World().bundle())
    moving = {PASSWORD: IndexSecret("a", 1, "move", NextValue("b", 2))}
    index, counters = verify_index(world.index(secrets=moving), verified, FRESH)
    assert expected_header(verified, index, PASSWORD, following=True) == header(slot="b", version=2)
    assert counters.secrets == {PASSWORD: 1}
    refused(Why.MISSING, lambda: expected_header(verified, index, COOKIE))
    idle, _ = verify_index(world.index(), verified, FRESH)
    refused(Why.MISSING, lambda: expected_header(verified, idle, PASSWORD, following=True))


@pytest.mark.rule("S11")
def test_a_secret_that_the_approval_does_not_give_this_node() -> None:
    changed = World()
    changed.slices["athens"] = world.slice_of("athens", secrets={COOKIE: world.slice_secret(COOKIE)})
    verified = pull(changed.bundle())
    index, _ = verify_index(world.index(), verified, FRESH)
    refused(Why.RECIPIENT, lambda: expected_header(verified, index, PASSWORD))
    assert expected_header(verified, index, COOKIE) == header(COOKIE)


def test_the_vaults_node_reads_only_what_it_has_a_role_in() -> None:
    verified = pull(World().bundle("sparta"), node="sparta")
    index, _ = verify_index(world.index(node="sparta"), verified, FRESH)
    assert expected_header(verified, index, PASSWORD).node == "sparta"
    refused(Why.RECIPIENT, lambda: expected_header(verified, index, COOKIE))


# --- confirms ------------------------------------------------------------------------------------------


def test_confirms_reach_the_vault() -> None:
    found = open_confirms(world.confirms(), world.slice_of("athens"), MESH, world.VAULT_SEAL)
    assert (found.document.node, found.document.seq) == ("athens", 1)
    assert found.confirms[PASSWORD].authenticated is True
    assert found.confirms[PASSWORD].applied is None
    assert PASSWORD.encode() not in canonical.from_base64(canonical.decode(world.confirms())["payload"])


def test_confirms_of_another_node_key_or_epoch() -> None:
    mine = world.slice_of("athens", state=State.PAUSED)

    def opens(blob: bytes, key: SealingKey = world.VAULT_SEAL, mesh: str = MESH) -> object:
        return open_confirms(blob, mine, mesh, key)

    assert opens(world.confirms())
    refused(Why.SIGNATURE, lambda: opens(world.confirms(STRANGER)))
    refused(Why.EPOCH, lambda: opens(world.confirms(world.SIGN["athens"], node="sparta")))
    refused(Why.EPOCH, lambda: opens(world.confirms(epoch=2)))
    refused(Why.UNSEAL, lambda: opens(world.confirms(), key=ATHENS))
    refused(Why.MESH, lambda: opens(world.confirms(), mesh="0" * 32))


@pytest.mark.rule("S17")
def test_confirms_under_another_number() -> None:
    value = canonical.decode(canonical.from_base64(canonical.decode(world.confirms())["payload"]))
    moved = sign(Kind.CONFIRMS, {**value, "seq": 2}, [world.SIGN["athens"]])
    refused(Why.BINDING, lambda: open_confirms(moved, world.slice_of("athens"), MESH, world.VAULT_SEAL))


@pytest.mark.parametrize(
    "confirms", [5, {"x": {}}, {PASSWORD: {"slot": "a"}}, {PASSWORD: {"slot": "a", "version": 0}}]
)
def test_confirms_that_are_none(confirms: object) -> None:
    key = world.SIGN["athens"]
    value = canonical.decode(canonical.from_base64(canonical.decode(world.confirms())["payload"]))
    del value["ct"]
    inner = {"ctx": seal._binding(value), "confirms": confirms}
    blob = sign(Kind.CONFIRMS, {**value, "ct": seal._encrypt(inner, world.VAULT_SEAL.public)}, [key])
    refused(Why.UNSEAL, lambda: open_confirms(blob, world.slice_of("athens"), MESH, world.VAULT_SEAL))


def test_a_header_is_a_value() -> None:
    assert replace(header(), slot="b") == header(slot="b") != header()
