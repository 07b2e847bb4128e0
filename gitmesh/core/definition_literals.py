"""Domain names and given names that a module writes out (A2), for `gitmesh catalogue lint`.

`literals(module, contracts)` says each at its place; those that the module lists under `exceptions`, by the
very name, stand apart, to be counted. What counts as a domain name: docs/decisions/0008.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from gitmesh.core.checking import Checking
from gitmesh.core.definition_reads import spots
from gitmesh.core.model import Contract, Json, Module
from gitmesh.core.refusal import At

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])"
_IN_URL = re.compile(rf"[a-z][a-z0-9+.-]*://(?:[^\s/@]*@)?({_DOMAIN})(?![\w.-])", re.ASCII | re.IGNORECASE)
_ALONE = re.compile(rf"(?:[a-z0-9._%+-]+@)?({_DOMAIN})(?::[0-9]+)?", re.ASCII | re.IGNORECASE)
_TOKENS = re.compile(r"[^\s,;=\"'()\[\]]+")

# fmt: off
ENDINGS = frozenset([
    "arpa", "biz", "ca", "ch", "cloud", "com", "de", "dev", "edu", "eu", "example", "fr", "gov",
    "home", "info", "internal", "invalid", "io", "lan", "local", "localdomain", "net",
    "network", "nl", "onion", "org", "se", "test", "uk", "us",
])
# fmt: on
"""The last labels that make a bare word a domain name; none of them ends a file's name in use."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A name that a module writes out, and the text that it stands in."""

    name: str
    at: At


@dataclass(frozen=True, slots=True)
class Literals:
    """What a module writes out: `refused`, and `excepted` because it is listed with a reason."""

    refused: tuple[Literal, ...]
    excepted: tuple[Literal, ...]


def literals(module: Module, contracts: Mapping[str, Contract], names: Collection[str] = ()) -> Literals:
    """The domain names in the module's texts, and the `names` (of nodes, of the mesh) that stand there as
    words. Not looked at: `image`, `about` and reasons, and the files beside the module."""
    found = tuple(
        Literal(name, at)
        for text, at in _texts(Checking(module, contracts, {}))
        for name in dict.fromkeys(_names(text, names))
    )
    return Literals(
        tuple(each for each in found if each.name not in module.exceptions),
        tuple(each for each in found if each.name in module.exceptions),
    )


def _texts(checking: Checking) -> Iterator[tuple[str, At]]:
    """The literal pieces of every text. A reference becomes `$`, which no domain name holds: a name that
    is partly an answer is not written out."""
    for spot in spots(checking):
        yield "".join(each if isinstance(each, str) else "$" for each in spot.text), spot.at
    for requirement in checking.module.requires.values():
        for text in _strings(requirement.default):
            yield text, requirement.at.child("default")


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _names(text: str, names: Collection[str]) -> Iterator[str]:
    for match in _IN_URL.finditer(text):
        yield match.group(1).lower()
    for token in _TOKENS.findall(text):
        if token in names:
            yield token
        alone = _ALONE.fullmatch(token)
        if alone is not None and alone.group(1).lower().rpartition(".")[2] in ENDINGS:
            yield alone.group(1).lower()
