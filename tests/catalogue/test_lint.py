"""`gitmesh catalogue lint`: each kind of finding, the ratchet, and the definitions that ship."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh import explain
from gitmesh.assets import asset
from gitmesh.catalogue.lint import lint
from gitmesh.cli.main import cli
from gitmesh.core.refusal import Code
from gitmesh.repo.document import read
from tests.cases.test_pages import blocks, lay
from tests.cli.small_mesh import commit, git
from tests.real import PROJECT

SCHEMA = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "linted.json").read_text()))
IMAGE = f"registry.example.org/app:1@sha256:{'0' * 64}"
RATCHET = "catalogue-ratchet.yaml"


def module(said: str = "", **containers: str) -> dict[str, str]:
    """A catalogue of one module, whose container has the keys given."""
    keys = "\n".join(f"    {key.replace('_', '-')}: {value}" for key, value in containers.items())
    return {
        "modules/app/module.yaml": f"module: app\n{said}\ncontainers:\n  app:\n    image: {IMAGE}\n{keys}\n",
        "contracts/secret.yaml": (PROJECT / "tests/cases/base/contracts/secret.yaml").read_text(),
    }


LISTED = "exceptions: {api.example.org: 'the only one there is', /srv/app: 'made anew'}"
ENV_FILE = {
    "said": "requires: {key: {module: secret, takes: start}}",
    "env_file": "{reason: it reads nothing else, env: {KEY: '${key:value}'}}",
}


def make(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def run(folder: Path, *arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, ["catalogue", "lint", str(folder), *arguments])
    assert done.exit_code == code, done.output
    return done


def found(folder: Path, *arguments: str, code: int = 3) -> list[tuple[str, str, int, int]]:
    """What is refused: code, file, line and column."""
    said = json.loads(run(folder, *arguments, "--format", "json", code=code).output)
    SCHEMA.validate(said)
    assert said["result"] == ("refused" if code else "clean")
    places = [(each["code"], each["at"]) for each in said["refusals"]]
    return [(code, at["file"], at.get("line", 0), at.get("column", 0)) for code, at in places]


@pytest.mark.rule("A2")
def test_a_name_written_out_is_refused_where_it_stands(tmp_path: Path) -> None:
    make(tmp_path, module(env="{API: 'https://api.example.org/'}"))
    assert found(tmp_path) == [("name-written-out", "modules/app/module.yaml", 6, 11)]


@pytest.mark.rule("A2")
def test_a_nodes_name_is_refused_in_the_meshs_own_modules_only(tmp_path: Path) -> None:
    own = module(env="{PEER: athens}") | {"nodes/athens.yaml": "address: 10.7.0.11\n"}
    make(tmp_path / "own", own)
    assert [each[0] for each in found(tmp_path / "own")] == ["name-written-out"]
    vendored = {f"catalogue/shop/{path}" if path[0] in "mc" else path: text for path, text in own.items()}
    make(tmp_path / "vendored", vendored)
    assert found(tmp_path / "vendored", code=0) == []


@pytest.mark.rule("A3")
def test_a_path_in_a_modules_code_is_refused_where_it_stands(tmp_path: Path) -> None:
    make(tmp_path, module(files="{/begin: {from: begin.sh}}"))
    make(tmp_path, {"modules/app/begin.sh": '#!/bin/sh\ncd "${DATA:-/srv/app}"\n'})
    assert found(tmp_path) == [("path-written-out", "modules/app/begin.sh", 2, 13)]


@pytest.mark.rule("A10")
def test_an_unread_field_is_refused_across_the_catalogue(tmp_path: Path) -> None:
    contract = "contract: store\nfields: {host: {type: string}, name: {type: string}}\n"
    provider = (
        "module: store\nrequires: {api: {host: port, listens: 9}}\n"
        "provides: {store: {serves: {host: '${api:host}', name: '${consumer:as}'}}}\n"
    )
    files = module("requires: {files: {module: store}}", env="{HOST: '${files:host}', NAME: app}")
    make(
        tmp_path,
        files | {"contracts/store.yaml": contract, "catalogue/shop/modules/store/module.yaml": provider},
    )
    assert found(tmp_path) == [("field-unread", "modules/app/module.yaml", 2, 12)]


def test_what_does_not_load_is_refused_and_what_else_a_mesh_says_is_not(tmp_path: Path) -> None:
    files = module(env="{A: '${nowhere:field}'}") | {"mesh.yaml": "mesh: [\n", "nodes/a.yaml": "b: c\n"}
    assert [each[0] for each in found(make(tmp_path, files))] == ["reference-unknown"]


def test_a_link_among_the_definitions_is_refused(tmp_path: Path) -> None:
    make(tmp_path, module())
    (tmp_path / "contracts/other.yaml").symlink_to("secret.yaml")
    assert [each[0] for each in found(tmp_path)] == ["file-kind"]


# --- what is counted -----------------------------------------------------------------------------------


@pytest.mark.rule("A2", "A3")
def test_a_listed_exception_is_counted_with_its_reason(tmp_path: Path) -> None:
    files = module(LISTED, env="{API: 'https://api.example.org/'}", files="{/begin: {from: begin.sh}}")
    make(tmp_path, files | {"modules/app/begin.sh": 'cd "${DATA:-/srv/app}"\n', RATCHET: "exceptions: 2\n"})
    said = run(tmp_path).output
    assert "modules/app/module.yaml:2:14: exceptions: api.example.org: the only one there is\n" in said
    assert "exceptions: 2 of 2 allowed\n" in said
    assert said.endswith("clean\n")


@pytest.mark.rule("A5")
def test_an_env_file_is_listed_with_its_reason_and_counted(tmp_path: Path) -> None:
    make(tmp_path, module(**ENV_FILE))
    assert found(tmp_path) == [("ratchet-grown", RATCHET, 0, 0)]
    make(tmp_path, {RATCHET: "env-files: 1\n"})
    said = run(tmp_path).output
    assert "modules/app/module.yaml:6:5: env-files: app: it reads nothing else\n" in said


@pytest.mark.rule("A2")
def test_the_ratchet_never_goes_up(tmp_path: Path) -> None:
    make(tmp_path, module(LISTED) | {RATCHET: "exceptions: 1 # api\n"})
    assert found(tmp_path) == [("ratchet-grown", RATCHET, 1, 13)]
    run(tmp_path, "--update-ratchet", code=3)
    assert "exceptions: 1 # api\n" in (tmp_path / RATCHET).read_text()


@pytest.mark.rule("A2")
def test_fewer_than_allowed_is_said_with_the_command_that_lowers_it(tmp_path: Path) -> None:
    make(tmp_path, module(LISTED) | {RATCHET: "exceptions: 5 # too many\nenv-files: 0\n"})
    said = run(tmp_path).output
    assert "exceptions: 2 of 5 allowed\n" in said
    assert "gitmesh catalogue lint --update-ratchet\n" in said
    assert "--update-ratchet" not in run(tmp_path, "--update-ratchet").output
    assert (tmp_path / RATCHET).read_text() == "exceptions: 2 # too many\nenv-files: 0\n"


def test_a_folder_without_definitions_is_not_called_clean(tmp_path: Path) -> None:
    assert "has no modules/" in run(make(tmp_path, {"README.md": ""}), code=2).output


def test_a_ratchet_begins_with_what_there_is(tmp_path: Path) -> None:
    make(tmp_path, module(LISTED))
    run(tmp_path, code=3)
    run(tmp_path, "--update-ratchet")
    assert (tmp_path / RATCHET).read_text().endswith("exceptions: 2\nenv-files: 0\n")


def test_no_ratchet_is_lowered_by_what_could_not_be_read(tmp_path: Path) -> None:
    files = module(LISTED, env="{A: '${nowhere:field}'}") | {RATCHET: "exceptions: 2\n"}
    run(make(tmp_path, files), "--update-ratchet", code=3)
    assert (tmp_path / RATCHET).read_text() == "exceptions: 2\n"


def test_a_ratchet_that_is_none_is_refused_at_its_place(tmp_path: Path) -> None:
    make(tmp_path, module() | {RATCHET: "exceptions: many\n"})
    assert found(tmp_path) == [("schema", RATCHET, 1, 13)]
    run(tmp_path, "--update-ratchet", code=3)
    assert (tmp_path / RATCHET).read_text() == "exceptions: many\n"


# --- retired forms -------------------------------------------------------------------------------------

OLD = """\
module: app
settings: {workers: 2}
requires: {machine: {host: machine}}
containers:
  app:
    image: app
    env:
      NAME: '${machine:name} $${bound:x}'
      DB: '${bound:database.host}:${port:http}'
      DB_PASSWORD: GMCANARY-old
      KEY_FILE: /run/key
    mounts: {/data: /srv/app, /more: {from: ~/more}, /new: data}
    volumes: ['/etc/app:/etc/app']
