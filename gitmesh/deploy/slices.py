"""What an approval says of each node: its keys, its declaration's digest, its secrets (SECURITY §1.5).

The vault works from approvals alone, so the slice of its node names every secret of the mesh: how it is
made, and who receives it. Any other node's slice names the secrets it receives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitmesh.core.answer import Secret, generation_of
from gitmesh.core.codec import encode
from gitmesh.core.declaration import Declaration, SecretSpec
from gitmesh.core.model import Json, Mesh, Node
from gitmesh.core.resolve import Resolution
from gitmesh.trust import canonical
from gitmesh.trust.documents import shard_of


def slices(
    resolution: Resolution, declarations: Mapping[str, Declaration], blobs: Mapping[str, bytes]
) -> dict[str, Json]:
    """The slice of each node that has enrolled; `blobs` are the declarations as they are published."""
    mesh = resolution.mesh
    holder = resolution.holders.get("mesh-vault")
    vault = None if holder is None else mesh.assignments[holder].node
    recipients = _recipients(declarations)
    grants: dict[str, dict[str, Json]] = {}
    for _, each in sorted(mesh.assignments.items()):
        if each.grants:
            grants.setdefault(each.node, {})[each.id] = sorted(each.grants)
    found = {}
    for name, node in sorted(mesh.nodes.items()):
        if node.keys is not None:
            said = _slice(resolution, node, declarations[name], recipients if name == vault else {})
            found[name] = {
                **said,
                "declaration_sha256": canonical.digest(blobs[name]),
                "grants": grants.get(name, {}),
            }
    return found


def shard_count(nodes: int) -> int:
    """The least power of two that keeps a shard at 128 nodes or fewer."""
    count = 1
    while count * 128 < nodes:
        count *= 2
    return count


def shards(slice_blobs: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
    """Every shard: by node, the digest of its slice."""
    count = shard_count(len(slice_blobs))
    found: dict[str, dict[str, str]] = {str(number): {} for number in range(count)}
    for node, blob in sorted(slice_blobs.items()):
        found[shard_of(node, count)][node] = canonical.digest(blob)
    return found


def _slice(
    resolution: Resolution,
    node: Node,
    declaration: Declaration,
    recipients: Mapping[str, Mapping[str, SecretSpec]],
) -> dict[str, Json]:
    assert node.keys is not None
    mesh = resolution.mesh
    secrets = {
        each: _secret(mesh, resolution.secrets[each], recipients.get(each, {}))
        for each in sorted({*recipients, *declaration.secrets})
    }
    for each, spec in declaration.secrets.items():
        secrets[each]["role"] = _role(spec)
    for each in _hashed(resolution, recipients):
        secrets.setdefault(each, _secret(mesh, resolution.secrets[each], {}))
    return {
        "node": node.name,
        "sign": node.keys.sign,
        "seal": node.keys.seal,
        "epoch": node.keys.epoch,
        "state": node.state,
        "answers_from": _answers_from(mesh, declaration),
        "secrets": secrets,
    }


def _secret(mesh: Mesh, secret: Secret, recipients: Mapping[str, SecretSpec]) -> dict[str, Json]:
    entry: dict[str, Json] = {
        "kind": secret.kind,
        "generation": generation_of(mesh, secret),
        "contract_sha256": canonical.digest(canonical.encode(dict(secret.schema))),
        "assignment": secret.assignment,
        "field": secret.field,
        "schema": secret.schema,
        "form": secret.form,
        "takes": secret.takes,
        "rotation": secret.rotation,
    }
    if secret.length is not None:
        entry["length"] = secret.length
    if secret.applier is not None:
        entry["applier"] = secret.applier
    if secret.of is not None:
        entry["of"] = secret.of
    if secret.logins is not None:
        entry["logins"] = list(secret.logins)
    if secret.handed is not None:
        entry["handed_sha256"] = mesh.handed[secret.handed]
    if recipients:
        entry["recipients"] = [
            {"node": node, "role": _role(spec)} for node, spec in sorted(recipients.items())
        ]
    return entry


def _hashed(resolution: Resolution, secrets: Iterable[str]) -> set[str]:
    """What any of `secrets` is a hash of: the vault makes them also where nobody reads them."""
    found = (resolution.secrets[each].of for each in secrets)
    return {each for each in found if each is not None}


def _role(spec: SecretSpec) -> str:
    """Where applier and reader share a node, one file serves both, and the index's phase says when the
    reader may have it (SECURITY §1.3)."""
    return "apply" if spec.role == "apply+present" else spec.role


def _recipients(declarations: Mapping[str, Declaration]) -> dict[str, dict[str, SecretSpec]]:
    """By secret: the nodes that have a hole for it or apply it (FORMATS "Language")."""
    found: dict[str, dict[str, SecretSpec]] = {}
    for node, declaration in sorted(declarations.items()):
        for secret, spec in declaration.secrets.items():
            found.setdefault(secret, {})[node] = spec
    return found


def _answers_from(mesh: Mesh, declaration: Declaration) -> dict[str, Json]:
    """Whose answers the node takes; those of a revoked one are nobody's to take (F4)."""
    found: dict[str, Json] = {}
    for spec in declaration.answers.values():
        node = mesh.nodes[spec.node]
        if node.keys is not None and node.state != "revoked":
            found[spec.node] = {"sign": node.keys.sign, "epoch": node.keys.epoch}
    return found


def declaration_blob(declaration: Declaration) -> bytes:
    """The bytes of a declaration as they are published and approved."""
    return canonical.encode({"v": 1, **encode(declaration)})
