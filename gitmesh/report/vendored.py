"""What became of a vendored catalogue: for a person, a pull request, a program (`schemas/vendored.json`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.report import json, markdown
from gitmesh.report.located import safe


@dataclass(frozen=True, slots=True)
class Vendored:
    """A catalogue's move from the commit `was` (None: it is new) to `commit`; `diff` lacks `left` lines."""

    name: str
    remote: str
    was: str | None
    commit: str
    sha256: str
    changes: Sequence[tuple[str, str]]
    """Each path of the mesh repo that differs, and what becomes of it."""
    diff: Sequence[str]
    left: int


def heading(moved: Vendored) -> str:
    """From where to where, in one line."""
    was = f"{moved.was[:12]} -> " if moved.was else ""
    return f"catalogue {moved.name}: {was}{moved.commit[:12]} of {moved.remote}"


def as_text(moved: Vendored) -> str:
    """The diff, and from where to where."""
    return "\n".join((*map(safe, moved.diff), *_left(moved), safe(heading(moved)))) + "\n"


def as_markdown(moved: Vendored, refusals: Sequence[Refusal], files: Mapping[str, bytes]) -> str:
    """What a bot says in its pull request; `files` are those after the move, which `refusals` speak of."""
    body = "\n".join(map(safe, moved.diff))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", body)), default=0))
    lines = [
        f"**gitmesh:** {markdown.code(heading(moved))}",
        "",
        *(f"- {action} {markdown.code(path)}" for path, action in moved.changes),
        "",
        f"{fence}diff\n{body}\n{fence}",
        *_left(moved),
        "",
    ]
    refused = markdown.render(refusals, files) if refusals else ""
    return "\n".join(lines) + refused


def _left(moved: Vendored) -> list[str]:
    return [f"{moved.left} more lines, which git diff shows"] if moved.left else []


def as_json(moved: Vendored, refusals: Sequence[Refusal], files: Mapping[str, bytes]) -> str:
    """The same for programs, as one line: version 1."""
    result: dict[str, Json] = {
        "v": 1,
        "result": "refused" if refusals else "resolved",
        "catalogue": moved.name,
        "from": moved.remote,
        "was": moved.was,
        "commit": moved.commit,
        "sha256": moved.sha256,
        "changes": [{"file": path, "action": action} for path, action in moved.changes],
        "diff": list(moved.diff),
        "left": moved.left,
        "refusals": json.refused(refusals, files)["refusals"],
    }
    return json.dump(result) + "\n"
