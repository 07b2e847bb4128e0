"""Values that an operator hands over in git, `handed/<name>.yaml`, encrypted to the vault (C4, FORMATS)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gitmesh.trust.secret import Secret
from gitmesh.vault import sops
from gitmesh.vault.sops import Unreadable


def seal_handed(name: str, value: Secret, recipients: Sequence[str]) -> bytes:
    """The file `handed/<name>.yaml`. Raises `ValueError` for bytes that are no text, and `SopsFailed`, also
    for an empty value, which sops leaves in the clear."""
    return sops.encrypt(Secret(json.dumps({"id": name, "value": value.text()})), recipients, "yaml")


def open_handed(name: str, blob: bytes, key_file: Path) -> Secret:
    """The value in `handed/<name>.yaml`. The caller has held `blob` against the approval's digest, which is
    what tells an older file or one of a stranger's making (S51, S52). Raises `Unreadable`, `SopsFailed`."""
    match sops.decrypt(blob, key_file, "yaml"):
        case {"id": str(said), "value": str(value), **rest} if not rest and said == name:
            return Secret(value)
        case {"id": str(_), "value": str(_), **rest} if not rest:
            failure = "it was handed over under another name"
        case _:
            failure = "it holds something else than `id` and `value`, both text"
    raise Unreadable(f"handed/{name}.yaml: {failure}")
