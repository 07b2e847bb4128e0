"""When a job runs: `init`, `every 5m`, `daily`, or a calendar expression of systemd (FORMATS "Jobs").

Of systemd.time(7) it is the normal form, `[WEEKDAYS] [YEAR-MONTH-DAY] [HOUR:MINUTE[:SECOND]] [UTC]`, with
lists, ranges, steps and `*`; and its words for a whole hour, day, week, month, quarter and year.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

WORDS = (
    "minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly", "annually",
)  # fmt: skip
ANSWER = "say `init`, `every 5m`, `daily`, or a calendar such as `Mon..Fri *-*-* 02:30`"

_EVERY = re.compile(r"every [1-9][0-9]{0,8}[smhdw]", re.ASCII)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ITEM = re.compile(r"([0-9]{1,4})(?:\.\.([0-9]{1,4}))?(?:/([0-9]{1,4}))?", re.ASCII)
_DATE = re.compile(r"(?:([^-~:]+)-)?([^-~:]+)([-~])([^-~:]+)")
_TIME = re.compile(r"([^-~:]+):([^-~:]+)(?::([^-~:]+))?")
_CRON = re.compile(r"\S+(?: \S+){4}")


def fault(text: str) -> str | None:
    """What is wrong with a job's `at`; None where it can be kept."""
    if text == "init" or text in WORDS or _EVERY.fullmatch(text):
        return None
    if text.startswith("every"):
        return "`every` is followed by one length of time: a number of s, m, h, d or w"
    if _CRON.fullmatch(text) and re.fullmatch(r"[0-9*/, .-]+", text):
        return "this is a line of cron, and a calendar is written as systemd does"
    near = get_close_matches(text.lower(), ("init", *WORDS), 1, 0.75)
    return f"no such time; did you mean `{near[0]}`?" if near else _calendar_fault(text)


def _calendar_fault(text: str) -> str | None:
    parts = text.split(" ")
    if parts[-1] == "UTC" and len(parts) > 1:
        parts.pop()
    found = False
    for read in (_weekdays, _date, _time):
        if parts:
            said = read(parts[0])
            if said is not None:
                if said:
                    return said
                found = True
                parts.pop(0)
    return None if found and not parts else "no time that a calendar has"


def _weekdays(text: str) -> str | None:
    """None: these are no weekdays; else what is wrong, empty where nothing is."""
    if not text[:1].isalpha():
        return None
    for item in text.lower().split(","):
        days = item.split("..", 1)
        if any(day not in _DAYS and day not in _LONG_DAYS for day in days):
            return "no such day of the week: a calendar has Mon, Tue, Wed, Thu, Fri, Sat and Sun"
        order = [_DAYS.index(day[:3]) for day in days]
        if order != sorted(order):
            return "a range of days that never comes: a week begins on Monday"
    return ""


def _date(text: str) -> str | None:
    """As `_weekdays`, for a date; `~` counts the days from the month's end."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, mark, day = match.groups()
    if mark == "~" and not re.fullmatch(r"[0-9,]+", day):
        return "after `~` stands which day before the month's end: `~1` is its last"
    last = 28 if mark == "~" else 31
    return (
        _list("year", year or "*", 1970, 2199) or _list("month", month, 1, 12) or _list("day", day, 1, last)
    )


def _time(text: str) -> str | None:
    """As `_weekdays`, for a time of day."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = match.groups()
    return (
        _list("hour", hour, 0, 23) or _list("minute", minute, 0, 59) or _list("second", second or "0", 0, 59)
    )


def _list(what: str, text: str, least: int, most: int) -> str:
    """What is wrong with a list of numbers, ranges and steps; empty where nothing is."""
    if text == "*":
        return ""
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            return f"no {what} of a calendar: it is `*`, a number, a range `1..5` or a step `1/2`"
        first, last, step = int(match[1]), int(match[2] or most), int(match[3] or 0)
        if not (least <= first <= most and least <= last <= most):
            return f"no such {what}: it is from {least} to {most}"
        if first + step > last or (match[3] and step == 0):
            return f"a {what} that never comes: a range goes up, and a step of at least 1 stays in it"
    return ""
