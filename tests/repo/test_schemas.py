"""The schemas: what FORMATS allows is taken, anything else is refused in words, at its place."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmesh import assets
from gitmesh.core.refusal import Code, Refusal
from gitmesh.repo import schema
from gitmesh.repo.document import check, locate, read


def refusals_of(kind: str, text: str) -> list[Refusal]:
    value, refusals = read("f.yaml", text.encode())
    assert refusals == []
    found = check(kind, "f.yaml", value)
    assert all(refusal.code is Code.SCHEMA and refusal.subject == "f.yaml" for refusal in found)
    return found


def messages(kind: str, text: str) -> list[str]:
    return [refusal.message for refusal in refusals_of(kind, text)]


KIND_OF = {
    "assignments": "assignment",
    "contracts": "contract",
    "modules": "module",
    "nodes": "node",
    "spreads": "spread",
}


@pytest.mark.parametrize("folder", [*KIND_OF, "mesh.yaml"])
def test_the_example_mesh_is_valid(folder: str, example_mesh: Path) -> None:
    base = example_mesh / folder
    files = [base] if base.is_file() else sorted(base.rglob("*.yaml"))
    assert files
    for file in files:
        value, refusals = read(file.name, file.read_bytes())
        assert refusals == []
        assert check(KIND_OF.get(folder, "mesh"), file.name, value) == []


FULL = {
    "mesh": """
        mesh: hellas
        id: 7f0c2b9e41d84a6fb3a1c05d9e2f6a10
        domain: example.org
        timezone: Europe/Berlin
        origin: ssh://git@git.example.org/hellas.git
        mailbox: ssh://git@git.example.org/hellas-mailbox.git
        deploy: {branch: deploy, keep: 20}
        seats: {mesh-search: search-index}
        choose: {postgres-database: postgres@sparta}
        registries: {docker.io: {mirror: mirror.example.org, credential: hub}, 'localhost:5000': {}}
        rollout: {first: canary, healthy: 10m}
        allow: {drop: [athens, gitea@sparta]}
        notify: {ops: 'mailto:ops@example.org'}
        gitmesh: 0.1.0
        """,
    "contract": """
        contract: postgres-database
        about: A database.
        unique: [name]
        tls: true
        asks:
          extensions: {type: array, items: {type: string}, uniqueItems: true, default: []}
          name: {type: string, format: hostname, from: operator}
        fields:
          tls: {enum: [disable, require]}
          password: {type: string, secret: true, form: alnum, minLength: 24, pattern: '[A-Za-z0-9]+'}
          url: {type: string, secret: true, derived: 'postgresql://{user}@{host}'}
          either: {type: [string, integer], examples: [a, 1]}
          hash: {type: string, hashed: {of: password, with: bcrypt}}
          map:
            {type: object, propertyNames: {pattern: 'X_[A-Z]+'}, additionalProperties: {type: string}}
        credential:
          {login: user, secret: password, by: vault, rotation: in-place, max-age: 90d, check: postgres}
        """,
    "module": """
        module: gitea
        about: A forge.
        seats: [mesh-git]
        requires:
          database:
            {module: db, narrow: {password: {minLength: 32}}, as: main, seat: mesh-store, max-age: 90d}
          smtp: {module: smtp, optional: true, takes: first-start, anything: [1, {a: b}]}
          data: {host: directory, owner: '1000:1000', mode: '0750'}
          cache: {host: volume}
          media: {host: access, allow: write, optional: true}
          gpu: {host: device, optional: true}
          http: {host: port, listens: 3000, number: 80, protocol: tcp+udp, reach: local}
          machine: {host: machine}
          all: {host: machines}
          me: {mesh: identity}
          facts: {mesh: facts}
          workers: {operator: {type: integer, minimum: 1}, default: 2}
        unused: {database: {database: it is not read}}
        exceptions: {host-path: it has to}
        restart-on: [/etc/app/app.ini]
        containers:
          app:
            image: docker.io/gitea/gitea:1.24@sha256:0123456789abcdef
            entrypoint: [/bin/app]
            command: [serve, --port, 80, true]
            user: '1000:1000'
            reads-as: '1000:1000'
            after: [side]
            hostname: '${machine:name}'
            env: {A: text, B: 3, C: true, D: {file: '${database:password}', prefix: 'file://'}}
            env-from: workers
            env-file: {reason: it reads nothing else, env: {X: '${database:url}'}}
            files:
              /a: text
              /b: {text: '${database:password}', owner: '0:0', mode: '0400'}
              /c: {ini: {section: {key: value}}}
              /d: {env: {K: v}}
              /e: {properties: {a.b: c}}
              /f: {yaml: {a: [1]}}
              /g: {json: [1]}
              /h: {toml: {a: {b: 1}}}
              /i: {from: provision.sh, mode: '0555'}
              '/j/${consumer:as}.yml': {each: scrape, text: x}
            mounts: {/data: data, /sub: data/sub/dir, /ro: {from: media, read-only: true}}
            tmpfs: {/tmp: 64m}
            image-paths: [/opt/app]
            publish: [http]
            health: {http: {port: http, path: /health, https: true}, within: 60s, every: 5s}
            shm: 128m
            stop: {signal: SIGTERM, within: 120s}
            limits: {memory: 1g, cpus: '0.5', nofile: 65536}
            reload: {signal: HUP}
            rollback: never
            network: host
            pid: host
            capabilities: [NET_ADMIN]
            privileged: true
            when:
              smtp: {env: {A: b}, env-file: {reason: r, env: {}}, files: {/x: y}, publish: [http]}
              media: {mounts: {/m: media}}
          side: {like: app, health: image}
          tcp: {like: app, health: {tcp: 9998, within: 60s}, reload: {command: [app, reload]}}
          cmd: {like: app, health: {command: [true]}, limits: {cpus: 2}}
        jobs:
          init:
            {at: init, like: app, command: [a], user: '0:0', env: {A: b}, files: {/a: b}, mounts: {/x: data}}
          cron: {at: every 5m, in: app, command: [php, cron.php]}
          host: {at: 'Mon *-*-* 02:00', host: [gitmesh, deploy], env: {HOME: '${data:location}'}}
        provides:
          postgres-database:
            accepts: {extensions: {items: {enum: [citext]}}}
            serves: {host: '${http:host}', database: '${consumer:as}'}
            answers: [token]
            provisioner: {adapter: postgres, at: http, login: postgres, admin: database}
          forge-api:
            provisioner:
              {adapter: exec, in: app, command: [/p], login: a, admin: b, first: c, rotation: two}
          scrape: {serves: {}}
        """,
    "node": """
        address: 10.7.0.11
        public: athens.example.org
        root: /var/lib/mesh
        ports: {from: 31000, to: 31999, reserved: [31005]}
        labels: [linux]
        keys:
          sign: 'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
          seal: 'x25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
          epoch: 1
        enrol: 'ed25519:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA='
        state: {paused: {reason: disk, until: '2027-01-31T18:00:00Z'}}
        """,
    "assignment": """
        pins: {database: postgres@sparta}
        uses: [smtp]
        values: {web.name: git.example.org, workers: 4, settings: {A: [b]}}
        place: {data: /mnt/disk2/gitea, http: 8080, root: /}
        holds: [mesh-git]
        grants: [host-network, host-pid, 'access:root', 'cap:NET_ADMIN', 'device:gpu', privileged]
        as: gitea_athens
        fresh: true
        moved: {data: true}
        """,
    "spread": """
        module: node-exporter
        every: true
        pins: {a: b@c}
        uses: [a]
        values: {a: b}
        place: {root: /}
        grants: ['access:root']
        """,
    "values": "mesh: {workers: 4, web.scheme: https}\nlabels: {edge: {workers: 8}}\n",
    "rotations": "gitea@athens.database: 3\nabandon: [gitea@athens.smtp]\n",
    "purges": "[gitea_athens-1, x]\n",
    "reveals": "gitea@athens.admin: age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq\n",
    "catalogue": f"web: {{from: 'https://example.org/c.git', commit: '{'0' * 40}', sha256: '{'0' * 64}'}}\n",
    "seats": "mesh-search: search-index\n",
    "ratchet": "{exceptions: 2, env-files: 1, retired: 0}\n",
}


@pytest.mark.parametrize("kind", schema.KINDS)
def test_every_key_of_the_formats_is_taken(kind: str) -> None:
    text = "\n".join(line.removeprefix("        ") for line in FULL[kind].split("\n"))
    assert messages(kind, text) == []


@pytest.mark.parametrize("kind", schema.KINDS)
def test_the_schemas_are_schemas(kind: str) -> None:
    loaded = schema.schema(kind)
    assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert loaded["title"]
    assert loaded["description"]
    jsonschema.Draft202012Validator.check_schema(loaded)
    jsonschema_rs.Draft202012Validator(loaded)


def walk(part: Any) -> Any:
    yield part
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from walk(each)


def test_shared_definitions_are_the_same_everywhere() -> None:
    seen: dict[str, Any] = {}
    for kind in schema.KINDS:
        for name, definition in schema.schema(kind).get("$defs", {}).items():
            assert seen.setdefault(name, definition) == definition


@pytest.mark.parametrize("kind", schema.KINDS)
def test_every_pattern_is_anchored_and_closed_maps_are_closed(kind: str) -> None:
    for part in walk(schema.schema(kind)):
        if isinstance(part, dict) and isinstance(part.get("pattern"), str) and part["pattern"] != "@":
            assert part["pattern"].startswith("^")
            assert part["pattern"].endswith("$")
        if isinstance(part, dict) and part.get("type") == "object" and "properties" in part:
            assert {"additionalProperties", "then", "allOf"} & part.keys()
        if isinstance(part, dict) and isinstance(part.get("$ref"), str):
            assert part["$ref"].startswith("#/$defs/")


@pytest.mark.parametrize(
    "name", ["abc\n", "\nabc", "Abc", "a_b", "a-", "-a", "1a", "a" * 64, "ab\u0663", "", "a b"]
)
def test_a_name_is_a_name_for_both_validators(name: str) -> None:
    for kind, value in (
        ("module", {"module": name}),
        ("module", {"module": "x", "requires": {name: {"host": "volume"}}}),
        ("assignment", {"pins": {"a": f"{name}@b"}}),
        ("assignment", {"pins": {"a": f"b@{name}"}}),
    ):
        assert not schema._quick(kind).is_valid(value)
        assert list(schema._thorough(kind).iter_errors(value))
        [refusal] = check(kind, "f", value)
        assert "expected" in refusal.message
        assert refusal.message.isprintable()


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("module", "modul: x\n", ["`modul`: unknown key; did you mean `module`?"]),
        ("module", "", ["`module` is missing"]),
        ("module", "- a\n", ["expected a map, and this is a list"]),
        ("purges", "a: b\n", ["expected a list, and this is a map"]),
        ("node", "address: 10.0.0.1\nports: {from: 1}\n", ["`ports`: `to` is missing"]),
        ("values", "label: {}\n", ["`label`: unknown key; did you mean `labels`?"]),
        (
            "assignment",
            "pin: {}\nuse: [a]\n",
            ["`pin`: unknown key; did you mean `pins`?", "`use`: unknown key; did you mean `uses`?"],
        ),
        ("assignment", "uses: smtp\n", ["`uses`: expected a list, and this is text"]),
        ("assignment", "uses: [a, a]\n", ["`uses`: something is listed twice"]),
        ("assignment", "uses:\n", ["`uses`: expected a list, and this is empty"]),
        ("assignment", "place: {a: x}\n", ["`place.a`: expected an absolute path"]),
        ("assignment", "place: {a: 70000}\n", ["`place.a`: expected a number up to 65535"]),
        ("assignment", "moved: {data: false}\n", ["`moved.data`: expected `true`"]),
        ("assignment", "fresh: 'no'\n", ["`fresh`: expected true or false, and this is text"]),
        ("spread", "module: x\n", ["a spread says exactly one of `label: NAME` and `every: true`"]),
        (
            "spread",
            "module: x\nlabel: a\nevery: true\n",
            ["a spread says exactly one of `label: NAME` and `every: true`"],
        ),
        ("spread", "module: x\nlabel: a\nholds: [b]\n", ["`holds`: unknown key"]),
        ("rotations", "a@b.c: 0\n", ["`a@b.c`: expected a generation: a whole number from 1"]),
        (
            "contract",
            "contract: x\nfields: {a: {type: strng, secert: true}}\n",
            [
                "`fields.a.secert`: unknown key; did you mean `secret`?",
                "`fields.a.type`: expected `string`, `integer`, `boolean`, `array`, `object` or `null`; "
                "did you mean `string`?",
            ],
        ),
        (
            "contract",
            "contract: x\nfields: {a: {enum: 5}}\n",
            ["`fields.a.enum`: expected a list, and this is a whole number"],
        ),
        (
            "module",
            "module: x\nrequires: {a: {operator: {propertyNames: {type: strng}}}}\n",
            [
                "`requires.a.operator.propertyNames.type`: expected `string`, `integer`, `boolean`, `array`, "
                "`object` or `null`; did you mean `string`?"
            ],
        ),
        (
            "module",
            "module: x\nrequires: {consumer: {host: volume}}\n",
            ["`requires.consumer`: not a key that can stand here: no requirement is called `consumer`"],
        ),
        (
            "module",
            "module: x\ncontainers: {c: {command: [a]}}\n",
            ["`containers.c`: a container says its `image`, or which container it is `like`"],
        ),
        (
            "module",
            "module: x\ncontainers: {c: {like: a, env: {A: {fil: b}, B: }}}\n",
            [
                "`containers.c.env.A.fil`: unknown key; did you mean `file`?",
                "`containers.c.env.B`: expected text, a whole number, true or false",
            ],
        ),
        (
            "module",
            "module: x\ncontainers: {c: {like: a, health: {htp: 5}}}\n",
            ["`containers.c.health.htp`: unknown key; did you mean `http`?"],
        ),
        (
            "module",
            "module: x\njobs: {a: {at: daily}}\n",
            ["`jobs.a`: a job says exactly one of `in`, `like` and `host`"],
        ),
        (
            "module",
            "module: x\njobs: {a: {at: daily, in: b}}\n",
            ["`jobs.a`: `command` is missing beside `in`"],
        ),
        (
            "module",
            "module: x\nprovides: {a: {provisioner: {adapter: posgres, at: b}}}\n",
            [
                "`provides.a.provisioner.adapter`: expected `postgres`, `mariadb`, `redis`, `rabbitmq`, "
                "`s3`, `edge`, `git`, `vault` or `exec`; did you mean `postgres`?"
            ],
        ),
        (
            "module",
            "module: x\nprovides: {a: {provisioner: {at: b}}}\n",
            ["`provides.a.provisioner`: `adapter` is missing"],
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_would_be_right(
    kind: str, text: str, expected: list[str]
) -> None:
    assert messages(kind, text) == expected


EXACTLY = "a requirement says exactly one of `module`, `host`, `mesh` and `operator`"


@pytest.mark.rule("A1")
@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("{vault: x}", [f"`requires.a`: {EXACTLY}"]),
        ("{}", [f"`requires.a`: {EXACTLY}"]),
        ("{module: x, host: port}", [f"`requires.a`: {EXACTLY}"]),
        ("{mesh: facts, operator: {type: string}}", [f"`requires.a`: {EXACTLY}"]),
        ("{modul: x}", ["`requires.a.modul`: unknown key; did you mean `module`?"]),
        ("postgres", ["`requires.a`: expected a map, and this is text"]),
        (
            "{host: node}",
            [
                "`requires.a.host`: expected `directory`, `volume`, `access`, `device`, `port`, `machine` "
                "or `machines`"
            ],
        ),
        ("{mesh: names}", ["`requires.a.mesh`: expected `identity` or `facts`"]),
        ("{host: volume, module: x}", [f"`requires.a`: {EXACTLY}"]),
    ],
)
def test_the_kinds_of_requirement_are_four(requirement: str, expected: list[str]) -> None:
    assert messages("module", f"module: x\nrequires: {{a: {requirement}}}\n") == expected


@pytest.mark.rule("A1")
def test_asks_are_open_and_the_options_of_the_other_kinds_closed() -> None:
    assert messages("module", "module: x\nrequires: {a: {module: y, any-ask: [1]}}\n") == []
    for requirement in ("{host: port, any: 1}", "{mesh: facts, any: 1}", "{operator: {}, any: 1}"):
        assert messages("module", f"module: x\nrequires: {{a: {requirement}}}\n") == [
            "`requires.a.any`: unknown key"
        ]


@pytest.mark.rule("A13")
def test_a_directory_has_no_flag_for_persistence() -> None:
    text = "module: x\nrequires: {a: {host: directory, owner: '0:0', mode: '0700', persistent: true}}\n"
    assert messages("module", text) == ["`requires.a.persistent`: unknown key"]


def test_a_refusal_stands_at_its_key_or_value() -> None:
    text = "module: x\nrequires:\n  a: {modul: y}\n  b: {host: prt}\n"
    first, second = refusals_of("module", text)
    places = [locate(text.encode(), refusal.at) for refusal in (first, second)]
    assert [(span.line, span.column) for span in places] == [(3, 7), (4, 13)]
    assert first.answers[0].text == "write `module`"


def test_no_content_is_quoted() -> None:
    text = (
        "module: GMCANARY one\nabout: [GMCANARY]\nrequires: {a: {host: 'GMCANARY\\n'}, b: GMCANARY}\n"
        "containers: {c: {image: GMCANARY, env: {A: [GMCANARY]}, files: {/a: {text: GMCANARY, json: a}}}}\n"
    )
    found = refusals_of("module", text)
    assert len(found) >= 6
    assert "GMCANARY" not in repr(found)


def test_a_file_with_a_thousand_mistakes_gives_fifty() -> None:
    assert len(check("assignment", "f", {f"x{number}": 1 for number in range(1000)})) == 50


@pytest.mark.parametrize("kind", schema.KINDS)
def test_an_empty_file_counts_as_an_empty_map_or_list(kind: str) -> None:
    empty: Any = [] if kind == "purges" else {}
    assert check(kind, "f", None) == check(kind, "f", empty)


def test_an_unknown_kind_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="no kind"):
        check("modules", "f", {})


@pytest.mark.rule("S23")
def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*_: object, **__: object) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_socket)
    found = messages("contract", "contract: x\nfields: {a: {$ref: 'http://127.0.0.1/x', typ: string}}\n")
    assert found == ["`fields.a.$ref`: unknown key", "`fields.a.typ`: unknown key; did you mean `type`?"]


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 70000)
    | st.sampled_from(["", "a", "a@b", "/x", "A", "a\n", "image", "host"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "module",
                    "requires",
                    "host",
                    "containers",
                    "env",
                    "a",
                    "A",
                    "file",
                    "from",
                    "type",
                    "a@b.c",
                    "health",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(schema.KINDS), ANY)
def test_the_validators_agree_and_every_violation_has_words(kind: str, value: Any) -> None:
    if value is not None:
        valid = schema._quick(kind).is_valid(value)
        assert valid == (not list(schema._thorough(kind).iter_errors(value)))
    for refusal in check(kind, "f", value):
        assert refusal.message
        assert "form that is expected" not in refusal.message


def test_the_assets_are_found() -> None:
    assert (assets.asset("schemas") / "module.json").is_file()
    for name in ("mesh-repo-template", "hooks"):
        assert assets.asset(name).is_dir()
    with pytest.raises(ValueError, match="no asset"):
        assets.asset("docs")


def test_a_wheel_s_assets_come_first(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gitmesh"
    (package / "_assets" / "schemas").mkdir(parents=True)
    monkeypatch.setattr(assets, "_PACKAGE", package)
    assert assets.asset("schemas") == package / "_assets" / "schemas"
    with pytest.raises(FileNotFoundError, match="hooks"):
        assets.asset("hooks")