"""
PLACES = [(2, 1), (9, 12), (9, 35), (10, 20), (12, 21), (12, 45), (13, 15)]


@pytest.mark.rule("A16")
def test_retired_forms_are_found_in_a_file_that_does_not_load(tmp_path: Path) -> None:
    make(tmp_path, {"modules/app/module.yaml": OLD, RATCHET: "retired: 7\n"})
    said = run(tmp_path, "--retired", "--format", "json").output
    assert "GMCANARY" not in said
    counted = json.loads(said)["counted"]
    assert [(each["at"]["line"], each["at"]["column"]) for each in counted] == PLACES
    assert all(each["reason"] for each in counted)


@pytest.mark.rule("A16")
def test_retired_forms_are_held_against_a_ratchet_that_only_goes_down(tmp_path: Path) -> None:
    make(tmp_path, {"modules/app/module.yaml": OLD, RATCHET: "retired: 6\n"})
    assert found(tmp_path, "--retired") == [("ratchet-grown", RATCHET, 1, 10)]
    assert "GMCANARY" not in run(tmp_path, "--retired", code=3).output
    run(tmp_path, "--retired", "--update-ratchet", code=3)
    make(tmp_path, {RATCHET: "retired: 9\n"})
    assert "--retired --update-ratchet" in run(tmp_path, "--retired").output
    run(tmp_path, "--retired", "--update-ratchet")
    assert (tmp_path / RATCHET).read_text() == "retired: 7\n"


def test_what_is_no_yaml_has_its_references_found_still(tmp_path: Path) -> None:
    make(tmp_path, {"modules/app/module.yaml": "a: [\n  '${seat:mesh-vault}\n", RATCHET: "retired: 1\n"})
    assert "2:4: retired: ${seat:…}" in run(tmp_path, "--retired").output


# --- faces, and what ships ------------------------------------------------------------------------------


def test_annotations_of_a_workflow(tmp_path: Path) -> None:
    make(tmp_path, module(env="{API: 'https://api.example.org/'}"))
    said = run(tmp_path, "--format", "github", code=3).output
    assert said.startswith("::error file=modules/app/module.yaml,line=6,endLine=6,col=11,")


def test_what_git_would_commit_is_what_a_hook_lints(tmp_path: Path) -> None:
    commit(make(tmp_path, module(env="{API: x}")))
    make(tmp_path, module(env="{API: 'https://api.example.org/'}"))
    assert found(tmp_path, "--staged", code=0) == []
    git(tmp_path, "add", "-A")
    assert [each[0] for each in found(tmp_path, "--staged")] == ["name-written-out"]
    run(tmp_path, "--staged", "--update-ratchet", code=2)


def test_the_hook_of_pre_commit_is_that_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks, refused = read("hooks.yaml", b"hooks:\n" + (PROJECT / ".pre-commit-hooks.yaml").read_bytes())
    assert refused == []
    (hook,) = [each for each in hooks["hooks"] if each["id"] == "gitmesh-catalogue-lint"]
    commit(make(tmp_path, module(env="{API: 'https://api.example.org/'}")))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, shlex.split(hook["entry"])[1:])
    assert done.exit_code == 3 and "refused[name-written-out]" in done.output


@pytest.mark.parametrize("code", [Code.NAME_WRITTEN_OUT, Code.PATH_WRITTEN_OUT, Code.RATCHET_GROWN])
def test_a_pages_mesh_is_linted_with_its_code_alone(code: Code, tmp_path: Path) -> None:
    page = explain.page(code.value)
    assert len(blocks(page)) == len(re.findall(r"^```\w", page, re.MULTILINE))
    lay(tmp_path, blocks(page))
    assert {each[0] for each in found(tmp_path)} == {code.value}


def test_the_template_is_clean() -> None:
    assert run(PROJECT / "mesh-repo-template").output.endswith("\nclean\n")


def test_the_example_mesh_is_clean(example_mesh: Path) -> None:
    files = {
        each.relative_to(example_mesh).as_posix(): each.read_bytes()
        for each in example_mesh.rglob("*")
        if each.is_file()
    }
    said = lint(files)
    assert said.refusals == ()
    assert {each.kind for each in said.counted} == {"env-files"}
