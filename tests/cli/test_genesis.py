"""`gitmesh genesis`: the mesh's first keys, made where they are used and written once."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from gitmesh.trust.keys import AgeKey, SealingKey, SigningKey, read_key, write_key
from gitmesh.trust.root import open_root
from tests.cli.begun import Begun, contents, modes
from tests.cli.small_mesh import FILES

PRIVATE = {
    "etc/gitmesh/vault/sign": SigningKey,
    "etc/gitmesh/vault/seal": SealingKey,
    "etc/gitmesh/vault/age": AgeKey,
    "etc/gitmesh/controller/deploy.key": SigningKey,
    "etc/gitmesh/recovery.age": AgeKey,
    "etc/gitmesh/root.key": SigningKey,
}
ROOT = "trust/1.root.json"


@pytest.fixture
def before(tmp_path: Path) -> Begun:
    """The mesh before genesis."""
    return Begun.make(tmp_path)


@pytest.mark.rule("C8", "C3", "S55")
def test_genesis_makes_the_foundation_and_nothing_else(before: Begun) -> None:
    done = before.genesis()
    assert done.exit_code == 0
    root = before.root("delphi")
    assert contents(root).keys() == PRIVATE.keys()
    for path in PRIVATE:
        assert modes(root)[path] == 0o600, path
        assert f"  {root / path}  " in done.output, "each file is named with what it is"
    for folder in ("etc/gitmesh/vault", "etc/gitmesh/controller"):
        assert modes(root)[folder] == 0o700


@pytest.mark.rule("C3")
def test_the_root_in_the_clone_names_the_public_halves_alone(before: Begun) -> None:
    before.genesis()
    root, folder = open_root((before.mesh / ROOT).read_bytes()).root, before.root("delphi")
    sign = read_key(folder / "etc/gitmesh/vault/sign", SigningKey)
    age = read_key(folder / "etc/gitmesh/vault/age", AgeKey)
    assert (root.roles.vault.sign, root.roles.vault.age) == (sign.public_text, age.public_text)
    assert root.roles.vault.node == "delphi"
    controller = read_key(folder / "etc/gitmesh/controller/deploy.key", SigningKey)
    assert root.roles.approver.keys == root.roles.deployer.keys == (controller.public_text,)
    recovery = read_key(folder / "etc/gitmesh/recovery.age", AgeKey)
    assert root.recovery.age == (recovery.public_text,)
    private = [blob for path, blob in contents(folder).items() if path in PRIVATE]
    secrets = {line for blob in private for line in blob.split() if b"private:" in line or b"SECRET" in line}
    assert len(secrets) == len(PRIVATE)
    for blob in contents(before.mesh).values():
        assert not any(secret.rpartition(b":")[2] in blob for secret in secrets)


def test_the_sha256_is_printed_and_shown_again(before: Begun) -> None:
    done = before.genesis()
    assert before.sha256() == open_root((before.mesh / ROOT).read_bytes()).digest
    assert f"\n  {before.sha256()}\n" in done.output


@pytest.mark.rule("C3")
def test_a_second_genesis_is_refused_and_changes_nothing(before: Begun) -> None:
    before.genesis()
    held = contents(before.folder)
    done = before.genesis()
    assert done.exit_code == 1
    assert "is there already: this mesh has begun\n  try: gitmesh genesis --show" in done.output
    assert contents(before.folder) == held


def test_a_genesis_that_was_interrupted_is_run_again_and_writes_over_no_key(before: Begun) -> None:
    before.genesis()
    held = contents(before.root("delphi"))
    (before.mesh / ROOT).unlink()
    (before.root("delphi") / "etc/gitmesh/recovery.age").unlink()
    done = before.genesis()
    assert done.exit_code == 0
    after = contents(before.root("delphi"))
    assert {path for path in held if held[path] != after[path]} == {"etc/gitmesh/recovery.age"}
    assert done.output.count("(it was there already)") == len(PRIVATE) - 1


def test_without_a_holder_of_the_vault_it_says_the_command(tmp_path: Path) -> None:
    before = Begun.make(tmp_path, FILES | {"assignments/delphi/gitmesh-vault.yaml": ""})
    done = before.genesis()
    assert done.exit_code == 1
    assert "nobody holds the seat `mesh-vault`" in done.output
    assert done.output.endswith("  try: gitmesh assign gitmesh-vault delphi --hold mesh-vault\n")
    assert not before.root("delphi").exists()


def test_a_root_key_that_is_there_is_taken_and_none_is_made(before: Begun) -> None:
    key = SigningKey.generate()
    write_key(before.folder / "root.key", key)
    done = before.genesis("--root-key", before.folder / "root.key")
    assert done.exit_code == 0
    assert not (before.root("delphi") / "etc/gitmesh/root.key").exists()
    assert open_root((before.mesh / ROOT).read_bytes()).root.roles.root.keys == (key.public_text,)
    assert "Take the recovery key off this machine now." in done.output


@pytest.mark.rule("S56")
def test_a_root_key_that_others_may_read_is_refused_with_the_fix(before: Begun) -> None:
    path = before.folder / "root.key"
    write_key(path, SigningKey.generate())
    path.chmod(0o640)
    done = before.genesis("--root-key", path)
    assert done.exit_code == 1
    assert done.output.endswith(f"  try: chmod 600 {path}\n")
    assert not before.root("delphi").exists()


def test_a_root_key_that_is_not_there_or_is_none(before: Begun) -> None:
    done = before.genesis("--root-key", before.folder / "nowhere.key")
    assert (done.exit_code, "No such file or directory" in done.output) == (2, True)
    path = before.folder / "noise"
    path.write_bytes(b"GMCANARY\n")
    path.chmod(0o600)
    done = before.genesis("--root-key", path)
    assert done.exit_code == 1
    assert "holds no `ed25519-private:…` line" in done.output
    assert "GMCANARY" not in done.output


@pytest.mark.parametrize("blob", [b"", b"{}", b"\xff\x00", b'{"payload": "GMCANARY"}'])
def test_a_root_file_that_is_broken_is_named(before: Begun, blob: bytes) -> None:
    (before.mesh / "trust").mkdir()
    (before.mesh / ROOT).write_bytes(blob)
    done = before.genesis("--show")
    assert done.exit_code == 1
    assert done.output.startswith(f"error: {before.mesh / ROOT}: ")
    assert done.output.endswith(f"  try: git checkout -- {ROOT}\n")
    assert "GMCANARY" not in done.output


def test_without_a_root_there_is_none_to_show(before: Begun) -> None:
    done = before.genesis("--show")
    assert (done.exit_code, done.output.endswith("  try: gitmesh genesis\n")) == (1, True)


def test_without_the_right_to_write_it_says_who_has_it(
    before: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("gitmesh.fsops.make_directory", locked)
    done = before.genesis()
    assert done.exit_code == 1
    assert "Permission denied; it is root's, or choose --root" in done.output
    assert done.output.endswith("  try: sudo gitmesh genesis\n")
