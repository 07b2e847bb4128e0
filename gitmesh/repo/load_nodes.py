"""The machines of a mesh into nouns, and what two of them may not share (FORMATS "Node, mesh, acts")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address

from gitmesh.core.formats import FORMATS
from gitmesh.core.model import Json, Keys, Node, Pause
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related


def read_node(name: str, file: str, said: Mapping[str, Json]) -> Node:
    """The node that a file says, which fits its schema."""
    ports, keys, state = said.get("ports", {}), said.get("keys"), said.get("state", "active")
    return Node(
        name=name,
        at=At(file),
        address=said["address"],
        public=said.get("public"),
        root=said.get("root", "/var/lib/mesh"),
        first=ports.get("from", 31000),
        last=ports.get("to", 31999),
        reserved=frozenset(ports.get("reserved", ())),
        labels=tuple(said.get("labels", ())),
        keys=None if keys is None else Keys(keys["sign"], keys["seal"], keys["epoch"]),
        state=state if isinstance(state, str) else "paused",
        pause=None if isinstance(state, str) else Pause(**state["paused"]),
        machine=said.get("machine", {}),
        enrol=said.get("enrol"),
    )


def check_node(name: str, file: str, said: Mapping[str, Json]) -> Iterator[Refusal]:
    """What its schema can't say of a node's file."""
    for key in ("address", "public"):
        if key in said and not any(FORMATS[each][1](said[key]) for each in ("ipv4", "ipv6", "hostname")):
            message = "expected an IP address or a host name"
            yield _wrong(name, message, At(file, (key,), value=True), "such as 10.7.0.11")
    if {"..", "."} & set(said.get("root", "/").split("/")):
        message = "expected an absolute path without `.` and `..`"
        yield _wrong(name, message, At(file, ("root",)), "such as /var/lib/mesh")
    ports = said.get("ports")
    if ports is not None and ports["from"] > ports["to"]:
        message = "the range of ports ends before it begins"
        yield _wrong(name, message, At(file, ("ports",)), "such as {from: 31000, to: 31999}")


def check_addresses_differ(nodes: Iterable[Node]) -> Iterator[Refusal]:
    """Two nodes with one address: what is meant for one would reach the other."""
    held: dict[str, Node] = {}
    for node in nodes:
        first = held.setdefault(_plain(node.address), node)
        if first is not node:
            yield Refusal(
                Code.ADDRESS_HELD,
                f"node {node.name}",
                f"`{first.name}` has this address already",
                node.at.child("address"),
                related=(Related(first.at.child("address"), "the other node"),),
                answers=(Answer("give each node its own address in the private network"),),
            )


def check_keys_differ(nodes: Iterable[Node]) -> Iterator[Refusal]:
    """Two nodes with one key: one could speak as the other, or open what is sealed to it (C3, F4). One
    refusal for a file that was copied whole."""
    held: dict[str, Node] = {}
    for node in nodes:
        keys = [] if node.keys is None else [("sign", node.keys.sign), ("seal", node.keys.seal)]
        shared = [(name, held[key]) for name, key in keys if key in held]
        held |= {key: node for _, key in keys if key not in held}
        if shared:
            name, first = shared[0]
            what = "its keys are" if len(shared) == 2 else f"its `{name}` key is"
            yield Refusal(
                Code.KEY_HELD,
                f"node {node.name}",
                f"{what} `{first.name}`'s already",
                node.at.child("keys", name),
                related=(Related(first.at.child("keys", name), "the other node"),),
                answers=(Answer("enrol the machine; its keys are made on it, and leave it never"),),
            )


def _plain(address: str) -> str:
    """An address as it is compared: one spelling of an IPv6, no case in a name."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address.lower().removesuffix(".")


def _wrong(name: str, message: str, at: At, answer: str) -> Refusal:
    return Refusal(Code.SCHEMA, f"node {name}", message, at, answers=(Answer(answer),))
