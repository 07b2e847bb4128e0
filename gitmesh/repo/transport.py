"""The `git` command into and out of a bare repository, never a checkout (SECURITY §1.6 step 2).

It asks for refs by name, so that a node receives its own and nothing of the others. What a remote sends is
hostile: it is checked object by object, and the child that takes it in runs under limits (`repo/git.py`).
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gitmesh.repo.failure import failure, last_line, push_failure
from gitmesh.repo.git import (
    OWN_CONFIG,
    Access,
    Damaged,
    Declined,
    Limits,
    Rejected,
    RepoError,
    Unreachable,
    environment,
    run_git,
    sweep,
    without_credentials,
)

__all__ = [
    "OWN_CONFIG",
    "PACKS",
    "Access",
    "Damaged",
    "Declined",
    "Limits",
    "Rejected",
    "RepoError",
    "Unreachable",
    "Update",
    "environment",
    "fetch",
    "init_bare",
    "push",
    "rebuild",
    "remote_refs",
    "without_credentials",
]

PACKS = 50
"""So many packs are left as they are."""
_STATUS_LINE = re.compile(r"^ (.) (?:\[[^\]]*\]|\S+) +(\S+) +-> ", re.MULTILINE)
_REF = re.compile(r"refs/[A-Za-z0-9_][A-Za-z0-9_./*-]*(?<![/.])(?<!\.lock)", re.ASCII)
_MISSING_REF = re.compile(r"couldn't find remote ref (\S+)")
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"


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


def init_bare(path: Path) -> None:
    """Make `path` a bare repository of our own, where it is none yet; no template, so no hooks."""
    if (path / OWN_CONFIG).exists() and (path / "HEAD").exists():
        return
    arguments = ["git", "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--", str(path)]
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RepoError(f"no repository can be made at {path}: {last_line(done.stderr)}")
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
    _refuse_unsafe(name for pair in pairs.items() for name in pair)
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
        sweep(repo)
        raise failure(done.stderr, remote_url, repo)
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
    _refuse_unsafe(update.ref for update in updates)
    remote_url = _absolute(remote_url)
    leases = [
        f"--force-with-lease={update.ref}:{update.expect}" for update in updates if update.expect is not None
    ]
    specs = [f"{_plus(update)}{update.new or ''}:{update.ref}" for update in updates]
    done = run_git(
        ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"]
        + ["--atomic"] * atomic
        + [*leases, "--", remote_url, *specs],
        remote_url,
        repo,
        limits or Limits(),
        access or Access(),
    )
    if done.returncode:
        raise push_failure(done, remote_url, repo)


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
    _refuse_unsafe(patterns)
    url = _absolute(url)
    arguments = ["ls-remote", "--refs", "--quiet", "--", url, *patterns]
    done = run_git(arguments, url, None, limits or Limits(), access or Access())
    if done.returncode:
        raise failure(done.stderr, url, None, config=(access or Access()).config)
    lines = (line.split("\t", 1) for line in done.stdout.splitlines())
    return {name: commit for commit, name in lines}


def _refuse_unsafe(refs: Iterable[str]) -> None:
    """Raise RepoError for a name that is no plain ref's, before git sees it (C85)."""
    for ref in refs:
        if not _REF.fullmatch(ref) or any(wrong in ref for wrong in ("..", "//", "/.", ".lock/")):
            raise RepoError(f"{ref!a} is not the name of a ref")


def _fetch(
    repo: Path, url: str, specs: Sequence[str], *, prune: bool, limits: Limits, access: Access
) -> subprocess.CompletedProcess[str]:
    options = [
        *("--verbose", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
        *("--no-auto-maintenance", "--no-show-forced-updates", "--jobs=1"),
        "--prune" if prune else "--no-prune",
    ]
    arguments = ["fetch", *options, "--", url, *specs]
    done = run_git(arguments, url, repo, limits, access)
    if done.returncode and ".lock': File exists" in done.stderr:
        sweep(repo)
        done = run_git(arguments, url, repo, limits, access)
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


def _absolute(url: str) -> str:
    return str(Path(url).absolute()) if url.startswith(("./", "../")) else url


def _compact(repo: Path, limits: Limits) -> None:
    """Make one pack of many: each fetch of something new leaves one, and nothing else tidies here."""
    if not (repo / OWN_CONFIG).exists() or len(list(repo.glob("objects/pack/*.pack"))) <= PACKS:
        return
    done = run_git(["repack", "-a", "-d", "-q", "--no-write-bitmap-index"], "", repo, limits, Access())
    if done.returncode:
        sweep(repo)
        raise failure(done.stderr, "", repo)
