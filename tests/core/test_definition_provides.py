"""What a module provides, against the contracts that it claims."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from gitmesh.repo.document import check, read
from tests.core.definitions import IMAGE, refusals_of, refused_once, with_container, words_of


def _provides(lines: str, requires: str = "") -> str:
    indented = "\n".join(f"  {line}" for line in lines.strip("\n").split("\n"))
    return (
        "module: app\nrequires:\n  sql: {host: port, listens: 5432}\n  root: {module: secret}\n"
        f"  domain: {{operator: {{type: string}}}}\n{requires}provides:\n{indented}\n"
    )


P = ("provides", "database")
SERVES = "host: '${sql:host}', port: '${sql:port}', database: '${consumer:as}'"


@pytest.mark.rule("A12")
def test_a_provider() -> None:
    assert (
        refusals_of(
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
    assert refusals_of(_provides(affixed)) == []
    shared_credential = f"database:\n  serves: {{{SERVES}, user: all, password: '${{root:value}}'}}\n"
    assert refusals_of(_provides(shared_credential)) == []


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
    refusals = refusals_of(_provides(f"database:\n{lines}"))
    first = refusals[0]
    assert first.code is Code.PROVIDES_MISMATCH
    assert first.at.keys[: len(P) + len(keys)] == (*P, *keys)
    assert "GMCANARY" not in repr(refusals)


@pytest.mark.rule("A12")
@pytest.mark.parametrize(
    ("serves", "field", "says"),
    [
        ("user: everyone", "user", "serve `password` too"),
        ("user: '${domain:value}'", "user", "serve `password` too"),
        ("user: '${consumer:as}'", "user", "serve `password` too"),
        ("user: 'u-${consumer:login}', password: '${root:value}'", "user", "don't serve `password`"),
        ("user: all, password: '${domain:value}'", "password", "require one"),
        ("user: all, password: '${short:value}'", "password", "a `form` and a `length`"),
        ("user: all, password: '${dashed:value}'", "password", "a `form` and a `length`"),
    ],
)
def test_a_credential_is_for_each_consumer_or_for_all(serves: str, field: str, says: str) -> None:
    own = "  short: {module: secret, length: 16}\n  dashed: {module: secret, form: base64url}\n"
    text = _provides(f"database:\n  serves: {{{SERVES}, {serves}}}", own)
    refusal = refused_once(text, Code.PROVIDES_MISMATCH, *P, "serves", field)
    assert says in words_of(refusal)
    assert refusal.at.value


@pytest.mark.rule("A12")
def test_one_credential_for_all_has_no_login_of_the_mesh() -> None:
    text = _provides(f"database:\n  serves: {{{SERVES}, password: '${{root:value}}'}}")
    assert "`user`" in words_of(refused_once(text, Code.PROVIDES_MISMATCH, *P))


@pytest.mark.rule("A12")
def test_what_a_backend_issues_is_answered() -> None:
    exec_ = "provisioner: {adapter: exec, in: app, command: [/x]}"
    container = f"containers: {{app: {{{IMAGE}}}}}\n"
    token = "token:\n  serves: {name: '${consumer:as:dns}'}\n  answers: [token]\n  " + exec_
    assert refusals_of(_provides(token) + container) == []
    refusals = refusals_of(_provides(token.replace("  answers: [token]\n", "")) + container)
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
    refused_once(text, code, *P, "provisioner", key)


@pytest.mark.rule("A7")
def test_only_the_vault_provides_secrets() -> None:
    refused_once(
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
    assert refusals_of(vault + "provides: {secret: {provisioner: {adapter: vault, at: store}}}\n") == []


def test_a_provision_of_no_contract() -> None:
    refused_once(_provides("databse: {serves: {}}"), Code.CONTRACT_UNKNOWN, "provides", "databse")


@pytest.mark.parametrize("said", ["consumer:node", "consumer:as:upper", "consumer:module", "consumer:host"])
@pytest.mark.rule("A9")
def test_another_fact_of_a_consumer(said: str) -> None:
    text = _provides(f"database:\n  serves: {{{SERVES}}}".replace("consumer:as", said))
    refusal = refused_once(text, Code.SERVES_PLACEHOLDER, *P, "serves", "database")
    assert "`${consumer:as}`, `${consumer:as:dns}`, `${consumer:login}`" in words_of(refusal)


@pytest.mark.parametrize(
    "place", ["env: {X: '${consumer:as}'}", "command: ['${consumer:as}']", "files: {/x: '${consumer:as}'}"]
)
@pytest.mark.rule("A9")
def test_a_consumer_outside_serves(place: str) -> None:
    refusals = refusals_of(with_container(place))
    assert [each.code for each in refusals] == [Code.SERVES_PLACEHOLDER]


@pytest.mark.rule("A9")
def test_a_file_for_each_consumer() -> None:
    provides = "provides: {scrape: {serves: {}}}\n"
    tree = "{a: '${consumer:address}', b: '${consumer:as:dns}'}"
    good = f"files: {{'/jobs/${{consumer:as}}.yml': {{each: scrape, yaml: {tree}}}}}"
    assert refusals_of(with_container(good) + provides) == []
    bad = refusals_of(with_container(good.replace("consumer:address", "consumer:node")) + provides)
    assert [each.code for each in bad] == [Code.SERVES_PLACEHOLDER]
    assert "`${consumer:address}`" in words_of(bad[0])
    same = refusals_of(with_container(good.replace("${consumer:as}.yml", "all.yml")) + provides)
    assert [each.code for each in same] == [Code.SERVES_PLACEHOLDER]
    nobody = refusals_of(with_container(good))
    assert (nobody[0].code, nobody[0].at.keys[-1]) == (Code.REFERENCE_UNKNOWN, "each")


@pytest.mark.parametrize(
    ("provisioner", "keys"),
    [
        ("{adapter: exec, in: app}", ()),
        ("{adapter: exec, command: [x]}", ()),
        ("{adapter: exec, in: app, command: []}", ("command",)),
        ("{adapter: exec, in: app, command: [x], at: sql}", ("at",)),
        ("{adapter: exec, in: app, command: [x], rotation: sometimes}", ("rotation",)),
        ("{adapter: exec, in: app, command: [x], first: GMCANARY}", ()),
        ("{adapter: postgres}", ()),
        ("{adapter: postgres, at: sql, in: app}", ("in",)),
        ("{adapter: postgress, at: sql}", ("adapter",)),
    ],
)
@pytest.mark.rule("A12")
def test_the_options_of_a_provisioner(provisioner: str, keys: tuple[str, ...]) -> None:
    value, _ = read("m", _provides(f"database:\n  provisioner: {provisioner}").encode())
    found = check("module", "m", value)
    assert [each.at.keys for each in found] == [(*P, "provisioner", *keys)]
    assert "GMCANARY" not in repr(found)


@pytest.mark.rule("D7")
def test_what_is_taken_by_being_applied_is_what_a_provisioner_logs_in_with() -> None:
    applied = "  applied: {module: secret, takes: apply}\n"
    text = _provides(
        f"database:\n  serves: {{{SERVES}}}\n  provisioner: {{adapter: postgres, at: sql%s}}", applied
    )
    assert refusals_of(text % ", admin: applied") == []
    refusal = refused_once(text % "", Code.ASK_TYPE, "requires", "applied", "takes")
    assert "`provisioner: {admin: applied, …}`" in words_of(refusal)
