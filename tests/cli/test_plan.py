"""`gitmesh plan`: what a change does to every node, in its three faces.

What the stories give stands in `tests/cli/plan`; GITMESH_BLESS=1 writes it anew, to be read in the diff.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh.assets import asset
from gitmesh.cli.complete import revisions
from gitmesh.cli.main import Failure, cli
from gitmesh.cli.working import working
from gitmesh.core.causes import Cause, Touched, causes
from gitmesh.core.plan import AssignmentPlan
from gitmesh.core.plan_mesh import MeshPlan
from gitmesh.core.record import EMPTY
from gitmesh.core.resolve import resolve
from gitmesh.core.steps import Step, Verb
from gitmesh.repo.load import load
from gitmesh.repo.load_catalogue import digest
from gitmesh.report.plan import as_json, as_markdown, as_text, as_tree
from tests.cli.small_mesh import FILES, commit, git, make

GITEA = "modules/gitea/module.yaml"
GOLDEN = Path(__file__).parent / "plan"
SUFFIXES = {"text": "txt", "json": "json", "markdown": "md"}
PINNED = "pins: {web: caddy@delphi}\nvalues: {web.name: git.example.org}\n"


def plan(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["plan", "--repo", str(folder), *(options or ("HEAD",))])


def said(folder: Path, *options: str) -> dict[str, object]:
    """The JSON face, which fits its schema."""
    value = json.loads(plan(folder, *(options or ("HEAD",)), "--format", "json").output)
    schema = json.loads((asset("schemas") / "plan.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(value)
    assert isinstance(value, dict)
    return value


def touched(folder: Path) -> dict[str, list[str]]:
    """By file that changed, the assignments it touches and why."""
    causes = said(folder)["causes"]
    assert isinstance(causes, list)
    return {each["file"]: [f"{one['assignment']} {one['why']}" for one in each["touches"]] for each in causes}


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    commit(make(tmp_path))
    return tmp_path


@pytest.fixture
def two(mesh: Path) -> Path:
    """The same with a second gitea, on sparta."""
    make(mesh, assignments__sparta__gitea="values: {web.name: two.example.org}\n")
    commit(mesh)
    return mesh


# --- stories -------------------------------------------------------------------------------------------

STORIES: Mapping[str, Mapping[str, str | None]] = {
    "a-new-consumer-on-a-new-node": {
        "nodes/thebes.yaml": "address: 10.7.0.14\n",
        "assignments/thebes/gitea.yaml": "values: {web.name: two.example.org}\n",
    },
    "a-rotation-and-a-new-image": {
        "rotations.yaml": "gitea@athens.database: 2\n",
        GITEA: FILES[GITEA].replace("1.24.6", "1.24.7"),
    },
    "an-assignment-leaves": {
        "assignments/athens/gitea.yaml": None,
        "mesh.yaml": FILES["mesh.yaml"] + "allow: {drop: [athens]}\n",
    },
    "a-default-written-out": {
        "assignments/athens/gitea.yaml": "# moved\nvalues: {workers: 2, web.name: git.example.org}\n"
    },
}


def change(folder: Path, files: Mapping[str, str | None]) -> None:
    make(folder, {path: text for path, text in files.items() if text is not None})
    for path, text in files.items():
        if text is None:
            (folder / path).unlink()


@pytest.mark.rule("G2")
@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize("story", STORIES)
def test_a_story_in_its_faces(mesh: Path, story: str, form: str) -> None:
    change(mesh, STORIES[story])
    done = plan(mesh, "HEAD", "--format", form)
    assert done.exit_code == 0
    output = done.output.replace(git(mesh, "rev-parse", "HEAD"), "c" * 40)
    if form == "json":
        output = json.dumps(json.loads(output), indent=1, ensure_ascii=False) + "\n"
        assert said(mesh)
    golden = GOLDEN / f"{story}.{SUFFIXES[form]}"
    if os.environ.get("GITMESH_BLESS") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(output)
    assert output == golden.read_text()


@pytest.mark.rule("G2")
def test_on_a_terminal_it_is_a_tree(mesh: Path) -> None:
    planned = MeshPlan({"athens": (AssignmentPlan("a@athens", "changed", (Step(Verb.START, "[red]x"),)),)})
    tree = as_tree(planned, "empty", 80)
    assert "└── " in tree and "start [red]x" in tree and "\x1b[" in tree
    assert "\x1b" not in as_text(planned, "empty")


# --- what is no change ---------------------------------------------------------------------------------

DEFAULTS = {
    "a value": ("assignments/athens/gitea.yaml", "values: {workers: 2, web.name: git.example.org}\n"),
    "a value of the mesh": ("values/gitea.yaml", "mesh: {title: Git}\n"),
    "another order and a comment": (
        "assignments/athens/gitea.yaml", "# a comment\nvalues: {web.name: git.example.org}\nuses: []\n"
    ),
    "a node's root": ("nodes/athens.yaml", "root: /var/lib/mesh\naddress: 10.7.0.11\nstate: active\n"),
    "a node's ports": ("nodes/athens.yaml", "address: 10.7.0.11\nports: {from: 31000, to: 31999}\n"),
    "the mesh's": ("mesh.yaml", FILES["mesh.yaml"] + "timezone: UTC\ndeploy: {branch: deploy, keep: 20}\n"),
    "an option": (GITEA, FILES[GITEA].replace("takes: never", "takes: never, optional: false")),
    "a port's reach": (GITEA, FILES[GITEA].replace("listens: 3000", "listens: 3000, reach: mesh")),
    "a port's protocol": (GITEA, FILES[GITEA].replace("listens: 3000", "listens: 3000, protocol: tcp")),
    "an ask": (GITEA, FILES[GITEA].replace("takes: never", "takes: never, lines: one")),
    "how a secret is taken": (GITEA, FILES[GITEA].replace("database}", "database, takes: start}", 1)),
}  # fmt: skip


@pytest.mark.rule("G2")
@pytest.mark.parametrize("default", DEFAULTS)
def test_a_default_written_out_changes_nothing(mesh: Path, default: str) -> None:
    path, text = DEFAULTS[default]
    make(mesh, {path: text})
    done = plan(mesh)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("nothing changes\n") or "touches" in done.output
    assert said(mesh)["nodes"] == {}


# --- what caused it ------------------------------------------------------------------------------------


@pytest.mark.rule("G4")
def test_a_changed_module_lists_each_assignment_of_it(two: Path) -> None:
    (two / GITEA).write_text(FILES[GITEA].replace("1.24.6", "1.24.7"))
    own = "is of this module"
    assert touched(two) == {GITEA: [f"gitea@athens {own}", f"gitea@sparta {own}"]}
    nodes = said(two)["nodes"]
    assert isinstance(nodes, dict) and nodes.keys() == {"athens", "sparta"}
    assert nodes["athens"][0]["steps"][-1] == {"do": "recreate", "subject": "gitea", "why": ["image"]}


@pytest.mark.rule("G4")
def test_a_changed_provider_lists_its_consumers(two: Path) -> None:
    postgres = "modules/postgres/module.yaml"
    make(two, {postgres: FILES[postgres].replace("'${consumer:as}'", "'db_${consumer:as}'")})
    assert touched(two)[postgres] == [
        "gitea@athens postgres@sparta answers its database",
        "gitea@sparta postgres@sparta answers its database",
        "postgres@sparta is of this module",
    ]


@pytest.mark.rule("G4")
def test_a_changed_contract_lists_who_requires_and_who_provides_it(two: Path) -> None:
    contract = "contracts/postgres-database.yaml"
    make(two, {contract: FILES[contract].replace("minLength: 24", "minLength: 32")})
    assert touched(two) == {
        contract: [
            "gitea@athens requires it as database",
            "gitea@sparta requires it as database",
            "postgres@sparta provides it",
        ]
    }


@pytest.mark.rule("G4")
@pytest.mark.rule("G17")
def test_a_changed_shared_value_lists_who_is_given_it(two: Path) -> None:
    make(two, values__gitea="mesh: {title: Ours}\n")
    own = "is of this module"
    assert touched(two) == {"values/gitea.yaml": [f"gitea@athens {own}", f"gitea@sparta {own}"]}
    make(two, values__gitea="labels: {linux: {title: Ours}}\n")
    assert touched(two) == {"values/gitea.yaml": ["gitea@sparta its node has the label linux"]}


RELAYED = (
    FILES[GITEA]
    .replace("source: operator, optional: true}", "source: operator}")
    .replace("KEY_FILE:", "RELAY_FILE: {file: '${relay:value}'}\n      KEY_FILE:")
)
HANDED = "id: ENC[a]\nvalue: ENC[{value}]\nsops: {{mac: 'ENC[c]'}}\n"


@pytest.mark.rule("G4")
@pytest.mark.rule("G2")
@pytest.mark.rule("C10")
@pytest.mark.parametrize("form", SUFFIXES)
def test_what_is_handed_over_anew_lists_who_reads_it_and_no_digest(two: Path, form: str) -> None:
    relay = "pins: {}\nvalues: {web.name: %s, relay: mail}\n"
    make(two, {
        GITEA: RELAYED, "handed/mail.yaml": HANDED.format(value="old"),
        "assignments/athens/gitea.yaml": relay % "git.example.org",
        "assignments/sparta/gitea.yaml": relay % "two.example.org",
    })  # fmt: skip
    commit(two)
    (two / "handed/mail.yaml").write_text(HANDED.format(value="GMCANARYnew"))
    assert touched(two) == {
        "handed/mail.yaml": ["gitea@athens reads it as relay", "gitea@sparta reads it as relay"]
    }
    output = plan(two, "HEAD", "--format", form).output
    assert "take-secret" in output and "handed over anew" in output and "gitea@sparta gitea" in output
    digests = [
        hashlib.sha256(HANDED.format(value=each).encode()).hexdigest() for each in ("old", "GMCANARYnew")
    ]
    assert not any(each in output for each in ("GMCANARY", digests[0][:12], digests[1][:12]))


@pytest.mark.rule("G4")
@pytest.mark.rule("G15")
def test_a_moved_pin_of_a_catalogue_lists_what_its_files_touch() -> None:
    files = {path: text.encode() for path, text in FILES.items() if path != GITEA}
    path = f"catalogue/shipped/{GITEA}"
    sides = []
    for image in ("1.24.6", "1.24.7"):
        module = FILES[GITEA].replace("1.24.6", image).encode()
        sha256 = digest({GITEA: module})
        pin = f"shipped: {{from: 'https://git.example.org/c.git', commit: {'c' * 40}, sha256: '{sha256}'}}\n"
        mesh, refused = load({**files, path: module, "catalogue.yaml": pin.encode()})
        assert not refused
        sides.append(resolve(mesh, EMPTY))
    touch = (Touched("gitea@athens", "is of this module"),)
    assert causes(*sides) == (Cause("catalogue.yaml shipped", touch), Cause(path, touch))


@pytest.mark.rule("G4")
def test_a_changed_spread_lists_what_it_gives(mesh: Path) -> None:
    make(mesh, spreads__edge="module: caddy\nlabel: linux\n")
    assert touched(mesh)["spreads/edge.yaml"] == ["caddy@sparta is given by it"]


@pytest.mark.rule("G4")
def test_what_changed_in_mesh_yaml_is_named_by_key(two: Path) -> None:
    make(two, mesh=FILES["mesh.yaml"] + "choose: {postgres-database: postgres@sparta}\n"
         "registries: {docker.io: {mirror: mirror.example.org}}\nseats: {the-forge: route}\n")  # fmt: skip
    found = touched(two)
    assert found["mesh.yaml choose.postgres-database"] == [
        "gitea@athens asks for it as database",
        "gitea@sparta asks for it as database",
    ]
    assert found["mesh.yaml registries.docker.io"] == [
        f"{each} pulls images from it"
        for each in ("caddy@delphi", "gitea@athens", "gitea@sparta", "postgres@sparta")
    ]
    assert found["mesh.yaml seats.the-forge"] == []


@pytest.mark.rule("G4")
def test_a_fact_of_the_mesh_lists_who_reads_it(mesh: Path) -> None:
    asks = FILES[GITEA].replace("  workers:", "  facts: {mesh: facts}\n  workers:")
    asks = asks.replace("      WORKERS:", "      ZONE: '${facts:timezone}'\n      WORKERS:")
    make(mesh, {GITEA: asks})
    commit(mesh)
    make(mesh, {"mesh.yaml": FILES["mesh.yaml"] + "timezone: Europe/Athens\n"})
    assert touched(mesh) == {"mesh.yaml timezone": ["gitea@athens reads it in facts"]}


# --- base and head -------------------------------------------------------------------------------------


def test_base_is_origins_main_before_the_first_deploy(mesh: Path) -> None:
    git(mesh, "update-ref", "refs/remotes/origin/main", "HEAD")
    (mesh / GITEA).write_text(FILES[GITEA].replace("1.24.6", "1.24.7"))
    second = commit(mesh)
    assert said(mesh, "--head", "HEAD")["head"] == second
    assert said(mesh, "--head", "HEAD")["base"] != second
    git(mesh, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert plan(mesh, "--head", "HEAD").output.startswith("nothing changes")


def test_without_any_base_it_says_how_to_have_one(mesh: Path) -> None:
    done = CliRunner().invoke(cli, ["plan", "--repo", str(mesh), "--format", "json"])
    assert done.exit_code == 1
    value = json.loads(done.output)
    assert value["result"] == "failed" and value["error"]["command"] == f"git -C {mesh} fetch"
    assert said(mesh, "--format", "json")["side"] is None


def test_base_and_head_are_given_once(mesh: Path) -> None:
    done = plan(mesh, "HEAD", "--base", "HEAD")
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit | Failure)


def test_a_side_that_does_not_resolve_is_named(mesh: Path) -> None:
    (mesh / "assignments/athens/gitea.yaml").write_text("")
    done = plan(mesh)
    assert done.exit_code == 3 and "refused[value-missing]" in done.output
    assert said_refused(mesh, "HEAD")["side"] == "head"
    commit(mesh)
    assert said_refused(mesh, "HEAD", "HEAD~1")["side"] == "base"
    assert plan(mesh, "--format", "markdown", "HEAD").output.startswith("**gitmesh:**")


def said_refused(folder: Path, *options: str) -> dict[str, object]:
    done = CliRunner().invoke(cli, ["plan", "--repo", str(folder), *options, "--format", "json"])
    assert done.exit_code == 3
    value = json.loads(done.stdout)
    schema = json.loads((asset("schemas") / "plan.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(value)
    assert isinstance(value, dict)
    return value


def test_revisions_are_completed(mesh: Path) -> None:
    git(mesh, "tag", "v1")
    ctx = cli.make_context("gitmesh", ["plan"], resilient_parsing=True)
    ctx.params["repo"] = str(mesh)
    assert revisions(ctx, ctx.command.params[0], "") == ["HEAD", "main", "v1"]
    assert revisions(ctx, ctx.command.params[0], "m") == ["main"]


@pytest.mark.rule("G2")
def test_a_port_given_in_base_is_given_to_no_other_in_head(mesh: Path) -> None:
    """Nothing was deployed, and both are given their ports by this plan."""
    other = FILES["modules/caddy/module.yaml"].replace("caddy", "aa").replace("seats: [mesh-edge]\n", "")
    make(
        mesh,
        {"modules/aa/module.yaml": other.replace("number: 443, listens: 443, reach: public", "listens: 80")},
    )
    make(mesh, {"mesh.yaml": FILES["mesh.yaml"] + "choose: {route: caddy@delphi}\n"})
    commit(mesh)
    make(mesh, {"assignments/athens/aa.yaml": "", "assignments/athens/gitea.yaml": PINNED})
    output = plan(mesh).output
    assert "port 31001 of aa@athens.https" in output and "move-port" not in output


# --- what is never in it -------------------------------------------------------------------------------


@pytest.mark.rule("G2")
@pytest.mark.rule("C10")
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_plan_names_keys_and_shows_no_value(mesh: Path, form: str) -> None:
    make(mesh, assignments__athens__gitea="values: {web.name: git.example.org, title: GMCANARYtitle}\n")
    done = plan(mesh, "HEAD", "--format", form)
    assert done.exit_code == 0 and "env TITLE" in done.output
    assert "GMCANARY" not in done.output


@pytest.mark.rule("G2")
def test_a_comment_is_bounded_and_nothing_closes_its_block() -> None:
    steps = tuple(Step(Verb.RECREATE, f"c{number}", ("file /a```b",)) for number in range(4000))
    plan_ = MeshPlan({"athens": (AssignmentPlan("a@athens", "changed", steps),)})
    shown = as_markdown(plan_, "empty")
    assert shown.startswith("**gitmesh plan:** 1 change on 1 node\n\n````text\n")
    assert len(shown) < 65_536 and " lines more: run gitmesh plan\n````\n" in shown


@pytest.mark.rule("G4")
def test_what_a_cause_does_not_change_is_said() -> None:
    cause = Cause("contracts/a.yaml", (Touched("a@athens", "provides it"),))
    shown = as_text(MeshPlan({}, causes=(cause,)), "empty")
    assert "    a@athens provides it: nothing changes\n" in f"  {shown}"
    said_ = as_json(MeshPlan({}, causes=(cause,)), None, None, "empty")
    assert said_["causes"][0]["touches"][0]["changes"] is False


def test_on_a_terminal_it_says_what_it_is_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with working() as say:
        say("reading base")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("gitmesh.cli.working.colourful", lambda _: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working() as say:
        say("reading base")
    assert "reading base" in capsys.readouterr().err
