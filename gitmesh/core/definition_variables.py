"""A container's variables: each is said once, and can be said where it stands (A5, S21)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from gitmesh.core.checking import Checking
from gitmesh.core.file_formats import Unwritable, write_env, write_environment
from gitmesh.core.model import Container, EnvFile, When
from gitmesh.core.reference import Text
from gitmesh.core.refusal import At, Code, Related


@dataclass(frozen=True, slots=True)
class Part:
    """What a container says of its environment: always, or where the optional requirement `used` is."""

    used: str | None
    of: Container | When
    place: Callable[..., At]


def parts(container: Container) -> Iterator[Part]:
    """The container itself, then each of its `when`."""
    yield Part(None, container, container.place)
    for used, when in container.when.items():
        yield Part(used, when, partial(container.place, "when", used))


def secret_files(container: Container) -> Iterator[tuple[str, str, At]]:
    """Each variable that is the path of a file: its name, that path, and where it is said."""
    for part in parts(container):
        for name, value in part.of.env.items():
            if isinstance(value, EnvFile):
                yield name, f"/run/secrets/{name.lower()}", part.place("env", name)


def shown(text: Text) -> str:
    """The text with something harmless where it reads an answer."""
    return "".join(each if isinstance(each, str) else "x" for each in text)


def check_variables(checking: Checking, container: Container, name: str) -> None:
    """Refuse a variable that is said twice, that its line can't say, or whose file has another's place."""
    _check_twice(checking, container, name)
    _check_file_places(checking, container, name)
    for part in parts(container):
        for variable, value in part.of.env.items():
            if not isinstance(value, EnvFile):
                _check_line(checking, name, variable, value, part.place("env", variable), write_environment)
        for variable, text in part.of.env_file.items():
            at = part.place("env-file", "env", variable)
            _check_line(checking, name, variable, text, at, write_env)


def _check_line(
    checking: Checking,
    name: str,
    variable: str,
    text: Text,
    at: At,
    write: Callable[[Mapping[str, str]], str],
) -> None:
    try:
        write({variable: shown(text)})
    except Unwritable as fault:
        checking.refuse(
            Code.SCHEMA,
            name,
            str(fault),
            at.of_value(),
            "give it as a file: under `files`, or `{file: …}` under `env`",
        )


def _check_twice(checking: Checking, container: Container, name: str) -> None:
    """A variable stands once. Only a `when` may say anew what its container says, in the same way."""
    said: dict[str, list[tuple[str | None, str, At]]] = {}
    for part in parts(container):
        for key, names in (("env", part.of.env), ("env-file", part.of.env_file)):
            for variable in names:
                keys = ("env",) if key == "env" else ("env-file", "env")
                said.setdefault(variable, []).append((part.used, key, part.place(*keys, variable)))
    for variable, places in said.items():
        for number, (used, key, at) in enumerate(places):
            for other, other_key, first in places[:number]:
                replaces = other is None and used is not None and key == other_key
                if not replaces:
                    _said_twice(checking, name, variable, at, first)


def _said_twice(checking: Checking, name: str, variable: str, at: At, first: At) -> None:
    checking.refuse(
        Code.SCHEMA,
        name,
        f"`{variable}` is said twice: {_where(first)} and {_where(at)}",
        at,
        "leave one of the two",
        related=(Related(first, "the other one"),),
    )


def _where(at: At) -> str:
    """`env`, `env-file` or `when: {mail: env}` of the container."""
    keys = [str(each) for each in at.keys]
    key = "env-file" if "env-file" in keys[:-1] else "env"
    return f"in `when: {{{keys[keys.index('when') + 1]}: {key}}}`" if "when" in keys else f"in `{key}`"


def _check_file_places(checking: Checking, container: Container, name: str) -> None:
    """Two variables that differ by case alone would have one file; so would one and a file there."""
    taken = {shown(path): "" for part in parts(container) for path in part.of.files}
    for variable, path, at in secret_files(container):
        if taken.setdefault(path, variable) != variable:
            checking.refuse(
                Code.SCHEMA,
                name,
                f"the file of `{variable}` would lie where another one does",
                at,
                "give the other one another path or name",
            )
