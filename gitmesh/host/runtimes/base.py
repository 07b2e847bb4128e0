"""The seam between apply and what runs containers: a Protocol, and what goes over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gitmesh.core.model import Json
from gitmesh.host.filled import FilledAssignment

FILES = "var/lib/gitmesh/files"
"""Where the files that hold no secret are, below the root: by assignment and container, at their paths."""

SECRETS = "run/gitmesh/secrets"
"""The same for the files that hold one; only root may enter it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file that apply puts in place. `unit` is whose it is, `mark` changes with its content."""

    content: bytes = field(repr=False)
    mode: int
    owner: tuple[int, int] | None
    """None: of who runs"""
    unit: str
    mark: str
    applied: bool = False
    """taken without a restart (D6)"""


class RuntimeFailed(Exception):
    """A container could not be started or stopped; the text says why and holds no secret."""


class Runtime(Protocol):
    """Runs the containers of filled assignments. An OSError or `RuntimeFailed` fails one container only."""

    def items(self, filled: FilledAssignment) -> Mapping[str, Item]:
        """What it wants written for the assignment beside the containers' files, by path below the root."""

    def not_run(self, filled: FilledAssignment) -> tuple[str, ...]:
        """The jobs and adapters of the assignment that it can't run, to be named in the outcome."""

    def observe(self, assignment: str) -> Mapping[str, str]:
        """By container: the identity of what is there now (`FilledContainer.identity`)."""

    def stop(self, assignment: str, container: str) -> None:
        """Stop the container and take it away. Called before its files and units change or leave."""

    def start(self, filled: FilledAssignment, container: str) -> None:
        """Make and start the container; its files and directories are in place."""

    def reload(self, filled: FilledAssignment, container: str, how: Json) -> None:
        """Make the running container take its changed files, as its module says how."""


def unit_of_job(job: str) -> str:
    """A job's name among the units of an assignment; no container is called so."""
    return f"{job}.job"


def file_path(assignment: str, unit: str, path: str, secret: bool) -> str:
    """Where the file that a container sees at `path` is, below the root."""
    return f"{SECRETS if secret else FILES}/{assignment}/{unit}/{path.lstrip('/')}"


def env_file_path(assignment: str, unit: str) -> str:
    """Where a container's env-file is, below the root."""
    return f"{SECRETS}/{assignment}/{unit}.env-file"


def files_of(filled: FilledAssignment) -> dict[str, Item]:
    """The files of an assignment's containers and jobs that every runtime needs, by path below the root."""
    units = dict(filled.containers) | {
        unit_of_job(name): each.container for name, each in filled.jobs.items()
    }
    items: dict[str, Item] = {}
    for unit, container in units.items():
        for path, file in container.files.items():
            where = file_path(filled.id, unit, path, file.secret)
            items[where] = Item(file.blob(), file.mode, file.owner, unit, file.mark, file.applied)
        if container.env_file is not None:
            file = container.env_file
            items[env_file_path(filled.id, unit)] = Item(file.blob(), file.mode, file.owner, unit, file.mark)
    return items
