"""The adapters by name. Each is imported when it is asked for, so that a pull with nothing new loads none."""

from __future__ import annotations

from gitmesh.host.adapters.base import Adapter, NoAdapter

ADAPTERS = ("postgres",)
"""Those this version has; FORMATS "Provides" names more, which `NoAdapter` reports by name."""


def adapter(name: str) -> Adapter:
    """The adapter called `name`. Raises `NoAdapter`."""
    match name:
        case "postgres":
            from gitmesh.host.adapters.postgres import Postgres

            return Postgres()
        case _:
            raise NoAdapter(f"this version of gitmesh has no adapter {name!r}; it has {', '.join(ADAPTERS)}")
