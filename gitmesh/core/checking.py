"""What every check of a module's definition has at hand, and how it refuses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from gitmesh.core.contract_builtin import contract_of
from gitmesh.core.model import Contract, Module, Requirement
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related


@dataclass(frozen=True, slots=True)
class Checking:
    """One module under check. `broken` are contracts whose files were refused: what needs one is silent."""

    module: Module
    contracts: Mapping[str, Contract]
    seats: Mapping[str, str | None]
    broken: Collection[str] = ()
    refusals: list[Refusal] = field(default_factory=list)

    def contract(self, requirement: Requirement) -> Contract | None:
        """The requirement's contract, if it is known."""
        return contract_of(requirement, self.contracts)

    def refuse(
        self,
        code: Code,
        name: str,
        message: str,
        at: At,
        *answers: str,
        related: tuple[Related, ...] = (),
        root: str = "",
    ) -> None:
        """Add a refusal about `name` in the module (the module itself where it is empty). One mistake that
        several containers took over is one."""
        if any((each.code, each.at, each.message) == (code, at, message) for each in self.refusals):
            return
        subject = f"{self.module.name}.{name}" if name else f"module {self.module.name}"
        said = tuple(Answer(each) for each in answers)
        self.refusals.append(Refusal(code, subject, message, at, related=related, answers=said, root=root))

    def lacks(self, requirement: str) -> str:
        """The root of what is refused since the module has no such requirement; empty where it has."""
        return "" if requirement in self.module.requires else f"{self.module.name} requires {requirement}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is most likely a misspelling of."""
    return next(iter(get_close_matches(name, list(known), 1)), None)


def may_say(name: str, known: Iterable[str], what: str) -> str:
    """The answer to an unknown name: the nearest known one first, then all of them."""
    names = list(known)
    if not names:
        return f"there is no {what} here"
    near = nearest(name, names)
    meant = f"did you mean `{near}`? " if near else ""
    shown = names if len(names) <= 40 else names[:40]
    more = "" if len(names) <= 40 else f" and {len(names) - 40} more"
    return f"{meant}there is: {', '.join(f'`{each}`' for each in shown)}{more}"
