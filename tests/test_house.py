"""The house (its rules are in CONTRIBUTING.md): who may import whom, what is pure, who may write, what things
are called. Each check reads source and answers what is wrong; below them, each is shown to find something."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path

import pytest

from tests.real import PROJECT

PACKAGE = PROJECT / "gitmesh"

# What each room may import from, itself aside. The order runs one way.
_GROUND = frozenset({"core", "assets"})
_MIDDLE = _GROUND | {"fsops", "repo", "trust"}
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "core": frozenset(),
    "assets": frozenset(),
    "explain": _GROUND,
    "fsops": _GROUND,
    "trust": _GROUND | {"fsops"},
    "repo": _GROUND | {"fsops", "trust"},
    "report": _MIDDLE | {"explain"},
    "deploy": _MIDDLE,
    "vault": _MIDDLE,
    "catalogue": _MIDDLE,
    # A pull runs the vault on the node that holds it; never the reverse.
    "host": _MIDDLE | {"vault"},
    "cli": _MIDDLE | {"report", "deploy", "vault", "catalogue", "host", "explain"},
    "__main__": frozenset({"cli"}),
    "__init__": frozenset(),
}

# A node decides nothing.
NOT_ON_A_NODE = ("gitmesh.core.resolve", "gitmesh.core.compose", "gitmesh.repo.load")

PURE = frozenset({
    "__future__", "abc", "base64", "bisect", "collections", "copy", "dataclasses", "difflib", "enum",
    "functools", "graphlib", "hashlib", "heapq", "ipaddress", "itertools", "json", "math", "operator", "re",
    "string", "textwrap", "types", "typing", "unicodedata", "urllib.parse",
})  # fmt: skip
IMPURE_CALLS = frozenset({"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"})

# Who may change files, beside fsops: what they write is a temporary folder's or is git's own.
MAY_WRITE: Mapping[str, str] = {
    "gitmesh.fsops": "every durable write",
    "gitmesh.cli.demo": "the demo's own temporary folder",
    "gitmesh.cli.demo_postgres": "the demo's own temporary folder",
    "gitmesh.cli.summarized": "the summary of a job, which GitHub's runner makes and reads",
    "gitmesh.repo.transport": "an empty file for git, remade where it is missing",
}
WRITING_CALLS = frozenset({"os.rename", "os.replace", "os.fsync", "os.fdatasync", "os.link", "os.symlink",
                           "shutil.move", "shutil.copy", "shutil.copy2", "shutil.copyfile"})  # fmt: skip
WRITING_METHODS = frozenset({"write_text", "write_bytes", "symlink_to", "hardlink_to", "touch"})

MAY_BE_RANDOM: Mapping[str, str] = {
    "gitmesh.vault.make": "makes the mesh's secrets (C1)",
    "gitmesh.fsops": "the name of a staged file",
    "gitmesh.host.adapters.postgres_session": "the salt of a password's verifier",
}

NOT_A_NAME = frozenset(
    {"manager", "handler", "service", "util", "helper", "process", "data", "info", "context"}
)
LONGEST = 600


# --- the checks ----------------------------------------------------------------------------------------


def module_name(path: Path) -> str:
    """`gitmesh.core.model` for its file; a package for its `__init__`."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The first folder or file below gitmesh; `__init__` for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Each imported name, dotted, with its line; `from a import b` gives `a.b`, since b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def wrong_way(module: str, tree: ast.AST) -> Iterator[str]:
    """Imports against the one way."""
    here = room(module)
    if here not in MAY_IMPORT:
        yield f"{module}: the house has no room {here}"
        return
    for line, name in imports(tree, module.rpartition(".")[0]):
        if not name.startswith("gitmesh."):
            continue
        there = room(name)
        if there in ("__version__", here) or there in MAY_IMPORT[here]:
            continue
        yield f"{module}:{line}: {here} imports {there}"


def impure(module: str, tree: ast.AST) -> Iterator[str]:
    """What core may not do: import beyond the value modules, read, write or run anything."""
    if room(module) != "core":
        return
    for line, name in imports(tree, module.rpartition(".")[0]):
        if not name.startswith("gitmesh.") and not _within(name, PURE):
            yield f"{module}:{line}: core imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"{module}:{node.lineno}: core calls {node.func.id}"


