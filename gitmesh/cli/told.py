"""How a command that could not be done is told where a program reads it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from gitmesh.cli.main import Failure


@contextmanager
def told_as(form: str) -> Iterator[None]:
    """Inside, a Failure or a RepoError is told as JSON on standard output where `form` is json."""
    from gitmesh.repo.git import RepoError

    try:
        yield
    except (Failure, RepoError) as error:
        if form != "json":
            raise
        from gitmesh.report import json as as_json

        click.echo(as_json.dump(as_json.failed(error.message, error.command)))
        sys.exit(error.exit_code if isinstance(error, Failure) else Failure.exit_code)
