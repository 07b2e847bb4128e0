"""What a module provides, held against the contracts it claims (A7, A12)."""

from __future__ import annotations

from collections.abc import Iterator

from gitmesh.core.checking import Checking, may_say, nearest
from gitmesh.core.contract import check_value, narrow
from gitmesh.core.definition_made import always_fits
from gitmesh.core.definition_reads import plain
from gitmesh.core.model import Contract, Field, Kind, Provision, Provisioner, Takes
from gitmesh.core.reference import Ref, Text, references
from gitmesh.core.refusal import Code, Related

_LOGIN = Ref("consumer", "login")


def check_provides(checking: Checking) -> None:
    """Each provision: its contract, the source of every field, what it accepts, who provisions."""
    for provision in checking.module.provides.values():
        contract = checking.contracts.get(provision.contract)
        if provision.contract == "secret" and "mesh-vault" not in checking.module.seats:
            checking.refuse(
                Code.SECRET_RESERVED,
                provision.contract,
                "`secret` is provided by what holds `mesh-vault`, and by nothing else",
                provision.at,
                "remove it; a module that passes a secret on serves it in another contract",
                root=f"{checking.module.name} holds mesh-vault",
            )
        elif contract is not None:
            _check_fields(checking, provision, contract)
            _check_accepts(checking, provision, contract)
        elif provision.contract not in checking.broken:
            checking.refuse(
                Code.CONTRACT_UNKNOWN,
                provision.contract,
                f"there is no contract `{provision.contract}`",
                provision.at,
                may_say(provision.contract, checking.contracts, "contract"),
                f"or add contracts/{provision.contract}.yaml",
                root=_claim(checking, provision.contract),
            )
        if provision.provisioner is not None:
            _check_provisioner(checking, provision, provision.provisioner)


def _claim(checking: Checking, contract: str) -> str:
    """The root of an unknown contract: a provision of the module is misspelt, or the contract is gone."""
    near = nearest(contract, checking.contracts)
    return f"contract {contract}" if near is None else f"{checking.module.name} provides {near}"


# --- every field from one source -----------------------------------------------------------------------


def _check_fields(checking: Checking, provision: Provision, contract: Contract) -> None:
    """What it serves, what the mesh makes and what its provisioner answers are exactly the fields."""
    named = [("serves", name) for name in provision.serves] + [
        ("answers", name) for name in provision.answers
    ]
    for number, (part, name) in enumerate(named):
        keys = (part, name) if part == "serves" else (part, number - len(provision.serves))
        fault = _fault(provision, contract, part, name)
        if fault is not None:
            checking.refuse(
                Code.PROVIDES_MISMATCH,
                f"provides.{contract.name}.{name}",
                fault,
                provision.at.child(*keys),
                may_say(name, _may_serve(contract), "field to serve or answer"),
                root="" if name in contract.fields else f"{contract.name} has {name}",
                related=(Related(contract.at.child("fields", name), "the contract"),),
            )
    _check_lacking(checking, provision, contract)
    _check_credential(checking, provision, contract)
    if provision.answers and provision.provisioner is None:
        checking.refuse(
            Code.PROVIDES_MISMATCH,
            f"provides.{contract.name}",
            "it has `answers`, and no provisioner that would give them",
            provision.at.child("answers"),
            "add a `provisioner`, or serve the fields",
        )


def _check_credential(checking: Checking, provision: Provision, contract: Contract) -> None:
    """A served login is text around `${consumer:login}`, of a credential for each consumer; or the secret is
    served too, from a secret of the module's own, and then one credential is for all."""
    credential = contract.credential
    if credential is None:
        return
    shared, login = credential.secret in provision.serves, credential.login
    said = [name for name, text in provision.serves.items() if _LOGIN in references(text)]
    if shared and references(provision.serves[credential.secret]):
        if not _of_own_secret(checking, provision.serves[credential.secret]):
            fault = "the credential's secret is served, and from no secret of the module's own"
            answer = "require one, `key: {module: secret}`, and serve `${key:value}`; or leave it to the mesh"
            _mismatch(checking, provision, contract, credential.secret, fault, answer)
        elif _hashed(contract) and not _alone(checking, provision.serves[credential.secret]):
            fault = f"`{_hashed(contract)[0]}` is a hash of it, and the vault hashes what it makes, as it is"
            answer = "require it, `key: {module: secret}`, and serve `${key:value}` with nothing around it"
            _mismatch(checking, provision, contract, credential.secret, fault, answer)
        elif not _fits(checking, provision.serves[credential.secret], contract):
            fault = f"the vault makes a secret here that is no `{credential.secret}` of `{contract.name}`"
            answer = "require it with a `form` and a `length` that the contract allows"
            _mismatch(checking, provision, contract, credential.secret, fault, answer)
        for name in said:
            fault = f"`{name}` says a consumer's login, and all consumers have one credential"
            answer = f"write the login out, or don't serve `{credential.secret}`"
            _mismatch(checking, provision, contract, name, fault, answer)
    elif login is not None and login in provision.serves and login not in said and not shared:
        fault = f"`{login}` is served without `${{consumer:login}}`, and each consumer has its own credential"
        answer = (
            f"write `${{consumer:login}}` in it, or serve `{credential.secret}` too: one credential for all"
        )
        _mismatch(checking, provision, contract, login, fault, answer)


