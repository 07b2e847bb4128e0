"""Structured files as text, from a tree that is already filled (FORMATS "Containers", S21).

Every writer refuses on its own what its readers would not take as the same single value: it never trusts
that a value was checked before. JSON, YAML, TOML and properties can say any text; INI and env can't.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from gitmesh.core.model import Json

LONGEST_KEY = 512
"""YAML allows a key on one line 1024 characters, quotes and escapes included."""

# What JSON leaves as it is, and YAML 1.1, YAML 1.2 or TOML read as a line break, refuse, or skip.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# What breaks a line, or hides in one, for some reader of a format of lines.
_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# Where `docker --env-file` takes a line as it is, compose takes these as quotes, expansions or comments.
_ENV_READ_TWO_WAYS = re.compile(r"""["'`\\$]|(?:^|\s)\#""")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Unwritable(ValueError):
    """A value that the format can't say. The text names its place and what is allowed, never the value."""


def render(format_: str, tree: Json) -> str:
    """The text of a structured file: `format_` is json, yaml, toml, ini, env or properties.

    Raises `Unwritable`.
    """
    text = _WRITERS[format_](tree)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unwritable("a text holds half a character (a lone surrogate)") from None
    return text


def write_json(tree: Json) -> str:
    """JSON in which nothing needs a second look; so written it is YAML 1.1 and 1.2 too."""
    _check_keys(tree, "")
    text = json.dumps(tree, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_toml(tree: Json) -> str:
    """TOML 1.0: a table for each object that is not in a list. It has no null."""
    return "".join(_toml_table(_object(tree, "toml"), ()))


def write_ini(tree: Json) -> str:
    """`key = value` lines, under `[section]` where the tree has an object. A list is its key repeated."""
    top = _object(tree, "ini")
    lines = list(_ini_lines({key: each for key, each in top.items() if not isinstance(each, Mapping)}, ""))
    for section, keys in top.items():
        if isinstance(keys, Mapping):
            if _BREAKING.search(section) or re.search(r"[\[\]]|^\s|\s$|^$", section):
                raise Unwritable("ini: a section's name holds a bracket, a line break or outer blanks")
            lines += [f"[{section}]\n", *_ini_lines(keys, f"/{section}")]
    return "".join(lines)


def write_env(tree: Json) -> str:
    """`NAME=value` lines in the one dialect that `docker --env-file` and compose read alike (S21).

    No quotes, backslashes, `$`, comments, line breaks, other control characters or outer blanks in a value.
    """
    return "".join(_env_line(name, each, strict=True) for name, each in _object(tree, "env").items())


def write_environment(environment: Mapping[str, str]) -> str:
    """`NAME=value` lines, each value literal to its line's end: what is not read by a container's engine."""
    return "".join(_env_line(name, each, strict=False) for name, each in environment.items())


def write_properties(tree: Json) -> str:
    """Java properties, in ASCII with escapes, which every version reads alike."""
    return "".join(
        f"{_property(key, key=True)}={_property(_scalar(each, f'properties: /{key}'), key=False)}\n"
        for key, each in _object(tree, "properties").items()
    )


_WRITERS: Mapping[str, Callable[[Json], str]] = {
    "json": write_json,
    "yaml": write_json,
    "toml": write_toml,
    "ini": write_ini,
    "env": write_env,
    "properties": write_properties,
}


def breaks_a_line(text: str) -> bool:
    """Whether some reader of lines takes `text` for more than one value, or for none: a control character, a
    line break of any kind, NUL."""
    return _BREAKING.search(text) is not None


def as_text(value: Json) -> str:
    """A scalar as text: numbers and booleans as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value)


# --- parts ---------------------------------------------------------------------------------------------


def _object(tree: Json, format_: str) -> Mapping[str, Json]:
    if not isinstance(tree, Mapping):
        raise Unwritable(f"{format_}: expected an object of keys and values")
    return tree


def _scalar(value: Json, where: str) -> str:
    if value is None or isinstance(value, list | Mapping):
        raise Unwritable(f"{where}: expected a text, a number or a boolean")
    return as_text(value)


def _check_keys(tree: Json, where: str) -> None:
    if isinstance(tree, Mapping):
        for key, each in tree.items():
            if len(key) > LONGEST_KEY:
                raise Unwritable(f"{where}: a key is longer than {LONGEST_KEY} characters")
            _check_keys(each, f"{where}/{key}")
    elif isinstance(tree, list):
        for number, each in enumerate(tree):
            _check_keys(each, f"{where}/{number}")


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _toml_table(table: Mapping[str, Json], path: tuple[str, ...]) -> Iterator[str]:
    plain = {key: each for key, each in table.items() if not isinstance(each, Mapping)}
    if path and (plain or not table):
        yield f"[{'.'.join(map(_toml_key, path))}]\n"
    for key, each in plain.items():
        yield f"{_toml_key(key)} = {_toml_value(each, '/'.join((*path, key)))}\n"
    for key, each in table.items():
        if isinstance(each, Mapping):
            yield from _toml_table(each, (*path, key))


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _quoted(key)


def _toml_value(value: Json, where: str) -> str:
    if value is None:
        raise Unwritable(f"toml: /{where}: TOML has no null")
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(each, where) for each in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_toml_key(key)} = {_toml_value(each, f'{where}/{key}')}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value)


def _ini_lines(keys: Mapping[str, Json], where: str) -> Iterator[str]:
    for key, value in keys.items():
        if _BREAKING.search(key) or re.search(r"[=:]|^[\[#;\s]|\s$|^$|^rem\b", key, re.IGNORECASE):
            raise Unwritable(
                f"ini: {where or '/'}: a key that is a comment, a section or two keys to a reader"
            )
        for each in value if isinstance(value, list) else [value]:
            yield f"{key} = {_ini_value(_scalar(each, f'ini: {where}/{key}'), f'{where}/{key}')}\n"


def _ini_value(text: str, where: str) -> str:
    # Blanks before # and ; begin a comment for many readers, and outer blanks are lost for all.
    if _BREAKING.search(text) or text != text.strip() or re.search(r"(?:^|\s)[#;]", text):
        raise Unwritable(f"ini: {where}: a line break, a control character, outer blanks or a comment in it")
    return text


def _env_line(name: str, value: Json, strict: bool) -> str:
    text = _scalar(value, f"env: {name[:64]!r}")
    if not _ENV_NAME.fullmatch(name):
        raise Unwritable(f"env: {name[:64]!r} is no name of a variable")
    if _BREAKING.search(text):
        raise Unwritable(f"env: {name}: a line break or another control character in it; give it as a file")
    if strict and (text != text.strip() or _ENV_READ_TWO_WAYS.search(text)):
        raise Unwritable(
            f"env: {name}: docker and compose read its quotes, backslash, dollar sign, comment or outer "
            "blanks in two ways; give it as a file"
        )
    return f"{name}={text}\n"


def _property(text: str, key: bool) -> str:
    escaped = "".join(_property_character(each, key) for each in text)
    # A leading blank of a value would be taken for the separator's.
    return "\\" + escaped if not key and escaped.startswith(" ") else escaped


def _property_character(character: str, key: bool) -> str:
    if character in "\\=:#!" or (key and character == " "):
        return "\\" + character
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
