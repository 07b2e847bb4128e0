"""The comparison of two declarations: empty for equals, and each step with what says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmesh.core.declaration import CheckSpec, Declaration, DirectorySpec, PublishSpec, RegistrySpec
from gitmesh.core.plan import Version, hosts, plan
from gitmesh.core.plan_mesh import MeshPlan, plan_mesh
from gitmesh.core.record import Record
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.core.steps import Step, Verb
from gitmesh.repo.load import load
from tests.host.declared import ADMIN, DATABASE, DECLARATION, with_assignment, with_container
from tests.oracle.meshes import World, files_of, worlds

APP, STORE = "app@athens", "store@athens"


def steps(old: Declaration | None, new: Declaration | None, assignment: str, **versions: Any) -> list[Step]:
    """The steps of one assignment; none where nothing changes."""
    return [
        step for each in plan(old, new, **versions) if each.assignment == assignment for step in each.steps
    ]


def changed(assignment: str, **changes: Any) -> list[Step]:
    """The steps for one changed assignment of the declaration."""
    return steps(DECLARATION, with_assignment(DECLARATION, assignment, **changes), assignment)


@pytest.mark.rule("G2")
def test_equal_declarations_give_nothing() -> None:
    assert plan(DECLARATION, DECLARATION) == plan(None, None) == ()


@pytest.mark.rule("G2")
def test_providers_come_first_and_data_is_kept() -> None:
    assert [each.assignment for each in plan(None, DECLARATION)] == [
        "mesh@athens", "site@athens", "store@athens", "app@athens",
    ]  # fmt: skip
    gone = steps(DECLARATION, None, APP)
    assert Step(Verb.KEEP_DIRECTORY, "data", ("/var/lib/mesh/app/data",)) in gone
    assert Step(Verb.STOP, "web") in gone and Step(Verb.DROP_SECRET, DATABASE) in gone


@pytest.mark.rule("G2")
def test_only_files_changed_is_a_reload_where_the_module_says_so() -> None:
    old = with_container(DECLARATION, APP, "web", plain={"reload": {"signal": "HUP"}})
    files = old.assignments[APP].containers["web"].files
    script = replace(files["/opt/run.sh"], content="eA==")
    new = with_container(old, APP, "web", files={**files, "/opt/run.sh": script})
    assert plan(old, new)[0].steps == (Step(Verb.RELOAD, "web", ("content /opt/run.sh",)),)
    new = with_container(new, APP, "web", command=("x",))
    assert plan(old, new)[0].steps == (Step(Verb.RECREATE, "web", ("command", "content /opt/run.sh")),)


@pytest.mark.rule("G2")
def test_a_new_image_is_pulled_and_a_changed_health_recreates() -> None:
    new = with_container(DECLARATION, APP, "web", image="docker.io/app:2@sha256:9", health={"tcp": 80})
    assert steps(DECLARATION, new, APP) == [
        Step(Verb.PULL_IMAGE, "docker.io/app:2@sha256:9"),
        Step(Verb.RECREATE, "web", ("health", "image")),
    ]


@pytest.mark.rule("G2")
def test_ports_are_opened_closed_and_moved() -> None:
    port = DECLARATION.assignments[STORE].containers["db"].publish[0]
    for publish, expected in {
        (): Step(Verb.CLOSE_PORT, "31004/tcp", ("mesh",)),
        (replace(port, port=31009),): Step(Verb.MOVE_PORT, "31009/tcp", ("from 31004/tcp mesh", "to mesh")),
        (port, PublishSpec("0.0.0.0", 80, 80, "tcp", "public")): Step(Verb.OPEN_PORT, "80/tcp", ("public",)),
    }.items():
        new = with_container(DECLARATION, STORE, "db", publish=publish)
        assert steps(DECLARATION, new, STORE) == [expected, Step(Verb.RECREATE, "db", ("publish",))]


@pytest.mark.rule("G2")
@pytest.mark.rule("G8")
def test_directories_are_made_changed_and_moved_with_their_data() -> None:
    old = DECLARATION.assignments[APP].directories["data"]
    assert changed(APP, directories={"data": replace(old, mode="0700")}) == [
        Step(Verb.CHANGE_DIRECTORY, "data", ("mode",))
    ]
    assert changed(APP, directories={"data": replace(old, location="/mnt/app")}) == [
        Step(Verb.MOVE_DIRECTORY, "data",
             ("/var/lib/mesh/app/data to /mnt/app", "waits until its data is there")),
    ]  # fmt: skip
    more = {"data": old, "more": DirectorySpec("/more", "0:0", "0700")}
    assert changed(APP, directories=more) == [Step(Verb.MAKE_DIRECTORY, "more", ("/more",))]


@pytest.mark.rule("G2")
def test_jobs_say_what_of_them_changed() -> None:
    job = DECLARATION.assignments[STORE].jobs["backup"]
    spec = replace(job.spec, command=("pg_dumpall",))
    assert changed(STORE, jobs={"backup": replace(job, schedule="every 5m", spec=spec), "more": job}) == [
        Step(Verb.ADD_JOB, "more", ("daily",)),
        Step(Verb.CHANGE_JOB, "backup", ("schedule", "command")),
    ]
    assert changed(STORE, jobs={}) == [Step(Verb.DROP_JOB, "backup")]


@pytest.mark.rule("G2")
def test_what_is_provided_and_how_it_is_checked() -> None:
    given_ = DECLARATION.assignments[STORE].provides["postgres-database"]
    consumer = given_.consumers[0]
    assert changed(STORE, provides={"postgres-database": replace(given_, admin=ADMIN)}) == [
        Step(Verb.CHANGE_PROVISION, "postgres-database", ("admin",))
    ]
    other = replace(given_, consumers=(replace(consumer, address="10.7.0.12"),))
    assert changed(STORE, provides={"postgres-database": other}) == [
        Step(Verb.ENSURE_LOGIN, DATABASE, ("address",))
    ]
    assert changed(STORE, provides={"postgres-database": replace(given_, consumers=())}) == [
        Step(Verb.KEEP_DATA, "postgres-database app_athens", (f"of {DATABASE}",)),
        Step(Verb.RETIRE_LOGIN, DATABASE),
    ]
    one, two = ({"database": CheckSpec(check, DATABASE)} for check in ("postgres", "none"))
    old = with_assignment(DECLARATION, APP, checks=one)
    new = with_assignment(DECLARATION, APP, checks=two, needs=("site@athens",), as_="app_sparta")
    assert steps(old, new, APP) == [
        Step(Verb.CHANGE_IDENTITY, "app_sparta", ("was app_athens",)),
        Step(Verb.CHANGE_CHECK, "database", ("check",)),
        Step(Verb.CHANGE_ORDER, "start", ("after site@athens", "no longer after store@athens")),
    ]


@pytest.mark.rule("G2")
def test_a_rotation_recreates_its_readers_and_is_set_by_its_provider() -> None:
    versions = {"before": {DATABASE: Version(1)}, "after": {DATABASE: Version(2)}}
    assert steps(DECLARATION, DECLARATION, APP, **versions) == [
        Step(Verb.ROTATE_SECRET, DATABASE, ("generation 1 to 2",)),
        Step(Verb.RECREATE, "web", (f"login {DATABASE}", f"secret {DATABASE}")),
    ]
    assert steps(DECLARATION, DECLARATION, STORE, **versions) == [
        Step(Verb.ENSURE_LOGIN, DATABASE, (f"secret {DATABASE}",))
    ]


@pytest.mark.rule("G2")
@pytest.mark.rule("C10")
def test_what_was_handed_over_anew_is_taken_and_its_digest_never_shown() -> None:
    versions = {"before": {DATABASE: Version()}, "after": {DATABASE: Version(handed="GMCANARYdigest")}}
    found = plan(DECLARATION, DECLARATION, **versions)
    assert Step(Verb.TAKE_SECRET, DATABASE, ("handed over anew",)) in found[1].steps
    assert "GMCANARY" not in repr((found, versions))


@pytest.mark.rule("D6")
def test_a_rotation_of_what_is_taken_while_running_restarts_nothing() -> None:
    found = steps(DECLARATION, DECLARATION, STORE, after={ADMIN: Version(1)})
    assert found == [Step(Verb.ROTATE_SECRET, ADMIN, ("generation 0 to 1",))]


@pytest.mark.rule("G2")
def test_what_changes_of_the_node_itself() -> None:
    new = replace(DECLARATION, address="10.9.0.1", root="/srv", name="sparta",
                  registries={"docker.io": RegistrySpec("mirror.example.org")})  # fmt: skip
    assert steps(DECLARATION, new, "mesh@athens") == [
        Step(Verb.CHANGE_NODE, "address", ("10.7.0.11 to 10.9.0.1",)),
        Step(Verb.CHANGE_NODE, "mesh", ("hellas to sparta",)),
        Step(Verb.CHANGE_NODE, "root", ("/var/lib/mesh to /srv",)),
        Step(Verb.CHANGE_REGISTRY, "docker.io", ("mirror",)),
    ]
    assert hosts({"a": "10.0.0.1", "b": "10.0.0.2"}, {"b": "10.0.0.3", "c": "10.0.0.4"}) == (
        Step(Verb.LEARN_HOST, "b", ("10.0.0.3",)),
        Step(Verb.LEARN_HOST, "c", ("10.0.0.4",)),
        Step(Verb.FORGET_HOST, "a"),
    )


# --- properties over generated meshes ------------------------------------------------------------------


def resolved(world: World, record: Record) -> Resolution | None:
    """The resolution of a generated mesh, where it has one."""
    mesh, refusals = load(files_of(world))
    resolution = resolve(mesh, record)
    return None if refusals or resolution.refusals else resolution


def run_and_stopped(planned: MeshPlan) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The containers that are started, and those that are stopped."""
    found: dict[Verb, set[tuple[str, str]]] = {Verb.START: set(), Verb.STOP: set()}
    for node in planned.nodes.values():
        for each in node:
            for step in each.steps:
                if step.verb in found:
                    found[step.verb].add((each.assignment, step.subject))
    return found[Verb.START], found[Verb.STOP]


@given(worlds())
@settings(max_examples=60, deadline=None)
@pytest.mark.rule("G2")
def test_a_mesh_against_itself_plans_nothing(world: World) -> None:
    first = resolved(world, Record())
    if first is not None:
        again = resolved(world, first.record)
        assert again is not None
        assert plan_mesh(first, again) == MeshPlan({})


@given(worlds(), st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.rule("G2")
def test_what_a_commit_adds_its_revert_removes(world: World, data: st.DataObject) -> None:
    first = resolved(world, Record())
    if first is None:
        return
    gone = data.draw(st.sampled_from(world.places))
    rest = tuple(each for each in world.places if each is not gone)
    less = replace(world, places=rest, drops=tuple(each.name for each in world.machines))
    second = resolved(less, first.record)
    if second is None:
        return
    removed, added = plan_mesh(first, second), plan_mesh(second, first)
    assert run_and_stopped(removed) == run_and_stopped(added)[::-1]
    assert removed == plan_mesh(first, second)
    assert gone.id in removed.dropped and any(f"of {gone.id}" in each for each in added.tentative)