def _within(name: str, allowed: frozenset[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in allowed)


def writes(module: str, tree: ast.AST) -> Iterator[str]:
    """Changes of files outside the one module for them (decision 11 of the trust design)."""
    if module in MAY_WRITE:
        return
    for line, name in imports(tree, module.rpartition(".")[0]):
        if name in WRITING_CALLS:
            yield f"{module}:{line}: imports {name}; durable writes go through gitmesh.fsops"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (what := _writing(node)):
            yield f"{module}:{node.lineno}: {what}; durable writes go through gitmesh.fsops"


def _writing(call: ast.Call) -> str | None:
    name = ast.unparse(call.func)
    if name in WRITING_CALLS:
        return name
    if isinstance(call.func, ast.Attribute) and call.func.attr in WRITING_METHODS:
        return f".{call.func.attr}"
    if name in ("open", "io.open") or (isinstance(call.func, ast.Attribute) and call.func.attr == "open"):
        return _opens_to_write(call, name)
    return None


def _opens_to_write(call: ast.Call, name: str) -> str | None:
    if name == "os.open":
        flags = ast.unparse(call)
        if flags.startswith("os.open(os.devnull,"):
            return None
        return name if re.search(r"O_(WRONLY|RDWR|CREAT|APPEND|TRUNC)", flags) else None
    position = 1 if name in ("open", "io.open") else 0
    modes = [each.value for each in call.keywords if each.arg == "mode"] + call.args[position : position + 1]
    for mode in modes:
        if isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) & set("wax+"):
            return f"{name} with mode {mode.value!r}"
    return None


def secret_making(module: str, tree: ast.AST) -> Iterator[str]:
    """Randomness outside the vault's own module (C1)."""
    if module in MAY_BE_RANDOM:
        return
    for line, name in imports(tree, module.rpartition(".")[0]):
        if name.partition(".")[0] in ("secrets", "random") or name == "os.urandom":
            yield f"{module}:{line}: imports {name}; only the vault makes secrets"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.urandom":
            yield f"{module}:{node.lineno}: os.urandom; only the vault makes secrets"


def named_badly(module: str, tree: ast.AST) -> Iterator[str]:
    """Modules, classes and functions whose name holds a word that says nothing."""
    names = [(1, part) for part in module.split(".")[1:]]
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    names += [(node.lineno, node.name) for node in ast.walk(tree) if isinstance(node, kinds)]
    for line, name in names:
        for word in words(name):
            if word in NOT_A_NAME or word.removesuffix("s") in NOT_A_NAME or word == "processes":
                yield f"{module}:{line}: {name} has {word} in its name"


