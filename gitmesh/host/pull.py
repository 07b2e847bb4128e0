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
from dataclasses import dataclass, field, replace
from pathlib import Path

from gitmesh import fsops
from gitmesh.fsops import Root
from gitmesh.host.apply import Outcome, apply
from gitmesh.host.fetched import Fetched, fetch_documents
from gitmesh.host.fill import fill
from gitmesh.host.filled import FilledDeclaration, Withheld
from gitmesh.host.held_back import hold_back
from gitmesh.host.installed import Installed
from gitmesh.host.mailbox import REPORT_EVERY, Outbox, Sent, is_due, load_outbox, save_outbox, send
from gitmesh.host.policy import POLICY_FILE, Policy, read_policy
from gitmesh.host.provide import Provided, authenticate_all, provide
from gitmesh.host.runtimes.files import FilesRuntime
from gitmesh.host.said import document, ref_of, said_confirms, said_now, said_waits
from gitmesh.host.state import APPLIED, HOME, State, StateDamaged
from gitmesh.host.take import Taken, take, without_vault
from gitmesh.repo.transport import Damaged, RepoError, init_bare, rebuild
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import Failed, ReportedWait
from gitmesh.trust.documents import State as NodeState
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.keys import KeyRefused, SealingKey, SigningKey
from gitmesh.trust.refused import Refused
from gitmesh.trust.root import TrustedRoot, open_root, pinned_root
from gitmesh.trust.verify import Bundle, OwnKeys, Verified, walk_roots
from gitmesh.vault.run import Ran, Vault, is_vault
from gitmesh.vault.sops import SopsFailed, Unreadable

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
        self._policy: Policy = read_policy(installed.root)
        self._damaged: StateDamaged | None = None

    def pull(self) -> Pulled:
        """All of it, in order."""
        accepted = self._accepted()
        newest = None
        try:
            newest = self._take_new(accepted)
        except (Refused, RepoError) as wrong:
            if not accepted:
                raise self._damaged or wrong from None
            self.pulled.stale = str(wrong)
        if newest is None:
            taken = self._take_again(accepted)
        elif newest.verified.slice.state is NodeState.PAUSED:
            self._save_counters(newest.counters)
            self.pulled.remarks.append("paused: nothing new is applied until the node is active again")
            taken = self._take_again(accepted)
        else:
            taken = newest
            self._keep(newest)
        provided = Provided() if taken is None else self._apply(taken)
        if newest is not None:
            self._answer(newest.verified, taken, provided)
        return self.pulled

    def _apply(self, taken: Taken) -> Provided:
        self.pulled.seq = taken.verified.deploy.seq
        self.pulled.failed += [Failed(subject, message) for subject, message in taken.refused]
        taken = self._hold_back(taken)
        filled = self._fill(taken)
        runtime = FilesRuntime(self._root)
        bundle = self._state.accepted_name()
        self.pulled.outcomes = apply(self._root, filled, runtime, now=self.now, bundle=bundle)
        provided = self._provide(taken)
        self._tell(filled, provided)
        return provided

    def _fill(self, taken: Taken) -> FilledDeclaration:
        """Everything that can be applied and that this machine allows (SECURITY §1.6 step 8)."""
        vetoed = self._policy.vetoed(taken.declaration)
        allowed = {id_: spec for id_, spec in taken.declaration.assignments.items() if id_ not in vetoed}
        filled = fill(replace(taken.declaration, assignments=allowed), taken.values)
        refused = [Withheld(id_, "this node", f"/{POLICY_FILE}", why) for id_, why in vetoed.items()]
        return replace(filled, withheld=(*filled.withheld, *refused))

    def _hold_back(self, taken: Taken) -> Taken:
        """With the answers to go by, durable before they are applied; what is held back is said (B12)."""
        answered = taken.values.answers
        going_by, remarks = hold_back(taken.declaration.answers, answered, self._state.answers())
        self._state.save_answers(going_by)
        self.pulled.remarks += remarks
        return replace(taken, values=replace(taken.values, answers=going_by.answers(answered)))

    # --- fetch and verify ------------------------------------------------------------------------------

    def _accepted(self) -> dict[str, bytes]:
        """What was accepted last; what is damaged of it is fetched again."""
        try:
            return self._state.accepted() or {}
        except StateDamaged as damaged:
            self._damaged = damaged
            self.pulled.remarks.append(f"{damaged}: it was fetched and verified again")
            return {}

    def _take_new(self, accepted: Mapping[str, bytes]) -> Taken:
        if not self._cache.exists():
            init_bare(self._cache)
        try:
            fetched = fetch_documents(self._cache, self.installed, accepted)
        except Damaged:
            rebuild(self._cache)
            fetched = fetch_documents(self._cache, self.installed, accepted)
        trusted = self._trusted(fetched.files)
        if is_vault(trusted.root, self.node):
            self._run_vault(fetched, trusted)
        counters = self._counters()
        taken = take(fetched.files, trusted, counters, self._keys, self.node, self._seal, self.now, accepted)
        return replace(taken, refused=(*fetched.refused, *taken.refused))

    def _take_again(self, accepted: Mapping[str, bytes]) -> Taken | None:
        """What was accepted last, every signature checked again; its numbers and its age were then (S4).

        None, saying why, where it does not count any more: what runs is then left as it is.
        """
        if not accepted:
            return None
        try:
            trusted = open_root(self._root.read(_ROOT_FILE))
            counters = Counters(root_version=trusted.root.version)
            issued = read_unverified(accepted["deploy.json"], Kind.DEPLOY).payload["issued"]
            return take(accepted, trusted, counters, self._keys, self.node, self._seal, int(issued))
        except (Refused, KeyError) as wrong:
            self.pulled.remarks.append(
                f"what was accepted last does not count any more, and runs on untouched: {wrong}"
            )
            self.pulled.seq = self._counters().deploy.seq
            return None

    def _trusted(self, files: Mapping[str, bytes]) -> TrustedRoot:
        """The newest root, reached from the one this node trusts; each step is kept before it counts."""
        try:
            trusted = open_root(self._root.read(_ROOT_FILE))
        except FileNotFoundError:
            first = Bundle.from_files(files).roots.get(1, b"")
            trusted = pinned_root(first, self.installed.root_sha256)
            self._save_counters(self._counters())
            self._root.write(_ROOT_FILE, trusted.blob, 0o600)
        if not self._root.exists(_COUNTERS_FILE):
            self.pulled.remarks.append(
                "the numbers it saw before were lost, so that any deploy which has not expired counted"
            )
        before = self._counters()
        trusted, counters, accepted = walk_roots(trusted, Bundle.from_files(files).roots, before)
        if accepted:
            # A root that takes a key away resets its counter; a kill after either write repeats no more
            # than that, since the version goes up last.
            self._save_counters(replace(counters, root_version=before.root_version))
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

    def _keep(self, taken: Taken) -> None:
        """Counters and bundle are durable before anything is applied (SECURITY §1.6 step 9)."""
        seq = taken.verified.deploy.seq
        if seq > self._counters().deploy.seq:
            self.pulled.new.append(f"took deploy {seq}")
        self._save_counters(taken.counters)
        self._state.accept(seq, taken.files)

    # --- the vault -------------------------------------------------------------------------------------

    def _run_vault(self, fetched: Fetched, trusted: TrustedRoot) -> None:
        """The vault runs inside its node's pull: what it seals for this node counts in the same pull.

        What stops the vault, such as a store that can't be read, stops nothing else of its node (G9).
        """
        try:
            ran = self._vault(fetched, trusted)
        except (Refused, RepoError, KeyRefused, Unreadable, SopsFailed) as wrong:
            fetched.refused.append(("vault", f"it did not run: {wrong}"))
            return
        self.pulled.new += ran.did
        self.pulled.remarks += ran.remarks
        fetched.files = without_vault(fetched.files) | ran.sealed.get(self.node, {})

    def _vault(self, fetched: Fetched, trusted: TrustedRoot) -> Ran:
        installed = self.installed
        vault = Vault.of(installed.root, trusted.root)

        def run() -> Ran:
            return vault.run(
                self._cache,
                installed.origin,
                installed.mailbox,
                fetched.files,
                trusted,
                self._counters(),
                self.now,
                installed.access(),
            )

        try:
            return run()
        except Damaged:
            rebuild(self._cache)
            return run()

    # --- provide and answer ----------------------------------------------------------------------------

    def _provide(self, taken: Taken) -> Provided:
        running = {each.assignment for each in self.pulled.outcomes if each.result == APPLIED}
        confirmed = said_confirms(load_outbox(self._root), self.node)
        provided = provide(taken.declaration, running, taken.applying, confirmed)
        authenticate_all(taken.declaration, running, taken.values, confirmed, provided)
        for secret, confirm in provided.confirms.items():
            if confirmed.get(secret) != confirm:
                did = "signed in with" if confirm.authenticated else "set"
                self.pulled.new.append(f"{did} the login of {secret}")
        return provided

    def _tell(self, filled: FilledDeclaration, provided: Provided) -> None:
        """Put together what the report says."""
        pulled = self.pulled
        before = said_waits(load_outbox(self._root), self.node)
        for each in (*filled.waiting, *provided.waiting):
            wait = (each.assignment, each.on, each.requirement)
            pulled.waiting.append(ReportedWait(*wait, since=before.get(wait, self.now)))
        pulled.failed += [
            Failed(held.assignment, f"{held.requirement}: {held.why}") for held in filled.withheld
        ]
        pulled.failed += [Failed(subject, message) for subject, message in provided.failed]
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
        pulled.remarks += [each for each in provided.not_run if each not in pulled.remarks]

    def _answer(self, newest: Verified, taken: Taken | None, provided: Provided) -> None:
        """Push what is new of this node's own (F7)."""
        outbox = load_outbox(self._root)
        refs = dict(outbox.refs)
        due: list[str] = []
        for ref, value in said_now(newest, taken, self.pulled, provided, outbox).items():
            every = REPORT_EVERY if ref == ref_of("report", self.node) else None
            if is_due(outbox.of(ref), value, self.now, every):
                refs[ref] = Sent(outbox.of(ref).seq + 1, self.now, value)
                due.append(ref)
        if not due:
            return
        # A number is kept before it is used, and what was not pushed for certain is said again.
        save_outbox(self._root, Outbox(refs))
        files = {ref: document(ref, refs[ref], newest, self._sign) for ref in due}
        try:
            send(self._cache, self.installed.mailbox, files, self.node, self.now, self.installed.access())
        except RepoError as wrong:
            self.pulled.failed.append(Failed("mailbox", wrong.message))
            return
        sent = {ref: replace(refs[ref], pushed=True) for ref in due}
        save_outbox(self._root, Outbox({**refs, **sent}))
