"""The ratchet `catalogue-ratchet.yaml`: how many of each kind a catalogue may have; it only goes down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gitmesh.catalogue.lint import Counted
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related
from gitmesh.repo import document
from gitmesh.repo.edit import put

FILE = "catalogue-ratchet.yaml"
KINDS = {
    "exceptions": ("name or path written out", "names and paths written out"),
    "env-files": ("container with an env-file", "containers with env-files"),
    "retired": ("retired form", "retired forms"),
}
"""What is counted, and what one and several are called."""
MOST_SHOWN = 10
"""So many of what is counted a refusal shows; the list above it has them all."""

_BEGUN = b"# What definitions do that they should not; no number goes up. `gitmesh catalogue lint` counts.\n"


@dataclass(frozen=True, slots=True)
class Ratchet:
    """What the file says by kind (nothing of a kind that was never counted), and its refusals."""

    allowed: Mapping[str, int]
    blob: bytes
    refusals: tuple[Refusal, ...] = ()

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> Ratchet:
        """The one among `files`; an empty one where there is none."""
        blob = files.get(FILE, _BEGUN)
        value, refused = document.read(FILE, blob)
        refused = refused or document.check("ratchet", FILE, value)
        return cls({}, blob, tuple(refused)) if refused else cls(value or {}, blob)

    def lowered(self, counts: Mapping[str, int]) -> bytes:
        """The file with each count that went down, and those of kinds that it does not have yet.

        Raises `Uneditable` where the way it is written leaves no place for that."""
        blob = self.blob
        for kind, count in counts.items():
            if count < self.allowed.get(kind, count + 1):
                blob = put(blob, [kind], count)
        return blob


def counts_of(counted: Iterable[Counted], kinds: Sequence[str]) -> dict[str, int]:
    """How many there are of each of `kinds`."""
    found = Counter(each.kind for each in counted)
    return {kind: found[kind] for kind in kinds}


def grown(ratchet: Ratchet, counted: Sequence[Counted], kinds: Sequence[str]) -> list[Refusal]:
    """A refusal for each kind of which there are more than the ratchet allows.

    It can't be known which one is new, so that each is named as one that it may be."""
    return [
        _grown(ratchet, kind, [each for each in counted if each.kind == kind])
        for kind, count in counts_of(counted, kinds).items()
        if count > ratchet.allowed.get(kind, 0)
    ]


def _grown(ratchet: Ratchet, kind: str, found: Sequence[Counted]) -> Refusal:
    subject = f"{len(found)} {KINDS[kind][len(found) > 1]}"
    at = At(FILE, (kind,), value=True)
    if kind in ratchet.allowed:
        message = f"{subject}, and {FILE} allows {ratchet.allowed[kind]}"
        answers = [
            Answer("take the new one back, or another one for it"),
            Answer("the number is raised by hand only, for a reviewer to see"),
        ]
    else:
        message = f"{subject}, and {FILE} does not count them yet"
        retired = " --retired" if kind == "retired" else ""
        command = f"gitmesh catalogue lint{retired} --update-ratchet"
        answers = [Answer("begin with what there is", command)]
    # The line of a retired form may hold a secret that is written out, and a related place shows its line.
    related = [] if kind == "retired" else [Related(each.at, "counted") for each in found[:MOST_SHOWN]]
    return Refusal(Code.RATCHET_GROWN, kind, message, at, related=tuple(related), answers=tuple(answers))
