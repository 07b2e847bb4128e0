"""The vault at work, inside the pull of its node: it makes what approvals ask for, and seals it (DESIGN §5).

It takes orders from approved slices alone: whose keys, which secrets, how they are made, who receives them.
Everything is kept before it is published, and published again byte for byte until it has to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitmesh import fsops
from gitmesh.core.codec import Malformed, decode
from gitmesh.core.contract import check_value
from gitmesh.core.declaration import Declaration
from gitmesh.core.model import Json
from gitmesh.core.rotation import Phase, phase
from gitmesh.repo.objects import Malformed as NoFiles
from gitmesh.repo.objects import read_files, write_commit
from gitmesh.repo.transport import Access, Update, fetch, push, remote_refs
from gitmesh.trust import canonical, shape
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import (
    IndexSecret,
    Root,
    SealedHeader,
    SecretKind,
    SecretRole,
    Slice,
    SliceSecret,
    State,
    VaultIndex,
    read_signed,
    sealed_name,
    shard_of,
    signed,
)
from gitmesh.trust.envelope import Kind, open_envelope
from gitmesh.trust.keys import SealingKey, SigningKey, raw_seal, read_key
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import TrustedRoot
from gitmesh.trust.seal import open_confirms, seal
from gitmesh.trust.verify import Bundle, Head, open_slice, verify_head
from gitmesh.vault.hash import make_hash
from gitmesh.vault.make import CannotMake, make
from gitmesh.vault.store import Hashed, Kept, Slot, Store

KEYS = "etc/gitmesh/vault"
INDEX = "index.json"
_SLOT: Slot = "a"
_WHOLE = "refs/gitmesh/whole"
"""The deploy branch's commit, under the name that no mesh.yaml changes."""
_LIMIT = 1 << 28
"""The longest file beside them, in bytes: the record of a large mesh."""


def is_vault(root: Root, node: str) -> bool:
    """Whether `node` is the one that the root says the vault runs on."""
    return root.roles.vault.node == node


@dataclass
class Ran:
    """What the vault did: the files of each node's `sealed` ref, in words what is new, what it can't do."""

    sealed: dict[str, dict[str, bytes]] = field(default_factory=dict)
    did: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Vault:
    """The vault's keys and its place. `home` is where it keeps its store, on its own node."""

    sign: SigningKey
    seal: SealingKey
    age_file: Path
    root_folder: Path

    @classmethod
    def of(cls, root_folder: Path, root: Root) -> Vault:
        """The vault whose keys genesis left below `root_folder`. Raises `KeyRefused`, and `Refused` where
        they are not the root's."""
        keys = root_folder / KEYS
        vault = cls(
            read_key(keys / "sign", SigningKey),
            read_key(keys / "seal", SealingKey),
            keys / "age",
            root_folder,
        )
        role = root.roles.vault
        if (vault.sign.public_text, vault.seal.public_text) != (role.sign, role.seal):
            raise Refused(Why.NOT_MY_KEY, "the vault's keys on this node are not the root's")
        return vault

    def run(
        self,
        cache: Path,
        origin: str,
        mailbox: str,
        files: Mapping[str, bytes],
        trusted: TrustedRoot,
        counters: Counters,
        now: int,
        access: Access | None = None,
    ) -> Ran:
        """Make, seal and publish what the approval in `files` asks for.

        Raises `Refused` where the deploy that stands is not that approval's, `RepoError`, and the store's
        errors.
        """
        head = verify_head(Bundle.from_files(files), trusted, counters, now)
        slices = _slices(cache, origin, head, access)
        mine = slices.get(trusted.root.roles.vault.node)
        if mine is None:
            return Ran(remarks=["the vault's own node is not in the approval"])
        location = _location(self.root_folder, files)
        if location is None:
            return Ran(remarks=["the approval gives the vault no store on this node"])
        recipients = (trusted.root.roles.vault.age, *trusted.root.recovery.age)
        store = Store(location, self.age_file, recipients)
        confirmed = self._confirmed(cache, mailbox, head, slices, access)
        work = _Work(self, store, head, slices, mine, confirmed, now)
        work.make_all()
        work.seal_all(location)
        self._publish(cache, mailbox, work.ran, now, access)
        return work.ran

    def _confirmed(
        self,
        cache: Path,
        mailbox: str,
        head: Head,
        slices: Mapping[str, Slice],
        access: Access | None,
    ) -> dict[tuple[str, str], int]:
        """The version that each node confirmed to have set, by (secret, node)."""
        names = sorted(f"refs/gitmesh/confirms/{node}" for node in slices)
        found: dict[tuple[str, str], int] = {}
        for ref, commit in fetch(cache, mailbox, names, access=access).items():
            node = ref.rpartition("/")[2]
            if slices[node].state is State.REVOKED:
                continue
            try:
                blob = read_files(cache, commit).get("confirms.json", b"")
                opened = open_confirms(blob, slices[node], head.trusted.root.mesh, self.seal)
            except (Refused, NoFiles):
                continue
            for secret, confirm in opened.confirms.items():
                if confirm.applied:
                    found[secret, node] = confirm.version
        return found

    def _publish(self, cache: Path, mailbox: str, ran: Ran, now: int, access: Access | None) -> None:
        """Push each node's ref whose content is not there yet; a killed run is finished by the next."""
        refs = {f"refs/gitmesh/sealed/{node}": held for node, held in ran.sealed.items() if held}
        there = remote_refs(mailbox, sorted(refs), access=access)
        known = fetch(cache, mailbox, sorted(ref for ref in refs if ref in there), access=access)
        updates = []
        for ref, held in sorted(refs.items()):
            if ref not in known or read_files(cache, known[ref]) != held:
                commit = write_commit(cache, held, (), "sealed", now, "vault")
                updates.append(Update(ref, commit, None, force=True))
        if updates:
            push(cache, mailbox, updates, access=access)


