"""Whose changed answers are held back until a commit accepts them (B12). Pure: no answer is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitmesh.core.declaration import AnswersSpec
from gitmesh.core.model import Json


@dataclass(frozen=True, slots=True)
class TakenAnswer:
    """What a provider answered when it was taken, and what the declaration said of the requirement then."""

    spec: AnswersSpec
    fields: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class TakenAnswers:
    """The answers that a node goes by, by its consumers' requirements."""

    requirements: Mapping[str, TakenAnswer] = field(default_factory=dict)

    def answers(self, answered: Mapping[str, Mapping[str, Json]]) -> dict[str, Mapping[str, Json]]:
        """What counts of each requirement that is answered now."""
        return {
            to: self.requirements[to].fields if to in self.requirements else answered[to] for to in answered
        }


def hold_back(
    declared: Mapping[str, AnswersSpec], answered: Mapping[str, Mapping[str, Json]], before: TakenAnswers
) -> tuple[TakenAnswers, tuple[str, ...]]:
    """What the node goes by from now on, and a remark for each requirement whose changed answer is held back.

    A first answer is taken, and so is one to a requirement of which the declaration now says anything else: a
    commit did that. A requirement that is answered nothing keeps what it had, or silence would be a way to
    another answer.
    """
    taken: dict[str, TakenAnswer] = {}
    remarks: list[str] = []
    for to, spec in sorted(declared.items()):
        had, now = before.requirements.get(to), answered.get(to)
        unchanged = had is not None and had.spec == spec
        if had is not None and (unchanged or now is None):
            taken[to] = had
        elif now is not None:
            taken[to] = TakenAnswer(spec, now)
        if had is not None and unchanged and now is not None and now != had.fields:
            remarks.append(_remark(to, spec, had.fields, now))
    return TakenAnswers(taken), tuple(remarks)


def _remark(to: str, spec: AnswersSpec, had: Mapping[str, Json], now: Mapping[str, Json]) -> str:
    assignment, _, requirement = to.rpartition(".")
    changed = ", ".join(name for name in sorted(spec.fields) if had.get(name) != now.get(name))
    return (
        f"{assignment}: held back: {spec.by} answers another {changed} for {requirement}; accept it with "
        f"rotations.yaml: {{{to}: {spec.generation + 1}}}"
    )
