"""A module's definition against the contracts, as a whole."""

from __future__ import annotations

import pytest

from gitmesh.core.contract_parse import parse_contract
from gitmesh.core.definition import check_module
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.document import read
from gitmesh.repo.load_module import read_module
from tests.core.definitions import SEATS, refusals_of, with_container
from tests.real import shared


def test_nothing_to_refuse() -> None:
    text = with_container("""
user: '1:1'
command: [app, '--name=${db:database}', '--port', '${http:port}']
env:
  HOST: '${db:host}:${db:port}'
  PASSWORD_FILE: {file: '${db:password}'}
  URL: '${web:url}'
  NAME: '${web:name}'
  DATA: /data/files
  LIST: a:/data/x
  ROOT: /
  LINK: https://example/x
  SECRETS: /run/secrets/x
  ZONE: '${mesh:timezone}'
env-from: words
env-file: {reason: it reads no file, env: {KEY: '${key:value}', OTHER: /etc/app/app.ini}}
files:
  /etc/app/app.ini: {ini: {main: {password: '${db:password}', path: /anywhere, port: '${db:port}'}}}
mounts: {/data: data, /more: data/more}
publish: [http]
health: {http: {port: http, path: /}, within: 30s}
when:
  mail:
    env: {TOKEN_FILE: {file: '${mail:token}'}, NAME: '${mail:name}'}
  extra:
    env: {EXTRA: /extra/x}
    mounts: {/extra: extra}
  side: {publish: [side]}
""")
    assert refusals_of(text) == []


def test_the_modules_of_the_example_mesh() -> None:
    contracts = {}
    for file in shared("example-mesh/contracts").glob("*.yaml"):
        value, _ = read(file.name, file.read_bytes())
        contract, _ = parse_contract(f"contracts/{file.name}", value)
        assert contract is not None
        contracts[file.stem] = contract
    seats = {**SEATS, "mesh-store": "postgres-database", "mesh-broker": "amqp-vhost"}
    problems: list[Refusal] = []
    folders = sorted(shared("example-mesh/modules").iterdir())
    for folder in folders:
        value, _ = read(folder.name, (folder / "module.yaml").read_bytes())
        beside = {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "module.yaml"}
        module, refusals = read_module(f"modules/{folder.name}/module.yaml", value, beside)
        problems += [*refusals, *check_module(module, contracts, seats)]
    assert problems == []
    assert len(folders) == 21


@pytest.mark.rule("B10")
def test_everything_at_once() -> None:
    text = with_container(
        "env: {A: '${key:value}', B: '${db:nothing}', C: /nowhere}\nafter: [nobody]\npublish: [data]"
    )
    assert {each.code for each in refusals_of(text)} == {
        Code.SECRET_EXPOSED,
        Code.REFERENCE_UNKNOWN,
        Code.HOST_PATH_EXPOSED,
        Code.CONTAINER_UNKNOWN,
    }
    assert len(refusals_of(text)) == 5
