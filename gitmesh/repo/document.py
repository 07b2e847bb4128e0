"""Strict YAML: bytes to JSON values, and a value's place back to line and column (DESIGN §9).

Two readers. ryaml reads what is plainly fine, in a hundredth of the time; whatever could mean two things
goes to `repo.nodes`, which decides and says where. The fast one is only asked about text that cheap
checks found harmless, and the slow one's value counts only where ryaml reads the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import ryaml

from gitmesh.core.model import Json
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related, Span
from gitmesh.repo.doubt import harmless
from gitmesh.repo.foreign import foreign
from gitmesh.repo.schema import check
from gitmesh.repo.strict import (
    INTEGER,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_EVENTS,
    MAX_INTEGER,
    MAX_PROBLEMS,
    WORDS,
    ambiguous,
    same,
    show,
)

__all__ = ["check", "locate", "read"]

if TYPE_CHECKING:
    from gitmesh.repo.nodes import Document, Node

_load = ryaml.loads  # type: ignore[attr-defined]  # ryaml's own stubs do not re-export it


class _Doubt(Exception):
    """The fast reader's value holds something that only the slow reader can judge."""


class _TooMuch(Exception):
    """The fast reader's value has more nodes than a file may have."""


def read(file: str, blob: bytes) -> tuple[Json, list[Refusal]]:
    """The JSON value of a YAML file, and what it is refused for; None where it is refused.

    An empty file is None too. Every problem that one reading can find is reported (S24, S25, S26).
    """
    if len(blob) > MAX_BYTES:
        return None, [_too_large(file, f"{len(blob):,} bytes; a file may have {MAX_BYTES:,}")]
    if (left_by_git := foreign(file, blob)) is not None:
        return None, [left_by_git]
    try:
        text = blob.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return None, [_not_utf8(file, blob, error.start)]
    if harmless(text):
        try:
            value = _load(text)
            _check_plain(value)
        except _TooMuch:
            return None, [_too_large(file, f"more than {MAX_EVENTS:,} keys and values")]
        except (ValueError, _Doubt):
            pass
        else:
            return value, []
    return _read_slowly(file, text)


def _check_plain(value: Json) -> None:
    """Raise `_Doubt` where a value read fast is not JSON as we allow it, `_TooMuch` for too much of it."""
    if value is not None and type(value) is not dict and type(value) is not list:
        raise _Doubt
    events = 4
    level: list[Json] = [value]
    depth = 0
    while level:
        below: list[Json] = []
        for each in level:
            kind = type(each)
            events += 2 if kind is dict or kind is list else 1
            if kind is dict:
                _check_keys(each)
                events += len(each)
                below += each.values()
            elif kind is list:
                below += each
            elif kind is float or (kind is int and not -MAX_INTEGER <= each <= MAX_INTEGER):
                raise _Doubt
        level = below
        depth += 1
        if events > MAX_EVENTS:
            raise _TooMuch
        if depth > MAX_DEPTH:
            raise _Doubt


def _check_keys(mapping: dict[Json, Json]) -> None:
    for key in mapping:
        if type(key) is not str or key == "<<" or not _composed(key):
            raise _Doubt


def _composed(text: str) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFC", text)


# --- the slow way --------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _document(text: str) -> Document:
    from gitmesh.repo.lapses import lapses
    from gitmesh.repo.nodes import parse

    document = parse(text)
    if document.root is not None and not document.problems:
        document.problems += lapses(text, document.root)
    return document


def _read_slowly(file: str, text: str) -> tuple[Json, list[Refusal]]:
    document = _document(text)
    reading = _Reading(file, text)
    refusals = reading.refusals
    for problem in document.problems:
        reading.problem(problem.kind, problem.text, problem.start, problem.end, problem.answer)
    value = None if document.root is None else reading.value(document.root, ())
    if not refusals:
        refusals += _second_opinion(file, text, value)
    return (None, refusals) if refusals else (value, [])


