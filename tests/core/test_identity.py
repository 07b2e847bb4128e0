"""The identity that the mesh mints for a consumer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.identity import dns, identity_of, logins, mint
from gitmesh.core.model import Assignment
from gitmesh.core.refusal import At

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
WORDS = st.none() | st.from_regex(r"[a-z0-9]{1,18}", fullmatch=True)


@pytest.mark.rule("B14")
def test_readable_where_it_fits() -> None:
    assert mint("gitea", "athens") == "gitea_athens"
    assert mint("gitea", "athens", "ro") == "gitea_athens_ro"
    assert len(mint("abcdefghij", "klmnopq")) == 18
    assert mint("abcdefghij", "klmnopq") == "abcdefghij_klmnopq"


@pytest.mark.rule("B14")
def test_shortened_where_it_is_long_or_has_a_dash() -> None:
    assert re.fullmatch(r"paperless_ng_[0-9a-f]{5}", mint("paperless-ngx", "athens"))
    assert re.fullmatch(r"a_b_c_[0-9a-f]{5}", mint("a-b", "c"))
    assert mint("a-b", "c") != mint("a", "b-c")
    assert mint("paperless-ngx", "athens") == "paperless_ng_68608", "as the example mesh has it"


@given(NAMES, NAMES, WORDS)
@pytest.mark.rule("B14")
def test_every_identity_fits_the_tightest_backend(module: str, node: str, word: str | None) -> None:
    identity = mint(module, node, word)
    assert re.fullmatch(r"[a-z0-9_]{1,18}", identity)
    assert identity == mint(module, node, word), "a pure function of the ids"
    assert all(len(each) <= 20 for each in logins(identity))
    assert dns(identity) == identity.replace("_", "-")


@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=2, unique=True))
@pytest.mark.rule("B14")
def test_readable_ones_are_unique_by_construction(ids: list[tuple[str, str]]) -> None:
    (one, on_one), (two, on_two) = ids
    first, second = mint(one, on_one), mint(two, on_two)
    if not any("-" in each or len(each) > 7 for each in (one, on_one, two, on_two)):
        assert first != second


@pytest.mark.rule("B14")
def test_as_keeps_an_identity() -> None:
    moved = Assignment("gitea", "delphi", At("assignments/delphi/gitea.yaml"), as_="gitea_athens")
    assert identity_of(moved, None) == "gitea_athens"
    assert identity_of(moved, "ro") == "gitea_athens_ro"
    assert identity_of(Assignment("gitea", "delphi", At("x")), None) == "gitea_delphi"
