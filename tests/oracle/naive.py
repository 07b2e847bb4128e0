"""Resolution as the design's text says it, in a straight line and with no thought for speed or messages.

Written from the rules, not from `gitmesh.core`, of which nothing is imported: where the two differ, one of
them is wrong.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from tests.oracle.meshes import Kind, Place, Want, World


@dataclass
class Said:
    """What the oracle says of a commit: refusals as (code, subject), and the answers."""

    refused: set[tuple[str, str]] = field(default_factory=set)
    providers: dict[tuple[str, str], str] = field(default_factory=dict)
    ports: dict[tuple[str, str], int] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    """Assignments for which a provider made something, or that have a directory."""


def say(world: World, before: Said | None = None) -> Said:
    """What holds of `world`, where `before` is what held when it was last deployed."""
    said = Said()
    before = before or Said()
    holders = _seats(world, said)
    for place in sorted(world.places, key=lambda each: each.id):
        said.identities[place.id] = _identity(place)
        _value(world, place, said)
        for want in _used(world.kind(place.module), place):
            _provider(world, holders, place, want, before, said)
    _unheld(world, holders, before, said)
    _left_behind(world, before, said)
    _dropped(world, before, _moved(world, before, said), said)
    _made(world, said)
    _names(world, said)
    _ports(world, before, said)
    _circles(world, said)
    return said


def _seats(world: World, said: Said) -> dict[str, str]:
    """A seat is held by one assignment; a second asking for it is refused."""
    holders: dict[str, str] = {}
    for place in sorted(world.places, key=lambda each: each.id):
        for seat in place.holds:
            if seat in holders:
                said.refused.add(("seat-twice", place.id))
            else:
                holders[seat] = place.id
    return holders


def _used(kind: Kind, place: Place) -> list[Want]:
    pinned = dict(place.pins)
    return [
        each for each in kind.wants if not each.optional or each.name in place.uses or each.name in pinned
    ]


def _provider(
    world: World, holders: dict[str, str], place: Place, want: Want, before: Said, said: Said
) -> None:
    """The holder of the seat it names; a pin; the one on its own node; the only one; else a person."""
    key = (place.id, want.name)
    subject = f"{place.id}.{want.name}"
    able = [each.id for each in world.places if _answers(world.kind(each.module), want)]
    seat = "mesh-vault" if want.contract == "secret" else want.seat
    pin = dict(place.pins).get(want.name)
    recorded = before.providers.get(key)
    if seat is not None:
        if seat in holders and holders[seat] in able:
            said.providers[key] = holders[seat]
        elif seat in holders:
            said.refused.add(("no-provider", subject))
        return
    if recorded is not None and pin is None and recorded not in [each.id for each in world.places]:
        return  # Its provider was unassigned under it, which is said of the provider.
    if pin is not None:
        if pin in able:
            said.providers[key] = pin
        else:
            said.refused.add(("pin-bad", subject))
        return
    mine = [each for each in able if each.endswith(f"@{place.node}")]
    chosen = dict(world.choose).get(want.contract)
    by_rule = mine[0] if len(mine) == 1 else able[0] if len(able) == 1 else None
    if recorded in able:
        # What was recorded stands; only a person moves it, by a pin or for the mesh.
        if by_rule is not None and by_rule != recorded:
            said.refused.add(("provider-changed", ""))
        elif by_rule is None and chosen in able:
            said.providers[key] = str(chosen)
        else:
            said.providers[key] = str(recorded)
    elif by_rule is not None:
        said.providers[key] = by_rule
    elif chosen in able:
        said.providers[key] = str(chosen)
    elif able:
        said.refused.add(("ambiguous-provider", subject))
    else:
        said.refused.add(("no-provider", subject))


def _answers(kind: Kind, want: Want) -> bool:
    """Whether the module provides it and accepts what is asked; a size that is not asked for is 1."""
    most = dict(kind.offers).get(want.contract)
    if most is None:
        return False
    return want.contract != "alpha" or (want.size or 1) <= most


def _unheld(world: World, holders: dict[str, str], before: Said, said: Said) -> None:
    """A seat that is needed and unheld is refused, the vault also for each consumer's credential. Where its
    holder was unassigned under a consumer, that is refused, and not this as well."""
    standing = {each.id for each in world.places}
    needed = set()
    known = set()
    for place in world.places:
        for want in _used(world.kind(place.module), place):
            if want.seat is not None:
                needed.add(want.seat)
                if before.providers.get((place.id, want.name), place.id) not in standing:
                    known.add(want.seat)
            if want.contract in ("secret", "beta"):
                needed.add("mesh-vault")
    for seat in needed - holders.keys() - known:
        said.refused.add(("seat-unheld", seat))


def _left_behind(world: World, before: Said, said: Said) -> None:
    """A provider with consumers can't be unassigned."""
    standing = {each.id for each in world.places}
    for place in world.places:
        for want in _used(world.kind(place.module), place):
            provider = before.providers.get((place.id, want.name))
            # A secret belongs to its consumer, whoever holds the vault.
            counts = want.contract != "secret" and want.name not in dict(place.pins)
            if counts and provider is not None and provider not in standing:
                said.refused.add(("provider-in-use", provider))


