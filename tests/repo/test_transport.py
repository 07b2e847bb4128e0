"""The `git` command into and out of bare repositories: real remotes over file and ssh, and hostile ones."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitmesh.repo.objects import Malformed, read_files, write_commit
from gitmesh.repo.transport import (
    OWN_CONFIG,
    Access,
    Damaged,
    Declined,
    Limits,
    Rejected,
    RepoError,
    Unreachable,
    Update,
    fetch,
    init_bare,
    push,
    rebuild,
    remote_refs,
)
from tests.real import PROJECT, require
from tests.repo.sshd import serve
from tests.repo.test_objects import raw, raw_commit, raw_tree

ATHENS = "refs/gitmesh/node/athens"


def commit(repo: Path, content: bytes, when: int = 1_700_000_000) -> str:
    return write_commit(repo, {"slice.json": content}, [], "x", when, "controller")


def git(repo: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", repo, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A remote with refs for two nodes and a main."""
    repo = tmp_path / "served.git"
    init_bare(repo)
    for ref in (ATHENS, ATHENS + "2", ATHENS + "-east", "refs/heads/deploy"):
        git(repo, "update-ref", ref, commit(repo, ref.encode()))
    return repo


@pytest.fixture
def own(tmp_path: Path) -> Path:
    repo = tmp_path / "own.git"
    init_bare(repo)
    return repo


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_fetch_takes_the_named_refs_and_nothing_else(served: Path, own: Path, scheme: str) -> None:
    found = fetch(own, f"{scheme}{served}", [ATHENS, "refs/heads/deploy:refs/gitmesh/deploy"])
    assert found.keys() == {ATHENS, "refs/heads/deploy"}
    assert read_files(own, found[ATHENS]) == {"slice.json": ATHENS.encode()}
    assert git(own, "for-each-ref", "--format=%(refname)").split() == ["refs/gitmesh/deploy", ATHENS]
    assert not (own / "FETCH_HEAD").exists()
    assert fetch(own, str(served), [ATHENS]) == {ATHENS: found[ATHENS]}


def test_a_ref_that_is_not_there_is_absent(served: Path, own: Path) -> None:
    asked = [ATHENS, "refs/gitmesh/sealed/athens", "refs/heads/deploy", "refs/heads/gone"]
    for _ in range(2):
        assert fetch(own, str(served), asked).keys() == {ATHENS, "refs/heads/deploy"}
    assert git(own, "for-each-ref", "--format=%(refname)").split() == [ATHENS, "refs/heads/deploy"]
    git(served, "update-ref", "-d", ATHENS)
    assert fetch(own, str(served), [ATHENS]) == {}
    assert fetch(own, str(served), []) == {}


def test_a_name_that_begins_another_hides_it_not(served: Path, own: Path) -> None:
    for name in ("1", "12", "123", "2"):
        git(served, "update-ref", f"refs/gitmesh/shard/{name}", commit(served, name.encode()))
    asked = [f"refs/gitmesh/shard/{name}" for name in ("1", "12", "20", "9")]
    assert fetch(own, str(served), asked).keys() == {"refs/gitmesh/shard/1", "refs/gitmesh/shard/12"}
    names = git(own, "for-each-ref", "--format=%(refname)").split()
    assert names == ["refs/gitmesh/shard/1", "refs/gitmesh/shard/12"]


def test_the_controller_takes_every_ref_of_a_kind(served: Path, own: Path) -> None:
    asked = ["refs/gitmesh/node/*", "+refs/heads/*:refs/seen/*", "refs/gitmesh/fresh", ATHENS]
    nodes = {ATHENS, ATHENS + "2", ATHENS + "-east"}
    for _ in range(2):
        found = fetch(own, str(served), asked)
        assert found.keys() == nodes | {"refs/heads/deploy"}
        assert found[ATHENS + "2"] == git(served, "rev-parse", ATHENS + "2")
    git(served, "update-ref", "-d", ATHENS + "2")
    assert fetch(own, str(served), asked).keys() == nodes - {ATHENS + "2"} | {"refs/heads/deploy"}
    names = git(own, "for-each-ref", "--format=%(refname)").split()
    assert names == [ATHENS, ATHENS + "-east", "refs/seen/deploy"]
    git(served, "update-ref", "refs/gitmesh/fresh", found[ATHENS])
    assert "refs/gitmesh/fresh" in fetch(own, str(served), asked)
    assert fetch(own, str(served), ["refs/gitmesh/node/athens-*"]).keys() == {ATHENS + "-east"}
    assert fetch(own, str(served), ["refs/gitmesh/none/*"]) == {}


