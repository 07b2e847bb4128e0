"""Commands that edit: what is wrong writes nothing, what is right keeps the file's comments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gitmesh.cli import operator_edit
from gitmesh.cli.main import cli
from gitmesh.repo.document import read
from tests.cli.small_mesh import FILES, SECOND, make

GITEA = "assignments/athens/gitea.yaml"


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make(tmp_path, FILES | SECOND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gitmesh(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=given)


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_edit, "interactive", lambda: True)


# --- what is right -------------------------------------------------------------------------------------


def test_pin_keeps_comments_and_says_what_next(mesh: Path) -> None:
    done = gitmesh("pin", "gitea@athens", "database", "postgres@sparta")
    assert (done.exit_code, done.output) == (0, f"wrote {GITEA}\nnext: git diff, gitmesh check\n")
    text = (mesh / GITEA).read_text()
    assert "# ask Ada before moving it\n" in text and "# public\n" in text
    assert read(GITEA, text.encode())[0] == {
        "values": {"web.name": "git.example.org"},
        "pins": {"database": "postgres@sparta"},
    }
    assert gitmesh("check").exit_code == 0


@pytest.mark.rule("G1")
def test_pin_writes_several_at_once_or_none(mesh: Path) -> None:
    shutil.copytree(mesh / "assignments/athens", mesh / "assignments/delphi", dirs_exist_ok=True)
    done = gitmesh("pin", "gitea@athens", "database", "postgres@sparta", "--also", "gitea@delphi.database")
    assert done.exit_code == 0, done.output
    for node in ("athens", "delphi"):
        assert "database: postgres@sparta" in (mesh / f"assignments/{node}/gitea.yaml").read_text()
    before = (mesh / GITEA).read_bytes()
    for wrong in ("gitea@nowhere.database", "gitea@delphi", "gitea@delphi.data"):
        done = gitmesh("pin", "gitea@athens", "database", "postgres@delphi", "--also", wrong)
        assert done.exit_code == 2, done.output
        assert (mesh / GITEA).read_bytes() == before


def test_what_is_so_already_is_not_written(mesh: Path) -> None:
    gitmesh("pin", "gitea@athens", "database", "postgres@sparta")
    before = (mesh / GITEA).stat()
    done = gitmesh("pin", "gitea@athens", "database", "postgres@sparta")
    assert done.output == f"{GITEA} says so already; nothing was written\n"
    assert (mesh / GITEA).stat().st_ino == before.st_ino


@pytest.mark.rule("B4")
def test_choose_answers_for_the_whole_mesh(mesh: Path) -> None:
    done = gitmesh("choose", "postgres-database", "postgres@delphi")
    assert done.output == "wrote mesh.yaml\nnext: git diff, gitmesh check\n"
    assert (mesh / "mesh.yaml").read_text().startswith("# ours\n")
    assert gitmesh("check").exit_code == 0


@pytest.mark.rule("B5")
@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("web.name", "code.example.org", "web.name: code.example.org"),
        ("workers", "4", "workers: 4"),
        ("title", "4", "title: '4'"),
        ("title", "1.10", "title: '1.10'"),
        ("title", "true", "title: 'true'"),
        ("title", "a: b # c", "title: 'a: b # c'"),
        ("title", "", "title: ''"),
        ("relay", "offsite", "relay: offsite"),
    ],
)
def test_set_writes_the_type_that_is_wanted(key: str, value: str, written: str, mesh: Path) -> None:
    done = gitmesh("set", "gitea@athens", key, value)
    assert done.exit_code == 0, done.output
    assert written in (mesh / GITEA).read_text().replace('"', "'")


@pytest.mark.rule("B5")
@pytest.mark.parametrize(("key", "value"), [("workers", "4"), ("title", "a: b # c"), ("relay", "offsite")])
def test_a_value_set_and_unset_leaves_the_file_as_it_was(key: str, value: str, mesh: Path) -> None:
    gitmesh("pin", "gitea@athens", "database", "postgres@sparta")
    before = files(mesh)
    assert gitmesh("set", "gitea@athens", key, value).exit_code == 0
    assert files(mesh) != before
    done = gitmesh("set", "gitea@athens", key, "--unset")
    assert (done.exit_code, done.output) == (0, f"wrote {GITEA}\nnext: git diff, gitmesh check\n")
    assert files(mesh) == before


def test_a_value_that_is_not_there_is_not_unset(mesh: Path) -> None:
    before = files(mesh)
    done = gitmesh("set", "gitea@athens", "workers", "--unset")
    assert done.output == f"{GITEA} says so already; nothing was written\n"
    for wrong in (["workers"], ["workers", "4", "--unset"]):
        done = gitmesh("set", "gitea@athens", *wrong)
        assert done.exit_code == 2 and "give a VALUE or --unset, one of them" in done.output
    done = gitmesh("set", "gitea@athens", "wokers", "--unset")
    assert done.exit_code == 2 and "did you mean `workers`?" in done.output
    assert files(mesh) == before


def test_set_takes_a_value_that_looks_like_an_option(mesh: Path) -> None:
    done = gitmesh("set", "gitea@athens", "workers", "-1")
    assert done.exit_code == 2
    assert "does not fit" in done.output, "it is a value, and one below the minimum"


@pytest.mark.rule("B4")
def test_assign_asks_and_writes_the_choice_as_a_pin(mesh: Path, terminal: None) -> None:
    done = gitmesh(
        "assign", "gitea", "sparta", "--set", "web.name=two.example.org", "--pin", "spare=postgres@delphi"
    )
    assert done.exit_code == 0, done.output
    # On sparta its own node's PostgreSQL answers, so that nobody has to be asked.
    assert "Who answers" not in done.output
    done = gitmesh("assign", "gitea", "athens", given="1\n")
    assert done.exit_code == 0, done.output
    first, second = done.output.split("Who answers `database`?\n")[1].splitlines()[:2]
    assert first == "  1  `postgres@sparta` (holds `mesh-store`)"
    assert second == "  2  `postgres@delphi`"
    assert "database: postgres@sparta" in (mesh / GITEA).read_text()
    assert "# ask Ada" in (mesh / GITEA).read_text()


@pytest.mark.rule("B4")
def test_assign_in_a_pipe_is_refused_with_the_options_that_choose(mesh: Path) -> None:
    (mesh / GITEA).unlink()
    before = files(mesh)
    done = gitmesh("assign", "gitea", "athens", "--use", "spare", "--set", "web.name=git.example.org")
    assert done.exit_code == 3
    assert done.output.splitlines()[:3] == [
        "refused: gitea@athens.database: 2 providers and no choice made; choose with one of",
        "  --pin database=postgres@sparta    `postgres@sparta` (holds `mesh-store`)",
        "  --pin database=postgres@delphi    `postgres@delphi`",
    ]
    assert "  --pin spare=postgres@sparta" in done.output
    assert done.output.endswith("nothing was written\n")
    assert files(mesh) == before
    done = gitmesh(
        "assign", "gitea", "athens", "--use", "spare", "--set", "web.name=git.example.org",
        "--pin", "database=postgres@sparta", "--pin", "spare=postgres@delphi",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert gitmesh("check").exit_code == 0


@pytest.mark.rule("B4")
def test_assign_writes_who_answers_also_where_there_was_no_choice(mesh: Path) -> None:
    done = gitmesh("assign", "gitea", "sparta", "--set", "web.name=two.example.org")
    assert done.exit_code == 0, done.output
    written, _ = read("gitea.yaml", (mesh / "assignments/sparta/gitea.yaml").read_bytes())
    assert isinstance(written, dict)
    assert written["pins"] == {"database": "postgres@sparta", "web": "caddy@delphi"}


@pytest.mark.rule("B4")
def test_assign_leaves_to_the_mesh_what_the_mesh_chose(mesh: Path) -> None:
    gitmesh("choose", "postgres-database", "postgres@delphi")
    done = gitmesh("assign", "gitea", "athens")
    assert done.exit_code == 0, done.output
    written, _ = read(GITEA, (mesh / GITEA).read_bytes())
    assert isinstance(written, dict)
    assert written["pins"] == {"web": "caddy@delphi"}


def test_assign_grants_what_the_module_needs_and_nothing_else(mesh: Path) -> None:
    module = mesh / "modules/caddy/module.yaml"
    module.write_text(
        module.read_text().replace("    publish:", "    capabilities: [NET_ADMIN]\n    publish:")
    )
    before = files(mesh)
    done = gitmesh("assign", "caddy", "delphi", "--grant", "cap:NET_ADMN")
    assert done.exit_code == 2
    assert "`caddy` needs no grant `cap:NET_ADMN`; did you mean `cap:NET_ADMIN`?" in done.output
    assert files(mesh) == before
    done = gitmesh("assign", "caddy", "delphi", "--grant", "cap:NET_ADMIN")
    assert done.exit_code == 0, done.output
    assert "grant-missing" not in gitmesh("check").output


@pytest.mark.parametrize(("arguments", "given", "gone"), [
    ((), "n\n", False), ((), "", False), ((), "y\n", True), (("--yes",), None, True),
])  # fmt: skip
def test_unassign_asks_a_terminal(
    arguments: tuple[str, ...], given: str | None, gone: bool, mesh: Path, terminal: None
) -> None:
    done = gitmesh("unassign", "gitea", "athens", *arguments, given=given)
    assert (done.exit_code == 0) is gone, done.output
    assert (mesh / GITEA).exists() is not gone


@pytest.mark.rule("B2")
def test_assign_lets_a_standing_assignment_hold_a_seat(mesh: Path) -> None:
    path = mesh / "assignments/delphi/gitmesh-vault.yaml"
    path.write_text("# the vault\n")
    assert "refused[seat-unheld]" in gitmesh("check").output
    assert gitmesh("assign", "gitmesh-vault", "delphi", "--hold", "mesh-vault").exit_code == 0
    assert path.read_text().startswith("# the vault\n")
    assert "seat-unheld" not in gitmesh("check").output


@pytest.mark.rule("B10")
def test_assign_says_what_is_left_to_answer(mesh: Path) -> None:
    done = gitmesh("assign", "gitea", "delphi")
    assert done.exit_code == 0
    assert "wrote assignments/delphi/gitea.yaml\n" in done.output
    assert "refused[value-missing]: gitea@delphi.web.name" in done.output
    assert "ambiguous-provider" not in done.output, "gitea@athens's own affair is not shown"
    assert done.output.endswith("next: git diff, gitmesh check\n")


def test_an_assignment_of_a_spread_takes_along_what_the_spread_said(mesh: Path) -> None:
    (mesh / "spreads").mkdir()
    (mesh / "spreads/forges.yaml").write_text("module: gitea\nlabel: linux\nvalues: {workers: 7}\n")
    done = gitmesh("set", "gitea@delphi", "title", "Delphi")
    assert done.exit_code == 0, done.output
    assert "takes the place of spreads/forges.yaml for gitea@delphi" in done.output
    text = (mesh / "assignments/delphi/gitea.yaml").read_text()
    assert "workers: 7" in text and "title: Delphi" in text


@pytest.mark.rule("D5")
def test_unassign_removes_the_file_and_speaks_of_the_data(mesh: Path) -> None:
    done = gitmesh("unassign", "gitea", "athens")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"removed {GITEA}\n  the data of gitea@athens stays on athens\n")
    assert not (mesh / GITEA).exists() and not (mesh / "assignments/athens").exists()


@pytest.mark.rule("B21")
def test_unassigning_what_others_use_is_refused_naming_them(mesh: Path) -> None:
    before = files(mesh)
    done = gitmesh("unassign", "caddy", "delphi")
    assert done.exit_code == 3
    assert "  gitea@athens.web    gitmesh pin gitea@athens web PROVIDER\n" in done.output
    assert files(mesh) == before


def test_unassigning_from_a_spread_names_the_spread(mesh: Path) -> None:
    (mesh / "spreads").mkdir()
    (mesh / "spreads/forges.yaml").write_text("module: gitea\nlabel: linux\n")
    done = gitmesh("unassign", "gitea", "delphi")
    assert done.exit_code == 1
    assert "comes from spreads/forges.yaml" in done.output


# --- what is wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("assign gitae athens", "no module is called `gitae`; did you mean `gitea`?"),
        ("assign gitea atens", "no node is called `atens`; did you mean `athens`?"),
        ("assign gitea athens --pin database", "--pin takes REQUIREMENT=PROVIDER"),
        (
            "assign gitea athens --pin databse=postgres@sparta",
            "no requirement `databse`; did you mean `database`?",
        ),
        ("assign gitea athens --set workers", "--set takes KEY=VALUE"),
        ("assign gitea athens --hold mesh-store", "does not declare the seat `mesh-store`; it can hold none"),
        ("assign postgres athens --hold mesh-stor", "no seat of this mesh; did you mean `mesh-store`?"),
        ("assign postgres athens --hold mesh-edge", "it can hold `mesh-store`"),
        ("assign gitea athens --use database", "`database` is not optional"),
        ("assign gitea athens --use nothing", "`gitea` has no requirement `nothing`; it has `database`, "),
        ("unassign gitea delphi", "`gitea` is not assigned to `delphi`; did you mean"),
        ("pin gitea database postgres@sparta", "`gitea` is no assignment: one is called MODULE@NODE"),
        ("pin gitea@delphi database postgres@sparta", "`gitea` is not assigned to `delphi`"),
        ("pin gitea@athens database postgres@sparty", "`postgres@sparty` is no assignment that provides"),
        ("pin gitea@athens database caddy@delphi", "`caddy@delphi` does not provide `postgres-database`; "),
        ("pin gitea@athens key gitmesh-vault@delphi", "the holder of `mesh-vault` answers it"),
        ("pin gitea@athens http postgres@sparta", "answered by the host and has no provider to pin"),
        ("choose postgres-databse postgres@sparta", "did you mean `postgres-database`?"),
        ("choose postgres-database caddy@delphi", "`caddy@delphi` does not provide"),
        ("set gitea@athens worker 4", "takes no value `worker`; did you mean `workers`?"),
        ("set gitea@athens web 4", "takes no value `web`; there is `web.name`, "),
        ("set gitea@athens key GMCANARY", "takes no value `key`"),
        ("set gitea@athens workers many", "the value of `workers` does not fit: "),
        ("set gitea@athens workers 007", "the value of `workers` can't be read: if it is text, quote it"),
        ("set gitea@athens workers [", "the value of `workers` can't be read"),
        ("set gitea@athens web.name not_a_host", "the value of `web.name` does not fit: "),
    ],
)
def test_what_is_not_there_is_named_and_nothing_is_written(arguments: str, said: str, mesh: Path) -> None:
    before = files(mesh)
    done = gitmesh(*arguments.split())
    assert said in done.output
    assert done.exit_code == 2
    assert files(mesh) == before
    assert "GMCANARY" not in done.output


@pytest.mark.rule("F6")
@pytest.mark.parametrize("value", ["x\nholds: [mesh-vault]", "x}\nuses: [spare]", "'\n"])
def test_a_value_stays_a_value(value: str, mesh: Path) -> None:
    gitmesh("set", "gitea@athens", "title", value)
    text = (mesh / GITEA).read_text()
    assert "\nholds:" not in text and "\nuses:" not in text
    assert "seat" not in gitmesh("check").output


def test_a_file_that_is_refused_is_left_alone(mesh: Path) -> None:
    (mesh / GITEA).write_text("values: {web.name: git.example.org\n")
    done = gitmesh("set", "gitea@athens", "workers", "4")
    assert done.exit_code in (1, 2)
    assert (mesh / GITEA).read_text() == "values: {web.name: git.example.org\n"


@pytest.mark.rule("F6")
def test_nothing_is_written_through_a_link(mesh: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (mesh / "assignments/athens/gitea.yaml").unlink()
    (mesh / "assignments/athens").rmdir()
    (mesh / "assignments/athens").symlink_to(elsewhere)
    done = gitmesh("assign", "postgres", "athens")
    assert done.exit_code == 1, done.output
    assert list(elsewhere.iterdir()) == []


@pytest.mark.rule("F6")
def test_a_mesh_file_that_is_a_link_is_not_edited(mesh: Path) -> None:
    (mesh / "mesh.yaml").rename(mesh / "elsewhere.yaml")
    (mesh / "mesh.yaml").symlink_to("elsewhere.yaml")
    before = files(mesh)
    done = gitmesh("choose", "postgres-database", "postgres@sparta")
    assert done.output == "error: mesh.yaml is refused itself\n  try: gitmesh check\n"
    assert done.exit_code == 1
    assert files(mesh) == before


def test_an_abandoned_choice_writes_nothing(mesh: Path, terminal: None) -> None:
    before = files(mesh)
    done = gitmesh("assign", "gitea", "athens", "--set", "workers=3", given="9\n")
    assert done.exit_code != 0
    assert files(mesh) == before
