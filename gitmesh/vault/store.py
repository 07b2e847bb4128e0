"""The vault's store: one SOPS file for each node, and beside them what the vault knows that is no secret.

A file is encrypted to the vault and to the root's recovery keys, so that an operator who has one of those
reads it with plain `sops -d` (DESIGN §5); the same file is the backup's ciphertext.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from gitmesh import fsops
from gitmesh.core.model import Json
from gitmesh.trust import canonical
from gitmesh.trust.secret import Secret
from gitmesh.vault import sops
from gitmesh.vault.sops import Unreadable

Slot = Literal["a", "b"]
"""Which of a secret's two values; one that has a single value keeps it in `a`."""

_NODE = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_STATE = "_state.json"
"""No node is called so: names begin with a letter."""


class Unkept(Exception):
    """A value that the store can't keep; the text names its secret."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """What a hash was made of: that version of the secret `of`, `by` bcrypt, argon2id or sha512-crypt."""

    of: str
    version: int
    by: str


@dataclass(frozen=True, slots=True)
class Kept:
    """One value of a secret. `version` counts up for ever, `generation` is the rotation it was made for,
    `contract_sha256` the contract it was held against, `made_at` in seconds since 1970. `hashed` stands
    where the value is a hash."""

    value: Secret
    version: int
    generation: int
    contract_sha256: str
    made_at: int
    hashed: Hashed | None = None


Entries = Mapping[str, Mapping[Slot, Kept]]
"""By the secret's id, then by slot."""


class Store:
    """The files below `location`, a directory of the vault's own, made 0700 where it is missing.

    `key_file` holds the vault's age key, or a recovery key; `recipients` are the age recipients that files
    are written to: the vault's, then the root's recovery keys.
    """

    def __init__(self, location: Path, key_file: Path, recipients: Sequence[str]) -> None:
        self._location = location
        self._key_file = key_file
        self._recipients = tuple(recipients)

    def nodes(self) -> tuple[str, ...]:
        """The nodes that have a file, in order."""
        names = (file.stem for file in self._location.glob("*.json"))
        return tuple(sorted(name for name in names if _NODE.fullmatch(name)))

    def ciphertext(self, node: str) -> bytes | None:
        """The node's file as it stands, for the backup; None where there is none."""
        try:
            return fsops.read_private(self._file(node), limit=1 << 26)
        except FileNotFoundError:
            return None

    def read(self, node: str) -> dict[str, dict[Slot, Kept]]:
        """The node's secrets; empty where it has no file. Raises `Unreadable`, `SopsFailed`, OSError."""
        blob = self.ciphertext(node)
        return {} if blob is None else self.open(node, blob)

    def open(self, node: str, blob: bytes) -> dict[str, dict[Slot, Kept]]:
        """The secrets in a file of that node, wherever it comes from. Raises `Unreadable`, `SopsFailed`."""
        try:
            return _entries(node, sops.decrypt(blob, self._key_file))
        except Unreadable as wrong:
            failure = Unreadable(f"the vault's file of {node}: {wrong}")
        raise failure  # out here it carries no frames, whose locals hold the values (S53)

    def write(self, node: str, entries: Entries) -> bool:
        """Keep `entries` as all that the node has, and say whether anything changed: the secrets, or whom
        the file is encrypted to. An unchanged file keeps its bytes.

        Raises `Unreadable` for what is there, `Unkept`, `SopsFailed` and OSError.
        """
        blob = self.ciphertext(node)
        if (
            blob is not None
            and sops.recipients_of(blob) == frozenset(self._recipients)
            and self.open(node, blob) == entries
        ):
            return False
        sealed = sops.encrypt(_plain(node, entries), self._recipients)
        fsops.make_directory(self._location, 0o700)
        fsops.write(self._file(node), sealed, 0o600)
        return True

    def read_state(self) -> dict[str, Json]:
        """What was last written as state; empty at first. Raises `Unreadable`, OSError."""
        try:
            state = canonical.decode(fsops.read_private(self._location / _STATE, 1 << 26), 1 << 26)
        except FileNotFoundError:
            return {}
        except canonical.NotCanonical as wrong:
            raise Unreadable(f"the vault's state: {wrong}") from None
        if not isinstance(state, dict):
            raise Unreadable("the vault's state is no map")
        return state

    def write_state(self, state: Mapping[str, Json]) -> bool:
        """Keep `state`, phases and confirms, in which no secret stands; says whether it changed.

        A `Secret` in it is `canonical.NotCanonical`. Raises OSError, and `Unreadable` for what is there.
        """
        content = canonical.encode(state)
        if (self._location / _STATE).exists() and canonical.encode(self.read_state()) == content:
            return False
        fsops.make_directory(self._location, 0o700)
        fsops.write(self._location / _STATE, content, 0o600)
        return True

    def _file(self, node: str) -> Path:
        if not _NODE.fullmatch(node):
            raise ValueError("no node has this name")
        return self._location / f"{node}.json"


