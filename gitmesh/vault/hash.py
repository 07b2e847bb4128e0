"""Hashes of secrets, for software that keeps a password so; each by its library, with a salt of its own.

What is hashed has the length and the alphabet of a made value, which no number of rounds protects better:
the costs are the libraries' own, and for sha512-crypt that of crypt(3), whose form every reader knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import argon2
import bcrypt
from passlib.hash import sha512_crypt

from gitmesh.trust.secret import Secret
from gitmesh.vault.make import CannotMake

_CRYPT_ROUNDS = 5000


def make_hash(by: str, value: Secret) -> Secret:
    """A new hash of `value`: by bcrypt, argon2id or sha512-crypt. Raises `CannotMake`."""
    if by not in _HASHES:
        raise CannotMake(f"the vault makes no hash by `{by}`; it makes {', '.join(_HASHES)}")
    try:
        return Secret(_HASHES[by](value.reveal()))
    except ValueError:
        failure = CannotMake(f"{by} takes no value such as this: it is too long, or has a NUL in it")
    raise failure  # out here it carries no frames, whose locals hold the value (S53)


def _bcrypt(value: bytes) -> bytes:
    if b"\0" in value:
        raise ValueError("many an implementation stops there")
    return bcrypt.hashpw(value, bcrypt.gensalt())


def _argon2id(value: bytes) -> str:
    return argon2.PasswordHasher(type=argon2.Type.ID).hash(value)


def _sha512_crypt(value: bytes) -> str:
    hashed: str = sha512_crypt.using(rounds=_CRYPT_ROUNDS).hash(value)
    return hashed


_HASHES: Mapping[str, Callable[[bytes], str | bytes]] = {
    "bcrypt": _bcrypt,
    "argon2id": _argon2id,
    "sha512-crypt": _sha512_crypt,
}
