"""What git's own tools leave in a file in place of its content: a merge's markers, a pointer of Git LFS."""

from __future__ import annotations

import re
import shlex

from gitmesh.core.refusal import Answer, At, Code, Refusal, Span

_MARKERS = re.compile(rb"^(?:<{7}|>{7})(?: .*)?\r?$", re.MULTILINE)
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_LIMIT = 1024
"""Bytes; the specification of the pointer allows no more."""


def foreign(file: str, blob: bytes) -> Refusal | None:
    """The refusal of a file that does not hold what its author wrote, None for any other."""
    quoted = shlex.quote(file)
    if blob.startswith(_POINTER) and len(blob) <= _POINTER_LIMIT:
        said = "a pointer of Git LFS stands here, and its content is not in the repository"
        mend = f"git lfs untrack {quoted} && git add --renormalize {quoted}"
        answer = Answer("keep the file in git itself", mend)
        return Refusal(Code.FILE_KIND, file, said, At(file), answers=(answer,))
    if marker := _MARKERS.search(blob):
        line = blob.count(b"\n", 0, marker.start()) + 1
        at = At(file, span=Span(line, 1, line, 8))
        said = "a merge was not finished here: its markers still stand in the file"
        ways = (
            Answer("keep your side", f"git checkout --ours -- {quoted}"),
            Answer("take the other side", f"git checkout --theirs -- {quoted}"),
        )
        return Refusal(Code.FILE_CONFLICT, file, said, at, "not yours nor theirs", answers=ways)
    return None
