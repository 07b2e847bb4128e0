"""What a node says to others: when it is due, what is kept of it, and what goes into each document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmesh.core.declaration import AssignmentSpec, ConsumerSpec, Declaration, ProvisionSpec
from gitmesh.core.model import Json
from gitmesh.fsops import Root
from gitmesh.host.mailbox import REPORT_EVERY, Outbox, Sent, is_due, load_outbox, save_outbox, send
from gitmesh.host.provide import Provided
from gitmesh.host.said import answers_by_node
from gitmesh.host.state import StateDamaged
from gitmesh.repo.objects import parents_of, read_files
from gitmesh.repo.transport import init_bare, remote_refs

REF = "refs/gitmesh/report/athens"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    with Root(tmp_path) as root:
        yield root


@pytest.mark.rule("E1")
@pytest.mark.parametrize(
    ("sent", "said", "now", "due"),
    [
        (Sent(), None, 0, False),
        (Sent(), {}, 0, False),
        (Sent(), {"a": 1}, 0, True),
        (Sent(1, 100, {"a": 1}, True), {"a": 1}, 100 + REPORT_EVERY - 1, False),
        (Sent(1, 100, {"a": 1}, True), {"a": 1}, 100 + REPORT_EVERY, True),
        (Sent(1, 100, {"a": 1}, True), {"a": 2}, 101, True),
        (Sent(1, 100, {"a": 1}, True), {}, 101, True),
        (Sent(1, 100, {"a": 1}), {"a": 1}, 101, True),
    ],
)
def test_what_is_new_or_was_not_pushed_is_due(sent: Sent, said: Json, now: int, due: bool) -> None:
    assert is_due(sent, said, now, REPORT_EVERY) is due


def test_without_a_time_only_what_is_new_is_due() -> None:
    assert not is_due(Sent(1, 0, {"a": 1}, True), {"a": 1}, 10**9)


def test_the_outbox_is_kept(root: Root) -> None:
    assert load_outbox(root) == Outbox()
    outbox = Outbox({REF: Sent(3, 100, {"a": [1, None]}, True)})
    save_outbox(root, outbox)
    assert load_outbox(root) == outbox
    assert load_outbox(root).of("refs/gitmesh/confirms/athens") == Sent()


@pytest.mark.rule("S42")
@pytest.mark.parametrize("blob", [b"", b"{", b"[]", b'{"refs": {"x": 1}}'])
def test_a_damaged_outbox_is_not_guessed(root: Root, tmp_path: Path, blob: bytes) -> None:
    save_outbox(root, Outbox())
    path = tmp_path / "var/lib/gitmesh/mailbox.json"
    path.write_bytes(blob)
    with pytest.raises(StateDamaged) as raised:
        load_outbox(root)
    assert str(path) in str(raised.value) and "must not go back" in raised.value.way_out


@pytest.mark.rule("F7")
def test_each_ref_is_one_commit_without_history(tmp_path: Path) -> None:
    cache, mailbox = tmp_path / "cache", tmp_path / "mailbox.git"
    for each in (cache, mailbox):
        init_bare(each)
    for number in (1, 2):
        held = {"report.json": json.dumps(number).encode()}
        send(cache, mailbox.as_uri(), {REF: held}, "athens", 1000 + number)
        refs = remote_refs(mailbox.as_uri())
        assert refs.keys() == {REF}
        assert read_files(mailbox, refs[REF]) == held
        assert parents_of(mailbox, refs[REF]) == ()
    send(cache, mailbox.as_uri(), {}, "athens", 2000)
    assert remote_refs(mailbox.as_uri()) == refs


@pytest.mark.rule("F4")
def test_a_consumer_keeps_its_answer_while_it_is_one() -> None:
    consumers = tuple(
        ConsumerSpec(to, "x", node, "::1")
        for to, node in (("gitea@athens.stats", "athens"), ("wiki@delphi.stats", "delphi"))
    )
    spec = AssignmentSpec("umami", provides={"analytics-site": ProvisionSpec("exec", consumers=consumers)})
    declared = Declaration("0" * 32, "hellas", "sparta", "::1", "/", assignments={"umami@sparta": spec})
    last = {"gitea@athens": {"stats": {"site": "old"}}, "gone@athens": {"stats": {"site": "gone"}}}
    outbox = Outbox({"refs/gitmesh/answers/sparta/athens": Sent(1, 1, last, True)})
    kept = answers_by_node("sparta", declared, Provided(), outbox)
    assert kept == {"athens": {"gitea@athens": {"stats": {"site": "old"}}}}
    provided = Provided(answers={"wiki@delphi.stats": {"site": "new"}})
    assert answers_by_node("sparta", declared, provided, outbox) == {
        **kept,
        "delphi": {"wiki@delphi": {"stats": {"site": "new"}}},
    }
