"""Edits of YAML files that change only the lines they are about: bytes in, bytes out.

ruamel's marks say where a node stands; its text is replaced in place, so that comments, order, quotes,
alignment, line ends and a missing final newline stay as they are (its own round trip keeps most of that,
not all). Every result is read again, and is returned only if it says just what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.repo.document import read
from gitmesh.repo.nodes import INVISIBLE, Node, parse
from gitmesh.repo.strict import resolve_plain, same, show

_BOM = b"\xef\xbb\xbf"
_PLAIN_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.+")
_PLAIN = _PLAIN_START | frozenset("-@:")
_OLD_WORDS = frozenset(("yes", "no", "on", "off"))
"""True and false to a reader of YAML 1.1."""


class Uneditable(Exception):
    """A file that can't be edited by program; the text says why. `refusals`, where it is not even read."""

    def __init__(self, why: str, refusals: Sequence[Refusal] = ()) -> None:
        super().__init__(why)
        self.refusals = tuple(refusals)


def put(blob: bytes, keys: Sequence[str], value: Json) -> bytes:
    """The file with `value` at `keys`; maps on the way are made where they are missing.

    A list that only grows or shrinks keeps its other items as they are written. Without `keys` the whole
    document is meant. Raises `Uneditable` where the file is refused or a scalar stands in the way.
    """
    text, before = _opened(blob)
    wanted = _with(before, tuple(keys), value)
    root = parse(text).root
    if root is None or root.empty:
        text = _begun(text, keys, value)
    else:
        text = _put(text, root, tuple(keys), value, before)
    return _closed(blob, text, wanted)


def drop(blob: bytes, keys: Sequence[str]) -> bytes:
    """The file without what stands at `keys`, and without the maps that are empty then; unchanged if
    nothing stands there. Raises `Uneditable` as `put` does."""
    text, before = _opened(blob)
    root = parse(text).root
    path: list[tuple[Node, int]] = []
    node = root
    for key in keys:
        index = _index(node, key) if node is not None and node.kind == "map" else None
        if node is None or index is None:
            return blob
        path.append((node, index))
        node = node.entries[index][1]
    if not path:
        raise Uneditable("nothing is named to be dropped")
    while len(path) > 1 and len(path[-1][0].entries) == 1:
        path.pop()
    wanted = _without(before, tuple(keys[: len(path)]))
    return _closed(blob, _cut_entry(text, *path[-1]), wanted)


# --- before and after ----------------------------------------------------------------------------------


def _opened(blob: bytes) -> tuple[str, Json]:
    value, refusals = read("", blob)
    if refusals:
        raise Uneditable(f"the file is refused: {refusals[0].message}", refusals)
    return blob.removeprefix(_BOM).decode("utf-8"), value


def _closed(blob: bytes, text: str, wanted: Json) -> bytes:
    result = (_BOM if blob.startswith(_BOM) else b"") + text.encode("utf-8")
    value, refusals = read("", result)
    if refusals or not same(value or None, wanted or None):
        raise Uneditable("the way it is written leaves no place for this edit; edit it by hand")
    return result


def _with(before: Json, keys: tuple[str, ...], value: Json, depth: int = 0) -> Json:
    if depth == len(keys):
        return value
    if before is not None and not isinstance(before, dict):
        raise Uneditable(f"`{show(keys[:depth])}` is no map, so nothing can be put into it")
    mapping = before or {}
    return {**mapping, keys[depth]: _with(mapping.get(keys[depth]), keys, value, depth + 1)}


def _without(before: Json, keys: tuple[str, ...]) -> Json:
    if len(keys) == 1:
        return {key: value for key, value in before.items() if key != keys[0]}
    return {**before, keys[0]: _without(before[keys[0]], keys[1:])}


# --- putting -------------------------------------------------------------------------------------------


def _begun(text: str, keys: Sequence[str], value: Json) -> str:
    """A file that says nothing yet, beginning to."""
    if keys:
        lines = [f"{_scalar(keys[0])}: {render(_nest(keys[1:], value))}"]
    elif isinstance(value, list) and value:
        lines = [f"- {render(item)}" for item in value]
    else:
        lines = [render(value)]
    eol = _eol(text)
    content = eol.join(lines)
    if not text or text.endswith("\n"):
        return text + content + eol
    return text + eol + content


def _put(text: str, root: Node, keys: tuple[str, ...], value: Json, before: Json) -> str:
    key_node: Node | None = None
    node = root
    for index, key in enumerate(keys):
        if node.kind != "map":
            return _replace(text, key_node, node, _nest(keys[index:], value), before)
        found = _index(node, key)
        if found is None:
            return _insert(text, node, f"{_scalar(key)}:", render(_nest(keys[index + 1 :], value)))
        key_node, node = node.entries[found]
        before = before[key]
    return _replace(text, key_node, node, value, before)


def _replace(text: str, key_node: Node | None, node: Node, value: Json, before: Json) -> str:
    if node.kind == "list" and isinstance(value, list) and value:
        changed = _regrown(text, node, before, value)
        if changed is not None:
            return changed
    if node.empty:
        return f"{text[: node.start]} {render(value)}{text[node.end :]}"
    block = node.kind != "scalar" and not node.flow
    if block and key_node is not None:
        colon = text.index(":", key_node.end) + 1
        rest = text[colon : _line_end(text, colon)]
        return f"{text[:colon]} {render(value)}{rest}{text[node.end :]}"
    if not isinstance(value, str):
        return text[: node.start] + render(value) + text[node.end :]
    quote = node.style if node.style in ("'", '"') else ""
    new = value if _stays_plain(text, node, value) else _scalar(value, quote)
    return text[: node.start] + new + text[node.end :]


