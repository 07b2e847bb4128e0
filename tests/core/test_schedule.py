"""When a job runs: every form that is kept, and what is said of the others."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gitmesh.core.refusal import Code
from gitmesh.core.schedule import WORDS, fault
from tests.core.definitions import IMAGE, refused_once
from tests.real import require

CALENDARS = [
    *WORDS,
    "02:30",
    "Mon..Fri 02:30",
    "sat,sun *-*-* 04:00:00",
    "Monday",
    "*-*-1",
    "*-*~1 03:00",
    "2026-01-01 00:00 UTC",
    "*-*-01,07..15 12:00",
    "*-1..6-* 00/4:05",
    "*:0/15",
]


@pytest.mark.parametrize(
    "text", ["init", "every 30s", "every 5m", "every 12h", "every 2d", "every 1w", *CALENDARS]
)
def test_a_time_that_is_kept(text: str) -> None:
    assert fault(text) is None


@pytest.mark.parametrize("text", CALENDARS)
def test_systemd_takes_it(text: str) -> None:
    require(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    done = subprocess.run(["systemd-analyze", "calendar", text], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dayly", "did you mean `daily`?"),
        ("Daily", "did you mean `daily`?"),
        ("every 5 minutes", "one length of time"),
        ("every 0m", "one length of time"),
        ("every", "one length of time"),
        ("0 3 * * *", "a line of cron"),
        ("*/5 * * * *", "a line of cron"),
        ("25:00", "no such hour: it is from 0 to 23"),
        ("02:60", "no such minute"),
        ("*-13-1", "no such month"),
        ("*-*-0", "no such day"),
        ("*:0/0", "never comes"),
        ("20/4:00", "never comes"),
        ("Fri..Mon 02:30", "never comes"),
        ("*-*~1..3", "before the month's end"),
        ("5..2:00", "never comes"),
        ("*:x", "no minute of a calendar"),
        ("Mun 02:30", "no such day of the week"),
        ("02:30 Mon", "no time that a calendar has"),
        ("02:30 Europe/Berlin", "no time that a calendar has"),
        ("UTC", "no such day of the week"),
        ("at night", "no such day of the week"),
        ("", "no time that a calendar has"),
        ("02:30  ", "no time that a calendar has"),
    ],
)
def test_a_time_that_is_none(text: str, says: str) -> None:
    assert says in str(fault(text))


def test_it_is_refused_under_its_value() -> None:
    text = (
        f"module: app\ncontainers: {{app: {{{IMAGE}}}}}\njobs: {{it: {{at: dayly, in: app, command: [x]}}}}\n"
    )
    refusal = refused_once(text, Code.SCHEMA, "jobs", "it", "at")
    assert refusal.at.value
    assert "such as `Mon..Fri *-*-* 02:30`" in refusal.answers[0].text