def _plain(node: str, entries: Entries) -> Secret:
    """The JSON that a file encrypts."""
    for secret, slots in entries.items():
        if not slots:
            raise Unkept(f"{secret} has no value to keep")
    secrets = {
        secret: {slot: _to_json(secret, kept) for slot, kept in sorted(slots.items())}
        for secret, slots in sorted(entries.items())
    }
    return Secret(json.dumps({"node": node, "secrets": secrets}))


def _entries(node: str, document: dict[str, Json]) -> dict[str, dict[Slot, Kept]]:
    match document:
        case {"node": str(name), "secrets": dict(secrets), **rest} if not rest:
            if name != node:
                raise Unreadable("it is another node's")
            return {secret: _slots(secret, slots) for secret, slots in secrets.items()}
        case _:
            raise Unreadable("it holds something else")


def _to_json(secret: str, kept: Kept) -> dict[str, Json]:
    if not kept.value.reveal():
        raise Unkept(f"{secret}: an empty value can't be kept encrypted")
    hashed = {} if kept.hashed is None else {"hashed": asdict(kept.hashed)}
    return {
        **hashed,
        "value": _value_to_json(kept.value),
        "version": kept.version,
        "generation": kept.generation,
        "contract_sha256": kept.contract_sha256,
        "made_at": kept.made_at,
    }


def _value_to_json(value: Secret) -> Json:
    """As in a sealed value: text where it is text, else base64."""
    try:
        return value.text()
    except ValueError:
        return {"b64": base64.b64encode(value.reveal()).decode()}


def _slots(secret: str, slots: Json) -> dict[Slot, Kept]:
    kept: dict[Slot, Kept] = {}
    for slot, value in slots.items() if isinstance(slots, dict) else ():
        match slot:
            case "a" | "b":
                kept[slot] = _kept(secret, value)
            case _:
                raise Unreadable(f"{secret} has a slot that is neither a nor b")
    if not kept:
        raise Unreadable(f"{secret} has no value")
    return kept


def _kept(secret: str, value: Json) -> Kept:
    match value:
        case {
            "value": str(text),
            "version": int(version),
            "generation": int(generation),
            "contract_sha256": str(contract),
            "made_at": int(made_at),
            **rest,
        } if not rest:
            return Kept(Secret(text), version, generation, contract, made_at)
        case {"hashed": {"of": str(of), "version": int(version), "by": str(by), **rest}, **others} if (
            not rest
        ):
            return replace(_kept(secret, others), hashed=Hashed(of, version, by))
        case {"value": {"b64": str(encoded)}, **others} if value["value"].keys() == {"b64"}:
            decoded = _kept(secret, {**others, "value": "-"})
            raw = Secret(base64.b64decode(encoded))
            return Kept(raw, decoded.version, decoded.generation, decoded.contract_sha256, decoded.made_at)
        case _:
            raise Unreadable(f"{secret} is kept in a form that this version does not know")
