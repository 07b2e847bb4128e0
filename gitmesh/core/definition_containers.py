"""A module's containers and jobs: what they name exists, and no path of a host reaches them (A2, A3, A14)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from gitmesh.core.checking import Checking, may_say
from gitmesh.core.model import Container, Content, EnvFile, Json, Kind, Mount, Requirement
from gitmesh.core.reference import Ref, Text
from gitmesh.core.refusal import At, Code, Related

_PLACES = ("directory", "volume", "access", "device")
_PATH = re.compile(r"(?:^|[:,;= ]|(?:file|unix)://)(/(?!/)[^:,;= ]+)")
"""An absolute path in an environment value: at its start, in a list, after `=`, in a file's URL."""
_ALWAYS_THERE = ("/run/secrets", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/shm")  # noqa: S108 - names, not files that are made


def check_containers(checking: Checking) -> None:
    """Everything about containers and jobs but what their texts read."""
    module = checking.module
    for container in module.containers.values():
        _check_container(checking, container, container.name, container)
    for job in module.jobs.values():
        beside = module.containers.get(job.container or "") if job.where == "in" else None
        if job.container is not None and job.container not in module.containers:
            _container_unknown(checking, f"jobs.{job.name}", job.container, job.at.child(job.where))
        if job.where != "host":
            _check_container(checking, job.spec, f"jobs.{job.name}", beside or job.spec)
    _check_after(checking)
    _check_restart_on(checking)


def _check_container(checking: Checking, container: Container, name: str, inside: Container) -> None:
    """`inside` is the container whose file system it sees."""
    at = container.at
    _check_part(checking, name, container.mounts, container.publish, at, None)
    _check_health(checking, container, name)
    _check_env_from(checking, container, name)
    _check_each(checking, container.files, name)
    for used, when in container.when.items():
        here = at.child("when", used)
        _check_when(checking, name, used, here)
        _check_part(checking, name, when.mounts, when.publish, here, used)
        _check_each(checking, when.files, name)
    _check_paths(checking, container, name, inside)
    _check_files(checking, container, name)


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
    at: At,
    used: str | None,
) -> None:
    """Mounts name what has a location (A2), `publish` names ports."""
    for path, mount in mounts.items():
        here = at.child("mounts", path)
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
        _named(checking, name, each, at.child("publish", number), used, ("port",))


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
        )
    elif not requirement.optional:
        checking.refuse(
            Code.REFERENCE_OPTIONAL,
            name,
            f"`{used}` is not optional, so that this always holds",
            at,
            "move it out of `when`, or say `optional: true` of the requirement",
            related=(Related(requirement.at, "required here"),),
        )


def _check_health(checking: Checking, container: Container, name: str) -> None:
    health = container.health
    if not isinstance(health, Mapping):
        return
    http = health.get("http")
    if isinstance(http, Mapping) and isinstance(http.get("port"), str):
        _named(checking, name, http["port"], container.at.child("health", "http", "port"), None, ("port",))
    if isinstance(health.get("tcp"), str):
        _named(checking, name, health["tcp"], container.at.child("health", "tcp"), None, ("port",))


def _check_env_from(checking: Checking, container: Container, name: str) -> None:
    if container.env_from is None:
        return
    requirement = checking.module.requires.get(container.env_from)
    if (
        requirement is None
        or requirement.kind is not Kind.OPERATOR
        or not _of_texts(requirement.schema or {})
    ):
        operators = [each.name for each in checking.module.requires.values() if each.kind is Kind.OPERATOR]
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            name,
            f"`{container.env_from}` is no operator requirement whose value is a map of text",
            container.at.child("env-from"),
            may_say(container.env_from, operators, "operator requirement"),
            "its type is `{type: object, additionalProperties: {type: string}}`",
        )


def _of_texts(schema: Mapping[str, Json]) -> bool:
    parts = [*schema.get("properties", {}).values(), schema.get("additionalProperties", True)]
    plain = ("string", "integer", "boolean")
    return schema.get("type") == "object" and all(
        part is False or (isinstance(part, Mapping) and (part.get("type") in plain or "enum" in part))
        for part in parts
    )


def _check_each(checking: Checking, files: Mapping[Text, Content], name: str) -> None:
    """A file with `each` is one for each consumer of a provision, told apart by its path."""
    for path, content in files.items():
        if content.each is None:
            continue
        if content.each not in checking.module.provides:
            checking.refuse(
                Code.REFERENCE_UNKNOWN,
                name,
                f"`each` names `{content.each}`, which the module does not provide",
                content.at.child("each"),
                may_say(content.each, checking.module.provides, "provision"),
            )
        elif not any(isinstance(each, Ref) and each.requirement == "consumer" for each in path):
            checking.refuse(
                Code.SERVES_PLACEHOLDER,
                name,
                "one file for each consumer, and all at one path",
                content.at,
                "let the path say `${consumer:as}` or `${consumer:as:dns}`",
            )


def _check_after(checking: Checking) -> None:
    graph: dict[str, list[str]] = {}
    for container in checking.module.containers.values():
        graph[container.name] = list(container.plain.get("after", ()))
        for number, each in enumerate(graph[container.name]):
            if each not in checking.module.containers:
                _container_unknown(checking, container.name, each, container.at.child("after", number))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        path = list(reversed(error.args[1]))
        checking.refuse(
            Code.CYCLE,
            path[0],
            f"each starts after the next: {' -> '.join(path)}",
            checking.module.containers[path[0]].at.child("after"),
            "let one of them start first",
        )


