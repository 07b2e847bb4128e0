"""The nouns of a mesh repo: what `gitmesh.repo.load` makes of one commit, and what resolution reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gitmesh.core.reference import Text
from gitmesh.core.refusal import NOWHERE, At

Json = Any
"""A JSON value without floats: None, bool, int, str, list, dict with string keys."""

Schema = Mapping[str, Json]
"""A schema of the contracts' subset (`core.contract`)."""

Tree = Text | int | bool | None | Sequence["Tree"] | Mapping[str, "Tree"]
"""A structured value whose strings are text with references. `Text` is a tuple; a JSON list is a `list`."""


class Kind(StrEnum):
    """The four kinds of provider; the set is closed (A1)."""

    MODULE = "module"
    HOST = "host"
    MESH = "mesh"
    OPERATOR = "operator"


class Takes(StrEnum):
    """How a recipient takes a new value of a secret (D7)."""

    START = "start"
    APPLY = "apply"
    FIRST_START = "first-start"
    NEVER = "never"


# --- contracts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """What a consumer may ask of a provider. `default` counts only where `has_default`."""

    schema: Schema
    has_default: bool = False
    default: Json = None
    from_operator: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """What a consumer may read. `derived` is a pattern of literal pieces and names of other fields."""

    schema: Schema
    secret: bool = False
    form: str | None = None
    derived: tuple[str | FieldName, ...] | None = None
    hashed: tuple[str, str] | None = None
    """(the field it is a hash of, the hash)"""


@dataclass(frozen=True, slots=True)
class FieldName:
    """`{host}` in a derived field: another field or an ask of the same contract."""

    name: str


@dataclass(frozen=True, slots=True)
class Credential:
    """The contract's secret: which field logs in, which proves, who makes it, how it may change."""

    secret: str
    by: str
    """`vault` or `provider`"""
    rotation: str
    """`two`, `in-place` or `never`"""
    check: str
    """What the reader authenticates with: postgres, mariadb, redis, amqp, s3, none."""
    login: str | None = None
    max_age: str | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """A provision's name, what may be asked and what may be read (A6)."""

    name: str
    fields: Mapping[str, Field]
    asks: Mapping[str, Ask] = field(default_factory=dict)
    unique: tuple[str, ...] = ()
    credential: Credential | None = None
    tls: bool = False
    at: At = NOWHERE


# --- modules -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of `requires:`. `asks` are what it says beside the options; for a host requirement its
    options (`owner`, `mode`, `listens`, …), for an operator's none."""

    name: str
    kind: Kind
    contract: str
    """A contract's name; for the host directory, volume, access, device, port, machine, machines; for
    the mesh identity, facts; for the operator `value`."""
    at: At
    asks: Mapping[str, Tree] = field(default_factory=dict)
    narrow: Mapping[str, Schema] = field(default_factory=dict)
    takes: Takes | None = None
    optional: bool = False
    as_word: str | None = None
    seat: str | None = None
    max_age: str | None = None
    schema: Schema | None = None
    """The operator value's type."""
    has_default: bool = False
    default: Json = None


@dataclass(frozen=True, slots=True)
class EnvFile:
    """An environment value that is the path of a file holding `text`, after `prefix`."""

    text: Text
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """A file in a container. `format` is text, from, or a structured format's name.

    `text` for text; `source` (a file beside the module) for from; `tree` for ini, env, properties,
    yaml, json, toml. `each` names a provision of the module: one file for each of its consumers.
    """

    format: str
    at: At
    text: Text = ()
    source: str = ""
    tree: Tree = None
    owner: str | None = None
    mode: str | None = None
    each: str | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """The host side of a mount: a requirement, and a path below its location."""

    requirement: str
    sub: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class When:
    """What a container has besides, where an optional requirement is used."""

    env: Mapping[str, Text | EnvFile] = field(default_factory=dict)
    env_file: Mapping[str, Text] = field(default_factory=dict)
    files: Mapping[Text, Content] = field(default_factory=dict)
    mounts: Mapping[str, Mount] = field(default_factory=dict)
    publish: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """A container as its module says it; `like` is already merged in.

    `plain` holds the keys that carry no reference and are handed on as they are: user, after, shm,
    tmpfs, stop, limits, reload, rollback, network, pid, capabilities, privileged.
    """

    name: str
    at: At
    image: str
    entrypoint: tuple[Text, ...] = ()
    command: tuple[Text, ...] = ()
    env: Mapping[str, Text | EnvFile] = field(default_factory=dict)
    env_from: str | None = None
    env_file: Mapping[str, Text] = field(default_factory=dict)
    env_file_reason: str = ""
    files: Mapping[Text, Content] = field(default_factory=dict)
    """The path is text, since with `each` it holds `${consumer:as}`."""
    mounts: Mapping[str, Mount] = field(default_factory=dict)
    publish: tuple[str, ...] = ()
    health: Json = None
    """As in the file; `port` may name a port requirement."""
    hostname: Text | None = None
    user: str | None = None
    reads_as: str | None = None
    image_paths: tuple[str, ...] = ()
    plain: Mapping[str, Json] = field(default_factory=dict)
    when: Mapping[str, When] = field(default_factory=dict)
    written: Mapping[tuple[str | int, ...], At] = field(default_factory=dict)
    """Of one that is `like` another: where each of its parts is written, by the keys that lead to it."""

    def place(self, *keys: str | int) -> At:
        """Where `keys` of the container is written: in itself, or in the one that it took it over from."""
        for end in range(len(keys), 0, -1):
            if keys[:end] in self.written:
                return self.written[keys[:end]].child(*keys[end:])
        return self.at.child(*keys)


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `where` is `in`, `like` or `host`; `spec` holds its command (on the host its program), env,
    files and mounts."""

    name: str
    at: At
    schedule: str
    where: str
    container: str | None
    """The container it runs in, or is like; None on the host."""
    spec: Container


@dataclass(frozen=True, slots=True)
class Provisioner:
    """Who makes a consumer's resource: an adapter, where it reaches the backend, and as whom."""

    adapter: str
    at: str | None = None
    login: str | None = None
    admin: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    """For exec: in, command, first, rotation."""


