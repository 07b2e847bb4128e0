"""A contract's schemas as JSON Schema has them, for an editor or another validator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitmesh.core.model import Contract, Field, Json, Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(schema: Schema) -> dict[str, Json]:
    """A schema of the contracts' subset as JSON Schema: there a pattern is looked for anywhere in a text,
    and in a contract it holds for the whole."""
    result: dict[str, Json] = dict(schema)
    if "pattern" in schema:
        result["pattern"] = f"^(?:{schema['pattern']})$"
    for keyword in ("items", "propertyNames", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            result[keyword] = json_schema(schema[keyword])
    if "properties" in schema:
        result["properties"] = {name: json_schema(each) for name, each in schema["properties"].items()}
    return result


def closed(about: str, properties: Mapping[str, Schema], required: Iterable[str]) -> dict[str, Json]:
    """A map of just these properties, each a schema of the contracts' subset."""
    needed = list(required)
    return {
        "description": about,
        "type": "object",
        "properties": {name: json_schema(each) for name, each in properties.items()},
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }


def contract_schema(contract: Contract) -> dict[str, Json]:
    """What is asked of a provider of `contract` and what its consumers read, as `asks` and `fields`."""
    asks = {
        name: {**ask.schema, "default": ask.default} if ask.has_default else ask.schema
        for name, ask in contract.asks.items()
    }
    needed = [name for name, ask in contract.asks.items() if not ask.has_default]
    fields = {name: _described(field) for name, field in contract.fields.items()}
    return {
        "$schema": DIALECT,
        "title": f"contract {contract.name}",
        "type": "object",
        "properties": {
            "asks": closed("What a consumer, or its operator, says.", asks, needed),
            "fields": closed("What a consumer reads as `${requirement:field}`.", fields, fields),
        },
        "required": ["asks", "fields"],
        "additionalProperties": False,
    }


def _described(field: Field) -> Schema:
    if not field.secret:
        return field.schema
    about = "A secret: it reaches a process as a file (A5)."
    return {**field.schema, "description": field.schema.get("description", about), "writeOnly": True}
