"""Fields that a provider makes for each consumer are read, or listed as unused (A10)."""

from __future__ import annotations

import pytest

from gitmesh.core.contract_parse import parse_contract
from gitmesh.core.definition_unused import check_unread, consumed_fields
from gitmesh.core.model import Module
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.document import check, read
from gitmesh.repo.load_module import read_module

CONTRACT = """
contract: bucket
fields:
  host: {type: string}
  name: {type: string}
  path: {type: string, derived: '/{name}'}
  url:  {type: string, derived: 'http://{host}{path}'}
"""

PROVIDER = """
module: store
requires: {api: {host: port, listens: 9000}}
provides:
  bucket: {serves: {host: '${api:host}', name: 'b-${consumer:as:dns}'}}
"""


def _module(text: str) -> Module:
    value, refused = read("modules/app/module.yaml", text.encode())
    assert refused == []
    assert check("module", "modules/app/module.yaml", value) == []
    module, refused = read_module("modules/app/module.yaml", value, {})
    assert refused == []
    return module


def _refusals(env: str, more: str = "", provider: str = PROVIDER) -> list[Refusal]:
    """What is refused of a consumer with this environment."""
    value, _ = read("contracts/bucket.yaml", CONTRACT.encode())
    contract, refused = parse_contract("contracts/bucket.yaml", value)
    assert refused == []
    assert contract is not None
    consumer = _module(f"""
module: app
requires: {{files: {{module: bucket}}}}
containers:
  app:
    image: docker.io/library/app:1@sha256:{"0" * 64}
    env: {env}
{more}
""")
    consumed = consumed_fields([_module(provider), consumer])
    return check_unread(consumer, {"bucket": contract}, consumed)


@pytest.mark.rule("A10")
def test_a_literal_in_the_place_of_a_consumed_field_is_refused() -> None:
    (refusal,) = _refusals("{HOST: '${files:host}', NAME: b-app}")
    assert refusal.code is Code.FIELD_UNREAD
    assert refusal.subject == "app.files.name"
    assert refusal.at.keys == ("requires", "files")
    assert refusal.related[0].at.keys == ("provides", "bucket", "serves", "name")


@pytest.mark.rule("A10")
@pytest.mark.parametrize("field", ["name", "path", "url"])
def test_it_is_read_directly_or_through_what_contains_it(field: str) -> None:
    assert _refusals(f"{{HOST: '${{files:host}}', SAID: '${{files:{field}}}'}}") == []


@pytest.mark.rule("A10")
def test_it_is_listed_as_unused_with_a_reason() -> None:
    assert _refusals("{HOST: '${files:host}'}", "unused: {files: {name: it lists them all}}") == []


@pytest.mark.rule("A10")
def test_a_requirement_that_nothing_is_read_of_is_left_alone() -> None:
    assert _refusals("{HOST: elsewhere}") == []


@pytest.mark.rule("A10")
def test_a_field_that_is_the_same_for_every_consumer_may_stay_unread() -> None:
    same = PROVIDER.replace("b-${consumer:as:dns}", "everyone")
    assert _refusals("{HOST: '${files:host}'}", provider=same) == []
