"""What one node is to be: composed by the controller, read by the host (`schemas/declaration.json`).

It holds no secret: where one goes there is a hole, filled on the node. `core.codec` turns it into plain JSON
and back; `trust.canonical` makes the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from gitmesh.core.codec import Malformed
from gitmesh.core.model import Json, Schema

VERSION = 1


@dataclass(frozen=True, slots=True)
class SecretHole:
    """The current value of a secret, by its id (`gitea@athens.database`); `url`: percent-encoded."""

    secret: str
    url: bool = False


@dataclass(frozen=True, slots=True)
class LoginHole:
    """What the consumer logs in with now: `<as>_a` or `<as>_b`; it changes with a rotation."""

    secret: str
    url: bool = False


@dataclass(frozen=True, slots=True)
class AnswerHole:
    """A field that only the running provider knows, for one consumer's requirement."""

    by: str
    """the provider, `umami@athens`"""
    to: str
    """the consumer's requirement, `gitea@athens.stats`"""
    field: str
    url: bool = False


Hole = SecretHole | LoginHole | AnswerHole


@dataclass(frozen=True, slots=True)
class Holed:
    """Text with at least one hole. In JSON a list of strings and `{"secret": id}`, `{"login": id}`,
    `{"answer": {"by", "for", "field"}}`, each with `"encode": "url"` where it stands in a URL."""

    pieces: tuple[str | Hole, ...]

    def to_json(self) -> Json:
        """The list."""
        return [piece if isinstance(piece, str) else _hole_to_json(piece) for piece in self.pieces]

    @classmethod
    def from_json(cls, value: Json, where: str) -> Holed:
        """From the list. Raises `Malformed`."""
        if not isinstance(value, list) or not any(isinstance(piece, dict) for piece in value):
            raise Malformed(f"{where}: expected text with holes")
        return cls(tuple(piece if isinstance(piece, str) else _hole(piece, where) for piece in value))


def _hole_to_json(hole: Hole) -> Json:
    match hole:
        case SecretHole(secret=secret):
            value: dict[str, Json] = {"secret": secret}
        case LoginHole(secret=secret):
            value = {"login": secret}
        case AnswerHole():
            value = {"answer": {"by": hole.by, "for": hole.to, "field": hole.field}}
        case _:
            assert_never(hole)
    return {**value, "encode": "url"} if hole.url else value


def _hole(value: Json, where: str) -> Hole:
    match value:
        case {"secret": str(secret), **rest}:
            hole: Hole = SecretHole(secret, "encode" in rest)
        case {"login": str(secret), **rest}:
            hole = LoginHole(secret, "encode" in rest)
        case {"answer": {"by": str(by), "for": str(to), "field": str(name)}, **rest}:
            hole = AnswerHole(by, to, name, "encode" in rest)
        case _:
            raise Malformed(f"{where}: expected a hole")
    if _hole_to_json(hole) != value:
        raise Malformed(f"{where}: unknown key in a hole")
    return hole


Filled = str | Holed
"""Text that the node fills: plain, or with holes."""


def holes(text: Filled) -> tuple[Hole, ...]:
    """The holes of `text`, in order."""
    return () if isinstance(text, str) else tuple(each for each in text.pieces if not isinstance(each, str))


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A file given to a container, bind-mounted at its path. `format` text or a structured format.

    For text `text`; else `tree`, a JSON value whose texts with holes stand in `holes` by JSON pointer
    (the tree has null there). `content` is base64 for a file copied verbatim from beside the module.
    `secret`: at least one hole is a secret; its mode is 0400 unless the module says another.
    """

    format: str
    owner: str
    mode: str
    text: Filled = ""
    tree: Json = None
    holes: Mapping[str, Filled] = field(default_factory=dict)
    content: str | None = None
    secret: bool = False


@dataclass(frozen=True, slots=True)
class MountSpec:
    """`location` is a path of the host, or `volume:<assignment's as>-<name>`."""

    location: str
    read_only: bool = False
    kind: str = "directory"
    """directory, volume, access, device"""


@dataclass(frozen=True, slots=True)
class PublishSpec:
    """A published port: `address` is the one of the node it binds to (private for mesh, 127.0.0.1 for
    local, 0.0.0.0 for public)."""

    address: str
    port: int
    listens: int
    protocol: str
    reach: str


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container. `plain` is copied from the module (shm, stop, limits, after, …)."""

    image: str
    user: str | None = None
    reads_as: str = "0:0"
    entrypoint: tuple[Filled, ...] = ()
    command: tuple[Filled, ...] = ()
    env: Mapping[str, Filled] = field(default_factory=dict)
    env_file: Mapping[str, Filled] = field(default_factory=dict)
    files: Mapping[str, FileSpec] = field(default_factory=dict)
    mounts: Mapping[str, MountSpec] = field(default_factory=dict)
    publish: tuple[PublishSpec, ...] = ()
    hostname: Filled | None = None
    health: Json = None
    plain: Mapping[str, Json] = field(default_factory=dict)


