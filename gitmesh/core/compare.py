"""What becomes of a container, and why: one comparison, for what a plan says and what a host does
(DESIGN §3 "One function", E8). Pure.

A container's marks are made of what its declaration says and of the versions that fill its holes, never
of a secret's value, so that no digest of one exists (C10).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol, assert_never

from gitmesh.core import codec
from gitmesh.core.declaration import (
    AnswerHole,
    ContainerSpec,
    FileSpec,
    Hole,
    LoginHole,
    SecretHole,
    SecretSpec,
    container_holes,
    file_holes,
)
from gitmesh.core.model import Json


class Fate(StrEnum):
    """What becomes of a container that is declared."""

    START = "start"
    RECREATE = "recreate"
    RELOAD = "reload"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Decision:
    """A container's fate; `why` names the parts that say so, never what they hold."""

    fate: Fate
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Marks:
    """What a container is made of: by part (`image`, `env MODE`, `secret gitea@athens.database`) a mark that
    changes with it. `content` is what stands in its files, where a reload may do; `frame` is the rest."""

    frame: Mapping[str, str] = field(default_factory=dict)
    content: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """One mark of all."""
        return _mark([dict(self.frame), dict(self.content)])


def decide(there: Marks | None, wanted: Marks, *, reloads: bool, drifted: bool = False) -> Decision:
    """What becomes of a container that is to be `wanted`, where `there` runs now (None: nothing does).

    `reloads`: its module says how it takes changed files. `drifted`: what runs, or a file of it, is no longer
    what was put there.
    """
    if there is None:
        return Decision(Fate.START)
    differing = (*_differing(there.frame, wanted.frame), *_differing(there.content, wanted.content))
    why = tuple(dict.fromkeys(differing))
    if drifted:
        return Decision(Fate.RECREATE, ("drifted", *why))
    if not why:
        return Decision(Fate.KEEP)
    if reloads and there.frame == wanted.frame:
        return Decision(Fate.RELOAD, why)
    # A file that comes or goes is one reason, not two.
    return Decision(Fate.RECREATE, tuple(each for each in why if _file_of(each) not in why))


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(each for each in before.keys() | after.keys() if before.get(each) != after.get(each))


def _file_of(part: str) -> str | None:
    """Of `content /etc/app.ini` the part that says that there is such a file."""
    return f"file {part.removeprefix('content ')}" if part.startswith("content ") else None


def marks(spec: ContainerSpec, secrets: Mapping[str, SecretSpec], version: Callable[[Hole], Json]) -> Marks:
    """The marks of a container; `version` says with what a hole is filled, by version and never by value.

    A secret that is taken without a restart leaves them as they are, where its file holds no other (D6).
    """
    bare = replace(spec, files={})
    frame = {part: _mark(value) for part, value in _parts(codec.encode(bare))}
    frame |= {f"file {path}": _mark([each.owner, each.mode]) for path, each in spec.files.items()}
    content = {f"content {path}": _mark(codec.encode(each)) for path, each in spec.files.items()}
    taken = (each for each in spec.files.values() if not is_applied(each, secrets))
    inside = [hole for each in taken for hole in file_holes(each)]
    return Marks(
        frame | _versions(container_holes(bare), version),
        content | _versions(inside, version),
    )


def is_applied(file: FileSpec, secrets: Mapping[str, SecretSpec]) -> bool:
    """Whether a file holds secrets, and each of them is taken without a restart (D6)."""
    found = [hole.secret for hole in file_holes(file) if isinstance(hole, SecretHole)]
    return bool(found) and all(each in secrets and secrets[each].takes == "apply" for each in found)


def _parts(encoded: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Of a container's JSON each key, and of what has keys of its own each of those."""
    for key, value in encoded.items():
        if key == "plain":
            yield from value.items()
        elif key in ("env", "env-file", "mounts"):
            yield from ((f"{key} {name}", each) for name, each in value.items())
        else:
            yield key, value


def _versions(found: Iterable[Hole], version: Callable[[Hole], Json]) -> dict[str, str]:
    return {hole_name(hole): _mark(version(hole)) for hole in found}


def hole_name(hole: Hole) -> str:
    """What fills a hole, by name."""
    match hole:
        case SecretHole():
            return f"secret {hole.secret}"
        case LoginHole():
            return f"login {hole.secret}"
        case AnswerHole():
            return f"answer {hole.to}.{hole.field}"
        case _:
            assert_never(hole)


def _mark(value: Json) -> str:
    blob = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(blob.encode()).hexdigest()[:32]


class Noun(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def changed_keys(old: Noun, new: Noun) -> Iterator[str]:
    """The fields that differ between two nouns of one class."""
    for each in fields(old):
        if getattr(old, each.name) != getattr(new, each.name):
            yield each.name.rstrip("_").replace("_", "-")
