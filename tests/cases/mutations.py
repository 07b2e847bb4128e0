"""One small mistake at a time in a YAML file: what a hurried person writes."""

from __future__ import annotations

from collections.abc import Iterator

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


def mistakes(text: str) -> Iterator[tuple[str, str]]:
    """Each mistake in words, and the text with it: a line gone, a key or word misspelt, another type."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        yield f"without line {number + 1}: {line.strip()}", "".join(lines[:number] + lines[number + 1 :])
    root = YAML(typ="safe", pure=True).compose(text)
    for node, is_key in _scalars(root, False) if root is not None else ():
        start, end = node.start_mark.index, node.end_mark.index
        said, where = text[start:end], f"line {node.start_mark.line + 1}"
        slip = _misspelt(said)
        if slip is not None:
            yield f"{where}: `{slip}` for `{said}`", text[:start] + slip + text[end:]
        if not is_key and node.style not in ("|", ">"):
            yield f"{where}: a list for `{said}`", f"{text[:start]}[[]]{text[end:]}"


def _scalars(node: Node, is_key: bool) -> Iterator[tuple[ScalarNode, bool]]:
    if isinstance(node, ScalarNode):
        yield node, is_key
    elif isinstance(node, SequenceNode):
        for each in node.value:
            yield from _scalars(each, False)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            yield from _scalars(key, True)
            yield from _scalars(value, False)


def _misspelt(said: str) -> str | None:
    """The scalar's text with its last letter changed; None where it has no letter."""
    at = max((index for index, letter in enumerate(said) if letter.isalpha()), default=None)
    return None if at is None else f"{said[:at]}{'y' if said[at] == 'x' else 'x'}{said[at + 1 :]}"