@dataclass(frozen=True, slots=True)
class Provision:
    """One line of `provides:`."""

    contract: str
    at: At
    accepts: Mapping[str, Schema] = field(default_factory=dict)
    serves: Mapping[str, Text] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    provisioner: Provisioner | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A module's definition; it names no node, no mesh and no host path (A2)."""

    name: str
    at: At
    seats: tuple[str, ...] = ()
    requires: Mapping[str, Requirement] = field(default_factory=dict)
    containers: Mapping[str, Container] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    provides: Mapping[str, Provision] = field(default_factory=dict)
    unused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    exceptions: Mapping[str, str] = field(default_factory=dict)
    restart_on: tuple[str, ...] = ()
    sources: Mapping[str, bytes] = field(default_factory=dict)
    """The files beside the module that a `from:` names."""


# --- nodes, assignments, the mesh ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keys:
    """A node's public keys, `ed25519:<base64>` and `x25519:<base64>`, and their epoch."""

    sign: str
    seal: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a node applies nothing for a while, and until when (a day or a time in UTC)."""

    reason: str
    until: str


@dataclass(frozen=True, slots=True)
class Node:
    """A machine. Ports are given out from `first` to `last`, without those reserved (B17). `state` is
    active, paused (then `pause` says why) or revoked; `enrol` the public half of its token."""

    name: str
    at: At
    address: str
    public: str | None = None
    root: str = "/var/lib/mesh"
    first: int = 31000
    last: int = 31999
    reserved: frozenset[int] = frozenset()
    labels: tuple[str, ...] = ()
    keys: Keys | None = None
    state: str = "active"
    pause: Pause | None = None
    machine: Mapping[str, Json] = field(default_factory=dict)
    """What was said of the machine: arch, cpus, memory (in bytes)."""
    enrol: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A module on a node, and what the operator says of it. `spread` names the spread it comes from."""

    module: str
    node: str
    at: At
    pins: Mapping[str, str] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    values: Mapping[str, Json] = field(default_factory=dict)
    place: Mapping[str, Json] = field(default_factory=dict)
    holds: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    as_: str | None = None
    spread: str | None = None
    fresh: bool = False
    """Orphaned data is refused, not taken up again (G8)."""
    moved: bool = False
    """The data of its directories is where they are now (G8)."""

    @property
    def id(self) -> str:
        """`module@node`."""
        return f"{self.module}@{self.node}"


@dataclass(frozen=True, slots=True)
class Layers:
    """`values/<module>.yaml`: values for the whole mesh, and by label."""

    at: At
    mesh: Mapping[str, Json] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Registry:
    """How nodes reach a registry of images: pulled from `mirror` instead, with the handed `credential`."""

    mirror: str | None = None
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class Rollout:
    """A module's change reaches the nodes labelled `first`, the rest once those are `healthy` that long."""

    first: str
    healthy: str


@dataclass(frozen=True, slots=True)
class Mesh:
    """One commit of a mesh repo, read and checked file by file."""

    name: str
    id: str
    at: At
    domain: str | None = None
    timezone: str = "UTC"
    origin: str = ""
    mailbox: str = ""
    branch: str = "deploy"
    keep: int = 20
    seats: Mapping[str, str | None] = field(default_factory=dict)
    """Every seat of this commit, shipped ones included, and the contract it delivers (None: foundation)."""
    choose: Mapping[str, str] = field(default_factory=dict)
    registries: Mapping[str, Registry] = field(default_factory=dict)
    rollout: Rollout | None = None
    notify: Mapping[str, str] = field(default_factory=dict)
    """Where to report to, by name."""
    gitmesh: str | None = None
    """The version that nodes run."""
    allow_drop: tuple[str, ...] = ()
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    modules: Mapping[str, Module] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    values: Mapping[str, Layers] = field(default_factory=dict)
    handed: Mapping[str, str] = field(default_factory=dict)
    """Name of a handed value to the sha256 of its file's bytes."""
    rotations: Mapping[str, int] = field(default_factory=dict)
    abandon: tuple[str, ...] = ()
    purges: tuple[str, ...] = ()
    """Ids of orphaned data to remove."""
    reveals: Mapping[str, str] = field(default_factory=dict)
    """Secret id to the approver's key that it is revealed to."""
    broken: frozenset[str] = frozenset()
    """Ids (`modules/x`, `nodes/y`, `contracts/z`, `module@node`) whose file was refused: what depends on
    one of them is silent, so that one mistake gives one refusal."""
