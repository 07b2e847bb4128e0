"""Rows of the list of real cases about YAML (C02 to C65): each is a file that broke some other program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gitmesh.assets import asset
from gitmesh.core.refusal import Code, Refusal, Span
from gitmesh.repo.document import read
from gitmesh.repo.edit import render
from gitmesh.repo.load import load
from gitmesh.repo.strict import same
from tests.cli.small_mesh import FILES


def refused(text: str) -> list[tuple[Code, tuple[int, int]]]:
    """The code and place of each refusal."""
    value, refusals = read("modules/x/module.yaml", text.encode())
    assert value is None
    return [(each.code, place(each)) for each in refusals]


def place(refusal: Refusal) -> tuple[int, int]:
    assert refusal.at.span is not None
    return refusal.at.span.line, refusal.at.span.column


def environment(written: str) -> Any:
    """The refusals of a module with `written` as a variable's value, or the text that it has there."""
    module = FILES["modules/gitea/module.yaml"].replace("env:\n", f"env:\n      WORD: {written}\n", 1)
    texts = {**FILES, "modules/gitea/module.yaml": module}
    mesh, refusals = load({name: text.encode() for name, text in texts.items()})
    if refusals:
        return [each.code for each in refusals]
    return mesh.modules["gitea"].containers["gitea"].env["WORD"]


@pytest.mark.rule("S26")
def test_c02_a_bare_equals_sign_is_text() -> None:
    assert read("f", b"k: =\n") == ({"k": "="}, [])
    assert read("f", b"- =\n- [=]\n") == (["=", ["="]], [])
    assert environment("=") == ("=",)


@pytest.mark.rule("S25")
def test_c04_a_key_that_stands_twice_is_refused_with_both_lines() -> None:
    value, [refusal] = read("f", b"name: a\nother: x\nname: b\n")
    assert value is None
    assert (refusal.code, place(refusal)) == (Code.YAML_DUPLICATE_KEY, (3, 1))
    assert "line 1" in refusal.message
    assert [each.at.span for each in refusal.related] == [Span(1, 1, 1, 5)]


@pytest.mark.rule("S26")
def test_c07_an_octal_number_is_refused_and_written_quoted() -> None:
    value, [refusal] = read("f", b"mode: 0600\n")
    assert (value, refusal.code, place(refusal)) == (None, Code.YAML_SCALAR, (1, 7))
    assert "'0600'" in refusal.answers[0].text
    assert render({"mode": "0600"}) == "{mode: '0600'}"


@settings(max_examples=200, deadline=None)
@example("no")
@example("On")
@example("12:30")
@example("0o17")
@example("1_000")
@example("=")
@example("<<")
@example("1e3")
@example("2026-01-01")
@given(
    st.text(st.characters(exclude_categories=["C", "Z"]), max_size=6)
    | st.from_regex(r"[-+.0-9_:eExo]{1,6}", fullmatch=True)
)
def test_c07_what_is_written_reads_alike_under_yaml_1_1_and_1_2(text: str) -> None:
    written = f"k: {render(text)}\n"
    assert same(read("f", written.encode())[0], {"k": text})
    for version in ((1, 1), (1, 2)):
        reader = YAML(typ="safe", pure=True)
        reader.version = version
        assert same(reader.load(written), {"k": text}), version


@pytest.mark.rule("S26")
@pytest.mark.parametrize("written", ["On", "yes", "no", "off", "n", "Y"])
def test_c08_a_word_that_yaml_1_1_takes_for_a_boolean_is_the_word(written: str) -> None:
    assert environment(written) == (written,)


@pytest.mark.rule("S26")
@pytest.mark.parametrize("written", ["1.10", "017", "1_000", "12:30", "2026-01-01", "1e3"])
def test_c08_a_value_that_readers_disagree_about_is_refused(written: str) -> None:
    assert environment(written) == [Code.YAML_SCALAR]
    assert environment(f"'{written}'") == (written,)


@pytest.mark.rule("S26")
@pytest.mark.parametrize("written", ["12: x\n", "~: x\n", "true: x\n", "a: {12: x}\n", "? 12\n: x\n"])
def test_c10_a_key_that_is_no_text_is_refused_at_its_place(written: str) -> None:
    assert all(code in (Code.YAML_SCALAR, Code.YAML_FEATURE) for code, _ in refused(written))
    _, refusals = read("f", written.encode())
    where = place(refusals[-1])
    assert written.splitlines()[where[0] - 1][where[1] - 1 :].startswith(("12", "~", "true", "? 12"))


@pytest.mark.rule("S26")
def test_c11_a_numeric_key_below_a_setting_is_refused_up_front() -> None:
    assert refused("values: {shape: {versions: {1: a}}}\n") == [(Code.YAML_SCALAR, (1, 29))]
    assert read("f", b"values: {shape: {versions: {'1': a}}}\n") == (
        {"values": {"shape": {"versions": {"1": "a"}}}},
        [],
    )


@pytest.mark.rule("S25")
@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/object/new:os.system",
        "!<tag:yaml.org,2002:python/name:os.system>",
    ],
)
def test_c16_a_tag_is_refused_and_nothing_is_run(tmp_path: Path, tag: str) -> None:
    witness = tmp_path / "was-run"
    module = f"module: gitea\nabout: {tag} ['touch {witness}']\n"
    texts = {**FILES, "modules/gitea/module.yaml": module}
    _, refusals = load({name: text.encode() for name, text in texts.items()})
    assert [(each.code, each.at.file) for each in refusals] == [
        (Code.YAML_FEATURE, "modules/gitea/module.yaml")
    ]
    assert not witness.exists()


def test_c65_git_that_rewrites_line_ends_changes_no_sealed_file_and_no_meaning(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(asset("mesh-repo-template"), tmp_path / "mesh"))
    sealed = {f"{each}/one.yaml": b"id: ENC[one]\nvalue: ENC[two]\n" for each in ("handed", "trust")}
    for name, blob in sealed.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(blob)

    def git(*arguments: str) -> None:
        command = ["git", "-c", "core.autocrlf=true", "-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run([*command, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    before = load(_files(folder))[0]
    git("rm", "-rq", "--cached", ".")
    git("reset", "-q", "--hard")
    for each in folder.rglob("*.yaml"):
        each.unlink()
    git("checkout", "-q", ".")
    assert b"\r\n" in (folder / "mesh.yaml").read_bytes()
    for name, blob in sealed.items():
        assert (folder / name).read_bytes() == blob
    after, refusals = load(_files(folder))
    assert [each for each in refusals if each.code is not Code.SCHEMA] == []
    assert (after.assignments, after.nodes, after.contracts) == (
        before.assignments,
        before.nodes,
        before.contracts,
    )


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not each.relative_to(folder).parts[0].startswith((".", "handed", "trust"))
    }
