"""Vendored catalogues (G15): pinned by commit and digest, moved by a reviewed difference, never hostile."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gitmesh import fsops
from gitmesh.assets import asset
from gitmesh.catalogue.vendor import MOST_LINES, Pin, diff, pinned, split
from gitmesh.cli.main import cli
from gitmesh.repo.document import read
from gitmesh.repo.load import load
from gitmesh.repo.load_catalogue import digest, vendored
from gitmesh.repo.tree import open_tree
from tests.cli.small_mesh import commit, git, make
from tests.cli.test_edit_terminal import at_terminal
from tests.real import PROJECT

SCHEMA = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "vendored.json").read_text()))
REFUSED = jsonschema.Draft202012Validator(json.loads((asset("schemas") / "refusals.json").read_text()))
TICKET = "contract: ticket\nabout: A ticket.\nfields: {number: {type: string}}\n"
SHOP = {
    "README.md": "# nothing of a mesh\n",
    "contracts/ticket.yaml": TICKET,
    "contracts/README.md": "# nothing of a mesh either\n",
    "modules/tool/module.yaml": "module: tool\nrequires: {ticket: {module: ticket, optional: true}}\n",
    "modules/tool/notes.txt": "a note\n",
    "seats.yaml": "mesh-tickets: ticket\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A catalogue's repository, with one commit."""
    folder = make(tmp_path / "shop", SHOP)
    commit(folder)
    return folder


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    return make(tmp_path / "mesh")


def run(mesh: Path, *arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, ["catalogue", *arguments, "--repo", str(mesh)])
    assert done.exit_code == code, done.output
    return done


def vendor(mesh: Path, source: object, *arguments: str, code: int = 0) -> Result:
    return run(mesh, "vendor", "shop", str(source), "--yes", *arguments, code=code)


