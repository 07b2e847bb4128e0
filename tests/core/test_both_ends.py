"""One resolution tells both ends: nobody is told another's values (B19, B20)."""

from __future__ import annotations

import pytest

from gitmesh.core.declaration import CheckSpec, Declaration, Holed
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import NOTHING, declarations

IDS = ("app@athens.database", "app@athens.reports", "bpp@athens.database", "bpp@athens.reports")


def two_apps() -> dict[str, Declaration]:
    """Two modules on athens, each with two requirements that sparta's postgres answers, under a prefix."""
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    app = app.replace("  web: ", "  reports:  {module: postgres-database, as: rep}\n  web: ").replace(
        "URL: '${web:url}'", "URL: '${web:url}'\n      REPORTS_FILE: {file: '${reports:url}'}"
    )
    postgres = mesh_files(NOTHING)["modules/postgres/module.yaml"].decode()
    postgres = postgres.replace("  sql: ", "  prefix:    {operator: {type: string}}\n  sql: ").replace(
        "'${consumer:as}'", "'${prefix:value}${consumer:as}'"
    )
    return declarations(
        {
            "modules/app/module.yaml": app,
            "modules/bpp/module.yaml": app.replace("module: app\n", "module: bpp\n"),
            "modules/postgres/module.yaml": postgres,
            "assignments/athens/bpp.yaml": "values: {web.name: bpp.example.org}\n",
            "assignments/sparta/postgres.yaml": "holds: [mesh-store]\nvalues: {prefix: team_}\n",
        }
    )


def check_of(found: dict[str, Declaration], id_: str) -> CheckSpec:
    """What the consumer is told."""
    assignment, _, requirement = id_.rpartition(".")
    return found["athens"].assignments[assignment].checks[requirement]


@pytest.mark.rule("B20", "B19")
def test_two_consumers_with_two_requirements_each_are_told_their_own() -> None:
    found = two_apps()
    provision = found["sparta"].assignments["postgres@sparta"].provides["postgres-database"]
    entries = {each.to: each for each in provision.consumers}
    assert tuple(entries) == IDS
    databases = {id_: str(entries[id_].serves["database"]) for id_ in IDS}
    assert databases == {
        "app@athens.database": "team_app_athens",
        "app@athens.reports": "team_app_athens_rep",
        "bpp@athens.database": "team_bpp_athens",
        "bpp@athens.reports": "team_bpp_athens_rep",
    }
    for id_ in IDS:
        told = check_of(found, id_)
        assert {name: told.fields[name] for name in entries[id_].serves} == dict(entries[id_].serves)
        assert told.fields["user"] == entries[id_].login
        assert told.secret == entries[id_].secret == id_


@pytest.mark.rule("B20")
def test_no_hole_of_an_assignment_is_anothers() -> None:
    found = two_apps()
    for name in ("app", "bpp"):
        container = found["athens"].assignments[f"{name}@athens"].containers["app"]
        texts = [each.text for each in container.files.values() if isinstance(each.text, Holed)]
        holes = {hole.secret for text in texts for hole in text.pieces if hasattr(hole, "secret")}
        assert holes == {f"{name}@athens.{each}" for each in ("database", "reports", "key")}
