"""Hashes by their libraries: each against answers that are known elsewhere, and with a salt of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import argon2
import bcrypt
import pytest
from passlib.hash import sha512_crypt

from gitmesh.core.hashes import EXAMPLES, fits
from gitmesh.trust.secret import Secret
from gitmesh.vault.hash import make_hash
from gitmesh.vault.make import CannotMake

CANARY = "GMCANARY"
VALUE = Secret(f"{CANARY}0123456789abcdefghijklmnopqrstuvwxy")


def argon2id(value: bytes, hashed: str) -> bool:
    """argon2's own check, which raises for another value."""
    try:
        return argon2.PasswordHasher().verify(hashed, value)
    except argon2.exceptions.VerifyMismatchError:
        return False


VERIFIES: dict[str, Callable[[bytes, str], bool]] = {
    "bcrypt": lambda value, hashed: bcrypt.checkpw(value, hashed.encode()),
    "argon2id": argon2id,
    "sha512-crypt": sha512_crypt.verify,
}
KNOWN = [
    # Openwall's crypt_blowfish, wrapper.c
    ("bcrypt", b"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
    ("bcrypt", b"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"),
    # The reference implementation of Argon2, test.c
    (
        "argon2id",
        b"password",
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
    ),
    # Drepper's "Unix crypt using SHA-256 and SHA-512"
    (
        "sha512-crypt",
        b"Hello world!",
        "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
    ),
]


def test_each_way_of_the_contracts_is_made_here() -> None:
    assert VERIFIES.keys() == EXAMPLES.keys()


@pytest.mark.parametrize(("by", "value", "hashed"), KNOWN)
def test_the_libraries_know_the_known_answers(by: str, value: bytes, hashed: str) -> None:
    assert VERIFIES[by](value, hashed)
    assert not VERIFIES[by](value + b"x", hashed)


@pytest.mark.parametrize("by", sorted(EXAMPLES))
@pytest.mark.rule("C1")
def test_a_hash_is_of_its_value_alone_and_is_salted(by: str) -> None:
    first, second = make_hash(by, VALUE).text(), make_hash(by, VALUE).text()
    assert first != second
    assert all(VERIFIES[by](VALUE.reveal(), each) for each in (first, second))
    assert not VERIFIES[by](VALUE.reveal() + b"x", first)
    assert VALUE.text() not in first


@pytest.mark.parametrize("by", sorted(EXAMPLES))
def test_what_a_schema_is_held_against_is_what_is_made(by: str) -> None:
    made, example = make_hash(by, VALUE).text(), EXAMPLES[by]
    assert (len(made), made.split("$")[1]) == (len(example), example.split("$")[1])
    exactly = {"type": "string", "minLength": len(made), "maxLength": len(made)}
    assert fits(exactly, by)
    assert not fits({**exactly, "type": "integer"}, by)


@pytest.mark.parametrize(
    ("by", "value"),
    [
        ("bcrypt", Secret(CANARY * 10)),
        ("bcrypt", Secret(f"{CANARY}\0")),
        ("sha512-crypt", Secret(f"{CANARY}\0")),
        ("md5", VALUE),
    ],
)
@pytest.mark.rule("C10")
def test_what_cant_be_hashed_is_said_without_the_value(by: str, value: Secret) -> None:
    with pytest.raises(CannotMake) as caught:
        make_hash(by, value)
    said = traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    assert CANARY not in "".join(said)
