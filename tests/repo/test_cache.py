"""The cache of read files: with it, without it, and with it spoilt, every answer is the same."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitmesh import fsops
from gitmesh.core.model import Mesh
from gitmesh.core.refusal import Refusal
from gitmesh.repo import cache as caching
from gitmesh.repo.cache import Cache
from gitmesh.repo.load import load
from tests.cases.test_cases import HERE, REFUSED, RESOLVED, mesh_files
from tests.real import PROJECT
from tests.test_template import template

CASES = [*(f"refused/{name}" for name in REFUSED), *(f"resolved/{name}" for name in RESOLVED)]
NODE = b"address: 10.7.0.11\n"


def loaded(files: Mapping[str, bytes], path: Path) -> tuple[Mesh, list[Refusal]]:
    """As the commands load: with the cache at `path`, which is then kept."""
    cache = Cache(path)
    result = load(files, cache)
    cache.keep()
    return result


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_answered_alike_without_cold_and_warm(case: str, tmp_path: Path) -> None:
    files = mesh_files(HERE / case)
    path = tmp_path / "mesh.read"
    without = load(files)
    assert loaded(files, path) == without
    assert path.exists()
    assert loaded(files, path) == without


def test_the_example_mesh_too(example_mesh: Path, tmp_path: Path) -> None:
    found = (each for each in sorted(example_mesh.rglob("*")) if each.is_file())
    files = {str(each.relative_to(example_mesh)): each.read_bytes() for each in found}
    path = tmp_path / "mesh.read"
    assert loaded(files, path) == loaded(files, path) == load(files)


def test_a_warm_cache_spares_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = template()
    path = tmp_path / "mesh.read"
    first = loaded(files, path)

    def read(file: str, blob: bytes) -> None:
        raise AssertionError(f"{file} was read again")

    monkeypatch.setattr("gitmesh.repo.document.read", read)
    assert loaded(files, path) == first


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    files = template()
    path = tmp_path / "mesh.read"
    loaded(files, path)
    name = next(each for each in files if each.startswith("nodes/"))
    spoilt = files | {name: files[name] + b"surprise: 1\n"}
    assert loaded(spoilt, path) == load(spoilt)
    assert load(spoilt)[1], "or the change would not show"
    assert loaded(files, path) == load(files)


def test_the_kind_counts_and_not_the_place(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "mesh.read")
    cache.add("node", NODE, {"address": "10.7.0.11"})
    assert cache.find("node", NODE) == (True, {"address": "10.7.0.11"})
    assert cache.find("assignment", NODE) == (False, None)
    assert cache.find("node", NODE + b"\n") == (False, None)


def test_each_finding_is_a_value_of_its_own(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "mesh.read")
    cache.add("node", NODE, {"labels": ["linux"]})
    cache.find("node", NODE)[1]["labels"].append("changed")
    assert cache.find("node", NODE) == (True, {"labels": ["linux"]})


# --- what is spoilt ------------------------------------------------------------------------------------


def _signed(body: bytes) -> bytes:
    return b"gitmesh %s %s\n" % (caching._maker().encode(), hashlib.sha256(body).hexdigest().encode()) + body


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda kept: b"",
    "torn": lambda kept: kept[: len(kept) // 2],
    "a bit turned": lambda kept: kept[:-5] + bytes([kept[-5] ^ 1]) + kept[-4:],
    "another version": lambda kept: kept.replace(b"gitmesh ", b"gitmesh 0", 1),
    "not text": lambda kept: os.urandom(64),
    "whole, and no list": lambda kept: _signed(b"nonsense\n"),
    "whole, and no JSON": lambda kept: _signed(b"".join(_without_values(kept))),
}


def _without_values(kept: bytes) -> list[bytes]:
    return [line.partition(b"\t")[0] + b"\t{\n" for line in kept.splitlines()[1:]]


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_spoilt_is_ignored_and_written_anew(how: str, tmp_path: Path) -> None:
    files = template()
    path = tmp_path / "mesh.read"
    expected = loaded(files, path)
    whole = path.read_bytes()
    fsops.write(path, SPOILT[how](whole), 0o600)
    assert loaded(files, path) == expected
    assert loaded(files, path) == expected
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines()) or how == "whole, and no JSON"


def test_what_others_may_read_or_a_link_gives_is_ignored(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "mesh.read", tmp_path / "elsewhere"
    loaded(template(), path)
    path.chmod(0o644)
    assert not Cache(path)._kept
    path.chmod(0o600)
    assert Cache(path)._kept
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert not Cache(path)._kept


def test_a_folder_that_can_not_be_written_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert loaded(template(), tmp_path / "file/mesh.read") == load(template())


def test_other_schemas_or_readers_make_other_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "mesh.read"
    loaded(template(), path)
    monkeypatch.setattr(caching, "_READERS", caching._READERS[1:])
    caching._maker.cache_clear()
    try:
        assert not Cache(path)._kept
    finally:
        caching._maker.cache_clear()


# --- bounds --------------------------------------------------------------------------------------------


def test_it_is_bounded_and_what_was_not_used_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "LIMIT", 2_000)
    monkeypatch.setattr(caching, "WORTH", 1_000)
    path = tmp_path / "mesh.read"
    for number in range(40):
        cache = Cache(path)
        cache.find("node", b"first")
        cache.add("node", b"first" if number == 0 else b"%d" % number, {"address": "10.0.0.1"})
        cache.keep()
        assert path.stat().st_size <= 2_000
    last = Cache(path)
    assert last.find("node", b"first")[0], "used in every run"
    assert last.find("node", b"39")[0]
    assert not last.find("node", b"1")[0]


def test_little_that_is_new_is_not_worth_writing(tmp_path: Path) -> None:
    path = tmp_path / "mesh.read"
    cache = Cache(path)
    for number in range(100):
        cache.add("node", b"%d" % number, {})
    cache.keep()
    before = path.stat().st_ino
    little = Cache(path)
    little.add("node", b"new", {})
    little.keep()
    assert path.stat().st_ino == before


def test_few_repos_are_kept_and_in_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MOST_FILES", 3)
    for number in range(5):
        cache = Cache.of(tmp_path / f"repo{number}", {"XDG_CACHE_HOME": str(tmp_path)})
        cache.add("node", NODE, {})
        cache.keep()
        assert cache.path is not None
        os.utime(cache.path, ns=(number, number))
    kept = list((tmp_path / "gitmesh").iterdir())
    assert {each.stat().st_mtime_ns for each in kept} == {2, 3, 4}
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept} == {0o600}
    assert stat.S_IMODE((tmp_path / "gitmesh").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.cache/gitmesh"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/cache/ada"}, "/var/cache/ada/gitmesh"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "relative"}, "/home/ada/.cache/gitmesh"),
        ({"HOME": "/home/ada", "GITMESH_CACHE": "off"}, None),
        ({}, None),
    ],
)
def test_where_it_is(environment: dict[str, str], place: str | None, tmp_path: Path) -> None:
    path = Cache.of(tmp_path, environment).path
    assert (None if path is None else str(path.parent)) == place


# --- in the commands -----------------------------------------------------------------------------------


def check(mesh: Path, home: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`gitmesh check` in a process of its own."""
    command = [sys.executable, "-m", "gitmesh", "check", "--format", "json", "--repo", str(mesh)]
    own = {**os.environ, "XDG_CACHE_HOME": str(home), "PYTHONPATH": str(PROJECT), **environment}
    return subprocess.run(command, env=own, capture_output=True, check=False)


