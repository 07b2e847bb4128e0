"""The mesh that ships, and the synthetic ones made of it, are meshes that resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.synthetic import mesh_files
from gitmesh.core.record import Record
from gitmesh.core.refusal import Refusal, ordered
from gitmesh.core.resolve import resolve
from gitmesh.repo.document import check, read
from gitmesh.repo.load import load
from tests.real import PROJECT

TEMPLATE = PROJECT / "mesh-repo-template"
KINDS = {"contracts": "contract", "modules": "module", "nodes": "node", "assignments": "assignment"} | {
    "catalogue-ratchet.yaml": "ratchet"
}


def template() -> dict[str, bytes]:
    """The template's files by name, as a tree gives them: nothing that begins with a dot."""
    return {
        path.relative_to(TEMPLATE).as_posix(): path.read_bytes()
        for path in sorted(TEMPLATE.rglob("*"))
        if path.is_file() and not path.relative_to(TEMPLATE).parts[0].startswith(".")
    }


def refusals_of(files: dict[str, bytes]) -> tuple[Refusal, ...]:
    """Everything that a mesh is refused for, with an empty record."""
    mesh, refusals = load(files)
    return ordered([*refusals, *resolve(mesh, Record()).refusals])


DOCUMENTS = sorted(name for name in template() if name.endswith(".yaml"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_file_is_what_its_schema_says(name: str) -> None:
    value, refusals = read(name, template()[name])
    assert refusals == []
    assert check(KINDS.get(name.partition("/")[0], "mesh"), name, value) == []


def test_it_resolves() -> None:
    assert refusals_of(template()) == ()


@pytest.mark.parametrize(
    "left_out", ["assignments/sparta/postgres.yaml", "assignments/delphi/gitmesh-vault.yaml"]
)
def test_it_is_refused_without_what_others_need(left_out: str) -> None:
    files = template()
    del files[left_out]
    assert refusals_of(files) != ()


@pytest.mark.rule("B10")
def test_three_things_left_open_are_said_at_once() -> None:
    """What the README shows and the demo begins with."""
    files = template() | {
        "assignments/athens/gitea.yaml": b"# the team's forge; ask Ada before moving it\n",
        "assignments/delphi/gitmesh-vault.yaml": b"",
        "assignments/delphi/postgres.yaml": b"",
    }
    for name in (
        "athens/miniflux",
        "athens/umami",
        "athens/vaultwarden",
        "sparta/redis",
        "delphi/gitmesh-controller",
    ):
        del files[f"assignments/{name}.yaml"]
    said = {each.code.value for each in refusals_of(files)}
    assert said == {"ambiguous-provider", "value-missing", "seat-unheld"}


def test_what_a_newcomer_copies_holds_no_key_and_no_run_bit() -> None:
    for path in TEMPLATE.rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or not path.stat().st_mode & 0o111, (
            f"{path.name}: a tree with a run bit is refused"
        )
    nodes = [blob for name, blob in template().items() if name.startswith("nodes/")]
    assert len(nodes) == 3
    assert not any(re.search(rb"^keys:", blob, re.MULTILINE) for blob in nodes)


def test_images_are_pinned() -> None:
    images = re.findall(r"^\s+image: (\S+)$", "\n".join(_module_texts()), re.MULTILINE)
    assert len(images) == 7
    for image in images:
        assert re.fullmatch(r"[a-z0-9.]+/[a-z0-9./-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}", image)


def _module_texts() -> list[str]:
    return [blob.decode() for name, blob in template().items() if name.endswith("module.yaml")]


@pytest.mark.parametrize(("nodes", "assignments"), [(1, 0), (3, 10), (75, 2)])
def test_synthetic_meshes_resolve(nodes: int, assignments: int) -> None:
    files = dict(mesh_files(nodes, assignments))
    assert sum(name.startswith("assignments/") for name in files) == nodes * assignments + 4
    assert refusals_of(files) == ()


def test_a_synthetic_mesh_is_the_same_each_time() -> None:
    assert list(mesh_files(4, 5)) == list(mesh_files(4, 5))
    with pytest.raises(ValueError, match="at most 70 assignments"):
        list(mesh_files(1, 71))


def test_documents_name_files_that_are_there() -> None:
    texts = [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md"), PROJECT / "benchmarks" / "README.md"]
    for text in texts:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", re.sub("`[^`]*`", "", text.read_text())):
            assert (text.parent / target).exists(), f"{text.relative_to(PROJECT)} links to {target}"
    assert Path(PROJECT / "LICENSE").read_text().count("Apache License") >= 2
