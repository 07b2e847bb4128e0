"""What stands where in a mesh repo: one grammar of paths for a working tree, an index and a commit.

Nothing outside it is read, and what it refuses is named with the path or the command that would be right
(SECURITY §2b).
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from gitmesh.core.refusal import Answer, At, Code, Refusal, Related

DOCUMENT_LIMIT = 256 << 10
SOURCE_LIMIT = 1 << 20
SOURCE_DEPTH = 4
"""Names below a module's folder: at most three folders and a file."""
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_HANDED = re.compile(rf"(?:{_NAME.pattern})(?:@{_NAME.pattern}\.{_NAME.pattern})?", re.ASCII)
_ROOT = re.compile(r"[1-9][0-9]{0,8}\.root", re.ASCII)
_TOP_FILES = ("mesh", "catalogue", "catalogue-ratchet", "seats", "rotations", "purges", "reveals")
_YAML_FOLDERS = {"contracts": _NAME, "nodes": _NAME, "spreads": _NAME, "values": _NAME, "handed": _HANDED}
TOP_FOLDERS = (*_YAML_FOLDERS, "modules", "assignments", "trust", "catalogue")
_NAME_RULE = "a name is a-z, 0-9 and - inside, starts with a letter, and has at most 63 characters"


class Shape(Enum):
    """What stands at a path."""

    FILE = "a file"
    EXECUTABLE = "an executable file"
    FOLDER = "a folder"
    LINK = "a symbolic link"
    REPOSITORY = "another git repository"
    OTHER = "no regular file"


class Place(Enum):
    """What the grammar makes of a path."""

    IGNORED = 0
    FOLDER = 1
    DOCUMENT = 2
    SOURCE = 3


LIMITS = {Place.DOCUMENT: DOCUMENT_LIMIT, Place.SOURCE: SOURCE_LIMIT}


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the grammar refuses a path; `better` is the path or the command that would be right."""

    code: Code
    message: str
    better: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    shape: Shape
    id: str = ""
    size: int = 0


def judge(path: str, shape: Shape) -> Place | Fault:
    """What the grammar makes of `path`, whose folders it has accepted."""
    parts = path.split("/")
    if parts[0] == "catalogue" and len(parts) > 1:
        return _in_catalogue(parts, shape)
    return _in_mesh(parts, shape)


def _in_catalogue(parts: list[str], shape: Shape) -> Place | Fault:
    if len(parts) == 2:
        return _named_folder(parts[1], shape)
    if parts[2:] == ["seats.yaml"]:
        return _document(shape)
    if parts[2] not in ("contracts", "modules"):
        return Place.IGNORED
    return _folder(shape) if len(parts) == 3 else _in_mesh(parts[2:], shape)


def _in_mesh(parts: list[str], shape: Shape) -> Place | Fault:
    top, *rest = parts
    if not rest:
        return _at_top(top, shape)
    if top in _YAML_FOLDERS:
        return _yaml_file(rest[0], shape, _YAML_FOLDERS[top]) if len(rest) == 1 else Place.IGNORED
    if top == "trust":
        return _root_file(rest[0], shape) if len(rest) == 1 else Place.IGNORED
    if len(rest) == 1:
        return _named_folder(rest[0], shape)
    if top == "assignments":
        return _yaml_file(rest[1], shape, _NAME) if len(rest) == 2 else Place.IGNORED
    return _module_file(rest[1:], shape)


def _at_top(name: str, shape: Shape) -> Place | Fault:
    if name in TOP_FOLDERS:
        return _folder(shape)
    stem, _, extension = name.partition(".")
    if stem.casefold() in _TOP_FILES and extension.casefold() in ("yaml", "yml"):
        right = f"{stem.casefold()}.yaml"
        return (
            _document(shape)
            if name == right
            else Fault(Code.FILE_NAME, f"this file is called {right}", right)
        )
    if name.casefold() in TOP_FOLDERS and shape is not Shape.FILE:
        return Fault(Code.FILE_NAME, f"this folder is called {name.casefold()}", name.casefold())
    return Place.IGNORED


def _named_folder(name: str, shape: Shape) -> Place | Fault:
    """A folder called by a module, a node or a catalogue."""
    if shape in (Shape.FILE, Shape.EXECUTABLE):
        if name.casefold().endswith((".yaml", ".yml")):
            return Fault(Code.FILE_KIND, "a YAML file where only folders are read")
        return Place.IGNORED
    if name.startswith("."):
        return Place.IGNORED
    if not _NAME.fullmatch(name):
        return Fault(Code.FILE_NAME, f"the folder's name is no name: {_NAME_RULE}", _nearest(name))
    return _folder(shape)


def _folder(shape: Shape) -> Place | Fault:
    if shape is Shape.FOLDER:
        return Place.FOLDER
    if shape is Shape.REPOSITORY:
        said = "a submodule where a folder must be; what another repository holds is vendored, not linked"
        return Fault(Code.FILE_KIND, said)
    return Fault(Code.FILE_KIND, f"{shape.value} where a folder must be; links are not followed")


def _yaml_file(name: str, shape: Shape, grammar: re.Pattern[str]) -> Place | Fault:
    stem, dot, extension = name.rpartition(".")
    if name.startswith("."):
        return Place.IGNORED
    if not dot or extension.casefold() not in ("yaml", "yml"):
        if _printable(name):
            return Place.IGNORED
        return Fault(Code.FILE_NAME, "the name has a character that can't be shown")
    if not grammar.fullmatch(stem):
        more = (
            "; a handed value is <name>.yaml or <module>@<node>.<requirement>.yaml"
            if grammar is _HANDED
            else ""
        )
        better = "" if more else _nearest(stem, ".yaml")
        return Fault(Code.FILE_NAME, f"the file's name is no name: {_NAME_RULE}{more}", better)
    if dot + extension != ".yaml":
        return Fault(
            Code.FILE_NAME, f"the file ends in .{extension} and is read only as .yaml", f"{stem}.yaml"
        )
    return _document(shape)


def _root_file(name: str, shape: Shape) -> Place | Fault:
    if not name.casefold().endswith(".root.json"):
        return Place.IGNORED
    if not _ROOT.fullmatch(name.removesuffix(".json")):
        return Fault(Code.FILE_NAME, "a root is called <number>.root.json, the number without leading zeros")
    return _document(shape)


def _module_file(parts: list[str], shape: Shape) -> Place | Fault:
    name = parts[-1]
    if name.startswith(".#"):  # an editor's lock, a link that dangles while a file is being edited
        return Place.IGNORED
    if len(parts) == 1 and name.casefold() in ("module.yaml", "module.yml"):
        right = "module.yaml"
        return (
            _document(shape)
            if name == right
            else Fault(Code.FILE_NAME, f"this file is called {right}", right)
        )
    if not _printable(name) or "\\" in name or name.casefold() in (".", "..", ".git", "git~1") or not name:
        return Fault(Code.FILE_NAME, "the name is one that no file beside a module may have")
    if len(parts) > SOURCE_DEPTH or (shape is Shape.FOLDER and len(parts) == SOURCE_DEPTH):
        return Fault(Code.FILE_NAME, f"files beside a module lie at most {SOURCE_DEPTH - 1} folders deep")
    if shape is Shape.FOLDER:
        return Place.FOLDER
    if shape in (Shape.FILE, Shape.EXECUTABLE):
        return Place.SOURCE
    return Fault(Code.FILE_KIND, f"{shape.value} where a file must be; links are not followed")


def _document(shape: Shape) -> Place | Fault:
    if shape is Shape.FILE:
        return Place.DOCUMENT
    if shape is Shape.EXECUTABLE:
        return Fault(Code.FILE_KIND, "an executable file where a plain one must be", command="chmod a-x")
    return Fault(Code.FILE_KIND, f"{shape.value} where a file must be; links are not followed")


def _printable(name: str) -> bool:
    """Whether `name` is NFC text without control, format, separator or undecodable characters."""
    categories = {unicodedata.category(character)[0] for character in name if character != " "}
    return not categories & {"C", "Z"} and unicodedata.is_normalized("NFC", name)


def _nearest(name: str, extension: str = "") -> str:
    """A name near to `name` by the grammar, or nothing where none is."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    near = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return near + extension if _NAME.fullmatch(near) else ""


