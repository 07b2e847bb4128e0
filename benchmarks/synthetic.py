"""Synthetic meshes of any size, made of the template's modules: N nodes with K assignments each.

    python -m benchmarks.synthetic FOLDER --nodes 1000 --assignments 10

The same numbers give the same bytes. The template's four applications stand in under many names, so that no
node has a module twice; one node holds vault, store and edge for all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent.parent / "mesh-repo-template"
APPLICATIONS = ("gitea", "miniflux", "umami", "vaultwarden")
FOUNDATION = {
    "postgres": "holds: [mesh-store]\n",
    "caddy": "holds: [mesh-edge]\nvalues: {acme: ops@example.org}\n",
    "gitmesh-vault": "holds: [mesh-vault]\n",
    "gitmesh-controller": "holds: [mesh-controller]\n",
}
MODULES = 70
MOST_NODES = 60_000


def mesh_files(nodes: int, assignments: int, modules: int = MODULES) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file. Raises ValueError for numbers that make no mesh."""
    if not 1 <= nodes <= MOST_NODES or not 0 <= assignments <= modules:
        raise ValueError(f"expected 1 to {MOST_NODES} nodes and at most {modules} assignments on each")
    yield from _fixed()
    # Short ones: a name that is cut to an identity's eighteen characters can be another's among 100,000.
    names = [f"app{number}" for number in range(modules)]
    for number, name in enumerate(names):
        yield from _application(APPLICATIONS[number % len(APPLICATIONS)], name)
    for number in range(nodes):
        yield f"nodes/n{number}.yaml", _node(number)
        for place in range(assignments):
            name = names[(number + place) % modules]
            said = f"values: {{web.name: {name}.n{number}.example.org}}\n"
            yield f"assignments/n{number}/{name}.yaml", said.encode()
    for name, said in FOUNDATION.items():
        yield f"assignments/n0/{name}.yaml", said.encode()


def _fixed() -> Iterator[tuple[str, bytes]]:
    for path in [TEMPLATE / "mesh.yaml", *sorted((TEMPLATE / "contracts").iterdir())]:
        yield path.relative_to(TEMPLATE).as_posix(), path.read_bytes()
    for name in FOUNDATION:
        yield from _application(name, name)


def _application(template: str, name: str) -> Iterator[tuple[str, bytes]]:
    """A module of the template under another name, with the files beside it."""
    for path in sorted((TEMPLATE / "modules" / template).iterdir()):
        blob = path.read_bytes()
        if path.name == "module.yaml":
            blob = blob.replace(f"module: {template}\n".encode(), f"module: {name}\n".encode(), 1)
        yield f"modules/{name}/{path.name}", blob


def _node(number: int) -> bytes:
    address = f"10.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}"
    return f"address: {address}\npublic: n{number}.example.org\nports: {{from: 31000, to: 31999}}\n".encode()


def write(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    """Write the files below a new or empty folder; answers how many."""
    count = 0
    for name, blob in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(blob)
        count += 1
    return count


def main() -> int:
    """Write a mesh."""
    parser = argparse.ArgumentParser(description="Write a synthetic mesh.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--assignments", type=int, default=10, help="on each node")
    chosen = parser.parse_args()
    if chosen.folder.exists() and any(chosen.folder.iterdir()):
        print(f"{chosen.folder} is not empty", file=sys.stderr)
        return 2
    try:
        count = write(chosen.folder, mesh_files(chosen.nodes, chosen.assignments))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{count} files in {chosen.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
