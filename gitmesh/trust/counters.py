"""What a node has seen of each authority, so that nothing goes back (SECURITY decision 6).

Each authority has its own mark; the node keeps them between pulls (`Counters`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

from gitmesh.core.model import Json
from gitmesh.trust import shape
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.shape import AtLeast, Matches, Misshapen

Number = Annotated[int, AtLeast(0)]


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest document seen of one authority: its epoch (0 where it has none), number and digest."""

    seq: Number = 0
    digest: Annotated[str, Matches(r"([0-9a-f]{64})?", "a sha256 in lower-case hex, or nothing")] = ""
    epoch: Number = 0

    def advance(self, new: Mark, name: str) -> Mark:
        """`new`, which may be newer or the same. Raises `Refused`: rollback, equivocation (S1–S3, S10)."""
        if (new.epoch, new.seq) < (self.epoch, self.seq):
            raise Refused(Why.ROLLBACK, f"{name}: number {new.seq}, and {self.seq} was seen before")
        if (new.epoch, new.seq) == (self.epoch, self.seq) and self.digest not in ("", new.digest):
            raise Refused(Why.EQUIVOCATION, f"{name}: number {new.seq} was seen before with another content")
        return new


NEVER = Mark()


@dataclass(frozen=True, slots=True)
class Counters:
    """Every mark that a node keeps. `secrets` are versions by secret; `newest` is the newest time that the
    root, an approval or a deploy was issued at, in seconds: the clock never counts as earlier (S6)."""

    root_version: Number
    approval: Mark = NEVER
    deploy: Mark = NEVER
    vault: Mark = NEVER
    answers: Mapping[str, Mark] = field(default_factory=dict)
    secrets: Mapping[str, Number] = field(default_factory=dict)
    newest: Number = 0

    def to_json(self) -> dict[str, Json]:
        """As a node keeps them."""
        return {"v": 1, **shape.to_json(self)}

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From what a node kept. Raises `Refused`: malformed."""
        if not isinstance(value, dict) or value.get("v") != 1:
            raise Refused(Why.MALFORMED, "the counters: v is not 1")
        try:
            return shape.from_json(cls, {key: each for key, each in value.items() if key != "v"}, "counters")
        except Misshapen as wrong:
            raise Refused(Why.MALFORMED, str(wrong)) from None

    def answered(self, node: str, mark: Mark) -> Counters:
        """With the answers of `node` seen as far as `mark`. Raises `Refused`: rollback, equivocation."""
        seen = self.answers.get(node, NEVER).advance(mark, f"answers of {node}")
        return replace(self, answers={**self.answers, node: seen})
