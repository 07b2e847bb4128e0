"""The `git` command into and out of a bare repository, never a checkout (SECURITY §1.6 step 2).

It asks for refs by name, so that a node receives its own and nothing of the others, and it uses the
user's ssh configuration and agents. Everything else of the user's git set-up is left out. What a remote
sends is hostile: it is checked object by object, and the child that takes it in runs under limits.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

OWN_CONFIG = "gitmesh.config"
"""In a repository made by `init_bare`: the only git configuration that stands in for the user's own."""

PACKS = 50
"""So many packs are left as they are."""

_NOT_INHERITED = re.compile(r"GIT_|LANGUAGE$|LC_")
_QUARANTINE = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
_STATUS_LINE = re.compile(r"^ (.) (?:\[[^\]]*\]|\S+) +(\S+) +-> ", re.MULTILINE)
_MISSING_REF = re.compile(r"couldn't find remote ref (\S+)")
_FOREIGN = re.compile(r"detected dubious ownership in repository at '([^']*)'")
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"
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


def without_credentials(url: str) -> str:
    """A remote's URL as it may be shown: a password that stands in it is nobody's to read (C10)."""
    return _CREDENTIALS.sub("", url)


class RepoError(Exception):
    """What a git repository does not give. `command` is what mends it, where a command can."""

    def __init__(self, message: str, command: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.command = command


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


@dataclass(frozen=True, slots=True)
class Update:
    """One ref of a push: `new` is a commit of the local repository, None deletes the ref.

    `expect` is the commit the ref must have now (`""`: it must not exist), and then it may go anywhere;
    None asks nothing, and only `force` lets it go elsewhere than forward.
    """

    ref: str
    new: str | None
    expect: str | None = None
    force: bool = False


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


def init_bare(path: Path) -> None:
    """Make `path` a bare repository of our own, where it is none yet; no template, so no hooks."""
    if (path / OWN_CONFIG).exists() and (path / "HEAD").exists():
        return
    arguments = ["git", "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--", str(path)]
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RepoError(f"no repository can be made at {path}: {_last_line(done.stderr)}")
    (path / OWN_CONFIG).touch()


def rebuild(path: Path) -> None:
    """Empty a repository made by `init_bare` and make it anew; its own configuration stays if git reads it.

    It holds nothing but what was fetched. Raises RepoError for a repository that is not ours.
    """
    if not (path / OWN_CONFIG).is_file():
        raise RepoError(f"{path} was not made by gitmesh, so it is left as it is", f"git -C {path} fsck")
    import shutil  # here, since a pull with nothing new imports next to nothing

    readable = ["git", "config", "--file", str(path / OWN_CONFIG), "--list"]
    if subprocess.run(readable, env=environment(), capture_output=True, check=False).returncode:
        (path / OWN_CONFIG).write_bytes(b"")
    for entry in path.iterdir():
        if entry.name == OWN_CONFIG:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    init_bare(path)


def fetch(
    repo: Path,
    remote_url: str,
    refspecs: Sequence[str],
    limits: Limits | None = None,
    access: Access | None = None,
) -> dict[str, str]:
    """Fetch refs by their exact names; gives the commit of each remote ref that exists.

    A refspec is `refs/x` or `refs/x:refs/y`, and always forced: what is newer is told by counters inside
    (SECURITY §1.6). A ref that the remote lacks is absent from the answer; a second connection finds the
    others then. The controller may ask for `refs/x/*:refs/y/*`: it gets every ref there is, and what the
    remote no longer has goes from `refs/y/`. The caller holds the repository alone. Raises Unreachable,
    Damaged.
    """
    pairs = dict(_pair(refspec) for refspec in refspecs)
    if not pairs:
        return {}
    remote_url = _absolute(remote_url)
    run = functools.partial(
        _fetch,
        repo,
        remote_url,
        prune=any("*" in source for source in pairs),
        limits=limits or Limits(),
        access=access or Access(),
    )
    done = run([f"+{source}:{target}" for source, target in pairs.items()])
    present = pairs
    if done.returncode and _MISSING_REF.search(done.stderr):
        done = run(list(_may_be_absent(pairs)))
        shown = {match.group(2) for match in _STATUS_LINE.finditer(done.stderr)}
        present = {source: pairs[source] for source in pairs if "*" in source or _shown(source) in shown}
    if done.returncode:
        _sweep(repo)
        raise _failure(done.stderr, remote_url, repo)
    _compact(repo, limits or Limits())
    return _fetched(repo, present)


def push(
    repo: Path,
    remote_url: str,
    updates: Sequence[Update],
    *,
    atomic: bool = False,
    limits: Limits | None = None,
    access: Access | None = None,
) -> None:
    """Push `updates`, all or none of them where `atomic`.

    Raises Rejected where a ref is not where its `expect` said or would not go forward, Declined where
    the remote's hook refuses, Unreachable otherwise.
    """
    remote_url = _absolute(remote_url)
    leases = [
        f"--force-with-lease={update.ref}:{update.expect}" for update in updates if update.expect is not None
    ]
    specs = [f"{_plus(update)}{update.new or ''}:{update.ref}" for update in updates]
    done = _run(
        ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"]
        + ["--atomic"] * atomic
        + [*leases, "--", remote_url, *specs],
        remote_url,
        repo,
        limits or Limits(),
        access or Access(),
    )
    if done.returncode:
        raise _push_failure(done, remote_url, repo)


def _plus(update: Update) -> str:
    """git forgets a lease where the refspec has a `+`, and needs none where it has a lease."""
    return "+" if update.force and update.expect is None else ""


def remote_refs(
    url: str,
    patterns: Sequence[str] = (),
    limits: Limits | None = None,
    access: Access | None = None,
) -> dict[str, str]:
    """The remote's refs that match any pattern (as in git-ls-remote), all of them without one.

    The remote sends the name of every ref it has, so a node asks with `fetch`. Raises Unreachable.
    """
    url = _absolute(url)
    arguments = ["ls-remote", "--refs", "--quiet", "--", url, *patterns]
    done = _run(arguments, url, None, limits or Limits(), access or Access())
    if done.returncode:
        raise _failure(done.stderr, url, None, config=(access or Access()).config)
    lines = (line.split("\t", 1) for line in done.stdout.splitlines())
    return {name: commit for commit, name in lines}


def _fetch(
    repo: Path, url: str, specs: Sequence[str], *, prune: bool, limits: Limits, access: Access
) -> subprocess.CompletedProcess[str]:
    options = [
        *("--verbose", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
        *("--no-auto-maintenance", "--no-show-forced-updates", "--jobs=1"),
        "--prune" if prune else "--no-prune",
    ]
    arguments = ["fetch", *options, "--", url, *specs]
    done = _run(arguments, url, repo, limits, access)
    if done.returncode and ".lock': File exists" in done.stderr:
        _sweep(repo)
        done = _run(arguments, url, repo, limits, access)
    return done


def _pair(refspec: str) -> tuple[str, str]:
    source, _, target = refspec.removeprefix("+").partition(":")
    return source, target or source


def _may_be_absent(pairs: Mapping[str, str]) -> Iterable[str]:
    """Refspecs that take each source where it exists and don't fail where it doesn't.

    A glob may match nothing; what it would match beyond the source is taken away again, by the character
    that follows, unless it is asked for as well.
    """
    asked = [source.partition("*") for source in pairs]
    for source, target in pairs.items():
        if "*" in source:
            yield f"+{source}:{target}"
            continue
        yield f"+{source}*:{target}*"
        for beyond in (source + character for character in _NAME_CHARACTERS):
            if not any(
                head.startswith(beyond) or (star and beyond.startswith(head)) for head, star, _ in asked
            ):
                yield f"^{beyond}*"


def _shown(ref: str) -> str:
    """A ref as git shows it in the lines of a fetch."""
    for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/"):
        ref = ref.removeprefix(prefix)
    return ref


def _fetched(repo: Path, pairs: Mapping[str, str]) -> dict[str, str]:
    """The commits of the remote refs that were just fetched, read where they went."""
    refs = _local_refs(repo, [_below(target) for target in pairs.values()])
    commits: dict[str, str] = {}
    for source, target in pairs.items():
        head, star, tail = target.partition("*")
        if star:
            names = [name for name in refs if name.startswith(head) and name.endswith(tail)]
            found = {
                source.replace("*", name[len(head) : len(name) - len(tail)]): refs[name] for name in names
            }
        elif target in refs:
            found = {source: refs[target]}
        else:
            raise Damaged(f"{repo}: {target} was just fetched and can't be read")
        commits |= found
    return commits


def _below(target: str) -> str:
    head, star, _ = target.partition("*")
    return head.rpartition("/")[0] if star else target


def _local_refs(repo: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Names and commits of the refs that are a pattern or lie below it."""
    if not patterns:
        return {}
    done = subprocess.run(
        ["git", f"--git-dir={repo}", "for-each-ref", "--format=%(refname) %(objectname)", *patterns],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Damaged(f"{repo}: its refs can't be read", f"git --git-dir={repo} fsck --full")
    return {name: commit for name, _, commit in (line.partition(" ") for line in done.stdout.splitlines())}


def _run(
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
            _sweep(repo)
        raise
    return subprocess.CompletedProcess(child.args, child.returncode, out, errors)


def _settings(url: str, access: Access) -> list[str]:
    protocols = [
        "ssh",
        "https",
        *(["http"] if access.plain_http else []),
        *(["file"] if _is_local(url) else []),
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


def _is_local(url: str) -> bool:
    """A path or file://, and neither `host:path` nor another scheme."""
    return url.startswith(("/", "./", "../", "file://"))


def _absolute(url: str) -> str:
    return str(Path(url).absolute()) if url.startswith(("./", "../")) else url


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


def _sweep(repo: Path) -> None:
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


def _compact(repo: Path, limits: Limits) -> None:
    """Make one pack of many: each fetch of something new leaves one, and nothing else tidies here."""
    if not (repo / OWN_CONFIG).exists() or len(list(repo.glob("objects/pack/*.pack"))) <= PACKS:
        return
    done = _run(["repack", "-a", "-d", "-q", "--no-write-bitmap-index"], "", repo, limits, Access())
    if done.returncode:
        _sweep(repo)
        raise _failure(done.stderr, "", repo)


def _failure(errors: str, url: str, repo: Path | None, config: Path | None = None) -> RepoError:
    """What git's stderr says, as an error with a way out and without a URL's credentials."""
    clean = _CREDENTIALS.sub("", errors)
    shown = _CREDENTIALS.sub("", url)
    if match := _FOREIGN.search(clean):
        return _foreign(match.group(1), url, repo / OWN_CONFIG if repo else config)
    if "Host key verification failed" in clean or "HOST IDENTIFICATION HAS CHANGED" in clean:
        host = urlsplit(url).hostname or url.partition(":")[0].rpartition("@")[2]
        return Unreachable(
            f"{shown}: the host key of {host} is unknown or has changed; compare it with the server's before",
            f"ssh-keygen -R {host}; ssh {host}",
        )
    if repo and not _blames_remote(clean) and any(sign in clean for sign in _LOCAL_DAMAGE):
        return Damaged(f"{repo} is damaged: {_last_line(clean)}", f"git --git-dir={repo} fsck --full")
    return Unreachable(f"{shown}: {_last_line(clean)}", f"git ls-remote {shlex.quote(shown)}")


def _foreign(found: str, url: str, config: Path | None) -> RepoError:
    message = f"{_CREDENTIALS.sub('', url)}: the repository at {found} belongs to another user"
    folder = found if not _is_local(url) else unquote(urlsplit(url).path)
    if config:
        return Unreachable(message, f"git config --file {config} --add safe.directory {shlex.quote(found)}")
    return Unreachable(message, f"sudo chown -R $(id -u) {shlex.quote(folder)}")


def _blames_remote(errors: str) -> bool:
    signs = ("does not appear to be a git repository", "fsck error", "remote error", "unpack-objects failed")
    return any(sign in errors for sign in signs)


def _push_failure(done: subprocess.CompletedProcess[str], url: str, repo: Path) -> RepoError:
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
        text = _CREDENTIALS.sub("", "\n".join(line for line in told if line))
        return Declined(text or "; ".join(f"{ref}: {reason}" for ref, reason in sorted(reasons.items())))
    return _failure(done.stderr, url, repo)


def _is_stale(reason: str) -> bool:
    signs = ("stale info", "non-fast-forward", "fetch first", "failed to update ref", "cannot lock ref")
    return any(sign in reason for sign in (*signs, "incorrect old value", "already exists", "needs force"))


def _last_line(errors: str) -> str:
    """The line of git's stderr that says most: the first fatal one, else the last."""
    lines = [line.strip() for line in errors.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_EMPTY_TALK)]
    said = [line for line in lines if line.startswith(("fatal:", "error:"))]
    told = said[0] if said else lines[-1] if lines else "git ended without a word"
    return told.removeprefix("fatal: ").removeprefix("error: ")
