"""The table docs/rules.md: each rule, and the tests that prove it. `./dev rules` writes it.

The rules stand in tests/rules.toml; the tests say theirs with `@pytest.mark.rule("B4")`, on a function, on
a class, in a `pytest.param(..., marks=…)` or as the module's `pytestmark`. They are read from the source,
so that nothing is run or imported. A case folder `tests/cases/refused/<code>--…` proves the rule that the
code's page under gitmesh/explain names in its last line; what one proves besides, and what one under
`resolved` proves, stands in tests/cases/proves.toml.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGES = TESTS.parent / "gitmesh" / "explain"
TABLE = TESTS.parent / "docs" / "rules.md"

GROUPS = {
    "A": "Definitions",
    "B": "Resolution",
    "C": "Secrets",
    "D": "Rotation",
    "E": "The host",
    "F": "Trust",
    "G": "For the operator",
    "S": "Attacks and faults",
}

HEAD = """\
# The rules, and the tests that prove them

Made by `./dev rules` from `tests/rules.toml` and the marks in `tests/`; not edited by hand. A row without a
test is a rule that nothing proves yet: some are built and unproven, others are not built. A test in a row
proves something of its rule, which need not be all of it.
"""


@dataclass(frozen=True, slots=True, order=True)
class Proof:
    """A test and the rule that it says it proves."""

    rule: str
    test: str
    line: int


def rules() -> dict[str, str]:
    """Every rule's id and sentence, in order."""
    read: dict[str, str] = tomllib.loads((TESTS / "rules.toml").read_text())["rules"]
    return read


def proofs(folder: Path = TESTS) -> list[Proof]:
    """The marks of every test below `folder`."""
    return sorted(
        proof
        for path in sorted(folder.rglob("test_*.py"))
        for proof in proofs_in(path.read_text(), path.relative_to(folder).as_posix())
    )


def case_proofs(cases: Path = TESTS / "cases" / "refused", pages: Path = PAGES) -> list[Proof]:
    """The rule of every case folder of a refusal, from the page of its code."""
    found = []
    for case in sorted(each.name for each in cases.iterdir()) if cases.is_dir() else []:
        page = pages / f"{case.partition('--')[0]}.md"
        named = re.search(r"^Rules?: (.+)$", page.read_text(), re.MULTILINE) if page.is_file() else None
        for rule in re.findall(r"[A-GS][0-9]+", named.group(1)) if named else []:
            found.append(Proof(rule, f"tests/cases/refused/{case}", 0))
    return found


def said_proofs(cases: Path = TESTS / "cases") -> list[Proof]:
    """What `proves.toml` says of case folders. Raises ValueError for one that is not there."""
    found = []
    for kind, said in tomllib.loads((cases / "proves.toml").read_text()).items():
        for case, proven in said.items():
            if not (cases / kind / case).is_dir():
                raise ValueError(f"tests/cases/proves.toml: there is no {kind}/{case}")
            found += [Proof(rule, f"tests/cases/{kind}/{case}", 0) for rule in proven]
    return found


def everything() -> list[Proof]:
    """The marks and the cases."""
    return sorted({*proofs(), *case_proofs(), *said_proofs()})


def proofs_in(source: str, name: str) -> Iterator[Proof]:
    """The marks of one module; `name` is its path below tests."""
    tree = ast.parse(source)
    shared = [mark for node in tree.body if _assigns_pytestmark(node) for mark in marks([node])]
    yield from _proofs_of(tree.body, f"tests/{name}", shared)


def _assigns_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(ast.unparse(each) == "pytestmark" for each in node.targets)


def _proofs_of(body: Iterable[ast.stmt], where: str, shared: list[tuple[str, int]]) -> Iterator[Proof]:
    for node in body:
        if isinstance(node, ast.ClassDef) and (
            node.name.startswith("Test") or "StateMachine" in ast.unparse(node)
        ):
            yield from _proofs_of(node.body, f"{where}::{node.name}", [*shared, *marks(node.decorator_list)])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for rule, line in [*shared, *marks(node.decorator_list)]:
                yield Proof(rule, f"{where}::{node.name}", line)


def marks(nodes: Iterable[ast.AST]) -> list[tuple[str, int]]:
    """The rules in `pytest.mark.rule("B4")`, several in one as well, and the lines where they stand."""
    return [
        (argument.value, call.lineno)
        for node in nodes
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("pytest.mark.rule", "mark.rule")
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def unknown(found: Iterable[Proof], known: Mapping[str, str]) -> list[str]:
    """The marks that name no rule."""
    return [f"{each.test} (line {each.line}) names {each.rule}" for each in found if each.rule not in known]


def table(known: Mapping[str, str], found: Iterable[Proof]) -> str:
    """The whole of docs/rules.md."""
    tests: dict[str, list[str]] = {rule: [] for rule in known}
    for each in found:
        if each.test not in tests[each.rule]:
            tests[each.rule].append(each.test)
    proven = sum(map(bool, tests.values()))
    parts = [HEAD, f"{proven} of {len(known)} rules have a test. Without one: {_open(tests)}.\n"]
    for letter, title in GROUPS.items():
        rows = [_row(rule, known[rule], tests[rule]) for rule in known if rule.startswith(letter)]
        parts.append(
            "\n".join([f"## {letter}. {title}\n", "| id | rule | tests |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def _open(tests: Mapping[str, list[str]]) -> str:
    return ", ".join(rule for rule, named in tests.items() if not named) or "none"


def _row(rule: str, sentence: str, tests: list[str]) -> str:
    shown = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in tests) or "–"
    return f"| {rule} | {sentence.replace('|', chr(92) + '|')} | {shown} |"


def main() -> int:
    """Write the table; 1 where a mark names no rule."""
    known, found = rules(), everything()
    if wrong := unknown(found, known):
        print("tests/rules.toml has no such rule:\n  " + "\n  ".join(wrong), file=sys.stderr)
        return 1
    TABLE.write_text(table(known, found))
    proven = len({each.rule for each in found})
    print(f"wrote {TABLE.relative_to(TESTS.parent)}: {proven} of {len(known)} rules have a test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
