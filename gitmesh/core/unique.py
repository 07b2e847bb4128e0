"""What only one may hold: public names (B9) and places on a node (S37)."""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.core.answer import Answered
from gitmesh.core.hostname import canonical
from gitmesh.core.model import Json, Kind, Mesh
from gitmesh.core.read import Reader, Unread
from gitmesh.core.refusal import Answer, Code, Refusal, Related


def normalised(value: Json) -> Json:
    """A public name as it is compared: case, a trailing dot, IDN and the default port make no difference."""
    return canonical(value.removesuffix(":443")) if isinstance(value, str) else value


def check_names(mesh: Mesh, reader: Reader, answers: Mapping[tuple[str, str], Answered]) -> list[Refusal]:
    """Refuse asks that a contract calls unique and that two consumers share."""
    held: dict[tuple[Json, ...], Answered] = {}
    refusals = []
    for _, answered in sorted(answers.items(), key=lambda item: item[0]):
        if answered.requirement.kind is not Kind.MODULE or not answered.contract.unique:
            continue
        try:
            asked = [normalised(reader.ask(answered, name)) for name in answered.contract.unique]
        except Unread:
            continue
        key = (answered.contract.name, *asked)
        first = held.setdefault(key, answered)
        if first is not answered:
            refusals.append(_held(answered, first, asked))
    return refusals


def _held(answered: Answered, first: Answered, asked: list[Json]) -> Refusal:
    name = f"{answered.requirement.name}.{answered.contract.unique[0]}"
    other = f"{first.requirement.name}.{first.contract.unique[0]}"
    return Refusal(
        Code.NAME_HELD,
        f"{answered.consumer.id}.{name}",
        f"`{asked[0]}` is held by {first.consumer.id} already",
        answered.consumer.at.child("values", name),
        related=(Related(first.consumer.at.child("values", other), "held here"),),
        answers=(Answer("choose another", f"gitmesh set {answered.consumer.id} {name} VALUE"),),
    )


def check_places(mesh: Mesh, answers: Mapping[tuple[str, str], Answered]) -> list[Refusal]:
    """Refuse directories of one node that are the same or lie in one another."""
    refusals = []
    by_node: dict[str, list[tuple[str, Answered]]] = {}
    for answered in answers.values():
        if answered.requirement.kind is Kind.HOST and answered.requirement.contract == "directory":
            location = str(answered.fields["location"]).rstrip("/") + "/"
            by_node.setdefault(answered.consumer.node, []).append((location, answered))
    for places in by_node.values():
        places.sort(key=lambda each: (each[0], each[1].consumer.id, each[1].requirement.name))
        outer, first = places[0]
        for inner, second in places[1:]:
            if inner.startswith(outer):
                refusals.append(_overlap(first, second))
            else:
                outer, first = inner, second
    return refusals


def _overlap(first: Answered, second: Answered) -> Refusal:
    name, other = second.requirement.name, first.requirement.name
    return Refusal(
        Code.PLACE_HELD,
        f"{second.consumer.id}.{name}",
        f"its directory lies in the one of {first.consumer.id}.{other}, or is the same",
        second.consumer.at.child("place", name),
        related=(Related(first.consumer.at.child("place", other), "the other directory"),),
        answers=(Answer(f"place it elsewhere: `place: {{{name}: /another/path}}`"),),
    )
