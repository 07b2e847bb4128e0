"""`gitmesh enrol`: a machine becomes a node; and the keys that a later pull insists on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmesh.host.installed import read_installed
from gitmesh.trust.keys import SealingKey, SigningKey, read_key
from tests.cli.begun import Begun, contents, gitmesh, modes


@pytest.fixture
def mesh(tmp_path: Path) -> Begun:
    """The mesh after genesis, with no node enrolled."""
    begun = Begun.make(tmp_path)
    begun.genesis()
    return begun


@pytest.mark.rule("C3", "S55")
def test_a_node_makes_its_own_keys_and_prints_their_public_halves(mesh: Begun) -> None:
    root = mesh.root("athens")
    done = mesh.enrol("athens", "--mailbox", "ssh://git@git.example.org/mail.git")
    assert done.exit_code == 0
    assert contents(root).keys() == {
        "etc/gitmesh/keys/sign",
        "etc/gitmesh/keys/seal",
        "etc/gitmesh/node.yaml",
    }
    held = modes(root)
    assert (held["etc/gitmesh/keys/sign"], held["etc/gitmesh/keys/seal"]) == (0o600, 0o600)
    assert held["etc/gitmesh/keys"] == 0o700
    sign = read_key(root / "etc/gitmesh/keys/sign", SigningKey)
    seal = read_key(root / "etc/gitmesh/keys/seal", SealingKey)
    line = f"keys: {{sign: '{sign.public_text}', seal: '{seal.public_text}', epoch: 1}}"
    assert done.output == f"put this line into nodes/athens.yaml, and commit it:\n{line}\n"
    installed = read_installed(root)
    assert (installed.node, installed.origin) == ("athens", mesh.url)
    assert installed.mailbox == "ssh://git@git.example.org/mail.git"
    assert installed.root_sha256 == mesh.sha256()


def test_into_a_clone_it_writes_the_line_beside_the_comments(mesh: Begun) -> None:
    path = mesh.mesh / "nodes/athens.yaml"
    path.write_text("# rack 4\naddress: 10.7.0.11  # eth1\n")
    done = mesh.enrol("athens")
    assert done.exit_code == 0
    text = path.read_text()
    assert text.startswith("# rack 4\naddress: 10.7.0.11  # eth1\n")
    assert "epoch: 1" in text
    assert gitmesh("check", "--repo", mesh.mesh).exit_code == 0


@pytest.mark.rule("C3")
def test_twice_makes_no_new_key_and_prints_the_same(mesh: Begun) -> None:
    first = mesh.enrol("athens", "--mailbox", mesh.url)
    held = contents(mesh.folder)
    second = mesh.enrol("athens", "--mailbox", mesh.url)
    assert (second.exit_code, second.output) == (0, first.output)
    assert contents(mesh.folder) == held
    mesh.enrol("athens")
    once = contents(mesh.folder)
    assert mesh.enrol("athens").exit_code == 0
    assert contents(mesh.folder) == once


@pytest.mark.parametrize("sha256", ["", "abc", "g" * 64, "1" * 63, "1" * 65, "１" * 64])
def test_a_sha256_that_is_none_is_refused_before_a_key_is_made(mesh: Begun, sha256: str) -> None:
    done = gitmesh(
        "enrol", "athens", "--root", mesh.root("athens"), "--origin", mesh.url, "--root-sha256", sha256
    )
    assert done.exit_code == 2
    assert done.output == "error: --root-sha256 is 64 hex digits\n  try: gitmesh genesis --show\n"
    assert not mesh.root("athens").exists()


def test_capitals_and_blanks_of_a_copied_sha256_do_no_harm(mesh: Begun) -> None:
    copied = f" {mesh.sha256().upper()}\n"
    done = gitmesh(
        "enrol", "athens", "--root", mesh.root("athens"), "--origin", mesh.url, "--root-sha256", copied
    )
    assert done.exit_code == 0
    assert read_installed(mesh.root("athens")).root_sha256 == mesh.sha256()


def test_a_node_that_the_mesh_does_not_have_is_refused_with_the_nearest(mesh: Begun) -> None:
    done = mesh.enrol("athen")
    assert done.exit_code == 2
    assert done.output == f"error: {mesh.mesh} has no node `athen`; did you mean `athens`?\n"
    assert not mesh.root("athen").exists(), "no key was made for it"


@pytest.mark.rule("S61")
@pytest.mark.parametrize("node", ["../athens", "Athens", "a/b", "athens\x1b[31m", "", "-", "a" * 64])
def test_a_hostile_name_is_refused_and_not_repeated(mesh: Begun, node: str) -> None:
    root = mesh.folder / "somewhere"
    done = gitmesh("enrol", "--root", root, "--origin", mesh.url, "--root-sha256", "0" * 64, "--", node)
    assert done.exit_code == 2
    assert "\x1b" not in done.output
    assert not root.exists()


def test_another_origin_or_root_is_not_written_over(mesh: Begun) -> None:
    mesh.enrol("athens")
    held = contents(mesh.root("athens"))
    done = gitmesh(
        "enrol", "athens", "--root", mesh.root("athens"), "--origin", mesh.url, "--root-sha256", "0" * 64
    )
    assert done.exit_code == 1
    assert f"is there already and says `root_sha256: {mesh.sha256()}`" in done.output
    assert contents(mesh.root("athens")) == held


@pytest.mark.rule("C10")
def test_a_password_in_a_url_is_not_printed(mesh: Begun) -> None:
    root = mesh.root("athens")
    for host in ("a", "b"):
        url = f"https://athens:GMCANARY@{host}.example.org/hellas.git"
        done = gitmesh("enrol", "athens", "--root", root, "--origin", url, "--root-sha256", "0" * 64)
        assert "GMCANARY" not in done.output
    assert "says `origin: https://a.example.org/hellas.git`" in done.output
    assert gitmesh("deploy", "--root", root).exit_code == 1
    assert (root / "etc/gitmesh/node.yaml").stat().st_mode & 0o077 == 0, "others may not read it there either"


def test_another_machine_does_not_take_a_node_over_silently(mesh: Begun) -> None:
    mesh.enrol("athens")
    line = (mesh.mesh / "nodes/athens.yaml").read_text()
    other = mesh.folder / "other"
    done = gitmesh(
        "enrol", "athens", "--root", other, "--origin", mesh.url, "--root-sha256", mesh.sha256(),
        "--repo", mesh.mesh,
    )  # fmt: skip
    assert done.exit_code == 1
    assert "has another machine's `keys:`" in done.output
    assert (mesh.mesh / "nodes/athens.yaml").read_text() == line
    assert not other.exists()


@pytest.mark.rule("S56")
@pytest.mark.parametrize("key", ["sign", "seal"])
def test_a_key_that_others_may_read_stops_a_pull_with_the_fix(tmp_path: Path, key: str) -> None:
    mesh = Begun.enrolled(tmp_path)
    mesh.deploy()
    path = mesh.root("athens") / "etc/gitmesh/keys" / key
    path.chmod(0o644)
    done = mesh.pull("athens")
    assert done.exit_code == 1
    assert done.output.startswith(f"error: {path}: ")
    assert done.output.endswith(f"  try: chmod 600 {path}\n")
    assert not (mesh.root("athens") / "run").exists()
    again = mesh.enrol("athens")
    assert (again.exit_code, again.output.endswith(f"  try: chmod 600 {path}\n")) == (1, True)
    path.chmod(0o600)
    assert mesh.pull("athens").exit_code == 0


def test_a_machine_that_has_not_enrolled_is_told_how(tmp_path: Path) -> None:
    done = gitmesh("pull", "--root", tmp_path)
    assert done.exit_code == 1
    assert done.output == (
        f"error: {tmp_path}/etc/gitmesh/node.yaml is not there: this node has not enrolled\n"
        "  try: gitmesh enrol NODE --origin URL --root-sha256 HEX\n"
    )


@pytest.mark.parametrize(
    "text", ["", "node: athens\n", "[", "node: 1\norigin: x\nmailbox: x\nroot_sha256: x\n"]
)
def test_a_node_file_that_says_something_else_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "etc/gitmesh").mkdir(parents=True)
    (tmp_path / "etc/gitmesh/node.yaml").write_text(text)
    done = gitmesh("pull", "--root", tmp_path)
    assert done.exit_code == 1
    assert "does not say node, origin, mailbox, root_sha256, and nothing else" in done.output


def test_a_pull_says_once_what_it_did_and_what_waits(tmp_path: Path) -> None:
    mesh = Begun.enrolled(tmp_path)
    mesh.deploy()
    first = mesh.pull("delphi").output.splitlines()
    assert len(first) == len(set(first)) > 5
    new = [line for line in first if line.startswith("  new: ")]
    assert first[0] == f"delphi: deploy 1: {len(new)} new"
    assert "  new: the vault made gitea@athens.database" in new
    assert mesh.pull("athens").output == (
        "athens: deploy 1: 1 new, 1 waiting\n"
        "  new: took deploy 1\n"
        "  waiting: gitea@athens on postgres@sparta for gitea@athens.database\n"
    )
    assert mesh.pull("delphi").output.splitlines()[0] == "delphi: deploy 1: nothing new"