# --- judging all entries -------------------------------------------------------------------------------


def judged(entries: Iterable[Entry]) -> tuple[dict[str, Entry], list[Refusal]]:
    """The entries to read, by path, and the refusals; a folder comes before what is in it."""
    opened: set[str] = {""}
    seen: dict[str, Place | Fault] = {}
    accepted: dict[str, Entry] = {}
    refusals: list[Refusal] = []
    for entry in entries:
        if entry.path.rpartition("/")[0] not in opened:
            continue
        verdict = judge(entry.path, entry.shape)
        if entry.path in seen and (verdict is not Place.IGNORED or seen[entry.path] is not Place.IGNORED):
            verdict = Fault(Code.FILE_KIND, "the name stands twice in its folder")
            accepted.pop(entry.path, None)
        seen[entry.path] = verdict
        if isinstance(verdict, Place) and entry.size > (limit := LIMITS.get(verdict, entry.size)):
            verdict = _too_large(limit)
        if isinstance(verdict, Fault):
            refusals.append(_refusal(entry.path, verdict))
        elif verdict is Place.FOLDER:
            opened.add(entry.path)
        elif verdict is not Place.IGNORED:
            accepted[entry.path] = entry
    refusals += _collisions(accepted)
    return accepted, refusals


def _collisions(accepted: dict[str, Entry]) -> list[Refusal]:
    """Refuse, and take out, paths that are one on a file system without case."""
    first: dict[str, str] = {}
    refusals: list[Refusal] = []
    if all(path == path.casefold() for path in accepted):
        return refusals
    for path in sorted(accepted):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            other = first.setdefault(part.casefold(), part)
            if other == part:
                continue
            fault = Fault(Code.FILE_NAME, f"differs from {shown(other)} only by case; rename one of them")
            refusals.append(_refusal(path, fault, (Related(At(shown(other)), "the other"),)))
            del accepted[path]
            break
    return refusals


def _too_large(limit: int) -> Fault:
    return Fault(Code.FILE_TOO_LARGE, f"the file is larger than {limit >> 10} KiB and was not read")


def _refusal(path: str, fault: Fault, related: tuple[Related, ...] = ()) -> Refusal:
    safe = shown(path)
    answers: tuple[Answer, ...] = ()
    if fault.better:
        right = "/".join((*path.split("/")[:-1], fault.better))
        command = f"git mv {shlex.quote(path)} {shlex.quote(right)}" if safe == path else None
        answers = (Answer(f"rename it to {right}", command),)
    elif fault.command and safe == path:
        answers = (Answer("make it a plain file", f"{fault.command} {shlex.quote(path)}"),)
    return Refusal(fault.code, safe, fault.message, At(safe), related=related, answers=answers)


def shown(path: str) -> str:
    """`path` with what a terminal can't show, or would obey, written out."""
    return "".join(
        character if character == " " or _printable(character) else ascii(character)[1:-1]
        for character in path
    )
