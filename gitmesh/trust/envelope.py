"""Signed documents: DSSE 1.0.2 envelopes (SECURITY §1.4).

The type of a document's kind is part of what is signed, so that no signature counts for another kind. The
bytes that were verified are the bytes that are parsed. A document is known by the digest of its payload,
never of its envelope: `keyid` is a hint that anyone can change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import nacl.exceptions
import nacl.signing

from gitmesh.core.model import Json
from gitmesh.trust import canonical
from gitmesh.trust.canonical import NotCanonical
from gitmesh.trust.keys import SigningKey
from gitmesh.trust.refused import Refused, Why

SIGNATURES = 32
"""How many signatures an envelope may carry."""


class Kind(StrEnum):
    """The closed set of signed documents."""

    ROOT = "root"
    APPROVAL = "approval"
    DEPLOY = "deploy"
    VAULT_INDEX = "vault-index"
    SEALED = "sealed"
    ANSWERS = "answers"
    CONFIRMS = "confirms"
    REPORT = "report"
    ENROL = "enrol"

    @property
    def type(self) -> str:
        """Its DSSE payload type."""
        return f"application/vnd.gitmesh.{self.value}.v1+json"


@dataclass(frozen=True, slots=True)
class Opened:
    """What an envelope held: the payload, and the digest of its bytes."""

    payload: dict[str, Json]
    digest: str


def pae(type_: str, body: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed."""
    name = type_.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(body), body)


def sign(kind: Kind, payload: Mapping[str, Json], keys: Sequence[SigningKey]) -> bytes:
    """The envelope of `payload` signed by each of `keys`, the same bytes each time. Raises `NotCanonical`."""
    body = canonical.encode(dict(payload))
    message = pae(kind.type, body)
    signatures = [
        {"keyid": canonical.digest(key.public)[:16], "sig": canonical.to_base64(key.sign(message))}
        for key in sorted(keys, key=lambda key: key.public)
    ]
    envelope = {"payload": canonical.to_base64(body), "payloadType": kind.type, "signatures": signatures}
    return canonical.encode(envelope)


def open_envelope(
    blob: bytes, kind: Kind, keys: Collection[bytes], threshold: int = 1, limit: int = canonical.LIMIT
) -> Opened:
    """The payload, once `threshold` of the raw public `keys`, each counted once, have signed it (S13).

    `limit` is the longest envelope read, in bytes. Raises `Refused`: malformed, kind, signature, threshold.
    """
    body, signatures = _read(blob, kind, limit)
    signed = _signers(pae(kind.type, body), signatures, keys)
    if not signed:
        raise Refused(Why.SIGNATURE, f"{kind}: no signature of a key that may sign it")
    if threshold < 1 or len(signed) < threshold:
        raise Refused(Why.THRESHOLD, f"{kind}: signed by {len(signed)} of the {threshold} keys it needs")
    return _payload(body, kind, limit)


def read_unverified(blob: bytes, kind: Kind, limit: int = canonical.LIMIT) -> Opened:
    """The payload with no signature checked: to see which keys a root names for itself, or which node an
    enrolment is for, before it is opened with them. Raises `Refused`: malformed, kind."""
    body, _ = _read(blob, kind, limit)
    return _payload(body, kind, limit)


def _read(blob: bytes, kind: Kind, limit: int) -> tuple[bytes, list[bytes]]:
    """The payload's bytes and the signatures, none of them verified."""
    try:
        match canonical.decode(blob, limit):
            case {"payload": str(payload), "payloadType": str(type_), "signatures": list(entries), **rest}:
                if rest or len(entries) > SIGNATURES:
                    raise NotCanonical("a key or a signature too many")
                if type_ != kind.type:
                    raise Refused(Why.KIND, f"{kind}: an envelope of another kind")
                return canonical.from_base64(payload), [_signature(each) for each in entries]
            case _:
                raise NotCanonical("no envelope")
    except NotCanonical as wrong:
        raise Refused(Why.MALFORMED, f"{kind}: {wrong}") from None


def _signature(entry: Json) -> bytes:
    match entry:
        case {"keyid": str(), "sig": str(text), **rest} if not rest:
            return canonical.from_base64(text)
        case _:
            raise NotCanonical("a signature that is none")


def _signers(message: bytes, signatures: list[bytes], keys: Collection[bytes]) -> set[bytes]:
    """Which of the distinct raw `keys` signed; what an entry says of its key counts for nothing."""
    return {key for key in set(keys) if any(_verifies(key, message, each) for each in signatures)}


def _verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        nacl.signing.VerifyKey(key).verify(message, signature)
    except nacl.exceptions.CryptoError:  # a bad signature, or a key or signature of a wrong length
        return False
    return True


def _payload(body: bytes, kind: Kind, limit: int) -> Opened:
    try:
        payload = canonical.decode(body, limit)
    except NotCanonical as wrong:
        raise Refused(Why.MALFORMED, f"{kind}: its payload is {wrong}") from None
    if not isinstance(payload, dict):
        raise Refused(Why.MALFORMED, f"{kind}: its payload is no object")
    return Opened(payload, canonical.digest(body))
