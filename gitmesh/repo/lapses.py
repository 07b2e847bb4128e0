"""What YAML 1.2 refuses, or readers read differently, and ruamel and ryaml both let pass.

Found with the YAML test suite: of its invalid cases these are the ones that neither reader notices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitmesh.repo.nodes import Node, Problem

_HEADER_COMMENT = re.compile(r"[|>][-+0-9]*#")
_TAB_INDENT = re.compile(r"^ *\t[ \t]*(?=[^\s])", re.MULTILINE)
_CLOSING = re.compile(r"[\]}]+,?[ \t\r]*(?:#.*)?")


def lapses(text: str, root: Node) -> Iterator[Problem]:
    """The lapses in a document that was read without problems."""
    blocks: list[Node] = []
    todo: list[tuple[Node, int]] = [(root, -1)]
    while todo:
        node, indent = todo.pop()
        yield from _own(text, node, indent)
        if node.style in ("|", ">"):
            blocks.append(node)
        if not node.flow:
            indent = _column(text, node.start)
        yield from _gaps(text, node)
        todo += [(child, indent if not node.flow else -1) for child in node.children()]
    yield from _tabs(text, blocks)


def _own(text: str, node: Node, indent: int) -> Iterator[Problem]:
    quoted = node.style in ("'", '"')
    if (quoted or node.flow) and text.startswith("#", node.end):
        yield _comment(node.end)
    if (quoted or node.flow) and indent >= 0:
        yield from _continuation(text, node, indent)
    if node.plain and (node.value == "-" or node.value.startswith("?")):
        yield Problem("syntax", "text that looks like an indicator", node.start, node.end, "quote it")
    if node.style in ("|", ">"):
        yield from _block(text, node)


def _continuation(text: str, node: Node, indent: int) -> Iterator[Problem]:
    """Lines after the first of quoted text or a flow collection stand deeper than what holds it."""
    position = text.find("\n", node.start, node.end) + 1
    while position:
        line = text[position : text.find("\n", position) if "\n" in text[position:] else len(text)]
        depth = len(line) - len(line.lstrip(" "))
        if line.strip() and depth <= indent and not _CLOSING.fullmatch(line, depth):
            yield Problem(
                "syntax", "a continued line that is not indented", position, position + 1, "indent it"
            )
            return
        position = text.find("\n", position, node.end) + 1


def _block(text: str, node: Node) -> Iterator[Problem]:
    if _HEADER_COMMENT.match(text, node.start):
        yield _comment(text.index("#", node.start))
    deepest = 0
    position = text.find("\n", node.start) + 1
    for line in text[position:].split("\n") if position else ():
        depth = len(line) - len(line.lstrip(" "))
        if line.strip():
            if depth < deepest:
                yield Problem("syntax", "a blank line that is indented", position, position, "empty it")
            break
        deepest = max(deepest, depth)
        position += len(line) + 1
    if text.endswith((" ", "\t")) and not text[node.end :].strip():
        end = len(text)
        yield Problem("syntax", "spaces after the last line", end - 1, end, "remove them")


def _gaps(text: str, node: Node) -> Iterator[Problem]:
    """What stands between the children of a collection."""
    end = node.start
    for child in node.children():
        yield from _gap(text, end, child.start)
        end = max(end, child.end)
    if node.flow:
        yield from _gap(text, end, node.end)


def _gap(text: str, start: int, end: int) -> Iterator[Problem]:
    position = start
    for line in text[start:end].split("\n"):
        code, mark, _ = line.partition("#")
        if mark and code and code[-1] not in " \t":
            yield _comment(position + len(code))
        if "?" in code:
            where = position + code.index("?")
            yield Problem("feature", "a `?` before a key", where, where + 1, "write `key: value`")
        position += len(line) + 1


def _tabs(text: str, blocks: list[Node]) -> Iterator[Problem]:
    for match in _TAB_INDENT.finditer(text):
        where = match.end()
        if text[where] != "#" and not any(block.start < where < block.end for block in blocks):
            at = text.index("\t", match.start())
            yield Problem("syntax", "a tab where only spaces may stand", at, where, "use spaces")


def _comment(where: int) -> Problem:
    return Problem("syntax", "a `#` with no space before it", where, where + 1, "put a space before it")


def _column(text: str, index: int) -> int:
    return index - text.rfind("\n", 0, index) - 1
