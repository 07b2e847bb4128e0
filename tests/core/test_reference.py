"""The one form, and everything that is not it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.reference import BadForm, Ref, parse, references

A = Ref("database", "host")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ()),
        ("plain", ("plain",)),
        ("${database:host}", (A,)),
        ("x${database:host}y", ("x", A, "y")),
        ("${database:host}${database:host}", (A, A)),
        ("a $ b $c $5 $", ("a $ b $c $5 $",)),
        ("$${database:host}", ("${database:host}",)),
        ("$$${database:host}", ("$${database:host}",)),
        ("$$", ("$$",)),
        ("${objects:access-key}", (Ref("objects", "access-key"),)),
        ("${consumer:as:dns}", (Ref("consumer", "as", "dns"),)),
        ("{database:host}", ("{database:host}",)),
    ],
)
@pytest.mark.rule("A4")
def test_the_one_form(text: str, pieces: tuple[str | Ref, ...]) -> None:
    assert parse(text) == pieces
    assert references(parse(text)) == tuple(each for each in pieces if isinstance(each, Ref))


@pytest.mark.parametrize(
    "text",
    [
        "${",
        "${}",
        "${HOME}",
        "${database}",
        "${database:}",
        "${:host}",
        "${Database:host}",
        "${database:host:dns}",
        "${database: host}",
        "${database:host",
        "${a:b}${",
        "${X:-default}",
        "${database:host-}",
        "${datab\u00e4se:host}",
        "${database:host\n}",
        "${a:${b:c}}",
        f"${{{'a' * 64}:host}}",
    ],
)
@pytest.mark.rule("A4")
def test_no_form(text: str) -> None:
    with pytest.raises(BadForm) as raised:
        parse(text)
    assert not raised.value.retired


@pytest.mark.parametrize(
    "text", ["${bound:database:host}", "${port:http:number}", "${machine}", "${settings:a.b}"]
)
@pytest.mark.rule("A16")
def test_a_retired_form(text: str) -> None:
    with pytest.raises(BadForm) as raised:
        parse(text)
    assert raised.value.retired


_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.one_of(st.text(), st.builds(Ref, _NAMES.filter(lambda name: name != "consumer"), _NAMES))))
@pytest.mark.rule("A4")
def test_what_is_written_is_read(pieces: list[str | Ref]) -> None:
    text = "".join(str(each) if isinstance(each, Ref) else each.replace("$", "") for each in pieces)
    assert "".join(map(str, parse(text))) == text


@given(st.text(alphabet="${}ab:-"))
@pytest.mark.rule("A4")
def test_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        pieces = parse(text)
    except BadForm as bad:
        assert "${" in text
        assert len(bad.found) <= len(text)
    else:
        assert "${" not in text or any(isinstance(each, Ref) for each in pieces) or "$${" in text
