"""Says on a terminal what a command is at; says nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gitmesh.cli.main import colourful


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """A function that shows on standard error what is done now, in place of what it showed before."""
    if not colourful(sys.stderr):
        yield lambda text: None
        return
    from rich.console import Console  # here, since a pipe needs none of it

    with Console(stderr=True).status("") as status:
        yield status.update
