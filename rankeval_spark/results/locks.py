"""Crash-safe lease locks of a results root, on disks and object stores alike.

A lock is a register. Whoever wants it writes it *if its version is still the one that was read*, which a store grants
to one contender only. Its holder writes it every few seconds, so that its version changes. A contender takes it from a
holder that has ended, as this machine can tell, or whose version stayed the same for long enough by the contender's own
clock. A holder that was suspended meanwhile learns of it from its next write, which is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.errors import Fault, ResultsBusyError

if TYPE_CHECKING:
    from rankeval_spark.results.storage import Mark, Storage

LOCKS_FOLDER: Final = "_locks"
RUNS_LOCK: Final = "runs"
RUNS_WAIT_SECONDS: Final = 600.0  # a commit to `runs` takes a second; an abandoned lock is free after five minutes
_released: Final = dict[tuple[str, str], Any]()  # marks of the locks that this process released, by root and path
_live: Final = set[str]()  # tokens of the locks that objects of this process hold, or are about to take


@dataclass(frozen=True)
class Process:
    """A process, distinct from one that got the same number later or in another container."""

    machine: str  # see :func:`this_machine`
    pid: int
    started: str
    host_id: str = ""  # tells hosts of one name apart; '' where unknown

    def is_gone(self) -> bool:
        """Return whether it certainly ended; False for another machine, where only the heartbeat tells."""
        here = this_process()
        if self.machine != here.machine:
            (name, boot), (own_name, own_boot) = ([*process.machine.split("/"), ""][:2] for process in (self, here))
            is_same_host = name == own_name and (self.host_id == here.host_id or not (self.host_id and here.host_id))
            return is_same_host and bool(boot and own_boot) and boot != own_boot
        started = _start_of(self.pid)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # a process of another user, whose start may be hidden
            return started not in ("", self.started)
        return started != self.started


def this_process() -> Process:
    """Describe the process that runs this code."""
    machine_id = _read("/etc/machine-id")
    host_id = hashlib.sha256(machine_id.encode()).hexdigest()[:8] if machine_id else ""  # the id itself is no one's
    return Process(this_machine(), os.getpid(), _start_of(os.getpid()), host_id)


def this_machine() -> str:
    """Return host name, boot and process namespace: process numbers can be compared only where all three agree."""
    boot = _read("/proc/sys/kernel/random/boot_id")[:8]
    try:
        namespace = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        namespace = ""
    return f"{platform.node()}/{boot}/{namespace}".rstrip("/")


def _start_of(pid: int) -> str:
    """Return the start of a process in clock ticks since boot; '' where unknown, 'ended' for one not yet reaped."""
    # The name, second field of the line, is in brackets and may hold spaces: read what follows the last bracket.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return ""
    state, start_time = fields[0], fields[19]
    return "ended" if state in "ZX" else start_time


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class LockTimes:
    """Intervals of heartbeats and polls, and the age at which a holder is taken for dead, in seconds."""

    heartbeat: float = 15.0
    stale_after: float = 300.0
    watch: float = (
        40.0  # for how long a version that looks as old, by a clock, is seen unchanged: beyond two heartbeats
    )
    poll: float = 0.25
    # when a file that says nothing, or a part, is no longer being written: its writer died, or power was lost
    cut_after: float = 2.0


@dataclass(frozen=True)
class Holder:
    """Content of the file of a lock."""

    owner: str
    process: Process
    started_at: str
    released_at: str = ""
    token: str = ""  # of the object that holds the lock
    beat: int = 0  # makes each writing of a holder another content, and so another version

    def is_gone(self) -> bool:
        """Return whether no process holds the lock any more: it ended, or is this one and could not release it."""
        return self.process.is_gone() or (self.process == this_process() and self.token not in _live)

    def to_json(self) -> bytes:
        return json.dumps({**vars(self), "process": vars(self.process)}, indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Holder | None:
        """Parse JSON; None if the file is still being written or is not ours."""
        try:
            facts: dict[str, Any] = json.loads(content)
            return cls(**{**facts, "process": Process(**facts["process"])})
        except (ValueError, TypeError, KeyError):
            return None

    def __str__(self) -> str:
        """Describe the holder for a run that finds the lock taken."""
        return f"run {self.owner} (process {self.process.pid} on {self.process.machine}, since {self.started_at})"


class Lock:
    """One named lock of a results root, as a context manager; ``owner`` is the run that wants it."""

    def __init__(
        self, storage: Storage, name: str, *, owner: str, wait_seconds: float = 0.0, times: LockTimes | None = None
    ) -> None:
        self._storage = storage
        self._path = f"{LOCKS_FOLDER}/{name}"
        self._holder = Holder(owner, this_process(), _now(), token=uuid.uuid4().hex)
        self._wait_seconds = wait_seconds
        self._times = times or LockTimes()
        self.taken_from: Holder | None = None  # the previous holder, if it never released the lock
        self.may_return = False  # whether that holder may still be at work
        self._mark: Mark | None = None  # of our own last writing; None while the lock is not ours
        self._held_at = 0.0  # when we sent the request by which the store last said so, by the monotonic clock
        self._seen: tuple[Mark | None, float, float] = (None, 0.0, 0.0)  # another's version, since when, for how long
        self._is_watching = False  # whether that version looks abandoned, so that it is worth to look on
        self._stop = threading.Event()
        self._writing = threading.Lock()  # a heartbeat must not undo a release

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def is_held(self) -> bool:
        """True if no other process has taken the lock since we acquired it."""
        with self._writing:
            if self._mark is None or not self._storage.has_locks:
                return self._mark is not None
            if time.monotonic() - self._held_at < self._storage.trusts_locks_for:
                return True
            asked_at = time.monotonic()  # the answer may reach a process that was suspended meanwhile
            is_ours = self._read_own() is not None
            self._held_at = asked_at if is_ours else 0.0
            return is_ours

    def acquire(self) -> None:
        """Acquire the lock, waiting as long as allowed; ResultsBusyError after that."""
        deadline = time.monotonic() + self._wait_seconds
        _live.add(self._holder.token)
        try:
            while not self._try_to_acquire():
                if time.monotonic() >= deadline and not self._is_watching:
                    raise self.busy()
                time.sleep(self._times.poll)
        finally:
            if self._mark is None:
                _live.discard(self._holder.token)
        if self._storage.has_locks:
            threading.Thread(target=self._beat, name=f"heartbeat {self._path}", daemon=True).start()

    def refuse_holder(self) -> None:
        """Raise ResultsBusyError if another run holds the lock; it is not taken."""
        if (found := self._storage.load(self._path)) and not self._is_free(*found) and not self._is_watching:
            raise self.busy()

    def is_lost(self) -> bool:
        """Return whether another run is known to have taken the lock; False if the store cannot say."""
        with suppress(Exception):  # each store has its own
            return not self.is_held
        return False

    def assert_held(self) -> None:
        """Raise ResultsBusyError if another run took the lock, because this one seemed dead (suspended, cut off)."""
        if not self.is_held:
            raise self.busy()

    def release(self) -> None:
        """Release the lock, if it is still ours.

        A full disk, or a store out of reach, does not undo what was done under it: the lock is then free when this
        process has ended, or its heartbeat has stopped for long enough.
        """
        self._end(is_released=True)

    def abandon(self) -> None:
        """Drop the lock without a release, as a process that ends: the next holder takes it over."""
        self._end(is_released=False)

    def _end(self, *, is_released: bool) -> None:
        self._stop.set()
        with self._writing:
            with suppress(Exception):
                if is_released and self._storage.has_locks:
                    self._write(replace(self._holder, released_at=_now()), self._mark)
                    if self._storage.trusts_locks_for:
                        _released[self._storage.address, self._path] = self._mark
            self._mark = None
            _live.discard(self._holder.token)

    def _try_to_acquire(self) -> bool:
        if not self._storage.has_locks:
            self._mark = self._holder.token
            return True
        if mark := _released.pop((self._storage.address, self._path), None):  # without a look at it, which is a request
            self._write(self._holder, mark)
            if self._mark is not None:
                return True
        found = self._storage.load(self._path)
        if found is not None and not self._is_free(*found):
            return False
        self._write(self._holder, None if found is None else found[1])
        return self._mark is not None

    def _is_free(self, content: bytes, mark: Mark) -> bool:
        """Return whether the holder of a version released the lock, ended, or was seen silent for too long."""
        holder = Holder.from_json(content)
        is_released = holder is not None and bool(holder.released_at)
        self.taken_from = None if is_released else holder
        is_over = is_released or (holder is not None and holder.is_gone())
        is_seen = is_released or (holder is not None and holder.process.machine == this_machine())
        self.may_return = not (is_over and is_seen)
        if is_over:
            return True
        if self._seen[0] != mark:
            is_old = self._storage.age_of(self._path, mark) > (
                self._times.stale_after if holder else self._times.cut_after
            )
            patience = self._times.watch if is_old else self._times.stale_after
            self._is_watching = is_old and self._seen[0] is None  # a version that changes is of a living holder
            self._seen = mark, time.monotonic(), patience if holder else min(patience, self._times.cut_after)
        return time.monotonic() - self._seen[1] > self._seen[2]

    def _write(self, holder: Holder, mark: Mark | None) -> None:
        """Write the lock if its version is the one with a mark; our own mark is None afterwards if it is not."""
        self._holder = replace(self._holder, beat=self._holder.beat + 1)
        content = replace(holder, beat=self._holder.beat).to_json()
        asked_at = time.monotonic()
        written = self._storage.swap(self._path, content, mark)
        if written is None and (own := self._read_own()) is not None:  # by a write whose answer was lost
            written = self._storage.swap(self._path, content, own)
        self._mark, self._held_at = written, asked_at

    def _read_own(self) -> Mark | None:
        """Return the mark of the version that is there if it is ours; None if it is another's."""
        found = self._storage.load(self._path)
        holder = Holder.from_json(found[0]) if found else None
        return found[1] if found and holder and holder.token == self._holder.token else None

    def _beat(self) -> None:
        while not self._stop.wait(self._times.heartbeat):
            # A missed beat is not a lost lock: the next one may get through.
            with self._writing, suppress(Exception):
                if self._mark is None:
                    return
                self._write(self._holder, self._mark)

    def busy(self) -> ResultsBusyError:
        """Build the error that names the holder."""
        where = f"{self._storage.address}, lock {self._path.removeprefix(LOCKS_FOLDER + '/')}"
        fix = "wait for it, or run again later; the lock of a run that died is taken over by itself"
        found = self._storage.load(self._path)
        holder = Holder.from_json(found[0]) if found else None
        return ResultsBusyError(Fault(where, str(holder or "another run"), "no other run on it", fix))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def turn_for_runs(storage: Storage, owner: str) -> Lock:
    """Return the lock under which one process at a time commits to ``runs``.

    Runs append to it side by side, and on a local disk Delta looks whether a commit exists before it renames its own
    into place: of two drivers that do so at once, the second would replace the commit of the first.
    """
    return Lock(storage, RUNS_LOCK, owner=owner, wait_seconds=RUNS_WAIT_SECONDS, times=LockTimes(poll=0.05))
