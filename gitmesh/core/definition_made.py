"""Whether the vault can make what a definition asks it for (FORMATS "Contract")."""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.core.contract import ALPHABETS, MADE_LENGTH, can_be_made, check_value, made_length, narrow
from gitmesh.core.definition_reads import plain, tree_references
from gitmesh.core.hashes import fits
from gitmesh.core.model import Contract, Json, Requirement, Schema


def can_be_met(requirement: Requirement, contract: Contract, name: str, schema: Schema) -> bool:
    """Whether the vault can make a value for the requirement whose field `name` fits `schema`; true also of
    what it does not make, and of an ask that is refused for itself."""
    credential, hashed = contract.credential, contract.fields[name].hashed
    if hashed is not None:
        return fits(schema, hashed[1])
    if credential is None or credential.by != "vault" or credential.secret != name:
        return True
    if contract.name != "secret":
        return can_be_made(schema, contract.fields[name].form or "alnum")
    asks = _asks(requirement, contract)
    if asks is None or asks["source"] == "operator" or asks["form"] == "text":
        return True
    return can_be_made(schema, str(asks["form"]), int(asks["length"] or MADE_LENGTH))


def always_fits(requirement: Requirement, secret: Contract, schema: Schema) -> bool:
    """Whether every value that the vault makes for a `secret` requirement fits `schema`, which it does not
    know of. Tried with each character of the form in each place."""
    asks = _asks(requirement, secret)
    if asks is None or asks["source"] == "operator" or asks["form"] == "text":
        return True
    own, wrong = narrow(secret.fields["value"].schema, requirement.narrow.get("value", {}))
    length = made_length(own, int(asks["length"] or MADE_LENGTH))
    alphabet = ALPHABETS[str(asks["form"])]
    ring = alphabet * (length // len(alphabet) + 2)
    tries = (ring[start : start + length] for start in range(len(alphabet)))
    return wrong is not None or all(check_value(schema, each) is None for each in tries)


def _asks(requirement: Requirement, secret: Contract) -> Mapping[str, Json] | None:
    """What is asked for a secret, with the defaults; None where an ask is refused for itself."""
    said = {key: plain(tree) for key, tree in requirement.asks.items() if not tree_references(tree)}
    asks = {key: said.get(key, ask.default) for key, ask in secret.asks.items()}
    refused = any(check_value(ask.schema, asks[key]) is not None for key, ask in secret.asks.items())
    return None if refused or not asks.keys() >= {"form", "length", "source"} else asks
