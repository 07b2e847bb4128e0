"""One commit and one record give the same bytes, whoever asks and wherever (B22)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import PROJECT, require
from tests.said_of import said_of

NOBODY = 65534
TEMPLATE = PROJECT / "mesh-repo-template"

SURROUNDINGS: dict[str, dict[str, str]] = {
    "another hash seed and time zone": {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"},
    "the locale C": {
        "PYTHONHASHSEED": "4711",
        "LC_ALL": "C",
        "LANG": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    },
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "tr"},
    "no home, no cache, no assertions": {
        "HOME": "/nonexistent",
        "GITMESH_CACHE": "off",
        "PYTHONOPTIMIZE": "1",
    },
    "a narrow terminal": {"COLUMNS": "20", "TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
}


@pytest.fixture(scope="module", params=["template", "example", "refused"])
def mesh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with one commit of a mesh; one of the three is refused, for several mistakes."""
    folder = tmp_path_factory.mktemp("mesh") / "mesh"
    source: Path = request.getfixturevalue("example_mesh") if request.param == "example" else TEMPLATE
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git"))
    if request.param == "refused":
        for node in (folder / "nodes").iterdir():
            node.write_text(node.read_text() + "straße: İstanbul\nlabel: [x]\n")
        (folder / "nodes/corinth.yaml").write_text("address: nowhere\n")
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    return folder


def run(command: list[str], environment: dict[str, str], cwd: Path, umask: int = 0o022) -> bytes:
    """What a program of this checkout prints, with its exit code."""
    own = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, *command], env=own, cwd=cwd, umask=umask, capture_output=True, check=False
    )
    assert done.stdout, done.stderr.decode(errors="replace")
    return done.stdout + f"exit code {done.returncode}".encode()


def check(mesh: Path, environment: dict[str, str], cwd: Path = PROJECT, umask: int = 0o022) -> bytes:
    command = ["-m", "gitmesh", "check", "--format", "json", "--revision", "HEAD", "--repo", str(mesh)]
    return run(command, environment, cwd, umask)


def made(mesh: Path, environment: dict[str, str], seed: str, cwd: Path = PROJECT) -> bytes:
    return run(["-m", "tests.said_of", str(mesh), seed], environment, cwd)


@pytest.fixture(scope="module")
def expected(mesh: Path) -> dict[str, bytes]:
    """What is said and made here, with hash seed 0."""
    plain = {"PYTHONHASHSEED": "0"}
    return {"check": check(mesh, plain), "made": made(mesh, plain, "0")}


@pytest.mark.parametrize("name", SURROUNDINGS)
@pytest.mark.rule("B22")
def test_the_same_bytes_in_other_surroundings(
    mesh: Path, expected: dict[str, bytes], locales: Path, name: str
) -> None:
    surroundings = {"LOCPATH": str(locales)} | SURROUNDINGS[name]
    assert check(mesh, surroundings) == expected["check"]
    assert made(mesh, surroundings, name) == expected["made"]


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Turkish locale, whose small i is another letter; machines rarely have it."""
    folder = tmp_path_factory.mktemp("locales")
    require(Path("/usr/share/i18n/locales/tr_TR").exists(), "the sources of locales are not installed")
    turkish = ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(folder / "tr_TR.UTF-8")]
    subprocess.run(turkish, check=True, capture_output=True)
    found = "import locale; print(locale.setlocale(locale.LC_ALL, ''))"
    environment = {"LOCPATH": str(folder), "LC_ALL": "tr_TR.UTF-8"}
    assert run(["-c", found], environment, folder).startswith(b"tr_TR.UTF-8"), "it is taken"
    return folder


@pytest.mark.rule("B22")
def test_the_same_bytes_from_another_folder_under_another_umask(
    mesh: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    assert check(mesh, {}, tmp_path, 0o077) == expected["check"]
    assert check(mesh, {}, Path("/"), 0o000) == expected["check"]


@pytest.mark.rule("B22")
def test_the_same_bytes_from_a_clone_and_from_files_in_any_order(
    mesh: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(mesh), str(clone)], check=True)
    assert made(clone, {}, "1") == expected["made"]
    backwards = tmp_path / "backwards"
    for file in sorted((each for each in mesh.rglob("*") if each.is_file()), reverse=True):
        copy = backwards / file.relative_to(mesh)
        if ".git" not in copy.relative_to(backwards).parts:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    assert made(backwards, {}, "2") == expected["made"]


@pytest.fixture
def readable(mesh: Path) -> Iterator[Path]:
    """A copy that every user may read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        copy = Path(folder) / "mesh"
        shutil.copytree(mesh, copy, ignore=shutil.ignore_patterns(".git"))
        yield copy


@pytest.mark.rule("B22")
def test_the_same_bytes_as_another_user(readable: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    require(os.geteuid() == 0, "only root can become another user")
    # Nobody may not be able to read this Python; what it needs is imported before.
    assert said_of(readable) + b"exit code 0" == expected["made"]
    answer = tmp_path / "answer"
    with answer.open("wb") as file:
        child = os.fork()
        if child == 0:
            ended = 1
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                file.write(said_of(readable) + b"exit code 0")
                file.flush()
                ended = 0
            finally:
                os._exit(ended)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert answer.read_bytes() == expected["made"]
