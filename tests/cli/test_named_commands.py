"""Every command that gitmesh names, in an answer, on a page or in its docs, is one that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
import pytest

from gitmesh.cli.main import cli
from tests.real import PROJECT

DOCS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "mesh-repo-template/**/*.md",
    "gitmesh/explain/*.md",
]
TEXTS = [
    *DOCS,
    "tests/cases/refused/*/expected.txt",
    "mesh-repo-template/**/*.yaml",
    "mesh-repo-template/.gitignore",
]
NO_COMMANDS = {"docs/rules.md"}
"""What is copied from elsewhere: the rules name a command that is to be."""
QUOTED = re.compile(r"`(gitmesh [^`\n]+)`")
"""In running text."""
LINE = re.compile(r"^(?:\s*\$ |\s*run: |\s*= answer: (?:.*: )?|)(?:sudo )?(gitmesh [a-z].*)$", re.MULTILINE)
"""In a block of commands, a workflow, or an answer."""
ENDS = {"|", "||", "&&", ">", "#", ";", "&"}


def named_in_texts() -> Iterator[tuple[str, str]]:
    for pattern in TEXTS:
        for path in sorted(PROJECT.glob(pattern)):
            where = str(path.relative_to(PROJECT))
            if where not in NO_COMMANDS:
                text = path.read_text()
                yield from ((where, each) for each in [*QUOTED.findall(text), *LINE.findall(text)])


def named_in_code() -> Iterator[tuple[str, str]]:
    """What messages, answers and `--help` say: the command of an answer, and what stands in backticks."""
    for path in sorted((PROJECT / "gitmesh").rglob("*.py")):
        where = str(path.relative_to(PROJECT))
        tree = ast.parse(path.read_text())
        parts = {
            id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values
        }
        for node in ast.walk(tree):
            if id(node) not in parts:
                yield from ((where, each) for each in QUOTED.findall(_text(node)))
            if isinstance(node, ast.Call):
                given = [*node.args[1:2], *(each.value for each in node.keywords)]
                commands = [_text(each).removeprefix("Example: ").removeprefix("sudo ") for each in given]
                yield from ((where, each) for each in commands if re.match("gitmesh [a-z]", each))


def _text(node: ast.AST) -> str:
    """A string of the source, with a word for each value put in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) if isinstance(each, ast.Constant) else "X" for each in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""


def fault(said: str) -> str | None:
    """What is wrong with a command line. It may leave out arguments, and an option's value."""
    words = []
    for word in said.replace("…", " ").split()[1:]:
        if word in ENDS:
            break
        words.append(word.strip("[](),;.'\"").rstrip(":"))
    command: click.Command = cli
    while isinstance(command, click.Group):
        if not words or words[0].isupper() or words[0].startswith("-"):
            return None
        ctx = click.Context(command, help_option_names=["-h", "--help"])
        found = command.get_command(ctx, words[0])
        if found is None:
            return f"there is no `{words[0]}`"
        command, words = found, words[1:]
    ctx = click.Context(command, help_option_names=["-h", "--help"])
    try:
        _, rest, _ = command.make_parser(ctx).parse_args([each for each in words if each])
    except click.BadOptionUsage:
        return None
    except click.UsageError as wrong:
        return wrong.message
    return f"`{rest[0]}` is one argument too many" if rest else None


@pytest.mark.parametrize("named", [named_in_texts, named_in_code])
def test_a_command_that_is_named_is_there(named: object) -> None:
    assert callable(named)
    said = list(named())
    assert len(said) > 20
    assert [(*each, fault(each[1])) for each in said if fault(each[1]) is not None] == []


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("gitmesh check", True),
        ("gitmesh set gitea@athens web.name VALUE", True),
        ("gitmesh explain gitea@athens[.requirement[.field]]", True),
        ("gitmesh check --format sarif > x.sarif", True),
        ("gitmesh hold me", False),
        ("gitmesh check --fast", False),
        ("gitmesh pin a b c d", False),
    ],
)
def test_what_counts_as_one(said: str, right: bool) -> None:
    assert (fault(said) is None) is right
