"""A `gitmesh` to install that runs the one under test: a wheel without dependencies, for what uses pip."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from tests.real import PROJECT

_RUN = f"""\
import os, sys
def main():
    path = os.pathsep.join(each for each in ({str(PROJECT)!r}, os.environ.get("PYTHONPATH")) if each)
    os.environ["PYTHONPATH"] = path
    os.execv({sys.executable!r}, [{sys.executable!r}, "-m", "gitmesh", *sys.argv[1:]])
"""


def wheel(folder: Path) -> Path:
    """Write the wheel into `folder`, and give its path."""
    made = folder / "gitmesh-0-py3-none-any.whl"
    inside = {
        "run_gitmesh.py": _RUN,
        "gitmesh-0.dist-info/METADATA": "Metadata-Version: 2.1\nName: gitmesh\nVersion: 0\n",
        "gitmesh-0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "gitmesh-0.dist-info/entry_points.txt": "[console_scripts]\ngitmesh = run_gitmesh:main\n",
    }
    inside["gitmesh-0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in inside)
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in inside.items():
            archive.writestr(name, text)
    return made


def program(folder: Path) -> Path:
    """Write a program `gitmesh` that runs the one under test into `folder`, and give its path."""
    made = folder / "gitmesh"
    made.write_text(f"#!/bin/sh\nPYTHONPATH='{PROJECT}' exec '{sys.executable}' -m gitmesh \"$@\"\n")
    made.chmod(0o755)
    return made
