"""The mesh as a graph: each line is of the language, and every edge is there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from gitmesh.cli.main import cli
from tests.cli.small_mesh import FILES, make
from tests.real import require

NAME = r'"[a-z0-9@., ()-]+"'
MERMAID = (
    rf"flowchart LR|  subgraph n\d+\[{NAME}\]|    a\d+\[{NAME}\]|  end|  a\d+ (-\.->|-->)\|{NAME}\| a\d+"
)
DOT = (
    r"digraph mesh \{|  rankdir=LR;|  node \[shape=box\];|  subgraph cluster_\d+ \{|  \}|\}"
    rf"|    label={NAME};|    a\d+ \[label={NAME}\];|  a\d+ -> a\d+ \[label={NAME}(, style=dashed)?\];"
)


def graph(folder: Path, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["graph", *arguments, "--repo", str(folder)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize(
    ("form", "line", "edge"), [("mermaid", MERMAID, r"-->|-\.->"), ("dot", DOT, r" -> ")]
)
def test_each_line_is_of_the_language(form: str, line: str, edge: str, tmp_path: Path) -> None:
    make(tmp_path)
    lines = graph(tmp_path, "--format", form).splitlines()
    assert [each for each in lines if not re.fullmatch(line, each)] == []
    edges = json.loads(graph(tmp_path, "--format", "json"))["edges"]
    assert edges and sum(bool(re.search(edge, each)) for each in lines) == len(edges)


def test_a_credential_is_an_edge_that_waits(tmp_path: Path) -> None:
    make(tmp_path)
    edges = json.loads(graph(tmp_path, "gitea@athens", "--format", "json"))["edges"]
    (database,) = [each for each in edges if each["requirement"] == "database"]
    assert (database["from"], database["to"]) == ("gitea@athens", "postgres@sparta")
    assert database["waits"]
    assert all("gitea@athens" in (each["from"], each["to"]) for each in edges)


def test_an_answer_is_waited_for_too(tmp_path: Path) -> None:
    contract = "contract: page\nabout: A page.\nfields: {number: {type: integer}}\n"
    press = (
        "module: press\ncontainers: {press: {image: 'docker.io/library/press:1@sha256:…'}}\nprovides:\n"
        "  page: {answers: [number], provisioner: {adapter: exec, in: press, command: [/bin/page]}}\n"
    )
    reader = (
        "module: reader\nrequires: {own: {module: page}}\ncontainers:\n  reader:\n"
        "    image: docker.io/library/reader:1@sha256:…\n    env: {PAGE: '${own:number}'}\n"
    )
    files = {
        "contracts/page.yaml": contract,
        "modules/press/module.yaml": press,
        "modules/reader/module.yaml": reader,
    }
    assigned = {"assignments/athens/press.yaml": "", "assignments/athens/reader.yaml": ""}
    make(tmp_path, FILES | files | assigned)
    (edge,) = json.loads(graph(tmp_path, "reader@athens", "--format", "json"))["edges"]
    assert edge["waits"]


@pytest.mark.real
def test_graphviz_draws_every_name_as_text(tmp_path: Path) -> None:
    require(shutil.which("dot"), "there is no `dot` of Graphviz")
    make(tmp_path)
    drawn = ElementTree.fromstring(graph(tmp_path, "--format", "svg"))
    texts = {"".join(each.itertext()) for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
    shown = json.loads(graph(tmp_path, "--format", "json"))
    ids = {each for node in shown["nodes"] for each in node["assignments"]}
    assert {each["name"] for each in shown["nodes"]} | {
        each["requirement"] for each in shown["edges"]
    } <= texts
    assert ids <= {each.partition(" ")[0] for each in texts}
    assert not [each.tag for each in drawn.iter() if each.tag.endswith(("script", "image"))]


def test_without_graphviz_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert "apt-get install graphviz" in graph(tmp_path, "--format", "svg", code=1)


def test_another_name_suggests_the_nearest(tmp_path: Path) -> None:
    make(tmp_path)
    assert "did you mean `gitea@athens`?" in graph(tmp_path, "gitea@athns", code=2)


@pytest.mark.rule("B10")
def test_a_refused_mesh_is_not_drawn(tmp_path: Path) -> None:
    make(tmp_path, FILES | {"modules/gitea/module.yaml": "module: [\n"})
    assert "refused[yaml-syntax]" in graph(tmp_path, code=3)
