"""The summary of a job, a file of GitHub's runner that every step may add to."""

from __future__ import annotations

import os
from pathlib import Path


def summarize(text: str) -> None:
    """Add Markdown `text` to the job's summary; nothing where no runner names one. Raises OSError."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text)
