"""`gitmesh deploy`: resolve main, compose, approve and publish, or renew what stands (DESIGN §4)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitmesh.core.compose import compose
from gitmesh.core.model import Mesh
from gitmesh.core.record import EMPTY, Record, from_json, to_json
from gitmesh.core.refusal import Refusal, ordered
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.deploy.publish import LIMIT, WHOLE, Branch, Seen, fetch_main, look, publish
from gitmesh.deploy.slices import declaration_blob, shards, slices
from gitmesh.repo.load import load
from gitmesh.repo.objects import tree_of
from gitmesh.repo.transport import Access, Damaged, Rejected, RepoError, rebuild, without_credentials
from gitmesh.repo.tree import open_tree
from gitmesh.trust import canonical
from gitmesh.trust.counters import Counters
from gitmesh.trust.documents import Approval, Deploy, Source, payload_of, read_shard, signed
from gitmesh.trust.envelope import Kind, read_unverified
from gitmesh.trust.keys import SigningKey
from gitmesh.trust.refused import Refused, Why
from gitmesh.trust.root import TrustedRoot, open_root
from gitmesh.trust.verify import Bundle, Head, open_slice, verify_head, walk_roots

APPROVAL_LIFE = 90 * 86400
"""Seconds that an approval is valid where a merge approves; renewed at each deploy."""
DEPLOY_LIFE = 14 * 86400
RENEW_AFTER = 86400
SPEC = "1"
"""The version of what a resolution means; part of every approval, so that it can be reproduced."""
ATTEMPTS = 5
"""How often a deploy resolves anew when another one was published meanwhile."""
_SIGNED = ("approval.json", "deploy.json")


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a deploy did. `refusals` are main's; where there are some, at most what stood was renewed.

    `seq` is the deploy that stands now, 0 for none, `pushed` are the refs that changed, `absent` the nodes
    that have not enrolled, `files` main's.
    """

    commit: str
    seq: int
    pushed: tuple[str, ...]
    files: Mapping[str, bytes]
    refusals: tuple[Refusal, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller: its own bare repo `cache`, where origin is and how it is reached, its key, and the time
    in seconds."""

    cache: Path
    origin: str
    key: SigningKey
    now: int
    access: Access | None = None

    def deploy(self) -> Deployed:
        """Deploy origin's main. A damaged cache is made anew.

        Where another deploy came first it resolves anew upon that one, so that what stands in the end is what
        the two would have made one after the other; nothing is ever forced. Raises `Refused` where what
        stands on origin is not this mesh's, `RepoError`, and `Rejected` where others came first each time.
        """
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(Rejected):
                return self._mended()
        return self._mended()

    def _mended(self) -> Deployed:
        try:
            return self._deploy()
        except Damaged:
            rebuild(self.cache)
            return self._deploy()

    def _deploy(self) -> Deployed:
        commit = fetch_main(self.cache, self.origin, self.access)
        if commit is None:
            raise RepoError(f"{without_credentials(self.origin)} has no branch main", "git push origin main")
        tree = open_tree(self.cache, commit)
        trusted = newest_root(tree.files)
        self._check_key(trusted)
        mesh, found = load(tree.files)
        # A mesh.yaml that does not load has no id, and does not say which branch it is.
        branch = Branch(mesh.branch if mesh.id else None, mesh.keep)
        seen = look(self.cache, self.origin, branch, self.access)
        head = self._standing(seen, trusted)
        resolution = resolve(mesh, EMPTY if head is None else _record(seen.files, head))
        refusals = ordered([*tree.refusals, *found, *resolution.refusals])
        roots = {path: blob for path, blob in tree.files.items() if path.startswith("trust/")}
        if not refusals:
            seq, pushed = self._publish(branch, seen, head, trusted, content(resolution) | roots, commit)
        elif head is not None:
            # One bad merge freezes nothing: what was approved last stays so while main is mended (G5).
            approved = approved_files(seen.files, head)
            source = head.approval.source.commit
            seq, pushed = self._publish(branch, seen, head, trusted, approved | roots, source)
        else:
            seq, pushed = 0, ()
        return Deployed(commit, seq, pushed, tree.files, refusals, _absent(mesh))

    def _check_key(self, trusted: TrustedRoot) -> None:
        """A deploy signed by a key without the roles would be published, and every node would refuse it."""
        roles = trusted.root.roles
        if self.key.public_text not in roles.deployer.keys or self.key.public_text not in roles.approver.keys:
            raise RepoError(
                f"root {trusted.root.version} does not name {self.key.public_text} as the controller's key",
                "gitmesh deploy --key FILE",
            )

    def _publish(
        self,
        branch: Branch,
        seen: Seen,
        head: Head | None,
        trusted: TrustedRoot,
        files: Mapping[str, bytes],
        commit: str,
    ) -> tuple[int, tuple[str, ...]]:
        """Publish `files` if they differ from what stands, or if that is due for renewal."""
        same = {path: blob for path, blob in seen.files.items() if path not in _SIGNED} == files
        if head is not None and same and self.now < head.deploy.issued + RENEW_AFTER:
            # Refs that a killed deploy left behind are mended; the branch's commit stays.
            note = f"deploy {head.deploy.seq}"
            return head.deploy.seq, self._push(branch, seen, seen.files, note)
        seq = 1 if head is None else head.deploy.seq + 1
        source = (
            head.approval.source
            if head is not None and head.approval.source.commit == commit
            else Source(commit, tree_of(self.cache, commit))
        )
        signed_ = self._documents(files, source, trusted, head)
        note = f"deploy {seq}"
        return seq, self._push(branch, seen, {**files, **signed_}, note)

    def _push(self, branch: Branch, seen: Seen, files: Mapping[str, bytes], note: str) -> tuple[str, ...]:
        return publish(self.cache, self.origin, branch, seen, files, note, self.now, self.access)

    def _standing(self, seen: Seen, trusted: TrustedRoot) -> Head | None:
        """What stands on origin, verified; None before the first deploy. What only expired counts here."""
        if seen.lost:
            # To begin anew would give out identities and ports anew as well (G1).
            raise Refused(Why.MISSING, f"{WHOLE} is gone, and with it the record of what must not move")
        if not seen.files:
            return None
        bundle = Bundle.from_files(seen.files)
        counters = Counters(root_version=trusted.root.version)
        try:
            return verify_head(bundle, trusted, counters, self.now)
        except Refused as refused:
            if refused.why is not Why.EXPIRED or bundle.deploy is None:
                raise
        issued = read_unverified(bundle.deploy, Kind.DEPLOY).payload["issued"]
        return verify_head(bundle, trusted, counters, int(issued))

    def _documents(
        self, files: Mapping[str, bytes], source: Source, trusted: TrustedRoot, head: Head | None
    ) -> dict[str, bytes]:
        """The approval of `files`, and the deploy that names it."""
        root = trusted.root
        approval = Approval(
            mesh=root.mesh,
            issued=self.now,
            seq=1 if head is None else head.approval.seq + 1,
            prev="" if head is None else head.approval_sha256,
            expires=self.now + min(APPROVAL_LIFE, root.limits.approval_max_age),
            source=source,
            resolver_spec=SPEC,
            record_sha256=canonical.digest(files["record.json"]),
            shards={
                path.removeprefix("shards/").removesuffix(".json"): canonical.digest(blob)
                for path, blob in sorted(files.items())
                if path.startswith("shards/")
            },
        )
        deploy = Deploy(
            mesh=root.mesh,
            issued=self.now,
            seq=1 if head is None else head.deploy.seq + 1,
            prev="" if head is None else head.deploy_sha256,
            root_version=root.version,
            approval_seq=approval.seq,
            # A document is named by the digest of its payload, never of its envelope (SECURITY §0).
            approval_sha256=canonical.digest(canonical.encode(payload_of(approval))),
            expires=self.now + min(DEPLOY_LIFE, root.limits.deploy_max_age),
        )
        return {"approval.json": signed(approval, [self.key]), "deploy.json": signed(deploy, [self.key])}


def newest_root(files: Mapping[str, bytes]) -> TrustedRoot:
    """The newest root on main, reached from its first one by one. Raises `Refused` and `RepoError`."""
    roots = Bundle.from_files(files).roots
    if 1 not in roots:
        raise RepoError("main has no trust/1.root.json, so nothing can be approved", "gitmesh genesis")
    trusted, _, _ = walk_roots(open_root(roots[1]), roots, Counters(root_version=1))
    return trusted


def content(resolution: Resolution) -> dict[str, bytes]:
    """Everything that a deploy publishes but its signed documents: the same inputs give the same bytes."""
    declarations = compose(resolution)
    declared = {name: declaration_blob(each) for name, each in declarations.items()}
    files = {f"nodes/{name}/declaration.json": blob for name, blob in declared.items()}
    said = slices(resolution, declarations, declared)
    slice_blobs = {name: canonical.encode(each) for name, each in said.items()}
    files |= {f"nodes/{name}/slice.json": blob for name, blob in slice_blobs.items()}
    files |= {f"shards/{name}.json": canonical.encode(each) for name, each in shards(slice_blobs).items()}
    files["record.json"] = canonical.encode(to_json(resolution.record, resolution.mesh.id))
    return files


def _record(files: Mapping[str, bytes], head: Head) -> Record:
    """The record that was approved. Raises `Refused` for any other: whoever can write to origin would else
    move ports, identities and providers."""
    blob = files.get("record.json")
    if blob is None or canonical.digest(blob) != head.approval.record_sha256:
        raise Refused(Why.DIGEST, "record.json: not the bytes that were approved")
    return from_json(canonical.decode(blob, LIMIT))


def approved_files(files: Mapping[str, bytes], head: Head) -> dict[str, bytes]:
    """What `head` approves of a deploy's files, which is what a renewal signs again: record, shards, slices,
    and declarations. Raises `Refused` where one is missing or is not the bytes that were approved."""
    _record(files, head)
    found = {"record.json": files["record.json"]}
    for name in head.approval.shards:
        shard = files.get(f"shards/{name}.json")
        if shard is None or canonical.digest(shard) != head.approval.shards[name]:
            raise Refused(Why.DIGEST, f"shard {name}: not the bytes that were approved")
        found[f"shards/{name}.json"] = shard
        for node in read_shard(shard):
            place = f"nodes/{node}/declaration.json"
            found[f"nodes/{node}/slice.json"] = files.get(f"nodes/{node}/slice.json", b"")
            found[place] = files.get(place, b"")
            slice_ = open_slice(head.approval, node, shard, found[f"nodes/{node}/slice.json"])
            if canonical.digest(found[place]) != slice_.declaration_sha256:
                raise Refused(Why.DIGEST, f"{place}: not the bytes that were approved")
    return found


def _absent(mesh: Mesh) -> tuple[str, ...]:
    return tuple(name for name, node in sorted(mesh.nodes.items()) if node.keys is None)
