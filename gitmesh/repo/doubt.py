"""Which text the fast reader may be trusted with: cheap checks, wrong only on the side of doubt."""

from __future__ import annotations

import re
from functools import lru_cache

from gitmesh.repo.strict import AMBIGUOUS_FORMS, INTEGER, ambiguous

_MAX_BRACKETS = 1_000
"""ryaml's time grows with the square of flow nesting, so text with more is read by the slow reader first."""

_ANY_FORM = "|".join(form for _, form in AMBIGUOUS_FORMS)
_DOUBTFUL = re.compile(
    # Where a node can begin, stands an anchor, alias, tag, `?`, a lone `-`, a number not as JSON has it, or
    # quoted text that goes on in the next line or is a key with its value right behind the colon.
    r"(?:^|[\[{,]|[-:?][ \t]|[\"'\]}][ \t\r\n]*:)[ \t]*(?:[&*!?]|-[,\]}:]|\"[^\"\n]*(?:\":[^\s]|$)|"
    r"'[^'\n]*(?:':[^\s]|$)|"
    rf"(?!(?:0|-?[1-9][0-9]*)(?::?(?:[\s,\]}}]|\Z)))(?:{_ANY_FORM}):?(?:[\s,\]}}]|\Z))"
    # A directive, a marker that is not the one bare `---` of a file.
    r"|^%|^\.\.\.|^---[ \t]*[^\s]|^\ufeff"
    # A comment that begins without a space, blanks where a block scalar begins or a file ends, a tab.
    r"|:[\]},]|[\[{\]},\"']#|[|>][-+0-9]*#"
    r"|[|>][-+0-9]*[ \t]*(?:#.*)?\r?\n[ \t]*\r?$|[ ]\Z|\t"
    # An escaped NUL or half of a character, and what can't be seen.
    r"|\\(?:0|x00|u0000|U00000000|[uU](?:0000)?[dD][89a-fA-F])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)",
    re.MULTILINE,
)
"""Exact but slow: it tries every place. The patterns below each begin with a set of characters that `re`
looks for quickly; together they match wherever this one does, and in most files nowhere."""

_BEGINS = r"(?<![^\s\[{,:].)"
_SUSPICIOUS = tuple(
    re.compile(pattern, re.MULTILINE | re.DOTALL)
    for pattern in (
        rf"[&*!?%]{_BEGINS}",
        r"[\\\ufeff\x00-\x09\x0b-\x1f\x7f]",
        r"-[,\]}:]",
        rf"\"{_BEGINS}[^\"\n]*$",
        rf"'{_BEGINS}[^'\n]*$",
        r":[\]},]",
        r"[\"']:[^\s]",
        r"#(?<=[\[{\]},\"'|>+0-9-].)",
        r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\r?\n[ \t]*\r?$",
    )
)
_NUMBERS = re.compile(rf"[-+.0-9]{_BEGINS}[^\s,\[\]{{}}\"']*", re.DOTALL)
_FLOW = re.compile(r"[\[{].*")
_QUOTED = re.compile(r"(?<=[\s\[{,:])(?:'(?:[^'\n]|'')*'|\"(?:[^\"\\\n]|\\.)*\")")
_INVISIBLE = re.compile("[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def harmless(text: str) -> bool:
    """Whether both readers read this text alike, whatever they make of it, and ryaml in linear time."""
    return (
        text.count("[") + text.count("{") <= _MAX_BRACKETS
        and not (_suspicious(text) and _DOUBTFUL.search(text))
        and not any(map(_goes_on, _FLOW.findall(text)))
        and (text.isascii() or _INVISIBLE.search(text) is None)
    )


def _suspicious(text: str) -> bool:
    return (
        text.endswith(" ")
        or "---" in text
        or "..." in text
        or any(pattern.search(text) for pattern in _SUSPICIOUS)
        or any(map(_is_odd_number, _NUMBERS.findall(text)))
    )


def _goes_on(line: str) -> bool:
    """Whether a flow collection that begins in a line goes on in the next one; its quoted text aside."""
    if "'" in line or '"' in line:
        line = _QUOTED.sub("", line)
    return line.count("[") + line.count("{") > line.count("]") + line.count("}")


@lru_cache(maxsize=4096)
def _is_odd_number(token: str) -> bool:
    token = token.removesuffix(":")
    return ambiguous(token) is not None and INTEGER.fullmatch(token) is None
