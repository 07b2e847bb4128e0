"""What a plan is made of: one thing that is done to one subject, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verb(StrEnum):
    """What is done, in the order of doing it."""

    CHANGE_NODE = "change-node"
    CHANGE_REGISTRY = "change-registry"
    LEARN_HOST = "learn-host"
    FORGET_HOST = "forget-host"
    CHANGE_IDENTITY = "change-identity"
    MAKE_SECRET = "make-secret"  # noqa: S105 - a verb, no secret
    ROTATE_SECRET = "rotate-secret"  # noqa: S105 - a verb, no secret
    TAKE_SECRET = "take-secret"  # noqa: S105 - a verb, no secret
    DROP_SECRET = "drop-secret"  # noqa: S105 - a verb, no secret
    ACCEPT_ANSWER = "accept-answer"
    TAKE_UP_DATA = "take-up-data"
    MAKE_DIRECTORY = "make-directory"
    CHANGE_DIRECTORY = "change-directory"
    MOVE_DIRECTORY = "move-directory"
    KEEP_DIRECTORY = "keep-directory"
    KEEP_DATA = "keep-data"
    MOVE_DATA = "move-data"
    PURGE_DATA = "purge-data"
    LEAVE_PROVIDER = "leave-provider"
    PULL_IMAGE = "pull-image"
    CLOSE_PORT = "close-port"
    MOVE_PORT = "move-port"
    OPEN_PORT = "open-port"
    STOP = "stop"
    RECREATE = "recreate"
    RELOAD = "reload"
    START = "start"
    ADD_JOB = "add-job"
    CHANGE_JOB = "change-job"
    DROP_JOB = "drop-job"
    CHANGE_PROVISION = "change-provision"
    ENSURE_LOGIN = "ensure-login"
    RETIRE_LOGIN = "retire-login"
    CHANGE_CHECK = "change-check"
    CHANGE_ORDER = "change-order"
    WAIT = "wait"


_ORDER = {verb: place for place, verb in enumerate(Verb)}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done to `subject`; `why` names what says so."""

    verb: Verb
    subject: str
    why: tuple[str, ...] = ()


def in_verbs_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps in the order of doing them, each once."""
    ordered = sorted(dict.fromkeys(steps), key=lambda step: (_ORDER[step.verb], step.subject))
    return tuple(ordered)
