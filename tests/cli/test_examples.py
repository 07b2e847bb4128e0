"""Each command's help ends in an example, and each example is a command line that the command understands."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from gitmesh.cli.main import COMMANDS, Failure, cli

TOP = [name for commands in COMMANDS.values() for name in commands]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that a command line names, and the words after its name."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words[0]
        command, words = found, words[1:]
    return command, words


def names() -> list[str]:
    """Every command, those of a group by both words."""
    groups = {name: command_of([name])[0] for name in TOP}
    below = [
        f"{name} {each}"
        for name, group in groups.items()
        if isinstance(group, click.Group)
        for each in group.commands
    ]
    return [*TOP, *below]


@pytest.mark.parametrize("name", names())
def test_each_help_has_an_example_that_parses(name: str) -> None:
    done = CliRunner().invoke(cli, [*name.split(), "--help"])
    assert done.exit_code == 0
    _, found, example = " ".join(done.output.split()).partition("Example: gitmesh ")
    assert found, "no example"
    assert f"{example} ".startswith(f"{name} ")
    command, words = command_of(shlex.split(example.partition(" > ")[0].partition(" && ")[0]))
    with click.Context(command, info_name=name, help_option_names=["-h", "--help"]) as ctx:
        _, rest, _ = command.make_parser(ctx).parse_args(words)
    assert rest == []


@pytest.mark.rule("F6")
def test_no_error_has_anything_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    Failure("refused by \x1b[31mthe hook\nof \x9bthe remote", "git push \x07").show()
    said = capsys.readouterr().err
    assert said == "error: refused by \\x1b[31mthe hook\nof \\x9bthe remote\n  try: git push \\x07\n"
