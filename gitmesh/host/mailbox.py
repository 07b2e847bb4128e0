"""What a node writes for others, each in a ref of its own (SECURITY §1.3): answers, confirms, its report.

A document is pushed when what it says changes, and a report besides once an hour: its number rises then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitmesh.core import codec
from gitmesh.core.model import Json
from gitmesh.fsops import Root
from gitmesh.host.state import HOME, StateDamaged
from gitmesh.repo.objects import write_commit
from gitmesh.repo.transport import Access, Update, push

_FILE = f"{HOME}/mailbox.json"
REPORT_EVERY = 3600


@dataclass(frozen=True, slots=True)
class Sent:
    """What was said last in one ref: its number, when (seconds), and what, without either.

    `pushed` is False until the push is known to have worked: it may have, so the next one has a new number.
    """

    seq: int = 0
    when: int = 0
    said: Json = None
    pushed: bool = False


@dataclass(frozen=True, slots=True)
class Outbox:
    """What was said last, by ref."""

    refs: Mapping[str, Sent] = field(default_factory=dict)

    def of(self, ref: str) -> Sent:
        """What was said last in `ref`."""
        return self.refs.get(ref, Sent())


def load_outbox(root: Root) -> Outbox:
    """What this node said last; nothing on a new one. Raises `StateDamaged`."""
    try:
        return codec.decode(Outbox, json.loads(root.read(_FILE)))
    except FileNotFoundError:
        return Outbox()
    except (ValueError, codec.Malformed):
        shown = root.shown(_FILE)
        raise StateDamaged(
            shown,
            "is damaged",
            "restore it from a backup, or enrol this node anew: its numbers must not go back",
        ) from None


def save_outbox(root: Root, outbox: Outbox) -> None:
    """Keep what is said, before it is pushed: a number is never used twice."""
    root.write(_FILE, json.dumps(codec.encode(outbox), sort_keys=True).encode(), 0o600)


def is_due(sent: Sent, said: Json, now: int, every: int | None = None) -> bool:
    """Whether `said` is to be said now: it is new, or was not pushed, or `every` seconds have passed."""
    if not said and not sent.said:
        return False
    return sent.said != said or not sent.pushed or (every is not None and now >= sent.when + every)


def send(
    cache: Path,
    mailbox: str,
    files: Mapping[str, Mapping[str, bytes]],
    node: str,
    now: int,
    access: Access | None = None,
) -> None:
    """Push each ref's files as one commit without history. Raises `RepoError`."""
    updates = [
        Update(ref, write_commit(cache, held, (), ref.rpartition("/")[2], now, node), None, force=True)
        for ref, held in sorted(files.items())
    ]
    if updates:
        push(cache, mailbox, updates, access=access)
