"""The slow reader: a YAML document as nodes with their places, and everything that is wrong with it.

It reads ruamel's event stream, never its constructor: what is refused is refused before anything is
built of it (SECURITY §2b "YAML"). `repo.document` comes here only with what its fast reader doubts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLStreamError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from gitmesh.core.refusal import Span
from gitmesh.repo.strict import MAX_DEPTH, MAX_EVENTS, MAX_PROBLEMS

INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]|\r(?!\n)"
)
"""Control characters, line ends that only some readers take as such, and what reorders text on a screen."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a document may not hold; `start` and `end` are indexes into its text."""

    kind: str
    """`syntax`, `feature` or `size`"""
    text: str
    start: int
    end: int
    answer: str = ""


@dataclass(slots=True)
class Node:
    """A scalar, map or list. `start` and `end` are indexes into the text, the end excluded."""

    kind: str
    """`scalar`, `map` or `list`"""
    start: int
    end: int
    value: str = ""
    plain: bool = False
    style: str = ""
    """A scalar's quote or block indicator, if it has one."""
    flow: bool = False
    entries: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing at all is written where a value could stand."""
        return self.kind == "scalar" and self.plain and self.start == self.end

    def children(self) -> Iterator[Node]:
        """The nodes directly inside."""
        for key, value in self.entries:
            yield key
            yield value
        yield from self.items


@dataclass(slots=True)
class Document:
    """What a text holds: its root (None where it is empty or can't be read) and its problems."""

    root: Node | None = None
    problems: list[Problem] = field(default_factory=list)


def parse(text: str) -> Document:
    """The document in `text`, which has no byte order mark. Never raises for what the text says."""
    document = Document()
    readable = _blank_invisible(text, document)
    readable = _blank_directives(readable, document)
    builder = _Builder(document, readable)
    try:
        for count, event in enumerate(YAML(typ="safe", pure=True).parse(readable)):
            if count >= MAX_EVENTS:
                where = event.start_mark.index
                document.problems.append(
                    Problem("size", f"more than {MAX_EVENTS:,} keys and values", where, where)
                )
                break
            if not builder.take(event) or len(document.problems) >= MAX_PROBLEMS:
                break
    except MarkedYAMLError as error:
        document.problems.append(_syntax(error, readable))
    # ruamel's scanner lets plain Python errors out on some malformed escapes and indicators.
    except (YAMLError, YAMLStreamError, ValueError, OverflowError, LookupError, TypeError, AttributeError):
        end = builder.position
        document.problems.append(Problem("syntax", "this is no YAML from here on", end, end))
    document.root = builder.root
    return document


def _blank_invisible(text: str, document: Document) -> str:
    for match in INVISIBLE.finditer(text):
        if len(document.problems) == 20:
            break
        if match[0] == "\r":
            said, answer = "a carriage return that ends no line", "end lines with LF or CRLF"
        else:
            said = f"the character U+{ord(match[0]):04X}, which can't be seen"
            answer = f'remove it, or write "\\u{ord(match[0]):04x}" in double quotes'
        document.problems.append(Problem("syntax", said, match.start(), match.end(), answer))
    return INVISIBLE.sub("\ufffd", text)


def _blank_directives(text: str, document: Document) -> str:
    """`text` with its leading directives made comments, so that what follows is read by YAML 1.2."""
    position = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("%"):
            end = position + len(line.rstrip())
            document.problems.append(Problem("feature", "a YAML directive", position, end, "remove the line"))
            text = f"{text[:position]}#{text[position + 1 :]}"
        elif line.strip() and not line.startswith("#"):
            break
        position += len(line)
    return text


class _Builder:
    """Takes events in order and builds the nodes of the first document."""

    def __init__(self, document: Document, text: str) -> None:
        self.document = document
        self.text = text
        self.root: Node | None = None
        self.open: list[Node] = []
        self.keys: list[Node | None] = []
        self.documents = 0
        self.position = 0

    def take(self, event: Event) -> bool:
        """Take one event; False when nothing after it is worth reading."""
        match event:
            case DocumentStartEvent():
                return self._begin(event)
            case ScalarEvent():
                self._scalar(event)
            case AliasEvent():
                self._refuse(event, "an alias (`*`)", "write the value out")
                self._place(self._node("scalar", event))
            case MappingStartEvent() | SequenceStartEvent():
                return self._collection(event)
            case MappingEndEvent() | SequenceEndEvent():
                self._close(event)
            case DocumentEndEvent() if event.explicit:
                self.position = event.end_mark.index
        return True

    def _begin(self, event: Any) -> bool:
        self.documents += 1
        if self.documents > 1:
            self._refuse(event, "a second document", "remove it: a file holds one document")
        return self.documents == 1

    def _node(self, kind: str, event: Any) -> Node:
        self.position = max(self.position, event.end_mark.index)
        return Node(kind, event.start_mark.index, event.end_mark.index)

    def _scalar(self, event: Any) -> None:
        self._check_properties(event)
        node = self._node("scalar", event)
        node.value = event.value
        node.style = event.style or ""
        node.plain = not event.style and not event.tag
        if event.style in ("|", ">"):
            node.end = self._trim(node.end)
        self._place(node)

    def _collection(self, event: Any) -> bool:
        self._check_properties(event)
        node = self._node("map" if isinstance(event, MappingStartEvent) else "list", event)
        node.flow = bool(event.flow_style)
        if len(self.open) == MAX_DEPTH:
            self._refuse(event, f"nesting deeper than {MAX_DEPTH} levels", "flatten it")
            return False
        self._place(node)
        self.open.append(node)
        self.keys.append(None)
        return True

    def _close(self, event: Any) -> None:
        node = self.open.pop()
        self.keys.pop()
        if node.flow:
            node.end = event.end_mark.index
        else:
            node.end = max((child.end for child in node.children()), default=node.end)
        self.position = max(self.position, node.end)

    def _place(self, node: Node) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        if parent.kind == "list":
            parent.items.append(node)
        elif (key := self.keys[-1]) is None:
            self.keys[-1] = node
        else:
            parent.entries.append((key, node))
            self.keys[-1] = None
            if node.empty:  # ruamel says the next token's place
                colon = self.text.find(":", key.end)
                node.start = node.end = colon + 1 if 0 <= colon < node.start else key.end

    def _trim(self, end: int) -> int:
        """The end of a block scalar's last line: ruamel says where the next token begins."""
        return len(self.text[:end].rstrip(" \t\r\n"))

    def _check_properties(self, event: Any) -> None:
        if event.anchor is not None:
            self._refuse(event, "an anchor (`&`)", "write the value out where it is needed")
        if event.tag is not None:
            self._refuse(event, "a tag (`!`)", "remove it: a value's type is how it is written")

    def _refuse(self, event: Any, what: str, answer: str) -> None:
        start = event.start_mark.index
        end = max(start, min(event.end_mark.index, self._line_end(start)))
        self.document.problems.append(Problem("feature", what, start, end, answer))

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start)
        return len(self.text) if end < 0 else end


