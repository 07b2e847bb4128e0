"""The node's own veto (SECURITY §1.6 step 8): what it refuses whatever was approved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitmesh.core.declaration import (
    AssignmentSpec,
    ContainerSpec,
    Declaration,
    DirectorySpec,
    JobSpec,
    MountSpec,
    ProvisionSpec,
    PublishSpec,
    RegistrySpec,
    registry_of,
)
from gitmesh.host.policy import POLICY_FILE, Policy, read_policy
from gitmesh.host.state import StateDamaged
from tests.host.settled import command, copy_of, running, settled_mesh
from tests.world import World

IMAGE = "docker.io/library/x:1@sha256:0"
PLAIN = AssignmentSpec("x", containers={"x": ContainerSpec(IMAGE)})


def vetoed(policy: Policy, spec: AssignmentSpec) -> str:
    """What stands against `spec`; another assignment beside it is never touched."""
    assignments = {"bad@athens": spec, "fine@athens": PLAIN}
    found = policy.vetoed(Declaration("0" * 32, "hellas", "athens", "::1", "/", assignments=assignments))
    assert found.keys() <= {"bad@athens"}
    return found.get("bad@athens", "")


def container(**changed: Any) -> AssignmentSpec:
    return AssignmentSpec("x", containers={"x": replace(ContainerSpec(IMAGE), **changed)})


def mount(location: str, kind: str = "access") -> AssignmentSpec:
    return container(mounts={"/in": MountSpec(location, kind=kind)})


def published(port: int) -> AssignmentSpec:
    return container(publish=(PublishSpec("::1", port, 80, "tcp", "mesh"),))


def store(location: str) -> AssignmentSpec:
    return AssignmentSpec("x", provides={"secret": ProvisionSpec("vault", location=location)})


def directory(location: str) -> AssignmentSpec:
    return AssignmentSpec("x", directories={"data": DirectorySpec(location, "0:0", "0750")})


@pytest.mark.rule("S64")
@pytest.mark.parametrize(
    ("policy", "spec", "said"),
    [
        (Policy(roots=("/srv",)), directory("/srv/gitea/data"), ""),
        (Policy(roots=("/srv/",)), directory("/srv"), ""),
        (Policy(roots=("/",)), directory("/anywhere"), ""),
        (Policy(roots=("/srv",)), directory("/srvice"), "/srvice"),
        (Policy(roots=("/srv",)), directory("/srv/../etc"), "/srv/../etc"),
        (Policy(roots=()), directory("/srv"), "/srv"),
        (Policy(roots=("/srv",)), mount("/"), "path /"),
        (Policy(roots=("/srv",)), mount("/run/podman.sock"), "/run/podman.sock"),
        (Policy(roots=("/srv",)), mount("volume:x-cache", "volume"), ""),
        (Policy(roots=("/srv",)), store("/x"), "path /x"),
        (Policy(registries=("docker.io",)), container(), ""),
        (Policy(registries=("docker.io",)), container(image="ghcr.io/x/y:1"), "ghcr.io"),
        (Policy(registries=("docker.io",)), container(image="docker.io.evil.example/x:1"), "evil"),
        (Policy(capabilities=()), container(plain={"network": "host"}), "host-network"),
        (Policy(capabilities=("host-network",)), container(plain={"network": "host"}), ""),
        (Policy(capabilities=()), container(plain={"pid": "host"}), "host-pid"),
        (Policy(capabilities=()), container(plain={"privileged": True}), "privileged"),
        (Policy(capabilities=("cap:X",)), container(plain={"capabilities": ["X", "Y"]}), "cap:Y"),
        (Policy(capabilities=()), container(plain={"capabilities": 7}), "cap:ALL"),
        (Policy(capabilities=()), mount("/dev/dri", "device"), "device:/dev/dri"),
        (Policy(capabilities=("device:/dev/dri",), roots=("/srv",)), mount("/dev/dri", "device"), ""),
        (Policy(ports=(30000, 32767)), published(30000), ""),
        (Policy(ports=(30000, 32767)), published(22), "port 22"),
    ],
)
def test_each_kind_is_held_against_the_policy(policy: Policy, spec: AssignmentSpec, said: str) -> None:
    found = vetoed(policy, spec)
    assert said in found and bool(found) == bool(said)


@pytest.mark.rule("S64")
@pytest.mark.parametrize("mirror", ["evil.example/hub", "evil.example:5000", "evil"])
def test_a_mirror_is_held_against_it_too(mirror: str) -> None:
    spec = container(image="docker.io/library/x:1")
    declaration = Declaration("0" * 32, "hellas", "athens", "::1", "/", assignments={"x@athens": spec})
    mirrored = replace(declaration, registries={"docker.io": RegistrySpec(mirror)})
    policy = Policy(registries=("docker.io",))
    assert policy.vetoed(declaration) == {}
    host = mirror.partition("/")[0]
    assert policy.vetoed(mirrored) == {"x@athens": f"the registry {host} is not allowed on this node"}
    assert Policy(registries=("docker.io", host)).vetoed(mirrored) == {}


@pytest.mark.rule("S64")
def test_jobs_are_held_against_it_and_everything_is_said_at_once() -> None:
    like = JobSpec("daily", "like", "x", ContainerSpec("evil.example/x:1", plain={"privileged": True}))
    host = JobSpec("daily", "host", None, ContainerSpec("", command=("true",)))
    spec = AssignmentSpec("x", jobs={"like": like, "host": host})
    found = vetoed(Policy(registries=("docker.io",), capabilities=()), spec)
    assert "evil.example" in found and "privileged" in found and "host-job" in found
    assert vetoed(Policy(registries=("evil.example", "docker.io")), spec) == ""


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("postgres:17", "docker.io"),
        ("library/postgres:17", "docker.io"),
        ("docker.io/library/postgres:17", "docker.io"),
        ("localhost/x", "localhost"),
        ("registry:5000/x", "registry:5000"),
        ("ghcr.io/x/y@sha256:0", "ghcr.io"),
    ],
)
def test_the_registry_of_an_image(image: str, registry: str) -> None:
    assert registry_of(image) == registry


def write(root: Path, text: str) -> Path:
    path = root / POLICY_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_policy_is_read(tmp_path: Path) -> None:
    assert read_policy(tmp_path) == Policy()
    write(tmp_path, "roots: [/srv]\nregistries: []\ncapabilities: ['cap:X']\nports: {from: 1, to: 9}\n")
    assert read_policy(tmp_path) == Policy(("/srv",), (), ("cap:X",), (1, 9))


@pytest.mark.rule("S64")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "root: [/srv]\n",
        "roots: /srv\n",
        "roots: [srv]\n",
        "roots: [1]\n",
        "roots:\n",
        "ports: {from: 9, to: 1}\n",
        "ports: {from: 1}\n",
        "ports: 80\n",
        "roots: [\n",
        "roots: [/a]\nroots: [/b]\n",
    ],
)
def test_what_is_no_policy_is_not_taken_for_an_open_one(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(StateDamaged) as raised:
        read_policy(tmp_path)
    assert str(raised.value).startswith(f"{path}: is no policy")


# --- in a pull -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with settled_mesh(tmp_path_factory.mktemp("settled")) as world:
        yield world


@pytest.fixture
def world(settled: World, tmp_path: Path) -> World:
    return copy_of(settled, tmp_path / "world")


@pytest.mark.rule("S64", "G9")
def test_what_it_vetoes_is_named_and_stays_as_it_was_and_the_rest_goes_on(world: World) -> None:
    sparta = world.root("sparta")
    before = running(sparta)
    write(sparta, "registries: [docker.io]\n")
    edited = sparta / "var/lib/gitmesh/files/postgres@sparta/postgres.environment"
    kept = edited.read_bytes()
    edited.unlink()
    done = command(world, "sparta")
    assert done.exit_code == 1
    assert f"umami@sparta: /{POLICY_FILE}: the registry ghcr.io is not allowed on this node" in done.output
    assert edited.read_bytes() == kept
    assert running(sparta) == before
    assert "postgres@sparta: /" not in done.output


@pytest.mark.rule("S64")
def test_on_a_new_node_nothing_of_it_is_placed(settled: World, tmp_path: Path) -> None:
    world = copy_of(settled, tmp_path / "world")
    athens = world.root("athens")
    for part in ("var", "run"):
        (athens / part).rename(tmp_path / part)
    write(athens, "roots: [/srv]\n")
    done = command(world, "athens")
    assert done.exit_code == 1 and "/var/lib/mesh/gitea/data is not allowed" in done.output
    assert not (athens / "var/lib/mesh").exists() and not (athens / "run").exists()
    assert not (athens / "var/lib/gitmesh/files").exists()


@pytest.mark.rule("S64")
def test_a_broken_policy_stops_the_pull_and_leaves_what_runs(world: World) -> None:
    athens = world.root("athens")
    before = running(athens)
    write(athens, "roots: /srv\n")
    done = command(world, "athens")
    assert done.exit_code == 1 and "until then nothing is applied" in done.output
    assert running(athens) == before
