"""Refusals in a pull request: annotations, and a comment."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import NOWHERE, Answer, At, Code, Refusal, Span
from gitmesh.report import github, markdown
from gitmesh.report.terminal import render

FILES = {"a.yaml": b"one: 1\ntwo: 2\n"}


def refusal(at: At = NOWHERE, text: str = "wrong") -> Refusal:
    return Refusal(
        Code.SCHEMA, "a.yaml", text, at, answers=(Answer("mend it", "git mv a b"), Answer("or not"))
    )


@pytest.mark.parametrize(
    ("at", "head"),
    [
        (At("a.yaml", ("two",)), "file=a.yaml,line=2,endLine=2,col=1,endColumn=4,title=schema"),
        (At("a.yaml", span=Span(1, 2, 2, 3)), "file=a.yaml,line=1,endLine=2,title=schema"),
        (At("b.yaml"), "file=b.yaml,title=schema"),
        (NOWHERE, "title=schema"),
    ],
)
def test_an_annotation_stands_at_its_place(at: At, head: str) -> None:
    line = f"::error {head}::a.yaml: wrong%0Amend it: git mv a b%0Aor not\n"
    assert github.render([refusal(at)], FILES) == line


@pytest.mark.rule("F6")
def test_an_annotation_begins_no_command_of_its_own() -> None:
    hostile = "100%\n::set-env name=PATH::/opt/x\r\n::error::x"
    printed = github.render([refusal(At("x,line=9:\n::stop-commands::y"), hostile)], {})
    assert printed.count("\n") == 1
    head, _, message = printed.removeprefix("::error ").partition("::")
    assert head == "file=x%2Cline=9%3A\\n%3A%3Astop-commands%3A%3Ay,title=schema"
    assert message.startswith("a.yaml: 100%25\\n::set-env")


@pytest.mark.rule("F6")
@pytest.mark.parametrize(
    ("said", "in_message", "in_property"),
    [
        ("100%", "100%25", "100%25"),
        ("%0A", "%250A", "%250A"),
        ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
        ("a:b", "a:b", "a%3Ab"),
        ("a,b", "a,b", "a%2Cb"),
        ("::error::", "::error::", "%3A%3Aerror%3A%3A"),
        ("]; #=", "]; #=", "]; #="),
        ("é 漢 😀", "é 漢 😀", "é 漢 😀"),
    ],
)
def test_it_escapes_as_the_runners_own_toolkit(said: str, in_message: str, in_property: str) -> None:
    # `escapeData` and `escapeProperty` of actions/toolkit, packages/core/src/command.ts.
    assert github.escape_message(said) == in_message
    assert github.escape_property(said) == in_property


def test_a_comment_has_everything_and_a_heading() -> None:
    found = [refusal(At("a.yaml", ("two",))), refusal(At("a.yaml", ("one",)))]
    text = markdown.render(found, FILES)
    assert text.startswith(
        "**gitmesh:** 2 refusals in 1 file; nothing is deployed until they are answered\n\n```text\nrefused["
    )
    assert render(found, FILES, colour=False).rpartition("\n\n")[0] in text
    assert text.endswith("\n```\n\nMore: `gitmesh explain schema`\n")


@pytest.mark.rule("F6")
def test_nothing_in_a_comment_closes_its_block() -> None:
    at = At("a.yaml", span=Span(2, 1, 2, 2))
    text = markdown.render([refusal(at, "`````` @everyone")], {"a.yaml": b"a: |\n```` [x](https://evil)\n"})
    lines = text.split("\n")
    fence = next(line for line in lines if line.endswith("text")).removesuffix("text")
    assert fence == "`" * 7
    assert lines.count(fence) == 1
    assert lines.index(fence) > next(number for number, line in enumerate(lines) if "evil" in line)


def test_nothing_refused_says_nothing() -> None:
    assert markdown.render([], {}) == github.render([], {}) == ""


def many(count: int, text: str = "wrong") -> list[Refusal]:
    return [refusal(At(f"{number:04}.yaml"), f"{number} {text}") for number in range(count)]


@pytest.mark.rule("B10")
@pytest.mark.parametrize(("count", "lines", "left"), [(9, 9, 0), (10, 10, 0), (11, 10, 2), (40, 10, 31)])
def test_the_tenth_annotation_counts_what_the_runner_would_drop(count: int, lines: int, left: int) -> None:
    printed = github.render(many(count), {}).splitlines()
    assert len(printed) == lines
    assert all(each.startswith("::error file=") for each in printed[: lines - 1])
    assert printed[-1].startswith(f"::error title=gitmesh::{left} more refusals") == bool(left)


def test_a_comment_is_no_longer_than_a_forge_takes() -> None:
    whole = markdown.render(many(400), {})
    assert "more, which" not in whole
    found = many(2000)
    text = markdown.render(found, {})
    shown = text.count("\nrefused[")
    assert 300 < shown < 2000 and len(text) < 65_536
    assert f"\n```\n\n{2000 - shown} more, which `gitmesh check` shows\n\nMore: " in text
    one = markdown.render(many(2, "x" * 70_000), {})
    assert len(one) < 65_536 and "\n1 more, which" in one


@pytest.mark.rule("F6")
@pytest.mark.parametrize(
    ("text", "shown"),
    [("a", "`a`"), ("`@ada`", "`` `@ada` ``"), ("a``b", "``` a``b ```"), ("a\nb\x1b", r"`a\nb\x1b`")],
)
def test_code_on_a_line_stays_code(text: str, shown: str) -> None:
    assert markdown.code(text) == shown
