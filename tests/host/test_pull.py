"""A node's pull on a real small mesh: nothing new, drift, no network, a reboot, time, pauses, state."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmesh.host.mailbox import REPORT_EVERY
from gitmesh.host.pull import Busy
from gitmesh.host.state import HOME, StateDamaged
from gitmesh.trust.keys import SealingKey
from gitmesh.trust.refused import Refused
from tests.host.settled import (
    SITE,
    STATS,
    answer,
    command,
    content,
    copy_of,
    counting,
    gone,
    reboot,
    report_of,
    running,
    settled_mesh,
    stamps,
)
from tests.world import DATABASE, DAY, World

SECRET = "run/gitmesh/secrets/gitea@athens/gitea/run/secrets"


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with settled_mesh(tmp_path_factory.mktemp("settled")) as world:
        yield world


@pytest.fixture
def world(settled: World, tmp_path: Path) -> World:
    return copy_of(settled, tmp_path / "world")


@pytest.fixture
def athens(world: World) -> Path:
    return world.root("athens")


def test_everything_is_delivered(athens: Path) -> None:
    names = {path.name for path in (athens / SECRET).iterdir()}
    assert "gitea__database__passwd__file" in names
    assert (athens / "var/lib/gitmesh/files/gitea@athens/gitea.json").exists()


# --- nothing new ---------------------------------------------------------------------------------------


@pytest.mark.rule("E1")
@pytest.mark.parametrize("node", ["delphi", "sparta", "athens"])
def test_with_nothing_new_nothing_is_written_and_nothing_pushed(world: World, node: str) -> None:
    before, refs = stamps(world.root(node)), world.refs()
    with counting() as operations:
        pulled = world.pull(node)
    assert (pulled.new, pulled.stale, pulled.seq) == ([], "", 1)
    assert operations == []
    assert stamps(world.root(node)) == before
    assert world.refs() == refs


@pytest.mark.rule("E1")
def test_the_report_is_said_again_after_an_hour(world: World) -> None:
    said = world.refs()
    world.now += REPORT_EVERY - 120
    world.pull("athens")
    assert world.refs() == said
    world.now += 120
    assert world.pull("athens").new == []
    now = world.refs()
    assert {ref for ref in now if now[ref] != said.get(ref)} == {report_of("athens")}


@pytest.mark.rule("E1")
def test_the_command_says_that_nothing_is_new(world: World) -> None:
    done = command(world, "athens", "--format", "json")
    assert done.exit_code == 0 and '"changed": false' in done.output and '"nothing new' in done.output


# --- what another node answers -------------------------------------------------------------------------


@pytest.mark.rule("B12")
def test_a_changed_answer_is_held_back_shown_and_taken_once_a_commit_accepts_it(
    world: World, athens: Path
) -> None:
    before, other = running(athens), SITE.replace("7", "8")
    answer(world, {"site": other}, 2)
    for _ in range(2):
        done = command(world, "athens")
        assert "gitea@athens: held back: umami@sparta answers another site for stats; " in done.output
        assert f"accept it with rotations.yaml: {{{STATS}: 1}}" in done.output
        assert done.exit_code == 0 and other not in done.output and running(athens) == before
    assert b"held back: umami@sparta" in b64decode(
        json.loads(world.files(report_of("athens"))["report.json"])["payload"]
    )
    world.write("rotations.yaml", f"{STATS}: 1\n")
    world.commit_push()
    world.deploy()
    pulled = world.pull("athens")
    assert "held back" not in str(pulled.remarks) and pulled.failed == [] and running(athens) != before
    assert other in json.dumps(json.loads((athens / HOME / "answers.json").read_bytes()))
    assert world.pull("athens").new == []


# --- drift, no network, a reboot -----------------------------------------------------------------------


@pytest.mark.rule("E3", "G10")
@pytest.mark.parametrize("offline", [False, True])
def test_drift_is_repaired_and_named(world: World, athens: Path, offline: bool) -> None:
    before = running(athens)
    edited = athens / "var/lib/gitmesh/files/gitea@athens/gitea.environment"
    edited.chmod(0o644)
    edited.write_text("GITEA__security__INSTALL_LOCK=false\n")
    lost = next((athens / SECRET).iterdir())
    lost.unlink()
    if offline:
        with gone(world):
            pulled = world.pull("athens")
        assert "origin.git" in pulled.stale and pulled.seq == 1
    else:
        pulled = world.pull("athens")
        assert pulled.stale == ""
    assert {str(edited), str(lost)} <= {path for each in pulled.outcomes for path in each.drifted}
    assert running(athens) == before


@pytest.mark.rule("E2")
@pytest.mark.parametrize("node", ["delphi", "sparta", "athens"])
def test_after_a_reboot_without_network_everything_is_there_again(world: World, node: str) -> None:
    root = world.root(node)
    before = running(root)
    if (root / "run").exists():
        reboot(root)
    with gone(world):
        done = command(world, node)
    assert done.exit_code == 75 and "keeps running deploy 1" in done.output
    assert running(root) == before


@pytest.mark.rule("E2")
def test_a_machine_that_lost_everything_but_its_keys_is_made_again(world: World, athens: Path) -> None:
    before = running(athens)
    shutil.rmtree(athens / "var/lib/gitmesh")
    reboot(athens)
    assert world.pull("athens").stale == ""
    assert running(athens) == before


def test_a_new_node_without_network_says_that_nothing_runs(tmp_path: Path) -> None:
    world = World.begin(tmp_path)
    with gone(world):
        done = command(world, "athens")
    assert done.exit_code == 75
    assert "nothing was accepted before, so nothing runs" in done.output


# --- time ----------------------------------------------------------------------------------------------


@pytest.mark.rule("S4", "F1")
def test_an_expired_deploy_is_stale_and_tears_nothing_down_until_it_is_renewed(
    world: World, athens: Path
) -> None:
    before = running(athens)
    world.pass_time(15 * DAY)
    done = command(world, "athens", "--format", "json")
    assert done.exit_code == 75 and "deploy: expired" in done.output
    assert running(athens) == before
    assert world.deploy().seq == 2
    pulled = world.pull("athens")
    assert (pulled.stale, pulled.seq) == ("", 2)
    assert running(athens) == before


@pytest.mark.rule("S6")
def test_a_clock_set_back_does_not_revive_an_older_deploy(world: World) -> None:
    old = world.files("refs/gitmesh/fresh")
    world.pass_time(20 * DAY)
    world.deploy()
    world.pull("athens")
    world.send("refs/gitmesh/fresh", old)
    pulled = world.pull("athens", world.now - 20 * DAY)
    assert "deploy" in pulled.stale and pulled.seq == 2


@pytest.mark.rule("S7")
def test_a_clock_ten_years_ahead_is_stale_and_recovers_by_itself(world: World, athens: Path) -> None:
    before = running(athens)
    pulled = world.pull("athens", world.now + 3650 * DAY)
    assert "expired" in pulled.stale
    assert running(athens) == before
    assert world.pull("athens").stale == ""


# --- a paused node -------------------------------------------------------------------------------------


@pytest.mark.rule("G7")
def test_a_paused_node_applies_nothing_new_and_says_so(world: World, athens: Path) -> None:
    before = running(athens)
    text = (world.mesh / "nodes/athens.yaml").read_text()
    world.write("nodes/athens.yaml", text + "state: {paused: {reason: disk swap, until: '2099-01-01'}}\n")
    world.write(
        "assignments/athens/gitea.yaml",
        "pins: {database: postgres@sparta}\nvalues: {web.name: forge.example.org}\n",
    )
    world.commit_push()
    deployed = world.deploy()
    assert deployed.refusals == ()
    done = command(world, "athens")
    assert done.exit_code == 0 and "paused" in done.output
    assert running(athens) == before
    reboot(athens)
    world.pull("athens")
    assert running(athens) == before
    said = world.files(report_of("athens"))["report.json"]
    assert b"report" in said
    world.write("nodes/athens.yaml", text)
    world.commit_push()
    world.deploy()
    pulled = world.pull("athens")
    assert pulled.remarks == [each for each in pulled.remarks if "paused" not in each]
    assert (
        b"forge.example.org" in (athens / "var/lib/gitmesh/files/gitea@athens/gitea.environment").read_bytes()
    )


# --- who it is -----------------------------------------------------------------------------------------


@pytest.mark.rule("F1")
def test_a_node_that_the_approval_no_longer_names_keeps_what_runs(world: World, athens: Path) -> None:
    before = running(athens)
    lines = (world.mesh / "nodes/athens.yaml").read_text().splitlines(keepends=True)
    world.write("nodes/athens.yaml", "".join(each for each in lines if not each.startswith("keys:")))
    world.commit_push()
    world.deploy()
    done = command(world, "athens")
    assert done.exit_code == 75
    assert running(athens) == before


@pytest.mark.rule("F1")
def test_a_node_approved_with_other_keys_keeps_what_runs(world: World, athens: Path) -> None:
    before = running(athens)
    world.edit("nodes/athens.yaml", ["keys", "seal"], SealingKey.generate().public_text)
    world.commit_push()
    world.deploy()
    done = command(world, "athens")
    assert done.exit_code == 75 and "other keys" in done.output
    assert running(athens) == before


@pytest.mark.rule("F1")
def test_another_mesh_on_origin_is_refused(world: World, athens: Path, tmp_path: Path) -> None:
    before = running(athens)
    other = World.begin(tmp_path)
    other.deploy()
    shutil.rmtree(world.bare)
    shutil.copytree(other.bare, world.bare)
    done = command(world, "athens")
    assert done.exit_code == 75
    assert running(athens) == before


# --- its own state -------------------------------------------------------------------------------------


@pytest.mark.rule("E1")
def test_two_pulls_at_once_are_one(world: World, athens: Path) -> None:
    descriptor = os.open(athens / "var/lib/gitmesh", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(Busy):
            world.pull("athens")
        done = command(world, "athens")
        assert done.exit_code == 1 and "another pull" in done.output
    finally:
        os.close(descriptor)
    assert world.pull("athens").new == []


@pytest.mark.rule("S42")
def test_lost_counters_are_anchored_again_with_an_alarm(world: World, athens: Path) -> None:
    path = athens / "var/lib/gitmesh/trust/state.json"
    kept = path.read_bytes()
    path.unlink()
    pulled = world.pull("athens")
    assert any("were lost" in each for each in pulled.remarks)
    assert path.read_bytes() == kept
    assert not any("were lost" in each for each in world.pull("athens").remarks)


@pytest.mark.rule("S42")
@pytest.mark.parametrize("blob", [b"", b"{", b"[]", b'{"v":1}', b"\xff"])
def test_cut_counters_are_not_guessed(world: World, athens: Path, blob: bytes) -> None:
    path = athens / "var/lib/gitmesh/trust/state.json"
    path.write_bytes(blob)
    before = running(athens)
    with pytest.raises(StateDamaged) as raised:
        world.pull("athens")
    assert f"rm {path}" in raised.value.way_out
    assert running(athens) == before
    done = command(world, "athens")
    assert done.exit_code == 1 and "is damaged" in done.output


@pytest.mark.rule("S40", "S32")
@pytest.mark.parametrize("name", ["declaration.json", "index.json"])
def test_a_damaged_bundle_is_fetched_again(world: World, athens: Path, name: str) -> None:
    before = running(athens)
    bundle = next((athens / "var/lib/gitmesh/accepted").glob(f"*/{name}"))
    kept = bundle.read_bytes()
    bundle.write_bytes(kept[:-1])
    pulled = world.pull("athens")
    assert pulled.stale == "" and any("is not what was accepted" in each for each in pulled.remarks)
    assert bundle.read_bytes() == kept
    assert running(athens) == before
    bundle.write_bytes(b"")
    with gone(world), pytest.raises(StateDamaged):
        world.pull("athens")
    assert running(athens) == before


def _of_cache(root: Path) -> Iterator[Path]:
    for path in sorted((root / "var/lib/gitmesh/git").rglob("*")):
        if path.is_file() and path.name != "gitmesh.config":
            yield path


@pytest.mark.rule("S32")
def test_a_damaged_cache_heals_by_itself(world: World, athens: Path) -> None:
    before = running(athens)
    cache = athens / "var/lib/gitmesh/git"
    for path in list(_of_cache(athens)):
        if not path.exists():
            continue
        left = path.read_bytes()[:7]
        # A new file: cut short, one that this process still has mapped would end it.
        path.unlink()
        path.write_bytes(left)
        pulled = world.pull("athens")
        if pulled.stale:
            pulled = world.pull("athens")
        assert (pulled.stale, pulled.failed) == ("", []), path.relative_to(cache)
        assert running(athens) == before


# --- what it says --------------------------------------------------------------------------------------


@pytest.mark.rule("G9")
def test_what_was_not_pushed_is_said_by_the_next_pull(world: World, athens: Path) -> None:
    (world.bare / "hooks/pre-receive").write_text("#!/bin/sh\necho nobody pushes now >&2\nexit 1\n")
    (world.bare / "hooks/pre-receive").chmod(0o755)
    world.now += REPORT_EVERY
    refs = world.refs()
    done = command(world, "athens")
    assert done.exit_code == 1 and "mailbox: nobody pushes now" in done.output
    assert world.refs() == refs
    (world.bare / "hooks/pre-receive").unlink()
    assert world.pull("athens").failed == []
    assert world.refs()[report_of("athens")] != refs[report_of("athens")]
    refs = world.refs()
    world.pull("athens")
    assert world.refs() == refs


@pytest.mark.rule("F1")
def test_the_first_root_must_be_the_one_that_was_given_by_hand(tmp_path: Path) -> None:
    world = World.begin(tmp_path)
    world.deploy()
    path = world.root("athens") / "etc/gitmesh/node.yaml"
    path.write_text(path.read_text().replace(world.installed("athens").root_sha256, "f" * 64))
    with pytest.raises(Refused):
        world.pull("athens")
    done = command(world, "athens", "--format", "json")
    assert done.exit_code == 75 and '"deploy": 0' in done.output
    assert not (world.root("athens") / "var/lib/gitmesh/accepted").exists()
    assert DATABASE not in str(content(world.root("athens")))


@pytest.mark.rule("B11")
def test_a_wait_is_told_with_its_beginning(tmp_path: Path) -> None:
    world = World.begin(tmp_path)
    world.deploy()
    begun = world.now
    first = world.pull("athens").waiting
    later = world.pull("athens", begun + 7200).waiting
    assert first and first == later, "a wait that goes on keeps its beginning"
    assert {each.since for each in first} == {begun}
