"""`gitmesh pull`: fetch, verify, fill, apply, record, answer (DESIGN §6, SECURITY §1.6).

A document that does not count changes nothing: the node then goes on with what it accepted last, repairs
what drifted, and says so.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gitmesh import __version__, fsops
from gitmesh.core.codec import Malformed, decode, encode
from gitmesh.fsops import Root
from gitmesh.host.apply import Outcome, apply
from gitmesh.host.fill import fill
from gitmesh.host.filled import FilledDeclaration
from gitmesh.host.installed import Installed
from gitmesh.host.mailbox import REPORT_EVERY, Outbox, Sent, is_due, load_outbox, save_outbox, send
from gitmesh.host.provide import Provided, authenticate_all, provide
from gitmesh.host.runtimes.files import FilesRuntime
from gitmesh.host.state import APPLIED, FAILED, HOME, State, StateDamaged
from gitmesh.host.take import Taken, answers_file, only_vault, take, without_vault
from gitmesh.repo.objects import read_files
from gitmesh.repo.transport import Damaged, RepoError, fetch, init_bare, rebuild
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import (
    Answers,
    Applied,
    Confirm,
    Failed,
    Report,
    ReportedWait,
    shard_of,
    signed,
)
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.keys import SealingKey, SigningKey, raw_seal
from gitmesh.trust.refused import Refused
from gitmesh.trust.root import TrustedRoot, open_root, pinned_root
from gitmesh.trust.seal import seal_confirms
from gitmesh.trust.verify import Bundle, OwnKeys, walk_roots
from gitmesh.vault.run import Vault, is_vault

_ROOT_FILE = f"{HOME}/trust/root.json"
_COUNTERS_FILE = f"{HOME}/trust/state.json"


@dataclass
class Pulled:
    """What a pull did. `stale` says why newer documents do not count; then what ran keeps running (75)."""

    node: str
    seq: int = 0
    stale: str = ""
    outcomes: tuple[Outcome, ...] = ()
    waiting: list[ReportedWait] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    """what this pull did, in words; empty where nothing was to be done"""

    @property
    def changed(self) -> bool:
        """Whether it did anything but look."""
        return bool(self.new)


def pull(installed: Installed, now: int) -> Pulled:
    """One pull of the node at the time `now`, in seconds.

    Raises `KeyRefused`, `StateDamaged`, `Busy`, and `Refused` or `RepoError` where nothing was ever accepted
    that it could go on with.
    """
    home = installed.root / HOME
    fsops.make_directory(home, 0o755)
    with _alone(home), Root(installed.root) as root:
        return Puller(installed, root, now).pull()


class Busy(Exception):
    """Another pull of this node is running."""


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Busy(f"another pull is at work in {home}") from None
    finally:
        os.close(descriptor)


class Puller:
    """One pull, step by step; the node's files are reached through `root`."""

    def __init__(self, installed: Installed, root: Root, now: int) -> None:
        self.installed = installed
        self.node = installed.node
        self.now = now
        self.pulled = Pulled(installed.node)
        self._root = root
        self._state = State(root)
        self._cache = installed.root / HOME / "git"
        self._sign: SigningKey = installed.sign()
        self._seal: SealingKey = installed.seal()
        self._keys = OwnKeys(self._sign.public_text, self._seal.public_text)

    def pull(self) -> Pulled:
        """All of it, in order."""
        accepted = self._state.accepted() or {}
        try:
            taken = self._take_new(accepted)
        except (Refused, RepoError) as wrong:
            if not accepted:
                raise
            self.pulled.stale = str(wrong)
            taken = self._take(accepted, self._counters().newest)
        filled = fill(taken.declaration, taken.values)
        bundle = self._keep(taken)
        runtime = FilesRuntime(self._root)
        self.pulled.outcomes = apply(self._root, filled, runtime, now=self.now, bundle=bundle)
        provided = self._provide(taken)
        self._tell(taken, filled, provided)
        if not self.pulled.stale:
            self._answer(taken, provided)
        return self.pulled

    # --- fetch and verify ------------------------------------------------------------------------------

    def _take_new(self, accepted: Mapping[str, bytes]) -> Taken:
        if not self._cache.exists():
            init_bare(self._cache)
        try:
            files = self._fetch()
        except Damaged:
            rebuild(self._cache)
            files = self._fetch()
        trusted = self._trusted(files)
        vault = self._vault(trusted)
        if vault is not None:
            files = without_vault(files) | self._run_vault(vault, files, trusted)
        taken = take(files, trusted, self._counters(), self._keys, self.node, self._seal, self.now)
        if any(subject == "vault" for subject, _ in taken.refused):
            # An index that does not count takes back no secret that an earlier one gave.
            refused = taken.refused
            old = without_vault(files) | only_vault(accepted)
            taken = self._take(old, self.now)
            self.pulled.failed += [Failed(subject, message) for subject, message in refused]
        return taken

    def _take(self, files: Mapping[str, bytes], now: int) -> Taken:
        trusted = self._trusted(files)
        return take(files, trusted, self._counters(), self._keys, self.node, self._seal, now)

    def _fetch(self) -> dict[str, bytes]:
        """Every document for this node, by its path; in one connection where nothing moved to another shard."""
        count = self._shard_count()
        mine = {
            "refs/gitmesh/fresh": "",
            f"refs/gitmesh/shard/{shard_of(self.node, count)}": "",
            f"refs/gitmesh/node/{self.node}": "",
        }
        sealed = f"refs/gitmesh/sealed/{self.node}"
        together = self.installed.origin == self.installed.mailbox
        refs = fetch(self._cache, self.installed.origin, [*mine, *([sealed] if together else [])])
        if not together:
            refs |= fetch(self._cache, self.installed.mailbox, [sealed])
        files: dict[str, bytes] = {}
        for ref in (*mine, sealed):
            if ref in refs:
                files |= read_files(self._cache, refs[ref])
        actual = _count(files.get("approval.json"))
        if actual not in (0, count):
            shard = f"refs/gitmesh/shard/{shard_of(self.node, actual)}"
            for commit in fetch(self._cache, self.installed.origin, [shard]).values():
                files |= read_files(self._cache, commit)
        return files | self._fetch_answers(files)

    def _fetch_answers(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The answers of the providers that this node's slice names; each signature is checked later."""
        try:
            slice_ = json.loads(files.get("slice.json", b"{}"))
            sources = sorted(slice_["answers_from"])
        except (ValueError, KeyError, TypeError):
            return {}
        found = {}
        refs = {f"refs/gitmesh/answers/{each}/{self.node}": each for each in sources if isinstance(each, str)}
        if refs:
            for ref, commit in fetch(self._cache, self.installed.mailbox, sorted(refs)).items():
                blob = read_files(self._cache, commit).get("answers.json")
                if blob is not None:
                    found[answers_file(refs[ref])] = blob
        return found

    def _shard_count(self) -> int:
        return _count((self._state.accepted() or {}).get("approval.json")) or 1

    def _trusted(self, files: Mapping[str, bytes]) -> TrustedRoot:
        """The newest root, reached from the one this node trusts; each step is kept before it counts."""
        try:
            trusted = open_root(self._root.read(_ROOT_FILE))
        except FileNotFoundError:
            first = Bundle.from_files(files).roots.get(1, b"")
            trusted = pinned_root(first, self.installed.root_sha256)
            self._root.write(_ROOT_FILE, trusted.blob, 0o600)
        trusted, counters, accepted = walk_roots(trusted, Bundle.from_files(files).roots, self._counters())
        if accepted:
            self._root.write(_ROOT_FILE, trusted.blob, 0o600)
            self._save_counters(counters)
        return trusted

    def _counters(self) -> Counters:
        try:
            return Counters.from_json(json.loads(self._root.read(_COUNTERS_FILE)))
        except FileNotFoundError:
            return Counters(root_version=1)
        except (ValueError, Refused):
            shown = self._root.shown(_COUNTERS_FILE)
            raise StateDamaged(
                shown, "is damaged", f"restore it from a backup, or remove it: `rm {shown}`; the node then "
                "accepts any document that has not expired"
            ) from None  # fmt: skip

    def _save_counters(self, counters: Counters) -> None:
        blob = json.dumps(counters.to_json(), sort_keys=True).encode()
        try:
            if self._root.read(_COUNTERS_FILE) == blob:
                return
        except FileNotFoundError:
            pass
        self._root.write(_COUNTERS_FILE, blob, 0o600)

    def _keep(self, taken: Taken) -> str:
        """Counters and bundle are durable before anything is applied (SECURITY §1.6 step 9)."""
        before = self._counters().deploy.seq
        self.pulled.seq = taken.verified.deploy.seq
        if self.pulled.seq > before:
            self.pulled.new.append(f"took deploy {self.pulled.seq}")
        self._save_counters(taken.counters)
        return self._state.accept(self.pulled.seq, taken.files)

    # --- the vault -------------------------------------------------------------------------------------

    def _vault(self, trusted: TrustedRoot) -> Vault | None:
        return Vault.of(self.installed.root, trusted.root) if is_vault(trusted.root, self.node) else None

    def _run_vault(self, vault: Vault, files: Mapping[str, bytes], trusted: TrustedRoot) -> dict[str, bytes]:
        """The vault runs inside its node's pull: what it seals for this node counts in the same pull."""
        ran = vault.run(
            self._cache,
            self.installed.origin,
            self.installed.mailbox,
            files,
            trusted,
            self._counters(),
            self.now,
        )
        self.pulled.new += ran.did
        self.pulled.remarks += ran.remarks
        return dict(ran.sealed.get(self.node, {}))

    # --- provide and answer ----------------------------------------------------------------------------

    def _provide(self, taken: Taken) -> Provided:
        running = {each.assignment for each in self.pulled.outcomes if each.result == APPLIED}
        confirmed = self._confirmed(load_outbox(self._root))
        provided = provide(taken.declaration, running, taken.applying, confirmed)
        authenticate_all(taken.declaration, running, taken.values, confirmed, provided)
        for secret, confirm in provided.confirms.items():
            if confirmed.get(secret) != confirm:
                did = "signed in with" if confirm.authenticated else "set"
                self.pulled.new.append(f"{did} the login of {secret}")
        return provided

    def _confirmed(self, outbox: Outbox) -> dict[str, Confirm]:
        """What this node confirmed last."""
        said = outbox.of(self._ref("confirms")).said or {}
        try:
            return {secret: decode(Confirm, each) for secret, each in said.items()}
        except Malformed:
            return {}

    def _ref(self, kind: str) -> str:
        return f"refs/gitmesh/{kind}/{self.node}"

    def _tell(self, taken: Taken, filled: FilledDeclaration, provided: Provided) -> None:
        """Put together what the report says."""
        pulled = self.pulled
        pulled.waiting += [
            ReportedWait(each.assignment, each.on, each.requirement) for each in filled.waiting
        ]
        pulled.waiting += [
            ReportedWait(each.assignment, each.on, each.requirement) for each in provided.waiting
        ]
        pulled.failed += [
            Failed(each.assignment, f"{each.requirement}: {each.why}") for each in filled.withheld
        ]
        pulled.failed += [Failed(subject, message) for subject, message in (*taken.refused, *provided.failed)]
        for outcome in pulled.outcomes:
            pulled.failed += [
                Failed(outcome.assignment, f"{what}: {why}") for what, why in outcome.failed.items()
            ]
            pulled.remarks += [f"{outcome.assignment}: not run here: {each}" for each in outcome.not_run]
            pulled.remarks += [
                f"{outcome.assignment}: owner not set: {each}" for each in outcome.unset_owners
            ]
            did = {
                "wrote": outcome.changed, "repaired": outcome.drifted, "removed": outcome.removed,
                "started": outcome.started,
            }  # fmt: skip
            pulled.new += [f"{outcome.assignment}: {verb} {len(each)}" for verb, each in did.items() if each]
        pulled.remarks += provided.not_run

    def _answer(self, taken: Taken, provided: Provided) -> None:
        """Push what is new of this node's own (F7)."""
        outbox = load_outbox(self._root)
        refs = dict(outbox.refs)
        files: dict[str, dict[str, bytes]] = {}
        said: dict[str, object] = {
            self._ref("confirms"): {k: encode(v) for k, v in provided.confirms.items()}
        }
        for node, answers in _by_node(taken, provided).items():
            said[f"refs/gitmesh/answers/{self.node}/{node}"] = answers
        report = self._report(taken)
        said[self._ref("report")] = report
        for ref, value in said.items():
            sent = outbox.of(ref)
            every = REPORT_EVERY if value is report else None
            if is_due(sent, value, self.now, every) and (value or sent.said):
                refs[ref] = Sent(sent.seq + 1, self.now, value)
                files[ref] = self._document(ref, refs[ref], taken)
        if files:
            save_outbox(self._root, Outbox(refs))
            send(self._cache, self.installed.mailbox, files, self.node, self.now)

    def _report(self, taken: Taken) -> dict[str, object]:
        pulled = self.pulled
        failed = any(each.result == FAILED for each in pulled.outcomes)
        return {
            "deploy_seq": taken.verified.deploy.seq,
            "deploy_sha256": taken.verified.deploy_sha256,
            "waiting": [encode(each) for each in pulled.waiting],
            "failed": [encode(each) for each in pulled.failed],
            "drift": [path for each in pulled.outcomes for path in each.drifted],
            "orphans": [path for each in pulled.outcomes for path in each.kept],
            "sha256": taken.verified.slice.declaration_sha256,
            "result": FAILED if failed else APPLIED,
            "remarks": list(pulled.remarks),
        }

    def _document(self, ref: str, sent: Sent, taken: Taken) -> dict[str, bytes]:
        verified = taken.verified
        mesh, epoch, said = verified.mesh, verified.slice.epoch, sent.said
        if ref == self._ref("confirms"):
            vault = raw_seal(verified.trusted.root.roles.vault.seal)
            confirms = {secret: decode(Confirm, each) for secret, each in said.items()}
            blob = seal_confirms(confirms, mesh, self.now, self.node, epoch, sent.seq, self._sign, vault)
            return {"confirms.json": blob}
        if ref == self._ref("report"):
            report = Report(
                mesh, self.now, self.node, epoch, sent.seq, said["deploy_seq"], said["deploy_sha256"],
                tuple(decode(ReportedWait, each) for each in said["waiting"]),
                tuple(decode(Failed, each) for each in said["failed"]),
                tuple(said["drift"]), tuple(said["orphans"]), __version__,
                applied=Applied(said["sha256"], said["result"]), remarks=tuple(said["remarks"]),
            )  # fmt: skip
            return {"report.json": signed(report, [self._sign])}
        to = ref.rpartition("/")[2]
        answers = Answers(mesh, self.now, self.node, epoch, sent.seq, verified.approval.seq, to, said)
        return {"answers.json": signed(answers, [self._sign])}


def _count(approval: bytes | None) -> int:
    """How many shards an approval says there are, before it is verified: a hint of what to fetch."""
    try:
        return 0 if approval is None else len(read_unverified(approval, Kind.APPROVAL).payload["shards"])
    except (Refused, KeyError, TypeError):
        return 0


def _by_node(taken: Taken, provided: Provided) -> dict[str, dict[str, dict[str, object]]]:
    """The answers by the consumer's node, then assignment, then requirement."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for spec in taken.declaration.assignments.values():
        for provision in spec.provides.values():
            for consumer in provision.consumers:
                if consumer.to in provided.answers:
                    assignment, _, requirement = consumer.to.rpartition(".")
                    of_node = found.setdefault(consumer.node, {})
                    of_node.setdefault(assignment, {})[requirement] = provided.answers[consumer.to]
    return found
