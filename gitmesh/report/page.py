"""A refusal's page as a terminal shows it."""

from __future__ import annotations

from typing import IO

WIDEST = 100
"""Columns that a page takes at most; longer lines are hard to read."""


def show(page: str, stream: IO[str], columns: int | None = None) -> None:
    """Write a page's Markdown, laid out and coloured, to a terminal of `columns` (None: as it says)."""
    from rich.console import Console  # here, since it takes longer to import than a pipe takes to be served
    from rich.markdown import Markdown

    console = Console(file=stream, force_terminal=True, width=columns, highlight=False)
    console.print(Markdown(page, code_theme="ansi_dark"), width=min(console.width, WIDEST))
