"""One holder at a time, and no lock that outlives its holder."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rankeval_spark.errors import ResultsBusyError
from rankeval_spark.results.locks import Holder, Lock, LockTimes, Process, this_process
from rankeval_spark.results.storage import Storage

QUICK = LockTimes(heartbeat=0.05, stale_after=0.5, watch=0.2, poll=0.01)
USUAL = LockTimes(watch=0.2)


def lock(root: Path, owner: str, *, wait_seconds: float = 0.0, times: LockTimes = QUICK) -> Lock:
    return Lock(Storage(str(root)), "night", owner=owner, wait_seconds=wait_seconds, times=times)


def leave_behind(root: Path, process: Process, *, seconds_ago: float = 0.0) -> Path:
    """Write the lock of a process that never released it."""
    file = root / "_locks" / "night" / "00000001"
    file.parent.mkdir(parents=True)
    file.write_bytes(Holder("old", process, "2026-01-01T00:00:00+00:00").to_json())
    os.utime(file, (time.time() - seconds_ago,) * 2)
    return file


def process_that_ended() -> Process:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    return replace(this_process(), pid=child.pid, started="1")


def test_a_lock_that_is_held_names_its_holder(tmp_path: Path) -> None:
    with lock(tmp_path, "first"), pytest.raises(ResultsBusyError, match=rf"run first \(process {os.getpid()}") as busy:
        lock(tmp_path, "second").acquire()
    assert busy.value.exit_code == 5


def test_a_released_lock_is_free(tmp_path: Path) -> None:
    with lock(tmp_path, "first"):
        pass
    with lock(tmp_path, "second") as second:
        assert second.is_held


def test_a_waiter_gets_the_lock_when_it_is_released(tmp_path: Path) -> None:
    first = lock(tmp_path, "first")
    first.acquire()
    threading.Timer(0.2, first.release).start()
    with lock(tmp_path, "second", wait_seconds=10) as second:
        assert second.is_held


def test_the_lock_of_a_process_that_ended_is_taken_over(tmp_path: Path) -> None:
    leave_behind(tmp_path, process_that_ended())
    with lock(tmp_path, "next") as taken:
        assert taken.is_held


def test_a_process_number_that_was_given_to_another_is_no_holder(tmp_path: Path) -> None:
    leave_behind(tmp_path, replace(this_process(), started="1"))
    with lock(tmp_path, "next") as taken:
        assert taken.is_held


def test_a_process_that_waits_to_be_reaped_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert replace(this_process(), pid=child.pid, started="1").is_gone()
    child.wait()


def test_a_process_of_another_machine_is_judged_by_its_heartbeat(tmp_path: Path) -> None:
    elsewhere = replace(process_that_ended(), machine="elsewhere")
    file = leave_behind(tmp_path, elsewhere)
    patient = LockTimes(stale_after=60, watch=0.2)
    with pytest.raises(ResultsBusyError):
        lock(tmp_path, "next", times=patient).acquire()
    os.utime(file, (time.time() - 61,) * 2)
    with lock(tmp_path, "next", times=patient) as taken:
        assert taken.is_held


def test_a_heartbeat_keeps_a_lock(tmp_path: Path) -> None:
    with lock(tmp_path, "first"):
        time.sleep(3 * QUICK.stale_after)
        with pytest.raises(ResultsBusyError):
            lock(tmp_path, "second").acquire()


def test_a_holder_notices_that_he_was_taken_for_dead(tmp_path: Path) -> None:
    suspended = lock(tmp_path, "suspended", times=LockTimes(heartbeat=60))
    suspended.acquire()
    os.utime(tmp_path / "_locks" / "night" / "00000001", (0, 0))
    with lock(tmp_path, "next") as taken:
        with pytest.raises(ResultsBusyError, match="run next"):
            suspended.assert_held()
        suspended.release()
        assert taken.is_held


@pytest.mark.parametrize("attempt", range(5))
def test_of_many_contenders_for_a_stale_lock_one_wins(tmp_path: Path, attempt: int) -> None:
    leave_behind(tmp_path, process_that_ended())
    contenders = [lock(tmp_path, f"contender_{number}_{attempt}") for number in range(8)]
    barrier = threading.Barrier(len(contenders))
    winners = []

    def contend(contender: Lock) -> None:
        barrier.wait()
        try:
            contender.acquire()
        except ResultsBusyError:
            return
        winners.append(contender)

    threads = [threading.Thread(target=contend, args=(contender,)) for contender in contenders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    winners[0].release()


def test_a_contender_who_looked_too_long_ago_steps_back(tmp_path: Path) -> None:
    class SlowStorage(Storage):
        """Lets another contender take the lock, use it and pass it on between a look and a try."""

        def create(self, path: str, content: bytes) -> bool:
            for number in (2, 3):
                super().create(f"_locks/night/{number:08d}", Holder("other", this_process(), "now").to_json())
            (Path(self.root) / "_locks/night/00000002").unlink()
            return super().create(path, content)

    leave_behind(tmp_path, process_that_ended())
    with pytest.raises(ResultsBusyError, match="run other"):
        Lock(SlowStorage(str(tmp_path)), "night", owner="slow", times=QUICK).acquire()


def test_a_lock_that_is_still_being_written_is_held(tmp_path: Path) -> None:
    leave_behind(tmp_path, this_process()).write_bytes(b"")
    with pytest.raises(ResultsBusyError, match="another run"):
        lock(tmp_path, "next").acquire()


def test_a_lock_says_who_holds_it_in_readable_json(tmp_path: Path) -> None:
    with lock(tmp_path, "first"):
        content = json.loads((tmp_path / "_locks" / "night" / "00000001").read_text())
    assert content["owner"] == "first"
    assert content["process"]["pid"] == os.getpid()


def test_a_lock_that_a_full_disk_does_not_take_is_not_left_behind(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            lock(tmp_path, "first").acquire()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with lock(tmp_path, "second") as second:
        assert second.taken_from is None
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            second.release()  # it cannot say so, and what was done under it stands
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name.isdecimal() for path in (tmp_path / "_locks" / "night").iterdir()] == [True]


def test_a_lock_says_from_whom_it_was_taken_over(tmp_path: Path) -> None:
    leave_behind(tmp_path, process_that_ended())
    with lock(tmp_path, "next") as taken:
        assert taken.taken_from is not None
        assert taken.taken_from.owner == "old"
    with lock(tmp_path, "later") as later:
        assert later.taken_from is None


def test_a_lock_that_says_nothing_is_free_once_it_cannot_be_written_any_more(tmp_path: Path) -> None:
    for content in (b"", Holder("old", this_process(), "now").to_json()[:20], b"\0" * 300):
        file = leave_behind(tmp_path, this_process(), seconds_ago=3)
        file.write_bytes(content)
        os.utime(file, (time.time() - 3,) * 2)
        with lock(tmp_path, "next", times=USUAL) as taken:
            assert taken.taken_from is None
            assert taken.may_return
        shutil.rmtree(tmp_path / "_locks")


def test_a_killed_contender_leaves_a_draft_that_is_no_lock(tmp_path: Path) -> None:
    draft = tmp_path / "_locks" / "night" / ".00000001.5f0c"
    draft.parent.mkdir(parents=True)
    draft.write_bytes(b"{")
    with lock(tmp_path, "next") as taken:
        assert taken.taken_from is None
    assert (tmp_path / "_locks" / "night" / "00000002").exists()  # taken, and given back


def test_a_lock_is_whole_from_the_moment_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, seen = os.link, []

    def link_and_read(source: Path, target: Path) -> None:
        link(source, target)
        seen.append(Holder.from_json(Path(target).read_bytes()))

    monkeypatch.setattr(os, "link", link_and_read)
    with lock(tmp_path, "first"):
        assert [holder.owner for holder in seen if holder] == ["first"]


@pytest.mark.parametrize("is_refused", [PermissionError, OSError])
def test_a_disk_without_links_has_locks_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused: type[OSError]
) -> None:
    def refuse(*_: object) -> None:
        raise is_refused

    monkeypatch.setattr(os, "link", refuse)
    with lock(tmp_path, "first"), pytest.raises(ResultsBusyError, match="run first"):
        lock(tmp_path, "second").acquire()


def test_a_process_of_an_earlier_start_of_this_host_is_gone(tmp_path: Path) -> None:
    here = this_process()
    name, _, rest = here.machine.partition("/")
    before = replace(here, machine=f"{name}/{'0' * 8}/{rest.rpartition('/')[2]}")
    assert before.is_gone()
    assert replace(before, host_id="").is_gone()
    assert not replace(before, host_id="another").is_gone()
    assert not replace(before, machine=before.machine.replace(name, "elsewhere")).is_gone()
    leave_behind(tmp_path, before)
    with lock(tmp_path, "next", times=USUAL) as taken:
        assert taken.may_return  # another host may have the same name


def test_a_lock_that_could_not_be_given_back_is_free_for_its_own_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    first = lock(tmp_path, "first", times=USUAL)
    with monkeypatch.context() as patched:
        first.acquire()
        patched.setattr(Storage, "create", refuse)
        first.release()
    with lock(tmp_path, "second", times=USUAL) as second:
        assert second.taken_from is not None
        assert second.taken_from.owner == "first"
        assert not second.may_return
        with pytest.raises(ResultsBusyError, match="run second"):
            lock(tmp_path, "third", times=USUAL).acquire()


def test_the_lock_of_a_silent_process_is_taken_from_one_that_may_return(tmp_path: Path) -> None:
    leave_behind(tmp_path, replace(process_that_ended(), machine="elsewhere"), seconds_ago=301)
    with lock(tmp_path, "next", times=USUAL) as taken:
        assert taken.may_return
    leave_behind(tmp_path / "other", process_that_ended())
    with lock(tmp_path / "other", "next") as taken:
        assert not taken.may_return