def test_a_rewritten_ref_is_taken(served: Path, own: Path) -> None:
    fetch(own, str(served), [ATHENS])
    newer = commit(served, b"newer")
    git(served, "update-ref", ATHENS, newer)
    assert fetch(own, str(served), [ATHENS]) == {ATHENS: newer}
    git(served, "update-ref", ATHENS, commit(served, b"older"))
    assert fetch(own, str(served), [ATHENS, "refs/heads/gone"])[ATHENS] != newer


def test_many_packs_become_one(served: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitmesh.repo.transport.PACKS", 3)
    for turn in range(6):
        git(served, "update-ref", ATHENS, commit(served, b"%d" % turn))
        found = fetch(own, str(served), [ATHENS])
    assert read_files(own, found[ATHENS]) == {"slice.json": b"5"}
    assert len(list(own.glob("objects/pack/*.pack"))) <= 3


def test_remote_refs(served: Path) -> None:
    assert remote_refs(str(served), [ATHENS]) == {ATHENS: git(served, "rev-parse", ATHENS)}
    assert len(remote_refs(str(served))) == 4


# --- pushing -------------------------------------------------------------------------------------------


def test_a_push_holds_its_lease(served: Path, own: Path) -> None:
    first, second, third = (commit(own, content) for content in (b"1", b"2", b"3"))
    report = "refs/gitmesh/report/athens"
    push(own, str(served), [Update(report, first, expect="")])
    with pytest.raises(Rejected) as caught:
        push(own, str(served), [Update(report, second, expect="")])
    assert caught.value.refs.keys() == {report}
    push(own, str(served), [Update(report, second, expect=first)])
    with pytest.raises(Rejected):
        push(own, str(served), [Update(report, third, expect=first)])
    with pytest.raises(Rejected):
        push(own, str(served), [Update(report, third)])
    assert remote_refs(str(served), [report]) == {report: second}
    push(own, str(served), [Update(report, third, force=True)])
    push(own, str(served), [Update(report, None, expect=third)])
    assert remote_refs(str(served), [report]) == {}


def test_an_atomic_push_is_all_or_nothing(served: Path, own: Path) -> None:
    new = commit(own, b"new")
    updates = [Update("refs/heads/a", new, expect=""), Update(ATHENS, new, expect="")]
    with pytest.raises(Rejected) as caught:
        push(own, str(served), updates, atomic=True)
    assert ATHENS in caught.value.refs
    assert remote_refs(str(served), ["refs/heads/a"]) == {}
    with pytest.raises(Rejected):
        push(own, str(served), updates)
    assert remote_refs(str(served), ["refs/heads/a"]) == {"refs/heads/a": new}


def test_of_two_racing_pushes_one_wins(served: Path, own: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.git"
    init_bare(other)
    before = ""

    def attempt(repo: Path, content: bytes) -> str | None:
        mine = commit(repo, content)
        try:
            push(repo, str(served), [Update("refs/heads/race", mine, expect=before)])
        except Rejected:
            return None
        return mine

    with ThreadPoolExecutor(2) as pool:
        for turn in range(15):
            won = list(pool.map(attempt, (own, other), (b"own %d" % turn, b"other %d" % turn)))
            assert len([name for name in won if name]) == 1
            before = remote_refs(str(served), ["refs/heads/race"])["refs/heads/race"]
            assert before in won


def test_what_a_hook_says_is_told(served: Path, own: Path) -> None:
    hook = served / "hooks" / "pre-receive"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho 'gitmesh: refused: not yours' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Declined, match="not yours"):
        push(own, str(served), [Update("refs/heads/x", commit(own, b"x"), expect="")])


# --- errors with a way out -----------------------------------------------------------------------------


def test_a_remote_that_is_not_there(own: Path, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="does not appear to be a git repository") as caught:
        fetch(own, str(tmp_path / "none.git"), [ATHENS])
    assert caught.value.command


def test_credentials_are_not_told(own: Path) -> None:
    url = "https://athens:GMCANARY-token@127.0.0.1:1/mesh.git"
    for attempt in (
        lambda: fetch(own, url, [ATHENS]),
        lambda: push(own, url, [Update(ATHENS, commit(own, b"x"))]),
        lambda: remote_refs(url),
    ):
        with pytest.raises(Unreachable) as caught:
            attempt()
        assert "127.0.0.1" in caught.value.message
        assert "GMCANARY" not in caught.value.message + str(caught.value.command)


@pytest.mark.rule("S30")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x", "git://127.0.0.1:1/x", "ext::sh -c true", "ftp://127.0.0.1/x"]
)
def test_other_protocols_are_not_spoken(own: Path, url: str) -> None:
    with pytest.raises(Unreachable, match="not allowed"):
        fetch(own, url, [ATHENS])


