"""What the definitions of a whole catalogue are refused for, and what of them is counted (A2, A3, A5, A10).

A catalogue is every contract and module of a mesh repo, its own and the vendored ones, or of a folder that
holds nothing else. What can be said of one definition by itself, `gitmesh check` says as well; here it is
said of those that nobody has assigned, and of what only a catalogue can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gitmesh.core.definition_fallbacks import Fallback, fallbacks
from gitmesh.core.definition_literals import Literal, literals
from gitmesh.core.model import Container, Mesh, Module
from gitmesh.core.refusal import Answer, At, Code, Refusal, ordered
from gitmesh.repo.load import load

DEFINITIONS = ("modules/", "contracts/", "catalogue/", "seats.yaml")
"""Where the files of a catalogue lie."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Something that a definition may do with a `reason`, and that the ratchet counts by its `kind`."""

    kind: str
    module: str
    what: str
    reason: str
    at: At


@dataclass(frozen=True, slots=True)
class Findings:
    """What a lint says: the refusals in order, what is counted, and whether each definition could be read.

    Where one could not, the counts are too low, so that no ratchet is lowered by them.
    """

    refusals: tuple[Refusal, ...]
    counted: tuple[Counted, ...]
    whole: bool


def lint(files: Mapping[str, bytes], refused: Iterable[Refusal] = ()) -> Findings:
    """What the definitions among `files` (a mesh repo's, or a catalogue's own) say against the rules.

    `refused` is what reading the files was refused for already. What else a mesh says is no matter here,
    but for the names of its nodes and its own, which its own modules may not write out.
    """
    mesh, wrong = load(files)
    unread = [each for each in (*refused, *wrong) if each.at.file.startswith(DEFINITIONS)]
    own_names = {mesh.name, *mesh.nodes} - {""}
    found = [each for module in mesh.modules.values() for each in _written_out(module, mesh, own_names)]
    counted = [each for module in mesh.modules.values() for each in _counted(module)]
    whole = all(each.code is Code.FIELD_UNREAD for each in unread)
    return Findings(ordered([*unread, *found]), tuple(counted), whole)


def _written_out(module: Module, mesh: Mesh, names: set[str]) -> Iterator[Refusal]:
    """What a module writes out without listing it. One that was vendored knows no mesh, so that a node's
    name in it is a word like any other."""
    said = literals(module, mesh.contracts, () if module.at.file.startswith("catalogue/") else names)
    yield from (_literal(module, each) for each in said.refused)
    for each in fallbacks(module):
        if each.path not in module.exceptions:
            yield _fallback(module, each)


def _literal(module: Module, found: Literal) -> Refusal:
    return Refusal(
        Code.NAME_WRITTEN_OUT,
        f"module {module.name}",
        f"`{found.name}` is written out, and a definition names no domain, no node and no mesh",
        found.at,
        answers=(
            Answer("read it from a requirement: `${web:name}` of a route, or an operator's value"),
            _excepted(found.name),
        ),
    )


def _fallback(module: Module, found: Fallback) -> Refusal:
    return Refusal(
        Code.PATH_WRITTEN_OUT,
        f"module {module.name}",
        f"`{found.path}` is taken where the environment has no `{found.variable}`",
        found.at,
        answers=(
            Answer(f"stop where `{found.variable}` is missing, such as `${{{found.variable}:?}}` in a shell"),
            _excepted(found.path),
        ),
    )


def _excepted(what: str) -> Answer:
    return Answer(f"or list it, and it is counted: `exceptions: {{'{what}': REASON}}`")


def _counted(module: Module) -> Iterator[Counted]:
    for what, reason in module.exceptions.items():
        yield Counted("exceptions", module.name, what, reason, module.at.child("exceptions", what))
    # A container that is like another takes its env-file over, and the reason with it: that is one.
    reasons: set[str] = set()
    for where, container in _containers(module):
        reason = container.env_file_reason
        if reason and reason not in reasons:
            reasons.add(reason)
            yield Counted("env-files", module.name, where, reason, container.at.child("env-file"))


def _containers(module: Module) -> Iterator[tuple[str, Container]]:
    yield from module.containers.items()
    yield from ((f"job {name}", job.spec) for name, job in module.jobs.items())
