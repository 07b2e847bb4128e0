"""Refusals as SARIF 2.1.0, which code scanning and editors read (OASIS, sarif-v2.1.0)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from gitmesh import __version__, explain
from gitmesh.core.model import Json
from gitmesh.core.refusal import Refusal
from gitmesh.report.located import Located, Place, located, safe

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(refusals: Iterable[Refusal], files: Mapping[str, bytes]) -> str:
    """One log with one run, as a line of ASCII; a run without results is a commit that resolves."""
    return json.dumps(log(refusals, files), ensure_ascii=True, separators=(", ", ": ")) + "\n"


def log(refusals: Iterable[Refusal], files: Mapping[str, bytes]) -> dict[str, Json]:
    """The log as a value; `files` are the bytes that were checked, of which none is quoted (SECURITY §2b)."""
    found = located(refusals, files)
    codes = sorted({each.refusal.code.value for each in found})
    driver = {"name": "gitmesh", "semanticVersion": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        # Columns are counted in characters, as a refusal has them; SARIF's own default is UTF-16 units.
        "columnKind": "unicodeCodePoints",
        "results": _results(found, codes),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Json]:
    page = explain.page(code)
    return {
        "id": code,
        "shortDescription": {"text": explain.summary(code)},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": [explain.rule(code)]},
    }


def _results(found: Iterable[Located], codes: list[str]) -> list[Json]:
    """A result for each refusal. Two that are alike but for their lines are told apart by their number."""
    seen: dict[str, int] = {}
    results = []
    for each in found:
        print_ = _fingerprint(each)
        seen[print_] = seen.get(print_, 0) + 1
        results.append(_result(each, codes, f"{print_}:{seen[print_]}"))
    return results


def _result(found: Located, codes: list[str], fingerprint: str) -> dict[str, Json]:
    refusal = found.refusal
    code = refusal.code.value
    ways = [each.text if each.command is None else f"{each.text}: {each.command}" for each in refusal.answers]
    text = "\n".join(safe(each) for each in (f"{refusal.subject}: {refusal.message}", *ways))
    result: dict[str, Json] = {
        "ruleId": code,
        "ruleIndex": codes.index(code),
        "level": "error",
        "message": {"text": _plain(text)},
        "partialFingerprints": {"gitmesh/v1": fingerprint},
    }
    if found.place is not None:
        result["locations"] = [_location(found.place)]
    if found.related:
        result["relatedLocations"] = [
            {"id": number, **_location(each)} for number, each in enumerate(found.related, 1)
        ]
    return result


def _fingerprint(found: Located) -> str:
    """What stays while lines are added above: the code, the subject, the file and the keys."""
    refusal = found.refusal
    parts = [refusal.code.value, refusal.subject, refusal.at.file, *map(str, refusal.at.keys)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _location(place: Place) -> dict[str, Json]:
    physical: dict[str, Json] = {"artifactLocation": {"uri": quote(place.file)}}
    if place.span is not None:
        physical["region"] = {
            "startLine": place.span.line,
            "startColumn": place.span.column,
            "endLine": place.span.end_line,
            "endColumn": place.span.end_column,
        }
    location: dict[str, Json] = {"physicalLocation": physical}
    return location | ({"message": {"text": _plain(place.label)}} if place.label else {})


def _plain(text: str) -> str:
    """`text` so that no part of it is read as a placeholder or as a link (SARIF 3.11.5, 3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "\\](")
