"""Other programs on like work: N nodes, each with variables of its own, and one output for each.

Each is given the least that it can do with like files, and is measured as it is called: its start included.
A peer that is not on PATH is named and left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Figure, measure


def ansible(nodes: int, assignments: int, folder: Path, runs: int) -> Figure:
    """One task that reads every host's variables."""
    variables = folder / "host_vars"
    variables.mkdir()
    for node in range(nodes):
        lines = [f"app{each}: {{name: app{each}.n{node}.example.org}}" for each in range(assignments)]
        (variables / f"n{node}.yml").write_text("\n".join(lines) + "\n")
    (folder / "hosts.ini").write_text("".join(f"n{node} ansible_connection=local\n" for node in range(nodes)))
    task = ["-m", "ansible.builtin.debug", "-a", "msg={{ app0.name }}"]
    return measure(["ansible", "-i", "hosts.ini", "all", "-f", "20", *task], folder, runs)


def kapitan(nodes: int, assignments: int, folder: Path, runs: int) -> Figure:
    """One target for each node, compiled by the Jinja input: each application's name into one file."""
    for place in ("inventory/classes", "inventory/targets", "templates"):
        (folder / place).mkdir(parents=True)
    (folder / "inventory/classes/node.yml").write_text(
        "parameters:\n  kapitan:\n    compile:\n    - output_path: .\n      input_type: jinja2\n"
        "      input_paths: [templates/node.txt]\n"
    )
    (folder / "templates/node.txt").write_text(
        "{% for app in inventory.parameters.apps.values() %}{{ app.name }}\n{% endfor %}"
    )
    for node in range(nodes):
        apps = "".join(
            f"    app{each}: {{name: app{each}.n{node}.example.org}}\n" for each in range(assignments)
        )
        (folder / f"inventory/targets/n{node}.yml").write_text(
            f"classes: [node]\nparameters:\n  kapitan: {{vars: {{target: n{node}}}}}\n"
            f"  apps:\n{apps or '    {}'}"
        )
    return measure(["kapitan", "compile", "--parallelism", "2"], folder, runs)


PEERS: dict[str, Callable[[int, int, Path, int], Figure]] = {"ansible": ansible, "kapitan": kapitan}


def is_here(peer: str) -> bool:
    """Whether the peer's program is on PATH."""
    return shutil.which(peer) is not None
