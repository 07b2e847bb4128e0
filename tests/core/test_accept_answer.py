"""A generation in rotations.yaml accepts a changed answer, and reaches its reader alone (B12)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gitmesh.core.answer import generation_of
from gitmesh.core.codec import encode
from gitmesh.core.compose import compose
from gitmesh.core.plan_mesh import plan_mesh
from gitmesh.core.record import Record
from gitmesh.core.refusal import Code, Refusal
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.core.steps import Step, Verb
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, mesh_files

pytestmark = pytest.mark.rule("B12")

STATS = "app@athens.stats"


CASE = mesh_files(HERE / "resolved" / "a-changed-answer-accepted")
APP = CASE["modules/app/module.yaml"].decode()
ANALYTICS_WITH_LOGIN = (
    CASE["contracts/analytics-site.yaml"].decode()
    + """\
  user:     {type: string}
  password: {type: string, secret: true, minLength: 24}
credential: {login: user, secret: password, by: vault, rotation: two, check: redis}
"""
)


def with_files(changes: Mapping[str, str | None]) -> tuple[Resolution, list[Refusal]]:
    """The case's mesh with files changed (None: gone), resolved; and everything it is refused for."""
    files = {path: blob for path, blob in CASE.items() if path not in changes}
    files |= {path: text.encode() for path, text in changes.items() if text is not None}
    mesh, refusals = load(files)
    resolution = resolve(mesh, Record())
    return resolution, [*refusals, *resolution.refusals]


def test_the_generation_stands_with_the_answer_and_costs_nothing_where_there_is_none() -> None:
    (without, none), (accepting, refusals) = with_files({"rotations.yaml": None}), with_files({})
    assert none == refusals == []
    before, after = compose(without), compose(accepting)
    assert after["athens"].answers[STATS].generation == 2
    assert "generation" not in str(encode(before["athens"]))
    assert {node for node in after if after[node] != before[node]} == {"athens"}


def test_the_plan_says_what_is_accepted() -> None:
    found = plan_mesh(with_files({"rotations.yaml": None})[0], with_files({})[0])
    (planned,) = found.nodes["athens"]
    assert planned.steps == (
        Step(Verb.ACCEPT_ANSWER, STATS, ("generation 0 to 2", "what stats@sparta answers now")),
    )
    assert list(found.nodes) == ["athens"] and found.secrets == ()


def test_an_answer_is_nothing_to_reveal() -> None:
    _, refusals = with_files({"reveals.yaml": f"{STATS}: age1{'q' * 58}\n"})
    assert [(each.code, each.subject) for each in refusals] == [(Code.KEY_UNKNOWN, STATS)]


@pytest.mark.parametrize(("rotation", "generation"), [("two", 2), ("never", 0)])
def test_accepting_an_answer_rotates_no_secret_that_is_never_rotated(rotation: str, generation: int) -> None:
    """A contract may give an answer beside a credential, and one line of rotations.yaml is for both."""
    resolution, refusals = with_files(
        {
            "contracts/analytics-site.yaml": ANALYTICS_WITH_LOGIN.replace(
                "rotation: two", f"rotation: {rotation}"
            ),
            "modules/app/module.yaml": f"{APP}      PASSWORD_FILE: {{file: '${{stats:password}}'}}\n",
        }
    )
    assert refusals == []
    secret = resolution.secrets[STATS]
    assert (secret.rotation, generation_of(resolution.mesh, secret)) == (rotation, generation)
    assert compose(resolution)["athens"].answers[STATS].generation == 2
