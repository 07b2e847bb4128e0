"""What gitmesh makes of a mesh, as bytes to compare: `python -m tests.said_of FOLDER [SEED]` prints it.

It runs in a process of its own, since the hash seed and the locale of a process can't be changed.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from gitmesh.core.codec import encode
from gitmesh.core.compose import compose
from gitmesh.core.record import EMPTY, to_json
from gitmesh.core.refusal import ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.load import load
from gitmesh.repo.tree import open_tree
from gitmesh.report.terminal import render
from gitmesh.trust.canonical import encode as canonical


def said_of(folder: Path, seed: str | None = None) -> bytes:
    """The declarations and the record of a mesh, or its refusals; its files shuffled by `seed`."""
    files = list(open_tree(folder).files.items())
    if seed is not None:
        random.Random(seed).shuffle(files)
    mesh, refused = load(dict(files))
    resolution = resolve(mesh, EMPTY)
    refusals = ordered([*refused, *resolution.refusals])
    if refusals:
        return render(refusals, dict(files), colour=False).encode()
    declared = {node: encode(each) for node, each in compose(resolution).items()}
    return canonical({"declared": declared, "record": to_json(resolution.record, mesh.id)})


if __name__ == "__main__":
    sys.stdout.buffer.write(said_of(Path(sys.argv[1]), *sys.argv[2:]))
