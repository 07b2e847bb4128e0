"""Reading fields of answers, and text made of them, from both ends (A4, A9, B19, B20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from gitmesh.core.answer import Answered, consumer_identity, hash_id, value_missing, value_type
from gitmesh.core.contract import check_value
from gitmesh.core.declaration import AnswerHole, Filled, Holed, LoginHole, SecretHole
from gitmesh.core.hostname import canonical
from gitmesh.core.identity import dns
from gitmesh.core.model import Ask, FieldName, Json, Kind, Mesh, Requirement, Tree
from gitmesh.core.reference import Ref, Text, references
from gitmesh.core.refusal import Answer, Code, Refusal, Related

Value = Json
"""A JSON value, or `Holed` text."""


class Unread(Exception):
    """A field that can't be read; `refusal` is None where what it stands on is refused already."""

    def __init__(self, refusal: Refusal | None) -> None:
        super().__init__(refusal)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads what `answers` say. Nothing is remembered: texts are short and requirements few."""

    mesh: Mesh
    answers: Mapping[tuple[str, str], Answered]

    def field(self, assignment: str, requirement: str, name: str) -> Value:
        """One field (or ask) of a requirement, as its consumer reads it. Raises `Unread`."""
        answered = self.answers.get((assignment, requirement))
        if answered is None:
            raise Unread(None)
        if answered.requirement.kind is not Kind.MODULE:
            return self._local(answered, name)
        if name in answered.contract.asks:
            return self.ask(answered, name)
        return self._module_field(answered, name)

    def ask(self, answered: Answered, name: str) -> Value:
        """What the consumer asks: said by the operator, by its module, or by the contract's default."""
        requirement, ask = answered.requirement, answered.contract.asks[name]
        if ask.from_operator:
            return self._asked_of_operator(answered, ask, name)
        if name not in requirement.asks:
            if not ask.has_default:
                raise Unread(None)
            return ask.default
        said = requirement.asks[name]
        value = self.tree(said, answered.consumer.id)
        if has_references(said):
            self._check_leaves(answered, said)
            wrong = None if isinstance(value, Holed) else check_value(ask.schema, value)
            if wrong is not None:
                raise Unread(_ask_type(answered, name, wrong))
        return value

    def text(self, text: Text, assignment: str, consumer: Answered | None = None) -> Filled:
        """`text` of an assignment's module, filled; `consumer` is whom `${consumer:…}` speaks of."""
        return join(
            [each if isinstance(each, str) else self._piece(each, assignment, consumer) for each in text]
        )

    def value(self, text: Text, assignment: str, consumer: Answered | None = None) -> Value:
        """The same, but text that is one reference and nothing else keeps the type of what it reads."""
        if len(text) == 1 and isinstance(text[0], Ref):
            return self._piece(text[0], assignment, consumer)
        return self.text(text, assignment, consumer)

    def tree(self, tree: Tree, assignment: str, consumer: Answered | None = None) -> Value:
        """A structured value with every text in it filled."""
        if isinstance(tree, tuple):
            return self.value(tree, assignment, consumer)
        if isinstance(tree, list):
            return [self.tree(each, assignment, consumer) for each in tree]
        if isinstance(tree, Mapping):
            return {key: self.tree(each, assignment, consumer) for key, each in tree.items()}
        return tree

    def login(self, answered: Answered) -> Filled:
        """The login as the consumer presents it, or the empty text where the contract has none."""
        credential = answered.contract.credential
        if credential is None or credential.login is None:
            return ""
        return as_text(self._module_field(answered, credential.login))

    def _piece(self, ref: Ref, assignment: str, consumer: Answered | None) -> Value:
        if ref.requirement != "consumer":
            return self.field(assignment, ref.requirement, ref.field)
        if consumer is None:
            raise Unread(None)
        if ref.field == "as":
            identity = consumer_identity(consumer)
            return dns(identity) if ref.alphabet == "dns" else identity
        if ref.field == "login":
            return Holed((LoginHole(_secret_id(consumer)),))
        return self.field(consumer.consumer.id, consumer.requirement.name, ref.field)

    def _local(self, answered: Answered, name: str) -> Value:
        if name in answered.fields:
            return answered.fields[name]
        requirement, node = answered.requirement, self.mesh.nodes[answered.consumer.node]
        where = self.mesh.at if requirement.kind is Kind.MESH else node.at
        say = f"machine: {{{name}: …}}" if name in ("arch", "cpus", "memory") else f"{name}:"
        raise Unread(
            Refusal(
                Code.VALUE_MISSING,
                f"{answered.consumer.id}.{requirement.name}",
                f"`{name}` is read, and {where.file} does not say it",
                where,
                f"no `{name}`",
                related=(Related(requirement.at, "required here"),),
                answers=(Answer(f"say `{say}` in {where.file}"),),
            )
        )

    def _module_field(self, answered: Answered, name: str) -> Value:
        contract, provider = answered.contract, self.mesh.assignments[answered.by]
        declared = contract.fields[name]
        provision = self.mesh.modules[provider.module].provides.get(contract.name)
        serves = {} if provision is None else provision.serves
        if declared.derived is not None:
            return self._derived(answered, declared.derived)
        if declared.hashed is not None:
            return Holed((SecretHole(hash_id(answered, name)),))
        if name in serves:
            self._check_leaving(answered, serves[name])
            return self.value(serves[name], provider.id, answered)
        if contract.credential is not None and name == contract.credential.secret:
            return Holed((SecretHole(_secret_id(answered)),))
        if contract.credential is not None and name == contract.credential.login:
            return Holed((LoginHole(_secret_id(answered)),))
        return Holed((AnswerHole(provider.id, _secret_id(answered), name),))

    def _derived(self, answered: Answered, pattern: tuple[str | FieldName, ...]) -> Filled:
        url = any(isinstance(each, str) and "://" in each for each in pattern)
        pieces: list[Value] = []
        for each in pattern:
            if isinstance(each, str):
                pieces.append(each)
                continue
            value = self.field(answered.consumer.id, answered.requirement.name, each.name)
            pieces.append(encoded(value) if url else value)
        return join(pieces)

    def _asked_of_operator(self, answered: Answered, ask: Ask, name: str) -> Value:
        requirement, consumer = answered.requirement, answered.consumer
        key = f"{requirement.name}.{name}"
        if key not in consumer.values:
            if ask.has_default:
                return ask.default
            raise Unread(value_missing(consumer, requirement, key))
        value = consumer.values[key]
        wrong = check_value(ask.schema, value)
        if wrong is not None:
            at = consumer.at.child("values", key)
            raise Unread(value_type(consumer, requirement, key, at, wrong))
        return canonical(value) if ask.schema.get("format") == "hostname" else value

    def _check_leaving(self, answered: Answered, text: Text) -> None:
        """A provider's local port is of no use to a consumer on another node."""
        provider = self.mesh.assignments[answered.by]
        if provider.node != answered.consumer.node:
            module = self.mesh.modules[provider.module]
            for ref in references(text):
                self._check_reach(answered, module.requires.get(ref.requirement), provider.id)

    def _check_leaves(self, answered: Answered, tree: Tree) -> None:
        """The same for the consumer's ports in what it asks of a provider elsewhere."""
        provider = self.mesh.assignments[answered.by]
        if provider.node != answered.consumer.node:
            module = self.mesh.modules[answered.consumer.module]
            for ref in _references(tree):
                self._check_reach(answered, module.requires.get(ref.requirement), answered.consumer.id)

    def _check_reach(self, answered: Answered, read: Requirement | None, whose: str) -> None:
        if read is None or read.contract != "port" or read.asks.get("reach") != "local":
            return
        raise Unread(
            Refusal(
                Code.LOCAL_PORT_LEAVES,
                f"{answered.consumer.id}.{answered.requirement.name}",
                f"{whose}.{read.name} is a local port, and {answered.consumer.id} and {answered.by} "
                "are on different nodes",
                answered.consumer.at,
                related=(Related(read.at, "`reach: local`"),),
                answers=(Answer("let the port have `reach: mesh`, or assign both to one node"),),
            )
        )


