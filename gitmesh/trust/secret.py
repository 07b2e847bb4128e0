"""A plaintext secret, in a type that shows nothing of it (DESIGN §8)."""

from __future__ import annotations

import hmac


class Secret:
    """Bytes that no repr, log, format or traceback shows; compared in constant time."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes | str) -> None:
        self._value = value.encode("utf-8") if isinstance(value, str) else bytes(value)

    def reveal(self) -> bytes:
        """The bytes; for whoever writes them to their file or seals them."""
        return self._value

    def text(self) -> str:
        """The bytes as text. Raises `ValueError`, which says nothing of them, where they are none."""
        try:
            return self._value.decode("utf-8")
        except UnicodeDecodeError:
            pass
        # Raised out here, it does not carry the error that holds the bytes.
        raise ValueError("this secret is no UTF-8 text")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]  # a hash would compare in variable time

    def __repr__(self) -> str:
        return "<secret>"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled or copied")
