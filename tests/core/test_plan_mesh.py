"""What a commit does to a whole mesh: what of its data stays, and who reads a secret."""

from __future__ import annotations

import pytest

from gitmesh.core.plan_mesh import MeshPlan, SecretPlan, plan_mesh
from gitmesh.core.record import EMPTY, Record
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.core.steps import Step, Verb
from gitmesh.repo.load import load
from tests.cli.small_mesh import FILES

GITEA, MODULE = "assignments/athens/gitea.yaml", "modules/gitea/module.yaml"
BEGUN = {
    **FILES,
    MODULE: FILES[MODULE].replace(
        "  http:", "  files: {host: directory, owner: '1:1', mode: '0700'}\n  http:"
    ),
    "mesh.yaml": FILES["mesh.yaml"] + "choose: {postgres-database: postgres@sparta}\n",
}
ALLOWED = {**BEGUN, "mesh.yaml": BEGUN["mesh.yaml"] + "allow: {drop: [athens]}\n"}
REST = {path: text for path, text in BEGUN.items() if path != GITEA}
GONE = {path: text for path, text in ALLOWED.items() if path != GITEA}
PLACE = "/var/lib/mesh/gitea/files on athens"
DATABASE = "`gitea_athens` of postgres@sparta"


def resolved(files: dict[str, str], record: Record = EMPTY) -> Resolution:
    """The resolution of a mesh that has one."""
    mesh, refused = load({path: text.encode() for path, text in files.items()})
    resolution = resolve(mesh, record)
    assert not refused and not resolution.refusals, (refused, resolution.refusals)
    return resolution


def planned(old: Resolution, files: dict[str, str]) -> tuple[MeshPlan, Resolution]:
    """What the files do upon a resolution, and theirs."""
    new = resolved(files, old.record)
    return plan_mesh(old, new), new


@pytest.mark.rule("G2")
@pytest.mark.rule("G8")
def test_what_leaves_leaves_its_data_and_coming_again_takes_it_up() -> None:
    begun = resolved(BEGUN)
    left, gone = planned(begun, GONE)
    assert left.dropped == ("gitea@athens",)
    assert left.kept == (
        Step(Verb.KEEP_DATA, DATABASE, ("orphan o1", "was gitea@athens.database")),
        Step(Verb.KEEP_DATA, PLACE, ("orphan o2", "was gitea@athens.files")),
    )
    assert planned(gone, BEGUN)[0].kept == (
        Step(Verb.TAKE_UP_DATA, DATABASE, ("orphan o1", "by gitea@athens.database")),
        Step(Verb.TAKE_UP_DATA, PLACE, ("orphan o2", "by gitea@athens.files")),
    )


@pytest.mark.rule("G2")
def test_a_purge_says_what_it_removes() -> None:
    _, gone = planned(resolved(BEGUN), GONE)
    purging, _ = planned(gone, {**REST, "purges.yaml": "- o2\n"})
    assert purging.kept == (Step(Verb.PURGE_DATA, PLACE, ("orphan o2",)),)


@pytest.mark.rule("G2")
@pytest.mark.rule("G8")
def test_a_move_keeps_its_identity_and_names_the_data_that_has_to_follow() -> None:
    begun = resolved(BEGUN)
    moved, _ = planned(begun, {**REST, "assignments/delphi/gitea.yaml": f"as: gitea_athens\n{BEGUN[GITEA]}"})
    assert moved.moved == {"gitea@athens": "gitea@delphi"} and moved.dropped == ()
    why = ("from /var/lib/mesh/gitea/files on athens", "waits until it is there")
    assert moved.kept == (Step(Verb.MOVE_DATA, "gitea@delphi.files", why),)
    assert "identity gitea_athens of gitea@delphi" not in moved.tentative


@pytest.mark.rule("G2")
def test_a_secret_says_who_sets_it_who_reads_it_and_what_it_restarts() -> None:
    begun = resolved(BEGUN)
    found, _ = planned(begun, {**BEGUN, "rotations.yaml": "gitea@athens.database: 3\n"})
    step = Step(Verb.ROTATE_SECRET, "gitea@athens.database", ("generation 0 to 3",))
    reader = ("gitea@athens",)
    assert found.secrets == (SecretPlan(step, "postgres@sparta", reader, ("gitea@athens gitea",)),)
    left, _ = planned(begun, GONE)
    dropped = Step(Verb.DROP_SECRET, "gitea@athens.database")
    assert left.secrets[0] == SecretPlan(dropped, "postgres@sparta", reader, ())


@pytest.mark.rule("G2")
def test_what_is_given_for_the_first_time_is_tentative() -> None:
    begun = resolved(BEGUN)
    more = {**BEGUN, "assignments/delphi/gitea.yaml": "values: {web.name: two.example.org}\n"}
    found, new = planned(begun, more)
    assert found.tentative == ("identity gitea_delphi of gitea@delphi", "port 31000 of gitea@delphi.http")
    assert planned(new, more)[0] == MeshPlan({})
