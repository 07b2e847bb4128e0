"""Domain names, nodes and meshes that a definition writes out (A2)."""

from __future__ import annotations

import pytest

from gitmesh.core.definition_literals import Literals, literals
from gitmesh.repo.document import check, read
from gitmesh.repo.load_module import read_module


def _literals(said: str, more: str = "", names: tuple[str, ...] = ()) -> Literals:
    """What is found of one environment value."""
    text = f"""
module: app
requires: {{web: {{operator: {{type: string}}}}}}
containers:
  app:
    image: registry.example.org/app:1@sha256:{"0" * 64}
    env: {{SAID: '{said}'}}
{more}
"""
    value, refused = read("modules/app/module.yaml", text.encode())
    assert refused == []
    assert check("module", "modules/app/module.yaml", value) == []
    module, refused = read_module("modules/app/module.yaml", value, {})
    assert refused == []
    return literals(module, {}, names)


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("https://git.corp.museum/x", "git.corp.museum"),
        ("smtp://me:pw@mail.corp.zone:25", "mail.corp.zone"),
        ("mail.example.org", "mail.example.org"),
        ("Mail.Example.ORG:587", "mail.example.org"),
        ("admin@example.org", "example.org"),
        ("--host=db.hellas.internal --v", "db.hellas.internal"),
        ("a,wiki.example.com", "wiki.example.com"),
    ],
)
def test_a_domain_name_is_found(said: str, name: str) -> None:
    found = _literals(said)
    assert [each.name for each in found.refused] == [name]
    assert found.refused[0].at.keys == ("containers", "app", "env", "SAID")


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    "said",
    [
        "app.ini",
        "/etc/nginx/nginx.conf",
        "org.postgresql.Driver",
        "com.example.app.Main",
        "1.27.3",
        "127.0.0.1:80",
        "http://redis:6379",
        "https://${web:value}/x",
        "https://${web:value}.example.org/",
        "run.sh",
        "README.md",
    ],
)
def test_what_only_looks_like_one_is_left_alone(said: str) -> None:
    assert _literals(said) == Literals((), ())


@pytest.mark.rule("A2")
def test_an_exception_is_counted_and_not_refused() -> None:
    found = _literals("https://api.example.org/", "exceptions: {api.example.org: the only one there is}")
    assert found.refused == ()
    assert [each.name for each in found.excepted] == ["api.example.org"]


@pytest.mark.rule("A2")
def test_a_nodes_name_is_found_as_a_word_only() -> None:
    assert [each.name for each in _literals("on athens", names=("athens",)).refused] == ["athens"]
    assert _literals("pathens/athens-2", names=("athens",)) == Literals((), ())
