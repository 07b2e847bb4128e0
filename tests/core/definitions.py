"""Modules written in a few lines, and what the check of a definition says of them."""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.core.contract_builtin import SECRET
from gitmesh.core.contract_parse import parse_contract
from gitmesh.core.definition import check_module
from gitmesh.core.model import Contract
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.document import check, read
from gitmesh.repo.load_module import read_module

SEATS = {"mesh-vault": "secret", "mesh-store": "database", "mesh-edge": "route", "mesh-controller": None}

CONTRACTS = {
    "database": """
contract: database
asks:
  extensions: {type: array, items: {type: string}, default: []}
fields:
  host:     {type: string, format: hostname}
  port:     {type: integer, minimum: 1, maximum: 65535}
  database: {type: string, maxLength: 63}
  user:     {type: string}
  password: {type: string, secret: true, minLength: 24, pattern: '[A-Za-z0-9]+'}
  url:      {type: string, secret: true, derived: 'db://{user}:{password}@{host}:{port}/{database}'}
credential: {login: user, secret: password, by: vault, rotation: two, check: none}
""",
    "route": """
contract: route
unique: [name]
asks:
  upstream: {type: string, pattern: '[a-z0-9.-]+:[0-9]+'}
  scheme:   {enum: [http, https], default: http}
  name:     {type: string, format: hostname, from: operator}
fields:
  url:   {type: string, format: uri, derived: 'https://{name}'}
  proxy: {type: string}
""",
    "token": """
contract: token
fields:
  token: {type: string, secret: true}
  name:  {type: string}
credential: {secret: token, by: provider, rotation: two, check: none}
""",
    "scrape": """
contract: scrape
asks:
  address: {type: string}
fields: {}
""",
}


def _contracts() -> dict[str, Contract]:
    contracts = {"secret": SECRET}
    for name, text in CONTRACTS.items():
        value, _ = read(name, text.encode())
        contract, refusals = parse_contract(f"contracts/{name}.yaml", value)
        assert refusals == []
        assert contract is not None
        contracts[name] = contract
    return contracts


PARSED = _contracts()


def refusals_of(
    text: str, broken: tuple[str, ...] = (), beside: Mapping[str, bytes] | None = None
) -> list[Refusal]:
    value, refused = read("modules/app/module.yaml", text.encode())
    assert refused == []
    assert check("module", "modules/app/module.yaml", value) == [], "the module fits its schema"
    module, refusals = read_module("modules/app/module.yaml", value, beside or {})
    return [*refusals, *check_module(module, PARSED, SEATS, broken)]


def refused_once(text: str, code: Code, *keys: str | int) -> Refusal:
    refusals = refusals_of(text)
    assert [(each.code, each.at.keys) for each in refusals] == [(code, keys)], "one mistake, one refusal"
    return refusals[0]


def words_of(refusal: Refusal) -> str:
    return " | ".join([refusal.message, *(each.text for each in refusal.answers)])


HEAD = """
module: app
requires:
  db:    {module: database}
  web:   {module: route, upstream: '${http:address}'}
  mail:  {module: token, optional: true}
  key:   {module: secret}
  data:  {host: directory, owner: '1:1', mode: '0750'}
  http:  {host: port, listens: 3000}
  extra: {host: directory, owner: '1:1', mode: '0750', optional: true}
  side:  {host: port, optional: true}
  word:  {operator: {type: string}, default: x}
  words: {operator: {type: object, additionalProperties: {type: string}}, default: {}}
  lists: {operator: {type: object, additionalProperties: {enum: [[a], b]}}, default: {}}
  mesh:  {mesh: facts}
"""

IMAGE = "image: 'docker.io/library/app:1@sha256:abc'"


def with_container(lines: str) -> str:
    """A module with one container that has `lines`."""
    indented = "\n".join(f"    {line}" for line in lines.strip("\n").split("\n"))
    return f"{HEAD}containers:\n  app:\n    {IMAGE}\n{indented}\n"


C = ("containers", "app")