def _mismatch(
    checking: Checking, provision: Provision, contract: Contract, name: str, fault: str, answer: str
) -> None:
    checking.refuse(
        Code.PROVIDES_MISMATCH,
        f"provides.{contract.name}.{name}",
        fault,
        provision.at.child("serves", name).of_value(),
        answer,
        related=(Related(contract.at.child("credential"), "the contract's credential"),),
    )


def _of_own_secret(checking: Checking, text: Text) -> bool:
    for ref in references(text):
        requirement = checking.module.requires.get(ref.requirement)
        contract = None if requirement is None else checking.contract(requirement)
        if contract is None or (ref.field in contract.fields and contract.fields[ref.field].secret):
            return True  # what is unknown is refused where it is read
    return False


def _check_lacking(checking: Checking, provision: Provision, contract: Contract) -> None:
    """One refusal names all the fields that nothing says; one whose name is misspelt was refused for that."""
    known = _may_serve(contract)
    strange = [each for each in (*provision.serves, *provision.answers) if each not in contract.fields]
    misspelt = {nearest(each, known) for each in strange}
    lacking = [name for name in _lacking(provision, contract) if name not in misspelt]
    if not lacking or len(lacking) == len(strange) == 1:
        return
    several = len(lacking) > 1
    them = "them" if several else "it"
    named = " and ".join(f"`{each}`" for each in lacking)
    checking.refuse(
        Code.PROVIDES_MISMATCH,
        f"provides.{contract.name}" + ("" if several else f".{lacking[0]}"),
        f"nothing says the {'fields' if several else 'field'} {named} of `{contract.name}`",
        provision.at,
        f"serve {them}, `serves: {{{lacking[0]}: …}}`, or list {them} in `answers`, if only the backend "
        f"knows {them}",
        related=tuple(Related(contract.at.child("fields", each), "the contract's field") for each in lacking),
    )


def _hashed(contract: Contract) -> list[str]:
    return [name for name, field in contract.fields.items() if field.hashed is not None]


def _alone(checking: Checking, text: Text) -> bool:
    """Whether text is the value of a secret of the module's own, and nothing else."""
    own = [checking.module.requires.get(each.requirement) for each in references(text)]
    return len(text) == 1 and own[0] is not None and own[0].contract == "secret"


def _fits(checking: Checking, text: Text, contract: Contract) -> bool:
    """Whether the module's secret, where it is served as it is, can be what the contract says."""
    ref, credential = text[0], contract.credential
    own = checking.module.requires.get(ref.requirement) if isinstance(ref, Ref) else None
    secret = None if own is None else checking.contract(own)
    if len(text) > 1 or own is None or secret is None or credential is None or secret.name != "secret":
        return True
    return always_fits(own, secret, contract.fields[credential.secret].schema)


def _may_serve(contract: Contract) -> list[str]:
    return [name for name, field in contract.fields.items() if field.derived is None and field.hashed is None]


def _fault(provision: Provision, contract: Contract, part: str, name: str) -> str | None:
    """What is wrong with serving or answering one field."""
    field = contract.fields.get(name)
    if field is None:
        return f"`{name}` is no field of `{contract.name}`"
    if field.derived is not None or field.hashed is not None:
        source = "derived" if field.derived is not None else "hashed by the vault"
        return f"`{name}` has a source already: it is {source}"
    if part == "answers":
        if name in provision.serves:
            return f"`{name}` has two sources: it is served too"
        credential = contract.credential
        if credential is not None and credential.by == "vault" and name == credential.secret:
            return f"`{name}` has a source already: the vault makes it"
        return None
    return _literal_fault(field, name, provision.serves[name])


def _literal_fault(field: Field, name: str, text: Text) -> str | None:
    """What is wrong with served text that says a value outright."""
    if references(text):
        return None
    said = plain(text)
    if field.secret:
        return f"`{name}` is a secret, and is written out here"
    readings = [said, int(said)] if said.isascii() and said.removeprefix("-").isdecimal() else [said]
    readings += [said == "true"] if said in ("true", "false") else []
    wrong = [check_value(field.schema, each) for each in readings]
    return None if None in wrong else f"`{name}` is served as something it is not: {wrong[0]}"


