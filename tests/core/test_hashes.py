"""Hashes that a contract wants of a secret: who has them, of which value, and what can't be hashed."""

from __future__ import annotations

import pytest

from gitmesh.core.answer import generation_of
from gitmesh.core.compose import compose
from gitmesh.core.declaration import Holed, SecretHole
from gitmesh.core.model import Json
from gitmesh.core.plan_mesh import plan_mesh
from gitmesh.core.refusal import Code
from gitmesh.core.steps import Step, Verb
from gitmesh.deploy.slices import declaration_blob, slices
from gitmesh.trust.keys import SealingKey, SigningKey
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import NOTHING, declarations, resolved

APP, POSTGRES = "modules/app/module.yaml", "modules/postgres/module.yaml"
CONTRACT = "contracts/postgres-database.yaml"
SERVES = "database: '${consumer:as}'"
USERS = "'/etc/users/${consumer:as}': {each: postgres-database, text: '${consumer:hash}'}"


def hashed(app: str = "", postgres: str = "", serves: str = SERVES) -> dict[str, str | None]:
    """The base, whose databases have a bcrypt hash of the password; `app` is added to its environment,
    `postgres` to PostgreSQL's files, and `serves` stands in place of the database."""
    said = {path: mesh_files(NOTHING)[path].decode() for path in (APP, POSTGRES, CONTRACT)}
    field = "  hash: {type: string, hashed: {of: password, with: bcrypt}}\n  url:  "
    files = f"    publish: [sql]\n    files: {{{postgres}}}\n"
    return {
        CONTRACT: said[CONTRACT].replace("  url:  ", field),
        APP: said[APP].replace("      URL:", f"      {app}\n      URL:") if app else said[APP],
        POSTGRES: said[POSTGRES].replace("    publish: [sql]\n", files).replace(SERVES, serves),
    }


def enrolled() -> dict[str, str | None]:
    """The base's nodes with keys."""
    files: dict[str, str | None] = {}
    for number, node in enumerate(("athens", "sparta", "delphi")):
        sign, seal = SigningKey.generate().public_text, SealingKey.generate().public_text
        keys = f"{{sign: '{sign}', seal: '{seal}', epoch: 1}}"
        files[f"nodes/{node}.yaml"] = f"address: 10.7.0.{11 + number}\nkeys: {keys}\n"
    return files


def told(changes: dict[str, str | None]) -> dict[str, Json]:
    """Each node's slice."""
    resolution, refusals = resolved({**changes, **enrolled()})
    assert refusals == ()
    found = compose(resolution)
    return slices(resolution, found, {node: declaration_blob(each) for node, each in found.items()})


@pytest.mark.rule("C2")
def test_a_hash_is_sealed_to_whoever_reads_it_and_never_brings_its_value() -> None:
    found = told(hashed(postgres=USERS))
    vault = found["delphi"]["secrets"]
    assert vault["app@athens.database.hash"]["of"] == "app@athens.database"
    assert vault["app@athens.database.hash"]["form"] == "bcrypt"
    assert vault["app@athens.database.hash"]["recipients"] == [{"node": "sparta", "role": "present"}]
    assert "app@athens.database.hash" not in found["athens"]["secrets"]
    assert found["sparta"]["secrets"]["app@athens.database"]["role"] == "apply", "as without the hash"


@pytest.mark.rule("C2")
def test_its_consumer_may_read_it_too() -> None:
    found = declarations(hashed("HASH_FILE: {file: '${database:hash}'}"))
    file = found["athens"].assignments["app@athens"].containers["app"].files["/run/secrets/hash_file"]
    assert (file.text, file.mode) == (Holed((SecretHole("app@athens.database.hash"),)), "0400")
    assert found["athens"].secrets["app@athens.database.hash"].schema == {"type": "string"}
    assert "app@athens.database.hash" not in found["sparta"].secrets


