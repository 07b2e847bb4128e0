"""Nouns to JSON and back."""

from __future__ import annotations

import pytest

from gitmesh.core.codec import Malformed, decode, encode
from gitmesh.core.declaration import (
    AnswerHole,
    AssignmentSpec,
    ContainerSpec,
    Declaration,
    FileSpec,
    Holed,
    LoginHole,
    SecretHole,
    SecretSpec,
)

DECLARATION = Declaration(
    "7f" * 16,
    "hellas",
    "athens",
    "10.7.0.11",
    "/var/lib/mesh",
    {"athens.hellas.internal": "10.7.0.11"},
    {
        "app@athens": AssignmentSpec(
            "app_athens",
            containers={
                "app": ContainerSpec(
                    "app:1",
                    command=("run", Holed(("--site=", AnswerHole("s@athens", "app@athens.stats", "site")))),
                    env={"URL": Holed(("db://", LoginHole("app@athens.database", url=True)))},
                    files={"/run/secrets/k": FileSpec("text", "0:0", "0400", Holed((SecretHole("k"),)))},
                )
            },
        )
    },
    {"k": SecretSpec("app@athens", "value", {"type": "string"}, "own", "start", logins=("a", "b"))},
)


def test_there_and_back() -> None:
    assert decode(Declaration, encode(DECLARATION)) == DECLARATION


@pytest.mark.rule("G2")
def test_a_default_written_out_changes_nothing() -> None:
    written = ContainerSpec("app:1", env={}, publish=(), health=None)
    assert encode(written) == encode(ContainerSpec("app:1")) == {"image": "app:1"}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda value: value.pop("node"), "node is missing"),
        (lambda value: value.update(more=1), "unknown key more"),
        (lambda value: value.update(hosts=[]), "/hosts: expected an object"),
        (lambda value: value["hosts"].update(x=1), "/hosts/x: expected str"),
        (lambda value: value["secrets"]["k"].update(logins=["a"]), "/secrets/k/logins: expected 2 items"),
        (lambda value: value["assignments"]["app@athens"].update(needs={}), "needs: expected a list"),
        (
            lambda value: value["assignments"]["app@athens"]["containers"]["app"]["env"].update(
                URL=[{"secret": "k", "encode": "html"}]
            ),
            "unknown key in a hole",
        ),
    ],
)
def test_anything_else_is_malformed(change: object, where: str) -> None:
    value = encode(DECLARATION)
    change(value)  # type: ignore[operator]  # the table holds functions of one shape
    with pytest.raises(Malformed, match=where):
        decode(Declaration, value)