_SAYINGS = (
    ("mapping values are not allowed", "a `: ` where no key can stand", "quote the text that holds it"),
    (
        "could not find expected ':'",
        "a line that is neither `key: value` nor part of one",
        "write `key: value`",
    ),
    ("found character '\\t'", "a tab where only spaces may stand", "use spaces"),
    ("found duplicate", "a key twice", "keep one of them"),
    ("found unexpected end of stream", "quoted text that never ends", "close the quote"),
    ("expected ',' or ']'", "a list that is not closed", "close it with `]`, or put a comma"),
    ("expected ',' or '}'", "a map that is not closed", "close it with `}`, or put a comma"),
    ("expected <block end>", "a line whose indentation fits no line above", "align it with its siblings"),
    ("did not find expected <document start>", "text after the end of the document", "remove it"),
    (
        "found unknown escape",
        "an unknown escape in double quotes",
        "use single quotes, or double it",
    ),
    ("found undefined alias", "an alias (`*`)", "write the value out"),
    ("cannot start any token", "a character that can't begin a value", "quote the value"),
    ("expected the node content", "nothing where a value is expected", "write a value"),
)


def _syntax(error: MarkedYAMLError, text: str) -> Problem:
    """What is wrong in our words: ruamel's may quote the file."""
    mark = error.problem_mark or error.context_mark
    where = min(mark.index, len(text)) if mark else 0
    problem = str(error.problem or error.context or "")
    for part, said, answer in _SAYINGS:
        if part in problem:
            return Problem("syntax", said, where, where + 1, answer)
    return Problem("syntax", "this is no YAML", where, where + 1, "see the line above it too")


def span(text: str, start: int, end: int) -> Span:
    """The lines and columns of a stretch of `text`."""
    line, column = place(text, start)
    end_line, end_column = place(text, max(start, end))
    return Span(line, column, end_line, end_column)


def place(text: str, index: int) -> tuple[int, int]:
    """The line and column of an index, from 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
