"""The one byte form of a JSON value (SECURITY §1.4), so that digests and diffs are stable.

UTF-8 without a BOM, keys sorted by code point, no spaces, NFC strings without lone surrogates, integers below
2^53 in size, no floats, no duplicate keys. A reader requires that encoding what it read gives the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import unicodedata

from gitmesh.core.model import Json

LIMIT = 1 << 20
"""The longest document that is read where the caller names no other limit, in bytes."""

DEPTH = 64
"""How deep lists and objects may stand in one another."""

LARGEST = (1 << 53) - 1
"""The largest integer, and the size of the smallest."""


_TEXT_ALONE = {str}
"""The types of most keys and of many values; a set of them is made faster than each is looked at."""


class NotCanonical(Exception):
    """A value or bytes outside the form; the text says what is wrong and quotes nothing."""


def encode(value: Json) -> bytes:
    """The bytes of a JSON value; a tuple is written as a list. Raises `NotCanonical`."""
    _check(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        # An escape such as `\n` before a combining mark looks composable in the text and is not.
        _check_strings(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotCanonical("a string holds a lone surrogate") from None


def decode(blob: bytes, limit: int = LIMIT) -> Json:
    """The value that canonical bytes say. Raises `NotCanonical`, and nothing else, for any others (S27)."""
    if len(blob) > limit:
        raise NotCanonical(f"{len(blob)} bytes, and {limit} is the limit")
    try:
        value = json.loads(blob.decode("utf-8"))
    except RecursionError:
        raise NotCanonical(f"nested deeper than {DEPTH}") from None
    except ValueError:  # not UTF-8, not JSON, or an integer of thousands of digits
        raise NotCanonical("not JSON in UTF-8") from None
    if encode(value) != blob:
        raise NotCanonical("JSON, and not in its canonical form")
    return value


def digest(blob: bytes) -> str:
    """The sha256 of `blob` in lower-case hex."""
    return hashlib.sha256(blob).hexdigest()


def to_base64(blob: bytes) -> str:
    """Standard padded base64."""
    return base64.b64encode(blob).decode("ascii")


def from_base64(text: Json) -> bytes:
    """The bytes of standard padded base64, of which each has one spelling. Raises `NotCanonical`."""
    if not isinstance(text, str):
        raise NotCanonical("no base64 text")
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotCanonical("not base64") from None
    if to_base64(blob) != text:  # unused bits of the last character may not be set
        raise NotCanonical("base64 with stray bits")
    return blob


def _check(value: Json) -> None:
    """Refuse types, numbers and depths outside the form. A stack of its own, so that no depth overflows."""
    pending: list[tuple[Json, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        kind = type(item)
        if kind is dict or kind is list or kind is tuple:
            if depth == DEPTH:
                raise NotCanonical(f"nested deeper than {DEPTH}")
            if kind is dict:
                if set(map(type, item)) - _TEXT_ALONE and not all(isinstance(key, str) for key in item):
                    raise NotCanonical("a key that is no string")
                item = item.values()
            if set(map(type, item)) != _TEXT_ALONE:
                pending += [(each, depth + 1) for each in item if type(each) is not str]
        elif kind is int:
            if not -LARGEST <= item <= LARGEST:
                raise NotCanonical("an integer of 2^53 or more")
        elif not (item is None or isinstance(item, str | bool)):
            raise NotCanonical("a number that is no integer" if kind is float else "no JSON value")


def _check_strings(value: Json) -> None:
    """Refuse a string that is not NFC. `value` passed `_check`."""
    if isinstance(value, str):
        if not unicodedata.is_normalized("NFC", value):
            raise NotCanonical("a string that is not NFC")
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_strings(key)
            _check_strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_strings(each)
