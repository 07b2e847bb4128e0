"""The fast reader and the slow one never disagree, and both read YAML as its own test suite says."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gitmesh.assets import asset
from gitmesh.repo import document, doubt
from gitmesh.repo.doubt import harmless
from gitmesh.repo.strict import same
from tests.real import shared
from tests.repo.documents import slowly, value_of


def agree(text: str) -> None:
    """What `read` gives must be what the slow reader gives alone."""
    if doubt._DOUBTFUL.search(text):
        assert doubt._suspicious(text)
    value, refusals = document.read("f.yaml", text.encode("utf-8", "surrogatepass"))
    slow_value, slow_refusals = slowly(text.removeprefix("\ufeff"))
    assert same(value, slow_value)
    assert bool(refusals) == bool(slow_refusals)


@pytest.mark.parametrize("folder", ["compose", "example-mesh"])
def test_the_readers_agree_on_real_files(folder: str) -> None:
    files = sorted(shared(folder).rglob("*.yaml"))
    assert files
    for file in files:
        agree(file.read_text("utf-8"))


def test_the_example_mesh_is_read_fast() -> None:
    slow = [
        file.name
        for file in sorted(shared("example-mesh").rglob("*.yaml"))
        if not harmless(file.read_text("utf-8"))
    ]
    assert len(slow) <= 1


PIECES = (
    *(
        "a",
        "b: ",
        "k: ",
        "- ",
        "? ",
        ": ",
        ":",
        "[",
        "]",
        "{",
        "}",
        ", ",
        ",",
        "\n",
        "\n  ",
        "\n ",
        "\n    ",
        "#",
    ),
    *(
        " # c",
        '"',
        "'",
        "|",
        ">",
        "|-",
        ">+",
        "|2",
        "&x ",
        "*x",
        "!t ",
        "<<",
        "%",
        "---",
        "...",
        "017",
        "1.5",
    ),
    *(
        "12:30",
        "0x1F",
        "1_0",
        "-1",
        "0",
        "~",
        "null",
        "true",
        "no",
        "2026-01-01",
        "\t",
        "\\",
        "\\n",
        "\\u0041",
    ),
    *(
        "\r\n",
        "\u00e9",
        "e\u0301",
        "=",
        "@",
        "`",
        ".inf",
        "-",
        "+1",
        "-0",
        '""',
        "''",
        '"a":',
        "'b': ",
        " ",
        "x y",
    ),
    *("10.7.0.11", "\u2028", "\ufeff", "\x85", "\x00", "\\0", "?x", "$"),
)
OPENINGS = ("", "k: ", "k:\n  ", "k:\n- ", "k: [", "{k: ", "k: {", 'k: "', "k: |\n", "- ", "k:\n  j: 1\n  ")
ENDINGS = ("", "]", "}", "\n", "\nz: 1\n", '"\n')


@settings(max_examples=400, deadline=None)
@example("k: {", ["#true"], "\n  }")
@example("k: [", ['"a":', "true"], "]")
@example("k: [", ["null<<|-[,1e3null~", '"a":', "12:30"], "]")
@example("", ["-", ": ", "x"], "")
@given(st.sampled_from(OPENINGS), st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(ENDINGS))
def test_the_readers_agree_on_anything(opening: str, pieces: list[str], ending: str) -> None:
    agree(opening + "".join(pieces) + ending)


@lru_cache(maxsize=2)
def real(folder: str) -> list[str]:
    """The real documents of a folder of the reference, or of the template."""
    base = asset("mesh-repo-template") if folder == "template" else shared(folder)
    return [file.read_text("utf-8") for file in sorted(base.rglob("*.yaml"))]


def mutated(data: st.DataObject, text: str) -> str:
    """Some lines of a document with a few small mistakes, and perhaps other line ends."""
    lines = text.splitlines(keepends=True)
    start = data.draw(st.integers(0, max(len(lines) - 1, 0)))
    text = "".join(lines[start : start + data.draw(st.integers(1, 40))])
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.sampled_from([0, 0, 0, 1, 2, 8]))
        text = text[:at] + data.draw(st.sampled_from(("", *PIECES))) + text[at + gone :]
    return data.draw(
        st.sampled_from([text, text.rstrip("\n"), text.replace("\n", "\r\n"), f"\ufeff{text}", text + text])
    )


@pytest.mark.parametrize("folder", ["compose", "example-mesh", "template"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_readers_agree_on_real_files_with_mistakes(folder: str, data: st.DataObject) -> None:
    agree(mutated(data, data.draw(st.sampled_from(real(folder)))))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(blob: bytes) -> None:
    value, refusals = document.read("f.yaml", blob)
    assert value is None or not refusals


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc-._/é", max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=6), JSON, max_size=5))
def test_json_is_yaml(value: dict[str, Any]) -> None:
    assert same(value_of(json.dumps(value, ensure_ascii=False)), value)
    assert same(value_of(json.dumps(value, indent=2, ensure_ascii=False)), value)


# --- the YAML test suite -------------------------------------------------------------------------------


def suite() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(shared("vectors/yaml/src").glob("*.yaml")):
        case: dict[str, Any] = {}
        for number, part in enumerate(YAML(typ="safe").load(file)):
            case = {key: value for key, value in case.items() if key != "fail"} | part
            if "yaml" in case and not case.get("skip"):
                yield f"{file.stem}-{number}", case


def plain(shown: str) -> str:
    """The text that the suite means by its visible signs."""
    for sign, meant in {"␣": " ", "↵": "", "∎\n": "", "∎": "", "←": "\r", "⇔": "\ufeff"}.items():
        shown = shown.replace(sign, meant)
    return re.sub("—*»", "\t", shown)


@pytest.mark.rule("S25")
def test_every_invalid_case_of_the_suite_is_refused() -> None:
    invalid = [(name, case) for name, case in suite() if case.get("fail")]
    accepted = [name for name, case in invalid if not document.read(name, plain(case["yaml"]).encode())[1]]
    assert len(invalid) > 90
    assert accepted == []


@pytest.mark.rule("S25")
def test_the_valid_cases_that_are_refused_are_those_written_down() -> None:
    listed = tomllib.loads((Path(__file__).parent / "yaml_refused.toml").read_text())
    assert all(each["why"] for each in listed.values())
    refused_ones = [
        name
        for name, case in suite()
        if not case.get("fail") and document.read(name, plain(case["yaml"]).encode())[1]
    ]
    assert sorted(refused_ones) == sorted(name for each in listed.values() for name in each["cases"])


def test_what_is_read_of_the_suite_is_what_it_says() -> None:
    read = 0
    for name, case in suite():
        value, refusals = document.read(name, plain(case["yaml"]).encode())
        if refusals or case.get("fail") or case.get("json") is None:
            continue
        wanted = json.loads(case["json"]) if case["json"].strip() else None
        assert same(value, wanted), name
        read += 1
    assert read > 100
