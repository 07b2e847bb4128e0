"""What stays through moves, renames and drops: one commit after another, each with the record before it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from gitmesh.core.compose import compose
from gitmesh.core.record import Origin, Orphan, Record, from_json, to_json
from gitmesh.core.refusal import Code, ordered
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.repo.load import load
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import APP, NOTHING
from tests.real import PROJECT

SAID = "values: {web.name: app.example.org}\n"
MOVED = "assignments/delphi/app.yaml"
STORE = "assignments/delphi/postgres.yaml"
PINNED = SAID + "pins: {database: postgres@delphi}\n"
DROP = mesh_files(NOTHING)["mesh.yaml"].decode() + "allow: {drop: [athens]}\n"
SCHEMA = Draft202012Validator(json.loads((PROJECT / "schemas/record.json").read_text()))

Changes = Mapping[str, str | None]


def after(
    record: Record, *changes: Changes, confirmed: Collection[tuple[str, str]] = ()
) -> tuple[Resolution, set[Code]]:
    """The base with files changed (None: gone) resolved with `record`, and the codes it is refused for.
    Its record stands another resolution of the same commit, JSON and the schema."""
    files = mesh_files(NOTHING)
    for path, text in {path: text for each in changes for path, text in each.items()}.items():
        if text is None:
            del files[path]
        else:
            files[path] = text.encode()
    mesh, refusals = load(files)
    found = resolve(mesh, record, frozenset(confirmed))
    codes = {each.code for each in ordered([*refusals, *found.refusals])}
    written = to_json(found.record, mesh.id)
    SCHEMA.validate(written)
    assert from_json(json.loads(json.dumps(written))) == found.record
    if not codes:
        again = resolve(mesh, found.record, frozenset(confirmed))
        assert (again.record, again.refusals) == (found.record, ()), "a commit resolved again changes nothing"
    return found, codes


def deployed(*changes: Changes) -> Record:
    """The record of a first deploy."""
    found, codes = after(Record(), *changes)
    assert not codes
    return found.record


def follows(record: Record, *changes: Changes) -> Record:
    """The record of a commit that is not refused."""
    found, codes = after(record, *changes)
    assert not codes
    return found.record


# --- moves (G8) ----------------------------------------------------------------------------------------


@pytest.mark.rule("G8")
@pytest.mark.rule("B14")
def test_an_assignment_that_moves_keeps_its_database_and_its_directory_waits() -> None:
    move = {APP: None, MOVED: SAID + "as: app_athens\n"}
    found, codes = after(deployed(), move)
    assert not codes
    kept = found.record.of("app@delphi")
    assert kept.as_ == "app_athens"
    assert kept.moving == {"data": Origin("athens", "/var/lib/mesh/app/data")}
    assert not found.record.orphans
    provided = compose(found)["sparta"].assignments["postgres@sparta"].provides["postgres-database"]
    assert [each.as_ for each in provided.consumers] == ["app_athens"]

    there = follows(found.record, move, {MOVED: SAID + "as: app_athens\nmoved: {data: true}\n"})
    assert not there.of("app@delphi").moving
    (left,) = there.orphans.values()
    assert (left.node, left.where) == ("athens", "/var/lib/mesh/app/data"), "what stayed behind may be purged"


@pytest.mark.rule("G8")
def test_a_provider_that_moves_is_followed_by_its_consumers() -> None:
    move = {"assignments/sparta/postgres.yaml": None, STORE: "holds: [mesh-store]\nas: postgres_sparta\n"}
    found, codes = after(deployed(), move)
    assert not codes
    assert found.record.of("app@athens").providers["database"] == "postgres@delphi"
    assert not found.record.of("app@athens").leaving
    assert found.record.holders["mesh-store"] == "postgres@delphi"
    assert not found.record.orphans


@pytest.mark.rule("G8")
@pytest.mark.rule("B17")
def test_a_module_that_is_renamed_keeps_identity_ports_and_data() -> None:
    module = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    renamed = {
        APP: None,
        "modules/app/module.yaml": None,
        "modules/shop/module.yaml": module.replace("module: app\n", "module: shop\n"),
        "assignments/athens/shop.yaml": SAID + "place: {http: 31000}\n",
    }
    before = deployed()
    assert after(before, renamed)[1] == {Code.MOVE_UNSAID}
    record = follows(before, renamed, {"assignments/athens/shop.yaml": SAID + "as: app_athens\n"})
    kept = record.of("shop@athens")
    assert kept.ports == before.of("app@athens").ports
    assert kept.resources == before.of("app@athens").resources
    assert kept.moving == {"data": Origin("athens", "/var/lib/mesh/app/data")}


@pytest.mark.rule("G8")
def test_a_renamed_node_is_refused_until_its_assignments_say_who_they_were() -> None:
    node = mesh_files(NOTHING)["nodes/athens.yaml"].decode()
    renamed = {
        "nodes/athens.yaml": None,
        "nodes/corinth.yaml": node,
        APP: None,
        "assignments/corinth/app.yaml": SAID,
    }
    before = deployed()
    assert Code.MOVE_UNSAID in after(before, renamed)[1]
    record = follows(before, renamed, {"assignments/corinth/app.yaml": SAID + "as: app_athens\n"})
    assert record.of("app@corinth").resources == before.of("app@athens").resources


@pytest.mark.rule("G8")
@pytest.mark.parametrize(
    "change",
    [{APP: SAID + "place: {data: /srv/app}\n"}, {"nodes/athens.yaml": "address: 10.7.0.11\nroot: /srv\n"}],
    ids=["a-placement", "a-root"],
)
def test_a_directory_that_moves_says_where_its_data_is_until_it_is_there(change: Changes) -> None:
    old = Origin("athens", "/var/lib/mesh/app/data")
    record = follows(deployed(), change)
    assert record.of("app@athens").moving == {"data": old}
    assert not record.orphans, "it is nobody's orphan as long as it is waited for"
    record = follows(record, change)
    assert record.of("app@athens").moving == {"data": old}
    back = follows(record)
    assert not back.of("app@athens").moving
    said = change.get(APP) or SAID
    there = follows(record, change, {APP: f"{said}moved: {{data: true}}\n"})
    assert not there.of("app@athens").moving
    assert [each.where for each in there.orphans.values()] == [old.location]


@pytest.mark.rule("G8")
def test_moved_counts_for_one_move() -> None:
    moved = "moved: {data: true}\n"
    record = follows(deployed(), {APP: SAID + "place: {data: /srv/app}\n" + moved})
    assert record.of("app@athens").moved
    assert after(record, {APP: SAID + "place: {data: /srv/two}\n" + moved})[1] == {Code.MOVED_LEFTOVER}
    assert follows(record, {APP: SAID + "place: {data: /srv/two}\n"}).of("app@athens").moving


# --- orphans (D5, G8) ----------------------------------------------------------------------------------


@pytest.mark.rule("D5")
@pytest.mark.rule("G8")
def test_what_is_unassigned_is_orphaned_and_taken_up_again_under_ids_that_are_never_reused() -> None:
    gone = {APP: None, "mesh.yaml": DROP}
    record = follows(deployed(), gone)
    assert record.orphans == {
        "o1": Orphan("directory", "app@athens", "data", "athens", "/var/lib/mesh/app/data"),
        "o2": Orphan(
            "resource",
            "app@athens",
            "database",
            "sparta",
            "postgres@sparta",
            "postgres-database",
            "app_athens",
        ),
    }
    back, codes = after(record)
    assert not codes
    assert {id_: each.requirement for id_, each in back.taken_up.items()} == {"o1": "data", "o2": "database"}
    assert not back.record.orphans
    assert set(follows(back.record, gone).orphans) == {"o3", "o4"}


@pytest.mark.rule("G8")
def test_one_that_begins_fresh_takes_nothing_up() -> None:
    record = follows(deployed(), {APP: None, "mesh.yaml": DROP})
    assert after(record, {APP: SAID + "fresh: true\n"})[1] == {Code.ORPHAN_FOUND}
    purged = follows(record, {APP: None, "purges.yaml": "[o1, o2]\n"})
    assert not follows(purged, {APP: SAID + "fresh: true\n"}).orphans


@pytest.mark.rule("D5")
def test_a_purge_holds_while_its_line_stands_and_then_the_orphan_is_gone() -> None:
    record = follows(deployed(), {APP: None, "mesh.yaml": DROP})
    purging = follows(record, {APP: None, "purges.yaml": "[o2]\n"})
    assert set(purging.orphans) == {"o1"} and set(purging.purging) == {"o2"}
    gone = follows(purging, {APP: None})
    assert set(gone.orphans) == {"o1"} and not gone.purging
    assert gone.next_orphan == 3, "an id is never given twice"
    assert after(gone, {APP: None, "purges.yaml": "[o2]\n"})[1] == {Code.PURGE_REFUSED}
    early = after(deployed(), {APP: None, "mesh.yaml": DROP, "purges.yaml": "[o1]\n"})
    assert early[1] == {Code.PURGE_REFUSED}, "an id that is not given yet"
    assert after(record, {"purges.yaml": "[o2]\n"})[1] == {Code.PURGE_REFUSED}, "it is in use again"
    assert after(purging, {"purges.yaml": "[o2]\n"})[1] == {Code.PURGE_REFUSED}, "and so it is while purged"


# --- drops (G3) ----------------------------------------------------------------------------------------


@pytest.mark.rule("G3")
def test_a_drop_is_said_and_its_allowance_does_not_stay() -> None:
    before = deployed()
    assert after(before, {APP: None})[1] == {Code.DROP_UNSAID}
    record = follows(before, {APP: None, "mesh.yaml": DROP})
    assert record.dropped == ("athens",)
    assert after(record, {"mesh.yaml": DROP})[1] == {Code.DROP_LEFTOVER}
    assert follows(record, {APP: None}).dropped == ()


@pytest.mark.rule("G3")
def test_a_spread_that_is_refused_drops_nothing() -> None:
    spread = {"spreads/apps.yaml": "module: app\nlabel: web\n"}
    node = {"nodes/athens.yaml": "address: 10.7.0.11\nlabels: [web]\n"}
    files: Changes = {APP: None, **spread, **node, "values/app.yaml": "mesh: {}\n"}
    before = Record({"app@athens": deployed().of("app@athens")})
    _, codes = after(before, files, {"spreads/apps.yaml": "module: app\nlable: web\n"})
    assert codes == {Code.SCHEMA}


# --- providers (G1, D9, B21) and seats (B13) -----------------------------------------------------------


@pytest.mark.rule("D9")
@pytest.mark.rule("B21")
def test_a_provider_is_being_left_until_the_new_one_is_confirmed() -> None:
    both = {STORE: "uses: []\n"}
    before = deployed(both, {APP: SAID + "pins: {database: postgres@sparta}\n"})
    record = follows(before, both, {APP: PINNED})
    assert record.of("app@athens").leaving == {"database": "postgres@sparta"}
    assert not record.orphans, "its old database is not nobody's yet"

    gone: Changes = {"assignments/sparta/postgres.yaml": None, STORE: "holds: [mesh-store]\n", APP: PINNED}
    assert Code.PROVIDER_IN_USE in after(record, gone)[1]
    confirmed = {("app@athens", "database")}
    left, codes = after(record, both, {APP: PINNED}, confirmed=confirmed)
    assert not codes
    assert not left.record.of("app@athens").leaving
    assert [each.where for each in left.record.orphans.values()] == ["postgres@sparta"]


@pytest.mark.rule("D9")
def test_one_that_moves_back_leaves_nobody() -> None:
    both = {STORE: "uses: []\n"}
    pinned = {APP: SAID + "pins: {database: postgres@sparta}\n"}
    before = deployed(both, pinned)
    record = follows(follows(before, both, {APP: PINNED}), both, pinned)
    assert not record.of("app@athens").leaving
    assert [each.where for each in record.orphans.values()] == ["postgres@delphi"]


@pytest.mark.rule("G1")
def test_a_provider_that_stops_providing_is_not_replaced_unsaid() -> None:
    edge = mesh_files(NOTHING)["modules/edge/module.yaml"].decode()
    other = {
        "modules/proxy/module.yaml": edge.replace("module: edge", "module: proxy").replace(
            "[mesh-edge]", "[]"
        ),
        "assignments/sparta/proxy.yaml": "uses: []\n",
    }
    before = deployed()
    less = {
        "modules/edge/module.yaml": edge.partition("provides:")[0].replace("[mesh-edge]", "[]"),
        "assignments/delphi/edge.yaml": "uses: []\n",
    }
    found, codes = after(before, other, less)
    assert codes == {Code.PROVIDER_CHANGED}
    assert found.refusals[0].answers[0].text == "stay with edge@delphi: let it provide `route` as before"
    assert not after(before, other, less, {APP: SAID + "pins: {web: proxy@sparta}\n"})[1]


@pytest.mark.rule("G1")
def test_consumers_of_a_seat_move_with_it_where_a_person_chose_its_new_holder() -> None:
    module = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    named = {
        "modules/app/module.yaml": module.replace(
            "postgres-database}", "postgres-database, seat: mesh-store}"
        )
    }
    moved = {"assignments/sparta/postgres.yaml": "uses: []\n", STORE: "holds: [mesh-store]\n"}
    before = deployed(named)
    assert after(before, named, moved)[1] == {Code.PROVIDER_CHANGED}
    chosen = mesh_files(NOTHING)["mesh.yaml"].decode() + "choose: {postgres-database: postgres@delphi}\n"
    record = follows(before, named, moved, {"mesh.yaml": chosen})
    assert record.of("app@athens").leaving == {"database": "postgres@sparta"}


@pytest.mark.rule("B21")
def test_a_requirement_that_goes_with_its_provider_has_no_provider_in_use() -> None:
    module = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    lines = [each for each in module.splitlines() if "web" not in each]
    without = {
        "modules/app/module.yaml": "\n".join(lines) + "\n",
        APP: "uses: []\n",
        "assignments/delphi/edge.yaml": None,
    }
    assert after(deployed(), without)[1] == set()


@pytest.mark.rule("B13")
def test_a_guarded_seat_moves_by_break_glass_alone() -> None:
    before = deployed()
    moved = {
        "assignments/delphi/vault.yaml": "uses: []\n",
        "assignments/athens/vault.yaml": "holds: [mesh-vault]\n",
    }
    assert after(before, moved)[1] == {Code.SEAT_BREAK_GLASS}
    renamed = {
        "assignments/delphi/vault.yaml": None,
        "assignments/athens/vault.yaml": "holds: [mesh-vault]\nas: vault_delphi\n",
    }
    assert after(before, renamed)[1] == {Code.SEAT_BREAK_GLASS}, "`as` is no way around"
    nobody = follows_vault(before)
    assert nobody.holders["mesh-vault"] == "vault@delphi", "nor are two commits"
    revoked = {"nodes/delphi.yaml": mesh_files(NOTHING)["nodes/delphi.yaml"].decode() + "state: revoked\n"}
    assert not after(before, moved, revoked)[1]
    assert not after(replace(before, holders={}), moved)[1], "raised for the first time"


def follows_vault(before: Record) -> Record:
    """The record of a commit in which nobody holds the vault, whatever it is refused for."""
    return after(before, {"assignments/delphi/vault.yaml": "uses: []\n"})[0].record
