"""What filling a declaration gives: everything to write and run, secrets in a type that shows nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gitmesh.core.compare import Marks
from gitmesh.core.declaration import AssignmentSpec, ContainerSpec, JobSpec
from gitmesh.core.waiting import Waiting
from gitmesh.trust.secret import Secret

Owner = tuple[int, int]
"""A user id and a group id."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """A value that came and is not delivered: `why` says what is wrong with it, never what it is (B12)."""

    assignment: str
    on: str
    """the provider's assignment, or `mesh-vault`"""
    requirement: str
    why: str


@dataclass(frozen=True, slots=True)
class FilledFile:
    """A file for a container. `applied`: each secret in it is one that is taken without a restart (D6)."""

    content: bytes | Secret
    owner: Owner | None
    """None: of who runs"""
    mode: int
    secret: bool
    applied: bool
    mark: str
    """changes with what is written, and tells an edited file from a new version of it"""

    def blob(self) -> bytes:
        """The bytes to write."""
        return self.content if isinstance(self.content, bytes) else self.content.reveal()


@dataclass(frozen=True, slots=True)
class FilledDirectory:
    """A directory of the host, with the paths below it that are made alike."""

    location: str
    owner: Owner
    mode: int
    subs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilledContainer:
    """A container with every text filled. What has no text (image, mounts, publish, …) stands in `spec`.

    `marks` are what it is made of, without the versions of applied secrets (D6); it runs as its `identity`.
    """

    spec: ContainerSpec
    reads_as: Owner
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    env: Mapping[str, str]
    env_file: FilledFile | None
    """in the dialect of `formats.write_env`; not shown by inspect"""
    files: Mapping[str, FilledFile]
    hostname: str | None
    holds_login: bool
    """whether its environment, command or name says what a consumer logs in with"""
    marks: Marks

    @property
    def identity(self) -> str:
        """One mark of all that it is made of."""
        return self.marks.identity


@dataclass(frozen=True, slots=True)
class FilledJob:
    """A job; its command, environment and files are those of `container`."""

    spec: JobSpec
    container: FilledContainer


@dataclass(frozen=True, slots=True)
class FilledAssignment:
    """One assignment, complete. `digest` changes with anything that is delivered of it; it is made of
    versions, never of secrets' values."""

    id: str
    spec: AssignmentSpec
    directories: Mapping[str, FilledDirectory]
    containers: Mapping[str, FilledContainer]
    jobs: Mapping[str, FilledJob]
    digest: str


@dataclass(frozen=True, slots=True)
class FilledDeclaration:
    """What can be applied now; of an assignment that waits or holds a bad value nothing is here (B11)."""

    assignments: Mapping[str, FilledAssignment]
    waiting: tuple[Waiting, ...]
    withheld: tuple[Withheld, ...]

    @property
    def declared(self) -> frozenset[str]:
        """Every assignment of the declaration, those that wait included: none of them leaves the node."""
        held = {each.assignment for each in self.waiting} | {each.assignment for each in self.withheld}
        return frozenset(self.assignments) | held
