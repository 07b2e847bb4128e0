"""What an assignment must be granted (S64), and traffic that must stay private (DESIGN §2.12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network

from gitmesh.core.answer import Answered
from gitmesh.core.model import Assignment, Container, Kind, Mesh, Module
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related


def check_grants(
    mesh: Mesh, assignments: Iterable[Assignment], answers: Mapping[tuple[str, str], Answered]
) -> list[Refusal]:
    """Refuse what reaches beyond a container without the assignment's grant."""
    refusals = []
    for assignment in assignments:
        for grant, at in _needed(mesh, assignment, answers):
            if grant not in assignment.grants:
                refusals.append(
                    Refusal(
                        Code.GRANT_MISSING,
                        assignment.id,
                        f"`{assignment.module}` needs `{grant}`, and the assignment does not grant it",
                        assignment.at.child("grants"),
                        f"no grant of `{grant}`",
                        related=(Related(at, "needed here"),),
                        answers=(
                            Answer(f"if that is meant, write `grants: [{grant}]` in {assignment.at.file}"),
                        ),
                    )
                )
    return refusals


def possible_grants(module: Module) -> list[str]:
    """Every grant that an assignment of `module` could need, wherever its accesses come to lie."""
    containers = (*module.containers.values(), *(job.spec for job in module.jobs.values()))
    found = [grant for each in containers for grant, _ in _of_container(each)]
    reached = [each for each in module.requires.values() if each.contract in ("device", "access")]
    return sorted({*found, *(f"{each.contract}:{each.name}" for each in reached)})


def _needed(
    mesh: Mesh, assignment: Assignment, answers: Mapping[tuple[str, str], Answered]
) -> Iterator[tuple[str, At]]:
    module = mesh.modules[assignment.module]
    for container in (*module.containers.values(), *(job.spec for job in module.jobs.values())):
        yield from _of_container(container)
    for requirement in module.requires.values():
        if requirement.kind is not Kind.HOST or requirement.contract not in ("device", "access"):
            continue
        answered = answers.get((assignment.id, requirement.name))
        if answered is None:
            continue
        if requirement.contract == "device":
            yield f"device:{requirement.name}", requirement.at
        location = str(answered.fields.get("location", ""))
        if requirement.contract == "access" and _reaches_beyond(location):
            yield f"access:{requirement.name}", requirement.at


def _reaches_beyond(location: str) -> bool:
    """Whether an access is to the whole machine, to a socket or to where the sockets of daemons lie."""
    path = location.rstrip("/")
    return path in ("", "/run", "/var/run") or path.endswith((".sock", ".socket"))


def _of_container(container: Container) -> Iterator[tuple[str, At]]:
    plain = container.plain
    if plain.get("network") == "host":
        yield "host-network", container.at.child("network")
    if plain.get("pid") == "host":
        yield "host-pid", container.at.child("pid")
    if plain.get("privileged"):
        yield "privileged", container.at.child("privileged")
    for capability in plain.get("capabilities", ()):
        yield f"cap:{capability}", container.at.child("capabilities")


_PRIVATE = tuple(
    ip_network(each)
    for each in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",  # where mesh VPNs put their machines
        "127.0.0.0/8",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
        "::1/128",
    )
)


def is_private(address: str) -> bool:
    """Whether an address is a private network's. A name can't be told, and is taken for one."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return True
    return any(parsed in each for each in _PRIVATE if each.version == parsed.version)


def check_addresses(mesh: Mesh, answers: Mapping[tuple[str, str], Answered]) -> list[Refusal]:
    """Refuse traffic between nodes over a public address, unless its contract has TLS."""
    public = {name for name, node in mesh.nodes.items() if not is_private(node.address)}
    refused: dict[str, Refusal] = {}
    if not public:
        return []
    for _, answered in sorted(answers.items(), key=lambda item: item[0]):
        requirement = answered.requirement
        if requirement.kind is not Kind.MODULE or answered.contract.tls or requirement.contract == "secret":
            continue
        provider = mesh.nodes[mesh.assignments[answered.by].node]
        if provider.name == answered.consumer.node or provider.name not in public:
            continue
        refused.setdefault(
            provider.name,
            Refusal(
                Code.ADDRESS_PUBLIC,
                f"nodes/{provider.name}",
                f"traffic of `{answered.contract.name}` to `{provider.name}` would go over a public address",
                provider.at.child("address"),
                "a public address",
                related=(
                    Related(answered.consumer.at, f"{answered.consumer.id} reaches it from another node"),
                ),
                answers=(
                    Answer(f"give a private network's address in {provider.at.file}"),
                    Answer(f"if its traffic is encrypted, say `tls: true` in {answered.contract.at.file}"),
                ),
            ),
        )
    return list(refused.values())
