"""A module's containers and jobs: what they name exists, and no path of a host reaches them (A2, A3, A14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from graphlib import CycleError, TopologicalSorter

from gitmesh.core import schedule
from gitmesh.core.checking import Checking, may_say
from gitmesh.core.contract import check_value
from gitmesh.core.definition_files import below, check_files, sides
from gitmesh.core.definition_variables import Part, check_variables, parts, secret_files, shown
from gitmesh.core.model import Container, EnvFile, Job, Json, Kind, Mount, Requirement
from gitmesh.core.reference import Text
from gitmesh.core.refusal import At, Code, Related

_PLACES = ("directory", "volume", "access", "device")
_PATH = re.compile(r"""(?:^|[:,;=\s"'\[]|(?:file|unix)://|sqlite[a-z0-9+]*:///)(/(?!/)[^:,;=\s"'\]?#]+)""")
"""An absolute path in an environment value: at its start, in a list or quotes, after `=`, in the URL of a
file, a socket or SQLite (whose three slashes come before the path)."""
_ALWAYS_THERE = ("/run/secrets", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/shm")  # noqa: S108 - names, not files that are made


def check_containers(checking: Checking) -> None:
    """Everything about containers and jobs but what their texts read."""
    module = checking.module
    for container in module.containers.values():
        _check_container(checking, container, container.name, container)
    for job in module.jobs.values():
        _check_schedule(checking, job)
        beside = module.containers.get(job.container or "") if job.where == "in" else None
        if job.container is not None and job.container not in module.containers:
            _container_unknown(
                checking, f"jobs.{job.name}", job.container, job.at.child(job.where).of_value()
            )
        if job.where != "host":
            _check_container(checking, job.spec, f"jobs.{job.name}", beside or job.spec)
    _check_after(checking)
    _check_restart_on(checking)


def _check_schedule(checking: Checking, job: Job) -> None:
    wrong = schedule.fault(job.schedule)
    if wrong is not None:
        checking.refuse(
            Code.SCHEMA, f"jobs.{job.name}", wrong, job.at.child("at").of_value(), schedule.ANSWER
        )


def _check_container(checking: Checking, container: Container, name: str, inside: Container) -> None:
    """`inside` is the container whose file system it sees."""
    place = container.place
    _check_part(checking, name, container.mounts, container.publish, place, None)
    _check_hostname(checking, container, name)
    _check_health(checking, container, name)
    _check_env_from(checking, container, name)
    for used, when in container.when.items():
        _check_when(checking, name, used, place("when", used))
        _check_part(checking, name, when.mounts, when.publish, partial(place, "when", used), used)
    _check_paths(checking, container, name, inside)
    check_files(checking, container, name)
    check_variables(checking, container, name)


def _container_unknown(checking: Checking, name: str, container: str, at: At) -> None:
    checking.refuse(
        Code.CONTAINER_UNKNOWN,
        name,
        f"the module has no container `{container}`",
        at,
        may_say(container, checking.module.containers, "container"),
    )


# --- what it names -------------------------------------------------------------------------------------


def _check_part(
    checking: Checking,
    name: str,
    mounts: Mapping[str, Mount],
    publish: tuple[str, ...],
    place: Callable[..., At],
    used: str | None,
) -> None:
    """Mounts name what has a location (A2), `publish` names ports."""
    for path, mount in mounts.items():
        here = place("mounts", path).of_value()
        requirement = _named(checking, name, mount.requirement, here, used, _PLACES)
        if requirement is None or not mount.sub:
            continue
        parts = mount.sub.split("/")
        if requirement.contract not in ("directory", "access") or {"", ".", ".."} & set(parts):
            checking.refuse(
                Code.SCHEMA,
                name,
                "below a directory or an access a mount names a plain path, without `.` and `..`",
                here,
                f"write `{mount.requirement}/folder`, or `{mount.requirement}` alone",
            )
    for number, each in enumerate(publish):
        _named(checking, name, each, place("publish", number), used, ("port",))


def _named(
    checking: Checking, name: str, requirement: str, at: At, used: str | None, contracts: tuple[str, ...]
) -> Requirement | None:
    """The host requirement called `requirement`, of one of `contracts`; it must be there when it is read."""
    found = checking.module.requires.get(requirement)
    if found is None or found.kind is not Kind.HOST or found.contract not in contracts:
        requires = checking.module.requires.values()
        fit = [each.name for each in requires if each.kind is Kind.HOST and each.contract in contracts]
        what = "port" if contracts == ("port",) else "location"
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            name,
            f"`{requirement}` is no requirement of a {what}",
            at,
            may_say(requirement, fit, f"{what} requirement"),
            root=checking.lacks(requirement),
        )
        return None
    if found.optional and found.name != used:
        checking.refuse(
            Code.REFERENCE_OPTIONAL,
            name,
            f"`{requirement}` is optional and named where it may not be there",
            at,
            f"name it under `when: {{{requirement}: …}}`, or leave `optional` out",
            related=(Related(found.at, "optional here"),),
        )
    return found


def _check_when(checking: Checking, name: str, used: str, at: At) -> None:
    requirement = checking.module.requires.get(used)
    optional = [each.name for each in checking.module.requires.values() if each.optional]
    if requirement is None:
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            name,
            f"the module has no requirement `{used}`",
            at,
            may_say(used, optional, "optional requirement"),
            root=checking.lacks(used),
        )
    elif not requirement.optional:
        checking.refuse(
            Code.REFERENCE_OPTIONAL,
            name,
            f"`{used}` is not optional, so that this always holds",
            at,
            "move it out of `when`, or say `optional: true` of the requirement",
            related=(Related(requirement.at, "required here"),),
            root=f"{checking.module.name} has {used} optional",
        )


def _check_hostname(checking: Checking, container: Container, name: str) -> None:
    """The kernel keeps 64 characters of a host name, and a label of DNS has 63."""
    said = "x" if container.hostname is None else shown(container.hostname)
    if check_value({"type": "string", "format": "hostname", "maxLength": 63}, said) is not None:
        checking.refuse(
            Code.SCHEMA,
            name,
            "no host name: it has at most 63 characters, a-z, 0-9, `-` and `.`",
            container.place("hostname").of_value(),
            "leave it out, and the container is called by its own name",
        )


def _check_health(checking: Checking, container: Container, name: str) -> None:
    health = container.health
    if not isinstance(health, Mapping):
        return
    http = health.get("http")
    if isinstance(http, Mapping) and isinstance(http.get("port"), str):
        _named(
            checking,
            name,
            http["port"],
            container.place("health", "http", "port").of_value(),
            None,
            ("port",),
        )
    if isinstance(health.get("tcp"), str):
        _named(checking, name, health["tcp"], container.place("health", "tcp").of_value(), None, ("port",))


def _check_env_from(checking: Checking, container: Container, name: str) -> None:
    if container.env_from is None:
        return
    requirement = checking.module.requires.get(container.env_from)
    if (
        requirement is None
        or requirement.kind is not Kind.OPERATOR
        or not _of_texts(requirement.schema or {})
    ):
        operators = [
            each.name
            for each in checking.module.requires.values()
            if each.kind is Kind.OPERATOR and _of_texts(each.schema or {})
        ]
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            name,
            f"`{container.env_from}` is no operator requirement whose value is a map of text",
            container.place("env-from").of_value(),
            may_say(container.env_from, operators, "operator requirement"),
            "its type is `{type: object, additionalProperties: {type: string}}`",
            root=checking.lacks(container.env_from),
        )


