"""`gitmesh deploy` as the controller meets it: what it says, and what it says when it can't."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from gitmesh.trust.keys import SigningKey, write_key
from tests.cli.begun import NODES, Begun, contents, gitmesh
from tests.cli.small_mesh import git


def refs(mesh: Begun) -> str:
    """Every ref of origin."""
    return git(mesh.folder / "origin.git", "for-each-ref")


@pytest.fixture
def mesh(tmp_path: Path) -> Begun:
    """The mesh with its three nodes enrolled, not deployed."""
    return Begun.enrolled(tmp_path)


def test_a_first_deploy_and_one_with_nothing_new(mesh: Begun) -> None:
    done = mesh.deploy("--origin", mesh.url)
    assert (done.exit_code, done.output) == (0, "deploy 1: for athens, delphi, sparta\n")
    held = refs(mesh)
    done = mesh.deploy("--origin", mesh.url)
    assert (done.exit_code, done.output) == (0, "deploy 1 stands; nothing is new\n")
    assert refs(mesh) == held


def test_an_enrolled_node_knows_its_origin(mesh: Begun) -> None:
    assert mesh.deploy().output == "deploy 1: for athens, delphi, sparta\n"


def test_for_programs(mesh: Begun) -> None:
    said = json.loads(mesh.deploy("--format", "json").output)
    assert said["pushed"][0] == "refs/heads/deploy"
    assert {f"refs/gitmesh/node/{node}" for node in NODES} <= set(said["pushed"])
    commit = git(mesh.mesh, "rev-parse", "HEAD")
    assert {key: said[key] for key in ("v", "deploy", "commit", "not-enrolled", "refused")} == {
        "v": 1, "deploy": 1, "commit": commit, "not-enrolled": [], "refused": [],
    }  # fmt: skip


def test_a_node_that_has_not_enrolled_is_named(tmp_path: Path) -> None:
    mesh = Begun.enrolled(tmp_path, ("delphi", "sparta"))
    done = mesh.deploy()
    assert done.exit_code == 0
    assert done.output == (
        "deploy 1: for delphi, sparta\n"
        "  athens has not enrolled: gitmesh enrol athens --origin URL --root-sha256 HEX\n"
    )


@pytest.mark.rule("G5")
def test_a_main_that_does_not_resolve_is_said_and_what_stands_stays(mesh: Begun) -> None:
    mesh.deploy()
    held = refs(mesh).replace(git(mesh.mesh, "rev-parse", "HEAD"), "")
    (mesh.mesh / "assignments/athens/gitea.yaml").write_text("")
    mesh.push()
    done = mesh.deploy()
    assert done.exit_code == 3
    assert "refused[value-missing]: gitea@athens.web.name: " in done.output
    assert done.output.endswith("\nmain does not resolve; deploy 1 stands; nothing is new\n")
    assert refs(mesh).replace(git(mesh.mesh, "rev-parse", "HEAD"), "") == held
    said = json.loads(mesh.deploy("--format", "json").output)
    assert (said["deploy"], said["refused"], said["pushed"]) == (1, ["value-missing"], [])


def test_a_first_main_that_does_not_resolve_deploys_nothing(mesh: Begun) -> None:
    (mesh.mesh / "assignments/athens/gitea.yaml").write_text("")
    mesh.push()
    done = mesh.deploy()
    assert done.exit_code == 3
    assert done.output.endswith("\nnothing was deployed yet, and main does not resolve\n")
    assert "deploy" not in refs(mesh)


# --- what can go wrong -----------------------------------------------------------------------------------


def test_without_an_origin(tmp_path: Path) -> None:
    mesh = Begun.make(tmp_path)
    mesh.genesis()
    done = mesh.deploy()
    assert done.exit_code == 1
    assert done.output.startswith("error: no --origin, and ")
    assert done.output.endswith("  try: gitmesh deploy --origin URL --key FILE\n")
    assert mesh.deploy("--origin", "").exit_code == 2


def test_an_origin_that_is_not_there(mesh: Begun) -> None:
    nowhere = (mesh.folder / "nowhere.git").as_uri()
    done = mesh.deploy("--origin", nowhere)
    assert done.exit_code == 1
    assert done.output.startswith(f"error: {nowhere}: ")
    assert done.output.endswith(f"  try: git ls-remote {nowhere}\n")


def test_an_origin_without_main(mesh: Begun) -> None:
    git(mesh.folder, "init", "-q", "--bare", "-b", "main", "empty.git")
    empty = (mesh.folder / "empty.git").as_uri()
    done = mesh.deploy("--origin", empty)
    assert (done.exit_code, done.output) == (
        1,
        f"error: {empty} has no branch main\n  try: git push origin main\n",
    )


def test_a_main_without_a_root(mesh: Begun) -> None:
    (mesh.mesh / "trust/1.root.json").unlink()
    mesh.push()
    done = mesh.deploy()
    assert done.exit_code == 1
    assert done.output == (
        "error: main has no trust/1.root.json, so nothing can be approved\n  try: gitmesh genesis\n"
    )


def test_a_root_that_was_tampered_with(mesh: Begun) -> None:
    path = mesh.mesh / "trust/1.root.json"
    path.write_bytes(path.read_bytes()[:-40])
    mesh.push()
    held = refs(mesh)
    done = mesh.deploy()
    assert done.exit_code == 1
    assert done.output.startswith("error: ")
    assert refs(mesh) == held


def test_without_the_key(mesh: Begun) -> None:
    (mesh.root("delphi") / "etc/gitmesh/controller/deploy.key").unlink()
    done = mesh.deploy()
    assert done.exit_code == 1
    assert "deploy.key is not there: genesis made the controller's key on the node that holds" in done.output
    assert done.output.endswith("  try: gitmesh deploy --key FILE\n")
    assert mesh.deploy("--key", mesh.folder / "no/such/folder/key").exit_code == 1


@pytest.mark.rule("S56")
def test_a_key_that_others_may_read(mesh: Begun) -> None:
    path = mesh.root("delphi") / "etc/gitmesh/controller/deploy.key"
    path.chmod(0o644)
    done = mesh.deploy()
    assert (done.exit_code, done.output.endswith(f"  try: chmod 600 {path}\n")) == (1, True)


def test_a_key_that_the_root_does_not_name_publishes_nothing(mesh: Begun) -> None:
    key = SigningKey.generate()
    write_key(mesh.folder / "other.key", key)
    held = refs(mesh)
    done = mesh.deploy("--key", mesh.folder / "other.key")
    assert done.exit_code == 1
    assert f"root 1 does not name {key.public_text} as the controller's key" in done.output
    assert refs(mesh) == held
    assert mesh.deploy().exit_code == 0


def test_a_deploy_branch_of_another_mesh_is_named_and_left(mesh: Begun) -> None:
    (mesh.folder / "second").mkdir()
    other = Begun.enrolled(mesh.folder / "second")
    other.deploy()
    theirs = ("deploy:deploy", "refs/gitmesh/*:refs/gitmesh/*")
    git(mesh.folder / "origin.git", "fetch", "-q", other.url, *theirs)
    held = refs(mesh)
    done = mesh.deploy()
    assert done.exit_code == 1, done.output
    assert done.output.startswith(f"error: what stands on {mesh.url} is not this mesh's: ")
    assert refs(mesh) == held


@pytest.mark.rule("S53")
def test_no_private_key_is_printed_or_published(mesh: Begun) -> None:
    said = mesh.deploy().output + mesh.pull("delphi").output + mesh.pull("athens").output
    keys = [
        line.rpartition(b":")[2].strip()
        for node in NODES
        for path, blob in contents(mesh.root(node)).items()
        if path.startswith("etc/gitmesh/") and not path.endswith("node.yaml")
        for line in blob.splitlines()
        if not line.startswith(b"#")
    ]
    assert len(keys) == 2 * len(NODES) + 6
    every = ["git", "-C", str(mesh.folder / "origin.git"), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(every, capture_output=True, check=True).stdout
    for key in keys:
        assert key.decode() not in said
        assert key not in objects


def test_help_has_an_example_that_parses() -> None:
    assert "Example: gitmesh deploy --origin" in gitmesh("deploy", "--help").output