def _lacking(provision: Provision, contract: Contract) -> Iterator[str]:
    credential = contract.credential
    made: set[str | None] = set()
    if credential is not None:
        shared = credential.secret in provision.serves
        made = set() if shared else {credential.login}
        made |= {credential.secret} if credential.by == "vault" else set()
    for name, field in contract.fields.items():
        has_source = name in provision.serves or name in provision.answers or name in made
        if not has_source and field.derived is None and field.hashed is None:
            yield name


def _check_accepts(checking: Checking, provision: Provision, contract: Contract) -> None:
    for name, schema in provision.accepts.items():
        at = provision.at.child("accepts", name)
        ask = contract.asks.get(name)
        if ask is None:
            checking.refuse(
                Code.PROVIDES_MISMATCH,
                f"provides.{contract.name}.{name}",
                f"`{name}` is nothing that `{contract.name}` is asked",
                at,
                may_say(name, contract.asks, "ask"),
            )
            continue
        _, wrong = narrow(ask.schema, schema)
        if wrong is not None:
            checking.refuse(
                Code.NARROW_LOOSENS,
                f"provides.{contract.name}.{name}",
                wrong,
                at,
                "accept what the contract allows to ask, or less",
                related=(Related(contract.at.child("asks", name), "the contract says this"),),
            )


# --- the provisioner -----------------------------------------------------------------------------------


def _check_provisioner(checking: Checking, provision: Provision, provisioner: Provisioner) -> None:
    at = provision.at.child("provisioner")
    name = f"provides.{provision.contract}"
    requires = checking.module.requires
    if (provisioner.adapter == "vault") != (provision.contract == "secret"):
        checking.refuse(
            Code.PROVIDES_MISMATCH,
            name,
            "the adapter `vault` provides `secret`, and nothing else does",
            at.child("adapter").of_value(),
            "name another adapter",
            root=f"{checking.module.name} provides secret",
        )
    if provisioner.at is not None:
        wanted = "directory" if provisioner.adapter == "vault" else "port"
        reached = requires.get(provisioner.at)
        if reached is None or (reached.kind, reached.contract) != (Kind.HOST, wanted):
            fit = [
                each.name for each in requires.values() if (each.kind, each.contract) == (Kind.HOST, wanted)
            ]
            checking.refuse(
                Code.REFERENCE_UNKNOWN,
                name,
                f"`{provisioner.at}` is no {wanted} requirement, which the adapter needs",
                at.child("at").of_value(),
                may_say(provisioner.at, fit, f"{wanted} requirement"),
                root=checking.lacks(provisioner.at),
            )
    for key, named in (("at", provisioner.at), ("admin", provisioner.admin)):
        if named is not None and named in requires and requires[named].optional:
            checking.refuse(
                Code.REFERENCE_OPTIONAL,
                name,
                f"`{named}` is optional, and the provisioner needs it",
                at.child(key).of_value(),
                f"leave `optional` of `{named}` out",
                related=(Related(requires[named].at, "optional here"),),
            )
    if provisioner.admin is not None:
        _check_admin(checking, name, provision, provisioner.admin)
    inside = provisioner.options.get("in")
    if inside is not None and inside not in checking.module.containers:
        checking.refuse(
            Code.CONTAINER_UNKNOWN,
            name,
            f"the module has no container `{inside}`",
            at.child("in").of_value(),
            may_say(str(inside), checking.module.containers, "container"),
        )


def _check_admin(checking: Checking, name: str, provision: Provision, admin: str) -> None:
    at = provision.at.child("provisioner", "admin").of_value()
    requires = checking.module.requires
    requirement = requires.get(admin)
    if requirement is not None and requirement.kind is Kind.MODULE and checking.contract(requirement) is None:
        return  # what it requires is refused itself
    if requirement is None or (requirement.kind, requirement.contract) != (Kind.MODULE, "secret"):
        secrets = [each.name for each in requires.values() if each.contract == "secret"]
        checking.refuse(
            Code.REFERENCE_UNKNOWN,
            name,
            f"`{admin}` is no secret requirement, which the administrator's password is",
            at,
            may_say(admin, secrets, "secret requirement"),
            root=checking.lacks(admin),
        )
    elif requirement.takes not in (None, Takes.START, Takes.APPLY):
        checking.refuse(
            Code.PROVIDES_MISMATCH,
            name,
            f"`{admin}` is what the provisioner logs in with, and says `takes: {requirement.takes}`",
            at,
            f"say `takes: apply` of `{admin}`, if the provisioner can change it, else leave `takes` out",
            related=(Related(requirement.at, "required here"),),
        )
