"""The pre-receive hook of a bare repository, by real pushes: who may update what, and what main must be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.real import PROJECT
from tests.repo.sshd import serve

HOOK = PROJECT / "hooks" / "pre-receive"
CHECK = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(PROJECT)!r})
from pathlib import Path
from gitmesh.repo.tree import open_tree
assert sys.argv[1:4] == ["check", "--repo", "."] and sys.argv[4] == "--revision", sys.argv
tree = open_tree(Path("."), sys.argv[5])
code = int(tree.files["mesh.yaml"].split()[1])
print(f"checked {{tree.commit}}: {{code}}")
sys.exit(code)
"""


def git(
    repo: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    named = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", "-C", repo, *arguments],
        env={**os.environ, **named, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def served(tmp_path: Path) -> Path:
    repo = tmp_path / "served.git"
    assert git(tmp_path, "init", "-q", "--bare", "-b", "main", str(repo)).returncode == 0
    shutil.copy(HOOK, repo / "hooks" / "pre-receive")
    (repo / "hooks" / "pre-receive").chmod(0o755)
    check = tmp_path / "check"
    check.write_text(CHECK)
    check.chmod(0o755)
    git(repo, "config", "gitmesh.program", str(check))
    return repo


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    repo = tmp_path / "clone"
    git(tmp_path, "init", "-q", "-b", "main", str(repo))
    commit(repo, 0)
    return repo


def commit(repo: Path, code: int) -> str:
    """A commit for which the stand-in check exits with `code`."""
    (repo / "mesh.yaml").write_text(f"code: {code} #\n")
    git(repo, "add", ".")
    assert git(repo, "commit", "-q", "--allow-empty", "-m", "x").returncode == 0
    return git(repo, "rev-parse", "HEAD").stdout.strip()


def push(clone: Path, served: Path, *refs: str, **env: str) -> subprocess.CompletedProcess[str]:
    specs = [ref if ":" in ref else f"HEAD:{ref}" for ref in refs]
    return git(clone, "push", "--force", str(served), *specs, env=env)


@pytest.mark.rule("F7")
@pytest.mark.parametrize("own", ["answers/athens/sparta", "confirms/athens", "report/athens", "enrol/athens"])
def test_a_node_updates_its_own_refs(clone: Path, served: Path, own: str) -> None:
    ref = f"refs/gitmesh/{own}"
    assert push(clone, served, ref, GITMESH_NODE="athens").returncode == 0
    commit(clone, 0)
    assert push(clone, served, ref, GITMESH_NODE="athens").returncode == 0
    assert push(clone, served, f":{ref}", GITMESH_NODE="athens").returncode == 0


@pytest.mark.rule("F7")
@pytest.mark.parametrize(
    "ref",
    [
        *("refs/heads/main", "refs/heads/deploy", "refs/heads/athens", "refs/tags/v1"),
        *("refs/gitmesh/report/sparta", "refs/gitmesh/report/athens2", "refs/gitmesh/report/athens/x"),
        *(
            "refs/gitmesh/answers/sparta/athens",
            "refs/gitmesh/answers/athens",
            "refs/gitmesh/answers/athens/a/b",
        ),
        *("refs/gitmesh/sealed/athens", "refs/gitmesh/backup", "refs/gitmesh/reveal", "refs/gitmesh/fresh"),
        *("refs/gitmesh/node/athens", "refs/notes/athens", "refs/replace/" + "1" * 40),
    ],
)
def test_a_node_updates_nothing_else(clone: Path, served: Path, ref: str) -> None:
    done = push(clone, served, ref, GITMESH_NODE="athens")
    assert done.returncode != 0
    assert f"node athens may not update {ref}" in done.stderr
    assert git(served, "for-each-ref").stdout == ""


@pytest.mark.rule("F7")
def test_a_node_deletes_and_smuggles_nothing(clone: Path, served: Path) -> None:
    assert push(clone, served, "refs/gitmesh/report/sparta", GITMESH_NODE="sparta").returncode == 0
    assert push(clone, served, ":refs/gitmesh/report/sparta", GITMESH_NODE="athens").returncode != 0
    both = push(clone, served, "refs/gitmesh/report/athens", "refs/heads/main", GITMESH_NODE="athens")
    assert both.returncode != 0
    names = git(served, "for-each-ref", "--format=%(refname)").stdout
    assert names == "refs/gitmesh/report/sparta\n"


@pytest.mark.rule("F7")
@pytest.mark.parametrize("name", ["", "*", "a/b", "Athens", "athens ", "-a", "a\nb", "?thens", "[a]thens"])
def test_what_is_no_node_updates_nothing(clone: Path, served: Path, name: str) -> None:
    for ref in ("refs/gitmesh/report/athens", "refs/heads/main"):
        done = push(clone, served, ref, GITMESH_NODE=name)
        assert done.returncode != 0
        assert "not the name of a node" in done.stderr


@pytest.mark.rule("F7")
def test_the_vault_updates_its_refs_and_its_nodes_own(clone: Path, served: Path) -> None:
    refs = ("sealed/athens", "sealed/sparta", "backup", "reveal/x", "report/delphi")
    for ref in refs:
        vault = push(clone, served, f"refs/gitmesh/{ref}", GITMESH_NODE="delphi", GITMESH_VAULT="1")
        assert vault.returncode == 0, vault.stderr
    for ref in (
        "refs/gitmesh/report/athens",
        "refs/heads/main",
        "refs/gitmesh/sealed/a/b",
        "refs/gitmesh/fresh",
    ):
        assert push(clone, served, ref, GITMESH_NODE="delphi", GITMESH_VAULT="1").returncode != 0


def test_an_operator_updates_what_the_controller_publishes(clone: Path, served: Path) -> None:
    commit(clone, 3)
    refs = ("refs/heads/deploy", "refs/gitmesh/fresh", "refs/gitmesh/node/athens", "refs/heads/a-branch")
    assert push(clone, served, *refs).returncode == 0


@pytest.mark.rule("F5")
def test_what_resolves_reaches_main(clone: Path, served: Path) -> None:
    new = git(clone, "rev-parse", "HEAD").stdout.strip()
    done = push(clone, served, "refs/heads/main")
    assert done.returncode == 0, done.stderr
    assert f"checked {new}: 0" in done.stderr
    assert git(served, "rev-parse", "main").stdout.strip() == new


@pytest.mark.rule("F5")
@pytest.mark.parametrize(("code", "said"), [(3, "does not resolve"), (1, "the check itself failed")])
def test_what_does_not_resolve_never_reaches_main(clone: Path, served: Path, code: int, said: str) -> None:
    push(clone, served, "refs/heads/main")
    before = git(served, "rev-parse", "main").stdout
    new = commit(clone, code)
    done = push(clone, served, "refs/heads/main", "refs/heads/beside")
    assert done.returncode != 0
    assert f"checked {new}: {code}" in done.stderr
    assert said in done.stderr
    assert git(served, "rev-parse", "main").stdout == before
    assert git(served, "cat-file", "-t", new).returncode != 0


@pytest.mark.rule("F5")
def test_main_is_not_deleted_and_not_taken_unchecked(clone: Path, served: Path) -> None:
    push(clone, served, "refs/heads/main")
    commit(clone, 3)
    assert push(clone, served, ":refs/heads/main").returncode != 0
    git(served, "config", "--unset", "gitmesh.program")
    nowhere = {"PATH": "/usr/bin:/bin"}
    done = push(clone, served, "refs/heads/main", **nowhere)
    assert done.returncode != 0
    assert "git config gitmesh.program" in done.stderr
    assert push(clone, served, "refs/heads/main", GITMESH="/nowhere/gitmesh").returncode != 0
    git(served, "config", "gitmesh.check", "off")
    assert push(clone, served, "refs/heads/main", **nowhere).returncode == 0


@pytest.mark.real
@pytest.mark.rule("F7")
def test_the_key_says_which_node_pushes(clone: Path, served: Path, tmp_path: Path) -> None:
    accounts = {
        "athens": "GITMESH_NODE=athens",
        "delphi": "GITMESH_NODE=delphi GITMESH_VAULT=1",
        "operator": "",
    }
    with serve(tmp_path / "sshd", accounts) as server:

        def attempt(account: str, ref: str) -> bool:
            command = " ".join(["ssh", "-o BatchMode=yes -o SendEnv=GITMESH_NODE", *server.options(account)])
            liar = {"GIT_SSH_COMMAND": command, "GITMESH_NODE": "sparta"}
            return git(clone, "push", "--force", server.url(served), f"HEAD:{ref}", env=liar).returncode == 0

        assert attempt("athens", "refs/gitmesh/report/athens")
        assert not attempt("athens", "refs/gitmesh/report/sparta")
        assert not attempt("athens", "refs/heads/main")
        assert not attempt("athens", "refs/gitmesh/sealed/athens")
        assert attempt("delphi", "refs/gitmesh/sealed/athens")
        assert not attempt("delphi", "refs/heads/main")
        assert attempt("operator", "refs/heads/main")
