"""A container's files: where they lie, and whether their format can say what stands in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmesh.core.file_formats import Unwritable, render
from gitmesh.core.refusal import Code
from gitmesh.repo.document import check, read
from gitmesh.repo.load_module import read_module
from tests.core.definitions import C, refusals_of, refused_once, with_container

MACHINES = ("  mesh:", "  hosts: {host: machines}\n  mesh:")


@pytest.mark.rule("S21")
@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ("ini: {main: {a: x, b: 'x ; y'}}", ("ini", "main", "b")),
        ("ini: {main: {a: {b: c}}}", ("ini", "main", "a")),
        ("ini: {'a]b': {c: d}}", ("ini", "a]b")),
        ("env: {A: '$x', B: y}", ("env", "A")),
        ("env: {B: y, 'A B': x}", ("env", "A B")),
        ("toml: {a: {b: null}}", ("toml", "a", "b")),
        ("ini: {main: {all: '${words:value}'}}", ("ini", "main", "all")),
        (f"json: {{{'k' * 600}: 1}}", ("json", "k" * 600)),
    ],
)
def test_what_a_format_cant_say_is_refused_at_its_place(said: str, keys: tuple[str, ...]) -> None:
    refused_once(with_container(f"files: {{/x: {{{said}}}}}"), Code.SCHEMA, *C, "files", "/x", *keys)


@pytest.mark.rule("S21")
@pytest.mark.parametrize(
    "said",
    [
        "ini: {main: {a: 'x;y', many: '${hosts:names}', port: '${http:port}'}}",
        "toml: {a: '${hosts:names}', b: ['${db:host}']}",
        "yaml: [1, {a: '${words:value}'}, null]",
        "properties: {'a b': ' # x', c: true}",
        "env: {A: '${db:password}'}",
    ],
)
def test_an_answer_is_written_with_its_type(said: str) -> None:
    assert refusals_of(with_container(f"files: {{/x: {{{said}}}}}").replace(*MACHINES)) == []


SCALARS = st.text(st.characters(exclude_categories=["C"]), max_size=6) | st.booleans() | st.integers(-9, 9)
TREES = st.dictionaries(
    st.text("ab =[#;]é", min_size=1, max_size=4),
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.dictionaries(st.text("ab;", min_size=1, max_size=3), SCALARS),
    max_size=3,
)


@pytest.mark.rule("S21")
@pytest.mark.parametrize("format_", ["ini", "env", "properties", "toml", "yaml", "json"])
@given(tree=TREES)
@settings(max_examples=15, deadline=None)
def test_what_is_refused_is_what_the_writer_refuses(format_: str, tree: dict[str, object]) -> None:
    said = json.dumps(tree).replace("${", "$${")
    text = with_container(f"files: {{/x: {{{format_}: {said}}}}}")
    value, refused = read("modules/app/module.yaml", text.encode())
    if refused or check("module", "modules/app/module.yaml", value):
        return  # the file itself is refused
    try:
        render(format_, tree)
    except Unwritable:
        assert {each.code for each in refusals_of(text)} <= {Code.SCHEMA} and refusals_of(text)
    else:
        assert refusals_of(text) == []


@pytest.mark.parametrize(
    "path", ["/jobs/${consumer:as}.yml", "/jobs/a-${consumer:as:dns}", "/${consumer:as}"]
)
@pytest.mark.rule("A9")
def test_the_files_for_consumers_lie_in_one_folder(path: str) -> None:
    text = with_container(f"files: {{'{path}': {{each: scrape, text: x}}}}") + "provides: {scrape: {}}\n"
    assert refusals_of(text) == []
    deeper = text.replace(path, f"{path}/x")
    refused_once(deeper, Code.SERVES_PLACEHOLDER, *C, "files", f"{path}/x")


CARRIED = b"server { set $x ${host}; # ${db:host} ${HOME:-/}\n}\n"


@pytest.mark.rule("A4")
def test_c23_a_carried_file_is_copied_and_a_near_miss_in_a_text_refused() -> None:
    text = with_container("files: {/x: {from: nginx.conf}}")
    value, _ = read("modules/app/module.yaml", text.encode())
    module, refusals = read_module("modules/app/module.yaml", value, {"nginx.conf": CARRIED})
    assert refusals == []
    assert module.sources == {"nginx.conf": CARRIED}
    for near in ("${host}", "${db.host}", "${db:host:-x}", "${ db:host }", "${DB:host}"):
        refused_once(with_container(f"files: {{/x: '{near}'}}"), Code.REFERENCE_FORM, *C, "files", "/x")


@pytest.mark.rule("A4")
def test_c22_a_dollar_is_itself_and_an_unknown_placeholder_is_answered() -> None:
    text = with_container("command: [a, '--p=$5', '$$x', '$$$${y}', '$']\nenv: {A: 'x$$', B: '$(id)'}")
    assert refusals_of(text) == []
    value, _ = read("modules/app/module.yaml", text.encode())
    module, _ = read_module("modules/app/module.yaml", value, {})
    container = module.containers["app"]
    assert container.command == (("a",), ("--p=$5",), ("$$x",), ("$$${y}",), ("$",))
    assert container.env == {"A": ("x$$",), "B": ("$(id)",)}
    refusal = refused_once(
        with_container("command: ['${nobody:host}']"), Code.REFERENCE_UNKNOWN, *C, "command", 0
    )
    assert "`db`" in refusal.answers[0].text
