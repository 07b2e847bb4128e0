"""What a contract may hash a secret with, as far as its schemas have to know (FORMATS "Contract"). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gitmesh.core.contract import check_value
from gitmesh.core.model import Schema

EXAMPLES: Mapping[str, str] = {
    "bcrypt": "$2b$12$8qyQzDg.h61uzfJH56zDDue1YLaV9aco0EWDD47tGEVP9YNOcMnBK",
    "argon2id": "$argon2id$v=19$m=65536,t=3,p=4$FmPPrUplDY0G5phGRKxelQ"
    "$LJfM6roKTK4QUO1jfpYi70RhD0TvVz5u0FDICCj5sAk",
    "sha512-crypt": "$6$x0qeensHy6w7o5FU"
    "$Ngd3SAzeK1hmoi6GxVMu341EP9sUkmWBomyzdxGkl5ksYNG1gpq.nWhHJklDQNkYfMo7AcoeUM1eXtH9ngn8j0",
}
"""One of each as the vault makes them, which are all as long and of the same characters."""
_LONGEST: Mapping[str, int] = {"bcrypt": 72}
"""How much of a value a hash takes; it would ignore the rest."""


def fits(schema: Schema, by: str) -> bool:
    """Whether a hash by `by` fits the schema of the field that holds it."""
    return check_value(schema, EXAMPLES[by]) is None


def hashable(schema: Schema, by: str) -> Schema:
    """The schema of a field that is hashed by `by`: no longer than that takes."""
    if by not in _LONGEST:
        return schema
    return {**schema, "maxLength": min(_LONGEST[by], schema.get("maxLength", _LONGEST[by]))}
