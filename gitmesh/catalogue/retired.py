"""Retired forms in definitions that are being moved (A16), found in the text: such a file does not load.

Beside the old references, which `core.retired` names, it finds `settings:`, mounts whose host side is a path
written out, and secrets written into an environment. That is a search by form: what a file says of itself
in another way is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gitmesh.catalogue.lint import DEFINITIONS, Counted
from gitmesh.core.refusal import At
from gitmesh.core.retired import HOST_PATH, RETIRED
from gitmesh.repo.nodes import Node, parse, span

_REFERENCE = re.compile(rf"(?<!\$)\$\{{({'|'.join(RETIRED)})(?=[:}}])[^}}\s]*\}}?", re.ASCII)
_SECRET = re.compile(r"(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_?KEY)", re.ASCII)
_SECRET_LITERAL = "require it, `key: {module: secret}`, and say `{file: '${key:value}'}`"  # noqa: S105 - an answer


def retired_uses(files: Mapping[str, bytes]) -> tuple[Counted, ...]:
    """Every use in the definitions among `files`, by file and in the order they stand in; the `reason` of
    each names the new form. No value is quoted."""
    found = []
    for file in sorted(files):
        if file.startswith(DEFINITIONS) and file.endswith("/module.yaml"):
            text = files[file].decode("utf-8", "replace").removeprefix("\ufeff")
            found += sorted(_uses(file, text), key=_place)
    return tuple(found)


def _place(use: Counted) -> tuple[int, int]:
    where = use.at.span
    return (where.line, where.column) if where else (0, 0)


def _uses(file: str, text: str) -> Iterator[Counted]:
    module = file.split("/")[-2]
    root = parse(text).root
    required = _required(root)
    for match in _REFERENCE.finditer(text):
        if match[1] not in required:
            at = At(file, span=span(text, *match.span()))
            yield Counted("retired", module, f"${{{match[1]}:…}}", RETIRED[match[1]], at)
    for what, better, node in _written(root) if root is not None else ():
        yield Counted("retired", module, what, better, At(file, span=span(text, node.start, node.end)))


def _required(root: Node | None) -> set[str]:
    """The requirements of the file: `${machine:name}` is of the new form where one is called `machine`."""
    requires = _entry(root, "requires")
    return {key.value for key, _ in requires.entries} if requires is not None else set()


def _entry(node: Node | None, name: str) -> Node | None:
    entries = node.entries if node is not None else []
    return next((value for key, value in entries if key.value == name), None)


def _written(root: Node) -> Iterator[tuple[str, str, Node]]:
    """What is no reference: the form, what stands for it now, and where."""
    for key, _ in root.entries:
        if key.value == "settings":
            yield "settings:", RETIRED["settings"], key
    for name, value in _maps(root):
        if name in ("mounts", "volumes"):
            yield from (("a host path", HOST_PATH, each) for each in _sides(value) if _is_path(each))
        if name in ("env", "environment"):
            yield from (("a secret written out", _SECRET_LITERAL, each) for each in _secrets(value))


def _maps(node: Node) -> Iterator[tuple[str, Node]]:
    """Each key of the document with its value, however deep."""
    for key, value in node.entries:
        yield key.value, value
        yield from _maps(value)
    for each in node.items:
        yield from _maps(each)


def _sides(mounts: Node) -> Iterator[Node]:
    """The host sides: of a map its values and their `from`, of a list what stands before the colon."""
    for _, value in mounts.entries:
        source = _entry(value, "from") if value.kind == "map" else value
        if source is not None:
            yield source
    yield from (each for each in mounts.items if each.kind == "scalar" and ":" in each.value)


def _is_path(node: Node) -> bool:
    return node.value[:1] in ("/", "~", ".")


def _secrets(environment: Node) -> Iterator[Node]:
    """The values that are written out under a secret's name; one that ends in `_FILE` is a path."""
    for key, value in environment.entries:
        named = _SECRET.search(key.value) and not key.value.endswith("_FILE")
        if named and value.kind == "scalar" and value.value and "${" not in value.value:
            yield value
