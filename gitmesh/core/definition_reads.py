"""Where a module's texts read answers, and whether they may there (A3, A4, A5, A9, A11, A16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from gitmesh.core.checking import Checking, may_say
from gitmesh.core.model import (
    Container,
    Content,
    Contract,
    EnvFile,
    Field,
    Json,
    Kind,
    Requirement,
    Tree,
)
from gitmesh.core.reference import Ref, Text, references
from gitmesh.core.refusal import At, Code, Related
from gitmesh.core.retired import RETIRED


class Place(Enum):
    """Where a text stands. A secret may stand in a file, an env-file and in `serves`."""

    ENV = "the environment"
    COMMAND = "a command line"
    HOSTNAME = "a host name"
    ASK = "what is asked of a provider"
    PATH = "a file's path"
    FILE = "a file"
    ENV_FILE = "an env-file"
    SERVES = "what is served"


_TAKES_SECRETS = (Place.FILE, Place.ENV_FILE, Place.SERVES)


@dataclass(frozen=True, slots=True)
class Spot:
    """One text of a module and what may be read in it. `used` is the optional requirement that it is
    under (`when`), `each` the provision whose consumers it speaks of, `served` the field it serves,
    `structure`: it is a leaf of a structure, where a single reference keeps its type."""

    text: Text
    at: At
    place: Place
    used: str | None = None
    each: str | None = None
    served: str | None = None
    on_host: bool = False
    structure: bool = False

    @property
    def where(self) -> At:
        """Where its text is written: a path is a key, all else a value."""
        return self.at if self.place is Place.PATH else self.at.of_value()


def tree_references(tree: Tree) -> tuple[Ref, ...]:
    """The references in a structured value, in order."""
    return tuple(ref for _, text in _leaves(tree, ()) for ref in references(text))


def plain(tree: Tree) -> Json:
    """A structured value without references as JSON."""
    if isinstance(tree, tuple):
        return "".join(each for each in tree if isinstance(each, str))
    if isinstance(tree, Mapping):
        return {key: plain(each) for key, each in tree.items()}
    if isinstance(tree, list):
        return [plain(each) for each in tree]
    return tree


def _leaves(tree: Tree, keys: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Text]]:
    if isinstance(tree, tuple):
        yield keys, tree
    elif isinstance(tree, Mapping):
        for key, each in tree.items():
            yield from _leaves(each, (*keys, key))
    elif isinstance(tree, list):
        for number, each in enumerate(tree):
            yield from _leaves(each, (*keys, number))


# --- every text ----------------------------------------------------------------------------------------


def spots(checking: Checking) -> Iterator[Spot]:
    """Every text of the module that may read answers. What a container took over from one that it is
    like stands where that one says it, and here once."""
    module = checking.module
    for requirement in module.requires.values():
        if requirement.kind is Kind.MODULE:
            used = requirement.name if requirement.optional else None
            for name, tree in requirement.asks.items():
                for keys, text in _leaves(tree, ()):
                    yield Spot(text, requirement.at.child(name, *keys), Place.ASK, used, structure=True)
    seen: set[tuple[At, Place]] = set()
    jobs = [(job.spec, job.where == "host") for job in module.jobs.values()]
    for container, on_host in [*((each, False) for each in module.containers.values()), *jobs]:
        for spot in _of_container(container, on_host):
            if (spot.at, spot.place) not in seen:
                seen.add((spot.at, spot.place))
                yield spot
    for provision in module.provides.values():
        for name, text in provision.serves.items():
            yield Spot(text, provision.at.child("serves", name), Place.SERVES, None, provision.contract, name)


def _of_container(container: Container, on_host: bool) -> Iterator[Spot]:
    place = container.place
    for key, texts in (("entrypoint", container.entrypoint), ("command", container.command)):
        for number, text in enumerate(texts):
            yield Spot(text, place(key, number), Place.COMMAND, on_host=on_host)
    if container.hostname is not None:
        yield Spot(container.hostname, place("hostname"), Place.HOSTNAME)
    yield from _of_part(container.env, container.env_file, container.files, place, None, on_host)
    for name, when in container.when.items():
        here = partial(place, "when", name)
        yield from _of_part(when.env, when.env_file, when.files, here, name, on_host)


def _of_part(
    env: Mapping[str, Text | EnvFile],
    env_file: Mapping[str, Text],
    files: Mapping[Text, Content],
    place: Callable[..., At],
    used: str | None,
    on_host: bool,
) -> Iterator[Spot]:
    for name, value in env.items():
        if isinstance(value, EnvFile):
            here = place("env", name, "file")
            yield Spot(value.text, here, Place.FILE, used, on_host=on_host)
        else:
            yield Spot(value, place("env", name), Place.ENV, used, on_host=on_host)
    for name, text in env_file.items():
        yield Spot(text, place("env-file", "env", name), Place.ENV_FILE, used, on_host=on_host)
    for path, content in files.items():
        yield Spot(path, content.at, Place.PATH, used, content.each)
        if content.format == "text":
            yield Spot(content.text, content.at, Place.FILE, used, content.each, on_host=on_host)
        for keys, text in _leaves(content.tree, ()):
            here = content.at.child(content.format, *keys)
            yield Spot(text, here, Place.FILE, used, content.each, on_host=on_host, structure=True)


# --- whether it may ------------------------------------------------------------------------------------


def check_reads(checking: Checking) -> None:
    """Refuse every reference that reads what there is not, or where it must not."""
    for spot in spots(checking):
        for ref in references(spot.text):
            if ref.requirement == "consumer":
                _check_consumer(checking, spot, ref)
            else:
                _check_ref(checking, spot, ref)


def _check_ref(checking: Checking, spot: Spot, ref: Ref) -> None:
    requirement = checking.module.requires.get(ref.requirement)
    if spot.place is Place.PATH:
        checking.refuse(
            Code.REFERENCE_FORM,
            str(ref),
            "a file's path is said by the module; only `${consumer:as}` may stand in it, with `each`",
            spot.where,
            "write the path out",
        )
    elif requirement is None:
        _unknown_requirement(checking, spot, ref)
    else:
        _check_optional(checking, spot, requirement)
        contract = checking.contract(requirement)
        if contract is not None:
            _check_field(checking, spot, ref, requirement, contract)


def _unknown_requirement(checking: Checking, spot: Spot, ref: Ref) -> None:
    if ref.requirement in RETIRED:
        said = f"`${{{ref.requirement}:…}}` is a form that is no more"
        checking.refuse(Code.RETIRED_FORM, str(ref), said, spot.where, RETIRED[ref.requirement])
        return
    checking.refuse(
        Code.REFERENCE_UNKNOWN,
        str(ref),
        f"the module has no requirement `{ref.requirement}`",
        spot.where,
        may_say(ref.requirement, checking.module.requires, "requirement"),
        root=checking.lacks(ref.requirement),
    )


def _check_optional(checking: Checking, spot: Spot, requirement: Requirement) -> None:
    if requirement.optional and spot.used != requirement.name:
        checking.refuse(
            Code.REFERENCE_OPTIONAL,
            requirement.name,
            f"`{requirement.name}` is optional and read where it may not be there",
            spot.where,
            f"read it under `when: {{{requirement.name}: …}}`, or leave `optional` out",
            related=(Related(requirement.at, "optional here"),),
            root="" if spot.used is None else checking.lacks(spot.used),
        )


def _check_field(
    checking: Checking, spot: Spot, ref: Ref, requirement: Requirement, contract: Contract
) -> None:
    field = contract.fields.get(ref.field)
    own_ask = requirement.kind is Kind.MODULE and ref.field in contract.asks
    if field is None and not own_ask:
        known = [*contract.fields, *(contract.asks if requirement.kind is Kind.MODULE else ())]
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            str(ref),
            f"`{contract.name}` has no field `{ref.field}`",
            spot.where,
            may_say(ref.field, known, "field"),
            related=(Related(requirement.at, "required here"),),
            root=f"{contract.name} has {ref.field}",
        )
    elif ref.field == "location" and requirement.kind is Kind.HOST:
        _check_location(checking, spot, ref)
    else:
        schema = contract.asks[ref.field].schema if field is None else field.schema
        _check_secret(checking, spot, ref, requirement, field)
        _check_scalar(checking, spot, ref, schema.get("type"))


def _check_location(checking: Checking, spot: Spot, ref: Ref) -> None:
    if spot.on_host:
        return
    checking.refuse(
        Code.HOST_PATH_EXPOSED,
        str(ref),
        f"a path of the host stands in {spot.place.value}; software sees the container's side of a mount",
        spot.where,
        f"mount it, `mounts: {{/a/path: {ref.requirement}}}`, and write that path here",
    )


def _check_secret(
    checking: Checking, spot: Spot, ref: Ref, requirement: Requirement, field: Field | None
) -> None:
    if field is None or not field.secret:
        return
    if spot.place is Place.SERVES:
        _check_served_secret(checking, spot, ref)
    elif spot.place is Place.ENV_FILE and plain(requirement.asks.get("lines", ())) == "many":
        checking.refuse(
            Code.REFERENCE_FORM,
            str(ref),
            "an env-file has one line for each value, and this secret has many",
            spot.where,
            "give it as a file, under `files` or as `{file: …}` under `env`",
            related=(Related(requirement.at, "`lines: many`"),),
        )
    elif spot.place not in _TAKES_SECRETS:
        checking.refuse(
            Code.SECRET_EXPOSED,
            str(ref),
            f"a secret stands in {spot.place.value}, where others can read it",
            spot.where,
            f"give it as a file: `{{file: '{ref}'}}` under `env`, or under `files`",
            "where the software can take it no other way: `env-file`, with a reason",
        )


def _check_served_secret(checking: Checking, spot: Spot, ref: Ref) -> None:
    contract = checking.contracts.get(spot.each or "")
    served = None if contract is None else contract.fields.get(spot.served or "")
    if served is not None and not served.secret:
        checking.refuse(
            Code.SECRET_EXPOSED,
            str(ref),
            f"a secret is served as `{spot.served}`, which is none",
            spot.where,
            f"let the contract say `secret: true` of `{spot.served}`, or serve something else",
        )


def _check_scalar(checking: Checking, spot: Spot, ref: Ref, type_: Json) -> None:
    whole = spot.structure and len(spot.text) == 1
    if type_ in ("array", "object") and not whole:
        what = "a list" if type_ == "array" else "a map"
        checking.refuse(
            Code.REFERENCE_FORM,
            str(ref),
            f"{what} can't stand in text",
            spot.where,
            "let it be the whole of a value in a structured file, such as `yaml:` or `json:`",
        )


# --- ${consumer:…} -------------------------------------------------------------------------------------


def _check_consumer(checking: Checking, spot: Spot, ref: Ref) -> None:
    """`as`, `as:dns` and `login` in `serves`; in a file with `each` also asks and fields (A9)."""
    contract = checking.contracts.get(spot.each or "")
    if spot.each is not None and spot.each not in checking.contracts:
        return
    may = _consumer_may(spot, contract)
    said = ref.field if ref.alphabet is None else f"{ref.field}:{ref.alphabet}"
    if said in may:
        if spot.place is Place.FILE and contract is not None and ref.alphabet is None:
            field = contract.fields.get(ref.field)
            schema = contract.asks[ref.field].schema if ref.field in contract.asks else None
            schema = field.schema if field is not None else schema
            _check_scalar(checking, spot, ref, None if schema is None else schema.get("type"))
        return
    if not may:
        checking.refuse(
            Code.SERVES_PLACEHOLDER,
            str(ref),
            f"`${{consumer:…}}` in {spot.place.value}: it speaks of a consumer only in `serves` and in a "
            "file with `each`",
            spot.where,
            "of itself a module reads `me: {mesh: identity}`, as `${me:as}`",
        )
        return
    checking.refuse(
        Code.SERVES_PLACEHOLDER,
        str(ref),
        "this is nothing that may be said of a consumer here",
        spot.where,
        "it may say " + ", ".join(f"`${{consumer:{each}}}`" for each in may),
    )


def _consumer_may(spot: Spot, contract: Contract | None) -> tuple[str, ...]:
    if spot.place is Place.SERVES:
        login = contract is not None and contract.credential is not None and contract.credential.login
        return ("as", "as:dns", "login") if login else ("as", "as:dns")
    if spot.each is None:
        return ()
    if spot.place is Place.PATH:
        return ("as", "as:dns")
    known = () if contract is None else (*contract.asks, *contract.fields)
    return tuple(dict.fromkeys(("as", "as:dns", *known)))
