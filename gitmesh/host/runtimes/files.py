"""A runtime that writes what would run and starts nothing: for `--root`, for tests, and for other engines.

Beside a container's files it writes `<container>.json`, what would run, and `<container>.environment`, its
environment as `NAME=value` lines, each literal to its end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from gitmesh.core import codec
from gitmesh.core import file_formats as formats
from gitmesh.core.model import Json
from gitmesh.fsops import Root
from gitmesh.host.filled import FilledAssignment, FilledContainer
from gitmesh.host.runtimes.base import FILES, Item, env_file_path, file_path, unit_of_job

_SUFFIX = ".json"


class FilesRuntime:
    """See the module; a `Runtime`."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def items(self, filled: FilledAssignment) -> Mapping[str, Item]:
        """The description and the environment of each container and job."""
        items: dict[str, Item] = {}
        for name, container in filled.containers.items():
            items |= _items(filled.id, name, container, {})
        for name, job in filled.jobs.items():
            said = {"schedule": job.spec.schedule, "where": job.spec.where}
            if job.spec.container is not None:
                said["container"] = job.spec.container
            items |= _items(filled.id, unit_of_job(name), job.container, {"job": said})
        return items

    def not_run(self, filled: FilledAssignment) -> tuple[str, ...]:
        """Every job, and adapters that run in a container; the others reach their backend by its address."""
        jobs = [f"job {name}" for name in filled.jobs]
        adapters = [
            f"adapter exec of {contract}"
            for contract, provision in filled.spec.provides.items()
            if provision.adapter == "exec"
        ]
        return (*jobs, *adapters)

    def observe(self, assignment: str) -> Mapping[str, str]:
        """The containers described on disk, each with the identity its description says."""
        found = {}
        for name in self._root.entries(f"{FILES}/{assignment}"):
            unit = name.removesuffix(_SUFFIX)
            if unit != name and "." not in unit:
                identity = self._described(f"{FILES}/{assignment}/{name}")
                if identity is not None:
                    found[unit] = identity
        return found

    def _described(self, path: str) -> str | None:
        """The identity that a description says; None where somebody made it something else."""
        try:
            said = json.loads(self._root.read(path))
        except (OSError, ValueError, RecursionError):
            return None
        identity = said.get("identity") if isinstance(said, dict) else None
        return identity if isinstance(identity, str) else None

    def stop(self, assignment: str, container: str) -> None:
        """Nothing runs; the description leaves with the other files."""

    def start(self, filled: FilledAssignment, container: str) -> None:
        """Nothing is started; the description is in place."""

    def reload(self, filled: FilledAssignment, container: str, how: Json) -> None:
        """Nothing runs."""


def _items(
    assignment: str, unit: str, container: FilledContainer, more: Mapping[str, Json]
) -> dict[str, Item]:
    where = f"{FILES}/{assignment}/{unit}"
    said = json.dumps({**_described(assignment, unit, container), **more}, indent=1, sort_keys=True) + "\n"
    mode = 0o400 if container.holds_login else 0o444
    environment = formats.write_environment(dict(sorted(container.env.items())))
    return {
        f"{where}{_SUFFIX}": _item(said, mode, unit),
        f"{where}.environment": _item(environment, mode, unit),
    }


def _item(text: str, mode: int, unit: str) -> Item:
    content = text.encode()
    return Item(content, mode, None, unit, hashlib.sha256(content).hexdigest())


def _described(assignment: str, unit: str, container: FilledContainer) -> dict[str, Json]:
    """What would run; of files and environment where they are, not what they say."""
    spec = container.spec
    described: dict[str, Json] = {
        "image": spec.image,
        "identity": container.identity,
        "entrypoint": list(container.entrypoint),
        "command": list(container.command),
        "files": {
            path: "/" + file_path(assignment, unit, path, file.secret)
            for path, file in container.files.items()
        },
        "mounts": codec.encode(spec.mounts),
        "publish": codec.encode(spec.publish),
        "health": spec.health,
        "user": spec.user,
        # A name that a recreated container keeps: some software finds its data by it.
        "hostname": None if spec.plain.get("network") == "host" else container.hostname or unit,
        **spec.plain,
    }
    if container.env_file is not None:
        described["env-file"] = "/" + env_file_path(assignment, unit)
    return {key: value for key, value in described.items() if value not in (None, [], {})}
