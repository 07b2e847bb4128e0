"""Makes the values of shared secrets; the only module that does (C1).

A length counts characters of the text. A value of `hex` decodes to whole bytes where its length is even. One
of `base64` or `base64url` has no padding and decodes to the most bytes that its length holds (43 characters
are 32 bytes, and with a `=` written after them, the padded form); a length of 4n+1 decodes in no base64.
"""

from __future__ import annotations

import secrets
import string
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable

from gitmesh.core.contract import ALPHABETS, MADE_LENGTH, check_value, made_length
from gitmesh.core.model import Schema
from gitmesh.trust.secret import Secret

_TRIES = 10_000
"""A pattern that one value in a hundred meets is then missed about once in 10^43 times."""


class CannotMake(Exception):
    """No value of this form fits; the text says why and quotes none. `check` refuses such a commit first."""


def make(form: str, length: int | None, schema: Schema) -> Secret:
    """A new value of `form`, `length` characters long (43 where that is None) but within the schema's
    minLength and maxLength, that fits the schema (FORMATS "Contract"). Raises `CannotMake`."""
    if form not in ALPHABETS:
        raise CannotMake(f"the vault makes no value of form `{form}`; it makes {', '.join(ALPHABETS)}")
    characters = made_length(schema, MADE_LENGTH if length is None else length)
    if characters < 1:
        raise CannotMake("a made value has at least one character")
    if form == "mixed" and characters < len(_CLASSES):
        raise CannotMake(f"a mixed value has at least {len(_CLASSES)} characters")
    wrong: str | None = None
    for _ in range(_TRIES):
        value = Secret(_MAKERS[form](characters))
        wrong = check_value(schema, value.text())
        if wrong is None:
            return value
    raise CannotMake(f"no value of form `{form}` fits its schema: {wrong}")


_CLASSES = (
    frozenset(string.ascii_lowercase),
    frozenset(string.ascii_uppercase),
    frozenset(string.digits),
    frozenset(ALPHABETS["mixed"]) - frozenset(string.ascii_letters + string.digits),
)
"""What a mixed value has at least one of each of."""


def _characters_of(form: str) -> Callable[[int], str]:
    return lambda characters: "".join(secrets.choice(ALPHABETS[form]) for _ in range(characters))


def _mixed(characters: int) -> str:
    """Drawn anew until every class is there: no place in it is likelier than another to hold one."""
    while True:
        value = _characters_of("mixed")(characters)
        if all(each & set(value) for each in _CLASSES):
            return value


def _encoded(form: str, encode: Callable[[bytes], bytes]) -> Callable[[int], str]:
    """The encoding of random bytes, since strict decoders refuse left-over bits that are not zero."""

    def maker(characters: int) -> str:
        value = encode(secrets.token_bytes(characters * 6 // 8)).decode().rstrip("=")
        return value + _characters_of(form)(characters - len(value))

    return maker


_MAKERS: dict[str, Callable[[int], str]] = {
    "alnum": _characters_of("alnum"),
    "hex": _characters_of("hex"),
    "base64": _encoded("base64", b64encode),
    "base64url": _encoded("base64url", urlsafe_b64encode),
    "mixed": _mixed,
}
