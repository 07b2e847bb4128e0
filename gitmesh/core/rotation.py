"""The life of a credential, pure (RULES D2): so far its first steps, from nothing to a reader that has it.

A credential that a provider applies goes to the applier first, and to its readers once the applier has
confirmed; a module's own secret, and one that nobody applies, goes to its readers at once.
"""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Where a secret's current version stands."""

    ENSURE = "ensure"
    """only the applier has it, and has to confirm it"""
    CURRENT = "current"
    """every recipient may read it"""


def phase(applied: bool, confirmed: bool, before: Phase | None) -> Phase:
    """The phase of a version: `applied` by a provider, which `confirmed` it; `before` is where it stood.

    A confirm that is not repeated, from a provider that is down or was rebuilt, takes nothing back.
    """
    if not applied or confirmed or before is Phase.CURRENT:
        return Phase.CURRENT
    return Phase.ENSURE
