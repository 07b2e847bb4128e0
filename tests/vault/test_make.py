"""What the vault makes, and that nothing else makes any."""

from __future__ import annotations

import ast
from base64 import b64decode, b64encode, urlsafe_b64decode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gitmesh
from gitmesh.core.contract import ALPHABETS, check_value
from gitmesh.vault.make import CannotMake, make

FORMS = ("alnum", "hex", "base64", "base64url", "mixed")


def test_the_forms_are_those_of_the_contracts() -> None:
    assert set(ALPHABETS) == set(FORMS)


def test_a_value_is_43_letters_and_digits_unless_something_says_otherwise() -> None:
    value = make("alnum", None, {"type": "string"}).text()
    assert len(value) == 43
    assert value.isascii()
    assert value.isalnum()


@given(
    form=st.sampled_from(FORMS),
    length=st.none() | st.integers(4, 200),
    least=st.none() | st.integers(4, 100),
    room=st.none() | st.integers(0, 100),
)
def test_a_value_is_of_its_form_and_as_long_as_allowed(
    form: str, length: int | None, least: int | None, room: int | None
) -> None:
    schema: dict[str, object] = {"type": "string"}
    if least is not None:
        schema["minLength"] = least
    if room is not None:
        schema["maxLength"] = (least or 4) + room
    value = make(form, length, schema).text()
    assert check_value(schema, value) is None
    assert set(value) <= set(ALPHABETS[form])
    wanted = length or 43
    assert len(value) == wanted or len(value) in (schema.get("minLength"), schema.get("maxLength"))


@given(st.integers(4, 100))
def test_a_mixed_value_has_every_class(length: int) -> None:
    value = make("mixed", length, {}).text()
    assert any(each.islower() for each in value)
    assert any(each.isupper() for each in value)
    assert any(each.isdigit() for each in value)
    assert any(not each.isalnum() for each in value)


@pytest.mark.parametrize(("length", "count"), [(32, 16), (64, 32)])
def test_an_even_hex_value_decodes(length: int, count: int) -> None:
    assert len(bytes.fromhex(make("hex", length, {}).text())) == count


@pytest.mark.parametrize(("length", "count"), [(22, 16), (43, 32), (44, 33), (86, 64)])
def test_a_base64_value_is_what_its_bytes_encode_to(length: int, count: int) -> None:
    value = make("base64", length, {}).text()
    padded = value + "=" * (-length % 4)
    assert len(b64decode(padded, validate=True)) == count
    assert b64encode(b64decode(padded)).decode() == padded
    assert len(urlsafe_b64decode(make("base64url", length, {}).text() + "=" * (-length % 4))) == count


def test_a_length_that_no_base64_has_is_kept_all_the_same() -> None:
    assert len(make("base64url", 45, {}).text()) == 45


def test_a_pattern_is_met_whole() -> None:
    schema = {"type": "string", "pattern": "[a-z][A-Za-z0-9]*"}
    for _ in range(50):
        assert make("alnum", 8, schema).text()[0].islower()


@pytest.mark.parametrize(
    ("form", "length", "schema", "why"),
    [
        ("text", None, {}, "no value of form `text`; it makes alnum, hex"),
        ("alnum", 0, {}, "at least one character"),
        ("mixed", 3, {}, "at least 4 characters"),
        ("hex", 8, {"type": "string", "pattern": "[g-z]+"}, "no value of form `hex` fits"),
        ("alnum", 8, {"type": "integer"}, "no value of form `alnum` fits"),
    ],
)
def test_what_can_not_be_made_says_why(
    form: str, length: int | None, schema: dict[str, object], why: str
) -> None:
    with pytest.raises(CannotMake, match=why):
        make(form, length, schema)


def test_no_two_values_are_alike() -> None:
    assert len({make(form, 24, {}).text() for form in FORMS for _ in range(100)}) == 500


def _imports(file: Path) -> set[str]:
    names: set[str] = set()
    for each in ast.walk(ast.parse(file.read_text())):
        if isinstance(each, ast.Import):
            names.update(name.name.split(".")[0] for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            names.add(each.module.split(".")[0])
    return names


OTHER_CHANCE = {
    "fsops.py": "names of staged files",
}
"""Who else draws numbers by chance, and for what: none of it is a secret that two parties share."""


@pytest.mark.rule("C1")
def test_no_other_module_makes_a_secret() -> None:
    package = Path(gitmesh.__file__).parent
    makers = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if _imports(file) & {"secrets", "random", "uuid"}
    }
    assert makers - OTHER_CHANCE.keys() == {"vault/make.py"}
