"""Where the folders lie that gitmesh ships beside its code."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_NAMES = ("schemas", "mesh-repo-template", "hooks")


def asset(name: str) -> Path:
    """The folder `schemas`, `mesh-repo-template` or `hooks`: inside an installed package, or at the top
    of a checkout. Raises `ValueError` for another name, `FileNotFoundError` for a broken installation."""
    if name not in _NAMES:
        raise ValueError(f"no asset is called {name!r}; there are {', '.join(_NAMES)}")
    for base in (_PACKAGE / "_assets", _PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise FileNotFoundError(f"this installation of gitmesh lacks its folder {name}")
