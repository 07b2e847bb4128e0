"""Reading a mesh repo: one grammar for a working tree and for a commit, and nothing hostile is read."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmesh.core.refusal import Code
from gitmesh.repo.transport import RepoError, init_bare
from gitmesh.repo.tree import Tree, open_tree
from tests.real import require, shared
from tests.repo.test_objects import raw, raw_commit, raw_tree

GOOD = {
    "mesh.yaml": b"mesh: lab\n",
    "catalogue.yaml": b"{}\n",
    "rotations.yaml": b"{}\n",
    "purges.yaml": b"[]\n",
    "reveals.yaml": b"{}\n",
    "contracts/postgres-database.yaml": b"contract: x\n",
    "modules/gitea/module.yaml": b"module: gitea\n",
    "modules/gitea/provision.sh": b"#!/bin/sh\n",
    "modules/gitea/conf/a/b.ini": b"[x]\n",
    "modules/gitea/L\xc3\xa4sen.md".encode("latin-1").decode("utf-8"): b"x",
    "nodes/athens.yaml": b"address: 10.0.0.1\n",
    "assignments/athens/gitea.yaml": b"",
    "spreads/node-exporter.yaml": b"module: x\n",
    "values/gitea.yaml": b"mesh: {}\n",
    "handed/relay.yaml": b"id: x\n",
    "handed/gitea@athens.smtp.yaml": b"id: x\n",
    "trust/1.root.json": b"{}",
    "trust/12.root.json": b"{}",
    "catalogue/std/contracts/route.yaml": b"contract: route\n",
    "catalogue/std/modules/caddy/module.yaml": b"module: caddy\n",
}
IGNORED = {
    "README.md": b"x",
    ".gitignore": b"x",
    "docs/mesh.yaml": b"x",
    "nodes/README.md": b"x",
    "nodes/.athens.yaml.swp": b"x",
    "nodes/yaml": b"x",
    "nodes/sub/athens.yaml": b"x",
    "modules/README.md": b"x",
    "assignments/README": b"x",
    "trust/notes.txt": b"x",
    "catalogue/std/README.md": b"x",
    "catalogue/std/nodes/athens.yaml": b"x",
    "schemas/node.yaml": b"x",
}
Read = Callable[[Path], Tree]


def lay(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=x", "-c", "user.email=x@x"]
    done = subprocess.run(["git", "-C", folder, *own, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def committed(folder: Path) -> Tree:
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return open_tree(folder, "HEAD")


def on_disk(folder: Path) -> Tree:
    return open_tree(folder, None)


both = pytest.mark.parametrize("read", [on_disk, committed])


def refused(tree: Tree) -> dict[str, Code]:
    assert all(refusal.subject == refusal.at.file for refusal in tree.refusals)
    assert not any(refusal.at.file in refusal.message for refusal in tree.refusals), "it is said once"
    assert all(refusal.message.isprintable() for refusal in tree.refusals)
    return {refusal.at.file: refusal.code for refusal in tree.refusals}


@both
def test_what_counts_is_read_and_nothing_else(tmp_path: Path, read: Read) -> None:
    lay(tmp_path, GOOD | IGNORED)
    tree = read(tmp_path)
    assert tree.refusals == ()
    assert dict(tree.files) == GOOD
    assert list(tree.files) == sorted(GOOD)


def test_a_commit_names_itself_and_its_blobs(tmp_path: Path) -> None:
    lay(tmp_path, GOOD)
    tree = committed(tmp_path)
    assert tree.commit == git(tmp_path, "rev-parse", "HEAD")
    assert tree.ids["mesh.yaml"] == git(tmp_path, "rev-parse", "HEAD:mesh.yaml")
    (tmp_path / "mesh.yaml").write_bytes(b"mesh: other\n")
    assert open_tree(tmp_path, "main").files["mesh.yaml"] == GOOD["mesh.yaml"]
    assert open_tree(tmp_path, tree.commit[:12]).commit == tree.commit
    disk = open_tree(tmp_path, None)
    assert disk.commit is None
    assert disk.files["mesh.yaml"] == b"mesh: other\n"


def test_a_bare_clone_is_read(tmp_path: Path) -> None:
    lay(tmp_path / "work", GOOD)
    committed(tmp_path / "work")
    git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
    assert dict(open_tree(tmp_path / "bare.git", "main").files) == GOOD


@both
def test_the_example_mesh_is_read(tmp_path: Path, read: Read) -> None:
    source = shared("example-mesh")
    for path in source.rglob("*"):
        if path.is_file():
            lay(tmp_path, {str(path.relative_to(source)): path.read_bytes()})
    tree = read(tmp_path)
    assert tree.refusals == ()
    assert "assignments/athens/gitea.yaml" in tree.files
    assert tree.files.keys() >= {"mesh.yaml", "modules/gitea/provision.sh"}
    assert not [name for name in tree.files if name.startswith("declarations/")]


@pytest.mark.rule("S61")
@both
@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("assignments/athens/Gitea.yaml", "assignments/athens/gitea.yaml"),
        ("assignments/athens/a..b.yaml", "assignments/athens/a-b.yaml"),
        ("nodes/athens.yml", "nodes/athens.yaml"),
        ("nodes/athens.YAML", "nodes/athens.yaml"),
        ("nodes/sparta_2.yaml", "nodes/sparta-2.yaml"),
        ("nodes/spärta.yaml", "nodes/sparta.yaml"),
        ("nodes/" + "a" * 64 + ".yaml", None),
        ("nodes/7.yaml", None),
        ("mesh.yml", "mesh.yaml"),
        ("Mesh.yaml", "mesh.yaml"),
        ("modules/Gitea/module.yaml", "modules/gitea"),
        ("modules/gitea/module.yml", "modules/gitea/module.yaml"),
        ("handed/gitea@athens.yaml", None),
        ("handed/gitea.athens@smtp.yaml", None),
        ("trust/01.root.json", None),
        ("trust/x.root.json", None),
        ("assignments/Athens/gitea.yaml", "assignments/athens"),
        ("Nodes/athens.yaml", "nodes"),
        ("catalogue/std/contracts/A.yaml", "catalogue/std/contracts/a.yaml"),
    ],
)
def test_a_name_outside_the_grammar_is_refused(
    tmp_path: Path, read: Read, path: str, right: str | None
) -> None:
    lay(tmp_path, {path: b"x: GMCANARY-name\n"})
    tree = read(tmp_path)
    (refusal,) = tree.refusals
    assert refusal.code is Code.FILE_NAME
    assert path.startswith(refusal.at.file)
    assert tree.files == {}
    if right:
        (answer,) = refusal.answers
        assert right in answer.text
        assert answer.command == f"git mv {shlex.quote(refusal.at.file)} {right}"
    else:
        assert refusal.answers == ()


@pytest.mark.rule("S29")
@both
@pytest.mark.parametrize(
    "path",
    [
        *("nodes/a\nb.yaml", "nodes/athens.yaml\n", "nodes/a\x1b[31m.yaml", "nodes/ath\u200cens.yaml"),
        *("nodes/athens.ya\u202eml", "modules/gitea/a\nb", "modules/gitea/a\\b", "modules/gitea/.g\u200cit"),
        "modules/gitea/la\u0308sen",
    ],
)
def test_a_name_that_can_not_be_shown_is_refused_and_never_shown(
    tmp_path: Path, read: Read, path: str
) -> None:
    lay(tmp_path, {path: b"x"})
    tree = read(tmp_path)
    assert list(refused(tree).values()) == [Code.FILE_NAME]
    assert tree.files == {}
    assert all(answer.command is None for refusal in tree.refusals for answer in refusal.answers)


@both
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, read: Read) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / os.fsdecode(b"\xff\xfe.yaml")).write_bytes(b"x")
    assert list(refused(read(tmp_path)).values()) == [Code.FILE_NAME]


@pytest.mark.rule("F6")
@pytest.mark.rule("S29")
@both
@pytest.mark.parametrize(
    "path",
    [
        *(
            "mesh.yaml",
            "nodes/athens.yaml",
            "modules/gitea/module.yaml",
            "modules/gitea/x",
            "trust/1.root.json",
        ),
        *("nodes", "modules", "modules/gitea", "assignments/athens", "catalogue", "catalogue/std/modules"),
    ],
)
def test_a_link_is_refused_and_not_followed(tmp_path: Path, read: Read, path: str) -> None:
    outside = tmp_path / "outside"
    lay(
        outside,
        {"file": b"GMCANARY-link", "athens.yaml": b"GMCANARY-link", "gitea/module.yaml": b"GMCANARY-link"},
    )
    repo = tmp_path / "repo"
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    leaf = path.endswith((".yaml", ".json", "/x"))
    (repo / path).symlink_to(outside / "file" if leaf else outside)
    tree = read(repo)
    assert refused(tree) == {path: Code.FILE_KIND}
    assert tree.files == {}


@pytest.mark.rule("S29")
@both
def test_a_run_bit_is_for_sources_only(tmp_path: Path, read: Read) -> None:
    lay(tmp_path, GOOD)
    for path in ("nodes/athens.yaml", "modules/gitea/module.yaml", "modules/gitea/provision.sh"):
        (tmp_path / path).chmod(0o755)
    tree = read(tmp_path)
    assert refused(tree) == dict.fromkeys(("modules/gitea/module.yaml", "nodes/athens.yaml"), Code.FILE_KIND)
    assert tree.files["modules/gitea/provision.sh"]
    assert {answer.command for refusal in tree.refusals for answer in refusal.answers} == {
        "chmod a-x modules/gitea/module.yaml",
        "chmod a-x nodes/athens.yaml",
    }


@both
@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("nodes/athens.yaml/x", "nodes/athens.yaml"),
        ("mesh.yaml/x", "mesh.yaml"),
        ("nodes", "nodes"),
        ("modules", "modules"),
        ("assignments/athens.yaml", "assignments/athens.yaml"),
        ("modules/gitea/module.yaml/x", "modules/gitea/module.yaml"),
    ],
)
def test_a_folder_for_a_file_and_a_file_for_a_folder(tmp_path: Path, read: Read, path: str, at: str) -> None:
    lay(tmp_path, {path: b"x"})
    tree = read(tmp_path)
    assert refused(tree) == {at: Code.FILE_KIND}
    assert tree.files == {}


@both
def test_what_lies_too_deep_is_refused(tmp_path: Path, read: Read) -> None:
    lay(tmp_path, {"modules/gitea/a/b/c/d": b"x", "modules/gitea/e/f/g/h/i": b"x"})
    tree = read(tmp_path)
    assert list(tree.files) == ["modules/gitea/a/b/c/d"]
    assert refused(tree) == {"modules/gitea/e/f/g/h": Code.FILE_NAME}


@both
def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path, read: Read) -> None:
    lay(
        tmp_path,
        {"modules/x/Run.sh": b"1", "modules/x/run.sh": b"2", "modules/y/A/f": b"1", "modules/y/a/g": b"2"},
    )
    tree = read(tmp_path)
    assert refused(tree) == {"modules/x/run.sh": Code.FILE_NAME, "modules/y/a/g": Code.FILE_NAME}
    assert [refusal.related[0].at.file for refusal in tree.refusals] == ["modules/x/Run.sh", "modules/y/A"]


@pytest.mark.rule("S31")
@both
def test_what_is_too_large_is_not_read(tmp_path: Path, read: Read) -> None:
    sizes = {
        "nodes/athens.yaml": 256 << 10,
        "nodes/big.yaml": (256 << 10) + 1,
        "modules/x/big": (1 << 20) + 1,
    }
    lay(tmp_path, {name: b"#" * size for name, size in sizes.items()} | {"modules/x/fits": b"x" * (1 << 20)})
    tree = read(tmp_path)
    assert refused(tree) == dict.fromkeys(("modules/x/big", "nodes/big.yaml"), Code.FILE_TOO_LARGE)
    assert tree.files.keys() == {"nodes/athens.yaml", "modules/x/fits"}


def test_a_sparse_file_of_any_size_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    with (tmp_path / "nodes" / "athens.yaml").open("wb") as file:
        file.truncate(1 << 40)
    assert refused(open_tree(tmp_path, None)) == {"nodes/athens.yaml": Code.FILE_TOO_LARGE}


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    os.mkfifo(tmp_path / "nodes" / "athens.yaml")
    assert refused(open_tree(tmp_path, None)) == {"nodes/athens.yaml": Code.FILE_KIND}


def test_an_editors_lock_is_ignored(tmp_path: Path) -> None:
    lay(tmp_path, {"nodes/athens.yaml": b"x", "modules/gitea/module.yaml": b"x"})
    for path in ("nodes/.#athens.yaml", "modules/gitea/.#module.yaml"):
        (tmp_path / path).symlink_to("me@host.123")
    assert open_tree(tmp_path, None).refusals == ()


# --- raw trees, as no git would make them --------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    init_bare(tmp_path / "bare.git")
    return tmp_path / "bare.git"


@pytest.mark.rule("S29")
@pytest.mark.rule("F6")
@pytest.mark.parametrize(
    ("mode", "name", "code"),
    [
        ("160000", b"athens.yaml", Code.FILE_KIND),
        ("120000", b"athens.yaml", Code.FILE_KIND),
        ("100755", b"athens.yaml", Code.FILE_KIND),
        ("100644", b"..yaml", None),
        ("100644", b"..", None),
        ("100644", b".git", None),
        ("100644", b"../mesh.yaml", None),
        ("100644", b"ATHENS.yaml", Code.FILE_NAME),
        ("100644", b"a\\b.yaml", Code.FILE_NAME),
    ],
)
def test_a_hostile_entry_is_refused_or_ignored(bare: Path, mode: str, name: bytes, code: Code | None) -> None:
    blob = raw(bare, "blob", b"GMCANARY-raw")
    nodes = raw_tree(bare, (mode, name, blob))
    tree = open_tree(bare, raw_commit(bare, raw_tree(bare, ("40000", b"nodes", nodes))))
    assert tree.files == {}
    assert list(refused(tree).values()) == ([code] if code else [])


@pytest.mark.rule("S29")
@pytest.mark.parametrize("name", [b".git", b".GIT", b"git~1", b"..", b"."])
def test_a_name_that_git_itself_uses_is_refused_beside_a_module(bare: Path, name: bytes) -> None:
    tree = raw_tree(bare, ("100644", name, raw(bare, "blob", b"x")))
    for place in (b"gitea", b"modules"):
        tree = raw_tree(bare, ("40000", place, tree))
    found = open_tree(bare, raw_commit(bare, tree))
    assert refused(found) == {f"modules/gitea/{name.decode()}": Code.FILE_NAME}
    assert found.files == {}


@pytest.mark.rule("S29")
def test_an_entry_twice_is_refused(bare: Path) -> None:
    one, two = raw(bare, "blob", b"1"), raw(bare, "blob", b"2")
    nodes = raw_tree(bare, ("100644", b"athens.yaml", one), ("100644", b"athens.yaml", two))
    other = raw_tree(bare, ("100644", b"athens.yaml", one))
    tree = open_tree(bare, raw_commit(bare, raw_tree(bare, ("40000", b"nodes", nodes))))
    assert refused(tree) == {"nodes/athens.yaml": Code.FILE_KIND}
    assert tree.files == {}
    folders = raw_tree(bare, ("40000", b"nodes", nodes), ("40000", b"nodes", other))
    tree = open_tree(bare, raw_commit(bare, folders))
    assert refused(tree)["nodes"] is Code.FILE_KIND
    assert tree.files == {}
    mixed = raw_tree(bare, ("100644", b"mesh.yaml", one), ("40000", b"mesh.yaml", other))
    tree = open_tree(bare, raw_commit(bare, mixed))
    assert refused(tree) == {"mesh.yaml": Code.FILE_KIND}
    assert tree.files == {}


@pytest.mark.rule("S31")
@pytest.mark.parametrize("leaf", ["blob", "tree"])
def test_a_tree_that_explodes_is_refused(bare: Path, leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitmesh.repo.tree.ENTRY_LIMIT", 20_000)
    tree, mode = raw(bare, leaf, b""), "100644" if leaf == "blob" else "40000"
    for _ in range(9):
        tree, mode = raw_tree(bare, *((mode, b"d%d" % n, tree) for n in range(10))), "40000"
    for top in (b"modules", b"docs"):
        bomb = raw_commit(bare, raw_tree(bare, ("40000", top, tree)))
        if top == b"docs":
            assert open_tree(bare, bomb) == Tree({}, bomb)
        else:
            with pytest.raises(RepoError, match="more than"):
                open_tree(bare, bomb)


@pytest.mark.rule("S31")
def test_more_bytes_than_a_mesh_has_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitmesh.repo.tree.TOTAL_LIMIT", 1000)
    lay(tmp_path, {f"modules/x/{n}": b"%d" % n * 600 for n in range(2)})
    with pytest.raises(RepoError, match="more than"):
        committed(tmp_path)
    with pytest.raises(RepoError, match="more than"):
        open_tree(tmp_path, None)


@pytest.mark.rule("S32")
def test_a_missing_or_broken_object_is_a_named_error(tmp_path: Path) -> None:
    lay(tmp_path, {"mesh.yaml": b"mesh: lab\n", "nodes/athens.yaml": b"x\n"})
    committed(tmp_path)
    for path in sorted((tmp_path / ".git" / "objects").glob("??/*")):
        kept = path.read_bytes()
        path.chmod(0o600)
        for broken in (b"", kept[:5], kept[:-3], b"noise"):
            path.write_bytes(broken)
            with pytest.raises(RepoError):
                open_tree(tmp_path, "HEAD")
        path.unlink()
        with pytest.raises(RepoError) as caught:
            open_tree(tmp_path, "HEAD")
        assert caught.value.command
        path.write_bytes(kept)
    assert len(open_tree(tmp_path, "HEAD").files) == 2


# --- errors with a way out -----------------------------------------------------------------------------


def test_no_repository_no_commit_no_revision(tmp_path: Path) -> None:
    with pytest.raises(RepoError, match="not a git repository") as caught:
        open_tree(tmp_path, "HEAD")
    assert caught.value.command == f"git init {tmp_path}"
    git(tmp_path, "init", "-q")
    with pytest.raises(RepoError, match="has no commit yet"):
        open_tree(tmp_path, "HEAD")
    committed(tmp_path)
    for revision in ("nowhere", "HEAD^{tree}"):
        with pytest.raises(RepoError, match="has no commit") as caught:
            open_tree(tmp_path, revision)
        assert caught.value.command == f"git -C {tmp_path} fetch"
    for missing in (tmp_path / "none", tmp_path / ".git" / "HEAD"):
        with pytest.raises(RepoError):
            open_tree(missing, None)
        with pytest.raises(RepoError):
            open_tree(missing, "HEAD")


def test_a_shallow_clone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    first = committed(tmp_path / "work").commit
    committed(tmp_path / "work")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/work", "shallow")
    assert open_tree(tmp_path / "shallow", "HEAD").commit
    with pytest.raises(RepoError, match="shallow clone") as caught:
        open_tree(tmp_path / "shallow", first)
    assert caught.value.command == f"git -C {tmp_path}/shallow fetch --unshallow"


@pytest.mark.real
def test_a_repository_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(os.geteuid() == 0, "only root can give a repository to another user")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    lay(tmp_path / "work", GOOD)
    committed(tmp_path / "work")
    subprocess.run(["chown", "-R", "65534", tmp_path / "work"], check=True)
    with pytest.raises(RepoError, match="belongs to another user") as caught:
        open_tree(tmp_path / "work", "HEAD")
    assert caught.value.command
    subprocess.run(caught.value.command, shell=True, check=True)
    assert dict(open_tree(tmp_path / "work", "HEAD").files) == GOOD


@pytest.mark.rule("S30")
def test_hostile_settings_of_the_environment_and_replacements_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path / "work", GOOD)
    commit = committed(tmp_path / "work").commit
    assert commit
    lay(tmp_path / "work", {"mesh.yaml": b"mesh: other\n"})
    other = committed(tmp_path / "work").commit
    assert other
    git(tmp_path / "work", "replace", commit, other)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nowhere"))
    assert dict(open_tree(tmp_path / "work", commit).files) == GOOD


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    lay(tmp_path, GOOD)
    committed(tmp_path)
    shutil.copytree(tmp_path, tmp_path.parent / "copy", symlinks=True)
    open_tree(tmp_path, "HEAD")
    open_tree(tmp_path, None)
    done = subprocess.run(
        ["diff", "-r", tmp_path, tmp_path.parent / "copy"], capture_output=True, check=False
    )
    assert done.stdout == b""
    shutil.rmtree(tmp_path.parent / "copy")
