"""What an operator gives as environment (`env-from`), beside what the module says (FORMATS "Containers")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitmesh.core.answer import Answered, layered
from gitmesh.core.definition_variables import parts
from gitmesh.core.file_formats import Unwritable, write_environment
from gitmesh.core.model import Assignment, Container, Mesh
from gitmesh.core.read import scalar
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related

Answers = Mapping[tuple[str, str], Answered]


def check_environments(mesh: Mesh, assignments: Iterable[Assignment], answers: Answers) -> Iterator[Refusal]:
    """Refuse what an operator gives that no variable can be, or that the module says itself."""
    for assignment in assignments:
        module = mesh.modules[assignment.module]
        for container in (*module.containers.values(), *(job.spec for job in module.jobs.values())):
            answered = answers.get((assignment.id, container.env_from or ""))
            if answered is not None:
                yield from _check(mesh, assignment, container, answered, answers)


def _check(
    mesh: Mesh, assignment: Assignment, container: Container, answered: Answered, answers: Answers
) -> Iterator[Refusal]:
    name = answered.requirement.name
    found, _, at = layered(mesh, assignment, name)
    at = at if found else answered.requirement.at.child("default")
    said = _said(assignment, container, answers)
    for variable, value in answered.fields["value"].items():
        wrong = _unsayable(variable, scalar(value))
        if variable in said:
            wrong = f"`{variable}` is said by the module itself"
        if wrong is not None:
            yield Refusal(
                Code.VALUE_TYPE,
                f"{assignment.id}.{name}",
                wrong,
                at.child(variable),
                related=(Related(said.get(variable, container.place("env-from")), "of the module"),),
                answers=(Answer(f"leave `{variable}` out, or give it another name or value"),),
            )


def _said(assignment: Assignment, container: Container, answers: Answers) -> dict[str, At]:
    """What the module says of the environment, with what the assignment uses of it."""
    said: dict[str, At] = {}
    for part in parts(container):
        if part.used is None or (assignment.id, part.used) in answers:
            said |= {name: part.place("env", name) for name in part.of.env}
            said |= {name: part.place("env-file", "env", name) for name in part.of.env_file}
    return said


def _unsayable(variable: str, value: str) -> str | None:
    try:
        write_environment({variable: value})
    except Unwritable as fault:
        return str(fault)
    return None