def held(mesh: Path) -> dict[str, str]:
    """What the mesh holds of the catalogue."""
    folder = mesh / "catalogue/shop"
    return {
        each.relative_to(folder).as_posix(): each.read_text()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def refused(mesh: Path) -> list[str]:
    """The codes that a check of the mesh says."""
    done = CliRunner().invoke(cli, ["check", "--repo", str(mesh), "--format", "json"])
    return [each["code"] for each in json.loads(done.output)["refusals"]]


def change(shop: Path, **texts: str) -> str:
    """The shop's next commit, with other texts; `a__b` is a/b.yaml."""
    return commit(make(shop, {f"{name.replace('__', '/')}.yaml": text for name, text in texts.items()}))


@pytest.mark.rule("G15")
def test_it_takes_definitions_and_pins_them_by_commit_and_digest(mesh: Path, shop: Path) -> None:
    before = refused(mesh)
    vendor(mesh, shop)
    assert held(mesh) == {path: text for path, text in SHOP.items() if "README" not in path}
    pin = (mesh / "catalogue.yaml").read_text()
    assert f"from: {shop}" in pin and git(shop, "rev-parse", "HEAD") in pin
    assert refused(mesh) == before
    found = open_tree(mesh).files
    assert digest(vendored(found)["shop"]) in pin
    loaded, _ = load(found)
    assert loaded.seats["mesh-tickets"] == "ticket" and "tool" in loaded.modules


@pytest.mark.rule("G15")
def test_the_digest_is_what_a_line_of_shell_says(mesh: Path, shop: Path) -> None:
    text = (PROJECT / "docs/catalogues.md").read_text()
    _, _, line = text.partition("```sh\n# the digest\n")
    line, _, _ = line.partition("```")
    vendor(mesh, shop)
    done = subprocess.run(["sh", "-euc", line], cwd=mesh, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] in (mesh / "catalogue.yaml").read_text()


@pytest.mark.rule("G15")
def test_an_update_shows_what_differs_and_moves_the_pin(mesh: Path, shop: Path) -> None:
    vendor(mesh, shop)
    (shop / "seats.yaml").unlink()
    (shop / "modules/tool/notes.txt").unlink()
    tip = change(shop, contracts__ticket=TICKET.replace("A ticket", "A \x1b[31mticket"), contracts__seat="")
    make(shop, {"contracts/seat.yaml": "contract: seat\nfields: {}\n"})
    tip = commit(shop)
    git(shop, "checkout", "-q", tip)
    said = json.loads(run(mesh, "update", "--yes", "--format", "json", code=0).output)
    SCHEMA.validate(said)
    assert said["commit"] == tip and said["was"] == git(shop, "rev-list", "--max-parents=0", "HEAD")
    assert [(each["file"].removeprefix("catalogue/shop/"), each["action"]) for each in said["changes"]] == [
        ("contracts/seat.yaml", "added"),
        ("contracts/ticket.yaml", "changed"),
        ("modules/tool/notes.txt", "removed"),
        ("seats.yaml", "removed"),
    ]
    assert "-about: A ticket." in said["diff"]
    assert set(held(mesh)) == {"contracts/seat.yaml", "contracts/ticket.yaml", "modules/tool/module.yaml"}
    assert "holds" in run(mesh, "update", "shop", "--yes").output


def test_nothing_of_a_difference_is_obeyed_by_a_terminal(mesh: Path, shop: Path) -> None:
    change(shop, contracts__ticket=TICKET.replace("A ticket", "A \x1b[31mticket ```"))
    for form in ("text", "markdown"):
        said = vendor(make(mesh / form), shop, "--format", form).output
        assert "\x1b" not in said and "\\x1b[31mticket" in said
    assert "\n````diff\n" in said


def test_without_a_terminal_it_writes_nothing_unless_told(mesh: Path, shop: Path) -> None:
    said = run(mesh, "vendor", "shop", str(shop), code=2)
    assert "+contract: ticket" in said.output and "--yes" in said.output
    assert not (mesh / "catalogue").exists() and not (mesh / "catalogue.yaml").exists()


@pytest.mark.parametrize(("given", "written"), [(b"y\n", True), (b"n\n", False)])
def test_a_terminal_is_asked(mesh: Path, shop: Path, given: bytes, written: bool) -> None:
    code, said = at_terminal(
        mesh, "catalogue", "vendor", "shop", str(shop), question=b"Write this", given=given
    )
    assert said.index("+contract: ticket") < said.index("Write this to catalogue/shop?")
    assert (code == 0) is written
    assert (mesh / "catalogue.yaml").exists() is written


def test_a_commit_a_tag_and_a_branch(mesh: Path, shop: Path) -> None:
    first = git(shop, "rev-parse", "HEAD")
    git(shop, "tag", "v1")
    change(shop, contracts__ticket=TICKET.replace("A ticket", "Another"))
    for source in (f"{shop}@{first}", f"{shop}@v1"):
        make(mesh, {"catalogue.yaml": ""})
        vendor(mesh, source)
        assert first in (mesh / "catalogue.yaml").read_text()
    run(mesh, "update", "--commit", "main", "--yes")
    assert "Another" in held(mesh)["contracts/ticket.yaml"]
    run(mesh, "update", "--commit", first, "--yes")
    assert held(mesh)["contracts/ticket.yaml"] == TICKET


@pytest.mark.parametrize("given", ["9" * 40, "v9", "..", "-x"])
def test_a_commit_that_the_remote_lacks(mesh: Path, shop: Path, given: str) -> None:
    vendor(mesh, f"{shop}@{given}", code=1)
    assert not (mesh / "catalogue").exists()


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("https://git.example.org/shop.git", ("https://git.example.org/shop.git", None)),
        ("git@git.example.org:shop.git", ("git@git.example.org:shop.git", None)),
        ("ssh://git@git.example.org/shop.git", ("ssh://git@git.example.org/shop.git", None)),
        ("git@git.example.org:shop.git@v1.2", ("git@git.example.org:shop.git", "v1.2")),
    ],
)
def test_a_remote_and_its_commit(given: str, parts: tuple[str, str | None]) -> None:
    assert split(given) == parts


@pytest.mark.parametrize(
    "remote", ["ext::sh -c id", "--upload-pack=id", "https://me:GMCANARY@example.org/x.git"]
)
def test_a_remote_that_is_none(mesh: Path, remote: str) -> None:
    done = CliRunner().invoke(
        cli, ["catalogue", "vendor", "shop", "--repo", str(mesh), "--yes", "--", remote]
    )
    assert done.exit_code == 2
    assert "GMCANARY" not in done.output
    assert not (mesh / "catalogue.yaml").exists()


@pytest.mark.rule("G15", "S29")
def test_a_link_a_long_file_and_a_bad_name_are_refused(mesh: Path, shop: Path) -> None:
    (shop / "modules/tool/link").symlink_to("/etc/passwd")
    make(shop, {"contracts/Large.yaml": "", "contracts/long.yaml": "#" * (300 << 10)})
    commit(shop)
    said = json.loads(vendor(mesh, shop, "--format", "json", code=3).output)
    REFUSED.validate(said)
    assert {each["code"] for each in said["refusals"]} == {"file-kind", "file-name", "file-too-large"}
    assert "nothing is vendored until" in vendor(mesh, shop, code=3).output
    assert not (mesh / "catalogue").exists()


