"""mesh.yaml: what holds for the whole mesh, by itself and beside the rest of the commit (FORMATS "Node,
mesh, acts")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from gitmesh.core.checking import may_say
from gitmesh.core.formats import FORMATS
from gitmesh.core.model import Assignment, Contract, Json, Module, Node, Registry, Rollout
from gitmesh.core.refusal import Answer, At, Code, Refusal

FILE = "mesh.yaml"

SHIPPED_SEATS: Mapping[str, str | None] = {
    "mesh-vault": "secret",
    "mesh-store": "postgres-database",
    "mesh-broker": "amqp-vhost",
    "mesh-git": "git-account",
    "mesh-edge": "route",
    "mesh-controller": None,
}
"""The seats of every mesh and what each delivers; a foundation seat delivers nothing."""

_REMOTE = re.compile(
    r"(?:ssh|https?)://(?:[^\s/@]+@)?[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/\S*"
    r"|(?:ssh|https?)://(?:[^\s/@]+@)?\[[0-9a-fA-F:.]+\](?::[0-9]{1,5})?/\S*"
    r"|file:///.*|/.*"
    r"|(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)\S+"
)
"""What git is allowed to fetch from (`repo.git`): no `ext::`, and nothing that git takes for an option."""
_PASSWORD = re.compile(r"[a-z]+://[^/@\s:]*:[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Beside:
    """What else a commit says, that mesh.yaml speaks of."""

    contracts: Mapping[str, Contract]
    modules: Mapping[str, Module]
    nodes: Mapping[str, Node]
    assignments: Mapping[str, Assignment]
    handed: Mapping[str, str]
    broken: Set[str]


def seats_of(said: Mapping[str, Json]) -> dict[str, str | None]:
    """Every seat of the commit; one that ships stays what it is."""
    return {**said.get("seats", {}), **SHIPPED_SEATS}


def registries_of(said: Mapping[str, Json]) -> dict[str, Registry]:
    """How nodes reach image registries."""
    return {
        host: Registry(each.get("mirror"), each.get("credential"))
        for host, each in said.get("registries", {}).items()
    }


def rollout_of(said: Mapping[str, Json]) -> Rollout | None:
    """Which nodes get a module's change first."""
    rollout = said.get("rollout")
    return None if rollout is None else Rollout(rollout["first"], rollout.get("healthy", "10m"))


def notify_of(said: Mapping[str, Json]) -> dict[str, str]:
    """Where to report to, by name; one line alone is called `default`."""
    notify = said.get("notify", {})
    return {"default": notify} if isinstance(notify, str) else dict(notify)


def check_alone(said: Mapping[str, Json]) -> Iterator[Refusal]:
    """What is wrong with the file whatever else the commit says."""
    yield from _check_seats(said)
    yield from _check_remotes(said)
    zone, domain = said.get("timezone", "UTC"), said.get("domain")
    if zone not in time_zones():
        yield _value("timezone", f"`{zone}` is no time zone", _near_zone(zone))
    if domain is not None and not FORMATS["hostname"][1](domain):
        yield _value("domain", "expected a domain without scheme, port and path", "such as `example.org`")


def check_beside(said: Mapping[str, Json], beside: Beside) -> Iterator[Refusal]:
    """What is wrong with it beside the rest of the commit; what was refused already is silent."""
    yield from _check_seat_contracts(said, beside)
    for contract, provider in said.get("choose", {}).items():
        yield from _check_choice(contract, provider, beside)
    yield from _check_registries(said, beside)
    yield from _check_rollout(said, beside)


@cache
def time_zones() -> frozenset[str]:
    """The names of the time zones. They come with gitmesh and not from the machine, so that a commit is
    refused on every machine or on none (B22)."""
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def _near_zone(zone: str) -> str:
    """The zone that was meant: one of the same city, else the nearest spelling."""
    known = sorted(time_zones())
    city = zone.rpartition("/")[2].lower()
    same = [each for each in known if each.rpartition("/")[2].lower() == city]
    near = same or get_close_matches(zone, known, 1)
    return f"did you mean `{near[0]}`?" if near else "a time zone is called `Europe/Berlin` or `UTC`"


def _wrong(message: str, at: At, *answers: str, code: Code = Code.SCHEMA, subject: str = FILE) -> Refusal:
    return Refusal(code, subject, message, at, answers=tuple(Answer(each) for each in answers))


