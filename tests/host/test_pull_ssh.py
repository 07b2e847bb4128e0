"""A node that pulls over ssh with an account of its own, from a bare repo under our hook (F7)."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitmesh.host.mailbox import send
from gitmesh.repo.transport import Declined, RepoError
from tests.host.settled import command, gone
from tests.real import PROJECT
from tests.repo.sshd import Server, serve
from tests.world import NODES, World


@dataclass(frozen=True)
class Served:
    """A mesh whose nodes reach origin over ssh only."""

    world: World
    server: Server

    def account(self, node: str, account: str) -> None:
        """Give the node's ssh the key of `account`, by the node's own configuration."""
        folder = self.server.folder
        text = (
            f"IdentityFile {folder / account}\nIdentitiesOnly yes\nConnectTimeout 5\n"
            f"UserKnownHostsFile {folder / 'known_hosts'}\nGlobalKnownHostsFile none\n"
        )
        (self.world.root(node) / "etc/gitmesh/ssh_config").write_text(text)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    accounts = {node: f"GITMESH_NODE={node}" for node in NODES}
    accounts["delphi"] += " GITMESH_VAULT=1"
    (tmp_path / "world").mkdir()
    world = World.begin(tmp_path / "world")
    world.deploy()
    hook = world.bare / "hooks/pre-receive"
    shutil.copy(PROJECT / "hooks/pre-receive", hook)
    hook.chmod(0o755)
    with serve(tmp_path / "sshd", accounts) as server:
        found = Served(world, server)
        for node in NODES:
            found.account(node, node)
            file = world.root(node) / "etc/gitmesh/node.yaml"
            file.write_text(file.read_text().replace(world.origin, server.url(world.bare)))
        yield found


@pytest.mark.real
@pytest.mark.rule("F7", "E1")
def test_each_node_pulls_and_writes_only_its_own_refs(served: Served) -> None:
    world = served.world
    before = world.refs()
    for node, own in (
        ("delphi", {"report/delphi", "sealed/athens", "sealed/sparta"}),
        ("sparta", {"report/sparta"}),
        ("athens", {"report/athens"}),
    ):
        pulled = world.pull(node)
        assert (pulled.stale, pulled.seq) == ("", 1)
        after = world.refs()
        changed = {ref.removeprefix("refs/gitmesh/") for ref in after if after[ref] != before.get(ref)}
        assert changed == own
        before = after
    assert (world.root("sparta") / "run/gitmesh/secrets/postgres@sparta").is_dir()
    refs = world.refs()
    assert world.pull("athens").new == []
    assert world.refs() == refs


@pytest.mark.real
@pytest.mark.rule("F7")
def test_another_nodes_ref_is_declined(served: Served) -> None:
    world = served.world
    world.pull("athens")
    refs = world.refs()
    installed = world.installed("athens")
    cache = world.root("athens") / "var/lib/gitmesh/git"
    for ref in ("refs/gitmesh/report/sparta", "refs/gitmesh/sealed/athens", "refs/heads/main"):
        with pytest.raises(Declined) as raised:
            send(cache, installed.mailbox, {ref: {"x.json": b"{}"}}, "athens", world.now, installed.access())
        assert f"node athens may not update {ref}" in str(raised.value)
    assert world.refs() == refs


@pytest.mark.real
@pytest.mark.rule("F7")
def test_a_node_with_another_nodes_account_says_what_was_declined(served: Served) -> None:
    served.account("athens", "sparta")
    done = command(served.world, "athens")
    assert done.exit_code == 1
    assert "mailbox: gitmesh: refused: node sparta may not update refs/gitmesh/report/athens" in done.output
    served.account("athens", "athens")
    assert served.world.pull("athens").failed == []
    assert "refs/gitmesh/report/athens" in served.world.refs()


@pytest.mark.real
@pytest.mark.rule("F7", "E2")
def test_a_node_without_an_account_keeps_what_runs(served: Served) -> None:
    world = served.world
    world.pull("athens")
    served.account("athens", "stranger")
    done = command(world, "athens")
    assert done.exit_code == 75 and "keeps running deploy 1" in done.output
    served.account("athens", "athens")
    served.server.know("stranger")
    done = command(world, "athens")
    assert done.exit_code == 75 and "host key" in done.output
    served.server.know("host")
    assert world.pull("athens").stale == ""


def test_without_a_configuration_of_its_own_the_users_ssh_counts(tmp_path: Path) -> None:
    world = World.begin(tmp_path)
    assert world.installed("athens").access().ssh == ()
    (world.root("athens") / "etc/gitmesh/ssh_config").write_text("")
    assert shlex.join(world.installed("athens").access().ssh).startswith("-F /")
    with gone(world), pytest.raises(RepoError):
        world.pull("athens")
