"""Commits as flat mappings of files: what is written, and what of a hostile commit is not read."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from gitmesh.repo.objects import Malformed, parents_of, read_file, read_files, tree_of, write_commit
from gitmesh.repo.transport import Damaged, RepoError, init_bare
from tests.real import PROJECT, require

FILES = {
    "approval.json": b"{}",
    "nodes/athens/slice.json": b'{"node":"athens"}',
    "nodes/athens/declaration.json": b'{"a":1}',
    "nodes/sparta/slice.json": b'{"node":"sparta"}',
}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    init_bare(tmp_path / "own.git")
    return tmp_path / "own.git"


def write(repo: Path, files: dict[str, bytes], *parents: str, when: int = 1_700_000_000) -> str:
    return write_commit(repo, files, parents, "a deploy", when, "controller")


def raw(repo: Path, kind: str, content: bytes) -> str:
    """Write an object as it is, whatever git thinks of it."""
    blob = f"{kind} {len(content)}".encode() + b"\0" + content
    name = hashlib.sha1(blob).hexdigest()
    path = repo / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(blob))
    return name


def raw_tree(repo: Path, *entries: tuple[str, bytes, str]) -> str:
    return raw(
        repo, "tree", b"".join(m.encode() + b" " + n + b"\0" + bytes.fromhex(i) for m, n, i in entries)
    )


def raw_commit(repo: Path, tree: str) -> str:
    who = "x <x@x> 1700000000 +0000"
    return raw(repo, "commit", f"tree {tree}\nauthor {who}\ncommitter {who}\n\nx\n".encode())


def test_what_is_written_is_read_back(bare: Path) -> None:
    commit = write(bare, FILES)
    assert read_files(bare, commit) == FILES
    assert read_file(bare, commit, "nodes/athens/slice.json") == FILES["nodes/athens/slice.json"]
    assert read_file(bare, commit, "nodes/delphi/slice.json") is None
    git = subprocess.run(["git", "-C", bare, "fsck", "--strict"], capture_output=True, text=True, check=False)
    assert git.returncode == 0, git.stderr


def test_the_same_content_is_the_same_commit(bare: Path, tmp_path: Path) -> None:
    init_bare(tmp_path / "other.git")
    backwards = dict(reversed(FILES.items()))
    assert write(bare, FILES) == write(bare, FILES) == write(tmp_path / "other.git", backwards)
    assert write(bare, FILES) != write(bare, FILES, when=1_700_000_001)


def test_a_commit_tells_its_tree_and_its_parents(bare: Path) -> None:
    first = write(bare, FILES)
    second = write(bare, FILES, first)
    assert second != first
    assert tree_of(bare, second) == tree_of(bare, first)
    assert parents_of(bare, first) == ()
    assert parents_of(bare, second) == (first,)
    merge = write(bare, FILES, first, second)
    assert parents_of(bare, merge) == (first, second)


@pytest.mark.parametrize(("count", "durable"), [(1, True), (200, True), (1, False), (200, False)])
@pytest.mark.real
def test_what_is_written_is_synced(bare: Path, tmp_path: Path, count: int, durable: bool) -> None:
    require(shutil.which("strace"), "strace is needed")
    program = (
        "from pathlib import Path; from gitmesh.repo.objects import write_commit\n"
        f"files = {{f'nodes/{{n}}': b'%d' % n for n in range({count})}}\n"
        f"print(write_commit(Path({str(bare)!r}), files, [], 'x', 1, 'x', durable={durable}))"
    )
    trace = ["strace", "-f", "-qq", "-e", "trace=fsync,sync", "-o", str(tmp_path / "trace")]
    done = subprocess.run(
        [*trace, sys.executable, "-c", program], cwd=PROJECT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "trace").read_text()
    assert calls.count(" sync(") == (durable and count > 64)
    synced = calls.count("fsync(")
    assert synced >= 4 if durable and count <= 64 else synced == 0  # a blob, two trees, the commit


def test_unchanged_content_is_not_written_again(bare: Path) -> None:
    first = write(bare, FILES)
    before = set((bare / "objects").glob("??/*"))
    second = write(bare, FILES | {"nodes/sparta/slice.json": b"{}"}, first)
    new = set((bare / "objects").glob("??/*")) - before
    assert len(new) == 4  # three trees and the commit: `{}` is approval.json's blob already
    assert read_files(bare, second)["nodes/sparta/slice.json"] == b"{}"


def test_a_file_is_one_only_where_it_is_a_plain_one(bare: Path) -> None:
    commit = write(bare, FILES)
    with pytest.raises(Malformed, match="mode 040000"):
        read_file(bare, commit, "nodes/athens")
    with pytest.raises(Malformed, match="mode 100644"):
        read_file(bare, commit, "approval.json/x")


@pytest.mark.rule("S29")
@pytest.mark.rule("F6")
@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("120000", b"approval.json"),
        ("160000", b"approval.json"),
        ("100755", b"approval.json"),
        ("100664", b"approval.json"),
        ("100644", b".."),
        ("100644", b"."),
        ("100644", b""),
        ("100644", b".git"),
        ("100644", b".GIT"),
        ("100644", b"a/b"),
        ("100644", b"a\\b"),
        ("100644", b"a\nb"),
        ("100644", b".g\xe2\x80\x8cit"),
        ("100644", b"\xff"),
        ("40000", b".."),
        ("x", b"approval.json"),
    ],
)
def test_a_strange_entry_is_refused_whole(bare: Path, mode: str, name: bytes) -> None:
    secret = raw(bare, "blob", b"GMCANARY-strange")
    inner = raw_tree(bare, ("100644", b"slice.json", secret))
    commit = raw_commit(bare, raw_tree(bare, (mode, name, inner if mode == "40000" else secret)))
    with pytest.raises(Malformed) as caught:
        read_files(bare, commit)
    with pytest.raises(Malformed):
        read_file(bare, commit, name.decode("utf-8", "surrogateescape"))
    assert "GMCANARY" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.rule("S29")
def test_a_name_twice_is_refused(bare: Path) -> None:
    one, two = raw(bare, "blob", b"1"), raw(bare, "blob", b"2")
    commit = raw_commit(bare, raw_tree(bare, ("100644", b"a", one), ("100644", b"a", two)))
    with pytest.raises(Malformed, match="twice"):
        read_files(bare, commit)
    with pytest.raises(Malformed, match="twice"):
        read_file(bare, commit, "a")


@pytest.mark.rule("S31")
def test_what_is_too_large_is_refused_before_it_is_read(bare: Path) -> None:
    commit = write(bare, {"small": b"1", "large": b"x" * 2000})
    assert read_file(bare, commit, "small", limit=1000) == b"1"
    with pytest.raises(Malformed, match="2000 bytes"):
        read_file(bare, commit, "large", limit=1000)
    with pytest.raises(Malformed, match="2000 bytes"):
        read_files(bare, commit, limit=1000)


@pytest.mark.rule("S31")
@pytest.mark.parametrize("leaf", ["blob", "tree"])
def test_a_tree_of_trees_that_explodes_is_refused(
    bare: Path, leaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitmesh.repo.objects.ENTRY_LIMIT", 5000)
    tree, mode = raw(bare, leaf, b""), "100644" if leaf == "blob" else "40000"
    for _ in range(7):
        tree, mode = raw_tree(bare, *((mode, b"%d" % n, tree) for n in range(10))), "40000"
    with pytest.raises(Malformed, match="entries"):
        read_files(bare, raw_commit(bare, tree))


@pytest.mark.rule("S31")
def test_a_tree_too_deep_is_refused(bare: Path) -> None:
    tree = raw_tree(bare, ("100644", b"a", raw(bare, "blob", b"")))
    for _ in range(2000):
        tree = raw_tree(bare, ("40000", b"d", tree))
    with pytest.raises(Malformed, match="levels"):
        read_files(bare, raw_commit(bare, tree))


@pytest.mark.rule("S32")
def test_an_object_that_is_missing_or_broken_is_refused(bare: Path) -> None:
    commit = write(bare, FILES)
    for path in sorted((bare / "objects").glob("??/*")):
        kept = path.read_bytes()
        path.chmod(0o600)
        for broken in (None, b"", kept[:-3], zlib.compress(b"blob 3\0abd")):
            path.unlink() if broken is None else path.write_bytes(broken)
            with pytest.raises((Damaged, Malformed)) as caught:
                read_files(bare, commit)
            assert str(caught.value)
        path.write_bytes(kept)
    assert read_files(bare, commit) == FILES


@pytest.mark.parametrize(
    "lie",
    [
        "tree 12\n",
        "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904x\n",
        "",
        "parent x\n",
        "author x\ntree " + "0" * 40,
    ],
)
def test_a_commit_that_names_no_tree_is_refused(bare: Path, lie: str) -> None:
    with pytest.raises(Malformed):
        read_files(bare, raw(bare, "commit", lie.encode()))


def test_a_commit_that_is_no_id_or_not_there(bare: Path) -> None:
    for commit in ("0" * 40, "main", "refs/heads/main", "abc", ""):
        with pytest.raises(RepoError):
            read_files(bare, commit)
    with pytest.raises(Malformed):
        read_files(bare, raw(bare, "blob", b"tree"))


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="not a git repository"):
        read_files(tmp_path, "0" * 40)
    with pytest.raises(Damaged):
        write(tmp_path, FILES)
