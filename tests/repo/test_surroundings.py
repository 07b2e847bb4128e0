"""The states that a git repository is found in, by the ids of cases.tsv: handled, or named with a way out."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gitmesh.assets import asset
from gitmesh.cli.main import cli, main
from gitmesh.core.refusal import Code
from gitmesh.repo.git import RepoError
from gitmesh.repo.grammar import Fault, Place, Shape, judge
from gitmesh.repo.load import load
from gitmesh.repo.transport import Update, fetch, init_bare, push, remote_refs
from gitmesh.repo.tree import Tree, open_staged, open_tree
from tests.real import require

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
UNSAFE = ["--upload-pack=touch sprung", "a b", "a..b", "", "a\nb"]


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    folder = tmp_path / "mesh"
    shutil.copytree(asset("mesh-repo-template"), folder)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a mesh")
    return folder


def check(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["check", "--repo", str(folder), *arguments])


def never(*_: object, **__: object) -> None:
    pytest.fail("git was called")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


# --- where a checkout stands ---------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--revision", "HEAD"), ("--staged",)])
def test_a_detached_head(mesh: Path, arguments: tuple[str, ...]) -> None:
    git(mesh, "checkout", "-q", "--detach")
    assert check(mesh, *arguments).exit_code == 0


def test_a_merge_queues_ref(mesh: Path) -> None:
    name = "gh-readonly-queue/main/pr-7-" + git(mesh, "rev-parse", "HEAD")
    git(mesh, "branch", name)
    git(mesh, "clone", "-q", "--single-branch", "-b", name, mesh.as_uri(), "../queue")
    for revision in (f"origin/{name}", "HEAD"):
        assert check(mesh.parent / "queue", "--revision", revision).exit_code == 0


@pytest.mark.parametrize("bare", [False, True])
def test_c74_a_linked_worktree_is_read_and_nothing_is_written(mesh: Path, bare: bool) -> None:
    source = mesh
    if bare:
        source = mesh.parent / "bare.git"
        git(mesh, "clone", "-q", "--bare", str(mesh), str(source))
    linked = mesh.parent / "linked"
    git(source, "worktree", "add", "-q", str(linked), "-b", "other")
    (linked / "assignments/delphi/gitmesh-vault.yaml").unlink()
    git(linked, "add", "-A")
    before = everything(source)
    assert check(linked).exit_code == check(linked, "--staged").exit_code == 3
    assert check(linked, "--revision", "HEAD").exit_code == 0
    assert open_staged(linked).files.keys() == open_tree(linked, None).files.keys()
    assert everything(source) == before


def test_a_shallow_clone_is_checked_and_names_what_it_lacks(mesh: Path) -> None:
    first = git(mesh, "rev-parse", "HEAD")
    git(mesh, "commit", "-q", "--allow-empty", "-m", "a second")
    git(mesh.parent, "clone", "-q", "--depth=1", mesh.as_uri(), "shallow")
    shallow = mesh.parent / "shallow"
    assert check(shallow, "--revision", "HEAD").exit_code == 0
    with pytest.raises(RepoError, match="shallow clone") as raised:
        open_tree(shallow, first)
    assert raised.value.command == f"git -C {shallow} fetch --unshallow"


@pytest.mark.real
@pytest.mark.parametrize("arguments", [(), ("--revision", "HEAD"), ("--staged",)])
@pytest.mark.parametrize("below", [False, True])
def test_c77_a_repository_of_another_user_is_named_and_nothing_is_configured(
    mesh: Path, arguments: tuple[str, ...], below: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    require(os.geteuid() == 0, "only root can give a repository to another user")
    settings = Path(os.environ["GIT_CONFIG_GLOBAL"]).read_bytes()
    folder = mesh
    if below:
        folder = mesh / "inner"
        shutil.copytree(mesh, folder, ignore=shutil.ignore_patterns(".git", "inner"))
    subprocess.run(["chown", "-R", "65534", mesh], check=True)
    with pytest.raises(SystemExit) as ended:
        main(["check", "--repo", str(folder), *arguments])
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert "belongs to another user" in said and "no commit" not in said and "empty" not in said
    assert f"git config --global --add safe.directory {mesh}\n" in said, "the folder that git means"
    assert Path(os.environ["GIT_CONFIG_GLOBAL"]).read_bytes() == settings


# --- the environment -----------------------------------------------------------------------------------


@pytest.mark.rule("S30")
def test_c73_git_variables_of_another_repository_change_nothing(
    mesh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    outside = [check(mesh, *each).output for each in ((), ("--revision", "HEAD"), ("--staged",))]
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git/index",
        "GIT_PREFIX": "sub/",
        "GIT_OBJECT_DIRECTORY": other / ".git/objects",
        "GIT_NAMESPACE": "other",
        "GIT_CEILING_DIRECTORIES": tmp_path,
    }.items():
        monkeypatch.setenv(name, str(value))
    assert [check(mesh, *each).output for each in ((), ("--revision", "HEAD"), ("--staged",))] == outside


@pytest.mark.rule("S30")
def test_c73_hooks_of_the_users_settings_are_not_run(
    mesh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprung, trap = tmp_path / "sprung", tmp_path / "trap"
    trap.mkdir()
    for name in ("reference-transaction", "pre-push", "post-checkout", "post-index-change"):
        (trap / name).write_text(f"#!/bin/sh\necho {name} >>{sprung}\n")
        (trap / name).chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(f"[core]\n hooksPath = {trap}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    own, remote = tmp_path / "own.git", tmp_path / "remote.git"
    init_bare(own)
    init_bare(remote)
    found = fetch(own, str(mesh), ["refs/heads/main"])
    push(own, str(remote), [Update("refs/heads/main", found["refs/heads/main"], None)])
    assert git(remote, "rev-parse", "refs/heads/main") == found["refs/heads/main"]
    assert not sprung.exists()
    git(own, "update-ref", "refs/heads/other", found["refs/heads/main"])
    assert sprung.exists(), "the trap is one"


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.rule("F6")
@pytest.mark.parametrize("name", [*UNSAFE, "-n1"])
def test_c85_an_unsafe_revision_is_refused_before_git_is_asked(
    mesh: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(RepoError, match="names no commit"):
        open_tree(mesh, name)


@pytest.mark.rule("F6")
@pytest.mark.parametrize("name", [*UNSAFE, "x.lock", "x/", "/x", ".x", "x/.y", "ä", "x~1", "@{1}"])
def test_c85_an_unsafe_ref_is_refused_before_git_is_asked(
    mesh: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = mesh.parent / "own.git"
    init_bare(own)

    monkeypatch.setattr(subprocess, "run", never)
    monkeypatch.setattr(subprocess, "Popen", never)
    for attempt in (
        lambda: fetch(own, str(mesh), [f"refs/heads/{name}"]),
        lambda: fetch(own, str(mesh), [f"refs/heads/x:refs/heads/{name}"]),
        lambda: push(own, str(mesh), [Update(f"refs/heads/{name}", None)]),
        lambda: remote_refs(str(mesh), [name]),
    ):
        with pytest.raises(RepoError, match="is not the name of a ref"):
            attempt()


def test_c85_a_deploy_branch_of_an_unsafe_name_is_refused_in_its_file(mesh: Path) -> None:
    for name in ("a..b", "x.lock", "x/", "a//b", "a/.b"):
        text = (mesh / "mesh.yaml").read_text()
        (mesh / "mesh.yaml").write_text(text.replace("branch: deploy", f"branch: {name}"))
        said = check(mesh)
        assert said.exit_code == 3 and "expected a branch name" in said.output
        git(mesh, "checkout", "-q", "mesh.yaml")


# --- what git's own tools leave ------------------------------------------------------------------------


@pytest.mark.rule("F6")
@pytest.mark.parametrize("path", ["modules/gitea/module.yaml", "modules/gitea/provision.sh"])
def test_c82_a_pointer_of_git_lfs_is_named(mesh: Path, path: str) -> None:
    (mesh / path).write_bytes(POINTER)
    _, refusals = load(open_tree(mesh).files)
    (refusal,) = [each for each in refusals if each.at.file == path]
    assert refusal.code is Code.FILE_KIND and "Git LFS" in refusal.message
    assert refusal.answers[0].command == f"git lfs untrack {path} && git add --renormalize {path}"


@pytest.mark.rule("F6")
@pytest.mark.parametrize("read", [lambda mesh: open_tree(mesh, "HEAD"), open_staged], ids=["commit", "index"])
def test_c82_a_submodule_among_the_modules_is_refused_and_ignored_elsewhere(
    mesh: Path, read: Callable[[Path], Tree]
) -> None:
    commit = git(mesh, "rev-parse", "HEAD")
    for path in ("modules/other", "vendored", "docs/theme"):
        git(mesh, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    git(mesh, "commit", "-q", "-m", "submodules without a .gitmodules")
    (refusal,) = read(mesh).refusals
    assert (refusal.code, refusal.at.file) == (Code.FILE_KIND, "modules/other")
    assert "a submodule where a folder must be" in refusal.message


@pytest.mark.rule("F6")
@pytest.mark.parametrize("path", ["handed/relay.yaml", "nodes/athens.yaml"])
def test_c64_conflict_markers_are_refused_by_name(mesh: Path, path: str) -> None:
    (mesh / path).parent.mkdir(exist_ok=True)
    (mesh / path).write_text("id: x\n<<<<<<< HEAD\nvalue: a\n=======\nvalue: b\n>>>>>>> other\n")
    _, refusals = load(open_tree(mesh).files)
    (refusal,) = [each for each in refusals if each.at.file == path]
    assert refusal.code is Code.FILE_CONFLICT
    assert refusal.at.span is not None and refusal.at.span.line == 2


def test_c64_c65_git_neither_merges_nor_rewrites_a_sealed_file(mesh: Path) -> None:
    """By the template's .gitattributes: no line ends, and no markers, in what is encrypted whole."""
    sealed = mesh / "handed/relay.yaml"
    sealed.parent.mkdir()
    contents = {}
    for branch, text in (("main", "id: one\r\nvalue: 1\n"), ("theirs", "id: one\r\nvalue: 2\n")):
        if branch == "theirs":
            git(mesh, "checkout", "-q", "-b", branch, "HEAD~1")
            sealed.parent.mkdir(exist_ok=True)
        sealed.write_bytes(text.encode())
        git(mesh, "-c", "core.autocrlf=true", "add", "-A")
        git(mesh, "commit", "-q", "-m", "handed")
        contents[branch] = open_tree(mesh, branch).files["handed/relay.yaml"]
        assert contents[branch] == text.encode(), "as it was written"
    sealed.unlink()
    git(mesh, "-c", "core.autocrlf=true", "checkout", "-q", "--", ".")
    assert sealed.read_bytes() == contents["theirs"]
    done = subprocess.run(["git", "merge", "main"], cwd=mesh, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert sealed.read_bytes() == contents["theirs"], "one whole side, and no markers"


@pytest.mark.rule("S29")
def test_c79_a_link_swapped_in_between_the_look_and_the_read_is_not_followed(
    mesh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "shadow"
    secret.write_text("GMCANARY\n")
    victim = mesh / "nodes/athens.yaml"

    def swap(path: str, shape: Shape) -> Place | Fault:
        verdict = judge(path, shape)
        if path == "nodes/athens.yaml" and not victim.is_symlink():
            victim.unlink()
            victim.symlink_to(secret)
        return verdict

    monkeypatch.setattr("gitmesh.repo.tree.judge", swap)
    with pytest.raises(RepoError) as raised:
        open_tree(mesh)
    assert "GMCANARY" not in raised.value.message