def test_http_is_spoken_where_it_is_asked_for(own: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        fetch(own, "http://127.0.0.1:1/x", [ATHENS], access=Access(plain_http=True))
    assert "not allowed" not in caught.value.message


@pytest.mark.real
def test_a_repository_of_another_user_names_its_mend(served: Path, own: Path) -> None:
    require(os.geteuid() == 0, "only root can give a repository to another user")
    subprocess.run(["chown", "-R", "65534", served], check=True)
    with pytest.raises(Unreachable, match="belongs to another user") as caught:
        fetch(own, f"file://{served}", [ATHENS])
    assert caught.value.command
    subprocess.run(caught.value.command, shell=True, check=True)
    assert ATHENS in fetch(own, f"file://{served}", [ATHENS])
    with pytest.raises(Unreachable, match="belongs to another user") as caught:
        remote_refs(str(served))
    assert caught.value.command == f"sudo chown -R $(id -u) {served}"


# --- hostile remotes -----------------------------------------------------------------------------------


@pytest.mark.rule("F6")
@pytest.mark.rule("S29")
@pytest.mark.parametrize(
    ("mode", "name"), [("100644", b".."), ("100644", b".git"), ("100644", b"a/b"), ("120000", b".gitmodules")]
)
def test_a_hostile_tree_does_not_come_in(served: Path, own: Path, mode: str, name: bytes) -> None:
    bad = raw_commit(served, raw_tree(served, (mode, name, raw(served, "blob", b"/etc/shadow"))))
    git(served, "update-ref", ATHENS, bad)
    with pytest.raises(Unreachable):
        fetch(own, str(served), [ATHENS])
    assert fetch(own, str(served), ["refs/heads/deploy"])
    assert git(own, "for-each-ref", "--format=%(refname)") == "refs/heads/deploy"


@pytest.mark.rule("F6")
@pytest.mark.rule("S31")
def test_a_pack_bomb_ends_by_its_limit_and_the_next_fetch_works(served: Path, own: Path) -> None:
    good = git(served, "rev-parse", ATHENS)
    with (served / "zeros").open("wb") as zeros:
        zeros.truncate(300 << 20)
    name = git(
        served, "-c", "core.bigFileThreshold=1m", "hash-object", "-w", "--no-filters", str(served / "zeros")
    )
    bomb = raw_commit(served, raw_tree(served, ("100644", b"slice.json", name)))
    git(served, "update-ref", ATHENS, bomb)
    with pytest.raises(Unreachable):
        fetch(own, str(served), [ATHENS], Limits(memory=256 << 20))
    assert not [*own.glob("objects/pack/tmp_*"), *own.glob("objects/??/tmp_obj_*")]
    git(served, "update-ref", ATHENS, good)
    assert fetch(own, str(served), [ATHENS], Limits(memory=256 << 20)) == {ATHENS: good}


@pytest.mark.rule("S31")
def test_a_file_that_grows_without_end_stops_at_its_limit(served: Path, own: Path) -> None:
    git(served, "update-ref", ATHENS, commit(served, os.urandom(3 << 20)))
    with pytest.raises(Unreachable):
        fetch(own, str(served), [ATHENS], Limits(file=1 << 20))
    assert not [*own.glob("objects/pack/tmp_*"), *own.glob("objects/??/tmp_obj_*")]
    assert ATHENS in fetch(own, str(served), [ATHENS])


@pytest.mark.rule("S31")
def test_a_server_that_says_nothing_ends_by_the_clock(own: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mesh.git"
        with pytest.raises(Unreachable, match=r"no answer within 0\.5 seconds"):
            fetch(own, url, [ATHENS], Limits(seconds=0.5), Access(plain_http=True))


@pytest.mark.rule("S30")
@pytest.mark.real
def test_nothing_of_the_served_repository_runs(served: Path, own: Path, tmp_path: Path) -> None:
    require(shutil.which("strace"), "strace is needed")
    tricks = {
        ".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = ./x\n',
        ".gitattributes": b"* filter=x\n",
    }
    git(served, "update-ref", ATHENS, write_commit(served, tricks, [], "x", 1, "x"))
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    for name in ("post-checkout", "post-merge", "reference-transaction", "pre-auto-gc", "post-rewrite"):
        for repo in (served, own):
            (repo / "hooks").mkdir(exist_ok=True)
            shutil.copy(trap, repo / "hooks" / name)
    for key in ("core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand", "filter.x.smudge"):
        git(served, "config", key, str(trap))
    git(served, "config", "uploadpack.advertiseBundleURIs", "true")
    git(served, "config", "bundle.version", "1")
    git(served, "config", "bundle.mode", "all")
    git(served, "config", "bundle.x.uri", str(tmp_path / "bundle"))
    call = f"fetch(Path({str(own)!r}), {str(served)!r}, [{ATHENS!r}])"
    program = f"from pathlib import Path; from gitmesh.repo.transport import *; print({call})"
    done = subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-e",
            "trace=execve",
            "-o",
            tmp_path / "trace",
            sys.executable,
            "-c",
            program,
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ATHENS in done.stdout, done.stderr
    ran = (tmp_path / "trace").read_text()
    assert "git" in ran
    assert str(trap) not in ran
    assert "hooks/" not in ran
    assert not (tmp_path / "sprung").exists()
    assert not list(tmp_path.glob("own.git/bundle*"))
    assert {path.name for path in own.iterdir()} <= {
        *("HEAD", "config", "objects", "refs", "hooks", "branches", "info", "packed-refs", OWN_CONFIG)
    }


# --- kills and damage ----------------------------------------------------------------------------------


@pytest.mark.rule("S32")
def test_ctrl_c_ends_the_child_and_leaves_the_repository_usable(served: Path, own: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mesh.git"
        program = (
            "from pathlib import Path\nfrom gitmesh.repo.transport import *\n"
            f"fetch(Path({str(own)!r}), {url!r}, ['refs/x'], access=Access(plain_http=True))"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program], cwd=PROJECT, stderr=subprocess.PIPE, text=True
        )
        silent.settimeout(30)
        connection, _ = silent.accept()
        with connection:
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert subprocess.run(["pgrep", "-f", url], capture_output=True, check=False).stdout == b""
    assert ATHENS in fetch(own, str(served), [ATHENS])


@pytest.mark.rule("S32")
def test_what_a_killed_fetch_left_is_taken_away(served: Path, own: Path) -> None:
    for left in ("packed-refs.lock", "config.lock", f"{ATHENS}.lock", "objects/pack/tmp_pack_x"):
        (own / left).parent.mkdir(parents=True, exist_ok=True)
        (own / left).write_bytes(b"half")
    assert ATHENS in fetch(own, str(served), [ATHENS])
    assert not list(own.glob("refs/**/*.lock"))


@pytest.mark.rule("S32")
@pytest.mark.parametrize("harm", ["gone", "empty", "short", "noise"])
def test_every_file_of_the_repository_may_break(served: Path, tmp_path: Path, harm: str) -> None:
    first = tmp_path / "first.git"
    init_bare(first)
    asked = [ATHENS, "refs/heads/deploy"]
    git(first, "fetch", "-q", str(served), f"{ATHENS}:{ATHENS}")
    whole = {ref: read_files(first, commit) for ref, commit in fetch(first, str(served), asked).items()}
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(names) > 8
    for name in names:
        own = tmp_path / "own.git"
        shutil.copytree(first, own)
        content = (own / name).read_bytes()
        (own / name).chmod(0o644)
        broken = {"empty": b"", "short": content[: len(content) // 2], "noise": b"\xff" * 50}
        (own / name).unlink() if harm == "gone" else (own / name).write_bytes(broken[harm])
        try:
            found = {ref: read_files(own, commit) for ref, commit in fetch(own, str(served), asked).items()}
        except (Damaged, Malformed):
            rebuild(own)
            found = {ref: read_files(own, commit) for ref, commit in fetch(own, str(served), asked).items()}
        assert found == whole, name
        shutil.rmtree(own)


def test_a_repository_of_someone_is_never_rebuilt(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "theirs.git"], check=True)
    with pytest.raises(RepoError, match="not made by gitmesh"):
        rebuild(tmp_path / "theirs.git")
    assert (tmp_path / "theirs.git" / "HEAD").exists()


# --- ssh -----------------------------------------------------------------------------------------------


@pytest.mark.real
def test_over_ssh(served: Path, own: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "sshd", {"athens": "GITMESH_NODE=athens"}) as server:
        access = Access(ssh=server.options("athens"))
        url = server.url(served)
        assert fetch(own, url, [ATHENS, "refs/gitmesh/none"], access=access).keys() == {ATHENS}
        new = commit(own, b"over ssh")
        push(own, url, [Update("refs/gitmesh/report/athens", new, expect="")], access=access)
        assert git(served, "rev-parse", "refs/gitmesh/report/athens") == new
        with pytest.raises(Unreachable, match="Permission denied"):
            fetch(own, url, [ATHENS], access=Access(ssh=server.options("stranger")))


@pytest.mark.real
@pytest.mark.rule("S30")
def test_a_changed_host_key_is_refused(served: Path, own: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "sshd", {"athens": "GITMESH_NODE=athens"}) as server:
        access = Access(ssh=server.options("athens"))
        server.know("stranger")
        with pytest.raises(Unreachable, match="host key") as caught:
            fetch(own, server.url(served), [ATHENS], access=access)
        assert "127.0.0.1" in str(caught.value.command)
        (tmp_path / "sshd" / "known_hosts").unlink()
        with pytest.raises(Unreachable, match="host key"):
            push(own, server.url(served), [Update("refs/heads/x", commit(own, b"x"))], access=access)
