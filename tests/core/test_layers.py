"""Values that an operator gives, in layers, and one handed value for many (B5, G17)."""

from __future__ import annotations

import pytest

from gitmesh.core.compose import compose
from gitmesh.core.refusal import Code
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import APP, NOTHING, declarations, resolved

LABELLED = {"nodes/athens.yaml": "address: 10.7.0.11\nports: {from: 31000, to: 31999}\nlabels: [big, edge]\n"}
NAME = "values: {web.name: app.example.org}\n"
MANY = 300


def workers(values: str, assignment: str = NAME) -> str:
    """What athens's app is told, with these layers."""
    found = declarations({**LABELLED, "values/app.yaml": values, APP: assignment})
    told = found["athens"].assignments["app@athens"].containers["app"].env["WORKERS"]
    assert isinstance(told, str)
    return told


@pytest.mark.rule("B5")
def test_two_labels_may_say_the_same() -> None:
    assert workers("labels: {big: {workers: 8}, edge: {workers: 8}}\n") == "8"


@pytest.mark.rule("B5")
def test_two_labels_that_differ_are_refused_unless_the_assignment_says_its_own() -> None:
    layers = "mesh: {workers: 3}\nlabels: {big: {workers: 8}, edge: {workers: 2}}\n"
    _, refusals = resolved({**LABELLED, "values/app.yaml": layers})
    assert [(each.code, each.subject) for each in refusals] == [(Code.VALUE_TWICE, "app@athens.workers")]
    assert refusals[0].at.keys == ("labels", "edge", "workers")
    assert refusals[0].related[0].at.keys == ("labels", "big", "workers")
    assert workers(layers, "values: {web.name: app.example.org, workers: 5}\n") == "5"


@pytest.mark.rule("B5", "B10")
def test_two_labels_that_many_nodes_have_are_refused_once() -> None:
    files: dict[str, str | None] = {"spreads/app.yaml": "module: app\nlabel: big\n", APP: None}
    files["values/app.yaml"] = "labels: {big: {workers: 8}, edge: {workers: 2}}\n"
    for number in range(5):
        files[f"nodes/n{number}.yaml"] = f"address: 10.7.1.{number}\nlabels: [big, edge]\n"
    _, refusals = resolved(files)
    twice = [each for each in refusals if each.code is Code.VALUE_TWICE]
    assert len(twice) == 1 and "4 more" in twice[0].message


@pytest.mark.rule("B5")
def test_true_and_one_are_two_values() -> None:
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode().replace("{type: integer, minimum: 1}", "{}")
    layers = "labels: {big: {workers: 1}, edge: {workers: true}}\n"
    _, refusals = resolved({**LABELLED, "values/app.yaml": layers, "modules/app/module.yaml": app})
    assert Code.VALUE_TWICE in {each.code for each in refusals}


@pytest.mark.rule("B5")
def test_a_layers_value_is_held_against_its_type_where_it_stands() -> None:
    _, refusals = resolved({"values/app.yaml": "mesh: {workers: many}\n"})
    assert [(each.code, each.at.file, each.at.keys) for each in refusals] == [
        (Code.VALUE_TYPE, "values/app.yaml", ("mesh", "workers"))
    ]


@pytest.mark.rule("B5")
def test_an_operators_value_needs_no_provider() -> None:
    """B5's last sentence: nothing but the module, its node and the value."""
    module = (
        "module: app\nrequires:\n  workers: {operator: {type: integer}}\n"
        "containers:\n  app:\n    image: docker.io/library/app:1.0@sha256:" + "0" * 64 + "\n"
        "    env: {WORKERS: '${workers:value}'}\n"
    )
    files: dict[str, str | None] = dict.fromkeys(
        name for name in mesh_files(NOTHING) if name.startswith(("assignments/", "modules/", "nodes/"))
    )
    files |= {"modules/app/module.yaml": module, "nodes/athens.yaml": "address: 10.7.0.11\n"}
    resolution, refusals = resolved({**files, APP: "values: {workers: 4}\n"})
    assert refusals == ()
    told = compose(resolution)["athens"].assignments["app@athens"].containers["app"].env
    assert told == {"WORKERS": "4"}


MAIL = (
    "module: mail\nrequires:\n  smtp: {module: secret, source: operator}\n"
    "containers:\n  mail:\n    image: docker.io/library/mail:1.0@sha256:" + "0" * 64 + "\n"
    "    env: {SMTP_FILE: {file: '${smtp:value}'}}\n"
)
HANDED = "id: ENC[a]\nvalue: ENC[b]\nsops: {mac: 'ENC[c]'}\n"


def many_with_mail() -> dict[str, str | None]:
    """Three hundred nodes with one module that reads one handed value."""
    files: dict[str, str | None] = {
        "modules/mail/module.yaml": MAIL,
        "spreads/mail.yaml": "module: mail\nlabel: linux\n",
        "values/mail.yaml": "mesh: {smtp: relay}\n",
        "handed/relay.yaml": HANDED,
    }
    for number in range(MANY):
        files[f"nodes/n{number}.yaml"] = f"address: 10.8.{number // 250}.{number % 250}\nlabels: [linux]\n"
    return files


@pytest.mark.rule("G17", "B5")
def test_one_handed_file_for_three_hundred_nodes() -> None:
    resolution, refusals = resolved(many_with_mail())
    assert refusals == ()
    handed = {each.handed for each in resolution.secrets.values() if each.kind == "handed"}
    assert handed == {"relay"}
    readers = [name for name, each in compose(resolution).items() if f"mail@{name}.smtp" in each.secrets]
    assert len(readers) == MANY


@pytest.mark.rule("G17", "B10")
def test_the_one_file_that_is_missing_is_missed_once() -> None:
    files = many_with_mail()
    del files["handed/relay.yaml"]
    _, refusals = resolved(files)
    assert [each.code for each in refusals] == [Code.HANDED_MISSING]
    assert f"{MANY - 1} more" in refusals[0].message


@pytest.mark.parametrize(
    ("values", "assignment", "named"),
    [
        ("mesh: {smtp: relay}\nlabels: {big: {smtp: other}}\n", "", "other"),
        ("mesh: {smtp: relay}\n", "values: {smtp: mine}\n", "mine"),
        ("", "", "mail@athens.smtp"),
    ],
)
@pytest.mark.rule("G17", "B5")
def test_a_handed_name_is_layered_too(values: str, assignment: str, named: str) -> None:
    files: dict[str, str | None] = {
        **LABELLED,
        "modules/mail/module.yaml": MAIL,
        "assignments/athens/mail.yaml": assignment,
        "values/mail.yaml": values,
        f"handed/{named}.yaml": HANDED,
    }
    resolution, refusals = resolved(files)
    assert refusals == ()
    assert resolution.secrets["mail@athens.smtp"].handed == named
