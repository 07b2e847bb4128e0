"""Keys (SECURITY §1.2): public ones as documents spell them, private ones in files only their owner reads.

Signing and sealing keys are separate; neither is derived from the other. No private byte is in any repr.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import nacl.exceptions
import nacl.public
import nacl.signing
import nacl.utils

from gitmesh import fsops
from gitmesh.trust.canonical import NotCanonical, from_base64, to_base64

SIZE = 32
"""The bytes of a raw key, public or private."""


class KeyRefused(Exception):
    """A key, or the file of one, that is not used: `message`, and `fix`, a command, where there is one."""

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message if fix is None else f"{message}; try: {fix}")
        self.message = message
        self.fix = fix


class Algorithm(StrEnum):
    """What a public key is for: ed25519 signs, x25519 seals."""

    ED25519 = "ed25519"
    X25519 = "x25519"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key; `str` is its spelling in documents, `ed25519:<base64>` or `x25519:<base64>`."""

    algorithm: Algorithm
    raw: bytes

    def __str__(self) -> str:
        return f"{self.algorithm}:{to_base64(self.raw)}"

    @classmethod
    def parse(cls, text: str, algorithm: Algorithm) -> Self:
        """The key that `text` spells. Raises `KeyRefused`."""
        return cls(algorithm, _parse(text, algorithm, f"a public {algorithm} key"))


def raw_sign(text: str) -> bytes:
    """The raw bytes of `ed25519:<base64>`. Raises `KeyRefused`."""
    return PublicKey.parse(text, Algorithm.ED25519).raw


def raw_seal(text: str) -> bytes:
    """The raw bytes of `x25519:<base64>`. Raises `KeyRefused`."""
    return PublicKey.parse(text, Algorithm.X25519).raw


def _parse(text: str, prefix: str, what: str) -> bytes:
    start, _, encoded = text.partition(":")
    try:
        raw = from_base64(encoded)
    except NotCanonical:
        raw = b""
    if start != prefix or len(raw) != SIZE:
        raise KeyRefused(f"not {what}: expected `{prefix}:` and the base64 of {SIZE} bytes")
    return raw


# --- private keys --------------------------------------------------------------------------------------


class _Private(ABC):
    """What the kinds of private key share: they are shown by their public half, and never pickled."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.public_text}>"

    def __reduce__(self) -> str:
        raise TypeError("a private key is not pickled or copied")

    @property
    @abstractmethod
    def public_text(self) -> str:
        """The public half as documents spell it."""


class SigningKey(_Private):
    """An Ed25519 private key."""

    PREFIX: ClassVar[str] = "ed25519-private"
    __slots__ = ("_key",)

    def __init__(self, seed: bytes) -> None:
        self._key = nacl.signing.SigningKey(seed)

    @classmethod
    def generate(cls) -> Self:
        """A new one."""
        return cls(nacl.utils.random(SIZE))

    @property
    def public(self) -> bytes:
        """The raw public key."""
        return bytes(self._key.verify_key)

    @property
    def public_text(self) -> str:
        """`ed25519:<base64>`."""
        return str(PublicKey(Algorithm.ED25519, self.public))

    def sign(self, message: bytes) -> bytes:
        """The signature of `message`, the same each time."""
        return self._key.sign(message).signature

    def to_file(self) -> bytes:
        """The content of its file: private."""
        return f"{self.PREFIX}:{to_base64(bytes(self._key))}\n".encode()

    @classmethod
    def from_file(cls, text: str) -> Self:
        """The key that a file's content says. Raises `KeyRefused`."""
        return cls(_parse(text.removesuffix("\n"), cls.PREFIX, "a private ed25519 key"))


class SealingKey(_Private):
    """An X25519 private key."""

    PREFIX: ClassVar[str] = "x25519-private"
    __slots__ = ("_key",)

    def __init__(self, raw: bytes) -> None:
        self._key = nacl.public.PrivateKey(raw)

    @classmethod
    def generate(cls) -> Self:
        """A new one."""
        return cls(nacl.utils.random(SIZE))

    @property
    def public(self) -> bytes:
        """The raw public key."""
        return bytes(self._key.public_key)

    @property
    def public_text(self) -> str:
        """`x25519:<base64>`."""
        return str(PublicKey(Algorithm.X25519, self.public))

    def open(self, ciphertext: bytes) -> bytes:
        """What was sealed to this key; it does not say by whom. Raises `KeyRefused` if it does not open."""
        try:
            return nacl.public.SealedBox(self._key).decrypt(ciphertext)
        except nacl.exceptions.CryptoError:
            raise KeyRefused("does not open with this key") from None

    def to_file(self) -> bytes:
        """The content of its file: private."""
        return f"{self.PREFIX}:{to_base64(bytes(self._key))}\n".encode()

    @classmethod
    def from_file(cls, text: str) -> Self:
        """The key that a file's content says. Raises `KeyRefused`."""
        return cls(_parse(text.removesuffix("\n"), cls.PREFIX, "a private x25519 key"))


