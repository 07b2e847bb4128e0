"""Who waits on whom (B11): pure, and used by the host, by status and by the tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gitmesh.core.declaration import AnswerHole, Declaration, assignment_holes


@dataclass(frozen=True, slots=True)
class Waiting:
    """`assignment` waits on `on` (a provider's assignment, or `mesh-vault`) for `requirement`."""

    assignment: str
    on: str
    requirement: str


def waiting(
    declaration: Declaration, secrets: Collection[str], answers: Mapping[str, Collection[str]]
) -> tuple[Waiting, ...]:
    """What each assignment of the node still waits for.

    `secrets`: the ids whose value the node may read now; `answers`: by the consumer's requirement
    (`gitea@athens.stats`), the fields that arrived. A secret that a provider applies is waited for
    there, any other at the vault.
    """
    found: dict[Waiting, None] = {}
    for id_, spec in sorted(declaration.assignments.items()):
        for hole in assignment_holes(spec):
            if isinstance(hole, AnswerHole):
                if hole.field not in answers.get(hole.to, ()):
                    found[Waiting(id_, hole.by, hole.to)] = None
            elif hole.secret not in secrets:
                by = declaration.secrets[hole.secret].by
                found[Waiting(id_, by or "mesh-vault", hole.secret)] = None
    return tuple(found)
