"""Makes the node what its filled declaration says, from whatever state it is in (DESIGN §6, E2).

Order over all assignments: directories, files, stop what changed or left (consumers before providers),
start it (providers before consumers), remove the files nobody needs. One item that fails withholds nothing
else (G9).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from gitmesh.core.compare import Decision, Fate, Marks, decide
from gitmesh.core.plan import in_order
from gitmesh.fsops import Root
from gitmesh.host.filled import FilledAssignment, FilledContainer, FilledDeclaration
from gitmesh.host.place import Placed, place_directories, place_files, prune, why
from gitmesh.host.runtimes.base import SECRETS, Item, Runtime, RuntimeFailed, files_of
from gitmesh.host.state import APPLIED, APPLYING, FAILED, Applied, AppliedAssignment, Made, State

LEFT = "left"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an apply did for one assignment. Paths are whole; `failed` says why, by path or container."""

    assignment: str
    result: str
    """applied, failed or left"""
    changed: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()
    """paths, and `container <name>`, that somebody had changed since and that were repaired (E3)"""
    removed: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    reloaded: tuple[str, ...] = ()
    why: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """by container that was recreated or reloaded, the parts that said so"""
    unset_owners: tuple[str, ...] = ()
    """paths whose owner could not be set, which needs root"""
    not_run: tuple[str, ...] = ()
    """jobs and adapters that the runtime can't run"""
    kept: tuple[str, ...] = ()
    """directories that an assignment which left leaves behind (E5)"""
    failed: Mapping[str, str] = field(default_factory=dict)


def apply(
    root: Root, filled: FilledDeclaration, runtime: Runtime, *, now: int, bundle: str = ""
) -> tuple[Outcome, ...]:
    """Apply and record; with nothing new nothing is written (E1).

    `now` is the time in seconds, `bundle` the accepted bundle that `filled` was made from. Assignments that
    wait keep what ran before; those no longer declared are stopped and their files removed, never their
    data (E5, G12). Outcomes stand in the order of starting, those that left first. Raises OSError where the
    state itself can't be written, before anything is changed, and `StateDamaged`.
    """
    state = State(root)
    before = _of_user(state.applied())
    order = start_order(filled.assignments)
    runs = [_Run(root, runtime, filled.assignments[each], before.assignments.get(each)) for each in order]
    left = [
        _Leaving(root, runtime, each, before.assignments[each])
        for each in sorted(before.assignments.keys() - filled.declared)
    ]
    booted = not root.exists(SECRETS)
    # What is about to be written is recorded first: a killed run then leaves no file nobody knows of.
    ahead = dict(before.assignments) | {run.id: run.ahead(now) for run in runs if run.is_new()}
    state.save_applied(Applied(ahead, os.geteuid()))
    for run in runs:
        run.place(booted)
    for leaving in left:
        leaving.stop()
    for run in reversed(runs):
        run.stop()
    for run in runs:
        run.start()
    for run in runs:
        run.prune()
    for leaving in left:
        leaving.prune()
    after = dict(before.assignments) | {run.id: run.record(now, bundle) for run in runs}
    for leaving in left:
        del after[leaving.id]
        after |= leaving.record(now)
    state.save_applied(Applied(after, os.geteuid()))
    return (*(each.outcome() for each in left), *(each.outcome() for each in runs))


def start_order(assignments: Mapping[str, FilledAssignment]) -> list[str]:
    """Providers before their consumers, by `needs`; else by id."""
    needs = {
        each: sorted(set(filled.spec.needs) & assignments.keys())
        for each, filled in sorted(assignments.items())
    }
    return in_order(needs)


def _of_user(applied: Applied) -> Applied:
    """Another user may be able to set the owners that the last one could not."""
    if applied.user == os.geteuid():
        return applied
    return Applied({name: replace(each, unset=()) for name, each in applied.assignments.items()})


