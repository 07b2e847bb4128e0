"""What reading a file gave, kept for the next run by the file's content; it never changes an answer.

Reading strict YAML and holding it against its schema depends on the bytes of a file, on its kind and on the
program, and on nothing else. So a value that fitted is kept under the digest of all three, as JSON, in one
file for each mesh repo below the user's cache folder. What was refused is not kept: it is read anew, and
says anew where. Whoever deploys reads without it.

The file may be lost, torn, stale, another's, or written by two runs at once: then it is ignored, or the
later one stands. `GITMESH_CACHE=off` leaves it alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from gitmesh import __version__, fsops
from gitmesh.assets import asset
from gitmesh.core.model import Json

LIMIT = 64 << 20
"""Bytes of one repo's file; what was not used for longest goes first."""
MOST_FILES = 16
"""Repos; whose file was not written for longest goes first."""
WORTH = 16
"""What is new is written where it is more than one part in so many: less is read again in less time."""
SUFFIX = ".read"
_READERS = ("document", "doubt", "foreign", "lapses", "nodes", "schema", "strict")
_LIBRARIES = ("jsonschema_rs", "ruamel.yaml", "ryaml")


class Cache:
    """The values that were read from one mesh repo's files, by kind and content. `path` is None where none
    are kept."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._kept: dict[str, str] = {} if path is None else _kept(path)
        self._used: dict[str, str] = {}
        self._new = 0

    @classmethod
    def of(cls, repo: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """The cache of the mesh repo at `repo`."""
        folder = _folder(environment)
        if folder is None:
            return cls()
        name = hashlib.sha256(os.fsencode(repo.resolve())).hexdigest()[:24]
        return cls(folder / f"{name}{SUFFIX}")

    def find(self, kind: str, blob: bytes) -> tuple[bool, Json]:
        """Whether a file of this kind and content was read before, and its value: a new one each time."""
        key = _key(kind, blob)
        text = self._used.get(key) or self._kept.get(key)
        if text is None:
            return False, None
        try:
            value = json.loads(text)
        except ValueError:
            return False, None
        self._used[key] = text
        return True, value

    def add(self, kind: str, blob: bytes, value: Json) -> None:
        """Remember the value of a file that fitted its schema."""
        if self.path is not None:
            self._used[_key(kind, blob)] = json.dumps(value, separators=(",", ":"))
            self._new += 1

    def keep(self) -> None:
        """Write it for the next run, where that is worth it and can be done."""
        if self.path is None or self._new * WORTH <= len(self._kept):
            return
        with suppress(OSError):
            fsops.make_directory(self.path.parent, 0o700)
            fsops.write(self.path, _written(self._kept, self._used), 0o600)
            _bound(self.path.parent)


def _folder(environment: Mapping[str, str]) -> Path | None:
    """Where caches are (XDG Base Directory); None where they are off, or nobody's home is known."""
    if environment.get("GITMESH_CACHE") == "off":
        return None
    said = environment.get("XDG_CACHE_HOME", "")
    if said.startswith("/"):  # a relative one is to be ignored
        return Path(said) / "gitmesh"
    home = environment.get("HOME", "")
    return Path(home) / ".cache" / "gitmesh" if home.startswith("/") else None


def _key(kind: str, blob: bytes) -> str:
    return f"{kind} {hashlib.sha256(blob).hexdigest()}"


@cache
def _maker() -> str:
    """What made the values: this version, its schemas, and the code and libraries that read."""
    made = hashlib.sha256(__version__.encode())
    schemas, here = asset("schemas"), Path(__file__).parent
    for file in (*sorted(schemas.glob("*.json")), *(here / f"{each}.py" for each in _READERS)):
        made.update(file.read_bytes())
    for name in _LIBRARIES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found = Path(spec.origin).stat()
            made.update(f"{name} {found.st_size} {found.st_mtime_ns}".encode())
    return made.hexdigest()


def _head(body: bytes) -> bytes:
    return f"gitmesh {_maker()} {hashlib.sha256(body).hexdigest()}\n".encode()


def _kept(path: Path) -> dict[str, str]:
    """The texts that the file at `path` keeps by key, the longest unused first; none where it is not whole,
    not this program's, or not its reader's own."""
    try:
        head, _, body = fsops.read_private(path, LIMIT).partition(b"\n")
        if head + b"\n" != _head(body):
            return {}
        return dict(line.split("\t", 1) for line in body.decode("ascii").splitlines())
    except (OSError, ValueError):
        return {}


def _written(kept: Mapping[str, str], used: Mapping[str, str]) -> bytes:
    """The file's content, with what was used last at its end and no more than fits."""
    lines: list[bytes] = []
    room = LIMIT - len(_head(b""))
    unused = {key: text for key, text in kept.items() if key not in used}
    for key, text in reversed([*unused.items(), *used.items()]):
        line = f"{key}\t{text}\n".encode("ascii")
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    body = b"".join(reversed(lines))
    return _head(body) + body


def _bound(folder: Path) -> None:
    """Remove the oldest of too many files."""
    found = sorted(folder.glob(f"*{SUFFIX}"), key=lambda each: each.stat().st_mtime_ns)
    for each in found[:-MOST_FILES]:
        fsops.remove(each)
