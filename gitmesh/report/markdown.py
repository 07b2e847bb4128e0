"""Refusals for a pull request's comment or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gitmesh.core.refusal import Refusal
from gitmesh.report.located import located
from gitmesh.report.terminal import render as as_text
from gitmesh.report.terminal import summary


def render(refusals: Iterable[Refusal], files: Mapping[str, bytes]) -> str:
    """The terminal's text in one block that nothing in it can close; empty for no refusals.

    `files` are the bytes that were checked. Within the block neither links nor mentions of the repo's
    content come alive (F6).
    """
    refusals = tuple(refusals)
    if not refusals:
        return ""
    body, _, _ = as_text(refusals, files, colour=False).rpartition("\n\n")
    longest = max(map(len, re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    codes = dict.fromkeys(each.code.value for each in refusals)
    more = ", ".join(f"`gitmesh explain {code}`" for code in codes)
    heading = summary(located(refusals, files))
    return f"**gitmesh:** {heading}\n\n{fence}text\n{body}\n{fence}\n\nMore: {more}\n"
