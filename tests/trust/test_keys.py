"""Public keys' spelling, and the files of private ones."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmesh.trust.keys import (
    AgeKey,
    Algorithm,
    KeyRefused,
    PublicKey,
    SealingKey,
    SigningKey,
    is_age_recipient,
    raw_seal,
    raw_sign,
    read_key,
    write_key,
)
from gitmesh.trust.secret import Secret
from tests.real import require

_READERS: dict[type[SigningKey | SealingKey | AgeKey], Callable[[Path], str]] = {
    SigningKey: lambda path: read_key(path, SigningKey).public_text,
    SealingKey: lambda path: read_key(path, SealingKey).public_text,
    AgeKey: lambda path: read_key(path, AgeKey).public_text,
}


def test_a_public_key_is_read_as_it_is_written() -> None:
    sign, seal = SigningKey.generate(), SealingKey.generate()
    assert raw_sign(sign.public_text) == sign.public
    assert raw_seal(seal.public_text) == seal.public
    key = PublicKey.parse(sign.public_text, Algorithm.ED25519)
    assert str(key) == sign.public_text == f"ed25519:{sign.public_text[8:]}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ed25519",
        "ed25519:",
        "ed25519:QQ==",
        "x25519:" + "A" * 43 + "=",
        "ed25519:" + "A" * 42 + "B=",  # stray bits
        "ed25519:" + "A" * 43 + "=\n",
        "ED25519:" + "A" * 43 + "=",
    ],
)
def test_what_is_no_signing_key(text: str) -> None:
    with pytest.raises(KeyRefused, match="base64"):
        raw_sign(text)


@pytest.mark.parametrize("kind", _READERS)
def test_a_private_key_shows_nothing_of_itself(kind: type[SigningKey | SealingKey | AgeKey]) -> None:
    key = kind.generate()
    private = key.to_file().decode().split(":")[-1].split("\n")[-2 if kind is AgeKey else 0]
    assert len(private) > 40
    for shown in (repr(key), str(key), f"{key}", repr([key]), repr({"key": key})):
        assert private not in shown
        assert key.public_text in shown
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            take(key)


@pytest.mark.parametrize("kind", _READERS)
def test_a_key_file_is_private_and_comes_back(
    tmp_path: Path, kind: type[SigningKey | SealingKey | AgeKey]
) -> None:
    tmp_path.chmod(0o755)
    key, path = kind.generate(), tmp_path / "key"
    write_key(path, key)
    assert path.stat().st_mode & 0o777 == 0o600
    read: dict[type, str] = {}
    for each, attempt in _READERS.items():
        try:
            read[each] = attempt(path)
        except KeyRefused as refused:
            assert "holds no" in refused.message
    assert read == {kind: key.public_text}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    directory = tmp_path / "keys"
    directory.mkdir(mode=0o700)
    path = directory / "sign"
    write_key(path, SigningKey.generate())
    return path


def _fixed_by(fix: str | None, path: Path) -> None:
    """Running the command that the refusal names makes the key usable."""
    assert fix is not None
    subprocess.run(fix.split(), check=True)
    assert read_key(path, SigningKey).public


@pytest.mark.rule("S56")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o610])
def test_a_key_that_others_may_read(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(KeyRefused, match="others may read") as caught:
        read_key(key_file, SigningKey)
    assert caught.value.fix == f"chmod 600 {key_file}"
    _fixed_by(caught.value.fix, key_file)


@pytest.mark.rule("S56")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o702])
def test_a_key_in_a_directory_that_others_may_write(key_file: Path, mode: int) -> None:
    key_file.parent.chmod(mode)
    with pytest.raises(KeyRefused, match="others may write") as caught:
        read_key(key_file, SigningKey)
    assert caught.value.fix == f"chmod go-w {key_file.parent}"
    _fixed_by(caught.value.fix, key_file)


@pytest.mark.rule("S56")
def test_a_key_that_is_a_link(key_file: Path) -> None:
    link = key_file.with_name("link")
    link.symlink_to(key_file)
    with pytest.raises(KeyRefused, match="a link") as caught:
        read_key(link, SigningKey)
    assert caught.value.fix == f"ls -l {link}"


@pytest.mark.real
@pytest.mark.rule("S56")
def test_another_users_key(key_file: Path) -> None:
    require(os.geteuid() == 0, "giving a file to another user needs root")
    os.chown(key_file, 65534, -1)
    with pytest.raises(KeyRefused, match="another user's file") as caught:
        read_key(key_file, SigningKey)
    _fixed_by(caught.value.fix, key_file)
    os.chown(key_file.parent, 65534, -1)
    with pytest.raises(KeyRefused, match="directory is another user's") as caught:
        read_key(key_file, SigningKey)
    _fixed_by(caught.value.fix, key_file)


def test_no_key_file_and_what_is_no_key(key_file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_key(key_file.with_name("none"), SigningKey)
    for content in (b"", b"\xff", b"ed25519-private:GMCANARY\n", key_file.read_bytes() * 2):
        key_file.write_bytes(content)
        with pytest.raises(KeyRefused) as caught:
            read_key(key_file, SigningKey)
        assert "GMCANARY" not in str(caught.value)


def test_an_age_file_holds_one_key(key_file: Path) -> None:
    key = AgeKey.generate()
    assert is_age_recipient(key.public_text)
    assert not is_age_recipient("age1nonsense")
    assert AgeKey.from_file(f"# created: today\n{key.identity()}\n\n").public_text == key.public_text
    for text in ("", "# nothing\n", f"{key.identity()}\n{key.identity()}\n", "AGE-SECRET-KEY-1GMCANARY\n"):
        with pytest.raises(KeyRefused) as caught:
            AgeKey.from_file(text)
        assert "GMCANARY" not in str(caught.value)


@pytest.mark.rule("S53")
def test_a_secret_shows_nothing_of_itself() -> None:
    secret = Secret("GMCANARYvalue")
    for shown in (repr(secret), str(secret), f"{secret}", f"{[secret]}", "%s" % secret):  # noqa: UP031 - all ways
        assert "GMCANARY" not in shown
    assert secret.text() == "GMCANARYvalue"
    assert secret == Secret(b"GMCANARYvalue")
    assert secret != Secret("GMCANARYother")
    assert secret != "GMCANARYvalue"
    with pytest.raises(TypeError):
        hash(secret)
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(ValueError, match="no UTF-8") as caught:
        Secret(b"GMCANARY\xff").text()
    assert caught.value.__context__ is None or caught.value.__suppress_context__
