"""Edits change the lines they are about, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmesh.assets import asset
from gitmesh.repo.document import read
from gitmesh.repo.edit import Uneditable, drop, put, render
from gitmesh.repo.strict import same
from tests.real import shared


def value_of(blob: bytes) -> Any:
    value, refusals = read("f.yaml", blob)
    assert refusals == []
    return value


def test_a_pin_leaves_every_other_byte() -> None:
    before = (shared("example-mesh") / "assignments/athens/gitea.yaml").read_bytes()
    after = put(before, ["pins", "database"], "postgres@sparta")
    assert after == before + b"pins:   {database: postgres@sparta}\n"


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda blob: blob,
    "CRLF": lambda blob: blob.replace(b"\n", b"\r\n"),
    "no final newline": lambda blob: blob.rstrip(b"\n"),
    "CRLF, no final newline": lambda blob: blob.replace(b"\n", b"\r\n").rstrip(b"\r\n"),
    "byte order mark": lambda blob: b"\xef\xbb\xbf" + blob,
}

EDITS = [
    (["pins", "database"], "postgres@sparta"),
    (["uses"], ["smtp", "stats"]),
    (["place", "data"], "/mnt/disk2/x y"),
    (["place"], {"data": "/srv/a", "http": 8080}),
    (["values", "new.name"], "it's: a 'test'\n"),
    (["fresh"], True),
    (["as"], "017"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("folder", ["assignments", "nodes", "spreads", "modules", "contracts"])
def test_put_then_drop_gives_back_every_byte(form: str, folder: str) -> None:
    files = sorted((shared("example-mesh") / folder).rglob("*.yaml"))
    assert files
    for file in files:
        before = FORMS[form](file.read_bytes())
        old = value_of(before) or {}
        for keys, value in EDITS:
            if keys[0] in old and not (
                isinstance(old[keys[0]], dict) and len(keys) > 1 and keys[1] not in old[keys[0]]
            ):
                continue
            after = put(before, keys, value)
            assert value_of(after) != old
            untouched = before.splitlines()
            assert sum(line in untouched for line in after.splitlines()) >= len(untouched) - 1
            assert drop(after, keys) == before


@pytest.mark.parametrize(
    ("before", "keys", "value", "after"),
    [
        # files that say nothing yet
        (b"", ["a", "b"], "c", b"a: {b: c}\n"),
        (b"# c", ["a"], 1, b"# c\na: 1"),
        (b"# c\r\n", ["a"], 1, b"# c\r\na: 1\r\n"),
        (b"---\n", ["a"], 1, b"---\na: 1\n"),
        (b"", [], ["x", "y"], b"- x\n- y\n"),
        (b"~\n", ["a"], 1, b"{a: 1}\n"),
        (b"{}\n", ["a"], 1, b"{a: 1}\n"),
        # new keys
        (b"{a: 1}", ["b"], [1], b"{a: 1, b: [1]}"),
        (b"a: {x: 1, # c\n  y: 2 # d\n}\n", ["a", "z"], 3, b"a: {x: 1, # c\n  y: 2, z: 3 # d\n}\n"),
        (b"a: [x, y,]\nb: {c: 1,}\n", ["b", "d"], 2, b"a: [x, y,]\nb: {c: 1, d: 2,}\n"),
        (b"a:\n  b:\n    c: 1\n# t\n", ["a", "b", "d"], "2", b"a:\n  b:\n    c: 1\n    d: '2'\n# t\n"),
        (b"a:\n    b: 1\n    # c\nd: 2\n", ["a", "e"], 5, b"a:\n    b: 1\n    e: 5\n    # c\nd: 2\n"),
        (b"uses:   [a]\nholds:  []\n", ["pins"], {}, b"uses:   [a]\nholds:  []\npins:   {}\n"),
        (b"uses:   [a]\n", ["longer-key"], 1, b"uses:   [a]\nlonger-key: 1\n"),
        (b"uses: [a]\nholds: []\n", ["pins"], {}, b"uses: [a]\nholds: []\npins: {}\n"),
        (b"a: |\n  x\n\n# c\n", ["b"], "q", b"a: |\n  x\nb: q\n\n# c\n"),
        (b"a: 1 # c", ["b"], 2, b"a: 1 # c\nb: 2"),
        # values that change
        (b"a: 1 # c\nb: 2\n", ["a"], "no", b"a: 'no' # c\nb: 2\n"),
        (b"a:   'x' # c\n", ["a"], "it's", b"a:   'it''s' # c\n"),
        (b'a: "x"\n', ["a"], "y", b'a: "y"\n'),
        (b"a: x\n", ["a"], "1.10", b"a: '1.10'\n"),
        (b"a: x y\n", ["a"], "it's: b", b"a: 'it''s: b'\n"),
        (b"a: x y\n", ["a"], "it's, z", b"a: it's, z\n"),
        (b"a: {b: x y}\n", ["a", "b"], "y, z", b"a: {b: 'y, z'}\n"),
        (b"a: x y\n", ["a"], "z #y", b"a: 'z #y'\n"),
        (b"a: x\n", ["a"], " x", b"a: ' x'\n"),
        (b"a: x\n", ["a"], "&x", b"a: '&x'\n"),
        (b"a: ~\n", ["a", "b"], "x", b"a: {b: x}\n"),
        (b"a: # c\nb: 1\n", ["a"], 5, b"a: 5 # c\nb: 1\n"),
        (b"a:\nb: 1\n", ["a", "k"], "v", b"a: {k: v}\nb: 1\n"),
        (b"a: |\n  x\n  y\n\nb: 1\n", ["a"], "q", b"a: q\n\nb: 1\n"),
        (b"a: # hi\n  b: 1\n  c: 2\nd: 1\n", ["a"], {"z": 1}, b"a: {z: 1} # hi\nd: 1\n"),
        # lists
        (b"a: [x, y] # c\n", ["a"], ["x", "y", "z"], b"a: [x, y, z] # c\n"),
        (b"a: ['x', y] # c\n", ["a"], ["x"], b"a: ['x'] # c\n"),
        (b"a: ['x', y] # c\n", ["a"], ["y"], b"a: [y] # c\n"),
        (b"a:\n- x # one\n- y # two\n", ["a"], ["y"], b"a:\n- y # two\n"),
        (b"a:\n  - x # one\nb: 1\n", ["a"], ["x", "y", "z"], b"a:\n  - x # one\n  - y\n  - z\nb: 1\n"),
        (b"- x # one\n- y\n", [], ["x", "y", "z"], b"- x # one\n- y\n- z\n"),
        (b"- x # one\n- y\n", [], ["y"], b"- y\n"),
        (b"a: [x, y]\n", ["a"], ["y", "x"], b"a: [y, x]\n"),
        (b"a: []\n", ["a"], ["x"], b"a: [x]\n"),
        (b"a: [x]\n", ["a"], [], b"a: []\n"),
    ],
)
def test_put(before: bytes, keys: list[str], value: Any, after: bytes) -> None:
    assert put(before, keys, value) == after


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        (b"a: 1\nb: 2", ["b"], b"a: 1"),
        (b"a: 1\r\nb: 2\r\n", ["a"], b"b: 2\r\n"),
        (b"a: {x: 1, y: 2}\n", ["a", "x"], b"a: {y: 2}\n"),
        (b"a: {x: 1, y: 2}\n", ["a", "y"], b"a: {x: 1}\n"),
        (b"a: {x: 1}\nb: 2\n", ["a", "x"], b"b: 2\n"),
        (b"a:\n  b: 1 # c\n  # d\n  c: 2\n", ["a", "b"], b"a:\n  # d\n  c: 2\n"),
        (b"a:\n  b: |\n    x\n\n    y\n  c: 2\n", ["a", "b"], b"a:\n  c: 2\n"),
        (b"# c\na: 1\n", ["a"], b"# c\n"),
        (b"{a: 1}\n", ["a"], b"{}\n"),
        (b"a: 1\n", ["b"], b"a: 1\n"),
        (b"a: 1\n", ["a", "b"], b"a: 1\n"),
        (b"", ["a"], b""),
    ],
)
def test_drop(before: bytes, keys: list[str], after: bytes) -> None:
    assert drop(before, keys) == after


@pytest.mark.parametrize(
    ("before", "keys", "why"),
    [
        (b"a: 1\n", ["a", "b"], "`a` is no map"),
        (b"- a\n", ["b"], "no map"),
        (b"a: &x 1\n", ["b"], "an anchor"),
        (b"a: 1\na: 2\n", ["b"], "`a` stands on line 1"),
        (b"a: |+\n  x\n\n", ["b"], "edit it by hand"),
    ],
)
def test_what_cannot_be_edited_says_why(before: bytes, keys: list[str], why: str) -> None:
    with pytest.raises(Uneditable, match=why):
        put(before, keys, 1)


def test_a_drop_names_something() -> None:
    with pytest.raises(Uneditable, match="nothing is named"):
        drop(b"a: 1\n", [])


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "1.10",
        "017",
        "",
        "~",
        "true",
        "x: y",
        "x #y",
        "a:",
        "-",
        "- a",
        "[x]",
        "it's",
        "a\nb",
        "\te",
        "é",
        "${a:b}",
        "\u202e",
        "\x7f",
        "*a",
        "2026-01-01",
        "<<",
        "=",
        "%a",
        "@a",
        "😀",
    ],
)
def test_text_is_read_back_as_it_was(text: str) -> None:
    for value in (text, [text], {"k": text}, {text: [text, text]}):
        assert same(value_of(f"k: {render(value)}\n".encode()), {"k": value})


KEYS = st.text("abcxyz-._", min_size=1, max_size=5)
TEXTS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def blocks(value: Any, indent: str = "") -> str:
    """A map as block YAML with comments, its inner values in flow style by turns."""
    lines = []
    for number, (key, each) in enumerate(value.items()):
        if isinstance(each, dict) and each and number % 2 == 0:
            lines.append(f"{indent}{render(key)}: # of {number}\n{blocks(each, indent + '  ')}")
        else:
            lines.append(f"{indent}{render(key)}:  {render(each)} # {number}\n")
    return "".join(lines)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.lists(KEYS, min_size=1, max_size=3), VALUES)
def test_an_edit_says_just_what_was_asked(old: dict[str, Any], keys: list[str], new: Any) -> None:
    blob = blocks(old).encode()
    assert same(value_of(blob) or {}, old)
    inner: Any = old
    for key in keys[:-1]:
        inner = inner.get(key) if isinstance(inner, dict) else inner
    if inner is not None and not isinstance(inner, dict):
        return
    after = put(blob, keys, new)
    expected = value_of(after)
    for key in keys:
        expected = expected[key]
    assert same(expected, new)
    dropped = value_of(drop(after, keys)) or {}
    for key in keys[:-1]:
        dropped = dropped.get(key) or {}
    assert keys[-1] not in dropped
    others = {key: value for key, value in old.items() if key != keys[0]}
    assert same({key: value for key, value in value_of(after).items() if key != keys[0]}, others)


# --- there and back, in every document that ships ------------------------------------------------------


def documents(mesh: str) -> list[bytes]:
    """Every YAML file of the template, or of the example mesh."""
    folder = asset("mesh-repo-template") if mesh == "template" else shared(mesh)
    return [each.read_bytes() for each in sorted(folder.rglob("*.yaml"))]


def maps_in(value: Any, at: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every map of a document that is reached by keys alone, with its keys; an empty one is not kept as
    one when its only entry goes."""
    found = [(at, value)] if isinstance(value, dict) and (value or not at) else []
    for key, each in value.items() if isinstance(value, dict) else ():
        found += maps_in(each, (*at, key))
    return found


