"""Refusals for a pull request's comment or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gitmesh.core.refusal import Refusal
from gitmesh.report.located import located, safe
from gitmesh.report.terminal import render as as_text
from gitmesh.report.terminal import summary

LONGEST = 60_000
"""Characters of refusals in one comment; GitHub refuses a comment of more than 65,536."""


def render(refusals: Iterable[Refusal], files: Mapping[str, bytes]) -> str:
    """The terminal's text in one block that nothing in it can close; empty for no refusals.

    `files` are the bytes that were checked. Within the block neither links nor mentions of the repo's
    content come alive (F6). What is too long for a comment is counted instead.
    """
    refusals = tuple(refusals)
    if not refusals:
        return ""
    text, _, _ = as_text(refusals, files, colour=False).rpartition("\n\n")
    body, left = _cut(text)
    fence = "`" * max(3, _longest_run(body) + 1)
    codes = dict.fromkeys(each.code.value for each in refusals)
    more = ", ".join(f"`gitmesh explain {code}`" for code in codes)
    heading = summary(located(refusals, files))
    rest = f"{left} more, which `gitmesh check` shows\n\n" if left else ""
    return f"**gitmesh:** {heading}\n\n{fence}text\n{body}\n{fence}\n\n{rest}More: {more}\n"


def code(text: str) -> str:
    """`text` on one line, as code: no link, no mention and no HTML of it comes alive (F6)."""
    line = safe(text)
    fence = "`" * (_longest_run(line) + 1)
    # Next to a backtick a blank keeps the two apart; it is not shown.
    pad = " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _cut(text: str) -> tuple[str, int]:
    """The refusals that fit, and how many do not; the first is cut short where it alone is too long."""
    if len(text) <= LONGEST:
        return text, 0
    blocks = text.split("\n\n")
    kept = text[: text.rfind("\n\n", 0, LONGEST)] if len(blocks[0]) < LONGEST else text[:LONGEST]
    return kept, len(blocks) - kept.count("\n\n") - 1
