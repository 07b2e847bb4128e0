"""Keeps what a pull holds in memory out of core dumps and debuggers (SECURITY §1.7, S54)."""

from __future__ import annotations

import ctypes
import resource

_PR_SET_DUMPABLE = 4


def keep_private() -> None:
    """No core dump of this program from now on, and no look into it for others of its user.

    Best effort: where the kernel does not allow it, the pull goes on as it was.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
