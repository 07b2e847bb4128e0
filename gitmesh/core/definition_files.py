"""A container's files: where they lie, and whether their format can say what stands in them (S21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitmesh.core.checking import Checking, may_say
from gitmesh.core.definition_variables import Part, parts, shown
from gitmesh.core.file_formats import Unwritable, render
from gitmesh.core.model import Container, Content, Json, Kind, Tree
from gitmesh.core.reference import Ref, Text
from gitmesh.core.refusal import At, Code, Related

_STRUCTURED = ("ini", "env", "properties", "yaml", "json", "toml")
_STANDS_IN: Mapping[str, Json] = {"integer": 1, "boolean": True, "array": ["x"], "object": {}}
"""What stands for an answer of that type, which is not known yet."""


def check_files(checking: Checking, container: Container, name: str) -> None:
    """Refuse a file inside a mount, one whose format can't say its content, and a bad `each`."""
    _check_once(checking, container, name)
    mounts = [path for part in parts(container) for path in part.of.mounts]
    for part in parts(container):
        for path, content in part.of.files.items():
            _check_place(checking, name, path, content, mounts)
            _check_format(checking, name, content)
            _check_each(checking, name, path, content)


def _check_once(checking: Checking, container: Container, name: str) -> None:
    """Two `when` that may hold together don't say one path; one may say anew what the container says."""
    first: dict[tuple[str, str], tuple[Part, At]] = {}
    for part in parts(container):
        for key, path, at in _said(part):
            other, there = first.setdefault((key, path), (part, at))
            if other is not part and other.used is not None:
                checking.refuse(
                    Code.SCHEMA,
                    name,
                    f"`{path}` is said under two `when`, which may both hold",
                    at,
                    "leave one of the two, or give it another path",
                    related=(Related(there, "the other one"),),
                )


def _said(part: Part) -> Iterator[tuple[str, str, At]]:
    """What a part mounts and writes: the key, the path, and where it is said."""
    for path in part.of.mounts:
        yield "mounts", path, part.place("mounts", path)
    for text, content in part.of.files.items():
        yield "files", shown(text), content.at


def fixed(path: Text) -> str:
    """A file's path; of one with `each`, its folder."""
    if all(isinstance(each, str) for each in path):
        return shown(path)
    return str(path[0]).rpartition("/")[0] if path and isinstance(path[0], str) else "/"


def below(path: str, side: str) -> bool:
    """Whether `path` is `side`, or lies below it."""
    side = side.rstrip("/")
    return path == side or path.startswith(f"{side}/")


def sides(part: Part) -> Iterator[str]:
    """Where a part of a container has something of its own: its mounts and its files."""
    yield from part.of.mounts
    yield from map(fixed, part.of.files)


def _check_place(checking: Checking, name: str, path: Text, content: Content, mounts: list[str]) -> None:
    inside = next((each for each in mounts if below(fixed(path), each)), None)
    if inside is not None:
        checking.refuse(
            Code.SCHEMA,
            name,
            "a file lies inside a mount, where the host keeps its own",
            content.at,
            f"give it a path that is not below `{inside}`",
        )


# --- its format ----------------------------------------------------------------------------------------


def _check_format(checking: Checking, name: str, content: Content) -> None:
    """What is known of the content can be written in its format; what is answered is checked when filled."""
    if content.format not in _STRUCTURED:
        return
    tree = _filled(checking, content.tree)
    said = _unwritable(content.format, tree)
    if said is not None:
        keys = _place_of_fault(content.format, tree)
        checking.refuse(
            Code.SCHEMA,
            name,
            said,
            content.at.child(content.format, *keys),
            "write another value there, or the file in another format, such as `text`",
        )


def _unwritable(format_: str, tree: Json) -> str | None:
    try:
        render(format_, tree)
    except Unwritable as fault:
        return str(fault)
    return None


def _place_of_fault(format_: str, tree: Json) -> tuple[str, ...]:
    """The keys down to what can't be written even alone."""
    keys: tuple[str, ...] = ()
    while isinstance(tree, Mapping) and (not keys or _unwritable(format_, _nested(keys, {})) is None):
        for key, each in tree.items():
            if _unwritable(format_, _nested((*keys, key), each)) is not None:
                keys, tree = (*keys, key), each
                break
        else:
            break
    return keys


def _nested(keys: tuple[str, ...], value: Json) -> Json:
    for key in reversed(keys):
        value = {key: value}
    return value


def _filled(checking: Checking, tree: Tree) -> Json:
    """The tree with something of its type in the place of each answer."""
    if isinstance(tree, tuple):
        lone = tree[0] if len(tree) == 1 else None
        return _stands_in(checking, lone) if isinstance(lone, Ref) else shown(tree)
    if isinstance(tree, Mapping):
        return {key: _filled(checking, each) for key, each in tree.items()}
    if isinstance(tree, list):
        return [_filled(checking, each) for each in tree]
    return tree


def _stands_in(checking: Checking, ref: Ref) -> Json:
    requirement = checking.module.requires.get(ref.requirement)
    contract = None if requirement is None else checking.contract(requirement)
    if requirement is None or contract is None:
        return "x"
    if ref.field in contract.fields:
        schema = contract.fields[ref.field].schema
    elif ref.field in contract.asks and requirement.kind is Kind.MODULE:
        schema = contract.asks[ref.field].schema
    else:
        return "x"
    type_ = schema.get("type")
    return _STANDS_IN.get(type_, "x") if isinstance(type_, str) else "x"


# --- one for each consumer -----------------------------------------------------------------------------


def _check_each(checking: Checking, name: str, path: Text, content: Content) -> None:
    """A file with `each` is one for each consumer of a provision, told apart by its name in one folder."""
    if content.each is None:
        return
    if content.each not in checking.module.provides:
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            name,
            f"`each` names `{content.each}`, which the module does not provide",
            content.at.child("each").of_value(),
            may_say(content.each, checking.module.provides, "provision"),
        )
    elif not any(isinstance(each, Ref) and each.requirement == "consumer" for each in path):
        checking.refuse(
            Code.SERVES_PLACEHOLDER,
            name,
            "one file for each consumer, and all at one path",
            content.at,
            "let the path say `${consumer:as}` or `${consumer:as:dns}`",
        )
    elif "/" in shown(path).removeprefix(fixed(path)).removeprefix("/"):
        checking.refuse(
            Code.SERVES_PLACEHOLDER,
            name,
            "the folder of the files for consumers is mounted whole, and here each has one of its own",
            content.at,
            "let only the last part of the path say `${consumer:as}`",
        )