@pytest.mark.rule("C1")
def test_the_vault_is_told_of_a_value_that_nobody_but_its_hash_needs() -> None:
    changes = hashed(postgres=USERS)
    postgres, app = str(changes[POSTGRES]), str(changes[APP])
    changes[POSTGRES] = postgres.partition("    provisioner:")[0].replace(", takes: apply", "")
    app = app.replace("DATABASE_USER: '${database:user}'", "DATABASE: '${database:database}'")
    changes[APP] = app.replace("      DATABASE_URL_FILE: {file: '${database:url}'}\n", "")
    vault = told(changes)["delphi"]["secrets"]
    assert vault["app@athens.database.hash"]["recipients"] == [{"node": "sparta", "role": "present"}]
    assert "recipients" not in vault["app@athens.database"]


@pytest.mark.rule("C1")
def test_the_hash_of_a_credential_for_all_is_of_the_providers_own_secret() -> None:
    serves = f"{SERVES}, user: everyone, password: '${{superuser:value}}'"
    resolution, refusals = resolved(hashed(postgres=USERS, serves=serves))
    assert refusals == ()
    hash_ = resolution.secrets["app@athens.database.hash"]
    assert (hash_.of, hash_.rotation) == ("postgres@sparta.superuser", "in-place")
    assert "app@athens.database" not in resolution.secrets


@pytest.mark.rule("C1")
def test_a_hash_is_renewed_with_its_value() -> None:
    asked = {"rotations.yaml": "app@athens.database: 3\n"}
    resolution, refusals = resolved({**hashed(postgres=USERS), **asked})
    assert refusals == ()
    generations = {each.id: generation_of(resolution.mesh, each) for each in resolution.secrets.values()}
    assert generations["app@athens.database.hash"] == generations["app@athens.database"] == 3
    assert generations["app@athens.key"] == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (hashed("HASH: '${database:hash}'"), Code.SECRET_EXPOSED),
        (hashed(serves=f"{SERVES}, user: all, password: 'x${{superuser:value}}'"), Code.PROVIDES_MISMATCH),
        (hashed(serves=f"{SERVES}, hash: '${{superuser:value}}'"), Code.PROVIDES_MISMATCH),
        ({**hashed(), "rotations.yaml": "app@athens.database.hash: 1\n"}, Code.SCHEMA),
    ],
)
@pytest.mark.rule("A5", "A12")
def test_what_cant_be_done_with_a_hash(changes: dict[str, str | None], code: Code) -> None:
    _, refusals = resolved(changes)
    assert [each.code for each in refusals] == [code]


@pytest.mark.parametrize("narrow", ["hash: {maxLength: 59}", "password: {minLength: 73}"])
@pytest.mark.rule("A6")
def test_a_narrowing_that_no_hash_meets_is_refused(narrow: str) -> None:
    changes = hashed()
    changes[APP] = str(changes[APP]).replace(
        "{module: postgres-database}", f"{{module: postgres-database, narrow: {{{narrow}}}}}"
    )
    _, refusals = resolved(changes)
    assert [each.code for each in refusals] == [Code.NARROW_LOOSENS]


@pytest.mark.rule("G2")
def test_a_plan_tells_of_the_hashes_that_are_read_and_of_another_way_to_make_them() -> None:
    none, unread, read = (resolved(each)[0] for each in ({}, hashed(), hashed(postgres=USERS)))
    changes = hashed(postgres=USERS)
    other = resolved({**changes, CONTRACT: str(changes[CONTRACT]).replace("bcrypt", "argon2id")})[0]
    id_ = "app@athens.database.hash"
    assert plan_mesh(none, unread).secrets == ()
    (made,) = plan_mesh(unread, read).secrets
    assert (made.step, made.readers) == (Step(Verb.MAKE_SECRET, id_), ("postgres@sparta",))
    (renewed,) = plan_mesh(read, other).secrets
    why = ("bcrypt of app@athens.database to argon2id of app@athens.database",)
    assert renewed.step == Step(Verb.ROTATE_SECRET, id_, why)
    assert renewed.restarts == ("postgres@sparta postgres",)
    assert [each.step.verb for each in plan_mesh(read, unread).secrets] == [Verb.DROP_SECRET]
