"""docs/commands.md has every command, with the formats that it really prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from gitmesh.cli.main import cli
from tests.real import PROJECT

TEXT = (PROJECT / "docs/commands.md").read_text()
ROW = re.compile(r"^\| `gitmesh ([a-z ]+)` \| [^|]+ \| ([0-9 ]+) \| ([^|]*)\|$", re.MULTILINE)
ROWS = {name: (codes.split(), re.findall("`([a-z]+)`", forms)) for name, codes, forms in ROW.findall(TEXT)}
CODES = re.findall(r"^\| ([0-9]+) \|", TEXT, re.MULTILINE)


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by the words that call it."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        else:
            yield " ".join([*names, name]), command


COMMANDS = dict(commands(cli))


def test_every_command_has_its_line_in_the_order_of_the_help() -> None:
    assert list(ROWS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_its_line_has_its_formats_and_its_exit_codes(name: str) -> None:
    codes, forms = ROWS[name]
    types = [each.type for each in COMMANDS[name].params if each.name == "form"]
    choices = [each.choices for each in types if isinstance(each, click.Choice)]
    assert [forms] == [list(each) for each in choices] or (forms == [] and choices == [])
    assert set(codes) <= set(CODES) and codes == sorted(codes, key=int)
    said = " ".join((COMMANDS[name].help or "").split())
    assert set(re.findall(r"(?:[Ee]xit codes?:? |exits with |; |, )([0-9]+)(?=[:).,])", said)) <= set(codes)


def test_it_is_linked() -> None:
    assert "docs/commands.md" in (PROJECT / "README.md").read_text()