def _stays_plain(text: str, node: Node, value: str) -> bool:
    """Whether `value` may take the place of a plain scalar as it is: what it says depends on what it is
    in, so it is tried."""
    if not node.plain or not value or "\n" in value or "\r" in value or INVISIBLE.search(value):
        return False
    if not _is_text(value):
        return False
    found = _found(text[: node.start] + value + text[node.end :], node)
    return found is not None and found.plain and found.value == value


def _insert(text: str, node: Node, head: str, value: str) -> str:
    """A new entry (or, with the head `-`, item) at the end of a collection."""
    children = list(node.children())
    entry = value if node.kind == "list" and node.flow else f"{head} {value}"
    if node.flow:
        if not children:
            return text[: node.start + 1] + entry + text[node.start + 1 :]
        end = max(child.end for child in children)
        return f"{text[:end]}, {entry}{text[end:]}"
    end = _line_end(text, node.end)
    first = children[0]
    if node.kind == "list":
        indent = _column(text, text.rindex("-", 0, first.start))
    else:
        indent = _column(text, first.start)
        entry = f"{head}{' ' * _padding(text, node, head)}{value}"
    return f"{text[:end]}{_eol(text)}{' ' * indent}{entry}{text[end:]}"


def _padding(text: str, node: Node, head: str) -> int:
    """The spaces after `key:` that put a new value under its siblings', where these are aligned."""
    gaps = [
        (_column(text, value.start) - _column(text, key.start), value.start - key.end)
        for key, value in node.entries
        if not value.empty and "\n" not in text[key.start : value.start]
    ]
    offsets = {offset for offset, _ in gaps}
    if len(offsets) == 1 and any(gap > 2 for _, gap in gaps):
        return max(offsets.pop() - len(head), 1)
    return 1


def _regrown(text: str, node: Node, before: list[Json], after: list[Json]) -> str | None:
    """The text where a list only gained items at its end or lost some; None for any other change."""
    if not before:
        return None
    if after[: len(before)] == before:
        for item in after[len(before) :]:
            text, node = _again(_insert(text, node, "-", render(item)), node)
        return text
    kept = iter(enumerate(before))
    stay = {next((index for index, each in kept if each == item), -1) for item in after}
    if -1 in stay or len(stay) != len(after):
        return None
    for index in reversed(range(len(before))):
        if index not in stay:
            text, node = _again(_cut_item(text, node, index), node)
    return text


def _again(text: str, node: Node) -> tuple[str, Node]:
    """The changed text, and the node in it that begins where `node` did."""
    found = _found(text, node)
    if found is None:
        raise Uneditable("the way it is written leaves no place for this edit; edit it by hand")
    return text, found


def _found(text: str, node: Node) -> Node | None:
    document = parse(text)
    todo = [] if document.problems else [document.root]
    while todo:
        each = todo.pop()
        if each is not None:
            if each.kind == node.kind and each.start == node.start:
                return each
            todo += each.children()
    return None


# --- cutting -------------------------------------------------------------------------------------------


def _cut_entry(text: str, node: Node, index: int) -> str:
    ends = [(key.start, max(key.end, value.end)) for key, value in node.entries]
    return _cut(text, node, ends, index)


def _cut_item(text: str, node: Node, index: int) -> str:
    if node.flow:
        ends = [(item.start, item.end) for item in node.items]
    else:
        ends = [(text.rindex("-", 0, item.start + 1), item.end) for item in node.items]
    return _cut(text, node, ends, index)


def _cut(text: str, node: Node, ends: list[tuple[int, int]], index: int) -> str:
    start, end = ends[index]
    if node.flow:
        if index:
            return text[: ends[index - 1][1]] + text[end:]
        return text[:start] + text[ends[1][0] if len(ends) > 1 else end :]
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip():
        return text[:start] + text[ends[index + 1][0] if index + 1 < len(ends) else end :]
    after = text.find("\n", end) + 1
    if after:
        return text[:line] + text[after:]
    return text[:line].removesuffix("\n").removesuffix("\r")


# --- text ----------------------------------------------------------------------------------------------


def render(value: Json) -> str:
    """A JSON value as YAML on one line, quoted only where it would be read as something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {render(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render, value)) + "]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str, quote: str = "") -> str:
    if not quote and _is_plain(text):
        return text
    if (
        quote != '"'
        and "\n" not in text
        and "\r" not in text
        and "\t" not in text
        and not INVISIBLE.search(text)
    ):
        return "'" + text.replace("'", "''") + "'"
    quoted = json.dumps(text, ensure_ascii=False)
    return INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _is_plain(text: str) -> bool:
    if not text or text[0] not in _PLAIN_START or text[-1] == ":" or not _PLAIN.issuperset(text):
        return False
    return _is_text(text)


def _is_text(text: str) -> bool:
    """Whether an unquoted scalar is text for every reader, those of YAML 1.1 included."""
    try:
        return isinstance(resolve_plain(text), str) and text.lower() not in _OLD_WORDS
    except ValueError:
        return False


def _nest(keys: Sequence[str], value: Json) -> Json:
    for key in reversed(keys):
        value = {key: value}
    return value


def _index(node: Node, key: str) -> int | None:
    return next((index for index, (each, _) in enumerate(node.entries) if each.value == key), None)


def _eol(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    if end < 0:
        return len(text)
    return end - 1 if text[end - 1] == "\r" and end > position else end


def _column(text: str, index: int) -> int:
    return index - text.rfind("\n", 0, index) - 1
