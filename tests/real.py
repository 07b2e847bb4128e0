"""What tests need from outside the project: real software, and the reference folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


def require(condition: object, reason: str) -> None:
    """Skip the test where `condition` does not hold; under GITMESH_REQUIRE_REAL=1 fail it instead."""
    if condition:
        return
    if os.environ.get("GITMESH_REQUIRE_REAL") == "1":
        pytest.fail(f"GITMESH_REQUIRE_REAL=1, and {reason}")
    pytest.skip(reason)


def shared(path: str) -> Path:
    """A file or folder of the reference folder; skips, saying so, where that is absent."""
    base = Path(os.environ.get("GITMESH_SHARED", PROJECT.parent / "shared"))
    found = base / path
    if not found.exists():
        pytest.skip(f"the reference folder has no {path} here (GITMESH_SHARED names it)")
    return found