@pytest.mark.parametrize("spoilt", [False, True])
def test_check_says_the_same_with_it_on_and_off(spoilt: bool, tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    shutil.copytree(PROJECT / "mesh-repo-template", mesh)
    if spoilt:
        (mesh / "nodes/athens.yaml").write_text("address: no address\n")
    off = check(mesh, tmp_path, GITMESH_CACHE="off")
    assert not (tmp_path / "gitmesh").exists()
    cold = check(mesh, tmp_path)
    assert list((tmp_path / "gitmesh").iterdir())
    warm = check(mesh, tmp_path)
    assert (off.stdout, off.returncode) == (cold.stdout, cold.returncode) == (warm.stdout, warm.returncode)
    assert json.loads(off.stdout)["v"] == 1
    assert off.returncode == (3 if spoilt else 0)


def test_two_runs_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    shutil.copytree(PROJECT / "mesh-repo-template", mesh)
    command = [sys.executable, "-m", "gitmesh", "check", "--repo", str(mesh)]
    own = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    running = [subprocess.Popen(command, env=own, stdout=subprocess.PIPE) for _ in range(4)]
    said = {each.communicate()[0] for each in running}
    assert len(said) == 1
    (kept,) = (tmp_path / "gitmesh").iterdir()
    assert Cache(kept)._kept


# --- any edit ------------------------------------------------------------------------------------------

EDITS = st.lists(
    st.tuples(st.sampled_from(sorted(template())), st.integers(0, 400), st.sampled_from(b"x: -\n'{#1\xe9")),
    min_size=1,
    max_size=4,
)


@given(edits=EDITS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_edits_are_answered_as_without(edits: list[tuple[str, int, int]], tmp_path: Path) -> None:
    files = template()
    path = tmp_path / "mesh.read"
    for name, place, byte in edits:
        blob = files[name]
        files[name] = blob[:place] + bytes([byte]) + blob[place:]
        assert loaded(files, path) == load(files)