def _value(key: str, message: str, answer: str) -> Refusal:
    return _wrong(message, At(FILE, (key,), value=True), answer)


def _check_seats(said: Mapping[str, Json]) -> Iterator[Refusal]:
    for name in said.get("seats", {}):
        if name in SHIPPED_SEATS:
            yield _wrong(
                f"`{name}` is a seat of every mesh; what it delivers is fixed",
                At(FILE, ("seats", name)),
                "remove it, or give yours another name",
            )


def _check_remotes(said: Mapping[str, Json]) -> Iterator[Refusal]:
    for key in ("origin", "mailbox"):
        if said.get(key) is not None:
            yield from check_remote(said[key], At(FILE, (key,), value=True))


def check_remote(remote: str, at: At) -> Iterator[Refusal]:
    """Refuse what is no remote that git may fetch from, and a password in one."""
    if _PASSWORD.match(remote):
        yield _wrong(
            "a password stands in the URL, and every node and every clone reads this file",
            at,
            "write the URL without it, and change the password: it is no secret any more",
            "a node's access to git is its own: an ssh key, or a file of git credentials",
            code=Code.SECRET_EXPOSED,
            subject=at.file,
        )
    elif not _REMOTE.fullmatch(remote):
        message = "expected a git remote by ssh, https or an absolute path"
        yield _wrong(message, at, "such as `ssh://git@git.example.org/hellas.git`", subject=at.file)


def _check_seat_contracts(said: Mapping[str, Json], beside: Beside) -> Iterator[Refusal]:
    for name, contract in said.get("seats", {}).items():
        unknown = contract is not None and contract not in beside.contracts
        if unknown and f"contracts/{contract}" not in beside.broken:
            yield _wrong(
                f"the seat `{name}` delivers `{contract}`, and there is no such contract",
                At(FILE, ("seats", name)),
                may_say(contract, beside.contracts, "contract"),
                code=Code.CONTRACT_UNKNOWN,
            )


def _check_choice(contract: str, provider: str, beside: Beside) -> Iterator[Refusal]:
    at = At(FILE, ("choose", contract))
    if contract not in beside.contracts:
        if f"contracts/{contract}" not in beside.broken:
            message = f"there is no contract `{contract}`"
            answer = may_say(contract, beside.contracts, "contract")
            yield _wrong(message, at, answer, code=Code.CONTRACT_UNKNOWN)
        return
    if contract == "secret":
        message = "a secret is always answered by the holder of `mesh-vault`"
        yield _wrong(message, at, "remove the line", code=Code.SECRET_RESERVED)
        return
    module = beside.modules.get(provider.partition("@")[0])
    if provider in beside.assignments and (module is None or contract in module.provides):
        return
    able = [
        each.id
        for each in beside.assignments.values()
        if each.module in beside.modules and contract in beside.modules[each.module].provides
    ]
    message = f"`{provider}` is chosen, and is no assignment that provides `{contract}`"
    yield _wrong(message, at, may_say(provider, able, f"provider of `{contract}`"), code=Code.PIN_BAD)


def _check_registries(said: Mapping[str, Json], beside: Beside) -> Iterator[Refusal]:
    for host, registry in registries_of(said).items():
        name = registry.credential
        if name is not None and name not in beside.handed:
            yield Refusal(
                Code.HANDED_MISSING,
                f"registry {host}",
                "an operator hands this secret over, and nobody has",
                At(FILE, ("registries", host, "credential"), value=True),
                f"no handed/{name}.yaml",
                answers=(
                    Answer(f"encrypt it to the mesh's vault with sops, as handed/{name}.yaml"),
                    *([Answer(may_say(name, beside.handed, "handed value"))] if beside.handed else ()),
                ),
            )


def _check_rollout(said: Mapping[str, Json], beside: Beside) -> Iterator[Refusal]:
    rollout = rollout_of(said)
    labels = sorted({label for node in beside.nodes.values() for label in node.labels})
    silent = any(each.startswith("nodes/") for each in beside.broken)
    if rollout is None or rollout.first in labels or silent:
        return
    yield _wrong(
        f"no node has the label `{rollout.first}`, so that a change would reach nobody first",
        At(FILE, ("rollout", "first"), value=True),
        may_say(rollout.first, labels, "label") if labels else "give `labels` to the nodes that come first",
        code=Code.KEY_UNKNOWN,
    )
