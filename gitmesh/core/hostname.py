"""One spelling of each public name: what is compared, and what is told to both ends (B9)."""

from __future__ import annotations

import unicodedata

_DOTS = str.maketrans({"\u3002": ".", "\uff0e": ".", "\uff61": "."})
"""The full stops that IDNA counts as one."""


def canonical(name: str) -> str:
    """`name` in lower case, without the last dot, each label in the ASCII form that DNS holds.

    The labels are made as browsers make them (IDNA 2008). Python's own codec is of 2003, and would take
    `straße.example` to `strasse.example`, which may be somebody else's.
    """
    if name.isascii():
        return name.lower().removesuffix(".")
    mapped = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name.translate(_DOTS)).lower())
    return ".".join(_label(each) for each in mapped.removesuffix(".").split("."))


def _label(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}"
