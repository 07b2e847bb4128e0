"""What a signed document is refused for."""

from __future__ import annotations

from enum import StrEnum


class Why(StrEnum):
    """The closed set of reasons."""

    MALFORMED = "malformed"
    """not of its kind's shape, not canonical, or too large"""
    KIND = "kind"
    """signed as another kind of document"""
    SIGNATURE = "signature"
    """no signature of a key that may sign it"""
    THRESHOLD = "threshold"
    """fewer signatures by distinct keys than the role needs"""
    MESH = "mesh"
    """another mesh's"""
    VERSION = "version"
    """a format this gitmesh does not read"""
    MIN_CLIENT = "min-client"
    """the root asks for a newer gitmesh"""
    ROOT = "root"
    """not the next root, or made under another root than the newest"""
    EXPIRED = "expired"
    LIFETIME = "lifetime"
    """valid for longer than the root allows"""
    ROLLBACK = "rollback"
    """older than what was seen before"""
    EQUIVOCATION = "equivocation"
    """the number seen before with another content: somebody shows two worlds"""
    MISSING = "missing"
    DIGEST = "digest"
    """not the bytes that the approval or the deploy names"""
    NOT_IN_MESH = "not-in-mesh"
    NOT_MY_KEY = "not-my-key"
    EPOCH = "epoch"
    """signed in another epoch of its node or of the vault"""
    RECIPIENT = "recipient"
    """the approval does not name this node as a reader"""
    SEALED_HEADER = "sealed-header"
    """sealed for another place, slot or version"""
    UNSEAL = "unseal"
    """does not open with this key, or its content is not of the form"""
    BINDING = "context"
    """its content was sealed under another header"""
    FIELDS = "fields"
    """an answer outside its contract"""


class Refused(Exception):
    """A document that must not be used: `why`, and a `message` that names it and quotes none of it."""

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(f"{message} ({why})")
        self.why = why
        self.message = message
