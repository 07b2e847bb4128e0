"""Holes are filled with what fits, and what has nothing waits (B11, B12)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gitmesh.core.declaration import FileSpec, Holed, LoginHole, SecretHole
from gitmesh.core.waiting import Waiting
from gitmesh.host.fill import Filler, SecretValue, Unfilled, Values, fill
from gitmesh.host.filled import Withheld
from gitmesh.trust.secret import Secret
from tests.host.declared import (
    ADMIN,
    DATABASE,
    DECLARATION,
    PASSWORD,
    STATS,
    VALUES,
    rotated,
    with_container,
)


def identity(values: Values, assignment: str = "app@athens", container: str = "web") -> str:
    return fill(DECLARATION, values).assignments[assignment].containers[container].identity


def test_everything_filled() -> None:
    filled = fill(DECLARATION, VALUES)
    assert filled.waiting == () and filled.withheld == ()
    web = filled.assignments["app@athens"].containers["web"]
    assert web.env == {"DB_USER": "app_athens_a", "MODE": "fast"} and web.holds_login
    assert web.env_file is not None
    assert web.env_file.blob() == b"DB_URL=postgresql://u:GMCANARYdatabase%2Fp%25ss@h/d\n"
    assert web.files["/run/secrets/password"].blob() == PASSWORD.encode()
    assert json.loads(web.files["/etc/app.json"].blob()) == {
        "db": {"password": PASSWORD, "port": 5432},
        "a/b": ["app_athens_a@h"],
    }
    assert web.files["/opt/run.sh"].blob() == b"#!/bin/sh\n"
    assert (web.files["/opt/run.sh"].owner, web.files["/opt/run.sh"].mode) == ((0, 0), 0o555)
    site = filled.assignments["site@athens"].containers["site"]
    assert json.loads(site.files["/srv/site.yaml"].blob()) == {"id": 7, "label": "site-7"}


@pytest.mark.rule("C10")
def test_no_repr_shows_a_secret() -> None:
    assert "GMCANARY" not in repr(fill(DECLARATION, VALUES)) + repr(VALUES)


@pytest.mark.rule("B11")
def test_what_waits_holds_back_its_assignment_alone() -> None:
    filled = fill(DECLARATION, Values({ADMIN: VALUES.secrets[ADMIN]}))
    # The store's entry for its consumer has no value yet, which does not hold the store back.
    assert set(filled.assignments) == {"store@athens"}
    assert filled.waiting == (
        Waiting("app@athens", "store@athens", DATABASE),
        Waiting("site@athens", "stats@sparta", STATS),
    )
    assert filled.declared == set(DECLARATION.assignments)
    assert fill(DECLARATION, Values()).waiting[-1] == Waiting("store@athens", "mesh-vault", ADMIN)


@pytest.mark.rule("B12")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"id": "7"}, "id: expected"),
        ({"id": 0}, "id: "),
        ({}, "other fields than the contract's id"),
        ({"id": 7, "more": "x"}, "other fields than the contract's id"),
    ],
)
def test_an_answer_outside_its_contract_is_withheld(answer: dict[str, object], says: str) -> None:
    filled = fill(DECLARATION, replace(VALUES, answers={STATS: answer}))
    assert "site@athens" not in filled.assignments and "app@athens" in filled.assignments
    (found,) = filled.withheld
    assert (found.assignment, found.on, found.requirement) == ("site@athens", "stats@sparta", STATS)
    assert says in found.why


@pytest.mark.rule("B12")
def test_a_secret_outside_its_contract_is_withheld_and_not_quoted() -> None:
    filled = fill(DECLARATION, rotated(DATABASE, "GMCANAR"))
    assert filled.withheld == (
        Withheld("app@athens", "store@athens", DATABASE, "its value does not fit the contract's password"),
    )


@pytest.mark.rule("S21")
@pytest.mark.parametrize("value", ["GMCANARY\nADMIN=1", "GMCANARY\x00x", "GMCANARY\u2028x", "GMCANARY $x"])
def test_an_env_file_takes_no_second_line(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitmesh.host.fill.check_value", lambda schema, value: None)
    declaration = with_container(
        DECLARATION, "app@athens", "web", env_file={"PASSWORD": Holed((SecretHole(DATABASE),))}
    )
    filled = fill(declaration, rotated(DATABASE, value))
    (found,) = filled.withheld
    assert found.assignment == "app@athens" and "PASSWORD" in found.why and "GMCANARY" not in found.why
    assert set(filled.assignments) == {"site@athens", "store@athens"}


@pytest.mark.rule("S21")
def test_an_answer_with_a_line_break_reaches_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitmesh.host.fill.check_value", lambda schema, value: None)
    hole = DECLARATION.assignments["site@athens"].containers["site"].files["/srv/site.yaml"].holes["/id"]
    declaration = replace(
        with_container(DECLARATION, "site@athens", "site", env={"SITE": hole}),
        answers={STATS: replace(DECLARATION.answers[STATS], fields={"id": {"type": "string"}})},
    )
    (found,) = fill(declaration, replace(VALUES, answers={STATS: {"id": "5432\n"}})).withheld
    assert found.on == "stats@sparta" and "SITE" in found.why


@pytest.mark.rule("A5")
@pytest.mark.parametrize("place", ["env", "command", "hostname"])
def test_a_secret_outside_files_is_withheld(place: str) -> None:
    text = Holed((SecretHole(DATABASE),))
    value = {"env": {"X": text}, "command": (text,), "hostname": text}[place]
    (found,) = fill(with_container(DECLARATION, "app@athens", "web", **{place: value}), VALUES).withheld
    assert "as a file only" in found.why


def test_a_login_follows_the_slot_unless_its_provider_issued_one() -> None:
    filler = Filler(DECLARATION, rotated(DATABASE, PASSWORD))
    assert filler.text("app@athens", Holed((LoginHole(DATABASE), "@x"))) == "app_athens_b@x"
    issued = Values({DATABASE: SecretValue("a", 1, Secret(PASSWORD), login="key-17")})
    assert Filler(DECLARATION, issued).text("app@athens", Holed((LoginHole(DATABASE),))) == "key-17"
    without = replace(DECLARATION, secrets={DATABASE: replace(DECLARATION.secrets[DATABASE], logins=None)})
    with pytest.raises(Unfilled) as raised:
        Filler(without, VALUES).text("app@athens", Holed((LoginHole(DATABASE),)))
    assert isinstance(raised.value.found, Withheld)


def test_a_hole_that_the_declaration_does_not_explain_is_withheld() -> None:
    bare = replace(DECLARATION, secrets={}, answers={})
    assert {each.assignment for each in fill(bare, VALUES).withheld} == set(DECLARATION.assignments)


@pytest.mark.rule("D6")
def test_an_applied_secret_is_outside_the_identity_and_one_read_at_start_is_in_it() -> None:
    changed = rotated(ADMIN, "GMCANARYadmin2")
    assert identity(changed, "store@athens", "db") == identity(VALUES, "store@athens", "db")
    assert (
        fill(DECLARATION, changed).assignments["store@athens"].digest
        != fill(DECLARATION, VALUES).assignments["store@athens"].digest
    )
    assert identity(rotated(DATABASE, PASSWORD)) != identity(VALUES)


@pytest.mark.rule("C10")
def test_digests_are_made_of_versions_and_never_of_values() -> None:
    same_version = rotated(DATABASE, "GMCANARYother", "a", 1)
    assert identity(same_version) == identity(VALUES)


def test_only_the_frame_stays_where_a_file_changed() -> None:
    files = DECLARATION.assignments["app@athens"].containers["web"].files
    edited = with_container(
        DECLARATION,
        "app@athens",
        "web",
        files={**files, "/opt/run.sh": FileSpec("from", "0:0", "0555", content="")},
    )
    before, after = (
        fill(each, VALUES).assignments["app@athens"].containers["web"] for each in (DECLARATION, edited)
    )
    assert before.marks.frame == after.marks.frame and before.identity != after.identity
    renamed = with_container(DECLARATION, "app@athens", "web", env={"MODE": "slow"})
    assert fill(renamed, VALUES).assignments["app@athens"].containers["web"].marks != before.marks


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (FileSpec("from", "0:0", "0444", content="!"), "no base64"),
        (FileSpec("from", "root", "0444", content=""), "two numbers"),
        (FileSpec("from", "0:0", "rwx", content=""), "octal"),
        (FileSpec("json", "0:0", "0444", tree=[], holes={"/0": "x"}), "no place"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_named(file: FileSpec, says: str) -> None:
    (found,) = fill(with_container(DECLARATION, "app@athens", "web", files={"/f": file}), VALUES).withheld
    assert found.assignment == "app@athens" and says in found.why
