"""What is written out of habit, since Compose or a shell has it so, and what a module says instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitmesh.core.model import Json

COMPOSE: Mapping[str, str] = {
    "build": "an image is built elsewhere: `image: registry/name:tag@sha256:…`",
    "cap_add": "write `capabilities`; an assignment grants each",
    "container_name": "leave it out: a container is called as its key says",
    "depends_on": "write `after: [container]`",
    "deploy": "leave it out; limits are `limits: {memory, cpus}`",
    "env_file": "write `env`; for a secret that can be no file there is `env-file`, with a reason",
    "environment": "write `env: {NAME: value}`",
    "labels": "leave it out: nothing reads labels of a container",
    "links": "leave it out: the containers of a module reach each other by name",
    "network_mode": "write `network: host`, which an assignment grants",
    "networks": "leave it out: the containers of a module share a network",
    "ports": "require it, `http: {host: port, listens: 8080}`, and say `publish: [http]`",
    "restart": "leave it out: a container that ends is started again",
    "secrets": "require it, `key: {module: secret}`, and read it as a file: `{file: '${key:value}'}`",
    "services": "write `containers`, and `module: NAME` above it",
    "shm_size": "write `shm: 128m`",
    "stop_grace_period": "write `stop: {within: 120s}`",
    "stop_signal": "write `stop: {signal: SIGINT}`",
    "ulimits": "write `limits: {nofile: 65536}`",
    "volumes": "require a `{host: directory}`, such as `data`, and say `mounts: {/path: data}`",
}
"""What Compose calls a key, and how a module says it."""


def habit(keys: Sequence[str | int]) -> str | None:
    """What a module says in the place of an unknown key at `keys`, where Compose has such a one."""
    word = keys[-1]
    inside = len(keys) == 3 and keys[0] in ("containers", "jobs")
    return COMPOSE.get(str(word)) if inside or keys == ("services",) else None


def remedy(keys: Sequence[str | int], value: Json) -> str | None:
    """What a module says in the place of a `value` that has not the form it needs, where that is known."""
    match (*keys,):
        case ("requires", _) if isinstance(value, str):
            return "say who answers it, such as `{module: postgres-database}` or `{host: volume}`"
        case ("containers" | "jobs", _, "env") if isinstance(value, list):
            return "write each as `NAME: value`, without a dash"
        case ("containers", _, "image") if isinstance(value, str) and "@" not in value:
            return "`docker buildx imagetools inspect` prints the digest of an image"
        case ("containers", _, "publish", _):
            return "name a port requirement, such as `http: {host: port, listens: 8080}`"
        case _:
            return None
