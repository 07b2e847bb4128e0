"""What a node takes from the documents it fetched or kept: verified, opened and ready to fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from gitmesh.core.codec import Malformed, decode
from gitmesh.core.declaration import Declaration
from gitmesh.core.model import Json
from gitmesh.core.rotation import Phase
from gitmesh.host.fill import SecretValue, Values
from gitmesh.trust import canonical
from gitmesh.trust.canonical import NotCanonical
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import VaultIndex, sealed_name
from gitmesh.trust.keys import SealingKey, raw_sign
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import TrustedRoot
from gitmesh.trust.seal import open_sealed
from gitmesh.trust.verify import (
    Bundle,
    OwnKeys,
    Verified,
    expected_header,
    take_answers,
    verify,
    verify_answers,
    verify_index,
)

INDEX = "index.json"
_HEAD = ("approval.json", "deploy.json", "shard.json", "slice.json", "declaration.json")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Taken:
    """A verified set of documents. `values` are what readers may have now, `applying` those and the ones that
    only a provisioner may. `refused` are documents beside the declaration that do not count, with why;
    `files` are those that do."""

    verified: Verified
    declaration: Declaration
    counters: Counters
    values: Values
    applying: Mapping[str, SecretValue]
    refused: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)


def answers_file(node: str) -> str:
    """Where a node's answers stand among the documents of a reader."""
    return f"answers/{node}.json"


def take(
    files: Mapping[str, bytes],
    trusted: TrustedRoot,
    counters: Counters,
    keys: OwnKeys,
    node: str,
    seal: SealingKey,
    now: int,
    kept: Mapping[str, bytes] | None = None,
) -> Taken:
    """Everything that `files` say and that counts. Raises `Refused` where the declaration does not count.

    A bad index, sealed value or answer is named and withholds only itself (G9). In its place counts what
    was `kept` from the last pull, if that still does: nobody takes back what was given by breaking it.
    """
    verified = verify(Bundle.from_files(files), trusted, counters, node, keys, now)
    taking = _Taking(files, kept or {}, verified, read_declaration(verified.declaration))
    index = taking.index()
    opened = {} if index is None else taking.open_all(index, seal)
    current = {
        each: value
        for each, value in opened.items()
        if index is not None and index.secrets[each].phase == Phase.CURRENT
    }
    values = Values(current, taking.answers())
    refused = tuple(dict.fromkeys(taking.refused))
    return Taken(verified, taking.declaration, taking.counters, values, opened, refused, taking.used)


class _Taking:
    """The documents beside the declaration, one by one; `used` are those that count, to be kept."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        kept: Mapping[str, bytes],
        verified: Verified,
        declaration: Declaration,
    ) -> None:
        self.verified = verified
        self.declaration = declaration
        self.counters = verified.counters
        self.refused: list[tuple[str, str]] = []
        self.used = {path: files[path] for path in _HEAD}
        self._files = files
        self._kept = kept

    def _first(self, path: str, whose: str, read: Callable[[bytes], _Read]) -> _Read | None:
        """What `read` makes of the new document, or of the kept one where it refuses the new."""
        for held in (self._files, self._kept):
            try:
                if path not in held:
                    raise Refused(Why.MISSING, f"{path}: missing; fetched by half")
                found = read(held[path])
            except Refused as wrong:
                if held is self._files:
                    self.refused.append((whose, wrong.message))
            else:
                self.used[path] = held[path]
                return found
        return None

    def index(self) -> VaultIndex | None:
        """The vault's index for this node; None where it has written none yet."""
        if INDEX not in self._files and self.counters.vault.seq == 0:
            return None
        found = self._first(INDEX, "vault", lambda blob: verify_index(blob, self.verified, self.counters))
        if found is None:
            return None
        index, self.counters = found
        return index

    def open_all(self, index: VaultIndex, seal: SealingKey) -> dict[str, SecretValue]:
        """Every secret that the index and the declaration name, opened."""
        vault = raw_sign(self.verified.trusted.root.roles.vault.sign)
        opened: dict[str, SecretValue] = {}
        for secret in sorted(self.declaration.secrets.keys() & index.secrets.keys()):
            try:
                header = expected_header(self.verified, index, secret)
            except Refused as wrong:
                self.refused.append((secret, wrong.message))
                continue
            opens = partial(open_sealed, expected=header, key=seal, vault=vault)
            value = self._first(sealed_name(secret, header.slot), secret, opens)
            if value is not None:
                opened[secret] = SecretValue(header.slot, header.version, value)
        return opened

    def answers(self) -> dict[str, Mapping[str, Json]]:
        """What each provider that the slice names answered, by the consumer's requirement."""
        answers: dict[str, Mapping[str, Json]] = {}
        for source in sorted(self.verified.slice.answers_from):
            path = answers_file(source)
            if path not in self._files and source not in self.counters.answers:
                continue
            check = partial(verify_answers, verified=self.verified, from_node=source, counters=self.counters)
            found = self._first(path, source, check)
            if found is not None:
                said, self.counters = found
                mine = {to: spec for to, spec in self.declaration.answers.items() if spec.node == source}
                taken, wrongs = take_answers(said, mine)
                answers |= taken
                self.refused += [(source, wrong.message) for wrong in wrongs]
        return answers


def read_declaration(blob: bytes) -> Declaration:
    """The declaration that approved bytes say. Raises `Refused`: malformed, version."""
    try:
        value = canonical.decode(blob, 4 << 20)
        if not isinstance(value, dict) or value.pop("v", None) != 1:
            raise Refused(Why.VERSION, "the declaration: a format that this gitmesh does not read")
        return decode(Declaration, value, "declaration")
    except (NotCanonical, Malformed) as wrong:
        raise Refused(Why.MALFORMED, f"the declaration: {wrong}") from None


def without_vault(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The documents without what the vault wrote."""
    return {path: blob for path, blob in files.items() if path != INDEX and not path.startswith("sealed/")}


def only_vault(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """What the vault wrote among the documents."""
    return {path: blob for path, blob in files.items() if path == INDEX or path.startswith("sealed/")}
