"""What git says when it fails, as an error that names the way out and no credentials."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gitmesh.repo.git import (
    OWN_CONFIG,
    Damaged,
    Declined,
    Rejected,
    RepoError,
    Unreachable,
    foreign_folder,
    is_local,
    without_credentials,
)

_EMPTY_TALK = (
    "fatal: Could not read from remote repository",
    "Please make sure you have the correct access",
    "and the repository exists",
)
_LOCAL_DAMAGE = (
    "not a git repository",
    "bad object",
    "unable to read",
    "is corrupt",
    "is empty",
    "corrupt loose",
    "loose object",
    "does not match index",
    "bad index file",
    "did not send all necessary objects",
    "unresolved deltas",
    "bad config",
    "config value",
    "unexpected line in packed-refs",
    "missing blob",
    "missing tree",
    "bad signature",
    "index file corrupt",
    "cannot lock ref",
    "unable to resolve reference",
)


def failure(errors: str, url: str, repo: Path | None, config: Path | None = None) -> RepoError:
    """What git's stderr says, as an error with a way out and without a URL's credentials."""
    clean = without_credentials(errors)
    shown = without_credentials(url)
    if found := foreign_folder(clean):
        return _foreign(found, url, repo / OWN_CONFIG if repo else config)
    if "Host key verification failed" in clean or "HOST IDENTIFICATION HAS CHANGED" in clean:
        host = urlsplit(url).hostname or url.partition(":")[0].rpartition("@")[2]
        return Unreachable(
            f"{shown}: the host key of {host} is unknown or has changed; compare it with the server's before",
            f"ssh-keygen -R {host}; ssh {host}",
        )
    if repo and not _blames_remote(clean) and any(sign in clean for sign in _LOCAL_DAMAGE):
        return Damaged(f"{repo} is damaged: {last_line(clean)}", f"git --git-dir={repo} fsck --full")
    return Unreachable(f"{shown}: {last_line(clean)}", f"git ls-remote {shlex.quote(shown)}")


def _foreign(found: str, url: str, config: Path | None) -> RepoError:
    message = f"{without_credentials(url)}: the repository at {found} belongs to another user"
    folder = found if not is_local(url) else unquote(urlsplit(url).path)
    if config:
        return Unreachable(message, f"git config --file {config} --add safe.directory {shlex.quote(found)}")
    return Unreachable(message, f"sudo chown -R $(id -u) {shlex.quote(folder)}")


def _blames_remote(errors: str) -> bool:
    signs = ("does not appear to be a git repository", "fsck error", "remote error", "unpack-objects failed")
    return any(sign in errors for sign in signs)


def push_failure(done: subprocess.CompletedProcess[str], url: str, repo: Path) -> RepoError:
    reasons: dict[str, str] = {}
    for line in done.stdout.splitlines():
        flag, _, rest = line.partition("\t")
        if flag == "!":
            refs, _, summary = rest.partition("\t")
            reasons[refs.rpartition(":")[2]] = summary
    stale = {ref: reason for ref, reason in reasons.items() if _is_stale(reason)}
    if stale:
        return Rejected(stale)
    if any("declined" in reason or "hook" in reason or "deny" in reason for reason in reasons.values()):
        told = [
            line.removeprefix("remote:").strip() for line in done.stderr.splitlines() if "remote:" in line
        ]
        text = without_credentials("\n".join(line for line in told if line))
        return Declined(text or "; ".join(f"{ref}: {reason}" for ref, reason in sorted(reasons.items())))
    return failure(done.stderr, url, repo)


def _is_stale(reason: str) -> bool:
    signs = ("stale info", "non-fast-forward", "fetch first", "failed to update ref", "cannot lock ref")
    return any(sign in reason for sign in (*signs, "incorrect old value", "already exists", "needs force"))


def last_line(errors: str) -> str:
    """The line of git's stderr that says most: the first fatal one, else the last."""
    lines = [line.strip() for line in errors.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_EMPTY_TALK)]
    said = [line for line in lines if line.startswith(("fatal:", "error:"))]
    told = said[0] if said else lines[-1] if lines else "git ended without a word"
    return told.removeprefix("fatal: ").removeprefix("error: ")
