"""`gitmesh schema`: what each kind of file may say."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from gitmesh.cli.author import schema
from gitmesh.cli.main import Misused
from gitmesh.repo.schema import KINDS
from gitmesh.repo.schema import schema as schema_of


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_listed_and_printed(kind: str) -> None:
    listed = CliRunner().invoke(schema, []).output
    assert f"{schema_of(kind)['title']}\n" in listed
    assert kind in [line.split()[0] for line in listed.splitlines()]
    assert json.loads(CliRunner().invoke(schema, [kind]).output) == schema_of(kind)


def test_a_misspelt_kind_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(schema, ["modul"], standalone_mode=False)
    assert isinstance(result.exception, Misused)
    assert result.exception.message.endswith("did you mean `module`?")
