"""How refusals look to a person (DESIGN §3), whatever the repo's files hold."""

from __future__ import annotations

import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.refusal import NOWHERE, Answer, At, Code, Refusal, Related, Span
from gitmesh.report.located import WIDEST, columns, located, safe
from gitmesh.report.terminal import render

AMBIGUOUS = Refusal(
    Code.AMBIGUOUS_PROVIDER,
    "gitea@athens.database",
    "2 providers of `postgres-database` and no choice made",
    At("assignments/athens/gitea.yaml"),
    "no pin for `database`",
    related=(Related(At("modules/gitea/module.yaml", ("requires", "database")), "required here"),),
    answers=(
        Answer(
            "pin `postgres@sparta` (holds `mesh-store`)",
            "gitmesh pin gitea@athens database postgres@sparta",
        ),
        Answer("write it by hand"),
    ),
)
FILES = {
    "assignments/athens/gitea.yaml": b"values: {web.name: git.example.org}\n",
    "modules/gitea/module.yaml": b"module: gitea\nrequires:\n  database: {module: postgres-database}\n",
}


def shown(*refusals: Refusal, **files: bytes) -> str:
    return render(refusals, {f"{name}.yaml": blob for name, blob in files.items()}, colour=False)


def at_span(
    line: int, column: int, end_column: int, file: str = "x.yaml", end_line: int | None = None
) -> Refusal:
    span = Span(line, column, line if end_line is None else end_line, end_column)
    return Refusal(Code.SCHEMA, "x", "wrong", At(file, span=span), "here")


@pytest.mark.rule("B10")
def test_the_sample_of_the_design() -> None:
    assert render([AMBIGUOUS], FILES, colour=False) == (
        "refused[ambiguous-provider]: gitea@athens.database: "
        "2 providers of `postgres-database` and no choice made\n"
        "  --> assignments/athens/gitea.yaml:1:1\n"
        "1 | values: {web.name: git.example.org}\n"
        "  | ^ no pin for `database`\n"
        "  ::: modules/gitea/module.yaml:3:3\n"
        "3 |   database: {module: postgres-database}\n"
        "  |   -------- required here\n"
        "  = answer: pin `postgres@sparta` (holds `mesh-store`): "
        "gitmesh pin gitea@athens database postgres@sparta\n"
        "  = answer: write it by hand\n"
        "\n"
        "1 refusal in 1 file; nothing is deployed until it is answered\n"
    )


@pytest.mark.rule("B10")
def test_every_refusal_is_shown_and_counted() -> None:
    other = Refusal(
        Code.FILE_MISSING, "mesh", "there is no mesh.yaml", At("mesh.yaml"), "the mesh's own file"
    )
    text = render([AMBIGUOUS, other, other], FILES, colour=False)
    assert text.count("refused[") == 3
    assert "  --> mesh.yaml (the mesh's own file)\n" in text
    assert text.endswith("\n\n3 refusals in 2 files; nothing is deployed until they are answered\n")


def test_nothing_refused_says_nothing() -> None:
    assert render([], {}, colour=False) == ""


def test_a_refusal_of_no_file_has_no_place() -> None:
    refusal = Refusal(Code.SCHEMA, "x", "wrong", NOWHERE, related=(Related(NOWHERE, "built in"),))
    assert shown(refusal) == (
        "refused[schema]: x: wrong\n\n1 refusal; nothing is deployed until it is answered\n"
    )


def test_an_empty_file_is_marked_at_its_beginning() -> None:
    text = shown(Refusal(Code.VALUE_MISSING, "x", "no value", At("x.yaml"), "no value"), x=b"")
    assert "  --> x.yaml:1:1\n1 |\n  | ^ no value\n" in text


def test_line_numbers_are_aligned() -> None:
    refusal = Refusal(
        Code.SCHEMA,
        "x",
        "wrong",
        At("x.yaml", span=Span(9, 1, 9, 2)),
        "here",
        related=(Related(At("x.yaml", span=Span(120, 1, 120, 2)), "there"),),
    )
    text = shown(refusal, x=b"k: v\n" * 130)
    assert (
        "    --> x.yaml:9:1\n  9 | k: v\n    | ^ here\n    ::: x.yaml:120:1\n120 | k: v\n    | - there\n"
        in text
    )


def test_wide_characters_and_tabs_keep_the_mark_below_its_text() -> None:
    line = "\t名前: 'e\u0301': value"
    start = line.index("value") + 1
    text = shown(at_span(1, start, start + 5), x=f"{line}\n".encode())
    source, mark = text.split("\n")[2:4]
    before = mark.partition("^")[0].removeprefix("  | ")
    assert columns(source.removeprefix("1 | ").partition("value")[0]) == len(before)
    assert "^^^^^ here" in mark


