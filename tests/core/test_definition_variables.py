"""A container's variables: each is said once, and can be said where it stands."""

from __future__ import annotations

import pytest

from gitmesh.core.refusal import Code
from tests.core.definitions import C, refusals_of, refused_once, with_container, words_of


@pytest.mark.rule("A5")
@pytest.mark.parametrize(
    ("lines", "keys", "first"),
    [
        ("env: {A: x}\nenv-file: {reason: r, env: {A: y}}", ("env-file", "env", "A"), ("env", "A")),
        (
            "env: {A: x}\nwhen: {mail: {env-file: {reason: r, env: {A: y}}}}",
            ("when", "mail", "env-file", "env", "A"),
            ("env", "A"),
        ),
        (
            "env-file: {reason: r, env: {A: y}}\nwhen: {mail: {env: {A: x}}}",
            ("when", "mail", "env", "A"),
            ("env-file", "env", "A"),
        ),
        (
            "when: {mail: {env: {A: x}}, extra: {env: {A: y}}}",
            ("when", "extra", "env", "A"),
            ("when", "mail", "env", "A"),
        ),
    ],
)
def test_c122_a_variable_said_twice_names_both_places(
    lines: str, keys: tuple[str, ...], first: tuple[str, ...]
) -> None:
    refusal = refused_once(with_container(lines), Code.SCHEMA, *C, *keys)
    assert [each.at.keys for each in refusal.related] == [(*C, *first)]
    assert "`A` is said twice" in refusal.message


@pytest.mark.rule("A5")
@pytest.mark.parametrize(
    "lines",
    [
        "env: {A: x}\nwhen: {mail: {env: {A: y}}}",
        "env-file: {reason: r, env: {A: x}}\nwhen: {mail: {env-file: {reason: r, env: {A: y}}}}",
        "env: {A: x}\nenv-file: {reason: r, env: {B: x}}",
    ],
)
def test_a_when_may_say_anew_what_its_container_says(lines: str) -> None:
    assert refusals_of(with_container(lines)) == []


@pytest.mark.rule("S21")
@pytest.mark.parametrize(
    "value", ["a\\nb", "a\\tb", '\\"q\\"', "it's", "back\\\\slash", "$HOME", "a #b", "# b", " a", "a ", "`x`"]
)
def test_what_an_env_file_cant_say(value: str) -> None:
    text = with_container(f'env-file: {{reason: r, env: {{X: "{value}"}}}}')
    refusal = refused_once(text, Code.SCHEMA, *C, "env-file", "env", "X")
    assert refusal.at.value
    assert "under `files`" in words_of(refusal)


@pytest.mark.rule("S21")
@pytest.mark.parametrize("value", ["a b", "a#b", "a=b=c", "", "é", "50%", "a;b", "{x: [1]}", "17", "true"])
def test_what_an_env_file_can_say(value: str) -> None:
    assert refusals_of(with_container(f"env-file: {{reason: r, env: {{X: '{value}'}}}}")) == []


@pytest.mark.rule("S21")
def test_c29_a_line_break_and_a_nul_are_no_value_of_a_variable() -> None:
    refused_once(with_container('env: {X: "a\\nb"}'), Code.SCHEMA, *C, "env", "X")
    refused_once(
        with_container('env-file: {reason: r, env: {X: "a\\nb"}}'), Code.SCHEMA, *C, "env-file", "env", "X"
    )
    assert refusals_of(with_container('env: {X: {file: "a\\nb"}}')) == []
    assert refusals_of(with_container("env: {X: \"'q' $5 #c\"}")) == [], "an environment is literal otherwise"


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("env: {A: {file: x}, a: {file: y}}", ("env", "a")),
        ("env: {A: {file: x}}\nfiles: {/run/secrets/a: y}", ("env", "A")),
        ("env: {A: {file: x}}\nwhen: {mail: {env: {a: {file: y}}}}", ("when", "mail", "env", "a")),
    ],
)
def test_the_file_of_a_variable_has_a_place_of_its_own(lines: str, keys: tuple[str, ...]) -> None:
    refused_once(with_container(lines), Code.SCHEMA, *C, *keys)


def test_what_was_taken_over_is_refused_where_it_is_written() -> None:
    """The container that says it may come after the one that is like it; the mistake is one."""
    text = with_container("env: {A: '${db:nothing}', B: /nowhere}\nmounts: {/x: http}")
    worker = "  worker: {like: app, command: [work], env: {C: '${db:no}'}}\n"
    head, tail = text.split("  app:\n")
    found = refusals_of(f"{head}{worker}  other: {{like: worker}}\n  app:\n{tail}")
    assert sorted((each.code, each.at.keys) for each in found) == [
        (Code.HOST_PATH_EXPOSED, (*C, "env", "B")),
        (Code.REFERENCE_UNKNOWN, (*C, "env", "A")),
        (Code.REFERENCE_UNKNOWN, (*C, "mounts", "/x")),
        (Code.REFERENCE_UNKNOWN, ("containers", "worker", "env", "C")),
    ]


def test_a_job_like_a_container_has_what_it_says_itself_at_its_own_place() -> None:
    job = "jobs:\n  it: {at: daily, like: app, command: [x], env: {A: '${db:no}', B: '${db:no}'}}\n"
    text = with_container("env: {A: a, C: '${db:no}'}") + job
    assert sorted(each.at.keys for each in refusals_of(text)) == [
        (*C, "env", "C"),
        ("jobs", "it", "env", "A"),
        ("jobs", "it", "env", "B"),
    ]
