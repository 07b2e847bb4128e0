"""Which file of a mesh repo is what, and by which name (FORMATS; `repo.tree` has read the same grammar)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from gitmesh.core.refusal import Answer, At, Code, Refusal, Related

_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


@dataclass(slots=True)
class Paths:
    """The paths of a commit by what they are, each by the name that its place gives it.

    A contract or a module may stand in several places, the mesh's own or a vendored catalogue.
    """

    contracts: dict[str, list[str]] = field(default_factory=dict)
    modules: dict[str, list[str]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    spreads: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    handed: dict[str, str] = field(default_factory=dict)
    assignments: list[tuple[str, str, str]] = field(default_factory=list)
    """(module, node, path)"""
    beside: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """By a module's folder: the files in it but its definition."""


def sort(files: Mapping[str, bytes]) -> tuple[Paths, list[Refusal]]:
    """Where each file belongs; what has no place is not read. Names that differ in case, or in how Unicode
    spells them, are one (B7): some file systems hold only one of the two."""
    paths = Paths()
    refusals: list[Refusal] = []
    seen: dict[str, str] = {}
    # The one that is written as names are stands, whatever else is called like it.
    for path in sorted(files, key=lambda each: (_folded(each), each != _folded(each), each)):
        first = seen.setdefault(_folded(path), path)
        if first != path:
            refusals.append(_same_name(path, first))
            continue
        parts = path.split("/")
        inside = parts[2:] if parts[0] == "catalogue" and len(parts) > 3 else parts
        for name in _names(inside):
            if not _NAME.fullmatch(name):
                refusals.append(_bad_name(path))
                break
        else:
            _place(paths, path, inside, files)
    return paths, refusals


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _same_name(path: str, first: str) -> Refusal:
    return Refusal(
        Code.ASSIGNMENT_TWICE if path.lower().startswith("assignments/") else Code.FILE_NAME,
        path,
        "its name differs from another one's in case or spelling only, and they count as one",
        At(path),
        related=(Related(At(first), "the other one"),),
        answers=(Answer("remove one of the two"),),
    )


def _bad_name(path: str) -> Refusal:
    return Refusal(
        Code.FILE_NAME,
        path,
        "a name is a-z, 0-9 and - inside, starts with a letter, and has at most 63 characters",
        At(path),
        answers=(Answer("rename it"),),
    )


def _names(parts: list[str]) -> list[str]:
    """What of a path has to be a name."""
    last = parts[-1].removesuffix(".yaml")
    match parts:
        case ["modules", module, _, *_]:
            return [module]
        case ["assignments", node, _] if last != parts[-1]:
            return [node, last]
        case ["contracts" | "nodes" | "spreads" | "values", _] if last != parts[-1]:
            return [last]
        case _:
            return []


def _place(paths: Paths, path: str, parts: list[str], files: Mapping[str, bytes]) -> None:
    last = parts[-1].removesuffix(".yaml")
    match parts:
        case ["modules", module, "module.yaml"]:
            paths.modules.setdefault(module, []).append(path)
        case ["modules", _, *rest] if rest:
            inside = "/".join(rest)
            paths.beside.setdefault(path.removesuffix(f"/{inside}"), {})[inside] = files[path]
        case _ if last == parts[-1]:
            pass
        case ["assignments", node, _]:
            paths.assignments.append((last, node, path))
        case ["contracts", _]:
            paths.contracts.setdefault(last, []).append(path)
        case ["nodes", _]:
            paths.nodes[last] = path
        case ["spreads", _]:
            paths.spreads[last] = path
        case ["values", _]:
            paths.values[last] = path
        case ["handed", _]:
            paths.handed[last] = path
        case _:
            pass