class AgeKey(_Private):
    """An age X25519 identity: the vault's for handed values, or a recovery key."""

    __slots__ = ("_identity", "_recipient")

    def __init__(self, identity: str) -> None:
        import pyrage  # only the vault and a recovery need it; a pull does not

        try:
            key = pyrage.x25519.Identity.from_str(identity)
        except pyrage.IdentityError:
            raise KeyRefused("not an age identity: expected AGE-SECRET-KEY-1…") from None
        self._identity = identity
        self._recipient = str(key.to_public())

    @classmethod
    def generate(cls) -> Self:
        """A new one."""
        import pyrage

        return cls(str(pyrage.x25519.Identity.generate()))

    @property
    def public_text(self) -> str:
        """The recipient, `age1…`."""
        return self._recipient

    def identity(self) -> str:
        """The private `AGE-SECRET-KEY-1…`; for the environment of a `sops` that is started."""
        return self._identity

    def to_file(self) -> bytes:
        """The content of its file, as age-keygen writes it: private."""
        return f"# public key: {self._recipient}\n{self._identity}\n".encode()

    @classmethod
    def from_file(cls, text: str) -> Self:
        """The one key of an age identity file. Raises `KeyRefused`."""
        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if len(keys) != 1:
            raise KeyRefused("not an age key file: expected one AGE-SECRET-KEY-1… line")
        return cls(keys[0])


def is_age_recipient(text: str) -> bool:
    """Whether `text` is an age X25519 recipient, `age1…`."""
    import pyrage

    try:
        pyrage.x25519.Recipient.from_str(text)
    except pyrage.RecipientError:
        return False
    return True


# --- key files -----------------------------------------------------------------------------------------

Key = TypeVar("Key", SigningKey, SealingKey, AgeKey)


def write_key(path: Path, key: SigningKey | SealingKey | AgeKey) -> None:
    """Write a private key's file, mode 0600. Raises OSError."""
    fsops.write(path, key.to_file(), mode=0o600)


def read_key(path: Path, kind: type[Key]) -> Key:
    """The private key in a file that only its owner, who runs this, can read or replace (S56).

    Raises `KeyRefused`, which says the command that repairs it: a file that others may read, another
    owner's, a link, one in a directory that others may write, one that holds no such key; FileNotFoundError
    and other OSErrors.
    """
    directory = path.parent.stat()
    if directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refused(path, "others may write in its directory", "chmod", "go-w", path.parent)
    if directory.st_uid not in (0, os.geteuid()):
        raise _refused(path, "its directory is another user's", "chown", os.geteuid(), path.parent)
    try:
        blob = fsops.read_private(path)
    except fsops.Exposed:
        raise _exposed(path) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refused(path, "a link; the file itself must stand there", "ls", "-l", path) from None
        raise
    try:
        return kind.from_file(blob.decode("ascii"))
    except (UnicodeDecodeError, KeyRefused):
        raise KeyRefused(f"{path}: holds no {_CONTENT[kind]}") from None


_CONTENT: dict[type, str] = {
    SigningKey: f"`{SigningKey.PREFIX}:…` line",
    SealingKey: f"`{SealingKey.PREFIX}:…` line",
    AgeKey: "age identity",
}


def _exposed(path: Path) -> KeyRefused:
    """Which of the two it was; only the message hangs on this second look."""
    if path.lstat().st_uid != os.geteuid():
        return _refused(path, "another user's file", "chown", os.geteuid(), path)
    return _refused(path, "a private key that others may read", "chmod", "600", path)


def _refused(path: Path, what: str, *fix: object) -> KeyRefused:
    return KeyRefused(f"{path}: {what}", shlex.join(str(each) for each in fix))
