"""The identity that the mesh mints for a consumer: `${consumer:as}` (B14, FORMATS "Identity")."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from gitmesh.core.model import Assignment

LONGEST = 18
"""Both logins of a rotation, `<as>_a` and `<as>_b`, then fit the tightest backend's twenty characters."""


@lru_cache(maxsize=1 << 16)
def mint(module: str, node: str, word: str | None = None) -> str:
    """The identity of `module@node`, with the requirement's `as:` word where it has one.

    A pure function of the ids: readable where it fits and no id has a `-` (which is written `_` and
    would make two ids one), else the first twelve characters, `_`, and five hex digits of a digest.
    """
    ids = (module, node) if word is None else (module, node, word)
    readable = "_".join(ids).replace("-", "_")
    if len(readable) <= LONGEST and not any("-" in part for part in ids):
        return readable
    digest = hashlib.sha256("@".join(ids).encode()).hexdigest()[:5]
    return f"{readable[:12]}_{digest}"


def identity_of(assignment: Assignment, word: str | None) -> str:
    """What an assignment is called everywhere; its own `as:` keeps it through a move or an adoption."""
    if assignment.as_ is None:
        return mint(assignment.module, assignment.node, word)
    return assignment.as_ if word is None else f"{assignment.as_}_{word.replace('-', '_')}"


def dns(identity: str) -> str:
    """The same name as a DNS label."""
    return identity.replace("_", "-")


def logins(identity: str) -> tuple[str, str]:
    """What the consumer logs in with, one for each slot of a rotation."""
    return f"{identity}_a", f"{identity}_b"
