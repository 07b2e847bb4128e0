"""What is written out of habit is refused with what a module says instead."""

from __future__ import annotations

import pytest

from gitmesh.repo.document import check, read
from gitmesh.repo.habits import COMPOSE

IMAGE = f"docker.io/example/app:1@sha256:{'0' * 64}"


def answers(text: str) -> list[tuple[str, list[str]]]:
    """What a module's file is refused for, each with its answers."""
    value, refused = read("modules/app/module.yaml", text.encode())
    assert refused == []
    found = check("module", "modules/app/module.yaml", value)
    return [(each.message, [answer.text for answer in each.answers]) for each in found]


@pytest.mark.rule("B10")
@pytest.mark.parametrize("word", [each for each in COMPOSE if each != "services"])
def test_composes_word_is_answered_with_the_modules(word: str) -> None:
    found = answers(f"module: app\ncontainers: {{app: {{image: '{IMAGE}', {word}: x}}}}\n")
    assert found == [(f"`containers.app.{word}`: unknown key", [COMPOSE[word]])]


def test_a_compose_file() -> None:
    assert ("`services`: unknown key", [COMPOSE["services"]]) in answers("services: {}\n")


@pytest.mark.parametrize(
    ("said", "place", "answer"),
    [
        ("requires: {db: postgres-database}", "requires.db", "say who answers it"),
        (f"containers: {{app: {{image: '{IMAGE}', env: [A=b]}}}}", "containers.app.env", "as `NAME: value`"),
        ("containers: {app: {image: example/app}}", "containers.app.image", "imagetools inspect"),
        (
            f"containers: {{app: {{image: '{IMAGE}', publish: [80]}}}}",
            "publish[0]",
            "name a port requirement",
        ),
    ],
)
def test_a_value_in_another_form(said: str, place: str, answer: str) -> None:
    ((message, ways),) = answers(f"module: app\n{said}\n")
    assert place in message
    assert answer in ways[0]


def test_a_word_elsewhere_is_none_of_composes() -> None:
    ((_, ways),) = answers("module: app\nvolumes: {}\n")
    assert ways[0].startswith("there are `module`")
