"""A module's definition against the contracts: what is refused at parse, where, and what answers it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gitmesh.core.contract_builtin import SECRET
from gitmesh.core.contract_parse import parse_contract
from gitmesh.core.definition import check_module
from gitmesh.core.model import Contract
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo.document import check, read
from gitmesh.repo.load_module import read_module
from tests.real import shared

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


def _refusals(
    text: str, broken: tuple[str, ...] = (), beside: Mapping[str, bytes] | None = None
) -> list[Refusal]:
    value, refused = read("modules/app/module.yaml", text.encode())
    assert refused == []
    assert check("module", "modules/app/module.yaml", value) == [], "the module fits its schema"
    module, refusals = read_module("modules/app/module.yaml", value, beside or {})
    return [*refusals, *check_module(module, PARSED, SEATS, broken)]


def _one(text: str, code: Code, *keys: str | int) -> Refusal:
    refusals = _refusals(text)
    assert [(each.code, each.at.keys) for each in refusals] == [(code, keys)], "one mistake, one refusal"
    return refusals[0]


def _said(refusal: Refusal) -> str:
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
  mesh:  {mesh: facts}
"""

IMAGE = "image: 'docker.io/library/app:1@sha256:abc'"


def _container(lines: str) -> str:
    """A module with one container that has `lines`."""
    indented = "\n".join(f"    {line}" for line in lines.strip("\n").split("\n"))
    return f"{HEAD}containers:\n  app:\n    {IMAGE}\n{indented}\n"


C = ("containers", "app")


