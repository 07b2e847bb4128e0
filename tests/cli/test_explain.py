"""A page for each refusal, and the command that shows it."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from gitmesh import explain
from gitmesh.cli.main import COMMANDS, cli
from gitmesh.core.refusal import Code
from gitmesh.repo.document import read
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


@pytest.mark.parametrize("code", list(Code))
def test_its_meshes_are_what_they_claim(code: Code) -> None:
    """Each snippet is strict YAML, save where the page is about YAML that is not."""
    not_yaml = {
        Code.YAML_SYNTAX,
        Code.YAML_FEATURE,
        Code.YAML_SCALAR,
        Code.YAML_DUPLICATE_KEY,
        Code.FILE_CONFLICT,
    }
    snippets = re.findall(r"```yaml\n(.*?)```", explain.page(code.value), re.DOTALL)
    refused = {each.code for snippet in snippets for each in read("x.yaml", snippet.encode())[1]}
    assert refused == ({code} if code in not_yaml else set())


def test_every_page_has_a_code() -> None:
    pages = {each.stem for each in (PROJECT / "gitmesh/explain").glob("*.md")}
    assert pages == {code.value for code in Code}


def test_every_rule_is_one() -> None:
    rules = set(re.findall(r"^\| ([A-G][0-9]+) \|", shared("RULES.md").read_text(), re.MULTILINE))
    assert {explain.rule(code.value) for code in Code} <= rules


def test_a_command_on_a_page_is_a_command() -> None:
    known = {name for commands in COMMANDS.values() for name in commands}
    named = {
        (code.value, name)
        for code in Code
        for name in re.findall(r"`gitmesh ([a-z]+)", explain.page(code.value))
    }
    assert named
    assert {each for each in named if each[1] not in known} == set()


def test_it_prints_the_page() -> None:
    done = CliRunner().invoke(cli, ["explain", "ambiguous-provider"])
    assert done.exit_code == 0
    assert done.output == explain.page("ambiguous-provider")


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