def registry_of(image: str) -> str:
    """The host that an image comes from: `docker.io` where its name says none."""
    first, slash, _ = image.partition("/")
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first if named else "docker.io"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job: `where` in, like, host; on the host the command is its program."""

    schedule: str
    where: str
    container: str | None
    spec: ContainerSpec


@dataclass(frozen=True, slots=True)
class DirectorySpec:
    """A directory that the host makes and keeps. `subs` are made below it with the same owner."""

    location: str
    owner: str
    mode: str
    subs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """A provider's entry for one consumer's requirement (B20)."""

    to: str
    """the requirement, `gitea@athens.database`"""
    as_: str
    node: str
    address: str
    asks: Mapping[str, Json] = field(default_factory=dict)
    serves: Mapping[str, Filled] = field(default_factory=dict)
    secret: str | None = None
    """the credential's id, where there is one"""
    login: Filled | None = None
    """the login field as the consumer presents it"""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProvisionSpec:
    """A provision this node gives: how to reach the backend, and for whom."""

    adapter: str | None = None
    address: str | None = None
    port: int | None = None
    location: str | None = None
    login: str | None = None
    admin: str | None = None
    """the id of the administrator's secret"""
    options: Mapping[str, Json] = field(default_factory=dict)
    consumers: tuple[ConsumerSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class AssignmentSpec:
    """One assignment of the node."""

    as_: str
    directories: Mapping[str, DirectorySpec] = field(default_factory=dict)
    """by the requirement's name"""
    containers: Mapping[str, ContainerSpec] = field(default_factory=dict)
    jobs: Mapping[str, JobSpec] = field(default_factory=dict)
    provides: Mapping[str, ProvisionSpec] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    """the providers whose credential or answer it waits for; they are started first"""
    checks: Mapping[str, CheckSpec] = field(default_factory=dict)
    """by requirement: how this reader authenticates"""


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """How a reader confirms a credential: with `check`, presenting `fields` of the contract."""

    check: str
    secret: str
    fields: Mapping[str, Filled] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretSpec:
    """A secret that this node receives: what its values are held against (as narrowed).

    `role`: present (reads it), apply (its provisioner sets it), own (the module's own).
    """

    assignment: str
    """the consumer's assignment"""
    field: str
    schema: Schema
    role: str
    takes: str
    by: str | None = None
    """the provider assignment that applies it, None for a module's own"""
    logins: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AnswersSpec:
    """What a provider answers for a consumer of this node: `node` signs it, each field against its schema."""

    by: str
    node: str
    fields: Mapping[str, Schema]
    generation: int = 0
    """counts up where a commit accepts what is answered now in place of what was taken (B12)"""


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """How a registry of images is reached: pulled from `mirror` instead, and with `credential`
    (`USER:PASSWORD`)."""

    mirror: str | None = None
    credential: Filled | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """Everything one node is to be."""

    mesh: str
    """the mesh's id"""
    name: str
    """the mesh's name"""
    node: str
    address: str
    root: str
    hosts: Mapping[str, str] = field(default_factory=dict)
    """private name to address, of every node"""
    assignments: Mapping[str, AssignmentSpec] = field(default_factory=dict)
    secrets: Mapping[str, SecretSpec] = field(default_factory=dict)
    answers: Mapping[str, AnswersSpec] = field(default_factory=dict)
    """by the consumer's requirement"""
    registries: Mapping[str, RegistrySpec] = field(default_factory=dict)
    """by the host that images name, as far as this node pulls from it"""


def assignment_holes(spec: AssignmentSpec) -> Iterator[Hole]:
    """Every hole of what an assignment runs, in order."""
    for container in (*spec.containers.values(), *(job.spec for job in spec.jobs.values())):
        yield from container_holes(container)


def container_holes(container: ContainerSpec) -> Iterator[Hole]:
    """Every hole of a container, in order."""
    texts: list[Filled] = [
        *container.entrypoint,
        *container.command,
        *container.env.values(),
        *container.env_file.values(),
        *(() if container.hostname is None else (container.hostname,)),
    ]
    for text in texts:
        yield from holes(text)
    for file in container.files.values():
        yield from file_holes(file)


def file_holes(file: FileSpec) -> Iterator[Hole]:
    """Every hole of a file, in order."""
    for text in (file.text, *file.holes.values()):
        yield from holes(text)
