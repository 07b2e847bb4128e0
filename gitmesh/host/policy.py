"""The node's own veto, which no key in git can lift: `/etc/gitmesh/policy.yaml` (SECURITY §1.6 step 8, S64).

```yaml
roots: [/var/lib/mesh, /srv]          # directories and mounts lie below one of these
registries: [docker.io, ghcr.io]      # images come from these, mirrors included
capabilities: [host-network, 'cap:NET_ADMIN']
ports: {from: 30000, to: 32767}       # what is published lies between, both ends included
```
Each key may be absent, and then limits nothing. Capabilities are spelled as in an assignment's `grants`,
with a device by its path (`device:/dev/dri`), and `host-job` for a job that runs on the machine itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

from gitmesh.core.declaration import AssignmentSpec, ContainerSpec, Declaration, registry_of
from gitmesh.core.model import Json
from gitmesh.host.installed import ETC
from gitmesh.host.state import StateDamaged

POLICY_FILE = f"{ETC}/policy.yaml"
_LISTS = ("roots", "registries", "capabilities")


@dataclass(frozen=True, slots=True)
class Policy:
    """What this machine allows; None allows everything of its kind. `ports` are the first and the last."""

    roots: tuple[str, ...] | None = None
    registries: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] | None = None
    ports: tuple[int, int] | None = None

    def vetoed(self, declaration: Declaration) -> dict[str, str]:
        """By assignment that this machine does not allow, everything that stands against it."""
        mirrors = {
            host: each.mirror.partition("/")[0]
            for host, each in declaration.registries.items()
            if each.mirror is not None
        }
        assignments = sorted(declaration.assignments.items())
        found = {id_: list(self._against(spec, mirrors)) for id_, spec in assignments}
        return {id_: "; ".join(dict.fromkeys(wrongs)) for id_, wrongs in found.items() if wrongs}

    def _against(self, spec: AssignmentSpec, mirrors: Mapping[str, str]) -> Iterator[str]:
        for directory in spec.directories.values():
            yield from self._against_path(directory.location)
        for provision in spec.provides.values():
            if provision.location is not None:
                yield from self._against_path(provision.location)
        for container in (*spec.containers.values(), *(job.spec for job in spec.jobs.values())):
            yield from self._against_image(container.image, mirrors)
            yield from self._against_container(container)
        if any(job.where == "host" for job in spec.jobs.values()):
            yield from self._against_capability("host-job")

    def _against_image(self, image: str, mirrors: Mapping[str, str]) -> Iterator[str]:
        """The registry that the image names, and the one that it is pulled from instead."""
        if not image or self.registries is None:
            return
        registry = registry_of(image)
        for each in dict.fromkeys((registry, mirrors.get(registry, registry))):
            if each not in self.registries:
                yield f"the registry {each} is not allowed on this node"

    def _against_container(self, container: ContainerSpec) -> Iterator[str]:
        for mount in container.mounts.values():
            if mount.kind == "device":
                yield from self._against_capability(f"device:{mount.location}")
            elif mount.kind != "volume":
                yield from self._against_path(mount.location)
        for capability in _capabilities(container.plain):
            yield from self._against_capability(capability)
        for publish in container.publish:
            if self.ports is not None and not self.ports[0] <= publish.port <= self.ports[1]:
                yield f"the port {publish.port} is not allowed on this node"

    def _against_path(self, location: str) -> Iterator[str]:
        if self.roots is not None and not any(_is_below(location, root) for root in self.roots):
            yield f"the path {location} is not allowed on this node"

    def _against_capability(self, capability: str) -> Iterator[str]:
        if self.capabilities is not None and capability not in self.capabilities:
            yield f"the capability {capability} is not allowed on this node"


def read_policy(root: Path) -> Policy:
    """The policy of the node whose files are below `root`; one that allows everything where it has none.

    Raises `StateDamaged` for a file that is no policy: a fence that can't be read is not taken for open.
    """
    path = root / POLICY_FILE
    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        return Policy()
    from gitmesh.repo import document  # here, since most nodes have no policy

    value, refusals = document.read(str(path), blob)
    if refusals:
        span = refusals[0].at.span
        raise _broken(path, f"line {span.line}: {refusals[0].message}" if span else refusals[0].message)
    if not isinstance(value, dict) or not value.keys() <= {*_LISTS, "ports"}:
        raise _broken(path, f"expected {', '.join(_LISTS)} and ports, each of them optional")
    roots, registries, capabilities = (_texts(path, value, key) for key in _LISTS)
    return Policy(roots, registries, capabilities, _ports(path, value.get("ports")))


def _capabilities(plain: Mapping[str, Json]) -> Iterator[str]:
    # A declaration that was forged may say anything: whatever stands there is taken for the most.
    if plain.get("network"):
        yield "host-network"
    if plain.get("pid"):
        yield "host-pid"
    if plain.get("privileged"):
        yield "privileged"
    capabilities = plain.get("capabilities") or []
    for each in capabilities if isinstance(capabilities, list) else ["ALL"]:
        yield f"cap:{each}"


def _is_below(location: str, root: str) -> bool:
    """Whether the path is `root` or below it, however both are written; `..` is followed out."""
    path, root = normpath(location), normpath(root)
    return path == root or path.startswith(root.rstrip("/") + "/")


def _texts(path: Path, value: Mapping[str, Json], key: str) -> tuple[str, ...] | None:
    listed = value.get(key)
    if listed is None and key not in value:
        return None
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise _broken(path, f"{key}: expected a list of texts")
    if key == "roots" and not all(each.startswith("/") for each in listed):
        raise _broken(path, "roots: expected whole paths, such as /srv")
    return tuple(listed)


def _ports(path: Path, value: Json) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case {"from": int(first), "to": int(last), **rest} if not rest and 0 < first <= last < 65536:
            return first, last
        case _:
            raise _broken(path, "ports: expected {from: 30000, to: 32767}")


def _broken(path: Path, why: str) -> StateDamaged:
    return StateDamaged(str(path), f"is no policy ({why})", "mend it; until then nothing is applied")
