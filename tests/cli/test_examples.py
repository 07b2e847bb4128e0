"""Each command's help ends in an example, and each example is a command line that the command understands."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from gitmesh.cli.main import COMMANDS, Failure, cli

NAMES = [name for commands in COMMANDS.values() for name in commands]


@pytest.mark.parametrize("name", NAMES)
def test_each_help_has_an_example_that_parses(name: str) -> None:
    done = CliRunner().invoke(cli, [name, "--help"])
    assert done.exit_code == 0
    _, found, example = " ".join(done.output.split()).partition("Example: gitmesh ")
    assert found, "no example"
    called, *words = shlex.split(example.partition(" > ")[0].partition(" && ")[0])
    assert called == name
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    with click.Context(command, info_name=name) as ctx:
        _, rest, _ = command.make_parser(ctx).parse_args(list(words))
    assert rest == []


@pytest.mark.rule("F6")
def test_no_error_has_anything_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    Failure("refused by \x1b[31mthe hook\nof \x9bthe remote", "git push \x07").show()
    said = capsys.readouterr().err
    assert said == "error: refused by \\x1b[31mthe hook\nof \\x9bthe remote\n  try: git push \\x07\n"
