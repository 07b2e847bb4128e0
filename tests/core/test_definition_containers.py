"""A module's containers and jobs: what they name, what they take over, where their files lie."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from gitmesh.repo.document import check, read
from gitmesh.repo.load_module import read_module
from tests.core.definitions import IMAGE, C, refusals_of, refused_once, with_container, words_of


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
        ("env-from: lists", Code.REFERENCE_UNKNOWN, ("env-from",)),
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
    text = with_container(lines)
    if "/srv/x" in lines:
        value, _ = read("m", text.encode())
        assert [each.at.keys for each in check("module", "m", value)] == [(*C, *keys)], (
            "no host path, by its schema"
        )
        return
    refused_once(text, code, *C, *keys)


def test_a_file_beside_the_module() -> None:
    text = with_container("files: {/x: {from: bin/x.sh, mode: '0555'}}")
    value, _ = read("m", text.encode())
    module, refusals = read_module("modules/app/module.yaml", value, {"bin/x.sh": b"GMCANARY", "other": b""})
    assert refusals == []
    assert module.sources == {"bin/x.sh": b"GMCANARY"}


def test_like_another_container() -> None:
    text = with_container("""
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
    assert refusals_of(text) == []
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
    text = with_container("env: {A: '${db:nothing}'}") + "  worker: {like: app, command: [work]}\n"
    refused_once(text, Code.REFERENCE_UNKNOWN, *C, "env", "A")


@pytest.mark.parametrize("other", ["nobody", "worker"])
def test_like_nobody(other: str) -> None:
    text = with_container("env: {A: a}") + f"  worker: {{like: {other}, {IMAGE}}}\n"
    refused_once(text, Code.CONTAINER_UNKNOWN, "containers", "worker", "like")


def test_a_job_of_no_container() -> None:
    job = "jobs:\n  it: {at: daily, in: ap, command: [x]}\n"
    assert "did you mean `app`?" in words_of(
        refused_once(with_container("env: {A: a}") + job, Code.CONTAINER_UNKNOWN, "jobs", "it", "in")
    )


@pytest.mark.rule("A14")
def test_restart_on() -> None:
    text = with_container("env: {KEY_FILE: {file: '${key:value}'}}\nmounts: {/certs: data}")
    assert refusals_of(text + "restart-on: [/certs/live/x.pem, /run/secrets/key_file]\n") == []
    refused_once(text + "restart-on: [/etc/hosts]\n", Code.REFERENCE_UNKNOWN, "restart-on", 0)


@pytest.mark.parametrize(
    "name", ["x" * 64, "mail.example." + "x" * 60, "my_host", "-x", "a..b", "a b", "x/${mesh:name}"]
)
def test_c91_a_hostname_that_the_kernel_or_dns_has_no_room_for(name: str) -> None:
    refused_once(with_container(f"hostname: '{name}'"), Code.SCHEMA, *C, "hostname")


@pytest.mark.parametrize("name", ["x" * 63, "mail.example.org", "${mesh:name}-1", "${word:value}"])
def test_a_hostname_that_may_be(name: str) -> None:
    assert refusals_of(with_container(f"hostname: '{name}'")) == []


@pytest.mark.parametrize(
    ("one", "other", "key", "path"),
    [
        ("mounts: {/x: extra}", "mounts: {/x: data}", "mounts", "/x"),
        ("files: {/x: a}", "files: {/x: b}", "files", "/x"),
    ],
)
def test_one_path_under_two_whens(one: str, other: str, key: str, path: str) -> None:
    two = with_container(f"when: {{extra: {{{one}}}, mail: {{{other}}}}}")
    refusal = refused_once(two, Code.SCHEMA, *C, "when", "mail", key, path)
    assert refusal.related[0].at.keys == (*C, "when", "extra", key, path)
    anew = with_container(f"{one.replace('extra', 'data')}\nwhen: {{mail: {{{other}}}}}")
    assert refusals_of(anew) == [], "one may say anew what the container says"
