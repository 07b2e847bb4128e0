"""The contracts of what a host, the mesh and the operator answer, and of `secret` (FORMATS "Module")."""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.core.model import Ask, Contract, Credential, Field, Kind, Requirement, Schema

_TEXT: Schema = {"type": "string"}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
_OWNER: Schema = {"type": "string", "pattern": "(?:0|[1-9][0-9]{0,9}):(?:0|[1-9][0-9]{0,9})"}
_MODE: Schema = {"type": "string", "pattern": "0[0-7]{3}"}
_LOCATION: Mapping[str, Field] = {"location": Field(_TEXT)}

HOST: Mapping[str, Contract] = {
    "directory": Contract("directory", _LOCATION, {"owner": Ask(_OWNER), "mode": Ask(_MODE)}),
    "volume": Contract("volume", _LOCATION),
    "access": Contract("access", _LOCATION, {"allow": Ask({"enum": ["read", "write"]})}),
    "device": Contract("device", _LOCATION),
    "port": Contract(
        "port",
        {
            "port": Field(_PORT),
            "listens": Field(_PORT),
            "host": Field({"type": "string", "format": "hostname"}),
            "address": Field(_TEXT),
        },
        {
            "listens": Ask(_PORT, has_default=True),
            "number": Ask(_PORT, has_default=True),
            "protocol": Ask({"enum": ["tcp", "udp", "tcp+udp"]}, has_default=True, default="tcp"),
            "reach": Ask({"enum": ["mesh", "public", "local"]}, has_default=True, default="mesh"),
        },
    ),
    "machine": Contract(
        "machine",
        {
            "name": Field({"type": "string", "format": "hostname"}),
            "address": Field(_TEXT),
            "public": Field(_TEXT),
            "arch": Field(_TEXT),
            "cpus": Field({"type": "integer", "minimum": 1}),
            "memory": Field({"type": "integer", "minimum": 0}),
        },
    ),
    "machines": Contract("machines", {"names": Field({"type": "array", "items": _TEXT})}),
}
"""What a node answers."""

MESH: Mapping[str, Contract] = {
    "identity": Contract("identity", {"as": Field(_TEXT), "dns": Field(_TEXT), "module": Field(_TEXT)}),
    "facts": Contract("facts", {"name": Field(_TEXT), "domain": Field(_TEXT), "timezone": Field(_TEXT)}),
}
"""What the mesh answers."""

SECRET = Contract(
    "secret",
    {"value": Field(_TEXT, secret=True)},
    {
        "form": Ask({"enum": ["alnum", "hex", "base64", "base64url", "mixed", "text"]}, True, "alnum"),
        "length": Ask({"type": "integer", "minimum": 16, "maximum": 4096}, True, 43),
        "source": Ask({"enum": ["vault", "operator"]}, True, "vault"),
        "lines": Ask({"enum": ["one", "many"]}, True, "one"),
    },
    credential=Credential("value", "vault", "in-place", "none"),
)
"""The shipped contract of a secret, for a mesh that keeps no copy of it in `contracts/`."""


def contract_of(requirement: Requirement, contracts: Mapping[str, Contract]) -> Contract | None:
    """The contract of a requirement; None where that of a module's requirement is not known."""
    match requirement.kind:
        case Kind.MODULE:
            return contracts.get(requirement.contract)
        case Kind.HOST:
            return HOST[requirement.contract]
        case Kind.MESH:
            return MESH[requirement.contract]
        case Kind.OPERATOR:
            return Contract("value", {"value": Field(requirement.schema or {})})