NEW = st.sampled_from(["new", "web.name", "pins", "values", "place", "as", "0", "no", "it's"])


@pytest.mark.parametrize("mesh", ["template", "example-mesh"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_set_and_unset_again_leaves_every_byte(mesh: str, data: st.DataObject) -> None:
    form = FORMS[data.draw(st.sampled_from(sorted(FORMS)))]
    before = form(data.draw(st.sampled_from(documents(mesh))))
    blob, put_at = before, []
    for _ in range(data.draw(st.integers(1, 4))):
        at, held = data.draw(st.sampled_from(maps_in(value_of(blob) or {})))
        path = [*at, data.draw(NEW), *data.draw(st.lists(NEW, max_size=1))]
        if path[len(at)] in held:
            continue
        blob = put(blob, path, data.draw(VALUES))
        put_at.append(path)
    for path in reversed(put_at):
        blob = drop(blob, path)
    assert blob == before


@pytest.mark.parametrize("mesh", ["template", "example-mesh"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_value_that_is_changed_and_changed_back_leaves_every_byte(mesh: str, data: st.DataObject) -> None:
    before = data.draw(st.sampled_from(documents(mesh)))
    texts = [
        (*at, key)
        for at, held in maps_in(value_of(before) or {})
        for key, each in held.items()
        if isinstance(each, str) and "\n" not in each
    ]
    if not texts:
        return
    path = data.draw(st.sampled_from(texts))
    old = value_of(before)
    for key in path:
        old = old[key]
    other = put(before, path, data.draw(st.sampled_from(["x", "git.example.org", "postgres@sparta"])))
    changed = [
        line for line, after in zip(before.splitlines(), other.splitlines(), strict=True) if line != after
    ]
    assert len(changed) <= 1
    assert put(other, path, old) == before
