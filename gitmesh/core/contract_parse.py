"""A contract's file, once its schema has passed, into the noun (FORMATS "Contract")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from gitmesh.core.contract import can_be_made, check_value
from gitmesh.core.contract_schema import check_schema
from gitmesh.core.hashes import EXAMPLES, fits, hashable
from gitmesh.core.model import Ask, Contract, Credential, Field, FieldName, Json
from gitmesh.core.refusal import Answer, At, Code, Refusal

OPTIONS = frozenset(
    ("module", "host", "mesh", "operator", "narrow", "takes", "optional", "as", "seat", "max-age", "default")
)
"""What a requirement says beside the contract's asks; no ask may be called so."""
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NOT_SCHEMA = ("secret", "form", "derived", "hashed")


def parse_contract(file: str, value: Mapping[str, Json]) -> tuple[Contract | None, list[Refusal]]:
    """The contract in `file`, or None and everything it is refused for.

    `value` fits `schemas/contract.json`; what that can't say is checked here.
    """
    reading = _Reading(file, value)
    contract = reading.contract()
    reading.check(contract)
    return (None if reading.refusals else contract), reading.refusals


class _Reading:
    """Reads one contract, collecting refusals."""

    def __init__(self, file: str, value: Mapping[str, Json]) -> None:
        self.at = At(file)
        self.value = value
        self.name: str = value["contract"]
        self.refusals: list[Refusal] = []

    def refuse(self, keys: tuple[str | int, ...], message: str, answer: str, lacks: str = "") -> None:
        """Add a refusal at `keys`. `lacks` is the field or ask that is named here and is not there."""
        self.refusals.append(
            Refusal(
                Code.CONTRACT_BAD,
                f"contract {self.name}",
                message,
                self.at.child(*keys),
                answers=(Answer(answer),),
                root=f"{self.at.file} {lacks}" if lacks else "",
            )
        )

    def contract(self) -> Contract:
        """The noun, whatever is wrong with it."""
        said = self.value.get("credential")
        fields = {name: self._field(name, each) for name, each in self.value["fields"].items()}
        return Contract(
            name=self.name,
            fields=_hashable(fields),
            asks={name: self._ask(name, each) for name, each in self.value.get("asks", {}).items()},
            unique=tuple(self.value.get("unique", ())),
            credential=None if said is None else _credential(said),
            tls=self.value.get("tls", False),
            at=self.at,
        )

    def _ask(self, name: str, said: Mapping[str, Json]) -> Ask:
        schema = {key: each for key, each in said.items() if key not in ("default", "from")}
        self._check_schema(("asks", name), schema)
        return Ask(schema, "default" in said, said.get("default"), said.get("from") == "operator")

    def _field(self, name: str, said: Mapping[str, Json]) -> Field:
        schema = {key: each for key, each in said.items() if key not in _NOT_SCHEMA}
        self._check_schema(("fields", name), schema)
        hashed = said.get("hashed")
        return Field(
            schema=schema,
            # Who has a hash can try values against it: it goes where a secret goes.
            secret=said.get("secret", False) or hashed is not None,
            form=said.get("form"),
            derived=self._pattern(name, said["derived"]) if "derived" in said else None,
            hashed=None if hashed is None else (hashed["of"], hashed["with"]),
        )

    def _check_schema(self, keys: tuple[str, str], schema: Mapping[str, Json]) -> None:
        for where, said in check_schema(schema):
            self.refuse((*keys, *where), f"`{keys[1]}`: {said}", "write it in the contracts' schema language")

    def _pattern(self, name: str, text: str) -> tuple[str | FieldName, ...]:
        """`postgresql://{user}@{host}` as literal pieces and names."""
        pieces: list[str | FieldName] = []
        position = 0
        for match in _PLACEHOLDER.finditer(text):
            pieces += [text[position : match.start()], FieldName(match.group(1))]
            position = match.end()
        pieces.append(text[position:])
        if any(isinstance(each, str) and ("{" in each or "}" in each) for each in pieces):
            self.refuse(
                ("fields", name, "derived"),
                f"`{name}`: a brace that opens or closes nothing",
                "write `{field}`, with a field or an ask of this contract between the braces",
            )
        return tuple(each for each in pieces if each != "")

    # --- what the parts say of each other --------------------------------------------------------------

    def check(self, contract: Contract) -> None:
        """Refuse what is wrong with the parts together."""
        self._check_names(contract)
        self._check_defaults(contract)
        self._check_derived(contract)
        self._check_hashed(contract)
        self._check_credential(contract)
        if self.name == "secret" and not self.refusals:
            self._check_secret(contract)

    def _check_names(self, contract: Contract) -> None:
        for name in contract.asks:
            if name in OPTIONS:
                self.refuse(
                    ("asks", name), f"`{name}` is an option of every requirement", "give it another name"
                )
            if name in contract.fields:
                self.refuse(("asks", name), f"`{name}` is a field too", "give one of the two another name")
        for number, name in enumerate(contract.unique):
            if name not in contract.asks:
                known = ", ".join(contract.asks) or "none"
                self.refuse(
                    ("unique", number), f"`{name}` is none of its asks", f"the asks are: {known}", name
                )

    def _check_defaults(self, contract: Contract) -> None:
        for name, ask in contract.asks.items():
            if ask.has_default and not self._faulty("asks", name):
                wrong = check_value(ask.schema, ask.default)
                if wrong is not None:
                    self.refuse(
                        ("asks", name, "default"),
                        f"`{name}`: its default does not fit: {wrong}",
                        "give a default that fits, or none",
                    )

    def _faulty(self, *keys: str) -> bool:
        return any(each.at.keys[: len(keys)] == keys for each in self.refusals)

    def _check_derived(self, contract: Contract) -> None:
        graph: dict[str, set[str]] = {}
        for name, field in contract.fields.items():
            if field.derived is None:
                if field.form is not None and not field.secret:
                    self.refuse(("fields", name, "form"), f"`{name}` is no secret", "remove `form`")
                continue
            names = {each.name for each in field.derived if isinstance(each, FieldName)}
            graph[name] = names
            self._check_reads(contract, name, names)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            path = list(reversed(error.args[1]))
            self.refuse(
                ("fields", path[0], "derived"),
                f"each is derived from the next: {' -> '.join(path)}",
                "derive one of them from something else",
            )

    def _check_reads(self, contract: Contract, name: str, names: set[str]) -> None:
        keys = ("fields", name, "derived")
        for read in sorted(names):
            if read not in contract.fields and read not in contract.asks:
                known = ", ".join([*contract.fields, *contract.asks])
                self.refuse(
                    keys, f"`{name}` reads what is no field or ask of it", f"it may read: {known}", read
                )
                continue
            schema = (contract.fields.get(read) or contract.asks[read]).schema
            if schema.get("type") in ("array", "object", "null"):
                self.refuse(
                    keys, f"`{name}` reads `{read}`, which is no text", "read text, integers, true or false"
                )
            if read in contract.fields and contract.fields[read].secret and not contract.fields[name].secret:
                self.refuse(
                    keys,
                    f"`{name}` reads the secret `{read}` and is none itself",
                    f"say `secret: true` of `{name}`",
                )

    def _check_hashed(self, contract: Contract) -> None:
        for name, field in contract.fields.items():
            if field.hashed is None:
                continue
            self._check_hash_of(contract, name, field.hashed[0])
            if not self._faulty("fields", name) and not fits(field.schema, field.hashed[1]):
                self.refuse(
                    ("fields", name),
                    f"`{name}`: no hash by {field.hashed[1]} fits its schema",
                    f"say `type: string`; the vault makes them such as {EXAMPLES[field.hashed[1]]}",
                )
            if field.form is not None:
                self.refuse(("fields", name, "form"), f"`{name}` is a hash", "remove `form`")
            if field.derived is not None:
                self.refuse(("fields", name), f"`{name}` is both derived and hashed", "leave one of the two")

    def _check_hash_of(self, contract: Contract, name: str, of: str) -> None:
        credential = contract.credential
        made = credential.secret if credential is not None and credential.by == "vault" else None
        if of == made:
            return
        here = f"`credential: {{secret: {of}, by: vault, …}}`"
        self.refuse(
            ("fields", name, "hashed"),
            f"`{name}` is a hash of `{of}`, which is no secret that the vault makes",
            f"hash `{made}`" if made else f"let it be what the vault makes, {here}",
            "" if of in contract.fields else of,
        )

    def _check_credential(self, contract: Contract) -> None:
        credential = contract.credential
        if credential is None:
            return
        for part, name in (("secret", credential.secret), ("login", credential.login)):
            if name is None:
                continue
            fault = _credential_fault(contract, part, name)
            if fault is not None:
                fields = ", ".join(contract.fields) or "none"
                lacks = "" if name in contract.fields else name
                self.refuse(("credential", part), f"`{name}` {fault}", f"the fields are: {fields}", lacks)
        if credential.by == "vault" and not self.refusals:
            field = contract.fields[credential.secret]
            if not can_be_made(field.schema, field.form or "alnum"):
                self.refuse(
                    ("fields", credential.secret),
                    f"the vault can make no `{credential.secret}`: its form does not meet its schema",
                    "give another `form`, or a pattern that it meets",
                )

    def _check_secret(self, contract: Contract) -> None:
        """The resolver and the vault rely on the shape of the shipped contract `secret`."""
        value, credential = contract.fields.get("value"), contract.credential
        fits = value is not None and value.secret and len(contract.fields) == 1
        if not fits or credential is None or (credential.secret, credential.by) != ("value", "vault"):
            self.refuse(
                ("fields",),
                "the contract `secret` has one field, the secret `value`, made by the vault",
                "take it as gitmesh ships it",
            )


def _hashable(fields: Mapping[str, Field]) -> dict[str, Field]:
    """The fields, of which those that are hashed can be."""
    found = dict(fields)
    for each in fields.values():
        if each.hashed is not None and each.hashed[0] in found:
            of, by = each.hashed
            found[of] = replace(found[of], schema=hashable(found[of].schema, by))
    return found


def _credential_fault(contract: Contract, part: str, name: str) -> str | None:
    field = contract.fields.get(name)
    if field is None:
        return "is none of its fields"
    if field.derived is not None or field.hashed is not None:
        return "has another source: a credential is neither derived nor hashed"
    if part == "secret" and not field.secret:
        return "is no secret: say `secret: true` of it"
    if part == "login" and field.secret:
        return "is a secret; a login is none"
    return None


def _credential(said: Mapping[str, Json]) -> Credential:
    return Credential(
        secret=said["secret"],
        by=said["by"],
        rotation=said["rotation"],
        check=said["check"],
        login=said.get("login"),
        max_age=said.get("max-age"),
    )
