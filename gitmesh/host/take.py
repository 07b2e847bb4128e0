"""What a node takes from the documents it fetched or kept: verified, opened, ready to fill (SECURITY §1.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitmesh.core.codec import Malformed, decode
from gitmesh.core.declaration import Declaration
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


@dataclass(frozen=True, slots=True)
class Taken:
    """A verified set of documents. `values` are what readers may have now, `applying` those and the ones that
    only a provisioner may. `refused` are documents beside the declaration that do not count, with why."""

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
) -> Taken:
    """Everything that `files` say and that counts. Raises `Refused` where the declaration does not count;
    a bad index, sealed value or answer is named and withholds only itself (G9)."""
    verified = verify(Bundle.from_files(files), trusted, counters, node, keys, now)
    declaration = read_declaration(verified.declaration)
    counters = verified.counters
    refused: list[tuple[str, str]] = []
    index = None
    if INDEX in files:
        try:
            index, counters = verify_index(files[INDEX], verified, counters)
        except Refused as wrong:
            refused.append(("vault", wrong.message))
    opened = {} if index is None else _open_all(files, verified, index, declaration, seal, refused)
    current = {
        each: value
        for each, value in opened.items()
        if index is not None and index.secrets[each].phase == Phase.CURRENT
    }
    answers: dict[str, Mapping[str, object]] = {}
    for source in sorted(verified.slice.answers_from):
        blob = files.get(answers_file(source))
        if blob is None:
            continue
        try:
            said, counters = verify_answers(blob, verified, source, counters)
        except Refused as wrong:
            refused.append((source, wrong.message))
            continue
        mine = {to: spec for to, spec in declaration.answers.items() if spec.node == source}
        taken, wrongs = take_answers(said, mine)
        answers |= taken
        refused += [(source, wrong.message) for wrong in wrongs]
    return Taken(verified, declaration, counters, Values(current, answers), opened, tuple(refused), files)


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


def _open_all(
    files: Mapping[str, bytes],
    verified: Verified,
    index: VaultIndex,
    declaration: Declaration,
    seal: SealingKey,
    refused: list[tuple[str, str]],
) -> dict[str, SecretValue]:
    vault = raw_sign(verified.trusted.root.roles.vault.sign)
    opened: dict[str, SecretValue] = {}
    for secret in sorted(declaration.secrets.keys() & index.secrets.keys()):
        try:
            header = expected_header(verified, index, secret)
            blob = files.get(sealed_name(secret, header.slot))
            if blob is not None:
                value = open_sealed(blob, header, seal, vault)
                opened[secret] = SecretValue(header.slot, header.version, value)
        except Refused as wrong:
            refused.append((secret, wrong.message))
    return opened