def _of_texts(schema: Mapping[str, Json]) -> bool:
    parts = [*schema.get("properties", {}).values(), schema.get("additionalProperties", True)]
    plain = ("string", "integer", "boolean")
    return schema.get("type") == "object" and all(
        part is False
        or (isinstance(part, Mapping) and (part.get("type") in plain or _scalars(part.get("enum"))))
        for part in parts
    )


def _scalars(values: Json) -> bool:
    return isinstance(values, list) and all(isinstance(each, str | int) for each in values)


def _check_after(checking: Checking) -> None:
    graph: dict[str, list[str]] = {}
    for container in checking.module.containers.values():
        graph[container.name] = list(container.plain.get("after", ()))
        for number, each in enumerate(graph[container.name]):
            if each not in checking.module.containers:
                _container_unknown(checking, container.name, each, container.place("after", number))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        path = list(reversed(error.args[1]))
        checking.refuse(
            Code.CYCLE,
            path[0],
            f"each starts after the next: {' -> '.join(path)}",
            checking.module.containers[path[0]].place("after"),
            "let one of them start first",
        )


# --- paths ---------------------------------------------------------------------------------------------


def _check_paths(checking: Checking, container: Container, name: str, inside: Container) -> None:
    """Each absolute path in its environment lies where the container has something of its own (A3)."""
    for part in parts(container):
        there = [*_always(container), *_always(inside)]
        for each in (container, inside):
            there += [side for other in parts(each) if other.used == part.used for side in sides(other)]
        for variable, text, at in _environment(part):
            if any(not any(below(path, each) for each in there) for path in _PATH.findall(shown(text))):
                checking.refuse(
                    Code.HOST_PATH_EXPOSED,
                    name,
                    f"`{variable}` names a path that lies on no mount and in no file of the container",
                    at.of_value(),
                    "mount something there, or give the file under `files`",
                    "if the image brings it along, list it under `image-paths`",
                )


def _environment(part: Part) -> Iterator[tuple[str, Text, At]]:
    for name, value in part.of.env.items():
        if not isinstance(value, EnvFile):
            yield name, value, part.place("env", name)
    for name, text in part.of.env_file.items():
        yield name, text, part.place("env-file", "env", name)


def _always(container: Container) -> list[str]:
    """Where the container has something of its own, whatever it uses."""
    own = Part(None, container, container.place)
    return [*sides(own), *container.image_paths, *container.plain.get("tmpfs", {}), *_ALWAYS_THERE]


def _check_restart_on(checking: Checking) -> None:
    """`restart-on` names a secret that reaches a process, or a file in a mounted directory (A14)."""
    containers = checking.module.containers.values()
    known = [side for each in containers for part in parts(each) for side in sides(part)]
    known += [path for each in containers for _, path, _ in secret_files(each)]
    for number, path in enumerate(checking.module.restart_on):
        if not any(below(path, each) for each in known):
            checking.refuse(
                Code.REFERENCE_UNKNOWN,
                "restart-on",
                "no container of the module has this file: it is no secret of one, and in no mount",
                checking.module.at.child("restart-on", number),
                "name a file under `files`, a variable's file under /run/secrets, or a file in a mount",
            )
