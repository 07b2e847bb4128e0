"""How the `git` command is run: with a clean environment, under limits, and what it fails with.

It uses the user's ssh configuration and agents. Everything else of the user's git set-up is left out, and
what a hook's environment says of another repository as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OWN_CONFIG = "gitmesh.config"
"""In a repository made by `init_bare`: the only git configuration that stands in for the user's own."""
_NOT_INHERITED = re.compile(r"GIT_|LANGUAGE$|LC_")
_QUARANTINE = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
_FOREIGN = re.compile(r"detected dubious ownership in repository at '([^']*)'")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")


def without_credentials(url: str) -> str:
    """A remote's URL as it may be shown: a password that stands in it is nobody's to read (C10)."""
    return _CREDENTIALS.sub("", url)


class RepoError(Exception):
    """What a git repository does not give. `command` is what mends it, where a command can."""

    def __init__(self, message: str, command: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.command = command


def foreign_folder(errors: str) -> str | None:
    """The folder that git does not read for its owner's sake, if that is what its stderr says."""
    found = _FOREIGN.search(errors)
    return None if found is None else found[1]


def refuse_foreign(path: Path, errors: bytes) -> None:
    """Raise the RepoError of a repository that git does not read for its owner's sake, by git's own words.

    It names the folder that git means, which may lie above `path`, and changes no configuration (C77).
    """
    found = foreign_folder(errors.decode(errors="backslashreplace"))
    if found is not None:
        command = f"git config --global --add safe.directory {shlex.quote(found)}"
        raise RepoError(f"{path} belongs to another user, so git does not read it", command)


class Unreachable(RepoError):
    """The remote could not be read or written: network, host key, permission, a limit, what it sent."""


class Declined(Unreachable):
    """The remote was reached, and its hook or its settings refuse the push. The message is its own."""


class Damaged(RepoError):
    """The local repository itself is broken; `rebuild` and a new fetch mend it."""


class Rejected(RepoError):
    """A push lost a race: a ref is not where `expect` said. `refs` gives each one's reason."""

    def __init__(self, refs: Mapping[str, str]) -> None:
        super().__init__(f"the remote has moved on: {', '.join(sorted(refs))}")
        self.refs = dict(refs)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may use: wall-clock seconds, bytes of address space, bytes of one file."""

    seconds: float = 120
    memory: int = 1 << 30
    file: int = 256 << 20


@dataclass(frozen=True, slots=True)
class Access:
    """How a remote is reached beyond its URL.

    `ssh` are options for the ssh command (`-i`, `-o`); `credentials` is a file in the format of
    git-credential-store for https; `plain_http` allows http; `config` is an own git configuration for
    reads that have no repository (`remote_refs`).
    """

    ssh: tuple[str, ...] = ()
    credentials: Path | None = None
    plain_http: bool = False
    config: Path | None = None


def environment(config: str | None = os.devnull) -> dict[str, str]:
    """The environment of every git child: ours without GIT_*, and with `config` as its only configuration.

    HOME stays, for ssh. With None git reads an operator's repository locally: the user's configuration
    counts, since it says which repositories of others are trusted, and so does what git-receive-pack
    sets for its hooks, so that a commit not yet accepted can be read.
    """
    kept = {name: value for name, value in os.environ.items() if not _NOT_INHERITED.match(name)}
    own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": config} if config else _local_settings()
    return (
        kept
        | own
        | {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
        }
    )


def _local_settings() -> dict[str, str]:
    quarantine = _QUARANTINE if "GIT_QUARANTINE_PATH" in os.environ else ()
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("GIT_CONFIG_") or name in quarantine
    }


def run_git(
    arguments: Sequence[str], url: str, repo: Path | None, limits: Limits, access: Access
) -> subprocess.CompletedProcess[str]:
    """Run git under limits in a session of its own, which ends whole: by itself, by the clock, by Ctrl-C."""
    own = access.config or (repo / OWN_CONFIG if repo else None)
    scope = [f"--git-dir={repo.absolute()}"] if repo else []
    child = subprocess.Popen(
        ["git", *scope, *_settings(url, access), *arguments],
        env=environment(str(own.absolute()) if own and own.is_file() else os.devnull),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="backslashreplace",
        cwd="/",  # so that ls-remote finds no repository, and no configuration, where it stands
        start_new_session=True,
        preexec_fn=_limited(limits),
    )
    try:
        out, errors = child.communicate(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        return subprocess.CompletedProcess(
            child.args, 124, "", f"no answer within {limits.seconds:g} seconds"
        )
    except BaseException:
        _end(child)
        if repo:
            sweep(repo)
        raise
    return subprocess.CompletedProcess(child.args, child.returncode, out, errors)


def _settings(url: str, access: Access) -> list[str]:
    protocols = [
        "ssh",
        "https",
        *(["http"] if access.plain_http else []),
        *(["file"] if is_local(url) else []),
    ]
    settings = {
        "protocol.allow": "never",
        **{f"protocol.{name}.allow": "always" for name in protocols},
        "protocol.version": "2",
        "fetch.fsckObjects": "true",
        "transfer.fsckObjects": "true",
        "transfer.bundleURI": "false",
        "fetch.output": "full",
        "submodule.recurse": "false",
        "core.hooksPath": os.devnull,
        "core.fsmonitor": "false",
        "core.alternateRefsCommand": "true",
        "core.fsync": "committed,reference",
        "gc.auto": "0",
        "maintenance.auto": "false",
        "http.followRedirects": "false",
        "pack.threads": "1",
        "credential.helper": "",
        "core.sshCommand": shlex.join(["ssh", "-o", "BatchMode=yes", *access.ssh]),
    }
    arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    if access.credentials:
        helper = f"store --file={shlex.quote(str(access.credentials))}"
        arguments += ["-c", f"credential.helper={helper}"]
    return arguments


def is_local(url: str) -> bool:
    """A path or file://, and neither `host:path` nor another scheme."""
    return url.startswith(("/", "./", "../", "file://"))


def _limited(limits: Limits) -> Callable[[], None]:
    wanted = {
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_CORE: 0,
    }

    def lower() -> None:
        for kind, most in wanted.items():
            hard = resource.getrlimit(kind)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (least, least))

    return lower


def _end(child: subprocess.Popen[str]) -> None:
    """End the child's whole session: asked first, so that git takes its temporary files away."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=2)
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()


def sweep(repo: Path) -> None:
    """Take away what a git that was killed left: half packs, half objects, locks."""
    leftovers = [
        *repo.glob("objects/pack/tmp_*"),
        *repo.glob("objects/pack/.tmp-*"),
        *repo.glob("objects/??/tmp_obj_*"),
        *repo.glob("*.lock"),
        *repo.glob("refs/**/*.lock"),
    ]
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
