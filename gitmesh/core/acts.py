"""An operator's acts on secrets and answers: rotations.yaml and reveals.yaml against the mesh (B12, D7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from gitmesh.core.answer import Answered, Secret, open_answers
from gitmesh.core.checking import may_say
from gitmesh.core.model import Mesh, Requirement
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related


def check_acts(
    mesh: Mesh, answers: Mapping[tuple[str, str], Answered], secrets: Mapping[str, Secret]
) -> Iterator[Refusal]:
    """Refuse acts on what brings no secret, and rotations that nobody would take.

    A generation of what its running provider answers accepts a changed answer (B12). Ids of no assignment
    or requirement were refused when the commit was read; what has no answer is refused for that, and silent
    here.
    """
    accepts = {
        f"{assignment}.{name}" for (assignment, name), each in answers.items() if open_answers(mesh, each)
    }
    acts = (
        ("rotations.yaml", mesh.rotations, secrets.keys() | accepts),
        ("reveals.yaml", mesh.reveals, secrets),
    )
    for file, named, able in acts:
        for id_ in named:
            answered = answers.get(_parts(id_))
            if answered is not None and id_ not in able:
                yield _no_secret(At(file, (id_,)), id_, answered.requirement, able)
    for id_ in mesh.rotations:
        secret = secrets.get(id_)
        if secret is not None and secret.rotation == "never" and id_ not in accepts:
            yield _never(At("rotations.yaml", (id_,)), secret, answers[_parts(id_)].requirement)


def _parts(id_: str) -> tuple[str, str]:
    assignment, _, requirement = id_.rpartition(".")
    return assignment, requirement


def _no_secret(at: At, id_: str, requirement: Requirement, secrets: Collection[str]) -> Refusal:
    mine = sorted(each for each in secrets if _parts(each)[0] == _parts(id_)[0])
    return Refusal(
        Code.KEY_UNKNOWN,
        id_,
        f"`{requirement.name}` brings no secret of its own",
        at,
        related=(Related(requirement.at, "required here"),),
        answers=(Answer(may_say(id_, mine, "secret")),),
    )


def _never(at: At, secret: Secret, requirement: Requirement) -> Refusal:
    if secret.handed is not None:
        why = "an operator hands this secret over, and the vault makes none"
        answer = Answer(f"encrypt a new value to the mesh's vault with sops, as handed/{secret.handed}.yaml")
    elif secret.takes in ("first-start", "never"):
        why = f"its module takes no new value: `takes: {secret.takes}`"
        answer = Answer("change it in the software by hand, or let the module say how it takes a new one")
    else:
        why = f"a credential of `{secret.contract}` is never rotated"
        answer = Answer("remove the line; only the contract can say otherwise")
    return Refusal(
        Code.ROTATION_REFUSED,
        secret.id,
        f"this secret can't be rotated: {why}",
        at,
        related=(Related(requirement.at, "required here"),),
        answers=(answer, Answer("remove the line from rotations.yaml")),
    )