def _slices(cache: Path, origin: str, head: Head, access: Access | None) -> dict[str, Slice]:
    """Every node's approved slice, from the last deploy; each is held against the approval's digests."""
    commit = fetch(cache, origin, [_WHOLE], access=access).get(_WHOLE)
    if commit is None:
        raise Refused(Why.MISSING, f"{_WHOLE} is not on origin")
    files = read_files(cache, commit, _LIMIT)
    count = len(head.approval.shards)
    shards = {name: files.get(f"shards/{name}.json") for name in head.approval.shards}
    found = {}
    for path, blob in files.items():
        match path.split("/"):
            case ["nodes", node, "slice.json"]:
                found[node] = open_slice(head.approval, node, shards.get(shard_of(node, count)), blob)
            case _:
                pass
    return found


def _location(root_folder: Path, files: Mapping[str, bytes]) -> Path | None:
    """Where this node's approved declaration places the vault's store."""
    try:
        value = canonical.decode(files.get("declaration.json", b""), 4 << 20)
        value.pop("v")
        declaration = decode(Declaration, value)
    except (canonical.NotCanonical, Malformed, AttributeError, KeyError):
        return None
    for spec in declaration.assignments.values():
        for provision in spec.provides.values():
            if provision.adapter == "vault" and provision.location is not None:
                return root_folder / provision.location.lstrip("/")
    return None


_Make = Callable[[str, SliceSecret, dict[str, dict[Slot, Kept]]], None]
"""Makes a secret that is missing among the entries of its node, or says why it can't."""


