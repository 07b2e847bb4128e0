"""Strict YAML: what is read, what is refused and where, and that its two readers never disagree."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gitmesh.core.refusal import At, Code, Span
from gitmesh.repo import document, nodes
from gitmesh.repo.strict import MAX_BYTES, MAX_DEPTH, MAX_EVENTS, same
from tests.repo.documents import refused, slowly, start, value_of

# --- scalars -------------------------------------------------------------------------------------------


@pytest.mark.rule("S26")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("n", "n"),
        ("tRUE", "tRUE"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("", None),
        ("=", "="),
        ("0", 0),
        ("-17", -17),
        ("3600", 3600),
        (str(2**53 - 1), 2**53 - 1),
        ("'1.10'", "1.10"),
        ('"017"', "017"),
        ("10.7.0.11", "10.7.0.11"),
        ("3.11.0", "3.11.0"),
        ("1000:1000", "1000:1000"),
        ("5m", "5m"),
        ("2222:22/tcp", "2222:22/tcp"),
        ("1e", "1e"),
        ("0x", "0x"),
        ("-", None),
        ("2026-01-01T", "2026-01-01T"),
    ],
)
def test_a_scalar_is_what_every_reader_takes_it_for(written: str, value: Any) -> None:
    if written == "-":
        assert refused("k: -\n")
        return
    assert same(value_of(f"k: {written}\n"), {"k": value})
    assert same(slowly(f"k: {written}\n")[0], {"k": value})


AMBIGUOUS = [
    *(
        "1.10",
        "017",
        "08",
        "00",
        "1_000",
        "0x1F",
        "0o17",
        "0b11",
        "+1",
        "-0",
        "1e3",
        "1.",
        ".5",
        "-.5",
        "1_0.5",
    ),
    *(".inf", "-.INF", ".nan", "12:30", "12:30:45", "22:22", "190:20:30.15", "0:0", "6.8523015e+5"),
    *(
        "2026-01-01",
        "2026-1-1",
        "2026-01-01T10:00:00Z",
        "2026-01-01 10:00:00",
        "2001-12-14t21:59:43.10-05:00",
    ),
    *(str(2**53), "9" * 60),
]


@pytest.mark.rule("S26")
@pytest.mark.parametrize("written", AMBIGUOUS)
@pytest.mark.parametrize(
    "form", ["k: {}\n", "k: {}", "k: [a, {}]\n", "k: {{a: {}}}\n", "k:\n- {} # c\n", '{{"k":{}}}\n']
)
def test_an_ambiguous_scalar_is_refused_with_its_quoted_form(written: str, form: str) -> None:
    text = form.format(written)
    value, [refusal] = document.read("f.yaml", text.encode())
    assert value is None
    assert refusal.code is Code.YAML_SCALAR
    line, column = start(refusal)
    assert text.splitlines()[line - 1][column - 1 :].startswith(written)
    if len(written) <= 40:
        assert f"'{written}'" in refusal.answers[0].text
    assert value_of(form.format(f"'{written}'")) is not None


@pytest.mark.rule("S26")
@pytest.mark.parametrize("written", ["017", "1", "true", "~", "1.5", "2026-01-01"])
def test_a_key_that_is_no_text_is_refused(written: str) -> None:
    assert refused(f"a: 1\n{written}: b\n") == [(Code.YAML_SCALAR, 2, 1)]
    assert value_of(f"'{written}': b\n") == {written: "b"}


def test_what_lies_below_a_bad_key_is_read_too() -> None:
    assert refused("1:\n  a: 017\n") == [(Code.YAML_SCALAR, 1, 1), (Code.YAML_SCALAR, 2, 6)]


# --- features ------------------------------------------------------------------------------------------


@pytest.mark.rule("S25")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1\n", [(Code.YAML_FEATURE, 1, 4)]),
        ("a: 1\nb: *a\n", [(Code.YAML_FEATURE, 2, 4)]),
        ("a: !!str 1\n", [(Code.YAML_FEATURE, 1, 4)]),
        ("a: [!!python/object/apply:os.system [x]]\n", [(Code.YAML_FEATURE, 1, 5)]),
        ("<<: {a: 1}\n", [(Code.YAML_FEATURE, 1, 1)]),
        ("a: {<<: {a: 1}}\n", [(Code.YAML_FEATURE, 1, 5)]),
        ("%YAML 1.1\n---\na: no\n", [(Code.YAML_FEATURE, 1, 1)]),
        ("# c\n%FOO\n---\na: 017\n", [(Code.YAML_FEATURE, 2, 1), (Code.YAML_SCALAR, 4, 4)]),
        ("a: 1\n---\nb: 1\n", [(Code.YAML_FEATURE, 2, 1)]),
        ("a: 1\n---\n", [(Code.YAML_FEATURE, 2, 1)]),
        ("a: 1\n...\nb: 1\n", [(Code.YAML_FEATURE, 3, 1)]),
        ("[a]: b\n", [(Code.YAML_FEATURE, 1, 1)]),
        ("? a\n: b\n", [(Code.YAML_FEATURE, 1, 1)]),
        ("{? a: b}\n", [(Code.YAML_FEATURE, 1, 2)]),
        ("a: 1\nb: 2\na: 3\n", [(Code.YAML_DUPLICATE_KEY, 3, 1)]),
        ("a: 1\n'a': 3\n", [(Code.YAML_DUPLICATE_KEY, 2, 1)]),
        ("a: {x: 1, x: 1}\n", [(Code.YAML_DUPLICATE_KEY, 1, 11)]),
        ("\u00e9: 1\ne\u0301: 2\n", [(Code.YAML_DUPLICATE_KEY, 2, 1)]),
        ("a: 1\ne\u0301: 2\n", [(Code.YAML_SCALAR, 2, 1)]),
        ('"e\\u0301": 2\n', [(Code.YAML_SCALAR, 1, 1)]),
        ("a: b\u202ec\n", [(Code.YAML_SYNTAX, 1, 5)]),
        ("a: b # \u2066\n", [(Code.YAML_SYNTAX, 1, 8)]),
        ("a: \x07\nb: \x00\n", [(Code.YAML_SYNTAX, 1, 4), (Code.YAML_SYNTAX, 2, 4)]),
        ("a: b\u2028c\n", [(Code.YAML_SYNTAX, 1, 5)]),
        ("a: \ufeffb\n", [(Code.YAML_SYNTAX, 1, 4)]),
        ('a: "x\\0"\n', [(Code.YAML_SCALAR, 1, 4)]),
        ('a: "\\ud83d"\n', [(Code.YAML_SCALAR, 1, 4)]),
    ],
)
def test_what_yaml_has_beyond_json_is_refused(text: str, expected: list[tuple[Code, int, int]]) -> None:
    assert refused(text) == expected


@pytest.mark.rule("S25")
def test_a_duplicate_names_both_lines() -> None:
    _, [refusal] = document.read("f.yaml", b"a:\n  name: a\n  other: b\n  name: c\n")
    assert refusal.code is Code.YAML_DUPLICATE_KEY
    assert "line 2" in refusal.message
    assert "line 4" in refusal.message
    assert refusal.at.span == Span(4, 3, 4, 7)
    assert [related.at.span for related in refusal.related] == [Span(2, 3, 2, 7)]


def test_everything_wrong_is_said_at_once() -> None:
    text = "a: &x 1\nb: *x\nc: 1.10\nc: 017\n1: x\nd:\n- 2026-01-01\n"
    assert [(code, line) for code, line, _ in refused(text)] == [
        (Code.YAML_FEATURE, 1),
        (Code.YAML_FEATURE, 2),
        (Code.YAML_SCALAR, 3),
        (Code.YAML_DUPLICATE_KEY, 4),
        (Code.YAML_SCALAR, 4),
        (Code.YAML_SCALAR, 5),
        (Code.YAML_SCALAR, 7),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1,\n", (2, 1)),
        ("a: 'x\n", (2, 1)),
        ("a: 1\n b: 2\n", (2, 3)),
        ("a:\n\tb: 1\n", (2, 1)),
        ("a: b: c\n", (1, 5)),
        ("k: @x\n", (1, 4)),
        ("a: 1\nfoo\n", (3, 1)),
        ('a: "\\q"\n', (1, 6)),
        ("a: b\rc: d\n", (1, 5)),
    ],
)
def test_a_syntax_error_has_its_place(text: str, place: tuple[int, int]) -> None:
    code, line, column = refused(text)[0]
    assert (code, (line, column)) == (Code.YAML_SYNTAX, place)


def test_no_refusal_quotes_content() -> None:
    text = "a: 'GMCANARY1'\nb: [GMCANARY2\nc: \"GMCANARY3\\q\"\nd: *GMCANARY4\n!GMCANARY5 e: @GMCANARY6\n"
    for cut in range(len(text)):
        assert "GMCANARY" not in repr(document.read("f.yaml", text[:cut].encode())[1])


def test_bytes_that_are_not_utf8_are_placed() -> None:
    value, [refusal] = document.read("f.yaml", "a: é\nb: é".encode() + b"\xff\n")
    assert value is None
    assert (refusal.code, refusal.at.span) == (Code.YAML_SYNTAX, Span(2, 5, 2, 6))


def test_a_key_is_shown_without_what_a_terminal_would_obey() -> None:
    _, [refusal] = document.read("f.yaml", b'"\\e[31mred": 017\n')
    assert refusal.message.isprintable()


# --- bounds --------------------------------------------------------------------------------------------


def never(*_: object, **__: object) -> Any:
    raise AssertionError("a parser was asked")


@pytest.mark.rule("S24")
@pytest.mark.parametrize("content", [b"k: v\n" * 1_000_000, b"[" * 5_000_000, b"\xff" * (MAX_BYTES + 1)])
def test_a_large_file_is_refused_unparsed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(document, "_load", never)
    monkeypatch.setattr(document, "_read_slowly", never)
    value, [refusal] = document.read("f.yaml", content)
    assert (value, refusal.code) == (None, Code.FILE_TOO_LARGE)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.rule("S24")
@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]\n", "&a a: *a\n"])
def test_an_alias_bomb_is_never_expanded(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(document, "_load", never)
    assert {code for code, _, _ in refused(text)} == {Code.YAML_FEATURE}


@pytest.mark.rule("S24")
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", '{"}": ', "[[], "])
@pytest.mark.parametrize("times", [MAX_DEPTH + 1, 600, 50_000])
def test_deep_nesting_is_refused(opening: str, times: int) -> None:
    text = (opening * times)[:MAX_BYTES]
    assert refused(text)[0][0] in (Code.YAML_FEATURE, Code.YAML_SYNTAX)


@pytest.mark.rule("S24")
def test_depth_is_bounded_alike_for_both_readers() -> None:
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        block = "".join(f"{'  ' * level}k:\n" for level in range(depth))
        flow = "[" * depth + "]" * depth
        for text in (block, flow):
            fast, slow = document.read("f", text.encode())[1], slowly(text)[1]
            assert bool(fast) == bool(slow) == (depth > MAX_DEPTH)


@pytest.mark.rule("S24")
@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("line", ["k{}:\n", "k{}: 017\n"])
def test_the_number_of_events_is_bounded(extra: int, line: str) -> None:
    pairs = (MAX_EVENTS - 6) // 2 + extra
    text = "".join(line.format(number) for number in range(pairs))
    codes = {refusal.code for refusal in document.read("f.yaml", text.encode())[1]}
    assert (Code.FILE_TOO_LARGE in codes) == bool(extra)


# --- tolerated -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"# c\n", b"\xef\xbb\xbf", b"---\n", b"null\n", b"~", b"\r\n"]
)
def test_an_empty_file_is_none(content: bytes) -> None:
    assert value_of(content) is None


@pytest.mark.parametrize(
    "content",
    [
        b"a: 1\nb: [x, 'y']\n",
        b"\xef\xbb\xbfa: 1\nb: [x, 'y']\n",
        b"a: 1\r\nb: [x, 'y']\r\n",
        b"a: 1\nb: [x, 'y']",
        b"---\na: 1\nb: [x, 'y']\n",
        b"# c\n---\na: 1\nb: [x,\n  'y']\n...\n",
        b"a: 1\nb: [\n  x,\n  y\n]\n",
    ],
)
def test_a_mark_line_ends_and_a_missing_newline_are_tolerated(content: bytes) -> None:
    assert value_of(content) == {"a": 1, "b": ["x", "y"]}


def test_columns_do_not_count_a_byte_order_mark() -> None:
    _, [refusal] = document.read("f.yaml", "\ufeffé: 017\r\n".encode())
    assert refusal.at.span == Span(1, 4, 1, 7)


# --- places --------------------------------------------------------------------------------------------

TEXT = b"""\xef\xbb\xbf# c
values: {web.name: x,  workers: 4}
pins:
  database:  postgres@sparta  # c