class _Run:
    """One assignment through the phases of an apply."""

    def __init__(
        self, root: Root, runtime: Runtime, filled: FilledAssignment, before: AppliedAssignment | None
    ) -> None:
        self.id = filled.id
        self._root = root
        self._runtime = runtime
        self._filled = filled
        self._known = before is not None
        self._before = before or AppliedAssignment(APPLIED)
        self._placed = Placed()
        self._items: dict[str, Item] = files_of(filled) | dict(runtime.items(filled))
        self._there: dict[str, str] = {}
        self._seen = self._try("observe", lambda: self._there.update(runtime.observe(self.id)))
        self._edited: frozenset[str] = frozenset()
        self._decisions: dict[str, Decision] = {}
        self._running: dict[str, Marks] = {}
        self._stopped: list[str] = []
        self._started: list[str] = []
        self._reloaded: list[str] = []

    def is_new(self) -> bool:
        """Whether something else than before is to be written."""
        return (
            not self._known
            or self._before.result == APPLYING
            or self._before.digest != self._filled.digest
            or self._before.files != {path: item.mark for path, item in self._items.items()}
        )

    def ahead(self, now: int) -> AppliedAssignment:
        """The record of a run that was killed: what is there, and what may be."""
        files = {path: item.mark for path, item in self._items.items()} | dict(self._before.files)
        return replace(self._before, result=APPLYING, since=now, files=files)

    def place(self, booted: bool) -> None:
        """Directories, then files. After a boot the secrets are gone, which is no drift."""
        place_directories(self._root, self._filled, self._before, self._placed)
        place_files(self._root, self._items, self._before, self._placed, booted)
        edited = [item.unit for path, item in self._items.items() if self._drifted(path) and not item.applied]
        self._edited = frozenset(edited)

    def stop(self) -> None:
        """Take away the containers that left or that are made anew, those started last first."""
        self._decisions = {name: self._decide(name) for name in self._order()}
        left = sorted(self._there.keys() - self._filled.containers.keys())
        anew = [name for name in reversed(self._order()) if self._is_anew(name)]
        for name in (*left, *anew):
            if self._try(_subject(name), partial(self._runtime.stop, self.id, name)):
                self._stopped.append(name)

    def start(self) -> None:
        """Start, or reload, what is not there as it should be; what lacks something stays as it was."""
        for name in self._order():
            if not self._seen or _subject(name) in self._placed.failed or self._lacks(name):
                self._keep(name)
            elif self._try(_subject(name), partial(self._carry_out, name)):
                self._running[name] = self._filled.containers[name].marks

    def _carry_out(self, name: str) -> None:
        match self._decisions[name].fate:
            case Fate.KEEP:
                pass
            case Fate.RELOAD:
                how = self._filled.containers[name].spec.plain["reload"]
                self._runtime.reload(self._filled, name, how)
                self._reloaded.append(name)
            case Fate.START | Fate.RECREATE:
                self._runtime.start(self._filled, name)
                self._started.append(name)
                if self._before.containers.get(name) == self._filled.containers[name].marks:
                    self._placed.drifted.append(_subject(name))
            case other:
                assert_never(other)

    def prune(self) -> None:
        """Remove the files of this assignment that are not wanted any more."""
        kept = self._items.keys() | self._placed.files.keys()
        gone = {path: mark for path, mark in self._before.files.items() if path not in kept}
        prune(self._root, gone, self._placed)

    def record(self, now: int, bundle: str) -> AppliedAssignment:
        """What to keep of it."""
        placed, before = self._placed, self._before
        result = FAILED if placed.failed else APPLIED
        same = self._known and before.digest == self._filled.digest and before.result == result
        return AppliedAssignment(
            result=result,
            digest=self._filled.digest,
            since=before.since if same else now,
            bundle=before.bundle if same else bundle,
            failed=placed.failed,
            containers=self._running,
            files=placed.files,
            directories={**self._kept_directories(), **placed.directories},
            unset=tuple(placed.unset),
        )

    def outcome(self) -> Outcome:
        """What was done."""
        placed = self._placed
        return Outcome(
            self.id,
            FAILED if placed.failed else APPLIED,
            tuple(placed.changed),
            tuple(placed.drifted),
            tuple(placed.removed),
            tuple(self._stopped),
            tuple(self._started),
            tuple(self._reloaded),
            {
                name: each.why
                for name, each in self._decisions.items()
                if self._carried_out(name) and each.why
            },
            tuple(placed.unset),
            self._runtime.not_run(self._filled),
            failed=dict(placed.failed),
        )

    def _carried_out(self, name: str) -> bool:
        return name in self._started or name in self._reloaded

    def _order(self) -> list[str]:
        """The containers in the order of starting: each `after` those it names."""
        containers = self._filled.containers
        return in_order(
            {name: [each for each in _after(one) if each in containers] for name, one in containers.items()}
        )

    def _decide(self, name: str) -> Decision:
        """From what runs: as declared, as recorded, or something that was not started here."""
        container, was = self._filled.containers[name], self._before.containers.get(name)
        identity = self._there.get(name)
        if identity is None:
            there, drifted = None, False
        elif identity == container.identity:
            there, drifted = container.marks, name in self._edited and was == container.marks
        elif was is not None and identity == was.identity:
            there, drifted = was, name in self._edited
        else:
            there, drifted = container.marks, True
        reloads = "reload" in container.spec.plain
        return decide(there, container.marks, reloads=reloads, drifted=drifted)

    def _is_anew(self, name: str) -> bool:
        return self._decisions[name].fate is Fate.RECREATE and not self._lacks(name)

    def _drifted(self, path: str) -> bool:
        return self._root.shown(path) in self._placed.drifted

    def _lacks(self, name: str) -> bool:
        """Whether a file of the container, or a directory that it mounts, could not be put in place."""
        failed = self._placed.failed
        mounts = (each.location for each in self._filled.containers[name].spec.mounts.values())
        directories = [each.location for each in self._filled.directories.values()]
        needed = [self._root.shown(path) for path, item in self._items.items() if item.unit == name]
        for mount in mounts:
            needed += [self._root.shown(each) for each in directories if f"{mount}/".startswith(f"{each}/")]
            needed.append(self._root.shown(mount))
        return any(each in failed for each in needed)

    def _keep(self, name: str) -> None:
        running = self._before.containers.get(name)
        if running is not None and name not in self._stopped:
            self._running[name] = running

    def _kept_directories(self) -> dict[str, Made]:
        """Of directories that failed: where they were, so that their data is still missed next time."""
        declared = self._filled.directories
        return {
            name: made
            for name, made in self._before.directories.items()
            if name.partition("/")[0] in declared
        }

    def _try(self, subject: str, step: Callable[[], None]) -> bool:
        return _tried(self._placed, subject, step)


