"""Each writer says exactly one value, or refuses (S21)."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gitmesh.core import file_formats as formats
from gitmesh.core.file_formats import Unwritable
from gitmesh.core.model import Json

TEXT = st.text(max_size=20) | st.sampled_from(
    [
        "no",
        "1.10",
        "017",
        "null",
        "~",
        "a: b",
        "# c",
        "x\ny",
        "\u2028",
        "\x00",
        "\x85",
        "é",
        "🙂",
        "<<",
        "a = b",
        "",
    ]
)
SCALAR = TEXT | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1)
TREE = st.recursive(
    SCALAR,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=12,
)
HOSTILE = ["5432\n", "a\nADMIN=1", "a\x00b", "a\rb", "a\u2028b", "a\x85b", "a\x1bb"]


@pytest.mark.rule("S21")
@given(TREE | st.none())
@settings(max_examples=150, deadline=None)
def test_json_and_yaml_read_back_the_same(tree: Json) -> None:
    text = formats.render("json", tree)
    assert json.loads(text) == tree
    assert formats.render("yaml", tree) == text


@pytest.mark.rule("S21")
@pytest.mark.parametrize("version", ["1.1", "1.2"])
@given(tree=TREE)
@settings(max_examples=60, deadline=None)
def test_both_yaml_versions_read_back_the_same(version: str, tree: Json) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    assert yaml.load(formats.render("yaml", tree)) == tree


@pytest.mark.rule("S21")
@given(st.dictionaries(TEXT, TREE, max_size=4))
@settings(max_examples=150, deadline=None)
def test_toml_reads_back_the_same(tree: dict[str, Json]) -> None:
    assert tomllib.loads(formats.render("toml", tree)) == tree


def test_toml_writes_a_table_for_each_object() -> None:
    tree = {"a": 1, "server": {"port": 80, "tls": {"on": True}}, "list": [{"x": "y"}], "empty": {}}
    assert formats.render("toml", tree) == (
        'a = 1\nlist = [{x = "y"}]\n[server]\nport = 80\n[server.tls]\non = true\n[empty]\n'
    )


@pytest.mark.rule("S21")
@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda name: name.lower() != "default"),
        st.dictionaries(TEXT, SCALAR, max_size=3),
        max_size=3,
    )
)
@settings(max_examples=200, deadline=None)
def test_ini_reads_back_the_same_or_is_refused(tree: dict[str, dict[str, Json]]) -> None:
    try:
        text = formats.render("ini", tree)
    except Unwritable:
        return
    parser = configparser.RawConfigParser(inline_comment_prefixes=("#", ";"))
    parser.optionxform = str  # type: ignore[method-assign, assignment]  # as configparser's documentation says
    parser.read_string(text)
    expected = {
        name: {key: formats.as_text(each) for key, each in keys.items()} for name, keys in tree.items()
    }
    assert {name: dict(parser[name]) for name in parser.sections()} == expected


def test_ini_has_keys_before_its_sections_and_repeats_the_key_of_a_list() -> None:
    tree = {"section": {"key": "v", "many": ["a", 2]}, "top": True}
    assert formats.render("ini", tree) == "top = true\n[section]\nkey = v\nmany = a\nmany = 2\n"


def docker_reads(text: str) -> dict[str, str]:
    """`docker --env-file`: each line literally; blank lines and those that begin with # are skipped."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def compose_reads(text: str) -> dict[str, str]:
    """compose: quotes, backslashes, `$` and blank-# comments mean something; blanks are trimmed."""
    read = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        value = re.split(r"(?:^|\s)#", value)[0].strip()
        read[name.strip()] = re.sub(r"[\"'`\\]|\$\{?\w*\}?", "", value)
    return read


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@pytest.mark.rule("S21")
@given(st.dictionaries(NAMES, SCALAR | st.text("ab \t#$'\"\\=\n;", max_size=6), max_size=4))
@settings(max_examples=200, deadline=None)
def test_env_is_read_alike_by_docker_and_compose_or_is_refused(tree: dict[str, Json]) -> None:
    try:
        text = formats.render("env", tree)
    except Unwritable:
        return
    expected = {name: formats.as_text(each) for name, each in tree.items()}
    assert docker_reads(text) == compose_reads(text) == expected


@pytest.mark.rule("S21")
@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("format_", ["env", "ini"])
def test_formats_of_lines_refuse_what_breaks_one(format_: str, value: str) -> None:
    with pytest.raises(Unwritable) as raised:
        formats.render(format_, {"PORT": value})
    assert value not in str(raised.value) and "PORT" in str(raised.value)
    with pytest.raises(Unwritable):
        formats.write_environment({"PORT": value})


@pytest.mark.rule("S21")
@pytest.mark.parametrize("name", ["", "A=B", "A B", "1A", "A\nB", "é", "#A"])
def test_names_of_variables(name: str) -> None:
    with pytest.raises(Unwritable):
        formats.render("env", {name: "x"})


def test_an_environment_is_literal() -> None:
    assert formats.write_environment({"A": "'q' $x #c", "B": ""}) == "A='q' $x #c\nB=\n"


def java_reads(text: str) -> dict[str, str]:
    """As `java.util.Properties.load`, for lines without continuations."""
    read = {}
    for line in text.split("\n")[:-1]:
        assert not line.startswith(("#", "!"))
        found = re.match(r"((?:[^\\=: \t]|\\.)*)=[ \t]*(.*)", line)
        assert found is not None, line
        read[unescape(found[1])] = unescape(found[2])
    return read


def unescape(text: str) -> str:
    units = re.sub(r"\\(?:u([0-9a-f]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


@pytest.mark.rule("S21")
@given(st.dictionaries(TEXT, SCALAR, max_size=4))
@settings(max_examples=150, deadline=None)
def test_properties_read_back_the_same(tree: dict[str, Json]) -> None:
    text = formats.render("properties", tree)
    assert text.isascii()
    assert java_reads(text) == {name: formats.as_text(each) for name, each in tree.items()}


@pytest.mark.parametrize(
    ("format_", "tree", "says"),
    [
        ("toml", {"a": None}, "no null"),
        ("toml", [1], "expected an object"),
        ("ini", {"a": {"b": {"c": 1}}}, "a text, a number or a boolean"),
        ("ini", {"a]b": {}}, "bracket"),
        ("ini", {"a=b": "c"}, "two keys"),
        ("env", {"A": ["x"]}, "a text, a number or a boolean"),
        ("properties", {"a": {}}, "a text, a number or a boolean"),
        ("json", {"a": "\ud800"}, "half a character"),
        ("yaml", {"k" * 600: 1}, "longer than"),
    ],
)
def test_what_a_format_cannot_say(format_: str, tree: Any, says: str) -> None:
    with pytest.raises(Unwritable, match=says):
        formats.render(format_, tree)
