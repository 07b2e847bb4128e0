"""Sealed values: encrypt, then sign, with the header inside too (SECURITY §2).

    header = canon({v, mesh, node, node_epoch, vault_epoch, secret, assignment, field, slot, version, alg})
    inner  = canon({ctx: sha256(header), value: "<text>" | {"b64": "..."}})
    ct     = crypto_box_seal(sodium_pad(inner, 256), node.seal)
    file   = DSSE(sealed, header + {ct}, vault.sign)

Anyone can seal to a public key, so the vault signs; and who holds a ciphertext could be given it under
another signed header, so the header stands inside too. Confirms go the other way in the same form.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import nacl.exceptions
import nacl.public
from nacl.bindings import sodium_pad, sodium_unpad

from gitmesh.core.model import Json
from gitmesh.trust import canonical, shape
from gitmesh.trust.canonical import NotCanonical
from gitmesh.trust.documents import (
    VERSION,
    Confirm,
    Confirms,
    SealedHeader,
    SecretId,
    Slice,
    check_version,
    payload_of,
    read_signed,
)
from gitmesh.trust.envelope import Kind, open_envelope, sign
from gitmesh.trust.keys import KeyRefused, SealingKey, SigningKey, raw_sign
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.secret import Secret
from gitmesh.trust.shape import Misshapen

ALGORITHM = "sealedbox-pad256"
BLOCK = 256
"""What is sealed is padded to a multiple of this, in bytes."""
LARGEST = 1 << 20
"""The longest value, in bytes."""
_BySecret = Mapping[SecretId, Confirm]
_INNER = 4 * LARGEST
_FILE = 8 * LARGEST


def seal(header: SealedHeader, value: Secret, recipient: bytes, vault: SigningKey) -> bytes:
    """The file of a value sealed to the raw X25519 key `recipient`; other bytes each time.

    Raises `ValueError` for a value longer than `LARGEST` and for a key that nothing can be sealed to.
    """
    if len(value.reveal()) > LARGEST:
        raise ValueError(f"{header.secret}: longer than {LARGEST} bytes")
    bound = _bound(header)
    ct = _encrypt({"ctx": _binding(bound), "value": _value_to_json(value)}, recipient)
    return sign(Kind.SEALED, {**bound, "ct": ct}, [vault])


def open_sealed(blob: bytes, expected: SealedHeader, key: SealingKey, vault: bytes) -> Secret:
    """The value in a file that the vault (raw Ed25519 key) signed for exactly the place `expected`.

    Raises `Refused`: malformed, kind, signature, version, sealed-header, unseal, context (F2, S16–S18, S68).
    """
    payload = open_envelope(blob, Kind.SEALED, [vault], limit=_FILE).payload
    name = f"{expected.secret} for {expected.node}"
    check_version(payload, name)
    ct = payload.pop("ct", None)
    bound = _bound(expected)
    if payload != bound:
        wrong = sorted(key for key in bound if payload.get(key) != bound[key])
        raise Refused(Why.SEALED_HEADER, f"{name}: sealed with another {', '.join(wrong) or 'header'}")
    return _value_from_json(_decrypt(ct, key, _binding(bound), "value", name), name)


@dataclass(frozen=True, slots=True)
class OpenedConfirms:
    """What a node confirmed, by secret, with its document's counters and digest."""

    document: Confirms
    digest: str
    confirms: Mapping[str, Confirm]


def seal_confirms(
    confirms: Mapping[str, Confirm],
    mesh: str,
    issued: int,
    node: str,
    epoch: int,
    seq: int,
    key: SigningKey,
    vault: bytes,
) -> bytes:
    """The file of a node's confirms, signed by it and sealed to the vault's raw X25519 key."""
    empty = Confirms(mesh, issued, node, epoch, seq, "")
    bound = _confirms_bound(empty)
    ct = _encrypt({"ctx": _binding(bound), "confirms": shape.to_json(confirms)}, vault)
    return sign(Kind.CONFIRMS, {**bound, "ct": ct}, [key])