def join(pieces: list[Value]) -> Filled:
    """Pieces put together: plain text where none has a hole."""
    flat: list[str | SecretHole | LoginHole | AnswerHole] = []
    for piece in pieces:
        for each in piece.pieces if isinstance(piece, Holed) else (scalar(piece),):
            if isinstance(each, str) and flat and isinstance(flat[-1], str):
                flat[-1] += each
            else:
                flat.append(each)
    if all(isinstance(each, str) for each in flat):
        return "".join(each for each in flat if isinstance(each, str))
    return Holed(tuple(each for each in flat if each != ""))


def as_text(value: Value) -> Filled:
    """A value as text."""
    return value if isinstance(value, Holed) else scalar(value)


def scalar(value: Json) -> str:
    """A scalar as JSON writes it, text as it is (FORMATS "Language")."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise Unread(None)


def encoded(value: Value) -> Value:
    """A value as it stands in a URL: percent-encoded, its holes marked to be so when they are filled."""
    if isinstance(value, Holed):
        return Holed(
            tuple(quote(each, safe="") if isinstance(each, str) else _marked(each) for each in value.pieces)
        )
    return quote(scalar(value), safe="")


def _marked(hole: SecretHole | LoginHole | AnswerHole) -> SecretHole | LoginHole | AnswerHole:
    match hole:
        case SecretHole(secret=secret):
            return SecretHole(secret, url=True)
        case LoginHole(secret=secret):
            return LoginHole(secret, url=True)
        case AnswerHole():
            return AnswerHole(hole.by, hole.to, hole.field, url=True)


def _secret_id(answered: Answered) -> str:
    return f"{answered.consumer.id}.{answered.requirement.name}"


def _references(tree: Tree) -> tuple[Ref, ...]:
    if isinstance(tree, tuple):
        return references(tree)
    if isinstance(tree, list):
        return tuple(ref for each in tree for ref in _references(each))
    if isinstance(tree, Mapping):
        return tuple(ref for each in tree.values() for ref in _references(each))
    return ()


def has_references(tree: Tree) -> bool:
    """Whether any text in a structured value reads an answer."""
    return bool(_references(tree))


def _ask_type(answered: Answered, name: str, wrong: str) -> Refusal:
    requirement = answered.requirement
    return Refusal(
        Code.ASK_TYPE,
        f"{answered.consumer.id}.{requirement.name}.{name}",
        wrong,
        requirement.at.child(name),
        related=(Related(answered.contract.at.child("asks", name), "its type is said here"),),
        answers=(Answer(f"ask for something that `{answered.contract.name}` allows"),),
    )