def _second_opinion(file: str, text: str, value: Json) -> Iterator[Refusal]:
    """A refusal where ryaml can't read what ruamel could, or reads something else (ruamel is too lenient:
    of the YAML test suite's 94 invalid cases it takes 14)."""
    try:
        other = _load(text)
    except ValueError as error:
        where = re.search(r"at line ([0-9]+) column ([0-9]+)", str(error))
        line, column = (int(where[1]), int(where[2])) if where else (1, 1)
        yield Refusal(
            Code.YAML_SYNTAX,
            file,
            "this is no YAML 1.2",
            At(file, span=Span(line, column, line, column + 1)),
            answers=(Answer("write it in a simpler way: indent with spaces, quote text"),),
        )
        return
    if not same(other, value):
        yield Refusal(
            Code.YAML_SYNTAX,
            file,
            "two YAML readers read different values from this file",
            At(file, span=Span(1, 1, 1, 1)),
            answers=(Answer("write it in a simpler way: quote text, and keep it on one line"),),
        )


class _Reading:
    """Makes the JSON value of nodes, collecting refusals. Depth is bounded by the nodes' maker."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.refusals: list[Refusal] = []

    def value(self, node: Node, keys: tuple[str | int, ...]) -> Json:
        """The value of a node at `keys`."""
        if node.kind == "map":
            return self._mapping(node, keys)
        if node.kind == "list":
            return [self.value(each, (*keys, index)) for index, each in enumerate(node.items)]
        return self._scalar(node, keys, is_key=False)

    def _mapping(self, node: Node, keys: tuple[str | int, ...]) -> dict[str, Json]:
        result: dict[str, Json] = {}
        seen: dict[str, Node] = {}
        for key_node, value_node in node.entries:
            key = self._key(key_node, keys)
            if key is None:
                self.value(value_node, keys)
                continue
            composed = unicodedata.normalize("NFC", key)
            if composed in seen:
                self._duplicate(key, seen[composed], key_node, keys)
            elif composed != key:
                self.refuse(
                    Code.YAML_SCALAR,
                    f"`{show((*keys, key))}`: the key is not in Unicode's normal form C",
                    key_node,
                    (*keys, key),
                    "write its accented characters as single characters",
                )
            seen.setdefault(composed, key_node)
            result[key] = self.value(value_node, (*keys, key))
        return result

    def _key(self, node: Node, keys: tuple[str | int, ...]) -> str | None:
        where = f"in `{show(keys)}`" if keys else "at the top level"
        if node.kind != "scalar":
            self.refuse(Code.YAML_FEATURE, f"a {node.kind} as a key {where}", node, keys, "use text as a key")
            return None
        if node.plain and node.value == "<<":
            said = f"a merge key (`<<`) {where}"
            self.refuse(Code.YAML_FEATURE, said, node, keys, "write the merged keys out")
            return None
        value = self._scalar(node, keys, is_key=True)
        if isinstance(value, str):
            return value
        if value is not _REFUSED:
            self._unquoted(node, keys, f"a key that is no text {where}", is_key=True)
        return None

    def _duplicate(self, key: str, first: Node, second: Node, keys: tuple[str | int, ...]) -> None:
        if len(self.refusals) >= MAX_PROBLEMS:
            return
        here, there = self._span(second), self._span(first)
        self.refusals.append(
            Refusal(
                Code.YAML_DUPLICATE_KEY,
                self.file,
                f"`{show((*keys, key))}` stands on line {there.line} and again on line {here.line}",
                At(self.file, (*keys, key), span=here),
                label="again here",
                related=(Related(At(self.file, (*keys, key), span=there), "first here"),),
                answers=(Answer("keep one of the two"),),
            )
        )

    def _scalar(self, node: Node, keys: tuple[str | int, ...], *, is_key: bool) -> Json:
        text = node.value
        if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
            said = f"`{show(keys)}`: an escaped NUL or half of a character"
            self.refuse(Code.YAML_SCALAR, said, node, keys, "remove it", value=not is_key)
            return _REFUSED
        if not node.plain:
            return text
        if text in WORDS:
            return WORDS[text]
        if INTEGER.fullmatch(text):
            if len(text) <= 17 and abs(int(text)) <= MAX_INTEGER:
                return int(text)
            self._unquoted(node, keys, f"`{show(keys)}`: a number beyond 2^53", is_key=is_key)
            return _REFUSED
        looks_like = ambiguous(text)
        if looks_like:
            self._unquoted(node, keys, f"`{show(keys)}`: {looks_like}, unquoted", is_key=is_key)
            return _REFUSED
        return text

    def _unquoted(self, node: Node, keys: tuple[str | int, ...], said: str, *, is_key: bool) -> None:
        short = len(node.value) <= 40 and node.kind == "scalar"
        answer = f"if it is text, quote it: '{node.value}'" if short else "if it is text, quote it"
        self.refuse(Code.YAML_SCALAR, said, node, keys, answer, value=not is_key)

    def problem(self, kind: str, text: str, start: int, end: int, answer: str) -> None:
        """A problem of the document itself, as a refusal."""
        from gitmesh.repo import nodes

        code = {"syntax": Code.YAML_SYNTAX, "feature": Code.YAML_FEATURE, "size": Code.FILE_TOO_LARGE}[kind]
        at = At(self.file, span=nodes.span(self.text, start, end))
        answers = (Answer(answer),) if answer else ()
        self.refusals.append(Refusal(code, self.file, text, at, answers=answers))

    def refuse(
        self,
        code: Code,
        said: str,
        node: Node,
        keys: tuple[str | int, ...],
        answer: str,
        value: bool = False,
    ) -> None:
        """Add a refusal at a node, unless there are more than anyone reads."""
        if len(self.refusals) >= MAX_PROBLEMS:
            return
        at = At(self.file, keys, value, self._span(node))
        self.refusals.append(Refusal(code, self.file, said, at, answers=(Answer(answer),)))

    def _span(self, node: Node) -> Span:
        from gitmesh.repo import nodes

        return nodes.span(self.text, node.start, node.end)


_REFUSED = object()
"""Stands for a scalar that was refused, so that no second refusal is made of it."""


def _too_large(file: str, said: str) -> Refusal:
    at = At(file, span=Span(1, 1, 1, 1))
    return Refusal(Code.FILE_TOO_LARGE, file, said, at, answers=(Answer("split it, or keep it elsewhere"),))


def _not_utf8(file: str, blob: bytes, position: int) -> Refusal:
    line = blob.count(b"\n", 0, position) + 1
    start = blob.rfind(b"\n", 0, position) + 1
    column = len(blob[start:position].decode("utf-8", "replace")) + 1
    return Refusal(
        Code.YAML_SYNTAX,
        file,
        "a byte that is not UTF-8",
        At(file, span=Span(line, column, line, column + 1)),
        answers=(Answer("save the file as UTF-8"),),
    )


# --- places --------------------------------------------------------------------------------------------


def locate(blob: bytes, at: At) -> Span:
    """The lines and columns of a place: `at.span` if it has one, else of its key (or value).

    Where the keys lead nowhere, the nearest parent that exists; 1:1 for an empty or unreadable file.
    """
    if at.span is not None:
        return at.span
    from gitmesh.repo import nodes

    text = blob[:MAX_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
    node = _document(text).root
    if node is None:
        return Span(1, 1, 1, 1)
    key_node: Node | None = None
    for index, key in enumerate(at.keys):
        found = _child(node, key)
        if found is None:
            at = At(at.file, at.keys[:index])
            break
        key_node, node = found
    if key_node is None and not at.keys:
        return nodes.span(text, node.start, min(node.start + 1, node.end))
    chosen = node if key_node is None or (at.value and not node.empty) else key_node
    return nodes.span(text, chosen.start, chosen.end)


def _child(node: Node, key: str | int) -> tuple[Node | None, Node] | None:
    """The key node (None in a list) and value node below `node`."""
    if node.kind == "list":
        if isinstance(key, int) and 0 <= key < len(node.items):
            return None, node.items[key]
        return None
    for key_node, value in node.entries:
        if key_node.kind == "scalar" and key_node.value == key:
            return key_node, value
    return None
