"""What a commit is refused for, as data; the faces in `gitmesh.report` show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Code(StrEnum):
    """The closed set of refusal codes; each has a page under `gitmesh/explain` and a case folder."""

    # What a file may hold (DESIGN §9, SECURITY §2b).
    YAML_SYNTAX = "yaml-syntax"
    YAML_FEATURE = "yaml-feature"
    YAML_SCALAR = "yaml-scalar"
    YAML_DUPLICATE_KEY = "yaml-duplicate-key"
    FILE_TOO_LARGE = "file-too-large"
    FILE_KIND = "file-kind"
    FILE_NAME = "file-name"
    FILE_MISSING = "file-missing"
    FILE_CONFLICT = "file-conflict"
    SCHEMA = "schema"
    # What a definition may say (RULES A).
    CONTRACT_UNKNOWN = "contract-unknown"
    CONTRACT_BAD = "contract-bad"
    NARROW_LOOSENS = "narrow-loosens"
    ASK_UNKNOWN = "ask-unknown"
    ASK_MISSING = "ask-missing"
    ASK_TYPE = "ask-type"
    REFERENCE_FORM = "reference-form"
    REFERENCE_UNKNOWN = "reference-unknown"
    REFERENCE_OPTIONAL = "reference-optional"
    RETIRED_FORM = "retired-form"
    SECRET_EXPOSED = "secret-exposed"  # noqa: S105 - a code, no password
    HOST_PATH_EXPOSED = "host-path-exposed"
    SECRET_RESERVED = "secret-reserved"  # noqa: S105 - a code, no password
    SEAT_UNKNOWN = "seat-unknown"
    SEAT_FOUNDATION = "seat-foundation"
    SERVES_PLACEHOLDER = "serves-placeholder"
    PROVIDES_MISMATCH = "provides-mismatch"
    CONTAINER_UNKNOWN = "container-unknown"
    AS_NEEDED = "as-needed"
    FIELD_UNREAD = "field-unread"
    # What a catalogue is refused for: by `gitmesh catalogue lint`, and as a vendored one.
    NAME_WRITTEN_OUT = "name-written-out"
    PATH_WRITTEN_OUT = "path-written-out"
    RATCHET_GROWN = "ratchet-grown"
    DEFINED_TWICE = "defined-twice"
    CATALOGUE_CHANGED = "catalogue-changed"
    CATALOGUE_UNPINNED = "catalogue-unpinned"
    CATALOGUE_MISSING = "catalogue-missing"
    # What an assignment, a node or the mesh may say.
    MODULE_UNKNOWN = "module-unknown"
    NODE_UNKNOWN = "node-unknown"
    ASSIGNMENT_TWICE = "assignment-twice"
    KEY_UNKNOWN = "key-unknown"
    VALUE_TYPE = "value-type"
    VALUE_MISSING = "value-missing"
    VALUE_TWICE = "value-twice"
    GRANT_MISSING = "grant-missing"
    PLACE_BAD = "place-bad"
    # What the mesh can't answer (RULES B).
    SEAT_UNHELD = "seat-unheld"
    SEAT_TWICE = "seat-twice"
    SEAT_UNDECLARED = "seat-undeclared"
    PIN_BAD = "pin-bad"
    PIN_BESIDE_SEAT = "pin-beside-seat"
    PIN_ON_HOST = "pin-on-host"
    NO_PROVIDER = "no-provider"
    AMBIGUOUS_PROVIDER = "ambiguous-provider"
    PROVIDER_CHANGED = "provider-changed"
    NAME_HELD = "name-held"
    IDENTITY_HELD = "identity-held"
    PORT_HELD = "port-held"
    PORTS_EXHAUSTED = "ports-exhausted"
    PLACE_HELD = "place-held"
    LOCAL_PORT_LEAVES = "local-port-leaves"
    ADDRESS_PUBLIC = "address-public"
    ADDRESS_HELD = "address-held"
    KEY_HELD = "key-held"
    CYCLE = "cycle"
    PROVIDER_IN_USE = "provider-in-use"
    SEAT_BREAK_GLASS = "seat-break-glass"
    # What would be lost or left behind unsaid (RULES G3, G8).
    DROP_UNSAID = "drop-unsaid"
    DROP_LEFTOVER = "drop-leftover"
    IDENTITY_CHANGED = "identity-changed"
    MOVE_UNSAID = "move-unsaid"
    MOVED_LEFTOVER = "moved-leftover"
    ORPHAN_FOUND = "orphan-found"
    PURGE_REFUSED = "purge-refused"
    HANDED_MISSING = "handed-missing"
    ROTATION_REFUSED = "rotation-refused"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a file; lines and columns count from 1, columns in characters, the end excluded."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class At:
    """A place in the mesh repo: a file, and the keys that lead to a node of its YAML document.

    `keys` is resolved to a line and column only when a refusal is shown (`repo.document.locate`), because
    the fast parser keeps no positions. `value` points at the value instead of its key. `span` is set
    where the document itself can't be read. `offset`, `length` narrow to a part of a scalar's text.
    """

    file: str
    keys: tuple[str | int, ...] = ()
    value: bool = False
    span: Span | None = None

    def child(self, *keys: str | int) -> At:
        """The same file, `keys` further down."""
        return At(self.file, (*self.keys, *keys))

    def of_value(self) -> At:
        """The same place, pointing at the value instead of its key."""
        return At(self.file, self.keys, value=True)


NOWHERE = At("")
"""What the tool itself brings along, such as the contract of a directory."""


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a refusal speaks of."""

    at: At
    label: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One way out: what to do, and where there is one, the command that does it."""

    text: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """One mistake of one commit.

    `subject` is the assignment, requirement, module or file it is about (`gitea@athens.database`),
    `message` says what is wrong, `label` what stands at `at`; `answers` say what would be right.
    No text of a refusal quotes a file's content beyond names (SECURITY §2b). `root` names the mistake
    where several refusals may come of it (a requirement that is gone and was read in five places): those
    that share one are shown as one.
    """

    code: Code
    subject: str
    message: str
    at: At
    label: str = ""
    related: tuple[Related, ...] = ()
    answers: tuple[Answer, ...] = ()
    root: str = ""


_MOST_PLACES = 8
"""Other places that a refusal names at most; a contract that is gone may be required by hundreds."""


def ordered(refusals: list[Refusal]) -> tuple[Refusal, ...]:
    """The refusals without repeats, in the one order that every face shows: by place, code and subject.

    Of those with one root the first stands for all, and names the places of the others (B10).
    """
    unique = dict.fromkeys(refusals)

    def rank(refusal: Refusal) -> tuple[str, tuple[int, int], tuple[str, ...], str, str, str]:
        at = refusal.at
        where = (at.span.line, at.span.column) if at.span else (0, 0)
        said = refusal.code.value, refusal.subject, refusal.message
        return at.file, where, tuple(map(str, at.keys)), *said

    groups: dict[str | Refusal, list[Refusal]] = {}
    for refusal in sorted(unique, key=rank):
        groups.setdefault(refusal.root or refusal, []).append(refusal)
    return tuple(sorted(map(_as_one, groups.values()), key=rank))


def _as_one(group: list[Refusal]) -> Refusal:
    """The refusal that stands for its group: of a name that is not there, if one is, for others follow it."""
    first = min(group, key=lambda refusal: not refusal.code.value.endswith("-unknown"))
    others = [each for each in group if each is not first and each.at != first.at]
    places = [
        Related(each.at, "here as well" if each.code is first.code else each.message) for each in others
    ]
    left = len(places) - _MOST_PLACES
    if left > 0:
        places[_MOST_PLACES - 1 :] = [Related(places[_MOST_PLACES - 1].at, f"and in {left} more places")]
    return replace(first, related=(*first.related, *places)) if places else first
