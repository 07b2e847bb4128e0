"""What the schemas say besides: words for an editor, and the language of contracts, said once."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmesh import assets
from gitmesh.core.contract_schema import KEYWORDS, TYPES, check_schema
from gitmesh.core.formats import FORMATS
from gitmesh.repo import schema
from tests.repo.test_schemas import walk

# --- what an editor shows ------------------------------------------------------------------------------


def _described(loaded: Any, said: Any) -> bool:
    """Whether a property has a description, its own or that of what it refers to."""
    if "description" in said:
        return True
    target = loaded
    for key in said.get("$ref", "#").split("/")[1:]:
        target = target[key]
    return target is not loaded and _described(loaded, target)


def _undescribed(loaded: Any, part: Any, at: str) -> Any:
    """Each property without a description, but those of an `if`, which no editor shows."""
    if isinstance(part, list):
        for number, each in enumerate(part):
            yield from _undescribed(loaded, each, f"{at}/{number}")
    if isinstance(part, dict):
        named = part.get("properties", {}) if not at.endswith("/properties") else {}
        yield from (f"{at}/{name}" for name, said in named.items() if not _described(loaded, said))
        for key, each in part.items():
            if key != "if":
                yield from _undescribed(loaded, each, f"{at}/{key}")


@pytest.mark.parametrize("kind", schema.KINDS)
def test_every_property_says_what_it_is(kind: str) -> None:
    assert list(_undescribed(schema.schema(kind), schema.schema(kind), kind)) == []


@pytest.mark.parametrize("name", ["edited", "record", "refusals", "status"])
def test_every_property_that_a_program_reads_says_what_it_is(name: str) -> None:
    loaded = json.loads((assets.asset("schemas") / f"{name}.json").read_bytes())
    parts = {key: part for key, part in loaded.items() if key in ("properties", "$defs")}
    assert list(_undescribed(loaded, parts, name)) == []


def test_a_property_without_a_description_is_found() -> None:
    loaded = {
        "$defs": {"a": {"type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": "null"}},
    }
    assert list(_undescribed(loaded, loaded, "x")) == ["x/a", "x/b"]


# --- the language of contracts -------------------------------------------------------------------------


@pytest.mark.rule("A6")
def test_one_definition_of_a_contract_s_schema_and_the_code_agrees_with_it() -> None:
    subset = schema.schema("contract")["$defs"]["schema"]["properties"]
    assert set(subset) == set(KEYWORDS)
    assert schema.schema("module")["$defs"]["schema"] == schema.schema("contract")["$defs"]["schema"]
    assert set(schema.schema("contract")["$defs"]["typeName"]["enum"]) == set(TYPES)
    assert set(subset["format"]["enum"]) == set(FORMATS)
    for kind in ("ask", "field"):
        properties = schema.schema("contract")["$defs"][kind]["properties"]
        assert {name: said for name, said in properties.items() if name in KEYWORDS} == {
            name: {"$ref": f"#/$defs/schema/properties/{name}"} for name in KEYWORDS
        }


META = jsonschema.Draft202012Validator(json.loads((assets.asset("schemas") / "subset.json").read_bytes()))
KEYWORD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.sampled_from(["string", "integer", "object", "hostname", "uuid", "[a-z]+", "a\nb", ""]),
    st.lists(st.sampled_from(["string", "array", "a", 1, None]), max_size=3),
)
SCHEMAS = st.recursive(
    st.dictionaries(st.sampled_from([*KEYWORDS, "allOf", "minLenght"]), KEYWORD_VALUES, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from([*KEYWORDS, "$ref"]),
        KEYWORD_VALUES | inner | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        max_size=4,
    ),
    max_leaves=6,
)


@pytest.mark.rule("A6")
@settings(max_examples=400, deadline=None)
@given(SCHEMAS)
def test_what_the_meta_schema_refuses_the_code_refuses_too(written: Any) -> None:
    fits_meta = META.is_valid(written)
    faults = check_schema(written)
    if not fits_meta:
        assert faults or _only_said_by_the_file(written)
    for _, said in faults:
        # What JSON Schema can't say of one keyword: how two of them go together, and a pattern's cost.
        assert not fits_meta or re.search("says nothing of|is more than|the pattern", said), said


def _only_said_by_the_file(written: Any) -> bool:
    """Notes are for people: only the meta-schema holds them to a form; and so with lists said twice."""
    return any(
        isinstance(part, dict) and ({"title", "description", "examples"} & part.keys() or _repeats(part))
        for part in walk(written)
    )


def _repeats(part: Any) -> bool:
    types = part.get("type")
    return isinstance(types, list) and len(set(map(str, types))) < len(types)
