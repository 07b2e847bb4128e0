"""The page of each refusal code: what it means, the smallest mesh that shows it, the ways out."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gitmesh.core.refusal import Code

_FOLDER = Path(__file__).resolve().parent
_RULE = re.compile(r"^Rule: ([A-Z][0-9]+)$", re.MULTILINE)


@cache
def page(code: str) -> str:
    """The page of `code`, Markdown. Raises `KeyError` for what is no code."""
    if code not in [each.value for each in Code]:
        raise KeyError(code)
    return (_FOLDER / f"{code}.md").read_text("utf-8")


def rule(code: str) -> str:
    """The id of the rule that `code` enforces, as its page says it."""
    found = _RULE.search(page(code))
    if found is None:
        raise ValueError(f"the page of {code} names no rule")
    return found[1]


def summary(code: str) -> str:
    """The first sentence of the page, on one line."""
    paragraph = page(code).split("\n\n")[1].replace("\n", " ")
    return re.split(r"(?<=[.!?]) ", paragraph)[0]
