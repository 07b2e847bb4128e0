"""Handed values and rotations: what stands in git of secrets (C4, D1; FORMATS)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from gitmesh.core.checking import may_say
from gitmesh.core.model import Assignment, Json, Module
from gitmesh.core.refusal import Answer, At, Code, Refusal
from gitmesh.repo import document


def read_handed(paths: Mapping[str, str], files: Mapping[str, bytes]) -> tuple[dict[str, str], list[Refusal]]:
    """By name, the sha256 of each handed file's bytes; its two values must be encrypted.

    `paths` has the files by name. One that is refused is named all the same: it was handed, if badly.
    """
    handed: dict[str, str] = {}
    refusals: list[Refusal] = []
    for name, file in paths.items():
        value, refused = document.read(file, files[file])
        refusals += refused or _handed_faults(name, file, value)
        handed[name] = hashlib.sha256(files[file]).hexdigest()
    return handed, refusals


def _handed_faults(name: str, file: str, value: Json) -> Iterator[Refusal]:
    if not isinstance(value, dict) or set(value) != {"id", "value", "sops"}:
        said = "a handed file has `id`, `value` and what sops adds, and nothing else"
        answer = Answer(f"encrypt the value anew to the mesh's vault with sops, as handed/{name}.yaml")
        yield Refusal(Code.SCHEMA, file, said, At(file), answers=(answer,))
        return
    for key in ("id", "value"):
        if not (isinstance(value[key], str) and value[key].startswith("ENC[")):
            gone = "what stood in the clear is no secret any more"
            answer = Answer(f"{gone}: encrypt a new value to the mesh's vault with sops")
            at = At(file, (key,))
            yield Refusal(Code.SECRET_EXPOSED, file, f"`{key}` is not encrypted", at, answers=(answer,))


def check_rotations(
    rotations: Mapping[str, Json], assignments: Mapping[str, Assignment], modules: Mapping[str, Module]
) -> list[Refusal]:
    """Refuse a rotation of what is no requirement of an assignment."""
    refusals: list[Refusal] = []
    at = At("rotations.yaml")
    for key in rotations:
        if key != "abandon":
            refusals += _unknown_secret(at.child(key), key, assignments, modules)
    for number, key in enumerate(rotations.get("abandon", ())):
        refusals += _unknown_secret(at.child("abandon", number), key, assignments, modules)
    return refusals


def check_reveals(
    reveals: Mapping[str, Json], assignments: Mapping[str, Assignment], modules: Mapping[str, Module]
) -> list[Refusal]:
    """Refuse to reveal what is no requirement of an assignment."""
    at = At("reveals.yaml")
    return [each for key in reveals for each in _unknown_secret(at.child(key), key, assignments, modules)]


def _unknown_secret(
    at: At, key: str, assignments: Mapping[str, Assignment], modules: Mapping[str, Module]
) -> Iterator[Refusal]:
    which, _, requirement = key.rpartition(".")
    assignment = assignments.get(which)
    module = None if assignment is None else modules.get(assignment.module)
    if assignment is None:
        said, answer = f"`{which}` is no assignment", may_say(which, assignments, "assignment")
        yield Refusal(Code.KEY_UNKNOWN, key, said, at, answers=(Answer(answer),))
    elif module is not None and requirement not in module.requires:
        said = f"`{module.name}` has no requirement `{requirement}`"
        answer = may_say(requirement, module.requires, "requirement")
        yield Refusal(Code.KEY_UNKNOWN, key, said, at, answers=(Answer(answer),))