def open_confirms(blob: bytes, of: Slice, mesh: str, key: SealingKey) -> OpenedConfirms:
    """What the node of the approved slice `of` confirmed to the vault whose key is `key`.

    The caller holds the document's (epoch, seq) against what it saw before. Raises `Refused`: malformed,
    kind, signature, version, mesh, epoch, unseal, context.
    """
    document, digest = read_signed(Confirms, blob, mesh, [raw_sign(of.sign)], limit=_FILE)
    name = f"confirms of {of.node}"
    if (document.node, document.epoch) != (of.node, of.epoch):
        raise Refused(Why.EPOCH, f"{name}: of another node or epoch")
    inner = _decrypt(document.ct, key, _binding(_confirms_bound(document)), "confirms", name)
    try:
        confirms = shape.from_json(_BySecret, inner, name)  # type: ignore[type-abstract]  # not made, only read
    except Misshapen as wrong:
        raise Refused(Why.UNSEAL, str(wrong)) from None
    return OpenedConfirms(document, digest, confirms)


def _bound(header: SealedHeader) -> dict[str, Json]:
    return {"v": VERSION, "alg": ALGORITHM, **shape.to_json(header)}


def _confirms_bound(document: Confirms) -> dict[str, Json]:
    return {key: value for key, value in payload_of(document).items() if key != "ct"}


def _binding(bound: Mapping[str, Json]) -> str:
    return canonical.digest(canonical.encode(dict(bound)))


def _encrypt(inner: Mapping[str, Json], recipient: bytes) -> str:
    padded = sodium_pad(canonical.encode(dict(inner)), BLOCK)
    box = nacl.public.SealedBox(nacl.public.PublicKey(recipient))
    try:
        return canonical.to_base64(box.encrypt(padded))
    except nacl.exceptions.CryptoError:
        raise ValueError("nothing can be sealed to this key") from None


def _decrypt(ct: Json, key: SealingKey, binding: str, name: str, where: str) -> Json:
    """What stands under `name` in a ciphertext that was made under the header `binding` is the digest of."""
    try:
        padded = key.open(canonical.from_base64(ct))
        inner = canonical.decode(_unpad(padded), _INNER)
    except (NotCanonical, KeyRefused):
        raise Refused(Why.UNSEAL, f"{where}: does not open, or its content is not of the form") from None
    if not isinstance(inner, dict) or inner.keys() != {"ctx", name}:
        raise Refused(Why.UNSEAL, f"{where}: its content is not of the form")
    if inner["ctx"] != binding:
        raise Refused(Why.BINDING, f"{where}: its content was sealed under another header")
    return inner[name]


def _unpad(padded: bytes) -> bytes:
    if len(padded) % BLOCK:
        raise NotCanonical("not padded")
    try:
        return sodium_unpad(padded, BLOCK)
    except nacl.exceptions.CryptoError:
        raise NotCanonical("not padded") from None


def _value_to_json(value: Secret) -> Json:
    """Text where JSON can say it plainly; any other bytes in base64, so that all come back the same."""
    try:
        text = value.text()
    except ValueError:
        return {"b64": canonical.to_base64(value.reveal())}
    controls = any(each < " " and each not in "\t\n\r" for each in text)
    if controls or not unicodedata.is_normalized("NFC", text):
        return {"b64": canonical.to_base64(value.reveal())}
    return text


def _value_from_json(value: Json, where: str) -> Secret:
    match value:
        case str(text):
            found = Secret(text)
        case {"b64": encoded, **rest} if not rest:
            try:
                found = Secret(canonical.from_base64(encoded))
            except NotCanonical:
                raise Refused(Why.UNSEAL, f"{where}: its content is not of the form") from None
        case _:
            raise Refused(Why.UNSEAL, f"{where}: its content is not of the form")
    if len(found.reveal()) > LARGEST:
        raise Refused(Why.UNSEAL, f"{where}: longer than {LARGEST} bytes")
    return found