# --- paths ---------------------------------------------------------------------------------------------


def _check_paths(checking: Checking, container: Container, name: str, inside: Container) -> None:
    """Each absolute path in its environment lies where the container has something of its own (A3)."""
    everywhere = [*_sides(container), *_sides(inside)]
    for used, variable, text, at in _environment(container):
        there = list(everywhere)
        for each in (container, inside):
            if used is not None and used in each.when:
                there += [*each.when[used].mounts, *map(_fixed, each.when[used].files)]
        for path in _PATH.findall(_shown(text)):
            if not any(_below(path, side) for side in there):
                checking.refuse(
                    Code.HOST_PATH_EXPOSED,
                    name,
                    f"`{variable}` names a path that lies on no mount and in no file of the container",
                    at,
                    "mount something there, or give the file under `files`",
                    "if the image brings it along, list it under `image-paths`",
                )
                break


def _environment(container: Container) -> Iterator[tuple[str | None, str, Text, At]]:
    yield from _variables(None, container.env, container.env_file, container.at)
    for used, when in container.when.items():
        yield from _variables(used, when.env, when.env_file, container.at.child("when", used))


def _variables(
    of: str | None, env: Mapping[str, Text | EnvFile], env_file: Mapping[str, Text], at: At
) -> Iterator[tuple[str | None, str, Text, At]]:
    for name, value in env.items():
        if not isinstance(value, EnvFile):
            yield of, name, value, at.child("env", name)
    for name, text in env_file.items():
        yield of, name, text, at.child("env-file", "env", name)


def _sides(container: Container) -> list[str]:
    return [
        *container.mounts,
        *map(_fixed, container.files),
        *container.image_paths,
        *container.plain.get("tmpfs", {}),
        *_ALWAYS_THERE,
    ]


def _shown(text: Text) -> str:
    """The text with something harmless where it reads an answer."""
    return "".join(each if isinstance(each, str) else "x" for each in text)


def _fixed(path: Text) -> str:
    """A file's path; of one with `each`, its folder."""
    if all(isinstance(each, str) for each in path):
        return _shown(path)
    return str(path[0]).rpartition("/")[0] if path and isinstance(path[0], str) else "/"


def _below(path: str, side: str) -> bool:
    side = side.rstrip("/")
    return path == side or path.startswith(f"{side}/")


def _check_files(checking: Checking, container: Container, name: str) -> None:
    """No file lies inside a mount, none where a variable's file goes, no variable is said twice."""
    files = list(container.files.items())
    mounts = [*container.mounts]
    secrets: dict[str, str] = {}
    for when in container.when.values():
        files += when.files.items()
        mounts += when.mounts
    for path, content in files:
        inside = next((each for each in mounts if _below(_fixed(path), each)), None)
        if inside is not None:
            checking.refuse(
                Code.SCHEMA,
                name,
                "a file lies inside a mount, where the host keeps its own",
                content.at,
                f"give it a path that is not below `{inside}`",
            )
    given = {_fixed(path): content for path, content in files}
    for variable, at in _file_variables(container):
        place = f"/run/secrets/{variable.lower()}"
        if place in given or secrets.setdefault(place, variable) != variable:
            checking.refuse(
                Code.SCHEMA,
                name,
                f"the file of `{variable}` would lie where another one does",
                at,
                "give the other one another path or name",
            )
    for variable, text in container.env_file.items():
        if any(isinstance(each, str) and "\n" in each for each in text):
            checking.refuse(
                Code.SCHEMA,
                name,
                "an env-file has one line for each value, and this has many",
                container.at.child("env-file", "env", variable),
                "give it as a file, under `files`",
            )
    for variable in sorted(container.env.keys() & container.env_file.keys()):
        checking.refuse(
            Code.SCHEMA,
            name,
            f"`{variable}` stands in `env` and in `env-file`",
            container.at.child("env-file", "env", variable),
            "leave one of the two",
            related=(Related(container.at.child("env", variable), "the other one"),),
        )


def _file_variables(container: Container) -> Iterator[tuple[str, At]]:
    parts = [(container.env, container.at)]
    parts += [(when.env, container.at.child("when", used)) for used, when in container.when.items()]
    for env, at in parts:
        for name, value in env.items():
            if isinstance(value, EnvFile):
                yield name, at.child("env", name)


def _check_restart_on(checking: Checking) -> None:
    """`restart-on` names a secret that reaches a process, or a file in a mounted directory (A14)."""
    known: list[str] = []
    for container in checking.module.containers.values():
        known += [*container.mounts, *map(_fixed, container.files)]
        known += [f"/run/secrets/{variable.lower()}" for variable, _ in _file_variables(container)]
        for when in container.when.values():
            known += [*when.mounts, *map(_fixed, when.files)]
    for number, path in enumerate(checking.module.restart_on):
        if not any(_below(path, each) for each in known):
            checking.refuse(
                Code.REFERENCE_UNKNOWN,
                "restart-on",
                "no container of the module has this file: it is no secret of one, and in no mount",
                checking.module.at.child("restart-on", number),
                "name a file under `files`, a variable's file under /run/secrets, or a file in a mount",
            )
