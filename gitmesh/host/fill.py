"""Fills the holes of a declaration with what the vault and the providers gave (SECURITY §1.6 step 7).

Pure: values in, values out. What a value is held against stands in the declaration, which was approved.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never
from urllib.parse import quote

from gitmesh.core import codec
from gitmesh.core import file_formats as formats
from gitmesh.core.compare import is_applied, marks
from gitmesh.core.contract import check_value
from gitmesh.core.declaration import (
    AnswerHole,
    AssignmentSpec,
    ContainerSpec,
    Declaration,
    FileSpec,
    Filled,
    Hole,
    LoginHole,
    SecretHole,
    assignment_holes,
    container_holes,
    file_holes,
    holes,
)
from gitmesh.core.model import Json, Schema
from gitmesh.core.waiting import Waiting
from gitmesh.host.filled import (
    FilledAssignment,
    FilledContainer,
    FilledDeclaration,
    FilledDirectory,
    FilledFile,
    FilledJob,
    Owner,
    Withheld,
)
from gitmesh.trust.secret import Secret

VAULT = "mesh-vault"

Plain = str | Secret
"""Filled text; a `Secret` where a secret is in it."""


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A secret this node may read now. `login` is what its provider issued; else it follows from the slot."""

    slot: str
    version: int
    value: Secret
    login: str | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """What came for this node: by secret id, and by the consumer's requirement the answered fields."""

    secrets: Mapping[str, SecretValue] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


class Unfilled(Exception):
    """Text whose hole has no value to deliver; `found` says on whom it waits."""

    def __init__(self, found: Waiting | Withheld) -> None:
        super().__init__(f"{found.assignment} waits on {found.on} for {found.requirement}")
        self.found = found


# --- filling -------------------------------------------------------------------------------------------


def fill(declaration: Declaration, values: Values) -> FilledDeclaration:
    """Every assignment whose holes can all be filled, and what the others wait for (B11, B12).

    A provision's entries for its consumers hold no assignment back: a provider runs before they are served.
    """
    filler = Filler(declaration, values)
    done: dict[str, FilledAssignment] = {}
    waiting: list[Waiting] = []
    withheld: list[Withheld] = []
    for id_, spec in sorted(declaration.assignments.items()):
        found = filler.missing(id_, assignment_holes(spec))
        if not found:
            filled = filler.assignment(id_, spec)
            if isinstance(filled, FilledAssignment):
                done[id_] = filled
                continue
            found = (filled,)
        waiting += [each for each in found if isinstance(each, Waiting)]
        withheld += [each for each in found if isinstance(each, Withheld)]
    return FilledDeclaration(done, tuple(waiting), tuple(withheld))


