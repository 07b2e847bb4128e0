"""What leaves a node: everything may, and what can't be removed is tried again (cases C101, C107)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gitmesh import fsops
from tests.host.declared import DECLARATION
from tests.host.test_apply import PASSWORD_FILE, Node, operations


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    fsops.fault = fsops._no_fault
    made.root.close()


EMPTY = replace(DECLARATION, assignments={})


@pytest.mark.rule("E5", "G12")
def test_c101_the_last_module_leaves_an_empty_node_and_its_data(node: Node) -> None:
    node.apply()
    precious = node.path / "var/lib/mesh/app/data/precious"
    precious.write_text("data")
    outcomes = node.apply(EMPTY)
    assert outcomes and {each.result for each in outcomes.values()} == {"left"}
    assert not any(node.runtime.running.values())
    assert precious.read_text() == "data"
    assert node.apply(EMPTY) == {}, "an empty declaration is applied, and there is nothing more to do"


@pytest.mark.rule("G12", "E5")
def test_c107_what_can_not_be_removed_is_said_and_tried_again(node: Node) -> None:
    node.apply()
    gone = node.path / PASSWORD_FILE.removeprefix("/")
    assert gone.exists()

    def busy(operation: str, shown: str) -> None:
        if shown == node.shown(PASSWORD_FILE) and operation in ("unlink", "remove"):
            raise OSError(16, "Device or resource busy")

    fsops.fault = busy
    outcome = node.apply(EMPTY)["app@athens"]
    assert outcome.result == "failed" and gone.exists()
    fsops.fault = fsops._no_fault
    assert operations(lambda: node.apply(EMPTY)) != []
    assert not gone.exists()
    assert node.apply(EMPTY) == {}