class _Work:
    """One run over all secrets of the approval."""

    def __init__(
        self,
        vault: Vault,
        store: Store,
        head: Head,
        slices: Mapping[str, Slice],
        mine: Slice,
        confirmed: Mapping[tuple[str, str], int],
        now: int,
    ) -> None:
        self.ran = Ran()
        self._vault = vault
        self._store = store
        self._head = head
        self._slices = slices
        self._secrets = mine.secrets
        self._confirmed = confirmed
        self._now = now
        self._kept: dict[str, Kept] = {}
        self._phases: dict[str, Phase] = {}

    def make_all(self) -> None:
        """Make what is missing, and keep it, before anything of it is sealed (S45)."""
        before = self._store.read_state()
        hashes = {each for each, said in self._secrets.items() if said.kind is SecretKind.HASHED}
        self._keep(self._secrets.keys() - hashes, self._make)
        # After the values: a hash must not outlive a value that a killed run had not kept.
        self._keep(hashes, self._hash)
        for secret, kept in self._kept.items():
            self._phases[secret] = self._phase(secret, kept, before)
        state = {
            secret: {"version": kept.version, "phase": self._phases[secret].value}
            for secret, kept in self._kept.items()
        }
        # What left the mesh keeps its number: versions never go back for an id.
        self._store.write_state({**before, **state})

    def _keep(self, secrets: Iterable[str], make_one: _Make) -> None:
        """Bring the store's entries of these secrets up to date, a node's file at a time."""
        by_node: dict[str, list[str]] = {}
        for secret in sorted(secrets):
            by_node.setdefault(self._secrets[secret].assignment.partition("@")[2], []).append(secret)
        for node, mine in sorted(by_node.items()):
            entries = self._store.read(node)
            for secret in mine:
                make_one(secret, self._secrets[secret], entries)
            if self._store.write(node, entries):
                self.ran.did.append(f"the vault kept secrets of {node}")
            self._kept |= {secret: entries[secret][_SLOT] for secret in mine if secret in entries}

    def _make(self, secret: str, approved: SliceSecret, entries: dict[str, dict[Slot, Kept]]) -> None:
        if approved.kind is not SecretKind.MADE:
            self.ran.remarks.append(f"{secret}: {approved.kind} secrets are not delivered by this version")
            return
        if secret in entries:
            kept = entries[secret][_SLOT]
            if check_value(approved.schema, kept.value.text()) is not None:
                self.ran.remarks.append(f"{secret}: its value no longer fits its contract, and is kept")
            if approved.generation > kept.generation:
                self.ran.remarks.append(f"{secret}: rotation is not in this version, and its value is kept")
            return
        try:
            value = make(approved.form, approved.length, approved.schema)
        except CannotMake as wrong:
            self.ran.remarks.append(f"{secret}: {wrong}")
            return
        made = Kept(value, 1, approved.generation, approved.contract_sha256, self._now)
        entries[secret] = {_SLOT: made}
        self.ran.did.append(f"the vault made {secret}")

    def _hash(self, secret: str, approved: SliceSecret, entries: dict[str, dict[Slot, Kept]]) -> None:
        """The hash of the current value, made anew with its version, since its salt is another each time."""
        value = self._kept.get(approved.of or "")
        last = entries.get(secret, {}).get(_SLOT)
        if approved.of is None or value is None:
            return  # why there is no value was said of that
        hashed = Hashed(approved.of, value.version, approved.form)
        if last is not None and last.hashed == hashed:
            return
        try:
            text = make_hash(approved.form, value.value)
        except CannotMake as wrong:
            self.ran.remarks.append(f"{secret}: {wrong}")
            return
        version = 1 if last is None else last.version + 1
        made = Kept(text, version, value.generation, approved.contract_sha256, self._now, hashed)
        entries[secret] = {_SLOT: made}
        self.ran.did.append(f"the vault made {secret}")

    def _phase(self, secret: str, kept: Kept, before: Mapping[str, Json]) -> Phase:
        approved = self._secrets[secret]
        appliers = [each.node for each in approved.recipients or () if each.role is SecretRole.APPLY]
        done = all(self._confirmed.get((secret, node), 0) >= kept.version for node in appliers)
        known = before.get(secret, {})
        old = Phase(known["phase"]) if known.get("version") == kept.version else None
        return phase(bool(appliers), bool(appliers) and done, old)

    def seal_all(self, location: Path) -> None:
        """The files of every node's `sealed` ref; bytes that still hold are taken from the last run."""
        for node, of in sorted(self._slices.items()):
            if of.state is State.REVOKED:
                continue
            folder = location / "sealed" / node
            last = _read_folder(folder)
            held = self._seal_node(node, of, last, _sealed_to(location, node) == of.seal)
            if held != last:
                self.ran.did.append(f"the vault sealed for {node}")
            for name, blob in held.items():
                if last.get(name) != blob:
                    fsops.make_directory(location / "sealed", 0o700)
                    fsops.make_directory(folder, 0o700)
                    fsops.make_directory(folder / "sealed", 0o700)
                    fsops.write(folder / name, blob, 0o600)
            for name in last.keys() - held.keys():
                fsops.remove(folder / name)
            if held and _sealed_to(location, node) != of.seal:
                # After the values: where this is missing, they are sealed anew.
                fsops.write(_key_file(location, node), of.seal.encode(), 0o600)
            self.ran.sealed[node] = held

    def _seal_node(self, node: str, of: Slice, last: Mapping[str, bytes], same_key: bool) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        index: dict[str, IndexSecret] = {}
        for secret, kept in sorted(self._kept.items()):
            roles = [each.role for each in self._secrets[secret].recipients or () if each.node == node]
            stands = self._phases[secret]
            if not roles or (stands is Phase.ENSURE and SecretRole.APPLY not in roles):
                continue
            name = sealed_name(secret, _SLOT)
            files[name] = self._sealed(secret, kept, of, last.get(name) if same_key else None)
            index[secret] = IndexSecret(_SLOT, kept.version, stands.value)
        if files or INDEX in last:
            files[INDEX] = self._index(node, index, last.get(INDEX))
        return files

    def _sealed(self, secret: str, kept: Kept, of: Slice, last: bytes | None) -> bytes:
        approved, role = self._secrets[secret], self._head.trusted.root.roles.vault
        header = SealedHeader(
            mesh=self._head.trusted.root.mesh,
            node=of.node,
            node_epoch=of.epoch,
            vault_epoch=role.epoch,
            secret=secret,
            assignment=approved.assignment,
            field=approved.field,
            slot=_SLOT,
            version=kept.version,
        )
        if last is not None and _stands(last, header, self._vault.sign.public):
            return last
        return seal(header, kept.value, raw_seal(of.seal), self._vault.sign)

    def _index(self, node: str, secrets: Mapping[str, IndexSecret], last: bytes | None) -> bytes:
        """The node's index: the last one while it says the same of every secret, else the next."""
        root, seq = self._head.trusted.root, 0
        if last is not None:
            vault = [self._vault.sign.public]
            try:
                before, _ = read_signed(VaultIndex, last, root.mesh, vault)
            except Refused:
                before = None
            if before is not None and before.epoch == root.roles.vault.epoch:
                if before.secrets == secrets and before.node == node:
                    return last
                seq = before.seq
        index = VaultIndex(
            mesh=root.mesh,
            issued=self._now,
            node=node,
            epoch=root.roles.vault.epoch,
            seq=seq + 1,
            approval_seq=self._head.approval.seq,
            secrets=secrets,
        )
        return signed(index, [self._vault.sign])


def _stands(blob: bytes, header: SealedHeader, vault: bytes) -> bool:
    """Whether a file was sealed under exactly this header; its content only its reader can open."""
    try:
        payload = open_envelope(blob, Kind.SEALED, [vault]).payload
    except Refused:
        return False
    said = {key: value for key, value in payload.items() if key not in ("ct", "v", "alg")}
    return bool(said == shape.to_json(header))


def _key_file(location: Path, node: str) -> Path:
    return location / "sealed" / f"{node}.key"


def _sealed_to(location: Path, node: str) -> str | None:
    """The key that a node's values were sealed to last: a sealed value itself does not say it."""
    try:
        return fsops.read_private(_key_file(location, node), 1 << 10).decode()
    except FileNotFoundError:
        return None


def _read_folder(folder: Path) -> dict[str, bytes]:
    """What the last run sealed for a node, by the name in its ref."""
    if not folder.is_dir():
        return {}
    return {
        str(each.relative_to(folder)): fsops.read_private(each, 1 << 24)
        for each in sorted(folder.rglob("*.json"))
        if each.is_file()
    }
