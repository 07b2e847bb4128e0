"""Resolution as a whole, on small meshes made of the case folders' base."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from gitmesh.core.compose import compose
from gitmesh.core.declaration import Declaration, Holed, LoginHole, SecretHole
from gitmesh.core.identity import LONGEST, dns, logins, mint
from gitmesh.core.record import Record, Recorded, Resource, from_json, to_json
from gitmesh.core.refusal import Code, Refusal, ordered
from gitmesh.core.resolve import Resolution, resolve
from gitmesh.core.waiting import Waiting, waiting
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, mesh_files

APP = "assignments/athens/app.yaml"
NOTHING = HERE / "resolved" / "the-base"


def resolved(
    changes: Mapping[str, str | None] | None = None, record: Record | None = None
) -> tuple[Resolution, tuple[Refusal, ...]]:
    """The base with files changed (None: gone), resolved; and everything it is refused for."""
    files = mesh_files(NOTHING)
    for path, text in (changes or {}).items():
        if text is None:
            del files[path]
        else:
            files[path] = text.encode()
    mesh, refusals = load(files)
    resolution = resolve(mesh, record or Record())
    return resolution, ordered([*refusals, *resolution.refusals])


def declarations(changes: Mapping[str, str | None] | None = None) -> dict[str, Declaration]:
    """The declarations of a mesh that resolves."""
    resolution, refusals = resolved(changes)
    assert refusals == ()
    return compose(resolution)


@pytest.mark.rule("B10")
def test_three_mistakes_of_different_kinds_are_said_at_once() -> None:
    _, refusals = resolved(
        {APP: "", "assignments/delphi/vault.yaml": "", "assignments/delphi/postgres.yaml": ""}
    )
    assert {each.code for each in refusals} == {
        Code.AMBIGUOUS_PROVIDER,
        Code.VALUE_MISSING,
        Code.SEAT_UNHELD,
    }
    assert all(each.answers for each in refusals), "each says what would answer it"


@pytest.mark.rule("C2")
def test_an_undecided_provider_does_not_hide_an_unheld_vault() -> None:
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    without_own = app.replace("  key:      {module: secret}\n", "").replace(
        "      KEY_FILE: {file: '${key:value}'}\n", ""
    )
    _, refusals = resolved(
        {
            "modules/app/module.yaml": without_own,
            "assignments/delphi/vault.yaml": "",
            "assignments/sparta/postgres.yaml": None,
        }
    )
    unheld = [each for each in refusals if each.code is Code.SEAT_UNHELD]
    assert [each.subject for each in unheld] == ["app@athens.database"]
    assert Code.NO_PROVIDER in {each.code for each in refusals}


@pytest.mark.rule("C2")
def test_a_consumers_secret_goes_to_its_applier_and_its_reader_and_no_one_else() -> None:
    found = declarations()
    assert found["sparta"].secrets["app@athens.database"].role == "apply"
    assert found["athens"].secrets["app@athens.database"].role == "present"
    assert "app@athens.database" not in found["delphi"].secrets
    assert found["athens"].secrets["app@athens.database"].by == "postgres@sparta"
    assert found["athens"].secrets["app@athens.key"].role == "own"
    assert found["sparta"].secrets.keys() == {"app@athens.database", "postgres@sparta.superuser"}


@pytest.mark.rule("B20")
def test_both_ends_are_told_the_same() -> None:
    found = declarations({"assignments/sparta/app.yaml": "values: {web.name: b.example.org}"})
    provision = found["sparta"].assignments["postgres@sparta"].provides["postgres-database"]
    entries = {each.to: each for each in provision.consumers}
    assert entries.keys() == {"app@athens.database", "app@sparta.database"}
    for node in ("athens", "sparta"):
        entry = entries[f"app@{node}.database"]
        check = found[node].assignments[f"app@{node}"].checks["database"]
        for name, served in entry.serves.items():
            assert check.fields[name] == served
        assert entry.as_ == entry.serves["database"] == f"app_{node}"
        assert entry.login == Holed((LoginHole(f"app@{node}.database"),)) == check.fields["user"]
        assert entry.node == node


@pytest.mark.rule("B20")
def test_two_requirements_of_one_contract_are_kept_apart() -> None:
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    app = app.replace("  web: ", "  reports:  {module: postgres-database, as: reports}\n  web: ").replace(
        "URL: '${web:url}'", "URL: '${web:url}'\n      REPORTS_FILE: {file: '${reports:url}'}"
    )
    found = declarations({"modules/app/module.yaml": app})
    provision = found["sparta"].assignments["postgres@sparta"].provides["postgres-database"]
    assert {each.to: each.as_ for each in provision.consumers} == {
        "app@athens.database": "app_athens",
        "app@athens.reports": "app_athens_reports",
    }


@pytest.mark.rule("A9")
@pytest.mark.rule("B19")
def test_an_operators_prefix_and_a_derived_name_compose() -> None:
    postgres = mesh_files(NOTHING)["modules/postgres/module.yaml"].decode()
    postgres = postgres.replace("  sql: ", "  prefix:    {operator: {type: string}}\n  sql: ").replace(
        "'${consumer:as}'", "'${prefix:value}${consumer:as:dns}'"
    )
    found = declarations(
        {
            "modules/postgres/module.yaml": postgres,
            "assignments/sparta/postgres.yaml": "holds: [mesh-store]\nvalues: {prefix: team-}\n",
        }
    )
    check = found["athens"].assignments["app@athens"].checks["database"]
    assert check.fields["database"] == "team-app-athens"


@pytest.mark.rule("B17")
def test_a_port_does_not_move_while_its_assignment_stands() -> None:
    first, _ = resolved()
    assert first.ports["app@athens", "http"] == 31000
    again, refusals = resolved(
        {"assignments/athens/aaa.yaml": "values: {web.name: a.example.org}", **_module("aaa")}, first.record
    )
    assert refusals == ()
    assert again.ports["app@athens", "http"] == 31000
    assert again.ports["aaa@athens", "http"] == 31001
    fresh, _ = resolved(
        {"assignments/athens/aaa.yaml": "values: {web.name: a.example.org}", **_module("aaa")}
    )
    assert fresh.ports["aaa@athens", "http"] == 31000, "without the record the order of ids decides"


@pytest.mark.rule("B17")
def test_a_reserved_port_is_left_out() -> None:
    node = "address: 10.7.0.11\nports: {from: 31000, to: 31999, reserved: [31000, 31001]}\n"
    found, _ = resolved({"nodes/athens.yaml": node})
    assert found.ports["app@athens", "http"] == 31002


def _module(name: str) -> dict[str, str]:
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    return {f"modules/{name}/module.yaml": app.replace("module: app\n", f"module: {name}\n")}


@pytest.mark.rule("B5")
def test_a_value_is_the_assignments_else_the_labels_else_the_meshs_else_the_default() -> None:
    layers = {
        "values/app.yaml": "mesh: {workers: 3}\nlabels: {big: {workers: 8}}\n",
        "nodes/sparta.yaml": "address: 10.7.0.12\nports: {from: 31000, to: 31999}\nlabels: [big]\n",
        "assignments/sparta/app.yaml": "values: {web.name: b.example.org}",
        "assignments/delphi/app.yaml": "values: {web.name: c.example.org, workers: 1}",
    }
    found = declarations(layers)
    workers = {
        node: found[node].assignments[f"app@{node}"].containers["app"].env["WORKERS"] for node in found
    }
    assert workers == {"athens": "3", "sparta": "8", "delphi": "1"}
    assert declarations()["athens"].assignments["app@athens"].containers["app"].env["WORKERS"] == "2"


@pytest.mark.rule("B15")
def test_a_directory_lies_under_the_nodes_root_unless_it_is_placed() -> None:
    default = declarations()["athens"].assignments["app@athens"].directories["data"]
    assert (default.location, default.owner, default.mode) == ("/var/lib/mesh/app/data", "1000:1000", "0750")
    rooted = declarations(
        {"nodes/athens.yaml": "address: 10.7.0.11\nroot: /srv\nports: {from: 31000, to: 31999}\n"}
    )
    assert rooted["athens"].assignments["app@athens"].directories["data"].location == "/srv/app/data"
    placed = declarations({APP: "values: {web.name: app.example.org}\nplace: {data: /mnt/disk2/app}\n"})
    container = placed["athens"].assignments["app@athens"].containers["app"]
    assert container.mounts["/data"].location == "/mnt/disk2/app"


@pytest.mark.rule("B11")
def test_who_waits_on_whom() -> None:
    athens = declarations()["athens"]
    assert waiting(athens, set(), {}) == (
        Waiting("app@athens", "postgres@sparta", "app@athens.database"),
        Waiting("app@athens", "mesh-vault", "app@athens.key"),
    )
    assert waiting(athens, {"app@athens.key"}, {}) == (
        Waiting("app@athens", "postgres@sparta", "app@athens.database"),
    )
    assert waiting(athens, {"app@athens.key", "app@athens.database"}, {}) == ()


@pytest.mark.rule("B21")
def test_what_only_reads_no_credential_makes_no_cycle() -> None:
    edge = mesh_files(NOTHING)["modules/edge/module.yaml"].decode()
    edge = edge.replace("  api: ", "  store: {module: postgres-database}\n  api: ").replace(
        "    publish: [https, api]", "    env: {URL_FILE: {file: '${store:url}'}}\n    publish: [https, api]"
    )
    postgres = mesh_files(NOTHING)["modules/postgres/module.yaml"].decode()
    postgres = postgres.replace(
        "  sql: ", "  web:       {module: route, upstream: '${sql:address}'}\n  sql: "
    )
    postgres = postgres.replace("    env:\n", "    env:\n      URL: '${web:url}'\n")
    _, refusals = resolved(
        {
            "modules/edge/module.yaml": edge,
            "modules/postgres/module.yaml": postgres,
            "assignments/sparta/postgres.yaml": "holds: [mesh-store]\nvalues: {web.name: db.example.org}\n",
        }
    )
    assert refusals == (), "a route has neither credential nor answer, so that nobody waits for it"


@pytest.mark.rule("B22")
def test_the_record_goes_to_json_and_back() -> None:
    resolution, _ = resolved()
    value = to_json(resolution.record, resolution.mesh.id)
    assert from_json(json.loads(json.dumps(value))) == resolution.record
    assert resolution.record.of("app@athens") == Recorded(
        "app_athens",
        {"http": 31000},
        {"database": "postgres@sparta", "web": "edge@delphi"},
        places={"data": "/var/lib/mesh/app/data"},
        resources={"database": Resource("postgres-database", "app_athens")},
    )


@pytest.mark.rule("A5")
def test_a_secret_reaches_a_process_as_a_file_and_its_path_stands_in_the_environment() -> None:
    container = declarations()["athens"].assignments["app@athens"].containers["app"]
    assert container.env["KEY_FILE"] == "/run/secrets/key_file"
    file = container.files["/run/secrets/key_file"]
    assert (file.mode, file.owner, file.secret) == ("0400", "1000:1000", True)
    assert file.text == Holed((SecretHole("app@athens.key"),))
    url = container.files["/run/secrets/database_url_file"].text
    assert isinstance(url, Holed)
    assert all(each.url for each in url.pieces if not isinstance(each, str)), "percent-encoded in a URL"


@pytest.mark.rule("B14")
def test_an_identity_fits_the_tightest_backend_and_says_its_ids() -> None:
    assert mint("gitea", "athens") == "gitea_athens"
    assert mint("paperless-ngx", "athens") == "paperless_ng_68608"
    assert dns(mint("gitea", "athens")) == "gitea-athens"
    for ids in (("a" * 63, "b" * 63), ("a-b", "c"), ("a", "b", "reports"), ("x" * 18, "y")):
        identity = mint(*ids)
        assert len(identity) <= LONGEST
        assert all(len(each) <= 20 for each in logins(identity))
    assert mint("a-b", "c") != mint("a", "b-c") != mint("a", "b", "c")


@pytest.mark.rule("B6")
def test_a_host_requirement_is_answered_by_its_own_node() -> None:
    resolution, _ = resolved()
    for (assignment, _), answered in resolution.answers.items():
        if answered.requirement.kind.value == "host":
            assert answered.by == assignment.partition("@")[2]


@pytest.mark.rule("B14")
def test_no_identity_is_anothers_login() -> None:
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    app = app.replace("  web: ", "  reports:  {module: postgres-database, as: a}\n  web: ").replace(
        "URL: '${web:url}'", "URL: '${web:url}'\n      REPORTS_FILE: {file: '${reports:url}'}"
    )
    _, refusals = resolved({"modules/app/module.yaml": app})
    assert [each.code for each in refusals] == [Code.IDENTITY_HELD], "app_athens_a is app_athens's login"