def test_nothing_to_refuse() -> None:
    text = _container("""
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
    assert _refusals(text) == []


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


# --- requirements --------------------------------------------------------------------------------------


def _requires(line: str) -> str:
    return f"module: app\nrequires:\n  http: {{host: port, listens: 80}}\n  it: {line}\n"


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("{module: databse}", Code.CONTRACT_UNKNOWN, ("module",)),
        ("{module: database, extension: [a]}", Code.ASK_UNKNOWN, ("extension",)),
        ("{module: database, default: 3}", Code.ASK_UNKNOWN, ("default",)),
        ("{module: database, extensions: a}", Code.ASK_TYPE, ("extensions",)),
        ("{module: database, extensions: [1]}", Code.ASK_TYPE, ("extensions",)),
        ("{module: route}", Code.ASK_MISSING, ()),
        ("{module: route, upstream: '${http:address}', name: a.b}", Code.ASK_UNKNOWN, ("name",)),
        ("{module: route, upstream: 'no port'}", Code.ASK_TYPE, ("upstream",)),
        ("{module: secret, form: octal}", Code.ASK_TYPE, ("form",)),
        ("{module: secret, form: text}", Code.ASK_TYPE, ("form",)),
        ("{module: secret, length: 3}", Code.ASK_TYPE, ("length",)),
        (
            "{module: database, narrow: {password: {minLength: 8}}}",
            Code.NARROW_LOOSENS,
            ("narrow", "password"),
        ),
        (
            "{module: database, narrow: {password: {pattern: '[0-9]+'}}}",
            Code.NARROW_LOOSENS,
            ("narrow", "password"),
        ),
        (
            "{module: secret, narrow: {value: {maxLength: 20, minLength: 30}}}",
            Code.NARROW_LOOSENS,
            ("narrow", "value"),
        ),
        (
            "{module: database, narrow: {pasword: {minLength: 32}}}",
            Code.REFERENCE_UNKNOWN,
            ("narrow", "pasword"),
        ),
        ("{module: scrape, address: 'x', takes: start}", Code.ASK_UNKNOWN, ("takes",)),
        ("{module: scrape, address: 'x', max-age: 90d}", Code.ASK_UNKNOWN, ("max-age",)),
        ("{operator: {type: integer, minimum: 1}, default: 0}", Code.VALUE_TYPE, ("default",)),
        ("{operator: {type: string, pattern: '(a+)+'}}", Code.SCHEMA, ("operator", "pattern")),
    ],
)
@pytest.mark.rule("A1")
@pytest.mark.rule("A6")
def test_a_requirement_that_is_refused(line: str, code: Code, keys: tuple[str, ...]) -> None:
    refusal = _one(_requires(line), code, "requires", "it", *keys)
    assert refusal.subject.startswith("app.it")
    assert refusal.answers


@pytest.mark.rule("A6")
def test_a_contract_that_is_unknown_is_answered() -> None:
    refusal = _one(_requires("{module: databse}"), Code.CONTRACT_UNKNOWN, "requires", "it", "module")
    assert "did you mean `database`?" in _said(refusal)


@pytest.mark.parametrize(
    "line",
    [
        "{module: database, narrow: {password: {minLength: 32}}}",
        "{module: database, seat: mesh-store}",
        "{module: secret, seat: mesh-vault, form: base64url, length: 43}",
        "{module: secret, source: operator, form: text, lines: many}",
        "{module: secret, form: hex, length: 64, narrow: {value: {pattern: '[0-9a-f]{64}'}}}",
        "{module: token, takes: never, max-age: 90d}",
        "{operator: {type: integer, minimum: 1}, default: 2}",
    ],
)
@pytest.mark.rule("A6")
def test_a_requirement_that_may_be(line: str) -> None:
    assert _refusals(_requires(line)) == []


@pytest.mark.parametrize("kind", ["cloud", "node", "provider"])
@pytest.mark.rule("A1")
@pytest.mark.rule("A2")
def test_another_kind_of_provider(kind: str) -> None:
    value, _ = read("m", _requires(f"{{{kind}: database}}").encode())
    assert [each.at.keys for each in check("module", "m", value)] == [("requires", "it")]


@pytest.mark.rule("A13")
def test_a_persistence_flag() -> None:
    line = "{host: directory, owner: '1:1', mode: '0750', persistent: true}"
    value, _ = read("m", _requires(line).encode())
    assert [each.at.keys for each in check("module", "m", value)] == [("requires", "it", "persistent")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{module: database, seat: mesh-controller}", Code.SEAT_FOUNDATION),
        ("{module: database, seat: mesh-stor}", Code.SEAT_UNKNOWN),
        ("{module: database, seat: mesh-edge}", Code.SEAT_UNKNOWN),
        ("{module: secret, seat: mesh-store}", Code.SECRET_RESERVED),
    ],
)
@pytest.mark.rule("A7")
@pytest.mark.rule("A8")
def test_a_seat_that_delivers_no_such_thing(line: str, code: Code) -> None:
    _one(_requires(line), code, "requires", "it", "seat")


@pytest.mark.rule("A15")
def test_the_seats_of_a_module() -> None:
    assert _refusals("module: app\nseats: [mesh-controller]\n") == []
    _one("module: app\nseats: [mesh-stor]\n", Code.SEAT_UNKNOWN, "seats", 0)
    _one("module: app\nseats: [mesh-store]\n", Code.PROVIDES_MISMATCH, "seats", 0)


@pytest.mark.rule("B14")
def test_two_requirements_of_one_contract() -> None:
    two = "module: app\nrequires:\n  one: {module: database}\n  two: {module: database%s}\n"
    assert "`as: two`" in _said(_one(two % "", Code.AS_NEEDED, "requires", "two"))
    assert _refusals(two % ", as: ro") == []
    three = two % ", as: ro" + "  three: {module: database, as: ro}\n"
    _one(three, Code.AS_NEEDED, "requires", "three")
    assert _refusals("module: app\nrequires:\n  one: {module: secret}\n  two: {module: secret}\n") == []


def test_what_stands_on_a_broken_contract_is_silent() -> None:
    text = _container("env: {X: '${gone:field}', Y: '${gone:other}'}").replace(
        "requires:\n", "requires:\n  gone: {module: gone, ask: 3}\n"
    )
    assert _refusals(text, broken=("gone",)) == []
    assert [each.code for each in _refusals(text)] == [Code.CONTRACT_UNKNOWN], (
        "and an unknown one says so once"
    )


def test_asks_that_read_each_other() -> None:
    text = (
        "module: app\nrequires:\n"
        "  one: {module: scrape, address: '${two:address}'}\n"
        "  two: {module: scrape, as: b, address: '${one:address}'}\n"
    )
    refusals = _refusals(text)
    assert [each.code for each in refusals] == [Code.CYCLE]
    assert "one:address" in refusals[0].message
    seen = "  seen: {module: scrape, address: '${web:url}'}\n  mesh:"
    assert _refusals(_container("env: {X: x}").replace("  mesh:", seen)) == []


def test_unused_names_fields() -> None:
    text = "module: app\nrequires: {db: {module: database}}\nunused: {%s: {%s: why}}\n"
    assert _refusals(text % ("db", "database")) == []
    _one(text % ("dv", "database"), Code.REFERENCE_UNKNOWN, "unused", "dv")
    _one(text % ("db", "prefix"), Code.REFERENCE_UNKNOWN, "unused", "db", "prefix")


# --- reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("${wep:host}", "did you mean `web`?"),
        ("${db:hots}", "did you mean `host`?"),
        ("${web:uri}", "`url`, `proxy`, `upstream`, `scheme`, `name`"),
        ("${http:number}", "`port`, `listens`, `host`, `address`"),
        ("${data:owner}", "`location`"),
        ("${word:text}", "`value`"),
    ],
)
@pytest.mark.rule("A4")
def test_a_reference_to_nothing(text: str, may: str) -> None:
    refusal = _one(_container(f"env: {{X: '{text}'}}"), Code.REFERENCE_UNKNOWN, *C, "env", "X")
    assert may in _said(refusal)


@pytest.mark.parametrize("text", ["${HOME}", "${db}", "${db:host:dns}", "${DB:-x}", "${"])
@pytest.mark.rule("A4")
def test_another_form(text: str) -> None:
    _one(_container(f"env: {{X: '{text}'}}"), Code.REFERENCE_FORM, *C, "env", "X")


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("user: app\nhealth: {command: [check, '${db:host}']}", ("health", "command", 1)),
        ("reload: {command: [reload, '${db:host}']}", ("reload", "command", 1)),
        ("mounts: {/x: 'data/${db:host}'}", ("mounts", "/x")),
        ("files: {'/etc/${db:host}': x}", ("files", "/etc/${db:host}")),
        ("files: {/etc/x: {yaml: {a: {'${db:host}': b}}}}", ("files", "/etc/x", "yaml", "a", "${db:host}")),
    ],
)
@pytest.mark.rule("A4")
def test_a_reference_where_nothing_is_read(lines: str, keys: tuple[str | int, ...]) -> None:
    _one(_container(lines), Code.REFERENCE_FORM, *C, *keys)


@pytest.mark.rule("A4")
def test_an_escaped_form_is_text() -> None:
    text = _container("command: [sh, '$${HOME}']\nhealth: {command: [sh, '$${HOME}']}")
    value, _ = read("m", text.encode())
    module, refusals = read_module("m", value, {})
    assert refusals == []
    assert module.containers["app"].command[1] == ("${HOME}",)
    assert module.containers["app"].health == {"command": ["sh", "${HOME}"]}


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("${bound:database:host}", "${requirement:field}"),
        ("${bound:host}", "${requirement:field}"),
        ("${machine:name}", "{host: machine}"),
        ("${port:http}", "{host: port"),
        ("${secret:key}", "{module: secret}"),
        ("${settings:workers}", "operator"),
        ("${fact:name}", "{mesh: facts}"),
    ],
)
@pytest.mark.rule("A16")
def test_a_retired_form_names_the_new_one(text: str, new: str) -> None:
    assert new in _said(_one(_container(f"env: {{X: '{text}'}}"), Code.RETIRED_FORM, *C, "env", "X"))


@pytest.mark.rule("A11")
def test_no_module_reads_a_seat() -> None:
    refusal = _one(_container("env: {X: '${seat:mesh-store}'}"), Code.RETIRED_FORM, *C, "env", "X")
    assert "no module reads a seat" in _said(refusal)


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("env: {X: '${key:value}'}", ("env", "X")),
        ("env: {X: 'db://${db:password}@x'}", ("env", "X")),
        ("env: {X: '${db:url}'}", ("env", "X")),
        ("command: [app, '${key:value}']", ("command", 1)),
        ("entrypoint: ['${key:value}']", ("entrypoint", 0)),
        ("hostname: '${key:value}'", ("hostname",)),
        ("when: {mail: {env: {X: '${mail:token}'}}}", ("when", "mail", "env", "X")),
    ],
)
@pytest.mark.rule("A5")
def test_a_secret_where_others_read_it(lines: str, keys: tuple[str | int, ...]) -> None:
    refusal = _one(_container(lines), Code.SECRET_EXPOSED, *C, *keys)
    assert "{file: " in _said(refusal)


@pytest.mark.rule("A5")
def test_a_secret_in_what_is_asked() -> None:
    text = _container("env: {X: x}").replace("'${http:address}'", "'${key:value}'")
    _one(text, Code.SECRET_EXPOSED, "requires", "web", "upstream")


@pytest.mark.rule("A5")
def test_a_secret_of_many_lines_in_an_env_file() -> None:
    text = _container("env-file: {reason: r, env: {X: '${key:value}'}}")
    many = text.replace("key:   {module: secret}", "key: {module: secret, source: operator, lines: many}")
    _one(many, Code.REFERENCE_FORM, *C, "env-file", "env", "X")
    _one(_container('env-file: {reason: r, env: {X: "a\\nb"}}'), Code.SCHEMA, *C, "env-file", "env", "X")


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("env: {X: '${data:location}'}", ("env", "X")),
        ("command: ['${data:location}/x']", ("command", 0)),
        ("files: {/etc/x: '${data:location}'}", ("files", "/etc/x")),
        ("env: {X: {file: '${data:location}'}}", ("env", "X", "file")),
        ("env: {X: /var/cache/app}", ("env", "X")),
        ("env: {X: 'a=b,c=/cache'}", ("env", "X")),
        ("env: {X: 'file:///cache/x'}", ("env", "X")),
        ("env: {X: '/data2/x'}\nmounts: {/data: data}", ("env", "X")),
        ("env: {X: '/certs/${word:value}/x'}", ("env", "X")),
        ("env-file: {reason: r, env: {X: /cache}}", ("env-file", "env", "X")),
        ("env: {X: /extra/x}\nwhen: {extra: {mounts: {/extra: extra}}}", ("env", "X")),
    ],
)
@pytest.mark.rule("A3")
def test_a_path_of_the_host(lines: str, keys: tuple[str | int, ...]) -> None:
    _one(_container(lines), Code.HOST_PATH_EXPOSED, *C, *keys)


@pytest.mark.parametrize(
    "lines",
    [
        "env: {X: /data}\nmounts: {/data: data}",
        "env: {X: /cache/x}\ntmpfs: {/cache: 64m}",
        "env: {X: /opt/app}\nimage-paths: [/opt]",
        "env: {X: '/etc/${word:value}/a'}\nmounts: {/etc: data}",
        "env: {X: /etc/app.conf}\nfiles: {/etc/app.conf: x}",
        "env: {X: 'http://db:80/x', Y: 'a/b', Z: '${web:url}/x.js'}",
    ],
)
@pytest.mark.rule("A3")
def test_a_path_of_the_container(lines: str) -> None:
    assert _refusals(_container(lines)) == []


@pytest.mark.rule("A3")
def test_a_host_job_may_read_a_location() -> None:
    job = "jobs:\n  it: {at: daily, host: [gitmesh, deploy], env: {X: '${data:location}', Y: /etc/x}}\n"
    assert _refusals(HEAD + job) == []
    inside = "jobs:\n  it: {at: daily, in: app, command: [x], env: {X: '${data:location}'}}\n"
    _one(_container("env: {A: b}") + inside, Code.HOST_PATH_EXPOSED, "jobs", "it", "env", "X")


@pytest.mark.rule("A3")
def test_a_provider_serves_no_path_of_its_host() -> None:
    text = HEAD + "provides:\n  token:\n    serves: {name: '${data:location}'}\n    answers: [token]\n"
    refusals = _refusals(text + "    provisioner: {adapter: postgres, at: http}\n")
    assert [each.code for each in refusals] == [Code.HOST_PATH_EXPOSED]


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("env: {X: '${mail:name}'}", ("env", "X")),
        ("when: {extra: {env: {X: '${mail:name}'}}}", ("when", "extra", "env", "X")),
        ("mounts: {/x: extra}", ("mounts", "/x")),
        ("publish: [side]", ("publish", 0)),
        ("health: {tcp: side}", ("health", "tcp")),
        ("when: {db: {env: {X: y}}}", ("when", "db")),
    ],
)
def test_what_may_not_be_there(lines: str, keys: tuple[str | int, ...]) -> None:
    _one(_container(lines), Code.REFERENCE_OPTIONAL, *C, *keys)


def test_a_list_in_text() -> None:
    text = _container("env: {X: '${hosts:names}'}").replace("  mesh:", "  hosts: {host: machines}\n  mesh:")
    _one(text, Code.REFERENCE_FORM, *C, "env", "X")
    whole = _container("files: {/x: {json: {all: '${hosts:names}'}}}")
    assert _refusals(whole.replace("  mesh:", "  hosts: {host: machines}\n  mesh:")) == []


# --- containers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "code", "keys"),
    [
        ("after: [worker]", Code.CONTAINER_UNKNOWN, ("after", 0)),
        ("after: [app]", Code.CYCLE, ("after",)),
        ("mounts: {/x: http}", Code.REFERENCE_UNKNOWN, ("mounts", "/x")),
        ("mounts: {/x: /srv/x}", Code.REFERENCE_UNKNOWN, ("mounts", "/x")),
        ("mounts: {/x: data/../y}", Code.SCHEMA, ("mounts", "/x")),
        ("publish: [data]", Code.REFERENCE_UNKNOWN, ("publish", 0)),
        ("health: {http: {port: htp, path: /}}", Code.REFERENCE_UNKNOWN, ("health", "http", "port")),
        ("env-from: word", Code.REFERENCE_UNKNOWN, ("env-from",)),
        ("env-from: data", Code.REFERENCE_UNKNOWN, ("env-from",)),
        ("when: {nobody: {env: {X: y}}}", Code.REFERENCE_UNKNOWN, ("when", "nobody")),
        ("files: {/data/x: y}\nmounts: {/data: data}", Code.SCHEMA, ("files", "/data/x")),
        ("env: {A: x}\nenv-file: {reason: r, env: {A: y}}", Code.SCHEMA, ("env-file", "env", "A")),
        ("env: {A: {file: x}, a: {file: y}}", Code.SCHEMA, ("env", "a")),
        ("env: {A: {file: x}}\nfiles: {/run/secrets/a: y}", Code.SCHEMA, ("env", "A")),
        ("files: {/x: {from: x.sh}}", Code.FILE_MISSING, ("files", "/x", "from")),
    ],
)
@pytest.mark.rule("A2")
def test_a_container_that_is_refused(lines: str, code: Code, keys: tuple[str | int, ...]) -> None:
    text = _container(lines)
    if "/srv/x" in lines:
        value, _ = read("m", text.encode())
        assert [each.at.keys for each in check("module", "m", value)] == [(*C, *keys)], (
            "no host path, by its schema"
        )
        return
    _one(text, code, *C, *keys)


def test_a_file_beside_the_module() -> None:
    text = _container("files: {/x: {from: bin/x.sh, mode: '0555'}}")
    value, _ = read("m", text.encode())
    module, refusals = read_module("modules/app/module.yaml", value, {"bin/x.sh": b"GMCANARY", "other": b""})
    assert refusals == []
    assert module.sources == {"bin/x.sh": b"GMCANARY"}


def test_like_another_container() -> None:
    text = _container("""
command: [serve]
env: {A: a, B: '${db:host}'}
mounts: {/data: data}
publish: [http]
health: image
limits: {memory: 1g, nofile: 5}
tmpfs: {/cache: 1m}
when: {mail: {env: {M: '${mail:name}'}}}
""")
    text += "  worker: {like: app, command: [work], env: {B: b, C: c}, limits: {memory: 2g}}\n"
    text += "jobs:\n  nightly: {at: daily, like: worker, command: [clean], user: '5:5', files: {/etc/n: n}}\n"
    assert _refusals(text) == []
    value, _ = read("m", text.encode())
    module, _ = read_module("m", value, {})
    worker, job = module.containers["worker"], module.jobs["nightly"]
    assert worker.command == (("work",),)
    assert list(worker.env) == ["A", "B", "C"]
    assert worker.env["B"] == ("b",)
    assert (worker.publish, worker.health) == ((), None)
    assert worker.plain == {"limits": {"memory": "2g", "nofile": 5}, "tmpfs": {"/cache": "1m"}}
    assert list(worker.when) == ["mail"]
    assert worker.image == module.containers["app"].image
    assert (job.where, job.container, job.spec.user) == ("like", "worker", "5:5")
    assert list(job.spec.mounts) == ["/data"]
    assert list(job.spec.env) == ["A", "B", "C"]


def test_a_mistake_that_is_taken_over_is_one() -> None:
    text = _container("env: {A: '${db:nothing}'}") + "  worker: {like: app, command: [work]}\n"
    _one(text, Code.REFERENCE_UNKNOWN, *C, "env", "A")


@pytest.mark.parametrize("other", ["nobody", "worker"])
def test_like_nobody(other: str) -> None:
    text = _container("env: {A: a}") + f"  worker: {{like: {other}, {IMAGE}}}\n"
    _one(text, Code.CONTAINER_UNKNOWN, "containers", "worker", "like")


def test_a_job_of_no_container() -> None:
    job = "jobs:\n  it: {at: daily, in: ap, command: [x]}\n"
    assert "did you mean `app`?" in _said(
        _one(_container("env: {A: a}") + job, Code.CONTAINER_UNKNOWN, "jobs", "it", "in")
    )


@pytest.mark.rule("A14")
def test_restart_on() -> None:
    text = _container("env: {KEY_FILE: {file: '${key:value}'}}\nmounts: {/certs: data}")
    assert _refusals(text + "restart-on: [/certs/live/x.pem, /run/secrets/key_file]\n") == []
    _one(text + "restart-on: [/etc/hosts]\n", Code.REFERENCE_UNKNOWN, "restart-on", 0)


# --- providing -----------------------------------------------------------------------------------------


def _provides(lines: str, requires: str = "") -> str:
    indented = "\n".join(f"  {line}" for line in lines.strip("\n").split("\n"))
    return (
        "module: app\nrequires:\n  sql: {host: port, listens: 5432}\n  root: {module: secret, takes: apply}\n"
        f"  domain: {{operator: {{type: string}}}}\n{requires}provides:\n{indented}\n"
    )


P = ("provides", "database")
SERVES = "host: '${sql:host}', port: '${sql:port}', database: '${consumer:as}'"


@pytest.mark.rule("A12")
def test_a_provider() -> None:
    assert (
        _refusals(
            _provides(f"""
database:
  accepts: {{extensions: {{items: {{enum: [hstore]}}}}}}
  serves: {{{SERVES}}}
  provisioner: {{adapter: postgres, at: sql, login: postgres, admin: root}}
""")
        )
        == []
    )
    affixed = f"database:\n  serves: {{{SERVES}, user: '${{consumer:login}}@${{domain:value}}'}}\n"
    assert _refusals(_provides(affixed)) == []
    shared_credential = f"database:\n  serves: {{{SERVES}, user: all, password: '${{root:value}}'}}\n"
    assert _refusals(_provides(shared_credential)) == []


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("  serves: {host: '${sql:host}', port: '${sql:port}'}", ()),
        (f"  serves: {{{SERVES}, tls: disable}}", ("serves", "tls")),
        (f"  serves: {{{SERVES}, url: 'db://x'}}", ("serves", "url")),
        (f"  serves: {{{SERVES}, password: GMCANARYabcdefghijklmnop}}", ("serves", "password")),
        ("  serves: {host: '${sql:host}', port: many, database: x}", ("serves", "port")),
        (
            f"  serves: {{{SERVES}}}\n  answers: [password]\n  provisioner: {{adapter: redis, at: sql}}",
            ("answers", 0),
        ),
        (
            f"  serves: {{{SERVES}}}\n  answers: [host]\n  provisioner: {{adapter: redis, at: sql}}",
            ("answers", 0),
        ),
        (f"  serves: {{{SERVES}}}\n  answers: [user]", ("answers",)),
        (f"  serves: {{{SERVES}}}\n  accepts: {{extension: {{}}}}", ("accepts", "extension")),
        (f"  serves: {{{SERVES}}}\n  provisioner: {{adapter: vault, at: sql}}", ("provisioner",)),
    ],
)
@pytest.mark.rule("A12")
def test_a_provider_that_does_not_keep_its_contract(lines: str, keys: tuple[str | int, ...]) -> None:
    refusals = _refusals(_provides(f"database:\n{lines}"))
    first = refusals[0]
    assert first.code is Code.PROVIDES_MISMATCH
    assert first.at.keys[: len(P) + len(keys)] == (*P, *keys)
    assert "GMCANARY" not in repr(refusals)


@pytest.mark.rule("A12")
def test_what_a_backend_issues_is_answered() -> None:
    exec_ = "provisioner: {adapter: exec, in: app, command: [/x]}"
    container = f"containers: {{app: {{{IMAGE}}}}}\n"
    token = "token:\n  serves: {name: '${consumer:as:dns}'}\n  answers: [token]\n  " + exec_
    assert _refusals(_provides(token) + container) == []
    refusals = _refusals(_provides(token.replace("  answers: [token]\n", "")) + container)
    assert [each.code for each in refusals] == [Code.PROVIDES_MISMATCH]


@pytest.mark.parametrize(
    ("provisioner", "code", "key"),
    [
        ("{adapter: postgres, at: root}", Code.REFERENCE_UNKNOWN, "at"),
        ("{adapter: postgres, at: sql, admin: sql}", Code.REFERENCE_UNKNOWN, "admin"),
        ("{adapter: postgres, at: sql, admin: once}", Code.PROVIDES_MISMATCH, "admin"),
        ("{adapter: postgres, at: maybe}", Code.REFERENCE_OPTIONAL, "at"),
        ("{adapter: exec, in: nowhere, command: [x]}", Code.CONTAINER_UNKNOWN, "in"),
    ],
)
def test_a_provisioner_that_is_refused(provisioner: str, code: Code, key: str) -> None:
    more = "  once: {module: secret, takes: first-start}\n  maybe: {host: port, optional: true}\n"
    text = _provides(f"database:\n  serves: {{{SERVES}}}\n  provisioner: {provisioner}", more)
    _one(text, code, *P, "provisioner", key)


@pytest.mark.rule("A7")
def test_only_the_vault_provides_secrets() -> None:
    _one(
        _provides(
            "secret:\n  provisioner: {adapter: vault, at: d}",
            "  d: {host: directory, owner: '0:0', mode: '0700'}\n",
        ),
        Code.SECRET_RESERVED,
        "provides",
        "secret",
    )
    vault = (
        "module: v\nseats: [mesh-vault]\nrequires: {store: {host: directory, owner: '0:0', mode: '0700'}}\n"
    )
    assert _refusals(vault + "provides: {secret: {provisioner: {adapter: vault, at: store}}}\n") == []


def test_a_provision_of_no_contract() -> None:
    _one(_provides("databse: {serves: {}}"), Code.CONTRACT_UNKNOWN, "provides", "databse")


@pytest.mark.parametrize("said", ["consumer:node", "consumer:as:upper", "consumer:module", "consumer:host"])
@pytest.mark.rule("A9")
def test_another_fact_of_a_consumer(said: str) -> None:
    text = _provides(f"database:\n  serves: {{{SERVES}}}".replace("consumer:as", said))
    refusal = _one(text, Code.SERVES_PLACEHOLDER, *P, "serves", "database")
    assert "`${consumer:as}`, `${consumer:as:dns}`, `${consumer:login}`" in _said(refusal)


@pytest.mark.parametrize(
    "place", ["env: {X: '${consumer:as}'}", "command: ['${consumer:as}']", "files: {/x: '${consumer:as}'}"]
)
@pytest.mark.rule("A9")
def test_a_consumer_outside_serves(place: str) -> None:
    refusals = _refusals(_container(place))
    assert [each.code for each in refusals] == [Code.SERVES_PLACEHOLDER]


@pytest.mark.rule("A9")
def test_a_file_for_each_consumer() -> None:
    provides = "provides: {scrape: {serves: {}}}\n"
    tree = "{a: '${consumer:address}', b: '${consumer:as:dns}'}"
    good = f"files: {{'/jobs/${{consumer:as}}.yml': {{each: scrape, yaml: {tree}}}}}"
    assert _refusals(_container(good) + provides) == []
    bad = _refusals(_container(good.replace("consumer:address", "consumer:node")) + provides)
    assert [each.code for each in bad] == [Code.SERVES_PLACEHOLDER]
    assert "`${consumer:address}`" in _said(bad[0])
    same = _refusals(_container(good.replace("${consumer:as}.yml", "all.yml")) + provides)
    assert [each.code for each in same] == [Code.SERVES_PLACEHOLDER]
    nobody = _refusals(_container(good))
    assert (nobody[0].code, nobody[0].at.keys[-1]) == (Code.REFERENCE_UNKNOWN, "each")


@pytest.mark.rule("B10")
def test_everything_at_once() -> None:
    text = _container(
        "env: {A: '${key:value}', B: '${db:nothing}', C: /nowhere}\nafter: [nobody]\npublish: [data]"
    )
    assert {each.code for each in _refusals(text)} == {
        Code.SECRET_EXPOSED,
        Code.REFERENCE_UNKNOWN,
        Code.HOST_PATH_EXPOSED,
        Code.CONTAINER_UNKNOWN,
    }
    assert len(_refusals(text)) == 5
