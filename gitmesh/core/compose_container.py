"""One container of an assignment, composed: its texts filled from the answers (FORMATS "Containers")."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gitmesh.core.answer import Answered
from gitmesh.core.declaration import (
    ContainerSpec,
    FileSpec,
    Filled,
    Holed,
    MountSpec,
    PublishSpec,
    SecretHole,
    holes,
)
from gitmesh.core.model import Assignment, Container, Content, EnvFile, Json, Mesh, Mount, Tree
from gitmesh.core.read import Reader, as_text
from gitmesh.core.reference import Text

_BIND = {"public": "0.0.0.0", "local": "127.0.0.1"}  # noqa: S104 - `reach: public` means just that


@dataclass(frozen=True, slots=True)
class Composer:
    """Composes the containers of one assignment; `clients` are the consumers of every provision."""

    mesh: Mesh
    reader: Reader
    assignment: Assignment
    clients: Mapping[tuple[str, str], list[Answered]]

    def container(self, container: Container) -> ContainerSpec:
        """The container with every text filled and every optional requirement's part taken in or left out."""
        env = dict(container.env)
        env_file = dict(container.env_file)
        files = dict(container.files)
        mounts = dict(container.mounts)
        publish = list(container.publish)
        for requirement, when in container.when.items():
            if (self.assignment.id, requirement) in self.reader.answers:
                env |= when.env
                env_file |= when.env_file
                files |= when.files
                mounts |= when.mounts
                publish += when.publish
        owner = _owner(container)
        composed_env, composed_files = self._env(container, env, owner)
        for path, content in files.items():
            composed_files |= self._files(path, content, owner)
        return ContainerSpec(
            image=container.image,
            user=container.user,
            reads_as=owner,
            entrypoint=self._texts(container.entrypoint),
            command=self._texts(container.command),
            env=composed_env,
            env_file={name: self._text(text) for name, text in env_file.items()},
            files=composed_files,
            mounts={path: self._mount(mount) for path, mount in mounts.items()},
            publish=tuple(self._publish(each) for each in publish),
            hostname=None if container.hostname is None else self._text(container.hostname),
            health=self._health(container.health),
            plain=container.plain,
        )

    def _text(self, text: Text) -> Filled:
        return self.reader.text(text, self.assignment.id)

    def _texts(self, texts: Sequence[Text]) -> tuple[Filled, ...]:
        return tuple(self._text(each) for each in texts)

    def _env(
        self, container: Container, env: Mapping[str, Text | EnvFile], owner: str
    ) -> tuple[dict[str, Filled], dict[str, FileSpec]]:
        """The environment, and the files that its secret values become (A5)."""
        composed: dict[str, Filled] = {}
        files: dict[str, FileSpec] = {}
        if container.env_from is not None:
            given = self.reader.field(self.assignment.id, container.env_from, "value")
            composed |= {name: as_text(value) for name, value in given.items()}
        for name, value in env.items():
            if isinstance(value, EnvFile):
                path = f"/run/secrets/{name.lower()}"
                files[path] = _text_file(self._text(value.text), owner, None, None)
                composed[name] = value.prefix + path
            else:
                composed[name] = self._text(value)
        return composed, files

    def _files(self, path: Text, content: Content, owner: str) -> dict[str, FileSpec]:
        if content.each is None:
            return {_path(self._text(path)): self._file(content, owner, None)}
        clients = self.clients.get((self.assignment.id, content.each), [])
        return {
            _path(self.reader.text(path, self.assignment.id, client)): self._file(content, owner, client)
            for client in clients
        }

    def _file(self, content: Content, owner: str, client: Answered | None) -> FileSpec:
        if content.format == "text":
            text = self.reader.text(content.text, self.assignment.id, client)
            return _text_file(text, owner, content.owner, content.mode)
        if content.format == "from":
            source = self.mesh.modules[self.assignment.module].sources[content.source]
            return FileSpec(
                "from",
                content.owner or "0:0",
                content.mode or "0444",
                content=base64.b64encode(source).decode("ascii"),
            )
        found: dict[str, Filled] = {}
        tree = self._tree(content.tree, client, "", found)
        secret = any(isinstance(hole, SecretHole) for text in found.values() for hole in holes(text))
        return FileSpec(
            content.format,
            content.owner or (owner if secret else "0:0"),
            content.mode or ("0400" if secret else "0444"),
            tree=tree,
            holes=found,
            secret=secret,
        )

    def _tree(self, tree: Tree, client: Answered | None, pointer: str, found: dict[str, Filled]) -> Json:
        """The tree as JSON; a text with holes leaves null there and is kept in `found` by its pointer."""
        if isinstance(tree, tuple):
            value = self.reader.value(tree, self.assignment.id, client)
            if isinstance(value, Holed):
                found[pointer] = value
                return None
            return value
        if isinstance(tree, list):
            return [self._tree(each, client, f"{pointer}/{n}", found) for n, each in enumerate(tree)]
        if isinstance(tree, Mapping):
            return {
                key: self._tree(each, client, f"{pointer}/{_escaped(key)}", found)
                for key, each in tree.items()
            }
        return tree

    def _mount(self, mount: Mount) -> MountSpec:
        answered = self.reader.answers[self.assignment.id, mount.requirement]
        location = str(answered.fields["location"])
        if mount.sub:
            location = f"{location.rstrip('/')}/{mount.sub}"
        read_only = mount.read_only or answered.requirement.asks.get("allow") == "read"
        return MountSpec(location, read_only, answered.requirement.contract)

    def _publish(self, requirement: str) -> PublishSpec:
        answered = self.reader.answers[self.assignment.id, requirement]
        asks = answered.requirement.asks
        reach = str(asks.get("reach", "mesh"))
        node = self.mesh.nodes[self.assignment.node]
        return PublishSpec(
            _BIND.get(reach, node.address),
            answered.fields["port"],
            answered.fields["listens"],
            str(asks.get("protocol", "tcp")),
            reach,
        )

    def _health(self, health: Json) -> Json:
        """Health is tried at the container's own address, so a port requirement is what it listens on."""
        if not isinstance(health, Mapping):
            return health
        composed = dict(health)
        if isinstance(health.get("http"), Mapping):
            composed["http"] = {**health["http"], "port": self._listens(health["http"].get("port"))}
        if "tcp" in health:
            composed["tcp"] = self._listens(health["tcp"])
        return composed

    def _listens(self, port: Json) -> Json:
        answered = self.reader.answers.get((self.assignment.id, port)) if isinstance(port, str) else None
        return port if answered is None else answered.fields["listens"]


def _owner(container: Container) -> str:
    """Who reads the container's secret files: `reads-as`, else its user where that is numeric, else root."""
    if container.reads_as is not None:
        return container.reads_as
    user, _, group = (container.user or "").partition(":")
    return f"{user}:{group or user}" if user.isdigit() and (not group or group.isdigit()) else "0:0"


def _text_file(text: Filled, owner: str, own_owner: str | None, mode: str | None) -> FileSpec:
    secret = any(isinstance(hole, SecretHole) for hole in holes(text))
    return FileSpec(
        "text",
        own_owner or (owner if secret else "0:0"),
        mode or ("0400" if secret else "0444"),
        text=text,
        secret=secret,
    )


def _path(text: Filled) -> str:
    assert isinstance(text, str)
    return text


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
