"""What only one may hold: public names (B9) and places on a node (S37)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gitmesh.core.answer import Answered
from gitmesh.core.declaration import Holed
from gitmesh.core.hostname import canonical
from gitmesh.core.model import Json, Kind, Mesh
from gitmesh.core.read import Reader, Unread
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related


def normalised(value: Json) -> Json:
    """A public name as it is compared: case, a trailing dot, IDN and the default port make no difference."""
    return canonical(value.removesuffix(":443")) if isinstance(value, str) else value


def _compared(reader: Reader, answered: Answered, name: str) -> str:
    """What is asked, as text that is equal where it counts as the same; a path in capitals is another."""
    value = reader.ask(answered, name)
    if isinstance(value, str):
        hostname = answered.contract.asks[name].schema.get("format") == "hostname"
        return str(normalised(value)) if hostname else value
    return json.dumps(value.to_json() if isinstance(value, Holed) else value, sort_keys=True)


def check_names(mesh: Mesh, reader: Reader, answers: Mapping[tuple[str, str], Answered]) -> list[Refusal]:
    """Refuse asks that a contract calls unique and that two consumers share."""
    held: dict[tuple[str, ...], Answered] = {}
    refusals = []
    for _, answered in sorted(answers.items(), key=lambda item: item[0]):
        if answered.requirement.kind is not Kind.MODULE or not answered.contract.unique:
            continue
        try:
            asked = [_compared(reader, answered, name) for name in answered.contract.unique]
        except Unread:
            continue
        first = held.setdefault((answered.contract.name, *asked), answered)
        if first is not answered:
            refusals.append(_held(answered, first, asked))
    return refusals


def _held(answered: Answered, first: Answered, asked: list[str]) -> Refusal:
    name = _said(answered)
    subject = f"{answered.consumer.id}.{answered.requirement.name}"
    return Refusal(
        Code.NAME_HELD,
        subject if name is None else f"{answered.consumer.id}.{name}",
        f"`{' '.join(asked)}` is held by {first.consumer.id} already",
        _asked_at(answered).of_value(),
        related=(Related(_asked_at(first), "held here"),),
        answers=(
            Answer("let one of the two ask for something else")
            if name is None
            else Answer("choose another", f"gitmesh set {answered.consumer.id} {name} VALUE"),
        ),
    )


def _said(answered: Answered) -> str | None:
    """The key under which the assignment says the first of what is unique; None where its module does."""
    asks = answered.contract.asks
    said = (each for each in answered.contract.unique if asks[each].from_operator)
    return next((f"{answered.requirement.name}.{each}" for each in said), None)


def _asked_at(answered: Answered) -> At:
    name = _said(answered)
    return answered.requirement.at if name is None else answered.consumer.at.child("values", name)


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
        second.consumer.at.child("place", name).of_value(),
        related=(Related(first.consumer.at.child("place", other), "the other directory"),),
        answers=(Answer(f"place it elsewhere: `place: {{{name}: /another/path}}`"),),
    )
