"""What a node keeps, under `var/lib/gitmesh` of its root: the accepted bundle, the answers it goes by, and
what is applied.

A bundle is every document that an apply needs, so that a boot without network applies from it (SECURITY §1.6
step 9). It is complete once `accepted/current.json` names it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gitmesh.core import codec
from gitmesh.core.compare import Marks
from gitmesh.fsops import Root
from gitmesh.host.held_back import TakenAnswers

HOME = "var/lib/gitmesh"
ACCEPTED = f"{HOME}/accepted"
_CURRENT = f"{ACCEPTED}/current.json"
_ANSWERS = f"{HOME}/answers.json"
_APPLIED = f"{HOME}/applied.json"

APPLIED, FAILED, APPLYING = "applied", "failed", "applying"
"""The results of an apply; the last one is what a killed run leaves."""

_Noun = TypeVar("_Noun")


class StateDamaged(Exception):
    """A state file that can't be read as what it is; `path` names it, `way_out` what to do."""

    def __init__(self, path: str, why: str, way_out: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.way_out = way_out


@dataclass(frozen=True, slots=True)
class Made:
    """A directory that was made or taken as it was, and what it was given."""

    location: str
    owner: tuple[int, int]
    mode: int


@dataclass(frozen=True, slots=True)
class AppliedAssignment:
    """What an apply left of one assignment, and so what a later one may remove (G12)."""

    result: str
    """`APPLIED`, `FAILED` or `APPLYING`"""
    digest: str = ""
    since: int = 0
    """when `result` and `digest` became what they are, in seconds"""
    bundle: str = ""
    """the accepted bundle it was last applied from"""
    failed: Mapping[str, str] = field(default_factory=dict)
    """by path or container, why"""
    containers: Mapping[str, Marks] = field(default_factory=dict)
    """as each was last started"""
    files: Mapping[str, str] = field(default_factory=dict)
    """path below the root to the mark of what was written there"""
    directories: Mapping[str, Made] = field(default_factory=dict)
    """by the requirement's name, or `name/sub`"""
    unset: tuple[str, ...] = ()
    """paths whose owner could not be set"""


@dataclass(frozen=True, slots=True)
class Applied:
    """What is applied on the node, by assignment. `user` is the user id it was applied as."""

    assignments: Mapping[str, AppliedAssignment] = field(default_factory=dict)
    user: int = 0


@dataclass(frozen=True, slots=True)
class Bundle:
    """An accepted bundle: its name, `<seq>-<digest>`, and the digest of each of its documents."""

    name: str
    files: Mapping[str, str]


class State:
    """Loads and saves a node's state. All methods raise OSError, naming the path, and `StateDamaged`."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def applied(self) -> Applied:
        """What is applied; nothing on a new node."""
        way_out = (
            "remove it and run `gitmesh pull`: everything is checked and written anew, and files of "
            "assignments that left meanwhile stay behind"
        )
        return self._load(_APPLIED, Applied, way_out) or Applied()

    def save_applied(self, applied: Applied) -> None:
        """Record what is applied."""
        self._save(_APPLIED, applied)

    def answers(self) -> TakenAnswers:
        """The answers it goes by; none on a new node."""
        way_out = "remove it and run `gitmesh pull`: what providers answer now is then taken"
        return self._load(_ANSWERS, TakenAnswers, way_out) or TakenAnswers()

    def save_answers(self, taken: TakenAnswers) -> None:
        """Record the answers it goes by; the same again write nothing."""
        if taken != self.answers():
            self._save(_ANSWERS, taken)

    def accept(self, seq: int, documents: Mapping[str, bytes], keep: Collection[str] = ()) -> str:
        """Keep the documents as the bundle that applies from now on; answers its name.

        Other bundles but those named in `keep` are removed. The same documents again write nothing.
        """
        files = {name: hashlib.sha256(blob).hexdigest() for name, blob in sorted(documents.items())}
        bundle = Bundle(f"{seq}-{hashlib.sha256(_blob(files)).hexdigest()[:16]}", files)
        if self._bundle() == bundle and self._intact(bundle):
            return bundle.name
        for path in (ACCEPTED, f"{ACCEPTED}/{bundle.name}"):
            self._root.make_directory(path, 0o700)
        for name, blob in documents.items():
            self._root.write(f"{ACCEPTED}/{bundle.name}/{name}", blob, 0o600)
        # Its own list lets a kept bundle be read when another is current.
        self._save(f"{ACCEPTED}/{bundle.name}.json", bundle)
        self._save(_CURRENT, bundle)
        for name in self._root.entries(ACCEPTED):
            if name.removesuffix(".json") not in {"current", bundle.name, *keep}:
                self._drop(f"{ACCEPTED}/{name}")
        return bundle.name

    def accepted(self, name: str | None = None) -> dict[str, bytes] | None:
        """The documents of the current bundle, or of the one of that name; None before the first."""
        bundle = self._bundle(name)
        if bundle is None:
            return None
        found = {}
        for document, digest in bundle.files.items():
            path = f"{ACCEPTED}/{bundle.name}/{document}"
            try:
                found[document] = self._root.read(path)
            except FileNotFoundError:
                found[document] = b""
            if hashlib.sha256(found[document]).hexdigest() != digest:
                raise self._damaged(path, "is not what was accepted", _PULL_AGAIN)
        return found

    def accepted_name(self) -> str:
        """The name of the bundle that applies now; empty before the first."""
        bundle = self._bundle()
        return "" if bundle is None else bundle.name

    def _bundle(self, name: str | None = None) -> Bundle | None:
        path = _CURRENT if name is None else f"{ACCEPTED}/{name}.json"
        return self._load(path, Bundle, _PULL_AGAIN)

    def _intact(self, bundle: Bundle) -> bool:
        try:
            return self.accepted(bundle.name) is not None
        except StateDamaged:
            return False

    def _drop(self, path: str) -> None:
        found = self._root.stat(path)
        if found is not None and stat.S_ISDIR(found.st_mode):
            for name in self._root.entries(path):
                self._drop(f"{path}/{name}")
            self._root.remove_directory(path)
        else:
            self._root.remove(path)

    def _load(self, path: str, kind: type[_Noun], way_out: str) -> _Noun | None:
        try:
            blob = self._root.read(path)
        except FileNotFoundError:
            return None
        try:
            return codec.decode(kind, json.loads(blob))
        except codec.Malformed as malformed:
            raise self._damaged(path, f"is damaged ({malformed})", way_out) from None
        except (ValueError, RecursionError):
            raise self._damaged(path, "is damaged: it is no whole JSON", way_out) from None

    def _damaged(self, path: str, why: str, way_out: str) -> StateDamaged:
        shown = self._root.shown(path)
        return StateDamaged(shown, why, way_out.replace("remove it", f"`rm {shlex.quote(shown)}`"))

    def _save(self, path: str, noun: object) -> None:
        blob = _blob(codec.encode(noun))
        try:
            if self._root.read(path) == blob:
                return
        except FileNotFoundError:
            pass
        self._root.write(path, blob, 0o600)


_PULL_AGAIN = "run `gitmesh pull`: it fetches and verifies every document again"


def _blob(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"
