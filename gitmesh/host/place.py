"""Puts an assignment's directories and files in place, and finds what somebody changed (E3).

What is as it should be is not touched: then no durable write happens at all (E1).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from gitmesh.fsops import Outside, Owner, Root
from gitmesh.host.filled import FilledAssignment
from gitmesh.host.runtimes.base import FILES, SECRETS, Item
from gitmesh.host.state import APPLYING, AppliedAssignment, Made


@dataclass(slots=True)
class Placed:
    """What one run found and did, for one assignment."""

    files: dict[str, str] = field(default_factory=dict)
    directories: dict[str, Made] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unset: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def place_directories(
    root: Root, filled: FilledAssignment, before: AppliedAssignment, placed: Placed
) -> None:
    """Make the directories with their owners and modes; what is in them is never touched (E5, E6).

    One that was there and is gone, or whose data still is at an earlier place, fails: nothing is started on
    an empty one in its stead (G8).
    """
    for name, each in filled.directories.items():
        wanted = {name: Made(each.location, each.owner, each.mode)}
        for sub in each.subs:
            wanted[f"{name}/{sub}"] = Made(f"{each.location}/{sub}", each.owner, each.mode)
        for key, made in wanted.items():
            shown = root.shown(made.location)
            try:
                _check_nothing_lost(root, before.directories.get(key), made)
                _place_directory(root, key, made, before, placed)
            except (OSError, Outside) as error:
                placed.failed[shown] = why(error)
                break


class _Missing(OSError):
    """The data of a directory is elsewhere or gone."""


def _check_nothing_lost(root: Root, last: Made | None, made: Made) -> None:
    if last is None:
        return
    if last.location != made.location:
        if root.entries(last.location) and not root.entries(made.location):
            raise _Missing(f"its data still is in {root.shown(last.location)}: move it first")
    elif not root.exists(made.location):
        raise _Missing(
            "it was there and is gone: mount or restore it, or make it by hand to start with an empty one"
        )


def _place_directory(root: Root, key: str, made: Made, before: AppliedAssignment, placed: Placed) -> None:
    shown = root.shown(made.location)
    found = root.stat(made.location)
    keeps_owner = _unset_before(root, before, made.location)
    if found is None or not _directory_fits(found, made, keeps_owner):
        if before.directories.get(key) == made:
            placed.drifted.append(shown)
        placed.changed.append(shown)
        keeps_owner = not root.make_directory(made.location, made.mode, made.owner)
    if keeps_owner:
        placed.unset.append(shown)
    placed.directories[key] = made


def _directory_fits(found: os.stat_result, made: Made, keeps_owner: bool) -> bool:
    owned = keeps_owner or (found.st_uid, found.st_gid) == made.owner
    return stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == made.mode and owned


def place_files(
    root: Root, items: Mapping[str, Item], before: AppliedAssignment, placed: Placed, booted: bool
) -> None:
    """Write what differs. What a killed run, or a failed write, may have left unsynced is written again.

    `booted`: the secrets' tmpfs is new, so that no secret's absence is drift.
    """
    for path, item in sorted(items.items()):
        try:
            _place_file(root, path, item, before, placed, booted)
        except (OSError, Outside) as error:
            placed.failed[root.shown(path)] = why(error)
            # What stood there before is still there and still ours to remove.
            if path in before.files:
                placed.files[path] = before.files[path]


def _place_file(
    root: Root, path: str, item: Item, before: AppliedAssignment, placed: Placed, booted: bool
) -> None:
    shown, secret = root.shown(path), path.startswith(f"{SECRETS}/")
    keeps_owner = _unset_before(root, before, path)
    fits = _file_fits(root, path, item, keeps_owner)
    if not fits or before.result == APPLYING or shown in before.failed:
        known = before.files.get(path) == item.mark and before.result != APPLYING
        if not fits and known and shown not in before.failed and not (secret and booted):
            placed.drifted.append(shown)
        placed.changed.append(shown)
        if secret:
            _make_secrets(root)
        keeps_owner = not root.write(path, item.content, item.mode, item.owner)
    if keeps_owner:
        placed.unset.append(shown)
    placed.files[path] = item.mark


def _make_secrets(root: Root) -> None:
    found = root.stat(SECRETS)
    if found is None or stat.S_IMODE(found.st_mode) != 0o700:
        root.make_directory(SECRETS, 0o700)


def _file_fits(root: Root, path: str, item: Item, keeps_owner: bool) -> bool:
    found = root.stat(path)
    if found is None or not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != item.mode:
        return False
    owner: Owner = (found.st_uid, found.st_gid)
    if item.owner not in (None, owner) and not keeps_owner:
        return False
    return found.st_size == len(item.content) and root.read(path) == item.content


def _unset_before(root: Root, before: AppliedAssignment, path: str) -> bool:
    """Whether its owner could not be set before, by who runs now."""
    return root.shown(path) in before.unset


def prune(root: Root, gone: Mapping[str, str], placed: Placed) -> None:
    """Remove files that were written and are no longer wanted, and folders they leave empty (G12)."""
    for path, mark in sorted(gone.items()):
        shown = root.shown(path)
        try:
            if root.remove(path):
                placed.removed.append(shown)
            _prune_folders(root, path)
        except (OSError, Outside) as error:
            placed.failed[shown] = why(error)
            placed.files[path] = mark


def _prune_folders(root: Root, path: str) -> None:
    folder = path.rpartition("/")[0]
    while folder not in (FILES, SECRETS) and folder.startswith((f"{FILES}/", f"{SECRETS}/")):
        if not root.remove_directory(folder) and root.exists(folder):
            return
        folder = folder.rpartition("/")[0]


def why(error: OSError | Outside) -> str:
    """What went wrong, without the path, which is named beside it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