class _Leaving:
    """An assignment that is no longer declared: stopped, its files removed, its data kept."""

    def __init__(self, root: Root, runtime: Runtime, id_: str, before: AppliedAssignment) -> None:
        self.id = id_
        self._root = root
        self._runtime = runtime
        self._before = before
        self._placed = Placed()
        self._stopped: list[str] = []

    def stop(self) -> None:
        """Take its containers away."""
        there: list[str] = []
        _tried(self._placed, "observe", lambda: there.extend(self._runtime.observe(self.id)))
        for name in sorted(there):
            if _tried(self._placed, _subject(name), partial(self._runtime.stop, self.id, name)):
                self._stopped.append(name)

    def prune(self) -> None:
        """Remove its files, unless something of it still runs with them."""
        if self._placed.failed:
            self._placed.files |= self._before.files
        else:
            prune(self._root, self._before.files, self._placed)

    def record(self, now: int) -> dict[str, AppliedAssignment]:
        """Nothing, or what could not be removed, for the next apply."""
        if not self._placed.failed:
            return {}
        same = self._before.result == FAILED
        return {
            self.id: replace(
                self._before,
                result=FAILED,
                digest="",
                since=self._before.since if same else now,
                failed=self._placed.failed,
                files=self._placed.files,
            )
        }

    def outcome(self) -> Outcome:
        """What was done, and the directories that stay."""
        made = (self._root.shown(each.location) for each in self._before.directories.values())
        return Outcome(
            self.id,
            FAILED if self._placed.failed else LEFT,
            removed=tuple(self._placed.removed),
            stopped=tuple(self._stopped),
            kept=tuple(sorted(made)),
            failed=dict(self._placed.failed),
        )


def _tried(placed: Placed, subject: str, step: Callable[[], None]) -> bool:
    """Whether the step could be done; else why not stands among what failed."""
    try:
        step()
    except RuntimeFailed as failed:
        placed.failed[subject] = str(failed)
    except OSError as error:
        placed.failed[subject] = why(error)
    else:
        return True
    return False


def _subject(container: str) -> str:
    return f"container {container}"


def _after(container: FilledContainer) -> list[str]:
    after = container.spec.plain.get("after", [])
    return after if isinstance(after, list) else []
