"""Facts that a module reads and nobody has said: of its machine, or of the mesh (B18)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitmesh.core.answer import Answered
from gitmesh.core.checking import Checking
from gitmesh.core.definition_reads import spots
from gitmesh.core.model import Assignment, Kind, Mesh, Module
from gitmesh.core.read import Reader, Unread
from gitmesh.core.reference import references
from gitmesh.core.refusal import Refusal

_FACTS = {(Kind.HOST, "machine"), (Kind.MESH, "facts")}

Read = tuple[str, str, str | None]
"""A requirement, its field, and the optional requirement that it is read under."""


def check_facts(
    mesh: Mesh, reader: Reader, assignments: Iterable[Assignment], answers: Mapping[tuple[str, str], Answered]
) -> list[Refusal]:
    """Refuse what is read and said nowhere: once for each fact, however many read it."""
    missing: dict[tuple[str, str], Refusal] = {}
    by_module: dict[str, tuple[Read, ...]] = {}
    for assignment in assignments:
        module = mesh.modules[assignment.module]
        if module.name not in by_module:
            by_module[module.name] = _read(mesh, module)
        for requirement, field, under in by_module[module.name]:
            if under is not None and (assignment.id, under) not in answers:
                continue
            try:
                reader.field(assignment.id, requirement, field)
            except Unread as unread:
                if unread.refusal is not None:
                    missing.setdefault((unread.refusal.at.file, field), unread.refusal)
    return list(missing.values())


def _read(mesh: Mesh, module: Module) -> tuple[Read, ...]:
    facts = {each.name for each in module.requires.values() if (each.kind, each.contract) in _FACTS}
    if not facts:
        return ()
    texts = spots(Checking(module, mesh.contracts, mesh.seats))
    found = ((ref, spot.used) for spot in texts for ref in references(spot.text))
    return tuple(
        dict.fromkeys((ref.requirement, ref.field, used) for ref, used in found if ref.requirement in facts)
    )
