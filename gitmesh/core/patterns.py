"""Patterns that a contract may use: they match in bounded time, whoever wrote them (SECURITY §2b).

A pattern is held against a whole value, in ASCII. What is allowed: literals, `.`, classes, groups, `|`,
`* + ? {n,m}`, `\\d \\w \\s` and their opposites. What can make matching run away is refused: a repeat
inside a repeat, alternatives of a repeated group that can begin alike, many repeats of the same characters
with nothing between that would hold them apart, backreferences, and look-arounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

LONGEST_PATTERN = 500
LONGEST_MATCHED = 1024
"""A string that is held against a pattern with an open repeat may have this many characters."""
_OPEN = 64
"""A repeat that leaves more room than this counts as open-ended."""
_MOST_WAYS = 4096
"""Repeats of one character may share it out in so many ways, an open one counting as 32: two open ones and
two optional ones, say. Matching is then quadratic at the worst."""
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_ESCAPE = re.compile(r"\\(?:[dDwWsSntr]|[^A-Za-z0-9])")
_LINE = re.compile("[^\x00-\x1f\x7f\x85\u2028\u2029]+")
_ALL = frozenset(chr(number) for number in range(128))


class Bad(Exception):
    """What is wrong with a pattern, in words."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a pattern: the characters it can begin with, whether it can be empty or long."""

    first: frozenset[str] = frozenset()
    empty: bool = True
    varies: bool = False


class _Reading:
    """Reads a pattern from left to right, by recursive descent."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.run: list[tuple[frozenset[str], int]] = []
        """The repeats that nothing holds apart, each with what it matches and in how many ways."""

    def alternatives(self, depth: int) -> tuple[_Part, bool]:
        """The part up to `)` or the end, and whether two of its alternatives can begin alike."""
        if depth > 8:
            raise Bad("has groups nested more than 8 deep")
        branches = [self.sequence(depth)]
        while self._take("|"):
            branches.append(self.sequence(depth))
        seen: set[str] = set()
        alike = False
        for branch in branches:
            alike = alike or bool(seen & branch.first) or (branch.empty and len(branches) > 1)
            seen |= branch.first
        empty = any(branch.empty for branch in branches)
        varies = any(branch.varies for branch in branches)
        return _Part(frozenset(seen), empty, varies), alike

    def sequence(self, depth: int) -> _Part:
        first: frozenset[str] = frozenset()
        empty, varies = True, False
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            part = self.repeated(depth)
            first = first | part.first if empty else first
            empty = empty and part.empty
            varies = varies or part.varies
        return _Part(first, empty, varies)

    def repeated(self, depth: int) -> _Part:
        """One atom with its quantifier."""
        single = self.pattern[self.position] != "("
        part, alike = self.atom(depth)
        match = _QUANTIFIER.match(self.pattern, self.position)
        if match is None:
            if depth == 0 and single and not any(part.first & each for each, _ in self.run):
                self.run.clear()
            return part
        self.position = match.end()
        if _QUANTIFIER.match(self.pattern, self.position):
            raise Bad("has a quantifier after a quantifier")
        low, high = _bounds(match)
        if high is None or high > 1:
            if part.varies or part.empty:
                raise Bad("repeats what itself repeats or can be empty, which can take for ever")
            if alike:
                raise Bad("repeats alternatives that can begin alike, which can take for ever")
        if low != high:
            ways = 32 if high is None or high - low > _OPEN else high - low + 1
            self._add(part.first, ways)
        return _Part(part.first, part.empty or low == 0, part.varies or low != high)

    def _add(self, characters: frozenset[str], ways: int) -> None:
        self.run.append((characters, ways))
        for each in characters:
            if prod(many for chars, many in self.run if each in chars) > _MOST_WAYS:
                raise Bad("has many repeats of the same characters in a row, which can take long")

    def atom(self, depth: int) -> tuple[_Part, bool]:
        character = self.pattern[self.position]
        if character == "(":
            return self._group(depth)
        if character in "^$":
            return self._anchor(character)
        if character in "*+?{":
            raise Bad("has a quantifier with nothing before it")
        text = self._single(character)
        self.position += len(text)
        one = re.compile(text, re.ASCII | re.DOTALL)
        return _Part(frozenset(each for each in _ALL if one.fullmatch(each)), False), False

    def _single(self, character: str) -> str:
        if character == "[":
            return self._expect(_CLASS, "has a `[` without its `]`")
        if character == "\\":
            return self._expect(_ESCAPE, "uses an escape or a backreference that contracts do not allow")
        return character

    def _expect(self, form: re.Pattern[str], said: str) -> str:
        match = form.match(self.pattern, self.position)
        if match is None:
            raise Bad(said)
        return match.group()

    def _anchor(self, character: str) -> tuple[_Part, bool]:
        at_end = self.position == len(self.pattern) - 1
        if (character == "^" and self.position > 0) or (character == "$" and not at_end):
            raise Bad(f"has a `{character}` in its middle; it is held against the whole value anyway")
        self.position += 1
        return _Part(), False

    def _group(self, depth: int) -> tuple[_Part, bool]:
        self.position += 1
        if self._take("?") and not self._take(":"):
            raise Bad("uses a look-around, a flag or a named group")
        part, alike = self.alternatives(depth + 1)
        if not self._take(")"):
            raise Bad("has a `(` without its `)`")
        return part, alike

    def _take(self, character: str) -> bool:
        if self.pattern.startswith(character, self.position):
            self.position += 1
            return True
        return False


def _bounds(match: re.Match[str]) -> tuple[int, int | None]:
    low, comma, high = match.groups()
    if low is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[match.group()]
    return int(low), (int(high) if high else None) if comma else int(low)


def wrong_with(pattern: str) -> str | None:
    """What is wrong with a pattern, in words that go on from "the pattern …"; None if it may be used."""
    if len(pattern) > LONGEST_PATTERN:
        return f"has more than {LONGEST_PATTERN} characters"
    if not _LINE.fullmatch(pattern):
        return "is empty, or not one line of text"
    reading = _Reading(pattern)
    try:
        re.compile(pattern, re.ASCII)
        reading.alternatives(0)
    except (re.error, OverflowError):
        return "is no regular expression"
    except Bad as bad:
        return str(bad)
    return "has a `)` without its `(`" if reading.position < len(pattern) else None


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to be held against whole values with `fullmatch`."""
    return re.compile(pattern, re.ASCII)


def both(first: str, second: str) -> str:
    """A pattern that matches what both match."""
    return first if first == second else rf"(?=(?:{first})\Z)(?:{second})"
