"""What becomes of a container: the one decision that a plan says and a host carries out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gitmesh.core.compare import Decision, Fate, Marks, decide, marks
from gitmesh.core.declaration import AnswerHole, Hole
from gitmesh.core.model import Json
from tests.host.declared import ADMIN, DATABASE, DECLARATION

WEB = DECLARATION.assignments["app@athens"].containers["web"]
DB = DECLARATION.assignments["store@athens"].containers["db"]
OLD = Marks({"image": "1", "file /a": "1"}, {"content /a": "1"})
EDITED = replace(OLD, content={"content /a": "2"})


def at_versions(**versions: int) -> Marks:
    """The web container's marks, with the database's secret at a version."""

    def version(hole: Hole) -> Json:
        return None if isinstance(hole, AnswerHole) else versions.get(hole.secret.partition("@")[0], 0)

    return marks(WEB, DECLARATION.secrets, version)


@pytest.mark.rule("E8")
@pytest.mark.parametrize(
    ("there", "wanted", "reloads", "drifted", "decision"),
    [
        (None, OLD, False, False, Decision(Fate.START)),
        (OLD, OLD, False, False, Decision(Fate.KEEP)),
        (OLD, OLD, True, True, Decision(Fate.RECREATE, ("drifted",))),
        (OLD, EDITED, False, False, Decision(Fate.RECREATE, ("content /a",))),
        (OLD, EDITED, True, False, Decision(Fate.RELOAD, ("content /a",))),
        (OLD, replace(EDITED, frame={"file /a": "1"}), True, False,
         Decision(Fate.RECREATE, ("image", "content /a"))),
        (OLD, Marks({"image": "1"}), True, False, Decision(Fate.RECREATE, ("file /a",))),
    ],
)  # fmt: skip
def test_the_fate_of_a_container(
    there: Marks | None, wanted: Marks, reloads: bool, drifted: bool, decision: Decision
) -> None:
    assert decide(there, wanted, reloads=reloads, drifted=drifted) == decision


@pytest.mark.rule("E8")
def test_every_part_of_a_container_is_compared() -> None:
    parts = at_versions().frame.keys()
    assert {"image", "command", "env MODE", "env-file DB_URL", "mounts /data", "reads-as"} <= parts
    assert {f"login {DATABASE}", f"secret {DATABASE}", "file /opt/run.sh"} <= parts
    assert {"content /opt/run.sh", f"secret {DATABASE}"} <= at_versions().content.keys()


@pytest.mark.rule("E8")
def test_a_rotation_names_the_secret_and_its_login() -> None:
    decision = decide(at_versions(), at_versions(app=1), reloads=False)
    assert decision == Decision(Fate.RECREATE, (f"login {DATABASE}", f"secret {DATABASE}"))


VERSIONS: tuple[Callable[[Hole], Json], ...] = (lambda _: 1, lambda _: 2)
"""Two versions of every secret."""


@pytest.mark.rule("D6")
def test_a_secret_taken_without_a_restart_leaves_the_marks() -> None:
    one, two = (marks(DB, DECLARATION.secrets, version) for version in VERSIONS)
    assert one == two
    taken = {**DECLARATION.secrets, ADMIN: replace(DECLARATION.secrets[ADMIN], takes="start")}
    one, two = (marks(DB, taken, version) for version in VERSIONS)
    assert decide(one, two, reloads=False).why == (f"secret {ADMIN}",)