def words(name: str) -> list[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [word.lower() for word in spaced.split("_") if word]


def unexplained(module: str, source: str) -> Iterator[str]:
    """Exceptions from a checker without a reason beside them, and work put off."""
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if re.search(r"\b(TODO|FIXME|XXX)\b", token.string):
            yield f"{module}:{token.start[0]}: work put off"
        found = re.search(r"(?:noqa|type: ignore)(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(.*)", token.string)
        if found and not re.search(r"[a-z]{2}", found.group(1)):
            yield f"{module}:{token.start[0]}: an exception without its reason"


def too_long(module: str, source: str) -> Iterator[str]:
    """Modules that one can't read in one sitting."""
    if (lines := source.count("\n")) > LONGEST:
        yield f"{module}: {lines} lines, and {LONGEST} are the most"


def broken_rules(module: str, source: str) -> list[str]:
    """Everything that one module breaks."""
    tree = ast.parse(source)
    found = [
        each
        for check in (wrong_way, impure, writes, secret_making, named_badly)
        for each in check(module, tree)
    ]
    return [*found, *unexplained(module, source), *too_long(module, source)]


def reached(start: str, graph: Mapping[str, set[str]]) -> dict[str, str]:
    """The modules that importing `start` imports, each with the one that first reached it."""
    came_from: dict[str, str] = {}
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for there in sorted(graph.get(here, ())):
            if there not in came_from and there != start:
                came_from[there] = here
                waiting.append(there)
    return came_from


def graph_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which module imports which, of the given ones."""
    return {
        module: {
            known
            for _, name in imports(ast.parse(source), module.rpartition(".")[0])
            for known in (name, name.rpartition(".")[0])
            if known in sources
        }
        for module, source in sources.items()
    }


def decides(graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Ways from the host to what resolves, composes or loads."""
    for start in sorted(each for each in graph if room(each) == "host"):
        for there, last in reached(start, graph).items():
            if _within(there, frozenset(NOT_ON_A_NODE)) or there.startswith("gitmesh.core.compose"):
                yield f"{start} reaches {there} (through {last}); a node decides nothing"


# --- the house ------------------------------------------------------------------------------------------


def house() -> dict[str, str]:
    """Every module of gitmesh, and its source."""
    return {module_name(path): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}


def test_the_house_stands() -> None:
    sources = house()
    assert len(sources) > 20
    broken = [each for module, source in sources.items() for each in broken_rules(module, source)]
    assert not broken, "\n" + "\n".join(broken)


def test_a_node_decides_nothing() -> None:
    broken = list(decides(graph_of(house())))
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.rule("C1")
def test_only_the_vault_makes_secrets() -> None:
    broken = [each for module, source in house().items() for each in secret_making(module, ast.parse(source))]
    assert not broken, "\n" + "\n".join(broken)


def test_who_may_do_more_is_there() -> None:
    """An exception for a module that is gone would be one for whoever takes its name."""
    rooms = {room(module) for module in house()}
    assert set(MAY_IMPORT) >= rooms


# --- each check finds something ---------------------------------------------------------------------------

BAD = [
    ("gitmesh.core.a", "from gitmesh.repo import load", "core imports repo"),
    ("gitmesh.core.a", "from gitmesh import fsops", "core imports fsops"),
    ("gitmesh.core.a", "from ..repo import load", "core imports repo"),
    ("gitmesh.trust.a", "import gitmesh.repo.tree", "trust imports repo"),
    ("gitmesh.vault.a", "def f():\n    from gitmesh.host import pull", "vault imports host"),
    ("gitmesh.report.a", "from gitmesh.cli import main", "report imports cli"),
    ("gitmesh.deploy.a", "from gitmesh.host import pull", "deploy imports host"),
    ("gitmesh.attic.a", "", "no room attic"),
    ("gitmesh.core.a", "import os", "core imports os"),
    ("gitmesh.core.a", "import pickle", "core imports pickle"),
    ("gitmesh.core.a", "import pygit2", "core imports pygit2"),
    ("gitmesh.core.a", "from urllib.request import urlopen", "core imports urllib.request.urlopen"),
    ("gitmesh.core.a", "x = open('a')", "core calls open"),
    ("gitmesh.host.a", "import os\nos.replace('a', 'b')", "os.replace"),
    ("gitmesh.host.a", "from os import fsync", "imports os.fsync"),
    ("gitmesh.host.a", "open('a', 'w')", "open with mode 'w'"),
    ("gitmesh.host.a", "open('a', mode='ab')", "open with mode 'ab'"),
    ("gitmesh.host.a", "path.open('r+')", "path.open with mode 'r+'"),
    ("gitmesh.host.a", "path.write_text('a')", ".write_text"),
    ("gitmesh.host.a", "import os\nos.open('a', os.O_CREAT | os.O_WRONLY)", "os.open"),
    ("gitmesh.host.a", "import secrets", "imports secrets"),
    ("gitmesh.trust.a", "from random import choice", "imports random.choice"),
    ("gitmesh.trust.a", "import os\nos.urandom(3)", "os.urandom"),
    ("gitmesh.repo.utils", "", "utils in its name"),
    ("gitmesh.repo.a", "class TreeManager: ...", "manager in its name"),
    ("gitmesh.repo.a", "class HTTPHandler: ...", "handler in its name"),
    ("gitmesh.repo.a", "class A:\n    async def process_all(self): ...", "process in its name"),
    ("gitmesh.repo.a", "def load_data(): ...", "data in its name"),
    ("gitmesh.repo.a", "x = 1  # TODO later", "work put off"),
    ("gitmesh.repo.a", "import os  # noqa: F401", "without its reason"),
    ("gitmesh.repo.a", "import os  # noqa", "without its reason"),
    ("gitmesh.repo.a", "x = f()  # type: ignore[no-any-return]", "without its reason"),
    ("gitmesh.repo.a", "x = 1\n" * 601, "601 lines"),
]


@pytest.mark.parametrize(("module", "source", "said"), BAD)
def test_what_is_wrong_is_found(module: str, source: str, said: str) -> None:
    assert any(said in each for each in broken_rules(module, source))


GOOD = [
    ("gitmesh.core.a", "from __future__ import annotations\nfrom collections.abc import Mapping\nimport re"),
    ("gitmesh.core.a", "from urllib.parse import quote\nfrom gitmesh.core.model import Node"),
    ("gitmesh.host.a", "from gitmesh import fsops\nfrom gitmesh.vault.run import run"),
    ("gitmesh.host.a", "'a'.replace('b', 'c')\nopen('a')\nopen('a', 'rb')\npath.open('rb')"),
    ("gitmesh.host.a", "import os\nos.open('a', os.O_RDONLY)\nos.open(os.devnull, os.O_WRONLY)"),
    ("gitmesh.vault.make", "import secrets"),
    ("gitmesh.repo.a", "from dataclasses import dataclass\ndef metadata(): ...\ndef subprocess_of(): ..."),
    ("gitmesh.repo.a", "import os  # noqa: F401 - named by a plug-in"),
    ("gitmesh.repo.a", "x = f()  # type: ignore[no-any-return]  # its stubs say Any"),
]


@pytest.mark.parametrize(("module", "source"), GOOD)
def test_what_is_right_is_left_alone(module: str, source: str) -> None:
    assert broken_rules(module, source) == []


def test_a_way_round_is_found() -> None:
    sources = {
        "gitmesh.host.pull": "from gitmesh.vault import run",
        "gitmesh.vault.run": "from gitmesh.repo.load import load",
        "gitmesh.repo.load": "",
    }
    found = list(decides(graph_of(sources)))
    assert found == [
        "gitmesh.host.pull reaches gitmesh.repo.load (through gitmesh.vault.run); a node decides nothing"
    ]
