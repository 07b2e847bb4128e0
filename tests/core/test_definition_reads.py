"""Where a module's texts read answers, and whether they may there."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from gitmesh.repo.document import read
from gitmesh.repo.load_module import read_module
from tests.core.definitions import HEAD, C, refusals_of, refused_once, with_container, words_of


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
    refusal = refused_once(with_container(f"env: {{X: '{text}'}}"), Code.REFERENCE_UNKNOWN, *C, "env", "X")
    assert may in words_of(refusal)


@pytest.mark.parametrize("text", ["${HOME}", "${db}", "${db:host:dns}", "${DB:-x}", "${"])
@pytest.mark.rule("A4")
def test_another_form(text: str) -> None:
    refused_once(with_container(f"env: {{X: '{text}'}}"), Code.REFERENCE_FORM, *C, "env", "X")


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
    refused_once(with_container(lines), Code.REFERENCE_FORM, *C, *keys)


@pytest.mark.rule("A4")
def test_an_escaped_form_is_text() -> None:
    text = with_container("command: [sh, '$${HOME}']\nhealth: {command: [sh, '$${HOME}']}")
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
    assert new in words_of(
        refused_once(with_container(f"env: {{X: '{text}'}}"), Code.RETIRED_FORM, *C, "env", "X")
    )


@pytest.mark.rule("A11")
def test_no_module_reads_a_seat() -> None:
    refusal = refused_once(
        with_container("env: {X: '${seat:mesh-store}'}"), Code.RETIRED_FORM, *C, "env", "X"
    )
    assert "no module reads a seat" in words_of(refusal)


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
    refusal = refused_once(with_container(lines), Code.SECRET_EXPOSED, *C, *keys)
    assert "{file: " in words_of(refusal)


@pytest.mark.rule("A5")
def test_a_secret_in_what_is_asked() -> None:
    text = with_container("env: {X: x}").replace("'${http:address}'", "'${key:value}'")
    refused_once(text, Code.SECRET_EXPOSED, "requires", "web", "upstream")


@pytest.mark.rule("A5")
def test_a_secret_of_many_lines_in_an_env_file() -> None:
    text = with_container("env-file: {reason: r, env: {X: '${key:value}'}}")
    many = text.replace("key:   {module: secret}", "key: {module: secret, source: operator, lines: many}")
    refused_once(many, Code.REFERENCE_FORM, *C, "env-file", "env", "X")
    refused_once(
        with_container('env-file: {reason: r, env: {X: "a\\nb"}}'), Code.SCHEMA, *C, "env-file", "env", "X"
    )


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
        ("env: {X: 'sqlite:////cache/x.db?mode=ro'}", ("env", "X")),
        ("env: {X: 'sqlite+aiosqlite:////cache/x.db'}", ("env", "X")),
        ("env: {X: 'jdbc:sqlite:/cache/x.db'}", ("env", "X")),
        ("env: {X: '[\"/cache/x\"]'}", ("env", "X")),
        ("env: {X: \"--dir='/cache/x'\"}", ("env", "X")),
        ("env: {X: '/data2/x'}\nmounts: {/data: data}", ("env", "X")),
        ("env: {X: '/certs/${word:value}/x'}", ("env", "X")),
        ("env-file: {reason: r, env: {X: /cache}}", ("env-file", "env", "X")),
        ("env: {X: /extra/x}\nwhen: {extra: {mounts: {/extra: extra}}}", ("env", "X")),
    ],
)
@pytest.mark.rule("A3")
def test_a_path_of_the_host(lines: str, keys: tuple[str | int, ...]) -> None:
    refused_once(with_container(lines), Code.HOST_PATH_EXPOSED, *C, *keys)


@pytest.mark.parametrize(
    "lines",
    [
        "env: {X: /data}\nmounts: {/data: data}",
        "env: {X: 'sqlite:////data/x.db?mode=ro', Y: '[\"/data/a\", \"/data/b\"]'}\nmounts: {/data: data}",
        "env: {X: 'sqlite:///x.db'}",
        "env: {X: /cache/x}\ntmpfs: {/cache: 64m}",
        "env: {X: /opt/app}\nimage-paths: [/opt]",
        "env: {X: '/etc/${word:value}/a'}\nmounts: {/etc: data}",
        "env: {X: /etc/app.conf}\nfiles: {/etc/app.conf: x}",
        "env: {X: 'http://db:80/x', Y: 'a/b', Z: '${web:url}/x.js'}",
    ],
)
@pytest.mark.rule("A3")
def test_a_path_of_the_container(lines: str) -> None:
    assert refusals_of(with_container(lines)) == []


@pytest.mark.rule("A3")
def test_a_host_job_may_read_a_location() -> None:
    job = "jobs:\n  it: {at: daily, host: [gitmesh, deploy], env: {X: '${data:location}', Y: /etc/x}}\n"
    assert refusals_of(HEAD + job) == []
    inside = "jobs:\n  it: {at: daily, in: app, command: [x], env: {X: '${data:location}'}}\n"
    refused_once(with_container("env: {A: b}") + inside, Code.HOST_PATH_EXPOSED, "jobs", "it", "env", "X")


@pytest.mark.rule("A3")
def test_a_provider_serves_no_path_of_its_host() -> None:
    text = HEAD + "provides:\n  token:\n    serves: {name: '${data:location}'}\n    answers: [token]\n"
    refusals = refusals_of(text + "    provisioner: {adapter: postgres, at: http}\n")
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
    refused_once(with_container(lines), Code.REFERENCE_OPTIONAL, *C, *keys)


def test_a_list_in_text() -> None:
    text = with_container("env: {X: '${hosts:names}'}").replace(
        "  mesh:", "  hosts: {host: machines}\n  mesh:"
    )
    refused_once(text, Code.REFERENCE_FORM, *C, "env", "X")
    whole = with_container("files: {/x: {json: {all: '${hosts:names}'}}}")
    assert refusals_of(whole.replace("  mesh:", "  hosts: {host: machines}\n  mesh:")) == []