@dataclass(frozen=True, slots=True)
class Filler:
    """Fills texts of one declaration; adapters fill a consumer's entry with it."""

    declaration: Declaration
    values: Values

    def text(self, assignment: str, text: Filled) -> Plain:
        """The text with its holes filled. Raises `Unfilled` for the first that can't be."""
        found = self.missing(assignment, holes(text))
        if found:
            raise Unfilled(found[0])
        return self._text(text)

    def missing(self, assignment: str, found: Iterable[Hole]) -> tuple[Waiting | Withheld, ...]:
        """What stands against filling these holes of `assignment`, each once, in order."""
        against = (self._against(assignment, hole) for hole in dict.fromkeys(found))
        return tuple(dict.fromkeys(each for each in against if each is not None))

    def assignment(self, id_: str, spec: AssignmentSpec) -> FilledAssignment | Withheld:
        """The assignment, whose holes can all be filled; `Withheld` where a value fits not where it goes."""
        try:
            return FilledAssignment(
                id_,
                spec,
                {
                    name: FilledDirectory(each.location, owner(each.owner), mode(each.mode), each.subs)
                    for name, each in spec.directories.items()
                },
                {name: self._container(each) for name, each in spec.containers.items()},
                {name: FilledJob(each, self._container(each.spec)) for name, each in spec.jobs.items()},
                self._digest(
                    [codec.encode(each) for each in (spec.directories, spec.containers, spec.jobs)],
                    assignment_holes(spec),
                ),
            )
        except formats.Unwritable as unwritable:
            return Withheld(id_, self._whose(assignment_holes(spec)), id_, str(unwritable))

    # what a hole is held against

    def _against(self, assignment: str, hole: Hole) -> Waiting | Withheld | None:
        match hole:
            case SecretHole() | LoginHole():
                return self._against_secret(assignment, hole)
            case AnswerHole():
                return self._against_answer(assignment, hole)
            case _:
                assert_never(hole)

    def _against_secret(self, assignment: str, hole: SecretHole | LoginHole) -> Waiting | Withheld | None:
        spec = self.declaration.secrets.get(hole.secret)
        if spec is None:
            return Withheld(assignment, VAULT, hole.secret, "the declaration says nothing of this secret")
        on = spec.by or VAULT
        given = self.values.secrets.get(hole.secret)
        if given is None:
            return Waiting(assignment, on, hole.secret)
        if isinstance(hole, LoginHole):
            login = self._login(hole.secret, given)
            wrong = login is None or formats.breaks_a_line(login)
            return Withheld(assignment, on, hole.secret, "it came without a login") if wrong else None
        if not _fits(spec.schema, given.value):
            # What the check says could quote a part of the value.
            return Withheld(
                assignment, on, hole.secret, f"its value does not fit the contract's {spec.field}"
            )
        return None

    def _against_answer(self, assignment: str, hole: AnswerHole) -> Waiting | Withheld | None:
        spec = self.declaration.answers.get(hole.to)
        if spec is None or spec.by != hole.by or hole.field not in spec.fields:
            return Withheld(assignment, hole.by, hole.to, f"the declaration says nothing of {hole.field}")
        given = self.values.answers.get(hole.to)
        if given is None:
            return Waiting(assignment, hole.by, hole.to)
        if given.keys() != spec.fields.keys():
            expected = ", ".join(sorted(spec.fields))
            return Withheld(
                assignment,
                hole.by,
                hole.to,
                f"{hole.by} answered other fields than the contract's {expected}",
            )
        for name, schema in sorted(spec.fields.items()):
            wrong = check_value(schema, given[name])
            if wrong is not None:
                return Withheld(assignment, hole.by, hole.to, f"{hole.by} answered {name}: {wrong}")
        return None

    def _whose(self, found: Iterable[Hole]) -> str:
        """Whom to name for a value that fits its contract and no place it goes to."""
        for hole in found:
            if isinstance(hole, AnswerHole):
                return hole.by
            return self.declaration.secrets[hole.secret].by or VAULT
        return VAULT

    # texts

    def _login(self, secret: str, given: SecretValue) -> str | None:
        logins = self.declaration.secrets[secret].logins
        if given.login is not None or logins is None:
            return given.login
        return logins[1 if given.slot == "b" else 0]

    def _hole(self, hole: Hole) -> str:
        match hole:
            case SecretHole():
                value = self.values.secrets[hole.secret].value.text()
            case LoginHole():
                value = self._login(hole.secret, self.values.secrets[hole.secret]) or ""
            case AnswerHole():
                answered = self.values.answers[hole.to][hole.field]
                if answered is None or isinstance(answered, list | Mapping):
                    raise formats.Unwritable(f"{hole.field} of {hole.by} stands in a text and is no scalar")
                value = formats.as_text(answered)
            case _:
                assert_never(hole)
        return quote(value, safe="") if hole.url else value

    def _text(self, text: Filled) -> Plain:
        if isinstance(text, str):
            return text
        joined = "".join(each if isinstance(each, str) else self._hole(each) for each in text.pieces)
        return Secret(joined) if _has_secret(text) else joined

    def _open_text(self, text: Filled, where: str) -> str:
        """For places that others can read: a secret there is refused, whoever approved it (A5)."""
        filled = self._text(text)
        if isinstance(filled, Secret):
            raise formats.Unwritable(f"{where}: a secret reaches a container as a file only")
        if "\0" in filled:
            raise formats.Unwritable(f"{where}: a NUL in it")
        return filled

    def _value(self, text: Filled) -> Json:
        """What stands in a structure: a lone answer keeps its type."""
        found = holes(text)
        if not isinstance(text, str) and len(text.pieces) == 1 and isinstance(found[0], AnswerHole):
            lone = found[0]
            return self._hole(lone) if lone.url else self.values.answers[lone.to][lone.field]
        filled = self._text(text)
        return filled.text() if isinstance(filled, Secret) else filled

    # containers

    def _container(self, spec: ContainerSpec) -> FilledContainer:
        env = {name: self._open_text(text, f"env {name}") for name, text in spec.env.items()}
        formats.write_environment(env)  # it refuses what would be two variables
        files = {path: self._file(path, each) for path, each in spec.files.items()}
        return FilledContainer(
            spec=spec,
            reads_as=owner(spec.reads_as),
            entrypoint=tuple(self._open_text(each, "entrypoint") for each in spec.entrypoint),
            command=tuple(self._open_text(each, "command") for each in spec.command),
            env=env,
            env_file=self._env_file(spec.env_file),
            files=files,
            hostname=None if spec.hostname is None else self._open_text(spec.hostname, "hostname"),
            holds_login=any(
                isinstance(hole, LoginHole) for hole in container_holes(replace(spec, files={}, env_file={}))
            ),
            marks=marks(spec, self.declaration.secrets, self._mark),
        )

    def _env_file(self, env_file: Mapping[str, Filled]) -> FilledFile | None:
        if not env_file:
            return None
        texts = {name: self._text(text) for name, text in env_file.items()}
        plain = {name: each.text() if isinstance(each, Secret) else each for name, each in texts.items()}
        found = [hole for text in env_file.values() for hole in holes(text)]
        return FilledFile(
            Secret(formats.write_env(plain)),
            owner=None,
            mode=0o400,
            secret=True,
            applied=False,
            mark=self._digest(codec.encode(env_file), found),
        )

    def _file(self, path: str, spec: FileSpec) -> FilledFile:
        found = list(file_holes(spec))
        secrets = [hole.secret for hole in found if isinstance(hole, SecretHole)]
        if spec.content is not None:
            content: bytes | Secret = _decoded(path, spec.content)
        else:
            text = self._content(path, spec)
            content = Secret(text) if secrets else text.encode()
        return FilledFile(
            content,
            owner(spec.owner),
            mode(spec.mode),
            secret=bool(secrets),
            applied=is_applied(spec, self.declaration.secrets),
            mark=self._digest(codec.encode(spec), found),
        )

    def _content(self, path: str, spec: FileSpec) -> str:
        if spec.format == "text":
            filled = self._text(spec.text)
            return filled.text() if isinstance(filled, Secret) else filled
        tree = spec.tree
        try:
            for pointer, text in spec.holes.items():
                tree = _put(tree, pointer.split("/")[1:], self._value(text))
            return formats.render(spec.format, tree)
        except formats.Unwritable as unwritable:
            raise formats.Unwritable(f"{path}: {unwritable}") from None

    def _digest(self, encoded: Json, found: Iterable[Hole]) -> str:
        """Of what a spec says and of the versions that fill it, so that no hash of a secret exists."""
        marks = sorted({json.dumps(self._mark(hole)) for hole in found})
        blob = json.dumps([encoded, marks], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(blob.encode()).hexdigest()

    def _mark(self, hole: Hole) -> Json:
        match hole:
            case SecretHole():
                given = self.values.secrets[hole.secret]
                return ["secret", hole.secret, given.slot, given.version]
            case LoginHole():
                return ["login", hole.secret, self._login(hole.secret, self.values.secrets[hole.secret])]
            case AnswerHole():
                return ["answer", hole.to, hole.field, self.values.answers[hole.to][hole.field]]
            case _:
                assert_never(hole)


def owner(text: str) -> Owner:
    """`1000:1000` as numbers; `1000` alone is both. Raises `formats.Unwritable` for a name."""
    user, _, group = text.partition(":")
    if not user.isdecimal() or not (group or user).isdecimal():
        raise formats.Unwritable("an owner is two numbers, such as 1000:1000")
    return int(user), int(group or user)


def mode(text: str) -> int:
    """`0750` as a number. Raises `formats.Unwritable`."""
    if not re.fullmatch("[0-7]{3,4}", text):
        raise formats.Unwritable("a mode is an octal number, such as 0750")
    return int(text, 8)


def _decoded(path: str, content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except ValueError:
        raise formats.Unwritable(f"{path}: its content is no base64") from None


def _fits(schema: Schema, value: Secret) -> bool:
    try:
        return check_value(schema, value.text()) is None
    except ValueError:
        return False


def _has_secret(text: Filled) -> bool:
    return any(isinstance(hole, SecretHole) for hole in holes(text))


def _put(tree: Json, steps: list[str], value: Json) -> Json:
    """The tree with `value` at a JSON pointer's steps; what it shares with the old one is not changed."""
    if not steps:
        return value
    step, rest = steps[0].replace("~1", "/").replace("~0", "~"), steps[1:]
    if isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
        number = int(step)
        return [*tree[:number], _put(tree[number], rest, value), *tree[number + 1 :]]
    if isinstance(tree, Mapping) and step in tree:
        return {**tree, step: _put(tree[step], rest, value)}
    raise formats.Unwritable("a hole stands where the structure has no place")