uses: [smtp, objects]
holds:
  - mesh-store
  - {a: b}
place:
long: |
  one
  two

end: 1
"""


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        (("values",), False, Span(2, 1, 2, 7)),
        (("values",), True, Span(2, 9, 2, 35)),
        (("values", "workers"), False, Span(2, 24, 2, 31)),
        (("values", "workers"), True, Span(2, 33, 2, 34)),
        (("pins", "database"), True, Span(4, 14, 4, 29)),
        (("pins",), True, Span(4, 3, 4, 29)),
        (("pins", "smtp"), False, Span(3, 1, 3, 5)),
        (("pins", "smtp", "x"), True, Span(3, 1, 3, 5)),
        (("uses", 1), False, Span(5, 14, 5, 21)),
        (("uses", 7), True, Span(5, 1, 5, 5)),
        (("holds", 1, "a"), True, Span(8, 9, 8, 10)),
        (("place",), True, Span(9, 1, 9, 6)),
        (("long",), True, Span(10, 7, 12, 6)),
        (("nothing",), False, Span(2, 1, 2, 2)),
        ((), False, Span(2, 1, 2, 2)),
        ((), True, Span(2, 1, 2, 2)),
    ],
)
def test_keys_lead_to_a_place(keys: tuple[str | int, ...], value: bool, expected: Span) -> None:
    assert document.locate(TEXT, At("f.yaml", keys, value)) == expected


def test_a_place_that_is_known_stays() -> None:
    assert document.locate(b"", At("f", ("a",), span=Span(7, 1, 7, 2))) == Span(7, 1, 7, 2)


@pytest.mark.parametrize("content", [b"", b"# c\n", b"a: [", b"\xff"])
def test_there_is_always_a_place(content: bytes) -> None:
    span = document.locate(content, At("f", ("a", "b")))
    assert (span.line, span.column) == (1, 1)


def test_crlf_moves_no_column() -> None:
    assert document.locate(b"a: 1\r\nb: 'x'\r\n", At("f", ("b",), value=True)) == Span(2, 4, 2, 7)


def test_nodes_hold_their_text() -> None:
    text = "a: 'x'\nb: [1, {c: d}]\n"
    root = nodes.parse(text).root
    assert root is not None
    texts = [text[value.start : value.end] for _, value in root.entries]
    assert texts == ["'x'", "[1, {c: d}]"]


def test_reading_needs_no_slow_import() -> None:
    program = (
        "import sys; from gitmesh.repo.document import check, read; "
        "value, refusals = read('f', b'uses: [smtp]'); assert not refusals; "
        "assert not check('assignment', 'f', value); "
        "assert not {'ruamel.yaml', 'jsonschema', 'difflib'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
