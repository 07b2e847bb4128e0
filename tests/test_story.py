"""The demo's story, step by step through the commands: what each says, does, and never shows."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gitmesh.cli import demo
from gitmesh.cli.demo import NODES, Story
from gitmesh.cli.demo_postgres import PostgresServer, find_postgres
from gitmesh.core.model import Json
from gitmesh.repo.edit import put
from gitmesh.vault.store import Store
from tests.host.postgres_server import free_port
from tests.real import require
from tests.world import git, objects, spellings

AUDIT = """\
import os
import sys


def _started(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.spawn"):
        with open(os.environ["STORY_ARGUMENTS"], "a") as log:
            log.write(repr((event, arguments, dict(os.environ), sys.argv)) + "\\n")


sys.addaudithook(_started)
"""
"""Every Python that the story starts writes down the arguments and the environment of what it starts."""
LOUD = ("fsync=off", "log_statement=all", "log_min_duration_statement=0", "log_min_messages=debug1",
        "log_min_error_statement=debug5", "log_error_verbosity=verbose", "log_connections=on")  # fmt: skip


@dataclass
class Told:
    """A story, with everything that its commands have printed."""

    story: Story
    arguments: Path
    printed: list[str] = field(default_factory=list)
    pulled: dict[str, Json] = field(default_factory=dict)
    """what the last pull of each node said"""
    capture: pytest.CaptureFixture[str] | None = None

    def said(self) -> str:
        """What the story showed since it was asked last."""
        assert self.capture is not None
        shown = self.capture.readouterr()
        self.printed += [shown.out, shown.err]
        return shown.out

    def waiting(self) -> dict[str, tuple[str, str]]:
        """By assignment that waits: on whom, and for what, as `gitmesh status` has it."""
        found = {}
        for assignment, each in self.assignments().items():
            if each["state"] == "waiting":
                (why,) = each["why"]
                on, _, what = why.removeprefix("on ").partition(" for ")
                found[assignment] = (on, what.partition(" since ")[0])
        return found

    def assignments(self) -> dict[str, Json]:
        """Every assignment's state, as `gitmesh status` has it."""
        status = json.loads(self.story._run("status", "--format", "json", expect=0, quiet=True))
        return {key: each for node in status["nodes"] for key, each in node["assignments"].items()}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Told]:
    """A story that has not begun, in a folder that PostgreSQL's user can reach."""
    require(find_postgres(), "no PostgreSQL is installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="gitmesh-story-"))
    folder.chmod(0o755)
    for name in ("temporary", "audit", "story"):
        (folder / name).mkdir()
    (folder / "audit/sitecustomize.py").write_text(AUDIT)
    told = Told(Story(folder / "story"), folder / "arguments.log", capture=capsys)
    monkeypatch.setenv("PYTHONPATH", str(folder / "audit"))
    monkeypatch.setenv("STORY_ARGUMENTS", str(told.arguments))
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    monkeypatch.setattr(demo, "PostgresServer", functools.partial(PostgresServer, settings=LOUD))
    gitmesh = demo._gitmesh

    def printing(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = gitmesh(where, *arguments)
        told.printed.append(done.stdout)
        if arguments[0] == "pull":
            told.pulled[Path(arguments[2]).name] = json.loads(done.stdout)
        return done

    monkeypatch.setattr(demo, "_gitmesh", printing)
    try:
        yield told
    finally:
        told.story.end()
        shutil.rmtree(folder)


@pytest.mark.real
@pytest.mark.rule("B10", "B11", "C2", "D2", "E1", "S53", "C10", "G10")
def test_the_story_from_three_refusals_to_a_login_that_works(told: Told) -> None:
    story = told.story
    story.begin()
    port = _move_port(story)
    _three_refusals(told)
    _answered(told)
    story.deploy()
    assert "deploy 1: for athens, delphi, sparta" in told.said()
    _pulled(told, port)
    story.show()
    assert re.search(r"as gitea_athens_a, acting as gitea_athens, in database gitea_athens\.", told.said())
    _owners(story)
    _nothing_new(told)
    told.printed += _processes()
    story.end()
    _nothing_shown(told)


def _move_port(story: Story) -> int:
    """Give sparta's PostgreSQL a port that is free, since a demo may be running beside this test."""
    port = free_port("127.0.0.12")
    file = story.mesh / "nodes/sparta.yaml"
    file.write_bytes(put(file.read_bytes(), ["ports"], {"from": port, "to": min(port + 9, 65535)}))
    return port


def _three_refusals(told: Told) -> None:
    told.story.refuse()
    said = told.said()
    assert re.findall(r"^refused\[(\S+)\]", said, re.MULTILINE) == [
        "ambiguous-provider", "seat-unheld", "value-missing",
    ]  # fmt: skip
    for answer in (
        "gitmesh pin gitea@athens database postgres@sparta",
        "gitmesh set gitea@athens web.name VALUE",
        "gitmesh assign gitmesh-vault delphi --hold mesh-vault",
    ):
        assert answer in said


def _answered(told: Told) -> None:
    story = told.story
    comments = {path: _comments(path) for path in story.mesh.rglob("*.yaml")}
    assert sum(map(len, comments.values())) > 10
    story.answer()
    assert "resolved: 5 assignments on 3 nodes" in told.said()
    assert {path: _comments(path) for path in comments} == comments
    assert (story.mesh / "assignments/athens/gitea.yaml").read_text() == (
        "# the team's forge; ask Ada before moving it\n"
        "pins: {database: postgres@sparta}\n"
        "values: {web.name: git.example.org}\n"
    )


def _comments(path: Path) -> list[str]:
    """The lines that are comments, and the comments at the end of others."""
    return [line.partition("#")[2] for line in path.read_text().splitlines() if "#" in line]


def _pulled(told: Told, port: int) -> None:
    """The rounds of step 4: after each, who waits on whom."""
    story = told.story
    gitea, postgres = (
        ("postgres@sparta", "database"),
        (f"postgres at 127.0.0.12:{port}", "gitea@athens.database"),
    )
    assert story._round()
    assert told.waiting() == {"gitea@athens": gitea, "postgres@sparta": postgres}
    assert not story._round(), "with nobody there to answer, waiting again does nothing"
    assert told.waiting() == {"gitea@athens": gitea, "postgres@sparta": postgres}
    assert not list(story.node("athens").glob("run/gitmesh/secrets/**/*passwd*"))

    assert story._start_postgres()
    assert story._round()
    assert told.pulled["sparta"]["new"] == ["set the login of gitea@athens.database"]
    assert told.waiting() == {"gitea@athens": gitea}
    assert story._round()
    assert "signed in with the login of gitea@athens.database" in told.pulled["athens"]["new"]
    assert told.waiting() == {}
    assert {each["state"] for each in told.assignments().values()} == {"applied"}
    story._round()
    assert not story._round()


def _owners(story: Story) -> None:
    """Every secret file is its reader's alone: the container's `reads-as`, mode 0400."""
    found = 0
    for node in NODES:
        closed = (story.node(node) / "run/gitmesh/secrets").stat().st_mode
        assert closed & 0o007 == 0, "others can't even look into the folder"
        declared = json.loads(
            next(story.node(node).glob("var/lib/gitmesh/accepted/*/declaration.json")).read_text()
        )
        for each in (story.node(node) / "run/gitmesh/secrets").rglob("*"):
            if each.is_dir():
                continue
            assignment, container = each.relative_to(story.node(node) / "run/gitmesh/secrets").parts[:2]
            reader = declared["assignments"][assignment]["containers"][container]["reads-as"]
            stands = each.stat()
            assert stands.st_mode & 0o7777 == 0o400
            if os.geteuid() == 0:
                assert f"{stands.st_uid}:{stands.st_gid}" == reader
            found += 1
    assert found == 6, "gitea's four, and a superuser's password on sparta and on delphi"


def _nothing_new(told: Told) -> None:
    bare = told.story.folder / "origin.git"
    before = git(bare, "for-each-ref")
    told.story.repeat()
    assert "deploy 1 stands; nothing is new" in told.said()
    assert {node: (each["new"], each["waiting"]) for node, each in told.pulled.items()} == {
        node: ([], []) for node in NODES
    }
    assert git(bare, "for-each-ref") == before


def _nothing_shown(told: Told) -> None:
    """No secret stands anywhere but in its reader's file, in any spelling."""
    story, values = told.story, _values(told.story)
    assert len(values) == 6
    base = story.folder.parent
    places = {"what was printed": "\n".join(told.printed).encode(), **_files(base)}
    repos = [story.folder / "origin.git", story.mesh / ".git"]
    repos += sorted(base.glob("story/nodes/*/var/lib/gitmesh/*.git"))
    repos += sorted(base.glob("story/nodes/*/var/lib/gitmesh/git"))
    assert len(repos) == 6
    places |= {f"the objects of {repo}": objects(repo) for repo in repos}
    log = places[str(story.folder / "postgres.log")]
    assert b"statement: " in log and b"gitea_athens_a" in log
    started = places[str(told.arguments)]
    assert b"cat-file" in started or b"'fetch'" in started
    assert b"sops" in started
    for secret, value in values.items():
        for where, content in places.items():
            for spelt in spellings(value):
                assert spelt not in content, f"{secret} stands in {where}"


def _processes() -> list[str]:
    """The arguments and the environment of each of this user's processes, PostgreSQL's among them."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                found.append((each / name).read_bytes().decode(errors="replace"))
            except OSError:  # it has ended, or is someone else's
                continue
    assert any("gitmesh-story-" in text and "listen_addresses" in text for text in found)
    return found


def _values(story: Story) -> dict[str, str]:
    """Every secret's value, from the vault's store; each stands in its readers' files."""
    location = next(story.node("delphi").glob("var/lib/mesh/gitmesh-vault/*"))
    store = Store(location, story.node("delphi") / "etc/gitmesh/vault/age", ())
    entries = {secret: slots for node in store.nodes() for secret, slots in store.read(node).items()}
    values = {secret: slots["a"].value.text() for secret, slots in entries.items()}
    files = [each for each in story.folder.glob("nodes/*/run/gitmesh/secrets/**/*") if each.is_file()]
    assert {each.read_text() for each in files} == set(values.values())
    return values


def _files(base: Path) -> dict[str, bytes]:
    """Every file of the story but the secret files themselves: databases, state, logs, what is temporary."""
    return {
        str(each): each.read_bytes()
        for each in base.rglob("*")
        if each.is_file() and not each.is_symlink() and "/run/gitmesh/secrets/" not in str(each)
    }
