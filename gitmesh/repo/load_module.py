"""A module's file, once its schema has passed, into the noun, with every text parsed (FORMATS "Module")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gitmesh.core.checking import may_say
from gitmesh.core.model import (
    Container,
    Content,
    EnvFile,
    Job,
    Json,
    Kind,
    Module,
    Mount,
    Provision,
    Provisioner,
    Requirement,
    Takes,
    Tree,
    When,
)
from gitmesh.core.reference import BadForm, Ref, Text, parse
from gitmesh.core.refusal import Answer, At, Code, Refusal
from gitmesh.core.retired import RETIRED
from gitmesh.repo.load_like import merged

_FORMATS = ("text", "from", "ini", "env", "properties", "yaml", "json", "toml")
_OPTIONS = ("module", "host", "narrow", "takes", "optional", "as", "seat", "max-age")
_PLAIN = (
    "after",
    "shm",
    "tmpfs",
    "stop",
    "limits",
    "reload",
    "rollback",
    "network",
    "pid",
    "capabilities",
    "privileged",
)
_NOT_OF_A_JOB = ("after", "reload", "rollback")
"""What a job does not take over from the container that it is like."""
_PROVISIONER = ("adapter", "at", "login", "admin")


def read_module(
    file: str, value: Mapping[str, Json], beside: Mapping[str, bytes]
) -> tuple[Module, list[Refusal]]:
    """The module in `file`, and what is wrong with its texts and with what it is `like` or copies `from`.

    `value` fits `schemas/module.json`; `beside` are the files in the module's folder, by their path there.
    """
    reading = _Reading(At(file), value, beside)
    return reading.module(), reading.refusals


class _Reading:
    """Reads one module, collecting refusals."""

    def __init__(self, at: At, value: Mapping[str, Json], beside: Mapping[str, bytes]) -> None:
        self.at = at
        self.value = value
        self.name: str = value["module"]
        self.beside = beside
        self.sources: dict[str, bytes] = {}
        self.refusals: list[Refusal] = []

    def refuse(self, code: Code, message: str, at: At, answer: str) -> None:
        """Add a refusal about the module."""
        self.refusals.append(Refusal(code, f"module {self.name}", message, at, answers=(Answer(answer),)))

    def module(self) -> Module:
        """The noun; where something was refused, an empty text or container stands in its place."""
        said = self.value
        containers = self._containers(said.get("containers", {}))
        return Module(
            name=self.name,
            at=self.at,
            seats=tuple(said.get("seats", ())),
            requires={name: self._requirement(name, each) for name, each in said.get("requires", {}).items()},
            containers=containers,
            jobs={name: self._job(name, each, containers) for name, each in said.get("jobs", {}).items()},
            provides={name: self._provision(name, each) for name, each in said.get("provides", {}).items()},
            unused=said.get("unused", {}),
            exceptions=said.get("exceptions", {}),
            restart_on=tuple(said.get("restart-on", ())),
            sources=self.sources,
        )

    # --- texts -----------------------------------------------------------------------------------------

    def text(self, value: Json, at: At) -> Text:
        """A scalar as text with references."""
        if isinstance(value, bool):
            return ("true" if value else "false",)
        if not isinstance(value, str):
            return (str(value),)
        return self._parsed(value, at.of_value())

    def _parsed(self, value: str, at: At) -> Text:
        try:
            return parse(value)
        except BadForm as bad:
            self._bad_form(bad, at)
            return ()

    def _bad_form(self, bad: BadForm, at: At) -> None:
        if bad.retired:
            head = bad.found.removeprefix("${").partition(":")[0].rstrip("}")
            said = f"`${{{head}:…}}` is a form that is no more"
            self.refuse(Code.RETIRED_FORM, said, at, RETIRED[head])
            return
        self.refuse(
            Code.REFERENCE_FORM,
            "a `${` that is not the one form, `${requirement:field}`",
            at,
            "name a requirement and a field of its contract; where `${` itself is meant, write `$${`",
        )

    def tree(self, value: Json, at: At) -> Tree:
        """A structured value with every string in it as text."""
        if isinstance(value, str):
            return self.text(value, at)
        if isinstance(value, list):
            return [self.tree(each, at.child(number)) for number, each in enumerate(value)]
        if isinstance(value, dict):
            return {self._key(key, at): self.tree(each, at.child(key)) for key, each in value.items()}
        return value  # type: ignore[no-any-return]  # JSON's other values: None, bool, int

    def _key(self, key: str, at: At) -> str:
        return self._literal(key, at.child(key))

    def literal(self, value: Json, at: At) -> Json:
        """A value in which no answer is read, with `$${` as `${`."""
        if isinstance(value, list):
            return [self.literal(each, at.child(number)) for number, each in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.literal(each, at.child(key)) for key, each in value.items()}
        if not isinstance(value, str) or "${" not in value:
            return value
        return self._literal(value, at.of_value())

    def _literal(self, value: str, at: At) -> str:
        text = self._parsed(value, at)
        if any(isinstance(each, Ref) for each in text):
            self.refuse(
                Code.REFERENCE_FORM,
                "no answer can be read here",
                at,
                "write it out; where `${` itself is meant, write `$${`",
            )
        return "".join(each for each in text if isinstance(each, str))

    # --- requirements ----------------------------------------------------------------------------------

    def _requirement(self, name: str, said: Mapping[str, Json]) -> Requirement:
        at = self.at.child("requires", name)
        optional = said.get("optional", False)
        if "operator" in said:
            return Requirement(
                name,
                Kind.OPERATOR,
                "value",
                at,
                optional=optional,
                schema=self.literal(said["operator"], at.child("operator")),
                has_default="default" in said,
                default=self.literal(said.get("default"), at.child("default")),
            )
        if "mesh" in said:
            return Requirement(name, Kind.MESH, said["mesh"], at)
        asked = {key: each for key, each in said.items() if key not in _OPTIONS}
        if "host" in said:
            return Requirement(name, Kind.HOST, said["host"], at, self.literal(asked, at), optional=optional)
        return Requirement(
            name,
            Kind.MODULE,
            said["module"],
            at,
            {key: self.tree(each, at.child(key)) for key, each in asked.items()},
            narrow=self.literal(said.get("narrow", {}), at.child("narrow")),
            takes=Takes(said["takes"]) if "takes" in said else None,
            optional=optional,
            as_word=said.get("as"),
            seat=said.get("seat"),
            max_age=said.get("max-age"),
        )

    # --- containers ------------------------------------------------------------------------------------

    def _containers(self, said: Mapping[str, Mapping[str, Json]]) -> dict[str, Container]:
        at = self.at.child("containers")
        own = {name: self._container(name, each, at.child(name)) for name, each in said.items()}
        return {name: self._like(name, said, own, ()) for name in said}

    def _like(
        self,
        name: str,
        said: Mapping[str, Mapping[str, Json]],
        own: Mapping[str, Container],
        path: tuple[str, ...],
    ) -> Container:
        """The container with what it takes over, by way of whatever others."""
        other = said[name].get("like")
        if other is None:
            return own[name]
        at = own[name].at.child("like").of_value()
        if other not in own or other in (*path, name):
            message = f"the module has no container `{other}`"
            if other in own:
                message = f"it is like itself: {' -> '.join((*path, name, other))}"
            if not path:
                known = [each for each in own if each not in (name, other)]
                self.refuse(Code.CONTAINER_UNKNOWN, message, at, may_say(other, known, "other container"))
            return own[name]
        base = self._like(other, said, own, (*path, name))
        return merged(base, own[name], said[other], said[name])

    def _container(self, name: str, said: Mapping[str, Json], at: At) -> Container:
        """A container as it stands, without what it is like."""
        plain = {key: self.literal(said[key], at.child(key)) for key in _PLAIN if key in said}
        env_file, reason = self._env_file(said, at)
        return Container(
            name=name,
            at=at,
            image=self.literal(said.get("image", ""), at.child("image")),
            entrypoint=self._texts(said, "entrypoint", at),
            command=self._texts(said, "command", at),
            env=self._env(said, at),
            env_from=said.get("env-from"),
            env_file=env_file,
            env_file_reason=reason,
            files=self._files(said, at),
            mounts=self._mounts(said, at),
            publish=tuple(said.get("publish", ())),
            health=self.literal(said.get("health"), at.child("health")),
            hostname=self.text(said["hostname"], at.child("hostname")) if "hostname" in said else None,
            user=said.get("user"),
            reads_as=said.get("reads-as"),
            image_paths=tuple(said.get("image-paths", ())),
            plain=plain,
            when={key: self._when(each, at.child("when", key)) for key, each in said.get("when", {}).items()},
        )

    def _when(self, said: Mapping[str, Json], at: At) -> When:
        env_file, _ = self._env_file(said, at)
        return When(
            env=self._env(said, at),
            env_file=env_file,
            files=self._files(said, at),
            mounts=self._mounts(said, at),
            publish=tuple(said.get("publish", ())),
        )

    def _texts(self, said: Mapping[str, Json], key: str, at: At) -> tuple[Text, ...]:
        return tuple(self.text(each, at.child(key, number)) for number, each in enumerate(said.get(key, ())))

    def _env(self, said: Mapping[str, Json], at: At) -> dict[str, Text | EnvFile]:
        env: dict[str, Text | EnvFile] = {}
        for name, value in said.get("env", {}).items():
            here = at.child("env", name)
            if isinstance(value, dict):
                prefix = self.literal(value.get("prefix", ""), here.child("prefix"))
                env[name] = EnvFile(self.text(value["file"], here.child("file")), prefix)
            else:
                env[name] = self.text(value, here)
        return env

    def _env_file(self, said: Mapping[str, Json], at: At) -> tuple[dict[str, Text], str]:
        given = said.get("env-file", {})
        here = at.child("env-file", "env")
        env = {name: self.text(each, here.child(name)) for name, each in given.get("env", {}).items()}
        return env, given.get("reason", "")

    def _mounts(self, said: Mapping[str, Json], at: At) -> dict[str, Mount]:
        mounts = {}
        for path, value in said.get("mounts", {}).items():
            given = value if isinstance(value, dict) else {"from": value}
            requirement, _, sub = given["from"].partition("/")
            mounts[path] = Mount(requirement, sub, given.get("read-only", False))
            self.literal(given["from"], at.child("mounts", path))
        return mounts

    def _files(self, said: Mapping[str, Json], at: At) -> dict[Text, Content]:
        files = {}
        for path, value in said.get("files", {}).items():
            here = at.child("files", path)
            files[self._parsed(path, here)] = self._content(value, here)
        return files

    def _content(self, value: Json, at: At) -> Content:
        if not isinstance(value, dict):
            return Content("text", at, self.text(value, at))
        kind = next(each for each in _FORMATS if each in value)
        here, said = at.child(kind), value[kind]
        content = Content(kind, at, owner=value.get("owner"), mode=value.get("mode"), each=value.get("each"))
        if kind == "text":
            return replace(content, text=self.text(said, here))
        if kind == "from":
            self._source(said, here)
            return replace(content, source=said)
        return replace(content, tree=self.tree(said, here))

    def _source(self, name: str, at: At) -> None:
        if name in self.beside:
            self.sources[name] = self.beside[name]
            return
        folder = self.at.file.rpartition("/")[0]
        self.refuse(
            Code.FILE_MISSING,
            f"there is no {folder}/{name}",
            at.of_value(),
            may_say(name, self.beside, "file beside the module"),
        )

    # --- jobs and provisions ---------------------------------------------------------------------------

    def _job(self, name: str, said: Mapping[str, Json], containers: Mapping[str, Container]) -> Job:
        at = self.at.child("jobs", name)
        where = next(each for each in ("in", "like", "host") if each in said)
        container = None if where == "host" else said[where]
        spec = self._container(name, said, at)
        other = containers.get(container or "")
        if other is not None and where == "like":
            spec = merged(other, spec, self.value["containers"][container], said)
            spec = replace(spec, plain={k: v for k, v in spec.plain.items() if k not in _NOT_OF_A_JOB})
        elif other is not None:
            user, reads_as = (spec.user, None) if spec.user else (other.user, other.reads_as)
            spec = replace(spec, image=other.image, user=user, reads_as=reads_as)
        elif where == "host":
            program = self._texts(said, "host", at)
            spec = replace(spec, command=program, written={("command",): at.child("host")})
        return Job(name, at, said["at"], where, container, spec)

    def _provision(self, contract: str, said: Mapping[str, Json]) -> Provision:
        at = self.at.child("provides", contract)
        given = said.get("provisioner")
        return Provision(
            contract=contract,
            at=at,
            accepts=self.literal(said.get("accepts", {}), at.child("accepts")),
            serves={
                name: self.text(each, at.child("serves", name))
                for name, each in said.get("serves", {}).items()
            },
            answers=tuple(said.get("answers", ())),
            provisioner=None if given is None else self._provisioner(given, at.child("provisioner")),
        )

    def _provisioner(self, said: Mapping[str, Json], at: At) -> Provisioner:
        given = self.literal(said, at)
        return Provisioner(
            adapter=given["adapter"],
            at=given.get("at"),
            login=given.get("login"),
            admin=given.get("admin"),
            options={key: each for key, each in given.items() if key not in _PROVISIONER},
        )