def _dropped(world: World, before: Said, moved: set[str], said: Said) -> None:
    """All of a node, or three or more that are more than half of the mesh, go only where `drop` names the
    nodes; what it names has to lose something. What is refused as in use or as moved is not dropped."""
    gone = set(before.identities) - {each.id for each in world.places}
    in_use = {subject for code, subject in said.refused if code == "provider-in-use"}
    most = len(gone) >= 3 and len(gone) > len(before.identities) / 2
    for node in {each.split("@")[1] for each in gone}:
        here = {each for each in before.identities if each.endswith(f"@{node}")}
        real = (gone & here) - in_use - moved
        if node not in world.drops and real and (most or real == here):
            said.refused.add(("drop-unsaid", ""))
    for node in world.drops:
        if not any(each.endswith(f"@{node}") for each in gone):
            said.refused.add(("drop-leftover", node))


def _made(world: World, said: Said) -> None:
    """Whose provider keeps something for it: a credential's account, or what the provider answers with."""
    for place in world.places:
        if place.module == "vault":
            said.made.add(place.id)
        for want in _used(world.kind(place.module), place):
            if want.contract in ("beta", "gamma") and (place.id, want.name) in said.providers:
                said.made.add(place.id)


def _moved(world: World, before: Said, said: Said) -> set[str]:
    """One that is gone with something made for it, and a new one of its module: is it the same?"""
    standing = {each.id for each in world.places}
    new = sorted(each.id for each in world.places if each.id not in before.identities)
    moved = set()
    for gone in before.made - standing:
        like = [each for each in new if each.split("@")[0] == gone.split("@")[0]]
        if like:
            said.refused.add(("move-unsaid", like[0]))
            moved.add(gone)
    return moved


def _value(world: World, place: Place, said: Said) -> None:
    """The assignment's, else its label's, else the mesh's, else the default, else refused."""
    kind = world.kind(place.module)
    if kind.value == "none":
        return
    machine = next(each for each in world.machines if each.name == place.node)
    if place.value is not None:
        said.values[place.id] = place.value
    elif place.module in world.for_label and "edge" in machine.labels:
        said.values[place.id] = 6
    elif place.module in world.for_mesh:
        said.values[place.id] = 5
    elif kind.value == "default":
        said.values[place.id] = 4
    else:
        said.refused.add(("value-missing", f"{place.id}.v"))


def _names(world: World, said: Said) -> None:
    """A public name has one holder; names are compared without case and the last dot."""
    held = set()
    for place in sorted(world.places, key=lambda each: each.id):
        for want, name in place.names:
            if (place.id, want) not in said.providers:
                continue
            normal = name.lower().removesuffix(".")
            if normal in held:
                said.refused.add(("name-held", f"{place.id}.{want}.name"))
            held.add(normal)


def _ports(world: World, before: Said, said: Said) -> None:
    """What stands stays; then what is newly placed; then the lowest free, assignments by id."""
    for machine in world.machines:
        mine = [each for each in sorted(world.places, key=lambda each: each.id) if each.node == machine.name]
        wanted = [(place, n) for place in mine for n in range(world.kind(place.module).ports)]
        taken: set[int] = set()
        rest = []
        placed = []
        for place, n in wanted:
            key = (place.id, f"p{n}")
            number = place.fixed if n == 0 else None
            kept = before.ports.get(key)
            if kept is not None and number in (None, kept):
                said.ports[key] = kept
                taken.add(kept)
            elif number is not None:
                placed.append((key, number))
            else:
                rest.append(key)
        for key, number in placed:
            if number in taken:
                said.refused.add(("port-held", f"{key[0]}.{key[1]}"))
            else:
                said.ports[key] = number
                taken.add(number)
        for key in rest:
            free = [
                port
                for port in range(machine.first, machine.last + 1)
                if port not in taken and port not in machine.reserved
            ]
            if free:
                said.ports[key] = free[0]
                taken.add(free[0])
            else:
                said.refused.add(("ports-exhausted", f"{key[0]}.{key[1]}"))


def _circles(world: World, said: Said) -> None:
    """Requirements that wait, for a credential or an answer, must not wait for one another in a circle."""
    wants = {(place.id, want.name): want for place in world.places for want in world.kind(place.module).wants}
    edges = {
        (consumer, provider)
        for (consumer, name), provider in said.providers.items()
        if wants[consumer, name].contract in ("beta", "gamma")
    }
    for place in world.places:
        reached = {place.id}
        for _ in world.places:
            reached |= {to for start, to in edges if start in reached}
            if any(start in reached and to == place.id for start, to in edges):
                said.refused.add(("cycle", ""))


def _identity(place: Place) -> str:
    readable = f"{place.module}_{place.node}"
    if "-" in readable or len(readable) > 18:
        digest = hashlib.sha256(place.id.encode()).hexdigest()[:5]
        return readable.replace("-", "_")[:12] + "_" + digest
    return readable