def test_windows_line_ends_and_a_byte_order_mark_are_not_shown() -> None:
    text = shown(at_span(2, 1, 4), x=b"\xef\xbb\xbfone: 1\r\ntwo: 2\r\n")
    assert "2 | two: 2\n  | ^^^ here\n" in text
    assert "\r" not in text and "\ufeff" not in text


def test_a_span_over_lines_is_marked_to_the_end_of_its_first() -> None:
    text = shown(at_span(1, 4, 3, end_line=3), x=b"a: {b: 1,\n c: 2,\n}\n")
    assert "1 | a: {b: 1,\n  |    ^^^^^^ here\n" in text


@pytest.mark.parametrize("start", [1, 5_000, 199_990])
def test_a_long_line_is_cut_around_its_mark(start: int) -> None:
    line = "".join(f"{number:05}" for number in range(40_000))
    wanted = line[start - 1 : start + 4]
    text = shown(at_span(1, start, start + 5), x=line.encode())
    source, mark = text.split("\n")[2:4]
    left = mark.index("^")
    assert source[left : left + 5] == wanted
    assert mark[left:].startswith("^^^^^ ")
    assert columns(source) <= WIDEST + len("1 | ") + 1
    assert source.endswith("…") == (start + 4 + WIDEST < len(line) or start == 1)
    assert source.startswith("1 | …") == (start > WIDEST)


def test_a_mark_longer_than_the_screen_is_cut_with_its_line() -> None:
    text = shown(at_span(1, 4, 50_000), x=b"k: " + b"v" * 60_000)
    source, mark = text.split("\n")[2:4]
    assert len(source) <= WIDEST + 5
    assert mark.count("^") <= WIDEST


@pytest.mark.parametrize("line", [3, 10**9])
def test_a_place_behind_the_end_shows_no_source(line: int) -> None:
    assert f"  --> x.yaml:{line}:1 (here)\n" in shown(at_span(line, 1, 2), x=b"a: 1\n")


@pytest.mark.rule("F6")
def test_what_a_terminal_would_obey_is_written_out() -> None:
    hostile = "\x1b]0;owned\x07 \x1b[2J \u202eevil\u202c \u200b \u2028 \x9b31m \x00"
    refusal = Refusal(
        Code.SCHEMA,
        hostile,
        hostile,
        At("x.yaml", span=Span(1, 1, 1, 3)),
        hostile,
        related=(Related(At(f"{hostile}.yaml"), hostile),),
        answers=(Answer(hostile, hostile),),
    )
    text = shown(refusal, x=hostile.encode())
    assert text.isprintable() or set(filter(lambda each: not each.isprintable(), text)) == {"\n"}
    assert "\\x1b]0;owned\\x07" in text
    assert "\\u202eevil" in text


@pytest.mark.rule("F6")
@given(st.binary(max_size=300), st.integers(1, 5), st.integers(1, 300), st.integers(0, 300))
def test_no_file_makes_it_fail_or_injects(blob: bytes, line: int, column: int, width: int) -> None:
    text = shown(at_span(line, column, column + width), x=blob)
    assert {each for each in text if not each.isprintable()} <= {"\n"}
    assert all(columns(each) <= WIDEST + 20 for each in text.split("\n"))


@pytest.mark.rule("C10")
@pytest.mark.parametrize("file", ["handed/relay.yaml", "trust/1.root.json", "modules/x/secrets.env"])
def test_where_a_secret_may_stand_by_mistake_only_the_place_is_shown(file: str) -> None:
    text = render([at_span(1, 1, 3, file)], {file: b"value: GMCANARY-in-the-clear\n"}, colour=False)
    assert f"  --> {file}:1:1 (here)\n" in text
    assert "GMCANARY" not in text


def test_colour_adds_nothing_but_colour() -> None:
    plain = render([AMBIGUOUS], FILES, colour=False)
    coloured = render([AMBIGUOUS], FILES, colour=True)
    assert coloured != plain
    assert click.unstyle(coloured) == plain


def test_safe_keeps_what_can_be_read() -> None:
    assert safe("gitea@athens: `größe` 名前") == "gitea@athens: `größe` 名前"


@given(st.text(max_size=60))
def test_columns_agree_with_unicode(text: str) -> None:
    wide = sum(unicodedata.east_asian_width(each) in ("W", "F") for each in text)
    assert columns(text) <= len(text) + wide


def test_located_keeps_the_order() -> None:
    other = at_span(1, 1, 2)
    assert [each.refusal for each in located([AMBIGUOUS, other], FILES)] == [AMBIGUOUS, other]