def test_what_holds_no_definition_is_said(mesh: Path, tmp_path: Path) -> None:
    commit(make(tmp_path / "other", {"README.md": "x"}))
    assert "holds no modules/" in vendor(mesh, tmp_path / "other", code=1).output


def test_what_is_refused_in_the_mesh_is_said_at_once(mesh: Path, shop: Path) -> None:
    change(shop, contracts__route=(mesh / "contracts/route.yaml").read_text())
    said = vendor(mesh, shop).output
    assert "still to answer" in said and "refused[defined-twice]" in said


@pytest.mark.rule("G15")
def test_an_edit_by_hand_is_refused_and_undone(mesh: Path, shop: Path) -> None:
    vendor(mesh, shop)
    change(shop, contracts__ticket=TICKET.replace("A ticket", "Another"))
    (mesh / "catalogue/shop/seats.yaml").write_text("mesh-tickets: ticket # mine\n")
    (mesh / "catalogue/shop/contracts/mine.yaml").write_text("contract: mine\nfields: {}\n")
    assert "catalogue-changed" in refused(mesh)
    run(mesh, "update", "--pinned", "--yes")
    assert "catalogue-changed" not in refused(mesh)
    assert held(mesh)["contracts/ticket.yaml"] == TICKET and "contracts/mine.yaml" not in held(mesh)


@pytest.mark.rule("G15")
def test_an_interrupted_update_is_refused_and_done_again(
    mesh: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor(mesh, shop)
    change(
        shop,
        contracts__ticket=TICKET.replace("A ticket", "Another"),
        contracts__new="contract: new\nfields: {}\n",
    )

    def fail(operation: str, path: str) -> None:
        if operation == "rename" and path.endswith("ticket.yaml"):
            raise OSError(28, os.strerror(28), path)

    with monkeypatch.context() as patched:
        patched.setattr(fsops, "fault", fail)
        done = CliRunner().invoke(cli, ["catalogue", "update", "--yes", "--repo", str(mesh)])
        assert isinstance(done.exception, OSError)
    assert "catalogue-changed" in refused(mesh)
    assert held(mesh)["contracts/ticket.yaml"] == TICKET
    run(mesh, "update", "--yes")
    assert "catalogue-changed" not in refused(mesh)


@pytest.mark.rule("G15")
def test_a_password_in_a_pin_is_refused_and_not_shown(mesh: Path, shop: Path) -> None:
    vendor(mesh, shop)
    pin = (mesh / "catalogue.yaml").read_text()
    make(mesh, {"catalogue.yaml": pin.replace(str(shop), "'https://me:GMCANARY@git.example.org/shop.git'")})
    assert "secret-exposed" in refused(mesh)
    assert "GMCANARY" not in CliRunner().invoke(cli, ["check", "--repo", str(mesh)]).output


@pytest.mark.parametrize("digits", ["1" * 64, "1e" + "2" * 62, "0x" + "1" * 62, "0" * 64, "1" * 63 + "e"])
def test_a_pin_of_digits_is_text(digits: str) -> None:
    blob = pinned(b"# mine\n", "shop", Pin("https://git.example.org/shop.git", digits, digits))
    value, refused = read("catalogue.yaml", blob)
    assert refused == [] and value["shop"]["sha256"] == value["shop"]["commit"] == digits
    assert blob.startswith(b"# mine\n")


def test_pins_that_are_not_there(mesh: Path, shop: Path) -> None:
    assert "there are none" in run(mesh, "update", code=2).output
    vendor(mesh, shop)
    assert "gitmesh catalogue update shop" in vendor(mesh, shop, code=2).output
    assert "did you mean `shop`" in run(mesh, "update", "shpo", code=2).output
    make(mesh, {"catalogue.yaml": "shop: 3\n"})
    assert "gitmesh check" in run(mesh, "update", code=1).output


def test_a_difference_is_bounded() -> None:
    lines, left = diff({}, {"contracts/a.yaml": b"a\n" * 1000 + b"b" * 999, "modules/x/y": b"\xff"}, "shop")
    assert len(lines) == MOST_LINES
    assert left == 3 + 1001 + 1 - MOST_LINES


def test_failure_is_what_a_program_reads(mesh: Path, tmp_path: Path) -> None:
    said = json.loads(vendor(mesh, tmp_path / "nowhere", "--format", "json", code=1).stdout)
    REFUSED.validate(said)
    assert said["result"] == "failed"
