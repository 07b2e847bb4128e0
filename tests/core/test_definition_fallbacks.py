"""Absolute paths that a module's own code takes where a variable is missing (A3)."""

from __future__ import annotations

import pytest

from gitmesh.core.definition_fallbacks import Fallback, fallbacks
from gitmesh.core.model import Module
from gitmesh.core.refusal import At, Span


def _fallbacks(code: str) -> tuple[Fallback, ...]:
    return fallbacks(Module("app", At("modules/app/module.yaml"), sources={"run": code.encode()}))


@pytest.mark.rule("A3")
@pytest.mark.parametrize(
    "code",
    [
        'cd "${DATA:-/srv/app}"',
        ': "${DATA:=/srv/app}"',
        "cd ${DATA-/srv/app}",
        'cd ${DATA:-"/srv/app"}',
        'os.environ.get("DATA", "/srv/app")',
        "os.getenv('DATA', '/srv/app')",
        'os.environ.get("DATA") or "/srv/app"',
        "const d = process.env.DATA || '/srv/app'",
        "const d = process.env['DATA'] ?? `/srv/app`",
        'ENV.fetch("DATA", "/srv/app")',
        "ENV['DATA'] || '/srv/app'",
        "getenv('DATA') ?: '/srv/app'",
    ],
)
def test_a_path_in_the_place_of_a_variable_is_found(code: str) -> None:
    assert [(each.variable, each.path) for each in _fallbacks(code)] == [("DATA", "/srv/app")]


@pytest.mark.rule("A3")
@pytest.mark.parametrize(
    "code",
    ["cd /srv/app", "${DATA:?}", "${NAME:-app/x}", 'os.environ["DATA"]', "process.env.DATA || 'x'"],
)
def test_other_paths_and_other_fallbacks_are_left_alone(code: str) -> None:
    assert _fallbacks(code) == ()


@pytest.mark.rule("A3")
def test_each_is_said_at_its_line_in_order() -> None:
    found = _fallbacks("#!/bin/sh\nA=${A:-/a}\n  B=${B:-/bc}\n")
    assert [each.at for each in found] == [
        At("modules/app/run", span=Span(2, 8, 2, 10)),
        At("modules/app/run", span=Span(3, 10, 3, 13)),
    ]
