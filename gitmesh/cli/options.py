"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]

repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The mesh repo; else the one that the current folder lies in.",
)


def formats(*forms: str, told: str = "How to print the result.") -> Callable[[Command], Command]:
    """`--format`, which is one of `forms`, the first unless said; `told` is its help."""
    choice = click.Choice(forms)
    return click.option("--format", "form", type=choice, default=forms[0], show_default=True, help=told)


format_option = formats("text", "json")
