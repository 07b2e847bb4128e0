"""Whatever stands in a mesh repo, `gitmesh check` answers with a refusal or a named error and a way out."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitmesh.cli.main import main
from tests.cli.small_mesh import FILES, commit, git, make
from tests.real import require

NODE = "nodes/athens.yaml"
BOMB = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefg", "bcdefgh", strict=True)
)
CONTROL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e"
"""What a terminal would obey: a title, a colour, a CSI in one character, a change of direction."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What one command answered."""

    code: int
    output: str
    errors: str

    @property
    def said(self) -> str:
        """All of it."""
        return self.output + self.errors


def gitmesh(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Answered:
    """One command as the console script runs it, in this process: a traceback fails the test."""
    try:
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
    finally:
        gc.enable()
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Answered(ended.value.code, captured.out, captured.err)


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file, link and folder below `folder` but git's: mode and content."""
    found = {}
    for each in sorted(folder.rglob("*")):
        if ".git" in each.relative_to(folder).parts:
            continue
        status = each.lstat()
        content = bytes(each.readlink()) if each.is_symlink() else b""
        found[str(each.relative_to(folder))] = (
            status.st_mode,
            each.read_bytes() if each.is_file() and not each.is_symlink() else content,
        )
    return found


Spoil = Callable[[Path], None]


def text(path: str, content: str | bytes) -> Spoil:
    """A file with this content."""

    def spoil(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)

    return spoil


def link(path: str, to: str) -> Spoil:
    """A symbolic link in the place of a file."""

    def spoil(folder: Path) -> None:
        (folder / path).unlink(missing_ok=True)
        (folder / path).symlink_to(to)

    return spoil


def folder_for_file(path: str) -> Spoil:
    """A directory where a file should be; git keeps none that is empty."""

    def spoil(folder: Path) -> None:
        (folder / path).unlink()
        (folder / path).mkdir()
        (folder / path / "keep").write_text("")

    return spoil


def file_for_folder(path: str) -> Spoil:
    """A file where a directory should be."""

    def spoil(folder: Path) -> None:
        shutil.rmtree(folder / path)
        (folder / path).write_text("")

    return spoil


ADDRESS = "address: 10.7.0.11\n"
REFUSED: dict[str, tuple[Spoil, str]] = {
    "bad YAML": (text(NODE, "address: [10.7.0.11\n"), "refused[yaml-"),
    "no YAML at all": (text(NODE, b"\xff\xfe\x00\x01"), "refused["),
    "a NUL": (text(NODE, b"address: 10.7.0.11\x00\n"), "refused["),
    "an unknown key": (text(NODE, "adress: 10.7.0.11\n"), "did you mean `address`"),
    "a duplicate key": (text(NODE, ADDRESS + ADDRESS), "refused["),
    "a wrong type": (text(NODE, "address: [10.7.0.11]\n"), "refused["),
    "a list at the top": (text(NODE, "- 10.7.0.11\n"), "refused["),
    "a second document": (text(NODE, ADDRESS + "---\n" + ADDRESS), "refused["),
    "a tag": (text(NODE, "address: !!python/object 10.7.0.11\n"), "refused["),
    "an alias bomb": (text(NODE, BOMB), "refused["),
    "depth": (text(NODE, "labels: " + "[" * 5000 + "]" * 5000 + "\n"), "refused["),
    "5 MB": (text(NODE, ADDRESS + "# " + "x" * 5_000_000 + "\n"), "refused[file-too-large]"),
    "5 MB beside a module": (text("modules/gitea/app.ini", b"x" * 5_000_000), "refused[file-too-large]"),
    "a link": (link(NODE, "sparta.yaml"), "refused[file-kind]"),
    "a link out of the repo": (link(NODE, "/etc/passwd"), "refused[file-kind]"),
    "a link that goes round": (link(NODE, "athens.yaml"), "refused[file-kind]"),
    "a linked folder": (link("assignments/troy", "athens"), "refused[file-kind]"),
    "a directory where a file should be": (folder_for_file(NODE), "refused[file-kind]"),
    "a directory for mesh.yaml's": (folder_for_file("modules/caddy/module.yaml"), "refused[file-kind]"),
    "a file where a directory should be": (file_for_folder("nodes"), "refused[file-kind]"),
    "an executable": (lambda folder: (folder / NODE).chmod(0o755), "refused[file-kind]"),
    "capitals in a name": (text("nodes/Athens.yaml", ADDRESS), "refused[file-name]"),
    "another ending": (text("nodes/troy.yml", ADDRESS), "refused[file-name]"),
    "escapes in a name": (text(f"nodes/a{CONTROL}.yaml", ADDRESS), "refused[file-name]"),
    "escapes in a key": (text(NODE, f'{ADDRESS}"a\\e]0;owned\\a{chr(0x202E)}": 1\n'), "refused["),
    "escapes in a value": (text(NODE, 'address: "10.7.0.11\\e[31m\\x07"\n'), "refused["),
    "raw escapes": (text(NODE, f"address: 10.7.0.11 # {CONTROL}\n"), "refused["),
    "an empty mesh.yaml": (text("mesh.yaml", ""), "refused["),
    "a mesh.yaml of comments": (text("mesh.yaml", "# nothing\n"), "refused["),
    "a null": (text("mesh.yaml", "~\n"), "refused["),
}

FINE: dict[str, Spoil] = {
    "CRLF": text(NODE, b"address: 10.7.0.11\r\n"),
    "a BOM": text(NODE, b"\xef\xbb\xbfaddress: 10.7.0.11\n"),
    "no final newline": text(NODE, b"address: 10.7.0.11"),
    "an empty assignment": text("assignments/delphi/caddy.yaml", ""),
    "files that are nobody's": text("notes/..hidden/README", "hello"),
}


@pytest.mark.rule("S24", "S25", "S29", "B22")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_as_it_lies_and_as_committed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    spoil, expected = REFUSED[name]
    spoil(make(tmp_path))
    before = everything(tmp_path)
    lying = gitmesh(capsys, "check", "--repo", tmp_path)
    answers(lying, expected)
    commit(tmp_path)
    committed = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD")
    answers(committed, expected)
    for form in ("json", "github", "markdown"):
        other = gitmesh(capsys, "check", "--repo", tmp_path, "--format", form)
        assert other.code == 3
        harmless(other)
    assert everything(tmp_path) == before, "nothing was written"


def answers(done: Answered, expected: str) -> None:
    """Refused, with what was expected, where it stands, and harmless to a terminal."""
    assert done.code == 3, done.said
    assert expected in done.output
    assert "\n --> " in done.output.replace("  -->", " -->")
    assert "Traceback" not in done.said
    harmless(done)


def harmless(done: Answered) -> None:
    """Nothing in it that a terminal would obey."""
    rest = done.said.replace("\n", "")
    assert rest.isprintable(), [each for each in rest if not each.isprintable()]
    assert len(done.said) < 50_000


@pytest.mark.parametrize("name", FINE)
def test_what_only_looks_wrong_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    FINE[name](make(tmp_path))
    assert gitmesh(capsys, "check", "--repo", tmp_path).code == 0
    commit(tmp_path)
    assert gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD").code == 0


@pytest.mark.rule("S24")
def test_an_alias_bomb_of_a_few_hundred_bytes_opens_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(BOMB) < 400
    make(tmp_path, FILES, nodes__athens=BOMB)
    done = gitmesh(capsys, "check", "--repo", tmp_path)
    assert done.code == 3
    assert "nodes/athens.yaml:1:4" in done.output, "the anchor itself is what is refused"


@pytest.mark.rule("S29")
@pytest.mark.parametrize("name", ["..", ".", ".git", ".GIT", "git~1", "x\\..\\y"])
def test_a_name_that_no_file_system_would_write_is_refused_in_a_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    make(tmp_path)
    commit(tmp_path)
    blob = git(tmp_path, "rev-parse", "HEAD:nodes/athens.yaml")
    root = git(tmp_path, "ls-tree", "HEAD").splitlines()
    module = git(tmp_path, "ls-tree", "HEAD:modules/gitea").splitlines()
    bad = mktree(tmp_path, [*module, f"100644 blob {blob}\t{name}"])
    modules = git(tmp_path, "ls-tree", "HEAD:modules").splitlines()
    changed = mktree(
        tmp_path, [each if "\tgitea" not in each else f"040000 tree {bad}\tgitea" for each in modules]
    )
    tree = mktree(
        tmp_path, [each if "\tmodules" not in each else f"040000 tree {changed}\tmodules" for each in root]
    )
    tip = git(tmp_path, "commit-tree", tree, "-m", "hostile")
    before = everything(tmp_path)
    done = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", tip)
    assert done.code == 3, done.said
    assert "refused[file-name]: modules/gitea/" in done.output
    assert everything(tmp_path) == before


def mktree(folder: Path, lines: list[str]) -> str:
    """A tree object of these entries, whatever they are called."""
    entries = b""
    for line in sorted(lines, key=lambda each: each.partition("\t")[2]):
        head, _, name = line.partition("\t")
        mode, _, oid = head.split()
        entries += f"{mode.lstrip('0')} {name}".encode() + b"\0" + bytes.fromhex(oid)
    done = subprocess.run(
        ["git", "-C", str(folder), "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        input=entries, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.decode().strip()


# --- no repo to read -------------------------------------------------------------------------------------


def error(done: Answered, message: str, command: str) -> None:
    """One named error with a way out, exit code 1."""
    assert done.code == 1, done.said
    assert done.output == ""
    first, *rest = done.errors.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert rest == [f"  try: {command}"]


def test_a_folder_without_a_mesh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = gitmesh(capsys, "check", "--repo", tmp_path)
    error(done, f"no mesh.yaml in {tmp_path}", "gitmesh check --repo FOLDER")


def test_a_repo_without_a_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    done = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD")
    error(done, "has no commit yet", f"git -C {tmp_path} commit")


def test_a_commit_without_a_mesh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tmp_path)
    done = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD")
    assert done.code == 3
    assert "mesh.yaml" in done.output


def test_a_folder_that_is_no_repo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    done = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD")
    error(done, "is not a git repository", f"git init {tmp_path}")


@pytest.mark.parametrize("revision", ["nowhere", "HEAD~9", "0" * 40, ":/x", "HEAD:nodes"])
def test_no_such_revision(tmp_path: Path, capsys: pytest.CaptureFixture[str], revision: str) -> None:
    commit(make(tmp_path))
    done = gitmesh(capsys, "check", "--repo", tmp_path, f"--revision={revision}")
    error(done, f"{tmp_path} has no commit ", f"git -C {tmp_path} fetch")
    harmless(done)
    told = gitmesh(capsys, "check", "--repo", tmp_path, f"--revision={revision}", "--format", "json")
    assert (told.code, json.loads(told.output)["result"]) == (1, "failed")


@pytest.mark.parametrize("revision", ["--help", "-n1", "", "a b", f"x{CONTROL}"])
def test_a_revision_that_could_name_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    """Git is not even asked."""
    commit(make(tmp_path))
    done = gitmesh(capsys, "check", "--repo", tmp_path, f"--revision={revision}")
    error(done, "names no commit", f"git -C {tmp_path} branch --all")
    harmless(done)
    told = gitmesh(capsys, "check", "--repo", tmp_path, f"--revision={revision}", "--format", "json")
    assert (told.code, json.loads(told.output)["result"]) == (1, "failed")


def test_a_shallow_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = commit(make(tmp_path / "whole"))
    commit(tmp_path / "whole")
    git(tmp_path, "clone", "-q", "--depth=1", (tmp_path / "whole").as_uri(), "shallow")
    shallow = tmp_path / "shallow"
    assert gitmesh(capsys, "check", "--repo", shallow, "--revision", "HEAD").code == 0
    done = gitmesh(capsys, "check", "--repo", shallow, "--revision", first)
    error(done, "is a shallow clone and does not have", f"git -C {shallow} fetch --unshallow")


@pytest.mark.real
def test_a_repo_that_is_someone_elses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require(os.geteuid() == 0, "only root can give a repo to someone else")
    commit(make(tmp_path))
    for each in (tmp_path, *tmp_path.rglob("*")):
        os.chown(each, 65534, 65534)
    done = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD")
    error(done, "belongs to another user", f"git config --global --add safe.directory {tmp_path}")
    error(
        gitmesh(capsys, "check", "--repo", tmp_path),
        "belongs to another user",
        f"git config --global --add safe.directory {tmp_path}",
    )


@pytest.mark.rule("S30")
def test_a_repo_whose_settings_would_run_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(make(tmp_path))
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand"):
        git(tmp_path, "config", key, f"touch {tmp_path}/owned")
    (tmp_path / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(tmp_path, "config", "filter.evil.smudge", f"touch {tmp_path}/owned")
    git(tmp_path, "config", "alias.ls-tree", f"!touch {tmp_path}/owned")
    assert gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD").code == 0
    assert not (tmp_path / "owned").exists()


def test_a_broken_repo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(make(tmp_path))
    blob = git(tmp_path, "rev-parse", "HEAD:nodes/athens.yaml")
    broken = tmp_path / ".git/objects" / blob[:2] / blob[2:]
    broken.chmod(0o644)
    broken.write_bytes(b"nothing")
    done = gitmesh(capsys, "check", "--repo", tmp_path, "--revision", "HEAD")
    error(done, "git can't read", f"git -C {tmp_path} fsck --full")


def test_a_fifo_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A FIFO that nobody writes into: opening it like a file would wait for ever."""
    make(tmp_path)
    (tmp_path / NODE).unlink()
    os.mkfifo(tmp_path / NODE)
    done = gitmesh(capsys, "check", "--repo", tmp_path)
    assert done.code == 3
    assert "refused[file-kind]: nodes/athens.yaml" in done.output


@pytest.mark.parametrize("command", ["pin", "set", "assign", "unassign", "status", "genesis"])
def test_other_commands_name_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arguments = {
        "pin": ["gitea@athens", "database", "x@y"],
        "set": ["gitea@athens", "workers", "4"],
        "assign": ["gitea", "athens"],
        "unassign": ["gitea", "athens"],
        "status": [],
        "genesis": ["--root", str(tmp_path / "node")],
    }[command]
    done = gitmesh(capsys, command, *arguments, "--repo", tmp_path)
    error(done, f"no mesh.yaml in {tmp_path}", "gitmesh check --repo FOLDER")
    assert list(tmp_path.iterdir()) == []


def test_the_program_itself_ends_like_that(tmp_path: Path) -> None:
    """The same by a real process, whose exit code and streams are what a script sees."""
    make(tmp_path, FILES, nodes__athens=BOMB)
    done = subprocess.run(
        [sys.executable, "-m", "gitmesh", "check", "--repo", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "")
    assert "refused[" in done.stdout
