"""The forms that a definition once had, and what stands for each now (A16)."""

from __future__ import annotations

from collections.abc import Mapping

RETIRED: Mapping[str, str] = {
    "bound": "name the requirement itself: `${requirement:field}`",
    "port": "require it, `http: {host: port, listens: 3000}`, and read `${http:port}` or `${http:address}`",
    "machine": "require it, `machine: {host: machine}`, and read `${machine:name}`",
    "secret": "require it, `key: {module: secret}`, and read `${key:value}`",
    "seat": "no module reads a seat; require the contract (`seat:` says whose) and read its fields",
    "setting": "require it, `workers: {operator: {type: integer}}`, and read `${workers:value}`",
    "settings": "require it, `workers: {operator: {type: integer}}`, and read `${workers:value}`",
    "fact": "require it, `mesh: {mesh: facts}`, and read `${mesh:name}`",
}
"""What such a form began with, and the answer that names the new form."""

HOST_PATH = "require it, `data: {host: directory, owner: '0:0', mode: '0750'}`, and mount `data`"
"""What stands for a path of the host in a mount."""
