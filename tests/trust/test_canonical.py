"""The one byte form of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.trust import canonical
from gitmesh.trust.canonical import DEPTH, LARGEST, NotCanonical, decode, encode

WRONG = {
    "nothing": b"",
    "no JSON": b"{",
    "duplicate key": b'{"a":1,"a":1}',
    "float": b'{"a":1.0}',
    "exponent": b'{"a":1e3}',
    "huge exponent": b'{"a":1e999}',
    "NaN": b'{"a":NaN}',
    "infinity": b'{"a":-Infinity}',
    "bigint": b'{"a":9007199254740992}',
    "negative bigint": b'{"a":-9007199254740992}',
    "thousands of digits": b"1" * 5000,
    "negative zero": b"-0",
    "space": b'{"a": 1}',
    "newline at the end": b'{"a":1}\n',
    "unsorted": b'{"b":1,"a":1}',
    "BOM": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "not UTF-8": b'"\xff"',
    "NFD": '{"a":"e\u0301"}'.encode(),
    "NFD key": '{"e\u0301":1}'.encode(),
    "lone surrogate": b'{"a":"\\ud800"}',
    "surrogate key": b'{"\\ud800":1}',
    "encoded surrogate": b'"\xed\xa0\x80"',
    "needless escape": b'"\\u0061"',
    "escaped slash": b'"\\/"',
    "upper-case escape": b'"\\u001F"',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "unclosed depth": b"[" * 500_000,
    "a little too deep": b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1),
    "control character": b'"\x01"',
    "two values": b"1 1",
}


@pytest.mark.rule("S27")
@pytest.mark.parametrize("name", WRONG)
def test_refused_with_no_other_exception(name: str) -> None:
    with pytest.raises(NotCanonical):
        decode(WRONG[name])


@pytest.mark.parametrize(
    "blob",
    [
        b"null",
        b'{"a":[1,-1,9007199254740991,true,""],"b":{}}',
        '{"é":"\U0001f600\u2028"}'.encode(),
        b'"\\n\\u001f\\""',
        '"\\n\u0303"'.encode(),  # a mark after an escape composes with nothing
        b"[" * DEPTH + b"]" * DEPTH,
    ],
)
def test_canonical_bytes_come_back_the_same(blob: bytes) -> None:
    assert encode(decode(blob)) == blob


def test_the_limit_is_looked_at_first() -> None:
    assert decode(b'"abc"', limit=5) == "abc"
    with pytest.raises(NotCanonical, match="limit"):
        decode(b'"abc"', limit=4)


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        float("nan"),
        {1: 2},
        b"x",
        {"a": {1}},
        LARGEST + 1,
        "e\u0301",
        ["\ud800"],
        {"\ud800": 1},
        object(),
    ],
)
def test_values_that_have_no_canonical_form(value: object) -> None:
    with pytest.raises(NotCanonical):
        encode(value)


def test_a_recursive_value_is_refused_by_its_depth() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotCanonical):
        encode(value)


@pytest.mark.rule("S27")
@given(
    st.binary(max_size=200) | st.text(alphabet='{}[]",:0123456789-.eE\\u aénul', max_size=60).map(str.encode)
)
def test_any_bytes_are_read_back_exactly_or_refused(blob: bytes) -> None:
    try:
        value = decode(blob)
    except NotCanonical:
        return
    assert encode(value) == blob


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(_VALUES)
def test_any_value_comes_back_or_is_refused(value: object) -> None:
    try:
        blob = encode(value)
    except NotCanonical:
        assert not json.dumps(value, ensure_ascii=False).isascii()
        return
    assert decode(blob) == value


@pytest.mark.parametrize("text", ["QR==", "QQ", "QQ==\n", "Q Q=", "-_==", "é", 5, None])
def test_base64_with_another_spelling_is_refused(text: object) -> None:
    assert canonical.from_base64("QQ==") == b"A"
    with pytest.raises(NotCanonical):
        canonical.from_base64(text)
