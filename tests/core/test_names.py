"""Names: public ones compared normalised (B9), and those that the mesh makes (B14)."""

from __future__ import annotations

from itertools import count

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmesh.core.hostname import canonical
from gitmesh.core.identity import LONGEST, dns, logins, mint
from gitmesh.core.refusal import Code
from gitmesh.core.unique import normalised
from tests.cases.test_cases import mesh_files
from tests.core.test_resolve import APP, NOTHING, declarations, resolved

OTHER = "assignments/sparta/app.yaml"


@pytest.mark.parametrize(
    "name",
    [
        "münchen.example",
        "MÜNCHEN.Example",
        "straße.example",
        "βόλος.example",
        "例え。テスト",
        "www.öbb.at",
        "ａ.b",
    ],
)
@pytest.mark.rule("B9")
def test_a_name_has_the_form_that_browsers_look_up(name: str) -> None:
    assert canonical(name) == idna.encode(name, uts46=True).decode()


@given(st.from_regex(r"[a-zA-Zà-öø-ž0-9]{1,12}(\.[a-zA-Zà-öø-ž]{1,12}){1,2}\.?", fullmatch=True))
@pytest.mark.rule("B9")
def test_the_canonical_form_is_its_own(name: str) -> None:
    found = canonical(name)
    assert found.isascii()
    loud = "".join(each.upper() if each.isascii() else each for each in name)
    assert found == found.lower() == canonical(found) == canonical(loud) == canonical(f"{found}.")


@pytest.mark.parametrize(
    "name", ["Example.COM", "example.com.", "example.com", "example.com:443", "EXAMPLE.com.:443"]
)
@pytest.mark.rule("B9")
def test_c89_case_dot_and_default_port_make_no_other_name(name: str) -> None:
    assert normalised(name) == "example.com"
    assert normalised(f"{name.removesuffix(':443')}:8443") != "example.com"


@pytest.mark.parametrize(
    "name", ["a.example:8443", "https://a.example", "a.example/git", "a b.example", "a..b"]
)
@pytest.mark.rule("B9")
def test_c89_a_name_has_no_port_scheme_or_path(name: str) -> None:
    _, refusals = resolved({APP: f"values: {{web.name: '{name}'}}\n"})
    assert [(each.code, each.subject) for each in refusals] == [(Code.VALUE_TYPE, "app@athens.web.name")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("app.example.org", "APP.Example.org."),
        ("straße.example", "xn--strae-oqa.example"),
    ],
)
@pytest.mark.rule("B9")
def test_c88_two_spellings_are_one_name(one: str, other: str) -> None:
    _, refusals = resolved({APP: f"values: {{web.name: {one}}}\n", OTHER: f"values: {{web.name: {other}}}\n"})
    assert [(each.code, each.subject) for each in refusals] == [(Code.NAME_HELD, "app@sparta.web.name")]
    assert "app@athens" in refusals[0].message


@pytest.mark.rule("B9", "B20")
def test_both_ends_are_told_the_canonical_name() -> None:
    found = declarations({APP: "values: {web.name: München.example.}\n"})
    (route,) = found["delphi"].assignments["edge@delphi"].provides["route"].consumers
    assert route.asks["name"] == "xn--mnchen-3ya.example"
    env = found["athens"].assignments["app@athens"].containers["app"].env
    assert env["URL"] == "https://xn--mnchen-3ya.example"


ROUTE = """
contract: route
unique: [name, path]
asks:
  upstream: {type: string}
  name:     {type: string, format: hostname, from: operator}
  path:     {type: string, from: operator, default: /}
  ports:    {type: array, items: {type: integer}, default: []}
fields:
  url: {type: string, format: uri, derived: 'https://{name}{path}'}
"""


@pytest.mark.parametrize(
    ("one", "other", "held"),
    [
        ("{web.name: a.example.org, web.path: /git}", "{web.name: A.example.org., web.path: /wiki}", False),
        ("{web.name: a.example.org, web.path: /git}", "{web.name: A.example.org., web.path: /git}", True),
        ("{web.name: a.example.org, web.path: /git}", "{web.name: a.example.org, web.path: /GIT}", False),
        ("{web.name: a.example.org}", "{web.name: a.example.org, web.path: /}", True),
        ("{web.name: a.example.org, web.path: /git}", "{web.name: b.example.org, web.path: /git}", False),
    ],
)
@pytest.mark.rule("B9")
def test_a_name_may_be_shared_by_path_where_the_contract_says_so(one: str, other: str, held: bool) -> None:
    files = {"contracts/route.yaml": ROUTE, APP: f"values: {one}\n", OTHER: f"values: {other}\n"}
    _, refusals = resolved(files)
    assert [each.code for each in refusals] == ([Code.NAME_HELD] if held else [])


@pytest.mark.rule("B9")
def test_anything_that_is_asked_can_be_unique() -> None:
    files = {"contracts/route.yaml": ROUTE.replace("[name, path]", "[ports]")}
    _, refusals = resolved({**files, OTHER: "values: {web.name: b.example.org}\n"})
    assert [(each.code, each.message) for each in refusals] == [
        (Code.NAME_HELD, "`[]` is held by app@athens already")
    ]


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


@given(NAMES, NAMES, st.none() | NAMES)
@pytest.mark.rule("B14")
def test_c91_every_name_made_of_the_longest_ids_fits(module: str, node: str, word: str | None) -> None:
    """A name is shortened only with a digest; a login fits twenty characters, a label of DNS its 63."""
    identity = mint(module, node, word)
    assert len(identity) <= LONGEST
    assert all(len(each) <= 20 for each in logins(identity))
    assert len(dns(identity)) <= 63 and "_" not in dns(identity)
    ids = [module, node, *([word] if word else [])]
    readable = "_".join(ids).replace("-", "_")
    assert identity == readable or identity.startswith(f"{readable[:12]}_")


@given(st.sets(st.tuples(NAMES, NAMES), min_size=2, max_size=2))
@pytest.mark.rule("B14")
def test_c92_one_function_makes_the_name_and_two_ids_have_two(ids: set[tuple[str, str]]) -> None:
    one, other = ids
    assert mint(*one) == mint(*one)
    assert mint(*one) != mint(*other), "but for a digest of 20 bits, which the resolver refuses (below)"


@pytest.mark.rule("B14")
def test_c92_two_ids_with_one_digest_are_refused() -> None:
    seen: dict[str, str] = {}
    for number in count():
        name = f"the-same-beginning-{number}"
        first = seen.setdefault(mint(name, "athens"), name)
        if first != name:
            break
    app = mesh_files(NOTHING)["modules/app/module.yaml"].decode()
    files = {}
    for each in (first, name):
        files[f"modules/{each}/module.yaml"] = app.replace("module: app\n", f"module: {each}\n")
        files[f"assignments/athens/{each}.yaml"] = f"values: {{web.name: {each}.example.org}}\n"
    _, refusals = resolved(files)
    assert [each.code for each in refusals] == [Code.IDENTITY_HELD]
    assert first in refusals[0].message + refusals[0].subject
