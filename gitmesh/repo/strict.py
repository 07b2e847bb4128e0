"""The rules of strict YAML that its readers and its editor share (DESIGN §9)."""

from __future__ import annotations

import re

from gitmesh.core.model import Json

MAX_BYTES = 256 * 1024
MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
MAX_EVENTS = 20_000
MAX_PROBLEMS = 100

AMBIGUOUS_FORMS = (
    ("a number with a leading zero", r"[-+]?0[0-9_]+|[-+]0"),
    ("an octal, hexadecimal or binary number", r"[-+]?0(?:o[0-7_]+|x[0-9a-fA-F_]+|b[01_]+)"),
    ("a number with `_`", r"[-+]?[0-9][0-9]*_[0-9_]*(?:\.[0-9_]*)?"),
    ("a number with a plus sign", r"\+[0-9]+"),
    ("a date", r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9][0-9:.]*[ \t]*(?:Z|[-+][0-9:]+)?)?"),
    ("what some readers take for minutes or degrees", r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"),
    (
        "a number with a point or an exponent",
        r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?",
    ),
    ("infinity", r"[-+]?\.(?:inf|Inf|INF)"),
    ("not-a-number", r"\.(?:nan|NaN|NAN)"),
)
INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_AMBIGUOUS = tuple((said, re.compile(form)) for said, form in AMBIGUOUS_FORMS)
WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def ambiguous(text: str) -> str | None:
    """What an unquoted scalar looks like to some reader that is not text, an integer or a word; None if
    every reader takes it for the same (S26)."""
    if not text or not (text[0].isdigit() or text[0] in "+-."):
        return None
    return next((said for said, form in _AMBIGUOUS if form.fullmatch(text)), None)


def resolve_plain(text: str) -> Json:
    """What an unquoted scalar means; raises `ValueError` where that would be refused."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if ambiguous(text):
        raise ValueError("the scalar has to be quoted")
    return text


def same(one: Json, other: Json) -> bool:
    """Equal, and of equal types all the way down (`True == 1` in Python)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def show(keys: tuple[str | int, ...]) -> str:
    """Keys as a path, `requires.database.narrow` or `command[2]`, fit for a terminal."""
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        else:
            path += ("." if path else "") + name(key)
    return path or "(top level)"


def name(text: str) -> str:
    """A key or another name as it may be shown: printable and short."""
    shown = "".join(each if each.isprintable() else "\ufffd" for each in text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
