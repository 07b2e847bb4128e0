"""What an editing command did, for programs: version 1, frozen as `schemas/edited.json` says.

A key may join it; none changes its meaning or goes away while `v` is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.report.json import refused

ACTIONS = ("added", "changed", "removed", "unchanged")
"""What became of a file; `unchanged` where it said so already."""


def edited(
    changes: Sequence[tuple[str, str]], refusals: Sequence[Refusal], files: Mapping[str, bytes]
) -> dict[str, Json]:
    """The files that were written, each with what became of it, and what a check says now.

    `files` are the bytes after the edit, which `refusals` speak of. Raises `ValueError` for an action
    that is none of `ACTIONS`.
    """
    for _, action in changes:
        if action not in ACTIONS:
            raise ValueError(f"no action is called {action!r}; there are {', '.join(ACTIONS)}")
    return {
        "v": 1,
        "changes": [{"file": path, "action": action} for path, action in changes],
        "result": "refused" if refusals else "resolved",
        "refusals": refused(refusals, files)["refusals"],
    }
