"""A page for each refusal, and the command that shows it."""

from __future__ import annotations

import json
import re
import shlex
from io import StringIO

import click
import pytest
from click.testing import CliRunner

from gitmesh import explain
from gitmesh.cli.main import cli
from gitmesh.core.refusal import Code
from gitmesh.report import page
from tests.real import PROJECT, shared

HEADINGS = ["## The smallest mesh that shows it", "## The ways out"]


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_its_page(code: Code) -> None:
    page = explain.page(code.value)
    assert page.startswith(f"# {code.value}\n\n")
    assert re.findall(r"^## .*$", page, re.MULTILINE) == HEADINGS
    text, shows, ways = re.split("|".join(map(re.escape, HEADINGS)), page)
    assert len(re.findall(r"[.]\s", text)) >= 2, "what it means, in more than one sentence"
    assert "```yaml\n" in shows
    assert re.search(r"^- ", ways, re.MULTILINE)
    assert all(len(line) <= 120 for line in page.split("\n"))
    assert page.endswith(f"\nRule: {explain.rule(code.value)}\n")


def test_every_page_has_a_code() -> None:
    pages = {each.stem for each in (PROJECT / "gitmesh/explain").glob("*.md")}
    assert pages == {code.value for code in Code}


def test_every_rule_is_one() -> None:
    rules = set(re.findall(r"^\| ([A-G][0-9]+) \|", shared("RULES.md").read_text(), re.MULTILINE))
    assert {explain.rule(code.value) for code in Code} <= rules


COMMANDS_ON_PAGES = sorted(
    {
        line
        for each in (PROJECT / "gitmesh/explain").glob("*.md")
        for line in set(re.findall(r"`gitmesh ([a-z][^`]*)`", each.read_text()))
    }
)


@pytest.mark.parametrize("line", COMMANDS_ON_PAGES)
def test_a_command_on_a_page_is_a_command(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"no command is called {name}"
    if arguments:
        command.make_context(name, arguments)


def test_it_prints_the_page() -> None:
    done = CliRunner().invoke(cli, ["explain", "ambiguous-provider"])
    assert done.exit_code == 0
    assert done.output == explain.page("ambiguous-provider")


def test_on_a_terminal_it_is_laid_out() -> None:
    shown = StringIO()
    page.show(explain.page("ambiguous-provider"), shown, columns=80)
    text = re.sub("\x1b\\[[0-9;]*m", "", shown.getvalue())
    assert "\x1b[" in shown.getvalue() and "```" not in text
    assert "# assignments/delphi/postgres.yaml" in text and "Rule: B4" in text
    assert max(map(len, text.splitlines())) <= 80


def test_it_takes_what_stands_in_a_report() -> None:
    done = CliRunner().invoke(cli, ["explain", "refused[seat-unheld]"])
    assert done.output == explain.page("seat-unheld")
    assert CliRunner().invoke(cli, ["explain", "SEAT_UNHELD"]).output == done.output


def test_it_lists_all() -> None:
    done = CliRunner().invoke(cli, ["explain"])
    lines = done.output.splitlines()
    assert [line.split()[0] for line in lines] == [code.value for code in Code]
    assert all(line.endswith(".") for line in lines)


def test_json() -> None:
    listed = json.loads(CliRunner().invoke(cli, ["explain", "--format", "json"]).output)
    assert [each["code"] for each in listed["codes"]] == [code.value for code in Code]
    one = json.loads(CliRunner().invoke(cli, ["explain", "pin-bad", "--format", "json"]).output)
    assert one["rule"] == "B1" and one["page"] == explain.page("pin-bad") and one["v"] == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [("ambigous-provider", "ambiguous-provider"), ("cyle", "cycle"), ("loosens", "narrow-loosens")],
)
def test_an_unknown_code_names_the_nearest(given: str, meant: str) -> None:
    done = CliRunner().invoke(cli, ["explain", given])
    assert done.exit_code == 2
    assert f"`{meant}`" in done.output


def test_a_code_from_nowhere_is_no_path() -> None:
    done = CliRunner().invoke(cli, ["explain", "../../README"])
    assert done.exit_code == 2
    with pytest.raises(KeyError):
        explain.page("../__init__")
