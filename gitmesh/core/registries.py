"""Registries of images: which nodes pull from one, through what, and as whom (FORMATS "Node, mesh, acts").

What a node needs for itself, no module requires. It stands as a requirement of the mesh's on that node, so
that it is approved, delivered and named like any other secret: `mesh@athens.hub` is the handed value `hub`
there. No module is called `mesh`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitmesh.core.answer import Secret
from gitmesh.core.declaration import Holed, RegistrySpec, SecretHole, registry_of
from gitmesh.core.model import Assignment, Mesh, Module, Schema

MESH = "mesh"
"""The name that no module has."""
_CREDENTIAL: Schema = {"type": "string", "pattern": "[^:]+:.+"}
"""What logs in to a registry: `USER:PASSWORD`."""


def credentials(mesh: Mesh, assignments: Iterable[Assignment]) -> dict[str, Secret]:
    """By id, the credential of each registry that a node pulls from for `assignments`: a handed value, and
    received by that node alone."""
    found = {}
    for each in assignments:
        for host in _hosts(mesh.modules[each.module]):
            name = mesh.registries[host].credential if host in mesh.registries else None
            if name is not None:
                found[_id(each.node, name)] = _credential(each.node, name)
    return dict(sorted(found.items()))


def registries_of(mesh: Mesh, node: str, assignments: Iterable[str]) -> dict[str, RegistrySpec]:
    """By host, how the node reaches the registries of mesh.yaml that its `assignments` pull from."""
    modules = {mesh.assignments[each].module for each in assignments}
    pulled = {host for each in modules for host in _hosts(mesh.modules[each])}
    found = {}
    for host, said in sorted(mesh.registries.items()):
        if host in pulled and (said.mirror is not None or said.credential is not None):
            name = said.credential
            hole = None if name is None else Holed((SecretHole(_id(node, name)),))
            found[host] = RegistrySpec(said.mirror, hole)
    return found


def _hosts(module: Module) -> set[str]:
    """The registries that a module's images come from; a job on the host has no image."""
    containers = (*module.containers.values(), *(job.spec for job in module.jobs.values()))
    return {registry_of(each.image) for each in containers if each.image}


def _id(node: str, name: str) -> str:
    return f"{MESH}@{node}.{name}"


def _credential(node: str, name: str) -> Secret:
    return Secret(
        id=_id(node, name),
        kind="handed",
        assignment=f"{MESH}@{node}",
        contract="secret",
        field="value",
        schema=_CREDENTIAL,
        form="alnum",
        length=None,
        takes="apply",
        rotation="never",
        handed=name,
        own=True,
    )
